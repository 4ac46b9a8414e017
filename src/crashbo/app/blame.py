"""Which constraint each crash is attributed to.

May import every other layer. Gathers the data that `plots` draws.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.optimizer.optimizer import Optimizer

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Blames:
    """Probabilities, one row per crash and one column per constraint."""

    numbers: tuple[int, ...]  # of the trials that crashed
    constraints: tuple[str, ...]
    p: Array
    told: NDArray[np.bool_]  # whether the user named the constraint


def gather(optimizer: Optimizer) -> Blames:
    """The blame of every crash of a study."""
    blames, names = optimizer.blames(), tuple(c.name for c in optimizer.constraints)
    crashes = [t for t in optimizer.trials if t.state == "crash"]
    shape = len(crashes), len(names)
    return Blames(
        tuple(t.number for t in crashes),
        names,
        np.array([[blames[t.number][name] for name in names] for t in crashes]).reshape(shape),
        np.array([[name in t.blame for name in names] for t in crashes], dtype=bool).reshape(shape),
    )
