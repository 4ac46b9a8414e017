"""A snapshot of a study's storage: everything that decides the next suggestion, read anew at every ask.

May import optimizer and below, and Optuna.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from optuna import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from crashbo.integrations.optuna.settings import Settings
from crashbo.integrations.optuna.spaces import Axes
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Trial
from crashbo.optimizer.study import Study
from crashbo.optimizer.view import View
from crashbo.search.design import Design

_NEAR = 0.01  # of the unit cube: two suggestions made at the same time lie at least so far apart in some coordinate
_SAME = 1e-6


@dataclass(frozen=True)
class Suggestion:
    """The next point, in Optuna's params."""

    params: dict[str, Any]
    origin: str
    p_safe: float | None
    p_model: float | None
    admissible: bool


@dataclass(frozen=True)
class TrialSeed:
    """Where a suggestion's randomness comes from: the seed, the trial, and how often it had to choose anew.

    Nothing of it is state: whichever process asks, the same trial draws the same numbers.
    """

    seed: int
    number: int
    turn: int = 0

    def rng(self, *more: int) -> np.random.Generator:
        """The numbers of this trial."""
        return np.random.default_rng([self.seed, self.number, self.turn, *more])

    def shared_rng(self, *more: int) -> np.random.Generator:
        """Numbers that are the same for all trials of the study."""
        return np.random.default_rng([self.seed, *more])


def seed_of(study: OptunaStudy, trials: Sequence[FrozenTrial]) -> int:
    """A seed that all workers of a study agree upon, and that differs from study to study."""
    born = trials[0].datetime_start if trials else None
    return zlib.crc32(f"{study.study_name} {born}".encode())


@dataclass(frozen=True)
class Snapshot:
    """The trials that have a place in a space, and how they are to be read."""

    axes: Axes
    settings: Settings
    study: Study
    trials: tuple[Trial, ...]  # in the space's params
    voids: tuple[int, ...]  # their numbers

    @staticmethod
    def of(
        reading: Reading, axes: Axes, settings: Settings, direction: StudyDirection, *, without: int | None = None
    ) -> "Snapshot":
        """What was read from a storage, as far as it has a place among the axes."""
        read = [t for t in reading.records(settings) if t.number != without]
        placed = [t for t in read if t.state != "void" and axes.place(t.params)]
        return Snapshot(
            axes,
            settings,
            settings.study(axes.space, direction, [t for t in read if t.counts]),
            tuple(replace(t, params=axes.inward(t.params)) for t in placed),
            tuple(t.number for t in read if t.state == "void"),
        )

    def view(self) -> View:
        """What the models make of these trials."""
        return View.of(self.study, self.trials)

    def told(self, count: int | None = None) -> "Snapshot":
        """With what is under way left aside; the first so many of the others."""
        return replace(self, trials=tuple(t for t in self.trials if t.counts)[:count])

    def ask(self, fixed: Mapping[str, Any], seed: TrialSeed, memory: Any) -> tuple[Suggestion, Any]:
        """The next point with some parameters fixed, and the models' memory after it."""
        (suggestion,), memory = self.ask_batch(1, fixed, seed, memory)
        return suggestion, memory

    def ask_batch(
        self, count: int, fixed: Mapping[str, Any], seed: TrialSeed, memory: Any
    ) -> tuple[tuple[Suggestion, ...], Any]:
        """The next points from one fit, and the models' memory after it; the seed is that of the first."""
        label = zlib.crc32(" ".join(self.axes.names).encode())
        state = {
            "design": asdict(self._design(seed, label)),
            "rng": seed.rng(label).bit_generator.state,
            "memory": memory,
        }
        held = self.study.changed(self.study.space.with_fixed(self.axes.inward(fixed)))
        optimizer = Optimizer.restored(held, self.trials, state)
        suggestions = tuple(self._suggestion(trial, fixed) for trial in optimizer.ask_batch(count))
        return suggestions, optimizer.state()["memory"]

    def wished(self, params: Mapping[str, Any], memory: Any) -> Suggestion:
        """A point that somebody wants, with its P(safe) where that is known."""
        inward = self.axes.inward(params)
        known = any(t.counts for t in self.trials) and self.axes.space.accepts(inward)
        optimizer = Optimizer.restored(self.study, self.trials, {"memory": memory})
        return Suggestion(dict(params), "start", float(optimizer.p_safe(inward)) if known else None, None, True)

    def _suggestion(self, trial: Trial, fixed: Mapping[str, Any]) -> Suggestion:
        p_safe, p_model = (None if p is None else float(p) for p in (trial.p_safe, trial.p_model))
        params = {**self.axes.outward(trial.params), **fixed}
        return Suggestion(params, trial.origin, p_safe, p_model, bool(trial.admissible))

    def rivals(self, suggestion: Suggestion, under_way: Sequence[Trial]) -> list[int]:
        """Numbers of those trials under way that others placed near the suggestion after this snapshot was taken.

        A point that repeats a told trial is meant to: a spent budget repeats what is proven.
        """
        x = self._at(self.axes.inward(suggestion.params))
        if any(t.state != "pending" and np.abs(self._at(t.params) - x).max() < _SAME for t in self.trials):
            return []
        known = {t.number: t.params for t in self.trials}
        placed = {t.number: self.axes.inward(t.params) for t in under_way if self.axes.place(t.params)}
        news = {number: params for number, params in placed.items() if known.get(number) != params}
        return [number for number, params in news.items() if np.abs(self._at(params) - x).max() < _NEAR]

    def _at(self, params: Mapping[str, Any]) -> Any:
        return self.axes.space.encode(params)

    def _design(self, seed: TrialSeed, label: int) -> Design:
        """The study's design, at the place of this trial among those that are not void.

        A parameter that stands alone, before anything is known of its companions, has a sequence of its own for
        each trial: sequences of the same step in several parameters would lie on a line.
        """
        rng = seed.rng(label) if len(self.axes) == 1 else seed.shared_rng(label)
        design = Design.for_study(self.axes.space, self.study.risk, None, rng)
        return replace(design, given=seed.number - sum(number < seed.number for number in self.voids) + seed.turn)
