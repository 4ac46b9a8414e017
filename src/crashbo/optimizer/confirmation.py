"""Repeats of one setting, to see whether it holds.

May import strategies and below.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from crashbo.optimizer.records import Trial


class HasTrials(Protocol):
    """The optimizer that runs them."""

    @property
    def trials(self) -> list[Trial]:
        """Every trial."""


class Confirmation:
    """Repeats of one setting, as they come in: their mean cost, its spread, and how many crashed."""

    def __init__(self, optimizer: HasTrials, params: dict[str, Any], number: int, n: int) -> None:
        self.params, self.n = params, n
        self._optimizer, self._number = optimizer, number

    @property
    def trials(self) -> list[Trial]:
        """The repeats that were handed out so far; one that was void is made again."""
        return [t for t in self._optimizer.trials if t.repeats == self._number]

    @property
    def costs(self) -> list[Any]:
        """Costs of the repeats that succeeded: numbers, or of several goals, each by its name."""
        return [t.cost for t in self.trials if t.state == "success" and t.cost is not None]

    @property
    def crashes(self) -> int:
        """How many of the repeats crashed."""
        return sum(t.state == "crash" for t in self.trials)

    @property
    def done(self) -> bool:
        """Whether all repeats were told."""
        return sum(t.counts for t in self.trials) >= self.n

    @property
    def mean(self) -> Any:
        """Mean cost; of several goals, each by its name."""
        return self._of_each(lambda values: float(np.mean(values)) if values else None)

    @property
    def std(self) -> Any:
        """Standard deviation of the cost, from two repeats on; of several goals, each by its name."""
        return self._of_each(lambda values: float(np.std(values, ddof=1)) if len(values) > 1 else None)

    def _of_each(self, figure: Callable[[list[float]], float | None]) -> Any:
        costs = self.costs
        if not costs or not isinstance(costs[0], Mapping):
            return figure(costs)
        names = dict.fromkeys(name for cost in costs for name in cost)
        return {name: figure([cost[name] for cost in costs if name in cost]) for name in names}

    def __repr__(self) -> str:
        told, stops = sum(t.counts for t in self.trials), sum(t.state == "stopped" for t in self.trials)
        figures = f"mean {self.mean}, std {self.std}, crashes {self.crashes}" + (f", stopped {stops}" if stops else "")
        return f"Confirmation({told} of {self.n} told: {figures})"
