"""A snapshot of a study's storage: everything that determines the next suggestion, read again for every ask.

May import optimizer and below, and Optuna.
"""

import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from optuna import Study as OptunaStudy
from optuna.trial import FrozenTrial

from crashbo.integrations.optuna.deaths import params_of
from crashbo.integrations.optuna.keys import PROPOSAL
from crashbo.integrations.optuna.settings import Settings
from crashbo.integrations.optuna.spaces import Axes, singles
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.study import Study
from crashbo.optimizer.view import View
from crashbo.search.design import Design
from crashbo.search.feasible import listed_params
from crashbo.search.parameters import listed
from crashbo.search.space import Space

_NEAR = 0.01  # of the unit cube: least distance, in some coordinate, of two suggestions made at the same time
_SAME = 1e-6


@dataclass(frozen=True)
class Suggestion:
    """A proposed point, in Optuna's params."""

    params: dict[str, Any]
    origin: str
    p_safe: float | None
    p_model: float | None
    admissible: bool
    again: int | None = None  # number of the trial whose setting is tried once more, since its worker died
    against: int | None = None  # number of the trial that it is to be compared with

    @staticmethod
    def again_at(dead: FrozenTrial) -> "Suggestion":
        """The setting of a trial whose worker died, as it was proposed."""
        said = dead.system_attrs.get(PROPOSAL) or {}
        safe = said.get("p_safe"), said.get("p_model"), said.get("admissible", True)
        return Suggestion(params_of(dead), said.get("origin", "told"), *safe, dead.number, said.get("against"))


@dataclass(frozen=True)
class TrialSeed:
    """The source of a suggestion's random numbers: seed, trial, and how often it had to choose again.

    It is stateless: the same trial draws the same numbers in every process.
    """

    seed: int
    number: int
    turn: int = 0

    def rng(self, *more: int) -> np.random.Generator:
        """A generator for this trial."""
        return np.random.default_rng([self.seed, self.number, self.turn, *more])

    def shared_rng(self, *more: int) -> np.random.Generator:
        """A generator that is the same for all trials of the study."""
        return np.random.default_rng([self.seed, *more])


def seed_of(study: OptunaStudy, trials: Sequence[FrozenTrial]) -> int:
    """A seed that is the same for all workers of a study, and differs between studies."""
    born = trials[0].datetime_start if trials else None
    return zlib.crc32(f"{study.study_name} {born}".encode())


