"""What a method sees of a problem: a machine to call, until its trials are used up.

May import the public API, `problems` and `campaigns`.

A method calls the machine, again and again. How it comes to its next params is its own affair: the time between two
calls is the time of a suggestion, and what the machine answers is all that it learns.
"""

import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crashbo import Choice, Constraint, Crash, Float, Int, Unmeasured
from crashbo.problems import Problem

Params = Mapping[str, Any]


class Finished(Exception):
    """The trials are used up: a method lets it pass, or ends as its library wants it."""


@dataclass(frozen=True)
class Reply:
    """What is learnt from one trial."""

    cost: float | None  # None if it crashed: a crash has no cost
    measured: Mapping[str, float] = field(default_factory=dict)  # empty if it crashed

    @property
    def crashed(self) -> bool:
        """Whether it crashed."""
        return self.cost is None


@dataclass(frozen=True)
class Tried:
    """A trial as the benchmark records it."""

    params: dict[str, Any]
    cost: float | None  # as it was observed; None if it crashed
    seconds: float  # that the method took to suggest it


class Machine:
    """A problem as a method may see it.

    Args:
        problem: whose truth stays hidden.
        trials: how many calls there are.
        seed: of the method, and of the noise, which is the same for all methods.
        informed: whether the method is told which params are safe: for the oracle.
    """

    def __init__(self, problem: Problem, trials: int, seed: int, *, informed: bool = False) -> None:
        self.space: dict[str, Float | Int | Choice] = dict(problem.space)
        self.constraints: list[Constraint | Unmeasured] = problem.constraints
        self.start: Params | None = problem.start  # safe params to begin with, where the problem gives them
        self.seed = seed
        self._tried: list[Tried] = []
        self._problem, self._trials, self._informed = problem, trials, informed
        self._rng = np.random.default_rng([seed, zlib.crc32(problem.name.encode())])
        self._since = time.perf_counter()

    @property
    def tried(self) -> tuple[Tried, ...]:
        """The trials so far."""
        return tuple(self._tried)

    @property
    def trials(self) -> int:
        """Trials in all."""
        return self._trials

    @property
    def left(self) -> int:
        """Trials that are left."""
        return self._trials - len(self._tried)

    def __call__(self, params: Params) -> Reply:
        """One trial.

        Raises:
            Finished: if none is left.
        """
        seconds = time.perf_counter() - self._since
        if self.left <= 0:
            raise Finished
        try:
            outcome = self._problem.evaluate(params, self._rng)
            reply = Reply(outcome.cost, outcome.measured)
        except Crash:
            reply = Reply(None)
        self._tried.append(Tried(dict(params), reply.cost, seconds))
        self._since = time.perf_counter()
        return reply

    def is_safe(self, params: Params) -> bool:
        """Whether these params are safe, which only the oracle is told."""
        assert self._informed, "only a method that is marked as informed may ask"
        return not self._problem.truth(params).crashed
