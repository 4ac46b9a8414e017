"""The hidden cost of a study in which trials were compared, and what a trial may gain that is compared with the winner.

May import models and below.

The next trial is run, and then compared with the winner so far. What that may gain is the expected worth of the better
one of the two, over that of the winner alone (Astudillo's expected utility of the best option, EUBO, with one option
given): of f at x and at the winner w that is
    E[max(f(w) - f(x), 0)],  f(w) - f(x) ~ N(mu_w - mu, var + var_w - 2 cov)

By that alone a study polishes its winner by less than the judge can see, and never leaves a wrong basin. So now and
then a trial is chosen by what the judge will see of its gain.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.models import compared, hidden_cost
from crashbo.models.hidden_cost import ComparedPosterior, Comparisons
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Hyperparameters, Posterior, Warm
from crashbo.models.moments import Covariance
from crashbo.numerics.gaussians import log_unit_improvement
from crashbo.search.acquisition import LogEI, ValueAndGradient
from crashbo.search.aims import CENTRES, Best, resolution_of
from crashbo.search.costs import CostFit, CostScale

Array = NDArray[np.float64]

_HARDLY = 1e-3  # judgement: share of its spread by which a cost differs from the winner's in any case


@dataclass(frozen=True)
class Compared:
    """The trials that were compared or have a cost, to be fitted as `Costs` are."""

    data: HybridData
    comparisons: Comparisons

    @staticmethod
    def of(X: Array, cost: Array, comparisons: Comparisons) -> "Compared":
        """From trials at X, some with a cost; huge costs are compressed, which keeps their order."""
        costed = ~np.isnan(cost)
        y, judged = np.full(len(X), np.nan), costed.copy()
        if costed.any():
            y[costed] = CostScale.of(X[costed], cost[costed])(cost[costed])
        judged[comparisons.pairs.ravel()] = True
        row = np.cumsum(judged) - 1
        return Compared(
            hidden_cost.numbered(X[judged], y[judged]), Comparisons(row[comparisons.pairs], comparisons.tie)
        )

    @property
    def X(self) -> Array:
        """The trials, (n, D)."""
        return self.data.X

    @property
    def kind(self) -> tuple[bool, ...]:
        """Of a warm start that it may begin from."""
        return (*self.data.kind, True)

    def fit(self, noise_std: float | None, prior: Hyperprior, start: Warm | None = None) -> CostFit:
        """The hidden cost's posterior, its hyperparameters learnt."""
        starts = () if start is None or start.measured != self.kind else start.hypers
        return CostFit(
            compared.fit(self.data, self.comparisons, noise_std=noise_std, prior=prior, starts=starts), False
        )

    def given(self, hypers: tuple[Hyperparameters, ...]) -> ComparedPosterior:
        """The hidden cost's posterior at these hyperparameters."""
        found = hidden_cost.condition(self.data, self.comparisons, hypers)
        settled = found.ep.converged or self.comparisons.lapse == 0.0
        return found if settled else hidden_cost.condition(self.data, replace(self.comparisons, lapse=0.0), hypers)


@dataclass(frozen=True)
class Winner:
    """The aim of a study in which trials are compared: better than the winner so far."""

    best: Best  # by the expected cost
    cost: ComparedPosterior
    judged: NDArray[np.bool_]  # which trials were compared, or have a cost

    centres = CENTRES

    @cached_property
    def improvement(self) -> "LogEubo":
        """What a trial may be expected to gain if it does not crash."""
        return LogEubo(self.cost, int(np.argmin(self.best.means)))

    @cached_property
    def wider_improvement(self) -> "LogEubo":
        """What it may be expected to gain by what the judge will see of it: less, beside the winner."""
        return replace(self.improvement, scatter=self.noise_std)

    @property
    def observed_improvement(self) -> "LogEubo":
        """The same: nothing was observed but what was compared."""
        return self.improvement

    @property
    def noise_std(self) -> float:
        """The judge's scatter."""
        return self.cost.hypers[0].crash_noise_std

    @property
    def resolution(self) -> float:
        """The least gain that means anything: the judge's scatter, within bounds."""
        return resolution_of(replace(self.cost.hypers[0], noise_std=self.noise_std))

    @property
    def payment(self) -> float:
        """The same."""
        return self.resolution

    @property
    def gained(self) -> float:
        """How far the winner is expected below the worst."""
        return self.best.gained

    @property
    def merit(self) -> Array:
        """How good each row of the posterior is, the best highest."""
        return self.best.merit

    @property
    def lengthscales(self) -> Array:
        """The hidden cost's."""
        return self.best.lengthscales

    @property
    def worse(self) -> NDArray[np.bool_]:
        """Which compared trials are plainly worse than the winner."""
        means = self.best.means
        return np.asarray(means[: self.best.successes] > self.best.eta + self.resolution)

    def price(self, X: Array) -> Array:
        """The expected cost at X."""
        return self.best.price(X)

    def progress(self, cost: Array, goals: Array | None) -> Array:
        """The expected costs of the compared trials; NaN for others."""
        found = np.full(len(cost), np.nan)
        found[self.judged] = self.best.means[: self.best.successes]
        return found

    def doubted(self, cost: Posterior) -> LogEI:
        """The improvement under another posterior of the same trials, without noise."""
        return self.best.doubted(cost)


@dataclass(frozen=True)
class LogEubo:
    """log of what a trial, compared with the winner, may be expected to gain.

    With the judge's scatter t, it is the gain in the expected worth of the better one once the difference d was seen as
    d + N(0, t^2): its deviation, var / sqrt(var + t^2), is far below d's own where the judge hardly sees a difference.
    """

    cost: ComparedPosterior
    winner: int  # its row
    scatter: float = 0.0

    def __call__(self, X: Array) -> Array:
        """At X."""
        mean, var, cov = self._beside.with_moments(X)
        var = self._apart(var, cov)
        std = var / np.sqrt(var + self.scatter**2)
        value: Array = np.log(std) + log_unit_improvement((self._mean - mean) / std)[0]
        return value

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """At X, and its gradient."""
        mean, var, cov, pull = self._beside.with_pullback(X)
        var = self._apart(var, cov)
        seen = var + self.scatter**2
        std = var / np.sqrt(seen)
        z = (self._mean - mean) / std
        value, rate = log_unit_improvement(z)
        in_apart = (1.0 - rate * z) * (1.0 / var - 0.5 / seen)
        return np.log(std) + value, pull(-rate / std, (1.0 + _HARDLY) * in_apart, -2.0 * in_apart)

    def _apart(self, var: Array, cov: Array) -> Array:
        """Variance of the difference."""
        return np.maximum(var + self._var - 2.0 * cov, 0.0) + _HARDLY * var

    @cached_property
    def _mean(self) -> float:
        return float(self.cost.mean_at_trials(0)[self.winner])

    @cached_property
    def _var(self) -> float:
        return float(self.cost.hypers[0].outputscale * self.cost.ep.posteriors[0].var[self.winner])

    @cached_property
    def _beside(self) -> Covariance:
        return self.cost.covariance_with(0, self.winner)
