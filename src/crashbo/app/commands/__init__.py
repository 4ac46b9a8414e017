"""The commands of `crashbo`, one file a family. May import every other layer.

A command's heavy imports (Optuna, FastAPI, matplotlib) stand inside its functions: `crashbo --help` needs none of them.
"""
