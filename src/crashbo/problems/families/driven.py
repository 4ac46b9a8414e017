"""The harder it is driven the better, until it crashes: optima on the boundary, often in a corner; and monotone costs.

May import the public API, from the modules that define it, and `problem`.
"""

import numpy as np

from crashbo.problems.families.functions import SMOOTH, drive, total, waves
from crashbo.problems.families.landscape import Cause, Family, Landscape


def _driven(dimension: int, rng: np.random.Generator) -> Landscape:
    flips = rng.random(dimension) < 0.5
    ripple = float(rng.choice([0.0, 0.05]))
    load = total((1.0, drive(dimension, rng, flips)), (ripple, waves(dimension, rng)))
    return Landscape(total((-1.0, drive(dimension, rng, flips))), (Cause(load, SMOOTH),), hints=_corners(flips))


def _monotone(dimension: int, rng: np.random.Generator) -> Landscape:
    flips = rng.random(dimension) < 0.5
    load = waves(dimension, rng, nu=(2.5, np.inf))
    return Landscape(total((-1.0, drive(dimension, rng, flips))), (Cause(load, SMOOTH),), hints=_corners(flips))


def _corners(flips: np.ndarray) -> np.ndarray:
    """Where the cost is lowest if nothing crashes."""
    return np.where(flips, 0.0, 1.0)[None]


FAMILIES = (
    Family("driven", "the harder driven the better, and the sooner it crashes", _driven, (2, 4, 8, 16, 40), most=60),
    Family("monotone", "the cost falls with every parameter; the load is a random function", _monotone, (6, 20)),
)
