"""What a study is after: less cost than the best trial's, or a front of several goals moved outwards.

May import models and below.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crashbo.models.latent import Hyperparameters, Posterior
from crashbo.search.acquisition import LogEI, ValueAndGradient

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
ContextNow = tuple[tuple[int, float], ...]  # coordinates that are met and not chosen, and where they are now

# judgement: share of the cost's spread that a gain must have to mean anything, at least and most. With risk's third of
# it, a gain of a hundredth is always worth a trial: on michalewicz10d ruggedness was fitted as a noise of 0.2
_FINEST, _COARSEST = 1e-3, 0.03
CENTRES = 4  # judgement: best trials with candidates around them


class Improvement(Protocol):
    """The logarithm of what a trial may be expected to gain if it does not crash, with its gradient."""

    def __call__(self, X: Array) -> Array:
        """At X."""

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """At X, with the gradient."""


class Aim(Protocol):
    """What is to be gained, given a posterior of the cost or of every goal at the successes and pending trials."""

    @property
    def improvement(self) -> Improvement:
        """What a trial may be expected to gain if it does not crash."""

    @property
    def wider_improvement(self) -> Improvement:
        """The same, for a study that looks farther now and then."""

    @property
    def observed_improvement(self) -> Improvement:
        """The paper's: over what was observed, as if there were no noise."""

    @property
    def resolution(self) -> float:
        """The least gain that means anything."""

    @property
    def payment(self) -> float:
        """The least gain that makes a step, or a leap, worth its while."""

    @property
    def gained(self) -> float:
        """What the trials have gained so far."""

    @property
    def merit(self) -> Array:
        """How good each row of the posterior is, the best highest: where to look for better ones."""

    @property
    def centres(self) -> int:
        """Around how many of the best to look."""

    @property
    def lengthscales(self) -> Array:
        """Over which what is to be gained varies, (D,)."""

    @property
    def worse(self) -> Bools:
        """Which successes are plainly worse than the best."""

    def price(self, X: Array) -> Array:
        """What is expected at X as one number, the best lowest."""

    def progress(self, cost: Array, goals: Array | None) -> Array:
        """A number per trial that is a new lowest where the trial gained something; NaN where nothing is known."""

    def doubted(self, cost: Posterior) -> Improvement:
        """The improvement under another posterior of the same trials, without noise."""


@dataclass(frozen=True)
class Best:
    """Less cost than the best trial's."""

    cost: Posterior
    successes: int  # rows of the cost's data that were measured: pending ones come after them
    context: ContextNow = ()

    centres = CENTRES

    @cached_property
    def eta(self) -> float:
        """The incumbent's cost: the best posterior mean at a success or a pending trial.

        Without the latter, a promising place would promise the same to the next who asks.
        """
        return float(self.means[self._incumbent])

    @cached_property
    def means(self) -> Array:
        """Mean cost of each trial's params, successes first, then pending ones; in the present context."""
        return means_here(self.cost, 0, self.context)

    @cached_property
    def improvement(self) -> LogEI:
        """What a trial may be expected to gain if it does not crash."""
        incumbent = None if self.context else self._incumbent  # in another context it was not tried itself
        return LogEI(self.cost, self.eta, self.noise_std, incumbent)

    @property
    def wider_improvement(self) -> LogEI:
        """The same: less than the best is all that counts."""
        return self.improvement

    @property
    def observed_improvement(self) -> LogEI:
        """The paper's: over the best observation, as if there were no noise."""
        return LogEI(self.cost, float(self.cost.data.Y[0, : self.successes].min()))

    @cached_property
    def _incumbent(self) -> int:
        return int(np.argmin(self.means))

    @property
    def noise_std(self) -> float:
        """The cost's noise, given or learnt."""
        return noise_of(self.cost.hypers[0])

    @property
    def resolution(self) -> float:
        """The least gain in cost that means anything."""
        return resolution_of(self.cost.hypers[0])

    @property
    def payment(self) -> float:
        """The same: few trials are a new best."""
        return self.resolution

    @property
    def gained(self) -> float:
        """How far the best success lies below the worst, without their noise."""
        return float(self.means[: self.successes].max() - self.eta)

    @property
    def merit(self) -> Array:
        """How good each row of the posterior is, the best highest."""
        return -self.means

    @property
    def lengthscales(self) -> Array:
        """The cost's."""
        return self.cost.hypers[0].lengthscales

    @property
    def worse(self) -> Bools:
        """Which successes are plainly worse than the best."""
        return np.asarray(self.means[: self.successes] > self.eta + self.resolution)

    def price(self, X: Array) -> Array:
        """The expected cost at X."""
        return self.cost.predict(0, X)[0]

    def progress(self, cost: Array, goals: Array | None) -> Array:
        """The costs themselves."""
        return cost

    def doubted(self, cost: Posterior) -> LogEI:
        """The improvement under another posterior of the same trials, without noise."""
        return LogEI(cost, float(cost.mean_at_trials(0).min()))


def means_here(cost: Posterior, j: int, context: ContextNow) -> Array:
    """Mean of goal j at each trial's params, in the present context."""
    if not context:
        return cost.mean_at_trials(j)
    X = cost.data.X.copy()
    for at, value in context:
        X[:, at] = value
    return cost.predict(j, X)[0]


def noise_of(hypers: Hyperparameters) -> float:
    """A cost's noise, given or learnt."""
    return float(np.mean(hypers.noise_std))


def resolution_of(hypers: Hyperparameters) -> float:
    """The least gain in a cost that means anything: its noise, within bounds.

    No less than a thousandth of its spread; and no more than a few hundredths, since what is taken for noise may be
    a rugged cost, and then there is much to gain.
    """
    spread = float(np.sqrt(hypers.outputscale))
    return float(np.clip(noise_of(hypers), _FINEST * spread, _COARSEST * spread))
