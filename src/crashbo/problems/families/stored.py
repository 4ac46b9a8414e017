"""Optima that were found before, those of the benchmark's own problems: by `python benchmarks/families/optima.py`.

May import the public API, from the modules that define it, and `problem`.

By family, then by "dimension/seed": the lowest safe cost, the lowest cost of all, the median safe cost, and the point
of the first in the unit cube. What does not agree with the machine that is drawn here (by another NumPy, or since its
family was changed) is not used: the median tells of a load that crashes elsewhere, even where the point is still safe.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np

from crashbo.problems.families.instance import Instance, Lowest

PATH = Path(__file__).parent / "optima.json"
_AGREES = 1e-6  # of the median safe cost less the optimum


def lowest(member: Instance) -> Lowest | None:
    """What is on file of a machine."""
    found = _all().get(member.family.name, {}).get(f"{member.dimension}/{member.seed}")
    if found is None:
        return None
    cost, overall, median, u = found[0], found[1], found[2], np.array(found[3:])
    off = max(abs(member.cost(u[None])[0] - cost), abs(member.median - median))
    agrees = off <= _AGREES * (member.median - cost) and member.excess(u[None]).max() <= 0.0
    return Lowest(cost, overall, u) if agrees else None


@cache
def _all() -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = json.loads(PATH.read_text(encoding="utf-8"))
    return found
