"""The acquisition: log EI + log Gamma (eq. 2), with exact gradients in x. Of a study, Gamma is corrected (`safety`).

May import models and below.

Notation, at m points X in the unit cube:
    f, g_j     cost and constraints; mu, var their posterior moments
    eta        the incumbent's cost, to improve upon
    Gamma      probability of success, prod_j Phi(z_j), z_j = (c_j - mu_j) / sqrt(var_j + s_j^2),
               its mean over an ensemble of K posteriors
    v          share of the prior's variance that is left, var_j / outputscale_j: 1 far from all trials

A search stays where it is safe, and a model that has seen little else expects much the same of the rest of the space.
So Gamma may be wary: far from all trials a function is assumed to lie nearer to its threshold than the model says, by
_NEARER prior standard deviations, and to vary more, by _WIDER times the variance. Both fade near trials:
    z_j becomes (z_j - _NEARER v) / sqrt(1 + _WIDER v).
An unmeasured constraint keeps its prior: the trials, safe as they are, tell nothing about its range.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from crashbo.models.ensemble import Ensemble
from crashbo.models.latent import Posterior
from crashbo.models.moments import Covariance
from crashbo.numerics.gaussians import log_unit_improvement, tail

Array = NDArray[np.float64]
ValueAndGradient = tuple[Array, Array]

# fitted: benchmarks/calibration.py, random points of studies on its problems
_NEARER = 0.45
_WIDER = 2.0
_HARDLY = 1e-3  # judgement: share of its variance by which a cost moves apart from the incumbent's in any case


@dataclass(frozen=True)
class LogGamma:
    """log P(safe): the mean over an ensemble of crash posteriors."""

    ensemble: Ensemble
    wary: bool = False  # far from all trials

    @staticmethod
    def of(crash: Posterior) -> "LogGamma":
        """Of one crash posterior with certain thresholds."""
        return LogGamma(Ensemble.of(crash))

    def __call__(self, X: Array) -> Array:
        """log Gamma at X."""
        logs = np.tile(self.ensemble.log_weights[:, None], (1, len(X)))
        for j in range(self._constraints):
            logs += log_ndtr(self._z(j, X))
        return _log_sum(logs)

    def violated(self, X: Array) -> Array:
        """Probability that each constraint is violated at X, (m, G)."""
        weights = np.exp(self.ensemble.log_weights)
        return np.stack([weights @ ndtr(-self._z(j, X)) for j in range(self._constraints)], axis=1)

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """log Gamma at X and its gradient."""
        logs, found = self.ensemble.log_weights[:, None], []
        for j in range(self._constraints):
            mean, var, pullback = self.ensemble.predict_with_pullback(j, X)
            spread = var + self.ensemble.scatter(j)[:, None]
            std = np.sqrt(spread)
            z = (self.ensemble.levels(j)[:, None] - mean) / std
            z_wary, by_z, by_var = self._tempered(j, z, var)
            cut = tail(z_wary)
            logs = logs + cut.log_mass
            in_mean = cut.hazard * by_z / -std
            in_var = cut.hazard * by_var + 0.5 * in_mean * z / std
            found.append((pullback, in_mean, in_var))
        total = _log_sum(logs)
        shares = np.exp(logs - total) if len(logs) > 1 else 1.0
        gradients = [pullback(shares * in_mean, shares * in_var) for pullback, in_mean, in_var in found]
        return total, gradients[0] if len(gradients) == 1 else np.sum(gradients, axis=0)

    @property
    def roughly(self) -> "LogGamma":
        """The same by the ensemble's first member alone, for many points."""
        return replace(self, ensemble=self.ensemble.middle)

    def with_crashes(self, X: Array) -> "LogGamma":
        """The same as if trials at X had crashed, at the same hyperparameters."""
        return replace(self, ensemble=self.ensemble.with_crashes(X))

    @property
    def _constraints(self) -> int:
        return len(self.ensemble.members[0].hypers)

    def _z(self, j: int, X: Array) -> Array:
        mean, var = self.ensemble.predict(j, X)
        z = (self.ensemble.levels(j)[:, None] - mean) / np.sqrt(var + self.ensemble.scatter(j)[:, None])
        return self._tempered(j, z, var)[0]

    def _tempered(self, j: int, z: Array, var: Array) -> tuple[Array, Array | float, Array | float]:
        """The wary z of the module's docstring, and its slopes in z and in var."""
        if not self.wary or not self.ensemble.members[0].data.kind[j]:
            return z, 1.0, 0.0
        prior = self.ensemble.outputscales(j)[:, None]
        left = var / prior
        by_z = 1.0 / np.sqrt(1.0 + _WIDER * left)
        nearer = (z - _NEARER * left) * by_z
        return nearer, by_z, by_z * (_NEARER + 0.5 * _WIDER * nearer * by_z) / -prior


