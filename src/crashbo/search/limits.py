"""Limits: readings at which a trial that runs is stopped, since going on would crash it.

May import models and below.

A limit is the reading at which a trial is stopped that would else crash with a given probability or more, by the
threshold's posterior, by the last readings before earlier crashes, and by what is expected of the trial. Before the
first crash there is none, unless a threshold was given: crashes teach.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from crashbo.search.causes import RIVAL
from crashbo.search.observations import Observations
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]


def limits(seen: Observations, models: Surrogates, p: float, x: Array | None = None) -> Array:
    """One per constraint, (G,), of a trial at x, or of any; infinite where none is known."""
    doubt = _doubts(seen, models)
    return np.array(
        [
            models.crash_model.trip_level(j, p, float(doubt[j]) if given is None else 0.0, x)
            for j, given in enumerate(seen.thresholds)
        ]
    )


def ceilings(seen: Observations, models: Surrogates) -> Array | None:
    """Limits that trials keep below, in a study in which they are stopped there; None in others."""
    return limits(seen, models, seen.stops_at) if seen.stopped.any() else None


def _doubts(seen: Observations, models: Surrogates) -> Array:
    """The probability, for each constraint, that no crash was of its making, by what a search knows anyway, (G,)."""
    if not seen.crashed.any():
        return np.ones(seen.Y.shape[1])
    kept = models.memory.bystander
    elsewhere = 0.0 if kept is None else float(expit(kept.lead + np.log(RIVAL)))
    innocent = np.prod(1.0 - models.crash_model.blame(), axis=0)
    return np.asarray(elsewhere + (1.0 - elsewhere) * innocent)
