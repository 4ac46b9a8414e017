"""The commands of `crashbo`, one file per family. May import every other layer.

Heavy imports (Optuna, FastAPI, matplotlib) are inside the functions that need them, so that `crashbo --help` is fast.
"""
