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

from crashbo import Choice, Constraint, Crash, Float, Int, Study, Unmeasured
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
        self.rules = problem.rules  # known beforehand
        self._space = Study.of(problem.space, rules=problem.rules).space
        # Safe params to begin with, where the problem gives them; with a value for what does not exist there.
        self.start: Params | None = None if problem.start is None else {**self._anything(), **problem.start}
        self.seed = seed
        self._tried: list[Tried] = []
        self._has_arrived = False  # at the problem's target, where it has one
        self._problem, self._trials, self._informed = problem, trials, informed
        self._rng = np.random.default_rng([seed, zlib.crc32(problem.name.encode())])
        self._since = time.perf_counter()

    def _anything(self) -> dict[str, Any]:
        """Some value of each parameter that does not always exist."""
        conditional = [name for name, p in self.space.items() if p.when is not None]
        return {name: self.space[name].decode(np.full(self.space[name].width, 0.5)) for name in conditional}

    def existing(self, params: Params) -> dict[str, Any]:
        """The params that exist beside one another."""
        return {name: params[name] for name in self._space.existing(params)}

    def allows(self, params: Params) -> bool:
        """Whether params keep all rules, which everybody knows beforehand."""
        return self._space.accepts(self.existing(params))

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
        """Trials that are left; none once the problem's target is reached."""
        return 0 if self._has_arrived else self._trials - len(self._tried)

    def __call__(self, params: Params) -> Reply:
        """One trial; of the params, what does not exist is left out, and who breaks a rule crashes.

        Raises:
            Finished: if none is left.
        """
        seconds = time.perf_counter() - self._since
        if self.left <= 0:
            raise Finished
        params = self.existing(params)
        try:
            if not self.allows(params):  # for who does not heed what is known, it crashes
                raise Crash("a rule was broken")
            outcome = self._problem.evaluate(params, self._rng)
            reply = Reply(outcome.cost, outcome.measured)
            self._has_arrived = self._is_target(params)
        except Crash:
            reply = Reply(None)
        self._tried.append(Tried(dict(params), reply.cost, seconds))
        self._since = time.perf_counter()
        return reply

    def _is_target(self, params: Params) -> bool:
        published = self._problem.published
        if published is None or published.target is None:
            return False
        return self._problem.truth(params).cost <= published.target

    def is_safe(self, params: Params) -> bool:
        """Whether these params are safe, which only the oracle is told."""
        assert self._informed, "only a method that is marked as informed may ask"
        return self.allows(params) and not self._problem.truth(self.existing(params)).crashed
