"""Where the models of a study come from: what an overview needs of a store's `Insight`, and the same of an Optimizer.

May import optimizer and below. Outside are the params of whoever asks, inside those of the models.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Trial
from crashbo.optimizer.view import Recommendation, View
from crashbo.search.space import Space


class Sight(Protocol):
    """What an overview looks through."""

    @property
    def view(self) -> View:
        """The models' view, fitted when first needed."""

    @property
    def learnt(self) -> tuple[Trial, ...]:
        """The trials that the models learn from, as they see them."""

    @property
    def space(self) -> Space:
        """The models'."""

    def told(self, count: int | None = None) -> Self:
        """The same of the told trials alone; with `count`, the first so many of them."""

    def recommend(self, delta: float) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta."""

    def check(self) -> list[Finding]:
        """What in the trials speaks against the models, and advice."""

    def inward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """From the params outside to the models'."""

    def outward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """From the models' params to those outside."""

    def value_inward(self, name: str, value: Any) -> Any:
        """The same for one of them."""

    def value_outward(self, name: str, value: Any) -> Any:
        """The same for one of them."""


@dataclass(frozen=True)
class OwnSight:
    """A study of a program: outside and inside are the same, and the view of all its trials is the Optimizer's own."""

    optimizer: Optimizer
    count: int | None = None

    @cached_property
    def learnt(self) -> tuple[Trial, ...]:
        """The told trials."""
        return tuple(t for t in self.optimizer.trials if t.counts)[: self.count]

    @cached_property
    def view(self) -> View:
        """The models' view."""
        if self.count is None:
            return self.optimizer.view
        numbers = {t.number for t in self.learnt}
        among = [c for c in self.optimizer.comparisons if {c.better, c.worse} <= numbers]
        return View.of(self.optimizer.study, self.learnt, among)

    @property
    def space(self) -> Space:
        """The study's."""
        return self.optimizer.space

    def told(self, count: int | None = None) -> Self:
        """Of the first so many told trials."""
        return replace(self, count=self.count if count is None else count)

    def recommend(self, delta: float) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta."""
        return self.view.recommend(delta)

    def check(self) -> list[Finding]:
        """What in the trials speaks against the models, and advice."""
        return self.optimizer.check()

    def inward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """They are the same."""
        return dict(params)

    outward = inward

    def value_inward(self, name: str, value: Any) -> Any:
        """It is the same."""
        return value

    value_outward = value_inward
