"""App: command line, bench, HTTP service, plots and reports. May import every other layer."""
