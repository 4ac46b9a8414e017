"""Optimizer: trials, ask and tell, minimize; the only mutable state. May import strategies and below."""
