"""Evidence against what a study takes for granted, in nats, from the outcomes of its own trials.

May import numerics only.

Evidence of x nats is found in a share exp(-x) of the studies at the most where nothing is wrong: it is a negative log
p-value, or the logarithm of an e-value, a ratio of probabilities of the outcomes whose expectation is one at most. The
latter holds however the search chose its trials, and whenever somebody looks.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc, logsumexp, xlog1py, xlogy

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

# judgement: grids over what is not known; a factor of two or three between neighbours loses little
_WIDTHS = (0.05, 0.1, 0.2, 0.4)  # of a place, per square root of the dimension
_SURE = 0.995  # judgement: a probability beyond this is taken as this, since no model is that good
_WEIGHT = 0.5  # judgement: of the overall share beside trials near by, in trials
_EXACT = 1e-5  # judgement: of the range of all values; less noise is none, and points at one place differ a little
_TINY = 1e-150  # derived: its square is a number
_LEAST = 1e-300  # derived: of a probability, so that its logarithm is finite


def clustered(X: Array, labels: Bools) -> float:
    """Evidence that where a trial is, X in the unit cube, has to do with its label, against one share for all.

    Each label is predicted from those of earlier trials near by.
    """
    n = len(labels)
    if not 0 < labels.sum() < n:
        return 0.0
    share = float(labels.mean())
    constant = n * float(
        xlogy(share, share) + xlog1py(1.0 - share, -share)
    )  # the best constant, which favours the null
    before = (np.cumsum(labels) - labels + 0.5) / (np.arange(n) + 1.0)
    distances = np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2) / X.shape[1]
    logs = []
    for width in _WIDTHS:
        near = np.tril(np.exp(-0.5 * distances / width**2), -1)
        p = (_WEIGHT * before + near @ labels) / (_WEIGHT + near.sum(axis=1))
        logs.append(float(np.sum(np.where(labels, np.log(np.maximum(p, _LEAST)), np.log1p(-np.minimum(p, _SURE))))))
    return _average(logs) - constant


def other_noise(values: Array, places: NDArray[np.intp], std: float) -> tuple[float, float]:
    """Evidence that repeats at the same place scatter otherwise than by `std`, and by what they do.

    The evidence is the negative log p-value of a chi-squared test of both sides.
    """
    sizes = np.bincount(places)
    repeats = len(values) - int(np.sum(sizes > 0))
    if repeats < 1:
        return 0.0, math.nan
    means = np.bincount(places, values) / np.maximum(sizes, 1)
    squares = float(np.sum((values - means[places]) ** 2))
    least = max(_EXACT * float(np.ptp(values)), _TINY)
    ratio = max(squares, repeats * least**2) / max(std, least) ** 2
    p = 2.0 * min(float(chdtr(repeats, ratio)), float(chdtrc(repeats, ratio)))
    return -math.log(max(min(p, 1.0), _LEAST)), math.sqrt(squares / repeats)


def _average(logs: list[float]) -> float:
    return float(logsumexp(logs)) - math.log(len(logs))
