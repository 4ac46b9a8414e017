"""Integrations with other libraries, each imported only when needed. May import optimizer and below."""
