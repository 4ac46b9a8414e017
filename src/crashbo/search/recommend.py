"""x_best (eq. 3): the least expected cost among points that are safe enough.

May import models and below.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.models.hidden_cost import ComparedPosterior
from crashbo.models.latent import Posterior
from crashbo.search import candidates
from crashbo.search.front import Front
from crashbo.search.risk import STEEP, Score
from crashbo.search.safety import Safety
from crashbo.search.space import Space
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]

_BESIDE = 0.01  # judgement: weight of the goals that are not the worst: enough to break ties


@dataclass(frozen=True)
class _Cheapness:
    """The negative expected cost, in units of its prior's spread."""

    cost: Posterior

    def __call__(self, X: Array) -> Array:
        return -self.cost.predict(0, X)[0] / self._unit

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, _, pullback = self.cost.predict_with_pullback(0, X)
        return -mean / self._unit, pullback(np.full(len(X), -1.0 / self._unit), np.zeros(len(X)))

    @property
    def _unit(self) -> float:
        return float(np.sqrt(self.cost.hypers[0].outputscale))


@dataclass(frozen=True)
class _Compromise:
    """The negative of the worst weighted goal, with a little of all: so a goal without weight still breaks ties."""

    front: Front
    weights: Array  # (M,)

    def __call__(self, X: Array) -> Array:
        means = np.column_stack([self.front.cost.predict(j, X)[0] for j in range(len(self.weights))])
        return -self._joined(means)[0]

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        found = [self.front.cost.predict_with_pullback(j, X) for j in range(len(self.weights))]
        value, slopes = self._joined(np.column_stack([mean for mean, *_ in found]))
        parts = [pull(-slope, np.zeros(len(X))) for slope, (*_, pull) in zip(slopes.T, found, strict=True)]
        return -value, np.sum(parts, axis=0)

    def _joined(self, means: Array) -> tuple[Array, Array]:
        """The value, and its slopes in the goals, (m, M)."""
        share = self.weights / self.weights.max()
        best, extent = self.front.ends
        goals = (means - best) / extent
        worst = np.eye(len(share))[np.argmax(share * goals, axis=1)]
        parts = share * worst + _BESIDE * np.maximum(share, _BESIDE)
        return np.sum(parts * goals, axis=1), parts / extent


def _best_tried(models: Surrogates, safety: Safety, space: Space, delta: float) -> tuple[Array, Array, float]:
    """The best of the compared trials that are safe enough, or the safest of them."""
    assert models.cost is not None
    X = space.snap(models.cost.data.X[: models.successes])
    mean, log_gamma = models.cost.predict(0, X)[0], safety(X)
    enough = log_gamma >= min(float(np.log1p(-delta)) if delta < 1.0 else -np.inf, float(log_gamma.max()))
    i = int(np.argmin(np.where(enough, mean, np.inf)))
    return X[i], mean[i : i + 1], float(np.exp(log_gamma[i]))


def best_point(
    models: Surrogates,
    safety: Safety,
    space: Space,
    delta: float,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> tuple[Array, Array, float]:
    """The point, its expected cost or goals, and its P(safe); about the safest point where nothing is safe enough.

    Where trials were compared it is one of them: of what nobody has seen, comparisons say too little.
    """
    assert models.cost is not None
    if isinstance(models.cost, ComparedPosterior):
        return _best_tried(models, safety, space, delta)
    score = Score(log_floor=float(np.log1p(-delta)) if delta < 1.0 else -np.inf, weight=0.0, steepness=STEEP)
    screened = candidates.screen(space, models, safety, rng=rng)
    tried = models.cost.data.X[: models.successes]
    X = np.vstack([screened.X, space.snap(space.here(tried))])
    screened = candidates.Screen(X, safety(X), screened.apart, screened.box)
    cheap: candidates.Utility = _Cheapness(models.cost)
    if weights is not None:
        assert isinstance(models.aim, Front)
        cheap = _Compromise(models.aim, weights)
    found = candidates.best(space, screened, cheap, safety, score, np.zeros((0, X.shape[1])))
    means = [float(models.cost.predict(j, found.x[None, :])[0][0]) for j in range(len(models.cost.hypers))]
    return found.x, np.array(means), float(np.exp(found.log_gamma))
