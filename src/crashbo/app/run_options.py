"""What commands that run whole campaigns have in common in their options. May import every other layer."""

import os
import sys


def listed(names: str) -> tuple[str, ...]:
    """Names that are separated by commas."""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def look_here_for_modules() -> None:
    """Find a user's module in the current directory, as with `python -m`; workers inherit the path."""
    if not sys.flags.safe_path:
        sys.path.append(os.getcwd())  # last, so that no file here shadows an installed module
