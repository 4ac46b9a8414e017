"""What all methods share: a machine whose cost nobody writes down, and a judge who compares two trials and errs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import crashbo
from crashbo.problems import families
from crashbo.problems.problem import Problem

ERRS = 0.05  # share of verdicts that are the wrong way round


@dataclass
class Judged:
    """One study's machine and judge. Costs are the machine's own: no method sees them."""

    problem: Problem
    seed: int
    errs: float = ERRS
    params: list[dict[str, Any]] = field(default_factory=list)  # of every trial
    costs: list[float | None] = field(default_factory=list)  # None for a crash

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, 26])
        self.start = dict(self.problem.start or self.problem.safe_start(np.random.default_rng([self.seed, 0])))

    def run(self, params: Mapping[str, Any]) -> Mapping[str, float] | None:
        """What a trial measured; None if it crashed."""
        self.params.append(dict(params))
        try:
            outcome = self.problem.evaluate(params, self.rng)
        except crashbo.Crash:
            self.costs.append(None)
            return None
        self.costs.append(self.problem.truth(params).cost)
        return outcome.measured

    def prefers(self, one: int, other: int) -> bool:
        """Whether the judge finds the one better than the other; both by their place among the trials."""
        left, right = self.costs[one], self.costs[other]
        assert left is not None
        assert right is not None
        return (left < right) != (self.rng.random() < self.errs)

    @property
    def crashes(self) -> int:
        """How many trials crashed."""
        return sum(cost is None for cost in self.costs)

    def regret(self, params: Mapping[str, Any]) -> float:
        """Of what is recommended: 0 is the optimum, 1 the median of what does not crash, and what crashes itself."""
        p, truth = self.problem, self.problem.truth(params)
        assert p.constrained_minimum is not None
        assert p.median_safe_cost is not None
        share = (truth.cost - p.constrained_minimum) / (p.median_safe_cost - p.constrained_minimum)
        return 1.0 if truth.crashed else float(min(max(share, 0.0), 1.0))


def problem_of(name: str, seed: int) -> Problem:
    """A problem of the literature, or one of a family: smooth-4 is its instance of this seed in four dimensions."""
    family, _, dimension = name.rpartition("-")
    if family in families.names() and dimension.isdecimal():
        return families.get(family, int(dimension), seed)
    return crashbo.problems.get(name)
