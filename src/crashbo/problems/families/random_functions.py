"""Cost and load are random functions, smooth or rugged.

May import the public API, from the modules that define it, and `problem`.
"""

import numpy as np

from crashbo.problems.families.functions import SMOOTH, waves
from crashbo.problems.families.landscape import Cause, Family, Landscape


def _smooth(dimension: int, rng: np.random.Generator) -> Landscape:
    return Landscape(
        waves(dimension, rng, nu=(2.5, np.inf), lengthscale=(0.25, 0.7)),
        (Cause(waves(dimension, rng, nu=(2.5, np.inf), lengthscale=(0.25, 0.7)), SMOOTH),),
    )


def _rugged(dimension: int, rng: np.random.Generator) -> Landscape:
    return Landscape(
        waves(dimension, rng, nu=(0.5, 1.5), lengthscale=(0.12, 0.3)),
        (Cause(waves(dimension, rng, nu=(1.5, 2.5), lengthscale=(0.15, 0.5)), SMOOTH),),
    )


FAMILIES = (
    Family("smooth", "cost and load are smooth random functions", _smooth, (2, 8, 16)),
    Family(
        "rugged",
        "cost and load are rough random functions of short lengthscales",
        _rugged,
        (2, 4),
        most=6,
        group="cusps and islands",
    ),
)
