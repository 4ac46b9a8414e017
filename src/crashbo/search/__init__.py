"""Search: spaces, acquisition, its maximisation and the appetite for risk. May import models and below."""
