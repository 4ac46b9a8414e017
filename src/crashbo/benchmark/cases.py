"""Cases: which problems are run, with which seeds and for how many trials.

May import the public API, `problems` and `campaigns`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from crashbo import Study, problems
from crashbo.problems import PUBLISHED, Problem, Published, families

SOLO8 = "solo8-jump"
PAPER = ("eggcrate2d", "hartmann6d", "michalewicz10d", SOLO8)  # what the paper compares methods on, and its robot
_FEWEST, _PER_PARAMETER = 30, 2.5  # trials
_DRAWS, _ENOUGH, _MOST = 2_000, 400, 400_000  # to find a median: at a time, safe ones, in all


@dataclass(frozen=True)
class Case:
    """A problem to be run.

    Attributes:
        problem: a family's name, a name of `crashbo.problems`, or "module:name" of the user's own.
        dimension: how many parameters it has.
        seed: of a family's member; of start, noise and method in all.
    """

    problem: str
    dimension: int
    seed: int

    @property
    def is_family(self) -> bool:
        """Whether it is drawn from one of our families."""
        return self.problem in families.names()

    @property
    def trials(self) -> int:
        """Trials that it is given by default."""
        published = publication_of(self.problem)
        return int(_FEWEST + _PER_PARAMETER * self.dimension) if published is None else published.trials

    def make(self) -> Problem:
        """The problem, with its optimum, its median and its start."""
        if self.is_family:
            return families.get(self.problem, self.dimension, self.seed)
        problem = problems.get(self.problem)
        start, median = problem.start, problem.median_safe_cost
        if start is None and (problem.published is None or problem.published.has_start):
            start = problem.safe_start(np.random.default_rng([self.seed, 1]))
        return replace(problem, start=start, median_safe_cost=median_safe_cost(problem) if median is None else median)

    def __str__(self) -> str:
        return f"{self.problem}, {self.dimension} parameters, seed {self.seed}"


def publication_of(name: str) -> Published | None:
    """How a problem was judged where it was published; None for a family, and for what nobody published."""
    return None if name in families.names() else problems.get(name).published


def of_families(names: Iterable[str], seeds: Sequence[int], dimensions: Sequence[int] | None = None) -> list[Case]:
    """Members of families: in the dimensions that each is for, or in those given as far as a family has them."""
    found = [families.family(name) for name in names]
    return [
        Case(family.name, dimension, seed)
        for seed in seeds
        for family in found
        for dimension in (dimensions or family.dimensions)
        if dimension <= family.most
    ]


def of_problems(names: Iterable[str], seeds: Sequence[int]) -> list[Case]:
    """Problems that are what they are; seeds are of start, noise and method."""
    sizes = {name: len(_fit(problems.get(name)).space) for name in dict.fromkeys(names)}
    return [Case(name, size, seed) for seed in seeds for name, size in sizes.items()]


def published(seeds: Sequence[int]) -> list[Case]:
    """The published problems, the paper's among them; without the quadruped where its simulator is not installed."""
    return of_problems([*PUBLISHED, *(name for name in PAPER if name != SOLO8 or find_spec("mujoco"))], seeds)


def are_tuning(cases: Iterable[Case]) -> bool:
    """Whether all have seeds that are for tuning, not for reporting."""
    return all(case.seed in families.TUNING for case in cases)


def _fit(problem: Problem) -> Problem:
    if problem.constrained_minimum is None:
        raise ValueError(
            f"problem {problem.name!r} must say its constrained_minimum; it has none. Regret is measured from it: "
            "find it by brute force."
        )
    median = median_safe_cost(problem) if problem.median_safe_cost is None else problem.median_safe_cost
    if not median > problem.constrained_minimum:
        raise ValueError(
            f"problem {problem.name!r} must cost more than its optimum, {problem.constrained_minimum:g}, in half of "
            f"its safe settings; got a median of {median:g}. Regret is measured in the distance between them."
        )
    return problem


def median_safe_cost(problem: Problem) -> float:
    """Median cost of params drawn uniformly that do not crash."""
    rng, space = np.random.default_rng(0), Study.of(problem.space, rules=problem.rules).space
    costs: list[float] = []
    for _ in range(_MOST // _DRAWS):
        truths = [problem.truth(space.decode(u)) for u in space.uniform(rng.random((_DRAWS, space.dimension)))]
        costs += [truth.cost for truth in truths if not truth.crashed]
        if len(costs) >= _ENOUGH:
            break
    if not costs:
        raise ValueError(
            f"problem {problem.name!r} must say its median_safe_cost; none of {_MOST} random params was safe. Give it: "
            "it tells a good cost from a usual one."
        )
    return float(np.median(costs))
