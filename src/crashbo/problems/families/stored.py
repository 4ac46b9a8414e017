"""Optima that were found before: those of the benchmark's own problems.

May import the public API, from the modules that define it, and `problem`.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np

from crashbo.problems.families.landscape import Array

_FILE = Path(__file__).parent / "optima.json"


def optimum(name: str, dimension: int, seed: int) -> Array | None:
    """The point of lowest safe cost in the unit cube, if it is on file."""
    found = _all().get(name, {}).get(f"{dimension}/{seed}")
    return None if found is None else np.array(found)


@cache
def _all() -> dict[str, dict[str, list[float]]]:
    if not _FILE.exists():
        return {}
    found: dict[str, dict[str, list[float]]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found
