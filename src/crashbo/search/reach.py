"""How far to reach: only just beyond the successes, or anywhere. Learnt from what either has brought.

May import models and below.

A trial within a small reach of the successes is a step, any other a leap. Each way has cost its trials, and more for
each crash; each has paid some times, by a new best. The next trial goes the way that has cost less per payment: so a
study leaps less where leaps crash, and more where steps no longer gain.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

REACH = 0.1  # judgement: beyond the successes, of every range


def ends(successes: Array) -> tuple[Array, Array]:
    """The lowest and highest coordinates within reach of the successes, (n, D).

    NaN stands for a parameter that did not exist in one; where it existed in none, all of its range is within reach.
    """
    low, high = np.fmin.reduce(successes, axis=0) - REACH, np.fmax.reduce(successes, axis=0) + REACH
    return np.clip(np.nan_to_num(low, nan=0.0), 0.0, 1.0), np.clip(np.nan_to_num(high, nan=1.0), 0.0, 1.0)


def leaps(X: Array, succeeded: Flags, free: Flags) -> Flags:
    """Which trials, in order, lay beyond reach of the successes before them; only `free` coordinates count.

    NaN stands for a parameter that did not exist.
    """
    found = np.zeros(len(X), dtype=bool)
    if succeeded.any():
        first = int(np.argmax(succeeded))
        X, inside = X[:, free], np.where(succeeded[:, None], X[:, free], np.nan)
        low = np.fmin.accumulate(inside, axis=0)[first:-1] - REACH
        high = np.fmax.accumulate(inside, axis=0)[first:-1] + REACH
        found[first + 1 :] = np.any((X[first + 1 :] < low) | (X[first + 1 :] > high), axis=1)
    return found


def leap_is_due(leapt: Flags, crashed: Flags, cost: Array, searched: Flags, price: float, resolution: float) -> bool:
    """Whether the next trial may be a leap.

    Args:
        leapt: which trials, in order, were leaps.
        crashed: which crashed.
        cost: NaN where none is known.
        searched: which the search proposed: only those count.
        price: of a crash, in trials.
        resolution: the least gain in cost that means anything.
    """
    best = np.fmin.accumulate(np.concatenate([[np.inf], np.nan_to_num(cost, nan=np.inf)]))[:-1]
    paid = cost < best - resolution
    spent = np.where(crashed, price, 1.0)
    ways = leapt & searched, ~leapt & searched
    per_payment = [np.sum(spent[way]) / (1.0 + np.sum(paid[way])) for way in ways]
    return bool(per_payment[0] <= per_payment[1])
