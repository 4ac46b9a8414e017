"""A study that is to be shown, wherever it is kept: in a store, in a journal, or in a program.

May import optimizer and below.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from crashbo.app.overview import Overview
from crashbo.app.sight import OwnSight
from crashbo.optimizer.objectives import Direction
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.study import Study
from crashbo.optimizer.tables.columns import to_csv
from crashbo.search.space import Space


@dataclass(frozen=True)
class Goal:
    """One thing to minimise or to maximise."""

    name: str  # "cost" of the only one
    label: str
    unit: str
    direction: Direction

    def of(self, cost: Any) -> Any:
        """Its part of a cost, which is a mapping where there are several; None where it is not known."""
        return cost.get(self.name) if isinstance(cost, Mapping) else cost

    @property
    def wanted(self) -> str:
        """In words: the highest or the lowest."""
        return f"{'highest' if self.direction == 'maximize' else 'lowest'} {self.label}"


@dataclass(frozen=True)
class Titled:
    """A study, and what people call it and its cost."""

    name: str
    study: Study
    label: str = "cost"

    @property
    def space(self) -> Space:
        """The study's."""
        return self.study.space

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What is minimised or maximised, for people: the cost, or every one of several objectives."""
        units, objectives = self.study.units, self.study.objectives
        if not objectives:
            return (Goal("cost", self.label, units.get("cost", ""), self.study.direction),)
        return tuple(Goal(name, name, units.get(name, ""), direction) for name, direction in objectives.items())


@dataclass(frozen=True)
class Subject:
    """A study that is to be shown. What takes a fit is made when it is first looked at."""

    titled: Titled
    trials: list[Trial]
    look: Callable[[], Overview[Any]]
    find_best: Callable[[], Trial | None]
    more: Sequence[Mapping[str, Any]] = ()  # per trial: id, who told it, when, how long it took
    comparisons: Sequence[Comparison] = field(default_factory=tuple)

    @cached_property
    def overview(self) -> Overview[Any]:
        """What the models say."""
        return self.look()

    @cached_property
    def recommended(self) -> dict[str, Any] | None:
        """What the models recommend; see `Overview`."""
        found: dict[str, Any] | None = self.overview.recommended()
        return found

    @property
    def csv(self) -> str:
        """All trials as CSV."""
        return to_csv(self.titled.study, self.trials, self.more, self.comparisons)

    @cached_property
    def best(self) -> Trial | None:
        """The best trial; None before a success, and where there are several goals."""
        return None if self.titled.study.objectives else self.find_best()


def subject_of(optimizer: Optimizer, name: str = "Study") -> Subject:
    """The study of an Optimizer."""
    titled, trials, comparisons = Titled(name, optimizer.study), optimizer.trials, optimizer.comparisons
    return Subject(titled, trials, lambda: Overview(OwnSight(optimizer)), lambda: optimizer.best, (), comparisons)
