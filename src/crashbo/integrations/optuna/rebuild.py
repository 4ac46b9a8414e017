"""A study's storage as an Optimizer: everything that decides the next proposal, rebuilt at every ask.

May import optimizer and below, and Optuna.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from crashbo import strategies
from crashbo.integrations.optuna.settings import Settings
from crashbo.integrations.optuna.spaces import Axes
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer import saving
from crashbo.optimizer.optimizer import Direction, Optimizer
from crashbo.optimizer.records import AnyConstraint, Trial
from crashbo.search.design import Design
from crashbo.search.risk import risk_of

_NEAR = 0.01  # of the unit cube: two proposals made at the same time lie at least so far apart in some coordinate
_SAME = 1e-6


@dataclass(frozen=True)
class Proposal:
    """The next point, in Optuna's params."""

    params: dict[str, Any]
    origin: str
    p_safe: float | None
    p_model: float | None
    admissible: bool


@dataclass(frozen=True)
class Lot:
    """Where a proposal's randomness comes from: the seed, the trial, and how often it had to choose anew.

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


def seed_of(study: Study, trials: Sequence[FrozenTrial]) -> int:
    """A seed that all workers of a study agree upon, and that differs from study to study."""
    born = trials[0].datetime_start if trials else None
    return zlib.crc32(f"{study.study_name} {born}".encode())


@dataclass(frozen=True)
class Scene:
    """The trials that have a place in a space, and how they are to be read."""

    axes: Axes
    settings: Settings
    constraints: tuple[AnyConstraint, ...]
    direction: Direction
    trials: tuple[Trial, ...]  # in the space's params
    voids: tuple[int, ...]  # their numbers

    @staticmethod
    def of(
        reading: Reading, axes: Axes, settings: Settings, direction: StudyDirection, *, without: int | None = None
    ) -> "Scene":
        """What was read from a storage, as far as it has a place among the axes."""
        read = [t for t in reading.records(settings) if t.number != without]
        placed = [t for t in read if t.state != "void" and axes.place(t.params)]
        return Scene(
            axes,
            settings,
            settings.constraints_for([t for t in read if t.state in ("success", "crash")]),
            "maximize" if direction == StudyDirection.MAXIMIZE else "minimize",
            tuple(replace(t, params=axes.inward(t.params)) for t in placed),
            tuple(t.number for t in read if t.state == "void"),
        )

    def optimizer(self, fixed: Mapping[str, Any] | None = None, state: Mapping[str, Any] | None = None) -> Optimizer:
        """The Optimizer of these trials, in the state given."""
        empty = self._empty(fixed)
        return Optimizer.restored(empty.config(), self.trials, {**empty.state(), **(state or {})})

    def ask(self, fixed: Mapping[str, Any], lot: Lot, memory: Any) -> tuple[Proposal, Any]:
        """The next point with some parameters fixed, and the models' memory after it."""
        (proposal,), memory = self.ask_batch(1, fixed, lot, memory)
        return proposal, memory

    def ask_batch(
        self, count: int, fixed: Mapping[str, Any], lot: Lot, memory: Any
    ) -> tuple[tuple[Proposal, ...], Any]:
        """The next points from one fit, and the models' memory after it; the lot is that of the first."""
        label = zlib.crc32(" ".join(self.axes.names).encode())
        state = {
            "design": saving.design_out(self._design(lot, label)),
            "rng": lot.rng(label).bit_generator.state,
            "memory": memory,
        }
        optimizer = self.optimizer(fixed, state)
        proposals = tuple(self._proposal(trial, fixed) for trial in optimizer.ask_batch(count))
        return proposals, optimizer.state()["memory"]

    def wished(self, params: Mapping[str, Any], memory: Any) -> Proposal:
        """A point that somebody wants, with its P(safe) where that is known."""
        inward = self.axes.inward(params)
        known = any(t.state in ("success", "crash") for t in self.trials) and self.axes.space.accepts(inward)
        p_safe = float(self.optimizer(None, {"memory": memory}).p_safe(inward)) if known else None
        return Proposal(dict(params), "start", p_safe, None, True)

    def _proposal(self, trial: Trial, fixed: Mapping[str, Any]) -> Proposal:
        p_safe, p_model = (None if p is None else float(p) for p in (trial.p_safe, trial.p_model))
        params = {**self.axes.outward(trial.params), **fixed}
        return Proposal(params, trial.origin, p_safe, p_model, bool(trial.admissible))

    def rivals(self, proposal: Proposal, under_way: Sequence[Trial]) -> list[int]:
        """Numbers of those trials under way that others placed near the proposal after this scene was looked at.

        A point that repeats a told trial is meant to: a spent budget repeats what is proven.
        """
        x = self._at(self.axes.inward(proposal.params))
        if any(t.state != "pending" and np.abs(self._at(t.params) - x).max() < _SAME for t in self.trials):
            return []
        known = {t.number: t.params for t in self.trials}
        placed = {t.number: self.axes.inward(t.params) for t in under_way if self.axes.place(t.params)}
        news = {number: params for number, params in placed.items() if known.get(number) != params}
        return [number for number, params in news.items() if np.abs(self._at(params) - x).max() < _NEAR]

    def _at(self, params: Mapping[str, Any]) -> Any:
        return self.axes.space.encode(params)

    def _empty(self, fixed: Mapping[str, Any] | None) -> Optimizer:
        space = self.axes.space.with_fixed(self.axes.inward(fixed or {}))
        s = self.settings
        return Optimizer(
            space,
            self.constraints,
            strategy=strategies.get(s.strategy or "eicc"),
            risk=s.risk,
            noise=s.noise,
            direction=self.direction,
            posterior=s.posterior or "marginal",
        )

    def _design(self, lot: Lot, label: int) -> Design:
        """The study's design, at the place of this trial among those that are not void.

        A parameter that stands alone, before anything is known of its companions, has a sequence of its own for
        each trial: sequences of the same step in several parameters would lie on a line.
        """
        rng = lot.rng(label) if len(self.axes) == 1 else lot.shared_rng(label)
        design = Design.for_study(self.axes.space, risk_of(self.settings.risk), None, rng)
        return replace(design, given=lot.number - sum(number < lot.number for number in self.voids) + lot.turn)
