"""x_best (eq. 3): the least expected cost among points that are safe enough.

May import models and below.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.models.latent import Posterior
from crashbo.search import candidates
from crashbo.search.risk import STEEP, Score
from crashbo.search.safety import Safety
from crashbo.search.space import Space
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Cheapness:
    """The negative expected cost, in units of its prior's spread."""

    cost: Posterior

    def __call__(self, X: Array) -> Array:
        return -self.cost.predict(0, X)[0] / self._unit

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, _, in_mean, _ = self.cost.predict_with_gradient(0, X)
        return -mean / self._unit, -in_mean / self._unit

    @property
    def _unit(self) -> float:
        return float(np.sqrt(self.cost.hypers[0].outputscale))


def best_point(
    models: Surrogates, safety: Safety, space: Space, delta: float, rng: np.random.Generator
) -> tuple[Array, float, float]:
    """The point, its expected cost and its P(safe); about the safest point where nothing is safe enough."""
    assert models.cost is not None
    score = Score(log_floor=float(np.log1p(-delta)) if delta < 1.0 else -np.inf, weight=0.0, steepness=STEEP)
    screened = candidates.screen(space, models, safety, rng=rng)
    tried = models.cost.data.X[: models.successes]
    X = np.vstack([screened.X, space.snap(space.here(tried))])
    screened = candidates.Screen(X, safety(X), screened.apart, screened.box)
    found = candidates.best(space, screened, _Cheapness(models.cost), safety, score, np.zeros((0, X.shape[1])))
    mean, _ = models.cost.predict(0, found.x[None, :])
    return found.x, float(mean[0]), float(np.exp(found.log_gamma))
