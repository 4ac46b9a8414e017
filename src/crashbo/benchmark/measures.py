"""What is measured of a run: regret, crashes and waste. docs/benchmark.md has the definitions in words.

May import the public API, `problems` and `campaigns`.

n trials, D coordinates of the unit cube.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEAR = 0.01  # largest difference of a coordinate at which a trial is a repeat of another
NOISES = 5.0  # times the noise, or
SHARE = 0.01  # of the range: what is plainly worse than the best
_ROUNDING = 1e-9


def incumbents(costs: Sequence[float | None], truths: Sequence[float | None]) -> Array:
    """Noise-free cost of the success with the lowest observed cost so far, after each trial; NaN before the first."""
    observed = np.array([np.inf if cost is None else cost for cost in costs])
    real = np.array([np.nan if truth is None else truth for truth in truths])
    lower = observed < np.minimum.accumulate(np.concatenate([[np.inf], observed]))[:-1]  # the first of equals stays
    best = np.maximum.accumulate(np.where(lower, np.arange(len(observed)), -1))
    return np.where(best >= 0, real[best], np.nan)


def normalised_regret(incumbent: Array, optimum: float, median: float) -> Array:
    """Zero at the optimum, one at the median safe cost; NaN before the first success."""
    return (incumbent - optimum) / (median - optimum)


def score(regret: Array) -> Array:
    """Normalised regret between zero and one: before a success, and beyond the median, it is one."""
    return np.clip(np.where(np.isnan(regret), 1.0, regret), 0.0, 1.0)


def over_price(score: Array, crashed: Flags, price: float) -> float:
    """Mean score while as much is paid as the run has trials: a success costs one, a crash its price.

    Args:
        score: after each trial of the run, n; one before the first.
        crashed: of the trials that were made, n or fewer.
        price: of a crash, in trials; with 1 this is the mean over the trials.
    """
    paid = np.cumsum(np.where(crashed, price, 1.0))
    done = np.searchsorted(paid, np.arange(1, len(score) + 1), side="right")
    return float(np.mean(np.concatenate([[1.0], score])[done]))


def wasted(points: Array, costs: Sequence[float | None], noise: float, span: float) -> Flags:
    """Trials next to an earlier success that was plainly worse than the best known then.

    Args:
        points: in the unit cube, (n, D).
        costs: as observed; None where it crashed.
        noise: standard deviation of the cost's noise.
        span: median safe cost less the optimum.
    """
    observed = np.array([np.nan if cost is None else cost for cost in costs])
    plainly = max(NOISES * noise, SHARE * span)
    flags = np.zeros(len(points), dtype=bool)
    for i in range(1, len(points)):
        before = observed[:i]
        if np.isnan(before).all():
            continue
        near = np.abs(points[:i] - points[i]).max(axis=1) <= NEAR + _ROUNDING
        flags[i] = bool(np.any(near & (before > np.nanmin(before) + plainly)))
    return flags
