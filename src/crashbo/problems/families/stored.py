"""Optima that were found before, those of the benchmark's own problems: by `python benchmarks/families/optima.py`.

May import the public API, from the modules that define it, and `problem`.

By family, then by "dimension/seed": the lowest safe cost, the lowest cost of all, and the point of the former in the
unit cube. What does not agree with the machine that is drawn here (by another NumPy, say) is not used.
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
    cost, overall, u = found[0], found[1], np.array(found[2:])
    agrees = abs(member.cost(u[None])[0] - cost) <= _AGREES * (member.median - cost)
    return Lowest(cost, overall, u) if agrees and member.excess(u[None]).max() <= 0.0 else None


@cache
def _all() -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = json.loads(PATH.read_text(encoding="utf-8"))
    return found
