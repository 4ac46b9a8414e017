"""What a proposed trial's P(safe) is reported as: the model's, corrected by how earlier proposals fared.

May import strategies and below.

The search picks x where the expected gain times P(safe) is highest, hence with preference where P(safe) is
over-estimated: of trials proposed at 0.9 fewer than nine in ten may succeed, although of points drawn blindly they do.
The correction is one shift b of the log odds, the most probable one given every proposal told so far,
    prod_i p_i(b)^success_i (1 - p_i(b))^crash_i N(b; 0, _SPREAD^2),   logit p_i(b) = logit p_i + b.
It depends on the stored trials alone: neither on their order nor on when they were told.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from crashbo.optimizer.records import Trial

Array = NDArray[np.float64]

_SPREAD = 1.0  # of the shift, before anything was told
_MOST = 0.999  # a model that is surer than this is not believed further
_STEPS = 20  # of Newton's method, which is safe here: the log posterior is concave
_TOLERANCE = 1e-10


def shift_of(trials: Iterable[Trial]) -> float:
    """The shift of log odds that a study's own proposals ask for; 0 before the first was told."""
    told = [t for t in trials if t.origin == "search" and t.p_model is not None and t.state in ("success", "crash")]
    p = np.array([t.p_model for t in told], dtype=float)
    return log_odds_shift(p, np.array([t.state == "success" for t in told], dtype=bool))


def log_odds_shift(p: Array, succeeded: NDArray[np.bool_]) -> float:
    """The most probable shift of predictions p, given which of them succeeded."""
    z = logit(np.clip(p, 1.0 - _MOST, _MOST))
    b = 0.0
    for _ in range(_STEPS):
        q = expit(z + b)
        slope = float(np.sum(succeeded - q)) - b / _SPREAD**2
        step = slope / (float(np.sum(q * (1.0 - q))) + 1.0 / _SPREAD**2)
        b += float(np.clip(step, -1.0, 1.0))
        if abs(step) < _TOLERANCE:
            break
    return b


def shifted(p: float, b: float) -> float:
    """A prediction, its log odds shifted by b."""
    return float(expit(logit(np.clip(p, 1e-12, 1.0 - 1e-12)) + b))
