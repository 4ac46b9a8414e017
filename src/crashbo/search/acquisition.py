"""The acquisition: log EI + log Gamma (eq. 2), with exact gradients in x.

May import models and below.

Notation, at m points X in the unit cube:
    f, g_j     cost and constraints; mu, var their posterior moments
    eta        the cost to improve upon
    Gamma      probability of success, prod_j Phi(z_j), z_j = (c_j - mu_j) / sqrt(var_j + s_j^2)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from crashbo.models.ep import Sites
from crashbo.models.latent import Posterior, condition
from crashbo.numerics.gaussians import log_unit_improvement, tail

Array = NDArray[np.float64]
ValueAndGradient = tuple[Array, Array]


@dataclass(frozen=True)
class LogGamma:
    """log P(safe) of a crash posterior; `widen` adds to each latent function's spread (threshold's own, say)."""

    crash: Posterior
    widen: Array | None = None  # variances, (G,)

    def __call__(self, X: Array) -> Array:
        """log Gamma at X."""
        total = np.zeros(len(X))
        for j in range(len(self.crash.hypers)):
            total += log_ndtr(self._z(j, X))
        return total

    def violated(self, X: Array) -> Array:
        """Probability that each constraint is violated at X, (m, G)."""
        return np.stack([ndtr(-self._z(j, X)) for j in range(len(self.crash.hypers))], axis=1)

    def _z(self, j: int, X: Array) -> Array:
        mean, var = self.crash.predict(j, X)
        z: Array = (self.crash.hypers[j].threshold - mean) / np.sqrt(var + self._extra(j))
        return z

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """log Gamma at X and its gradient."""
        total, slope = np.zeros(len(X)), np.zeros_like(X)
        for j, h in enumerate(self.crash.hypers):
            mean, var, in_mean, in_var = self.crash.predict_with_gradient(j, X)
            spread = var + self._extra(j)
            std = np.sqrt(spread)
            z = (h.threshold - mean) / std
            cut = tail(z)
            total += cut.log_mass
            slope += cut.hazard[:, None] * (-in_mean / std[:, None] - 0.5 * (z / spread)[:, None] * in_var)
        return total, slope

    def with_crashes(self, X: Array) -> "LogGamma":
        """The same as if trials at X had crashed, at the same hyperparameters."""
        if not len(X):
            return self
        more, m = self.crash.data.with_crashes(X), len(X)
        sites = Sites(*(np.pad(site, ((0, 0), (0, m))) for site in self.crash.sites()))
        return LogGamma(condition(more, self.crash.hypers, start=sites), self.widen)

    def _extra(self, j: int) -> float:
        crash_noise: float = self.crash.hypers[j].crash_noise_std ** 2
        return crash_noise + (0.0 if self.widen is None else float(self.widen[j]))


class Flat:
    """No point is worth more, or safer, than another."""

    def __call__(self, X: Array) -> Array:
        """Zero at X."""
        return np.zeros(len(X))

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """Zero at X, with the gradient."""
        return np.zeros(len(X)), np.zeros_like(X)


@dataclass(frozen=True)
class LogEI:
    """log expected improvement of a cost posterior upon eta."""

    cost: Posterior
    eta: float

    def __call__(self, X: Array) -> Array:
        """log EI at X."""
        mean, var = self.cost.predict(0, X)
        std = np.sqrt(var)
        value: Array = np.log(std) + log_unit_improvement((self.eta - mean) / std)[0]
        return value

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """log EI at X and its gradient."""
        mean, var, in_mean, in_var = self.cost.predict_with_gradient(0, X)
        std = np.sqrt(var)
        z = (self.eta - mean) / std
        value, rate = log_unit_improvement(z)
        in_std = in_var / (2.0 * std[:, None])
        in_z = (-in_mean - z[:, None] * in_std) / std[:, None]
        return np.log(std) + value, in_std / std[:, None] + rate[:, None] * in_z
