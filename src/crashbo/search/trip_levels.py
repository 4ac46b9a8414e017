"""Crash thresholds that move with the context: a warm machine may trip earlier than a cold one.

May import models and below.

Where a threshold is learnt, there is one constraint, and the space has contexts, the threshold may be
    c(t) = c + beta t,
with t the contexts' coordinates. Less beta t, measurements have one threshold again, and every model stays as it is.
beta is the posterior mean, by labels and by what a GP of the measurements expects at each trial, from samples of c and
beta; and zero, unless the data speak for it.

Notation: g, v are mean and variance of what a trial measures, l = +1 for a success, -1 for a crash;
    P(l) = Phi(l (c + beta t - g) / sqrt(v + s^2))
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from crashbo.models import hyperpriors
from crashbo.search.costs import fit_cost

Array = NDArray[np.float64]

_FEW_CRASHES, _FEW_SUCCESSES = 3, 6  # judgement: fewer say nothing of a slope
_LEAD = 2.5  # judgement: nats by which a slope must be more probable than none, as for a bystander
_KNOWN = 0.2  # judgement: spreads; a crash of which less is known, far from all successes, tells nothing
_SCATTER = 0.03  # judgement: s, of the measurements' spread
_PRIOR = (2.0, 1.5)  # judgement: standard deviations of c about the highest success, and of beta, in spreads
_SAMPLES = 4000  # judgement: of c and beta, twice
_WIDER = 2.0  # judgement: times the spread that the first samples show, of the second ones
_STEPS = 8  # judgement: of a spread that is a power of two: so that a slope stays as it is while little is learnt


class Tilt(NamedTuple):
    """How a threshold rises along a context."""

    at: int  # coordinate
    slope: float
    std: float  # of the slope
    middle: float  # of the trials' coordinates: there the threshold is as sure as it is


def tilts(X: Array, y: Array, crashed: NDArray[np.bool_], contexts: tuple[int, ...]) -> tuple[Tilt, ...]:
    """Along which contexts, coordinates of X, a threshold of y rises or falls."""
    seen = ~np.isnan(y) & ~crashed
    if not contexts or crashed.sum() < _FEW_CRASHES or seen.sum() < _FEW_SUCCESSES or np.ptp(y[seen]) == 0.0:
        return ()
    rows = seen | crashed
    return _found(X[rows].tobytes(), y[rows].tobytes(), crashed[rows].tobytes(), X.shape[1], contexts)


@lru_cache(maxsize=16)
def _found(X_: bytes, y_: bytes, crashed_: bytes, D: int, contexts: tuple[int, ...]) -> tuple[Tilt, ...]:
    """The same from bytes: several who look at the same trials ask for it."""
    X, y = np.frombuffer(X_).reshape(-1, D), np.frombuffer(y_)
    crashed = np.frombuffer(crashed_, dtype=bool)
    seen = ~crashed
    spread, top = float(np.std(y[seen])), float(y[seen].max())
    g, v = fit_cost(X[seen], y[seen], None, hyperpriors.of_cost(D)).predict(0, X)
    g, v = np.where(seen, y, g), np.where(seen, 0.0, v)
    told = v < (_KNOWN * spread) ** 2
    if crashed[told].sum() < _FEW_CRASHES:
        return ()
    X, g, v, crashed = X[told], g[told], v[told], crashed[told]
    T = np.column_stack([np.ones(len(X)), X[:, contexts] - X[:, contexts].mean(axis=0)])
    label, scale = np.where(crashed, -1.0, 1.0), np.sqrt(v + (_SCATTER * spread) ** 2)

    def log_likelihood(theta: Array) -> Array:
        """Of c and beta in spreads, above the highest success and about the middle of the contexts, (m, 1 + k)."""
        z = label * (top + spread * theta @ T.T - g) / scale
        return np.asarray(log_ndtr(z).sum(axis=1))

    rng, std = np.random.default_rng(0), np.array([_PRIOR[0], *[_PRIOR[1]] * len(contexts)])
    first = std * rng.standard_normal((_SAMPLES, len(std)))
    flat = np.where(np.arange(len(std)) == 0, first, 0.0)
    log_weights = log_likelihood(first)
    mean, cov = _moments(first, log_weights)
    root = np.linalg.cholesky(_WIDER**2 * cov + (_SCATTER * np.eye(len(std))) ** 2)
    unit = rng.standard_normal((_SAMPLES, len(std)))
    second = mean + unit @ root.T
    log_ratio = -0.5 * np.sum((second / std) ** 2, axis=1) + 0.5 * np.sum(unit**2, axis=1)
    log_ratio += float(np.log(np.diag(root)).sum() - np.log(std).sum())
    log_weights = log_likelihood(second) + log_ratio
    if logsumexp(log_weights) - logsumexp(log_likelihood(flat)) < _LEAD:
        return ()
    mean, cov = _moments(second, log_weights)
    step = 2.0 ** np.floor(np.log2(spread)) / _STEPS
    slopes = [float(step * round(spread * b / step)) for b in mean[1:]]
    stds, middles = spread * np.sqrt(np.diag(cov)[1:]), X[:, contexts].mean(axis=0)
    found = zip(contexts, slopes, map(float, stds), map(float, middles), strict=True)
    return tuple(tilt for tilt in map(Tilt._make, found) if tilt.slope)


def _moments(samples: Array, log_weights: Array) -> tuple[Array, Array]:
    w = np.exp(log_weights - logsumexp(log_weights))
    mean = w @ samples
    return mean, (samples - mean).T @ ((samples - mean) * w[:, None])
