"""Whole numbers and options among the parameters.

May import the public API, from the modules that define it, and `problem`.
"""

import numpy as np

from crashbo.problems.families.functions import SMOOTH, some_pair
from crashbo.problems.families.landscape import Cause, Family, Kind, Landscape


def _mixed(dimension: int, rng: np.random.Generator) -> Landscape:
    """Options, whole numbers and floats, at least one of each; of two parameters, one option and one float."""
    cost, load = some_pair(dimension, rng)
    kinds: list[Kind] = ["choice", "int"] if dimension > 2 else ["choice"]
    more: list[Kind] = list(rng.choice(["choice", "int", "float"], max(dimension - 3, 0)))
    kinds = [*kinds, "float", *more]
    return Landscape(cost, (Cause(load, SMOOTH),), kinds=tuple(kinds[i] for i in rng.permutation(dimension)))


FAMILIES = (Family("mixed", "options and whole numbers among the parameters", _mixed, (4, 8), group="options"),)
