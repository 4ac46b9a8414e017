"""The cost's GP, made robust to huge costs.

May import models and below.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from crashbo.models import latent
from crashbo.models.fit import Fit, fit
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior, LogNormal
from crashbo.models.latent import Hyperparameters, Posterior, Warm
from crashbo.models.parametrisation import Parametrisation, parametrise
from crashbo.models.regression import measured_data
from crashbo.numerics.kernels import squared_distances
from crashbo.search import selection
from crashbo.search.space import places

Array = NDArray[np.float64]

# judgement: so that costs of 1e9 among ones neither spoil the model nor hold up the search
ENOUGH = 3e-3  # nats: fits that begin where the last one ended must not stop short again and again
_NEIGHBOURS = 0.1  # root-mean-square distance per coordinate within which trials count as one cluster
_FENCE = 3.0  # spreads above the median
_HUGE = 30.0  # spreads past the fence
_QUIET = 0.1  # of the cost's spread: where a first fit found no more noise than this, the second begins with
_LOUD = 0.5  # of the spread
_APART = 3.0  # times: two fits with such different noise explain the costs in different ways
_OPEN = 5.0  # nats between them that one repeat would decide: whose costs differ by much, or by next to nothing
_ENOUGH_FOR_NOISE = 5  # costs that it takes to tell noise from a cost that varies over short distances
_FEW = 4  # other costs that it takes to call one huge
_SHARE = 6  # one huge cost, and another per this many, are outliers: more are not
_SURPRISE = 0.05  # probability that repeats differ by less, of a noise that is still plausible
_PLAUSIBLE = 2.0  # standard deviations above what is expected
_ROUNDING = 1e-12  # relative, of a sum of weights


@dataclass(frozen=True)
class CostScale:
    """A monotone map that compresses huge costs.

    Costs up to the fence, three times as far above the median as the best lies below it, are kept as they
    are; what lies beyond is bad anyway, and is compressed so that none ends more than one spread past the
    fence. The order of all costs stays, and the good ones, on which the search depends, keep their
    distances: a rank transform would lose both noise and distance, clipping the order.

    Trials cluster where the search was last. So the median is one over the space, not over the trials: a trial
    has the less weight the more neighbours it has. Otherwise everything outside the cluster would soon lie beyond the
    fence, where all costs are much the same, and the search would never leave.
    """

    fence: float
    spread: float

    @staticmethod
    def of(X: Array, cost: Array, kept: float = -math.inf) -> "CostScale":
        """The map for costs at X, (n, D), in the unit cube; costs up to `kept` are kept in any case."""
        near = squared_distances(X, X) < _NEIGHBOURS**2 * X.shape[1]
        weights = 1.0 / near.sum(axis=1)
        median = _median(cost, weights)
        spread = max(median - float(cost.min()), _median(np.abs(cost - median), weights))
        if spread == 0.0 and cost.max() > median:  # more than half equal the best: the distance of the others
            above = cost > median
            spread = _median(cost[above], weights[above]) - median
        return CostScale(max(median + _FENCE * spread, kept), spread)

    def __call__(self, cost: Array) -> Array:
        """Costs as the model sees them."""
        excess = np.maximum(cost - self.fence, 0.0)
        if self.spread == 0.0:
            return np.asarray(cost, dtype=float)
        return np.where(excess > 0.0, self.fence + excess * (self.spread / (excess + self.spread)), cost)


def _median(values: Array, weights: Array) -> float:
    """The value with half of the weight on either side."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    halves = [0.5 * total[-1] * (1.0 - _ROUNDING), 0.5 * total[-1] * (1.0 + _ROUNDING)]
    below, above = np.searchsorted(total, halves)
    return 0.5 * float(values[order[below]] + values[order[min(above, len(values) - 1)]])


class CostFit(NamedTuple):
    """A cost's posterior, and whether a repeat would teach it the noise."""

    posterior: Posterior
    noise_is_open: bool