def _log_sum(logs: Array) -> Array:
    """log of the sum of exponentials over the first axis, at most 0: a mean of probabilities."""
    if len(logs) == 1:
        return np.asarray(np.minimum(logs[0], 0.0))
    top = logs.max(axis=0)
    total: Array = np.minimum(top + np.log(np.sum(np.exp(logs - top), axis=0)), 0.0)
    return total


class Flat:
    """A constant utility, or P(safe): no point is worth more, or safer, than another."""

    def __call__(self, X: Array) -> Array:
        """Zero at X."""
        return np.zeros(len(X))

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """Zero at X, with the gradient."""
        return np.zeros(len(X)), np.zeros_like(X)


def log_improvement(mean: Array, var: Array, eta: float, noise_std: float = 0.0, beside: Array | None = None) -> Array:
    """log EI over eta of costs with these moments; `beside` are their covariances with the incumbent. See LogEI."""
    apart = var if beside is None else np.hypot(var - beside, _HARDLY * var)
    std = apart / np.sqrt(var + noise_std**2)
    value: Array = np.log(std) + log_unit_improvement((eta - mean) / std)[0]
    return value


@dataclass(frozen=True)
class LogEI:
    """log expected improvement of a cost posterior over eta.

    With a noise it is the improvement that one more trial may show: by var / sqrt(var + noise^2) the posterior mean is
    expected to move. Where eta is the mean at a trial, the incumbent, that moves too, by cov / sqrt(var + noise^2),
    and what counts is the difference: beside the incumbent both move together, and measuring there again gains nothing.
    """

    cost: Posterior
    eta: float
    noise_std: float = 0.0
    incumbent: int | None = None  # the trial whose mean is eta

    def __call__(self, X: Array) -> Array:
        """log EI at X."""
        if self._beside is None:
            return log_improvement(*self.cost.predict(0, X), self.eta, self.noise_std)
        mean, var, cov = self._beside.with_moments(X)
        return log_improvement(mean, var, self.eta, self.noise_std, cov)

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """log EI at X and its gradient."""
        noise_var = self.noise_std**2
        if self._beside is None:
            mean, var, pullback = self.cost.predict_with_pullback(0, X)
            root2 = var + noise_var
            std = var / np.sqrt(root2)
            value, rate, in_log_std = self._unit(mean, std)
            return value, pullback(-rate / std, in_log_std * (1.0 / var - 0.5 / root2))
        mean, var, cov, pull = self._beside.with_pullback(X)
        difference, least = var - cov, _HARDLY * var
        apart, root2 = np.hypot(difference, least), var + noise_var
        std = apart / np.sqrt(root2)
        value, rate, in_log_std = self._unit(mean, std)
        in_apart = in_log_std / apart
        in_cov = -in_apart * (difference / apart)
        in_var = in_apart * (_HARDLY * least / apart) - in_log_std * (0.5 / root2) - in_cov
        return value, pull(-rate / std, in_var, in_cov)

    def _unit(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """log EI of costs that move by `std`, the slope in their z, and that in log std."""
        z = (self.eta - mean) / std
        value, rate = log_unit_improvement(z)
        return np.log(std) + value, rate, 1.0 - rate * z

    @cached_property
    def _beside(self) -> Covariance | None:
        return None if self.incumbent is None else self.cost.covariance_with(0, self.incumbent)
