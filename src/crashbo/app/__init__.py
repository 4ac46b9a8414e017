"""App: what a user runs and looks at. May import every other layer."""
