"""What random search comes to on a list of settings, each tried once: computed, not sampled.

May import the public API, `problems` and `campaigns`.

N settings, of which M succeed, sorted by cost. After n of them, drawn without repeats, the best j are all missed with
probability C(N - j, n) / C(N, n).
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np

from crashbo import Choice, Float, problems
from crashbo.benchmark.cases import publication_of
from crashbo.benchmark.measures import Array

_SETTINGS = 100_000  # of a list, of which each is looked up


@dataclass(frozen=True)
class Chance:
    """Random search without repeats on a list."""

    settings: int
    costs: Array  # of those that succeed, sorted
    trials: int

    @cached_property
    def missed(self) -> Array:
        """Probability that the best j were all missed after n trials, (trials + 1, M + 1)."""
        j, n = np.arange(len(self.costs) + 1), np.arange(self.trials)[:, None]
        steps = np.maximum(self.settings - j - n, 0) / np.maximum(self.settings - n, 1)
        return np.cumprod(np.vstack([np.ones(len(j)), steps]), axis=0)

    def mean(self, values: Array, without: float) -> Array:
        """Expectation, after each number of trials from none on, of a value of the best cost; `without` any success."""
        found = self.missed[:, :-1] - self.missed[:, 1:]
        return np.asarray(found @ values + without * self.missed[:, -1])

    def solved(self, target: float) -> Array:
        """Probability that a cost of at most the target was found after each number of trials from none on."""
        return np.asarray(1.0 - self.missed[:, int(np.sum(self.costs <= target))])

    def crashes(self, target: float | None = None) -> float:
        """Expected crashes of a run, which ends at the target where there is one."""
        good = 0 if target is None else int(np.sum(self.costs <= target))
        n = np.arange(self.trials - 1)
        # The next one crashes, and the good ones are all among the others, which come after it.
        steps = np.maximum(self.settings - 1 - good - n, 0) / np.maximum(self.settings - 1 - n, 1)
        under_way = np.cumprod(np.concatenate([[1.0], steps]))
        return float((self.settings - len(self.costs)) / self.settings * under_way.sum())


@cache
def chance_on(name: str) -> Chance | None:
    """On a published problem that is a list of settings, not too long and without a start; None for any other."""
    published = publication_of(name)
    if published is None:
        return None
    problem = problems.get(name)
    parameters = problem.space.values()
    if problem.start is not None or published.has_start or problem.rules:
        return None
    if any(isinstance(p, Float) or p.when is not None for p in parameters):
        return None
    values = [p.options if isinstance(p, Choice) else range(int(p.low), int(p.high) + 1) for p in parameters]
    if math.prod(map(len, values)) > _SETTINGS:
        return None
    truths = [problem.truth(dict(zip(problem.space, setting, strict=True))) for setting in product(*values)]
    costs = np.sort([truth.cost for truth in truths if not truth.crashed])
    return Chance(len(truths), costs, published.trials)
