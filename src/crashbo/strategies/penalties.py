"""EI with a penalty for crashes: the heuristics that the paper compares with (its section V-A).

May import search and below.

Every crash is given a cost, and expected improvement does the rest; constraints are not modelled. The paper's three
penalties differ in that cost: a high one fixed beforehand, the initial trial's, or the worst so far. They are
here for comparison: nothing else in crashbo makes up a cost.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.search import candidates
from crashbo.search.acquisition import Flat, LogEI
from crashbo.search.candidates import Box
from crashbo.search.costs import fit_cost
from crashbo.search.risk import Score
from crashbo.search.surrogates import with_pending
from crashbo.strategies.base import Proposal, Task

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HighCost:
    """EI where every crash costs `cost`, an upper bound on the costs that the user knows (the paper's HC).

    Without one, crashes cost as much more than the worst success as that costs more than the best.
    """

    cost: float | None = None  # in the user's own sign: low where costs are maximised

    def __post_init__(self) -> None:
        if self.cost is not None and not np.isfinite(self.cost):
            raise ValueError(f"cost must be a finite number or None; got {self.cost!r}. Name an upper bound.")

    def __call__(self, task: Task, rng: np.random.Generator) -> Proposal:
        """Where the improvement is expected to be largest."""
        known = task.seen.cost[task.seen.costed]
        beyond = 2.0 * known.max() - known.min() if known.size else 0.0
        return propose(task, beyond if self.cost is None else task.sign * self.cost, rng)


@dataclass(frozen=True)
class MiddleCost:
    """EI where every crash costs as much as the first success, the paper's initial trial (its MC)."""

    def __call__(self, task: Task, rng: np.random.Generator) -> Proposal:
        """Where the improvement is expected to be largest."""
        known = task.seen.cost[task.seen.costed]
        return propose(task, known[0] if known.size else 0.0, rng)


@dataclass(frozen=True)
class AdaptiveCost:
    """EI where every crash costs as much as the worst success so far (the paper's AC)."""

    def __call__(self, task: Task, rng: np.random.Generator) -> Proposal:
        """Where the improvement is expected to be largest."""
        return propose(task, task.seen.cost[task.seen.costed].max(initial=-np.inf), rng)


def propose(task: Task, penalty: float | Array, rng: np.random.Generator) -> Proposal:
    """The point of highest EI when crashes cost `penalty`: one number, or one per trial (used where it crashed)."""
    seen = task.seen
    failed = seen.crashed | seen.stopped  # who was stopped was about to crash
    known = seen.costed | failed
    X, costs = seen.X[known], np.where(failed, penalty, seen.cost)[known]
    costs = np.where(np.isfinite(costs), costs, 0.0)  # before the first success any number does
    model = with_pending(fit_cost(X, costs, seen.cost_noise_std, seen.cost_prior), seen.pending)
    merit, lengthscales = -model.predict(0, X)[0], model.hypers[0].lengthscales
    box = Box.whole(task.space, task.dead_ends)
    screened = candidates.screen_around(task.space, X, merit, lengthscales, Flat(), box, rng=rng)
    improvement = LogEI(model, float(costs.min()))
    return Proposal(candidates.best(task.space, screened, improvement, Flat(), Score(), task.taken).x)
