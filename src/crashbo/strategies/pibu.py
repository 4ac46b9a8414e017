"""PIBU: probability of improvement with boundary uncertainty.

May import search and below.

P. Englert, M. Toussaint, Combined Optimization and Reinforcement Learning for Manipulation Skills, RSS 2016; D. Driess,
P. Englert, M. Toussaint, Constrained Bayesian Optimization of Combined Interaction Force/Task Space Controllers for
Manipulations, ICRA 2017. A GP classifier with a prior that expects crashes calls only the surroundings of successes
safe. Inside that region the probability of improvement counts; on its boundary, the classifier's own uncertainty does,
so that the region grows where most is to be learnt. The larger of the two decides.

P is P(safe) by the classifier, whose latent function crashes above zero.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models import latent
from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Hyperparameters, Posterior
from crashbo.numerics.kernels import SQUARED_EXPONENTIAL
from crashbo.search import candidates
from crashbo.search.acquisition import Flat, LogGamma
from crashbo.search.candidates import Box, Screen
from crashbo.search.costs import fit_cost
from crashbo.search.observations import Observations
from crashbo.search.risk import STEEP, Score
from crashbo.search.surrogates import with_pending
from crashbo.strategies.base import Proposal, Task

Array = NDArray[np.float64]

_LOGISTIC = 1.702  # derived: spread of the probit closest to the logistic function of the authors' classifier
_BISECTIONS = 20  # judgement: to a millionth of a line


class Candidate(NamedTuple):
    """A point and its value."""

    x: Array
    value: float


@dataclass(frozen=True)
class Pibu:
    """PIBU with its authors' settings, in the unit cube.

    Attributes:
        lengthscale: of the classifier.
        amplitude: standard deviation of its latent function.
        pessimism: mean of its latent function, which points towards a crash.
        offset: the boundary is where 2 P - 1 lies within this of zero.
        least: boundary uncertainty below this share of the amplitude is ignored.
    """

    # derived: the paper's code
    lengthscale: float = 0.2
    amplitude: float = 6.0
    pessimism: float = 7.0
    offset: float = 0.1
    least: float = 0.55

    def __call__(self, task: Task, rng: np.random.Generator) -> Proposal:
        """The better of an improvement inside and a look across the boundary."""
        seen = task.seen
        classifier = self._classifier(seen)
        gamma = LogGamma.of(classifier)
        lengthscales = classifier.hypers[0].lengthscales
        merit = gamma(seen.X) if not seen.succeeded.any() else -np.nan_to_num(seen.cost, nan=np.inf)
        box = Box.whole(task.space, task.dead_ends)
        screened = candidates.screen_around(task.space, seen.X, merit, lengthscales, gamma, box, rng=rng)
        if not seen.succeeded.any():
            found = candidates.best(task.space, screened, Flat(), gamma, Score(), task.taken)
            return Proposal(found.x, float(np.exp(found.log_gamma)))
        inside = self._improvement(task, screened, gamma)
        outside = self._boundary(task, screened, classifier, gamma)
        chosen = outside if outside is not None and outside.value > inside.value else inside
        return Proposal(chosen.x, float(np.exp(gamma(chosen.x[None, :])[0])))

    def _classifier(self, seen: Observations) -> Posterior:
        """The classifier at its fixed hyperparameters; a pending trial counts as a crash."""
        n, m = len(seen.X), len(seen.pending)
        labels = np.where(seen.crashed, -1.0, np.where(seen.succeeded, 1.0, 0.0))
        sign = np.concatenate([labels, -np.ones(m)])[None, :]
        X = np.vstack([seen.X, seen.pending])
        data = HybridData(X, np.full((1, n + m), np.nan), sign, np.zeros(n + m, dtype=bool))
        hypers = Hyperparameters(
            lengthscales=np.full(X.shape[1], self.lengthscale),
            outputscale=self.amplitude**2,
            mean=self.pessimism,
            crash_noise_std=_LOGISTIC,
        )
        return latent.condition(data, (hypers,), kernel=SQUARED_EXPONENTIAL)

    def _improvement(self, task: Task, screened: Screen, gamma: LogGamma) -> Candidate:
        """The highest probability of improvement where the classifier expects success."""
        seen = task.seen
        costs = seen.cost[seen.costed]
        model = with_pending(fit_cost(seen.X[seen.costed], costs, seen.cost_noise_std, seen.cost_prior), seen.pending)
        # P(cost < best) is P(safe) of a function that may not pass the best cost.
        bar = replace(model.hypers[0], threshold=float(costs.min()), crash_noise_std=0.0)
        improvement = LogGamma.of(replace(model, hypers=(bar,)))
        score = Score(float(np.log(0.5 * (1.0 + self.offset))), weight=0.0, steepness=STEEP)
        found = candidates.best(task.space, screened, improvement, gamma, score, task.taken)
        return Candidate(found.x, float(np.exp(improvement(found.x[None, :])[0])))

    def _boundary(self, task: Task, screened: Screen, classifier: Posterior, gamma: LogGamma) -> Candidate | None:
        """The most uncertain new point on the boundary, where the lines from successes to other points cross it."""
        log_half = np.log(0.5)
        known = task.seen.X[task.seen.succeeded]
        safe, crash = known[gamma(known) > log_half], screened.X[screened.log_gamma < log_half]
        if not len(safe) or not len(crash):
            return None
        inner, outer = safe[np.arange(len(crash)) % len(safe)], crash
        for _ in range(_BISECTIONS):
            middle = 0.5 * (inner + outer)
            inside = (gamma(middle) > log_half)[:, None]
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        X = task.space.snap(inner)
        std = np.sqrt(classifier.predict(0, X)[1]) / self.amplitude
        here = np.abs(2.0 * np.exp(gamma(X)) - 1.0) < self.offset
        new = ~candidates.is_taken(X, task.taken) & ~task.dead_ends.hold(X)
        worth = np.where(here & (std >= self.least) & new, std, -np.inf)
        i = int(np.argmax(worth))
        return Candidate(X[i], float(worth[i])) if np.isfinite(worth[i]) else None
