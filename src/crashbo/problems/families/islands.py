"""Safe regions that do not touch.

May import the public API, from the modules that define it, and `problem`.
"""

from functools import partial

import numpy as np

from crashbo.problems.families.functions import SMOOTH, bowl, total, waves
from crashbo.problems.families.landscape import Array, Cause, Family, Landscape

_FEWEST, _MOST = 3, 5
_TRIES = 200


def _islands(dimension: int, rng: np.random.Generator) -> Landscape:
    centres = apart(int(rng.integers(_FEWEST, _MOST + 1)), dimension, rng)
    sizes = rng.uniform(0.7, 1.3, len(centres))
    # The cost falls towards one island, and the start is on the worst.
    cost = total((1.0, waves(dimension, rng)), (6.0, bowl(centres[0], rng, condition=2.0)))
    return Landscape(
        cost,
        (Cause(partial(out_at_sea, centres, sizes), SMOOTH),),
        shares=(0.75, 0.9),
        start=centres[np.argmax(cost(centres))],
        hints=centres,
    )


def apart(count: int, dimension: int, rng: np.random.Generator) -> Array:
    """Points that are as far from one another as chance has it in many tries."""
    draws = rng.uniform(0.1, 0.9, (_TRIES, count, dimension))
    gaps = np.linalg.norm(draws[:, :, None] - draws[:, None], axis=3) + 9.0 * np.eye(count)
    out: Array = draws[np.argmax(gaps.min(axis=(1, 2)))]
    return out


def out_at_sea(centres: Array, sizes: Array, U: Array) -> Array:
    """Distance from the nearest centre over that from the next, each in its island's size.

    It is one halfway, so islands cannot touch, whatever the level: plain distances let them in many dimensions, where a
    tenth of the space is a wide ball.
    """
    near, next_ = np.partition(np.linalg.norm(U[:, None] - centres, axis=2) / sizes, 1, axis=1)[:, :2].T
    out: Array = near / next_
    return out


FAMILIES = (
    Family(
        "islands",
        "safe islands that do not touch; a start is on the worst of them",
        _islands,
        (2, 4),
        most=6,
        group="cusps and islands",
    ),
)
