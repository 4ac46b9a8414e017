"""The acquisition of several goals: log expected hypervolume improvement, with exact gradients in x.

May import models and below.

Notation, at m points X in the unit cube, for M goals that are modelled apart, all minimised:
    mu_j, s_j  mean of goal j, and the standard deviation by which one more trial is expected to move it
    cells      K disjoint boxes (low, high) that fill what no point of the front beats, up to the reference point
               (see `numerics.hypervolume`)

A trial that comes out at y gains of every cell the part above y, the product over goals of (high_j - max(low_j, y_j))+.
The goals are independent, so its expectation is a product, too, of what a Gaussian leaves of a band (`log_bands`), and
the acquisition is the log of a sum over cells of products: in logarithms throughout, so that a point far behind the
front still has a gradient.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models.latent import Posterior
from crashbo.numerics.gaussians import log_bands
from crashbo.search.acquisition import ValueAndGradient

Array = NDArray[np.float64]

_AT_ONCE = 2**18  # judgement: bands of a goal that are computed together, for memory


class _Edges(NamedTuple):
    """The levels of one goal that bound cells, and which of them each cell has as its ends."""

    levels: Array  # (E,)
    low: NDArray[np.intp]  # (K,)
    high: NDArray[np.intp]


@dataclass(frozen=True)
class LogEHVI:
    """log expected hypervolume improvement of the posteriors of M goals.

    With a noise it is the improvement that one more trial may show: by var / sqrt(var + noise^2) a posterior mean is
    expected to move.
    """

    goals: Posterior
    low: Array  # (K, M), of the cells
    high: Array
    noise_std: Array  # (M,)
    units: Array  # (M,), of the goals: the improvement is in the product of these

    def __call__(self, X: Array) -> Array:
        """log EHVI at X."""
        width = max(_AT_ONCE // len(self.low), 1)
        parts = [self._value(X[at : at + width]) for at in range(0, len(X), width)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _value(self, X: Array) -> Array:
        logs = np.zeros((len(X), len(self.low)))
        for j, edges in enumerate(self._edges):
            mean, var = self.goals.predict(j, X)
            std = var / np.sqrt(var + self.noise_std[j] ** 2)
            logs += log_bands((edges.levels - mean[:, None]) / std[:, None], edges.low, edges.high).log_height
            logs += (np.log(std) - np.log(self.units[j]))[:, None]
        return _log_sum(logs)

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """log EHVI at X and its gradient."""
        logs, moved = np.zeros((len(X), len(self.low))), []
        for j, edges in enumerate(self._edges):
            mean, var, pullback = self.goals.predict_with_pullback(j, X)
            root = np.sqrt(var + self.noise_std[j] ** 2)
            std = var / root
            band = log_bands((edges.levels - mean[:, None]) / std[:, None], edges.low, edges.high)
            logs += band.log_height + (np.log(std) - np.log(self.units[j]))[:, None]
            moved.append((band, pullback, -1.0 / std, 1.0 / var - 0.5 / root**2))
        total = _log_sum(logs)
        shares = np.exp(logs - total[:, None])
        gradient = np.zeros_like(X)
        for band, pullback, per_mean, per_var in moved:
            by_mean, by_std = (np.einsum("mk,mk->m", shares, slope) for slope in (band.by_mean, band.by_std))
            gradient += pullback(by_mean * per_mean, by_std * per_var)
        return total, gradient

    @cached_property
    def _edges(self) -> tuple[_Edges, ...]:
        K = len(self.low)
        ends = np.vstack([self.low, self.high]).T
        found = (np.unique(levels, return_inverse=True) for levels in ends)
        return tuple(_Edges(levels, at[:K], at[K:]) for levels, at in found)


def _log_sum(logs: Array) -> Array:
    """log of the sum of exponentials over the cells."""
    top = logs.max(axis=1)
    total: Array = top + np.log(np.sum(np.exp(logs - top[:, None]), axis=1))
    return total
