"""What a trial may gain at given candidates, while others are under way whose costs nobody knows yet.

May import models and below.

A trial under way counts as if it had brought what is expected there: the mean stays as it is everywhere, and the
variance falls. Between candidates that is an update of rank one, so the next of a batch costs a few vectors instead of
another factorisation.

Notation, at m candidates:
    A      (n, m), by A'A the data reduce the prior's covariance
    c      (m,), posterior covariance with the candidate that was chosen
    u      c / sqrt(var + noise^2) there: each choice takes u u' off the covariance
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crashbo.models.latent import Posterior, relative_noise_std
from crashbo.numerics.linalg import within
from crashbo.search.acquisition import LogEI, log_improvement

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Fantasies:
    """Expected improvement at candidates, in the light of those that were chosen already."""

    improvement: LogEI  # before any of them
    X: Array  # (m, D)
    root: Array  # A
    mean: Array  # (m,), like all below
    var: Array
    eta: float
    beside: Array | None  # covariance with the incumbent
    taken: tuple[Array, ...] = ()  # u of each that was chosen

    @staticmethod
    def of(improvement: LogEI, X: Array) -> "Fantasies":
        """Before any is chosen."""
        cost = improvement.cost
        if improvement.incumbent is None:
            (mean, var), beside = cost.predict(0, X), None
        else:
            mean, var, beside = cost.covariance_with(0, improvement.incumbent).with_moments(X)
        return Fantasies(improvement, X, cost.moments[0].root_of_reduction(X), mean, var, improvement.eta, beside)

    def log_gain(self) -> Array:
        """log of the expected improvement at the candidates."""
        return log_improvement(self.mean, self.var, self.eta, self.improvement.noise_std, self.beside)

    def with_chosen(self, i: int) -> "Fantasies":
        """The same with candidate i under way, too. Where it is expected to be the best, others must improve on it."""
        c, std = self._covariance(i), np.sqrt(self.var[i] + self._noise_var)
        u = c / std
        var = within(self.var - u**2, float(self.cost.hypers[0].outputscale))
        beside = self.beside
        if beside is not None:
            beside = c - u[i] * u if self.mean[i] < self.eta else beside - beside[i] / std * u
        return replace(self, var=var, eta=min(self.eta, float(self.mean[i])), beside=beside, taken=(*self.taken, u))

    @property
    def cost(self) -> Posterior:
        """The cost's posterior before any was chosen."""
        return self.improvement.cost

    @property
    def _noise_var(self) -> float:
        h = self.cost.hypers[0]
        return float(np.mean(relative_noise_std(h))) ** 2 * h.outputscale

    def _covariance(self, i: int) -> Array:
        h = self.cost.hypers[0]
        prior = self.cost.kernel.matrix(self.X[i : i + 1], self.X, h.lengthscales)[0]
        c: Array = h.outputscale * (prior - self.root[:, i] @ self.root)
        for u in self.taken:
            c = c - u[i] * u
        return c
