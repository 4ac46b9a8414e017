"""Limits: readings at which a trial that runs is stopped, since going on would crash it.

May import models and below.

A limit is the reading by which a machine that runs has tripped with a given probability. It follows from the threshold's
posterior and, where a guard has watched crashes, from the last readings before them. Before the first crash there is
none, unless a threshold was given: crashes teach.
"""

import numpy as np
from numpy.typing import NDArray

from crashbo.search.surrogates import Observations, Surrogates, doubts

Array = NDArray[np.float64]

_LIKELY = 0.5  # derived: a crash is of a constraint that is more likely to blame than not


def limits(seen: Observations, models: Surrogates, p: float) -> Array:
    """One per constraint, (G,); infinite where none is known."""
    model, doubt = models.crash_model, doubts(seen, models)
    blamed = model.blame() >= _LIKELY if seen.crashed.any() else np.zeros((0, len(doubt)), dtype=bool)
    last = np.full_like(seen.Y, np.nan) if seen.reached is None else seen.reached
    levels = []
    for j, given in enumerate(seen.thresholds):
        readings = last[seen.crashed, j][blamed[:, j]]
        readings = readings[~np.isnan(readings)]
        levels.append(model.trip_level(j, p, float(doubt[j]) if given is None else 0.0, readings))
    return np.array(levels)


def ceilings(seen: Observations, models: Surrogates) -> Array | None:
    """Limits that trials keep below, in a study in which they are stopped there; None in others."""
    return limits(seen, models, seen.stops_at) if seen.stopped.any() else None
