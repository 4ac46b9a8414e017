"""What can be known of a crash: gauges that jump, kink or saturate; several causes; labels only; the wrong quantity.

May import the public API, from the modules that define it, and `problem`.
"""

from functools import partial

import numpy as np

from crashbo.problems.families.functions import JUMP, KINK, SATURATION, SMOOTH, some_pair, total, waves
from crashbo.problems.families.landscape import Cause, Dial, Family, Landscape

_HEAVY = (0.1, 0.3)


def _read_by(dial: Dial | None, dimension: int, rng: np.random.Generator) -> Landscape:
    cost, load = some_pair(dimension, rng)
    return Landscape(cost, (Cause(load, dial),))


def _several(dials: tuple[Dial | None, ...], dimension: int, rng: np.random.Generator) -> Landscape:
    """The first cause goes with the cost, the others are random; the last of three is there in every second one."""
    cost, load = some_pair(dimension, rng)
    count = len(dials) - int(len(dials) > 2 and rng.random() < 0.5)
    loads = [load, *(waves(dimension, rng, nu=(2.5, np.inf)) for _ in dials[1:])]
    return Landscape(cost, tuple(Cause(f, dial) for f, dial in zip(loads[:count], dials[:count], strict=True)))


def _bystander(dimension: int, rng: np.random.Generator) -> Landscape:
    cost, load = some_pair(dimension, rng)
    # One of them goes with the cost, and so seems to have to do with everything.
    others = (total((-1.0, cost), (0.3, waves(dimension, rng))), waves(dimension, rng))
    return Landscape(cost, (Cause(load, None),), bystanders=others[: 1 + int(rng.random() < 0.5)])


def _noisy(dimension: int, rng: np.random.Generator) -> Landscape:
    cost, load = some_pair(dimension, rng)
    return Landscape(cost, (Cause(load, SMOOTH),), noise=_HEAVY)


FAMILIES = (
    Family("jump", "the load creeps up, then jumps over its limit", partial(_read_by, JUMP), (2, 6)),
    Family("kink", "the load rises much faster in the last stretch", partial(_read_by, KINK), (2, 6)),
    Family("saturation", "the load hardly rises any more near its limit", partial(_read_by, SATURATION), (2, 6)),
    Family("labels", "nothing is measured; one cause", partial(_read_by, None), (2, 4, 8)),
    Family("causes", "nothing is measured; two or three causes", partial(_several, (None, None, None)), (3, 6)),
    Family("several", "two or three causes, all measured", partial(_several, (SMOOTH, SMOOTH, SMOOTH)), (3, 6)),
    Family("partly", "two causes, one of them measured", partial(_several, (SMOOTH, None)), (3, 6)),
    Family("bystander", "what is measured is not the cause", _bystander, (3, 6)),
    Family("noisy", "heavy noise on the cost and on the load", _noisy, (2, 6)),
)