@dataclass(frozen=True)
class Costs:
    """Compressed costs, and which of them are outliers.

    A huge cost is a cliff even when it is compressed: lengthscales that fit it are too short for everything
    else, and long ones ring around it. So hyperparameters are learnt without it; it then enters as the highest cost
    that is plausible given the others. Far from other trials that is high, and keeps the search away; among good
    trials it changes nothing. Many huge costs are not outliers but what the cost is like.
    """

    X: Array  # (n, D)
    compressed: Array  # (n,)
    huge: NDArray[np.bool_]

    @staticmethod
    def of(X: Array, cost: Array, kept: float = -math.inf) -> "Costs":
        """From costs at X, (n, D), in the unit cube; none up to `kept` is huge."""
        if not len(cost):
            return Costs(X, cost, np.zeros(0, dtype=bool))
        scale = CostScale.of(X, cost, kept)
        huge = cost > scale.fence + _HUGE * scale.spread
        if not 0 < huge.sum() <= 1 + len(cost) // _SHARE or len(cost) - huge.sum() < _FEW:
            huge = np.zeros(len(cost), dtype=bool)
        return Costs(X, scale(cost), huge)

    @property
    def kind(self) -> tuple[bool, ...]:
        """Of a warm start that it may begin from."""
        return (True,)

    def fit(self, noise_std: float | None, prior: Hyperprior, start: Warm | None = None) -> CostFit:
        """The cost's posterior, its hyperparameters learnt."""
        fits = _fits(self.X[~self.huge], self.compressed[~self.huge], noise_std, prior, start)
        plain = fits[0].posterior
        return CostFit(self._told(plain) if self.huge.any() else plain, _is_open(fits))

    def refined(
        self, noise_std: float | None, prior: Hyperprior, start: Warm | None, enough: float, evaluations: int
    ) -> Posterior:
        """The cost's posterior by a few more steps from the fit of fewer trials."""
        data, p = _parametrised(self.X[~self.huge], self.compressed[~self.huge], noise_std, prior)
        plain = fit(data, (p,), start=start, enough=enough, max_evaluations=evaluations).posterior
        return self._told(plain) if self.huge.any() else plain

    def given(self, hypers: tuple[Hyperparameters, ...]) -> Posterior:
        """The cost's posterior at these hyperparameters."""
        plain = latent.condition(measured_data(self.X[~self.huge], self.compressed[~self.huge]), hypers)
        return self._told(plain) if self.huge.any() else plain

    def _told(self, plain: Posterior) -> Posterior:
        """The posterior with the huge costs, at most as high as is plausible."""
        mean, var = plain.predict(0, self.X[self.huge])
        told = self.compressed.copy()
        told[self.huge] = np.minimum(told[self.huge], mean + _PLAUSIBLE * np.sqrt(var))
        return latent.condition(measured_data(self.X, told), plain.hypers)


def fit_cost(X: Array, cost: Array, noise_std: float | None, prior: Hyperprior, start: Warm | None = None) -> Posterior:
    """The cost's GP, its hyperparameters learnt; of many costs, a GP of those that matter most (see `selection`)."""
    if len(X) > selection.SMALL:
        nothing = selection.Points(X, cost, np.zeros((len(X), 0)), np.zeros(len(X), dtype=bool))
        rows = selection.about_the_best(nothing, selection.SMALL, np.ones(X.shape[1]))
        X, cost = X[rows], cost[rows]
    return _fits(X, cost, noise_std, prior, start)[0].posterior


def _fits(X: Array, cost: Array, noise_std: float | None, prior: Hyperprior, start: Warm | None) -> list[Fit]:
    """One fit, or two where the noise is not given, the more probable one first.

    Noise can pass for a cost that varies over short distances, and such a cost for noise; a fit that began with the one
    stays with it. So another begins with the other.
    """
    data, p = _parametrised(X, cost, noise_std, prior)
    found = [fit(data, (p,), start=start, enough=ENOUGH)]
    if noise_std is None and len(X) >= _ENOUGH_FOR_NOISE:
        other = p.start.noise_std if _noise_share(found[0]) > _QUIET else _LOUD
        rival = replace(p, start=replace(p.start, noise_std=other))
        found.append(fit(data, (rival,), enough=ENOUGH))
    return sorted(found, key=lambda fitted: -_plausibility(fitted, prior))


def _parametrised(
    X: Array, cost: Array, noise_std: float | None, prior: Hyperprior
) -> tuple[HybridData, Parametrisation]:
    """The costs as a fit takes them."""
    data = measured_data(X, cost)
    p = parametrise(data.Y[0], data.sign[0], prior, dimension=X.shape[1], labelled=False, noise_std=noise_std)
    return data, _within_repeats(p, X, cost) if noise_std is None else p


def _plausibility(fitted: Fit, prior: Hyperprior) -> float:
    """The log posterior, where all lengthscales together count as one: a rugged cost is rugged in all dimensions."""
    log_density = prior.log_of_lengthscales(fitted.posterior.hypers[0].lengthscales)
    return float(fitted.log_posterior - np.sum(log_density) + np.mean(log_density))


def _within_repeats(p: Parametrisation, X: Array, cost: Array) -> Parametrisation:
    """The parametrisation with no more noise than is plausible given how much trials at the same place differ."""
    density, place = p.prior.noise_std, places(X)
    sizes = np.bincount(place)
    repeats = len(X) - len(sizes)
    if not repeats or not isinstance(density, LogNormal):
        return p
    squares = float(np.sum((cost - (np.bincount(place, cost) / sizes)[place]) ** 2))
    most = math.sqrt(squares / float(chdtri(repeats, 1.0 - _SURPRISE))) / p.scale
    low, high = density.bounds
    bounds = low, float(np.clip(most, 2.0 * low, high))
    return replace(p, prior=replace(p.prior, noise_std=replace(density, bounds=bounds)))


def _noise_share(fitted: Fit) -> float:
    """The noise, as a share of the cost's spread."""
    hypers = fitted.posterior.hypers[0]
    return float(np.mean(hypers.noise_std) / np.sqrt(hypers.outputscale))


def _is_open(fits: list[Fit]) -> bool:
    """Whether much noise and little explain the costs about equally well."""
    shares = [_noise_share(fitted) for fitted in fits]
    near = fits[0].log_posterior - fits[-1].log_posterior < _OPEN
    return near and max(shares) > _APART * min(shares)