@dataclass(frozen=True)
class Snapshot:
    """The trials that fit into a space, with the study and its settings."""

    axes: Axes
    settings: Settings
    study: Study
    trials: tuple[Trial, ...]  # in the space's params
    voids: tuple[int, ...]  # their numbers
    comparisons: tuple[Comparison, ...] = ()
    known: tuple[Trial, ...] = ()  # those of them that have no parameters beside the space's, in its params

    @staticmethod
    def of(reading: Reading, axes: Axes, settings: Settings, *, without: int | None = None) -> "Snapshot":
        """From a reading of the storage, with the trials that fit the axes."""
        read = [t for t in reading.records(settings) if t.number != without]
        kept = reading.memo["placed", axes.key]
        found = (kept.of(t.number, t, axes.placed) for t in read)
        placed = [t for t in found if t is not None]
        voids = {t.number: t.params.keys() for t in read if t.state == "void"}
        whole = {*axes.names, *singles(reading.distributions)} if voids else set()
        return Snapshot(
            axes,
            settings,
            settings.study(axes.space, reading.direction, [t for t in read if t.counts]),
            tuple(t for t in placed if t.state != "void"),
            tuple(voids),
            tuple(reading.comparisons),
            tuple(t for t in placed if t.state == "void" and voids[t.number] <= whole),
        )

    @property
    def space(self) -> Space:
        """The models', with its rules."""
        return self.study.space

    def view(self) -> View:
        """What the models say about these trials."""
        return View.of(self.study, self.trials, self.comparisons)

    def told(self, count: int | None = None) -> "Snapshot":
        """Only the told trials; with `count`, the first so many of them."""
        return replace(self, trials=tuple(t for t in self.trials if t.counts)[:count])

    def ask(self, fixed: Mapping[str, Any], seed: TrialSeed, memory: Any) -> tuple[Suggestion, Any]:
        """The next point with some parameters fixed, and the models' memory for the next call."""
        (suggestion,), memory = self.ask_batch(1, fixed, seed, memory)
        return suggestion, memory

    def ask_batch(
        self, count: int, fixed: Mapping[str, Any], seed: TrialSeed, memory: Any
    ) -> tuple[tuple[Suggestion, ...], Any]:
        """The next points from one fit, and the models' memory for the next call; the seed is that of the first."""
        parts = list(self.ask_stream(count, fixed, seed, memory))
        return tuple(s for some, _ in parts for s in some), parts[-1][1] if parts else memory

    def ask_stream(
        self, count: int, fixed: Mapping[str, Any], seed: TrialSeed, memory: Any
    ) -> Iterator[tuple[tuple[Suggestion, ...], Any]]:
        """The same, a few at a time, as soon as they are chosen."""
        label = zlib.crc32(" ".join(self.axes.names).encode())
        state = {
            "design": asdict(self._design(seed, label)),
            "rng": seed.rng(label).bit_generator.state,
            "memory": memory,
        }
        space = self._held(self.axes.inward(fixed))
        held = replace(self.study, rules=space.rules).changed(space)
        optimizer = Optimizer.restored(held, (*self.trials, *self.known), state, self.comparisons)
        met = {name: held.space.fixed[name] for name in held.space.contexts if name in held.space.fixed}
        for i, some in enumerate(optimizer.ask_stream(count, met or None)):
            memory = optimizer.state()["memory"] if i == 0 else memory  # the fit is that of the first
            yield tuple(self._suggestion(trial, fixed) for trial in some), memory

    def allows(self, params: Mapping[str, Any], met: Mapping[str, Any]) -> bool:
        """Whether a setting keeps the rules in the context that is met: what it forbids waits for another."""
        both = {**params, **met}
        return not met or not self.axes.place(both) or self.space.broken(self.axes.inward(both)) is None

    def _held(self, fixed: Mapping[str, Any]) -> Space:
        """The space with some parameters fixed; a wish beside which nothing keeps a rule is had all the same."""
        space = self.space.with_fixed(fixed)
        wishes = {name: value for name, value in fixed.items() if name not in space.contexts}
        if not space.rules or not wishes or not space.is_empty:
            return space
        others = tuple(rule for rule in space.rules if rule.names and not rule.names & wishes.keys())
        broken = listed(rule.words for rule in space.rules if rule not in others)
        words = f"rules {broken} may be broken, since nothing was found to keep them where {listed_params(wishes)}."
        warnings.warn(words, RuntimeWarning, stacklevel=2)
        return space.with_rules(others)

    def wished(self, params: Mapping[str, Any], memory: Any) -> Suggestion:
        """A point chosen by the user, with its P(safe) if that is known."""
        inward = self.axes.inward(params)
        known = any(t.counts for t in self.trials) and self.study.space.accepts(inward)
        optimizer = Optimizer.restored(self.study, self.trials, {"memory": memory}, self.comparisons)
        rival = optimizer.best if self.study.compared else None
        against = None if rival is None else rival.number
        p_safe = float(optimizer.p_safe(inward)) if known else None
        return Suggestion(dict(params), "start", p_safe, None, True, against=against)

    def _suggestion(self, trial: Trial, fixed: Mapping[str, Any]) -> Suggestion:
        p_safe, p_model = (None if p is None else float(p) for p in (trial.p_safe, trial.p_model))
        params = self.axes.outward(trial.params)
        params |= {name: value for name, value in fixed.items() if name in params}
        return Suggestion(params, trial.origin, p_safe, p_model, bool(trial.admissible), against=trial.against)

    def rivals(self, suggestion: Suggestion, under_way: Sequence[Trial], *, repeats: bool = False) -> list[int]:
        """Numbers of pending trials that others placed near the suggestion after this snapshot was taken.

        A point that repeats a told trial does so on purpose: with its budget spent, a study repeats what is proven. It
        has rivals only where `repeats` says so.
        """
        x = self._at(self.axes.inward(suggestion.params))
        known = {t.number: t.params for t in self.trials}
        placed = {t.number: self.axes.inward(t.params) for t in under_way if self.axes.place(t.params)}
        news = {number: params for number, params in placed.items() if known.get(number) != params}
        near = [number for number, params in news.items() if np.abs(self._at(params) - x).max() < _NEAR]
        return [] if near and not repeats and self._repeats(x) else near

    def _repeats(self, x: Any) -> bool:
        """Whether a told trial was at x."""
        return any(t.state != "pending" and np.abs(self._at(t.params) - x).max() < _SAME for t in self.trials)

    def _at(self, params: Mapping[str, Any]) -> Any:
        return self.axes.space.encode(params)

    def _design(self, seed: TrialSeed, label: int) -> Design:
        """The study's initial design, at the position of this trial among those that are not void.

        A parameter that is chosen alone, before the others are known, has its own sequence for each trial: the same
        sequence in several parameters would put all points on a line.
        """
        rng = seed.rng(label) if len(self.axes) == 1 else seed.shared_rng(label)
        design = Design.for_study(self.axes.space, self.study.risk, None, rng)
        return replace(design, given=seed.number - sum(number < seed.number for number in self.voids) + seed.turn)
