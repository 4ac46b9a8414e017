"""Proposes the next trials of a study, from the content of its storage. Writes nothing.

May import optimizer and below, and Optuna.

Proposing takes time and can be done in the background; handing out a proposal (`Ledger.hand_out`) is fast.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from optuna import Study as OptunaStudy
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna import deaths
from crashbo.integrations.optuna.snapshot import Snapshot, Suggestion, TrialSeed, seed_of
from crashbo.integrations.optuna.spaces import Axes, enqueued, singles
from crashbo.integrations.optuna.stored import Reading

_log = logging.getLogger("crashbo")

# judgement: who asks when this many do is one of as many workers, and each proposal is behind by as many trials anyway
CROWD = 8  # who ask at once, from whom on trials are chosen for those, too, who ask a little later
MOST = 64  # trials that are chosen from one reading of the storage
# judgement: while many ask, a fit keeps them all waiting; past this many trials, hyperparameters hardly change with a
# few more, and are fitted again when the trials have grown by this factor, unless somebody else has done so
_FEW, _GROWTH = 200, 1.5


@dataclass(frozen=True)
class Planned:
    """A setting to hand out."""

    suggestion: Suggestion
    queued: int | None = None  # id of the queued trial with this setting


@dataclass(frozen=True)
class Batch:
    """Settings to hand out, and the snapshot that they were proposed from."""

    snapshot: Snapshot
    distributions: Mapping[str, BaseDistribution]
    planned: tuple[Planned, ...]
    count: int  # trials at that time
    unplaced: bool  # whether other workers were still choosing the settings of theirs


class Proposer:
    """Proposes trials for one study. Its memory only makes the next proposal faster."""

    def __init__(self, study: OptunaStudy) -> None:
        self._study = study
        self._memories: dict[Any, Any] = {}  # by parameters and constraints of the models
        self._fitted: dict[Any, int] = {}  # by the same: number of trials of the last fit of hyperparameters
        self._heard: dict[Any, Any] = {}  # likewise: memories of fits that others made
        self._ahead: tuple[Any, tuple[Suggestion, ...]] | None = None
        self._parts: Iterator[Batch] = iter(())
        self._part: Batch | None = None  # the last of them
        self._kept: tuple[Planned, ...] = ()  # of that: those that nobody has asked for yet

    def propose(self, count: int, turn: int = 0, context: Mapping[str, Any] | None = None) -> Batch:
        """The next trials: first queued ones, then those to be tried again, then proposals of the models, from one fit.

        Args:
            count: number of trials.
            turn: number of earlier attempts that failed because others took the same points.
            context: what is met now, where the study has contexts.
        """
        parts = list(self._stream(count, turn, context))
        return replace(parts[0], planned=tuple(p for part in parts for p in part.planned))

    def learn(self, key: Any, memory: Any) -> None:
        """The memory of a fit that somebody else made, of the models of that key (`models_of`)."""
        self._heard[key] = memory

    def some(
        self, count: int, turn: int = 0, *, onward: bool = False, context: Mapping[str, Any] | None = None
    ) -> Batch | None:
        """The first of the next `count` trials, as soon as they are chosen; `onward`, more from the same fit.

        None if that has no more to give: then nothing is chosen, and the storage is to be read again.
        """
        if not onward:
            self._parts, self._kept = self._stream(count if count < CROWD else MOST, turn, context), ()
        if not self._kept:
            self._part = next(self._parts, None)
            self._kept = () if self._part is None else self._part.planned
        if self._part is None:
            return None
        given, self._kept = self._kept[:count], self._kept[count:]
        return replace(self._part, planned=given)

    def _stream(self, count: int, turn: int, context: Mapping[str, Any] | None = None) -> Iterator[Batch]:
        """The next trials, a few at a time."""
        met = dict(context or {})
        reading = Reading.of(self._study)
        axes = _axes(reading)
        snapshot = Snapshot.of(reading, axes, reading.declared)
        waiting = [t for t in reading.trials if t.state == TrialState.WAITING]
        queue = [t for t in waiting if snapshot.allows(_wishes(t, axes), met)][:count]
        seed = TrialSeed(seed_of(self._study, reading.trials), len(reading.trials), turn)
        single = singles(reading.distributions)
        unplaced = any(t.state == TrialState.RUNNING and not t.params for t in reading.trials)
        planned = [Planned(self._wished(reading, axes, t, seed, met), t._trial_id) for t in queue]
        again = [s for s in _tried_again(reading, met) if snapshot.allows(s.params, met)]
        planned += map(Planned, again[: count - len(planned)])
        more = self._suggestions(count - len(planned), snapshot, seed, met) if len(planned) < count else ()
        for some in chain([planned] if planned else [], (list(map(Planned, part)) for part in more)):
            chosen = tuple(_with(p, single) for p in some)
            yield Batch(snapshot, reading.distributions, chosen, len(reading.trials), unplaced)

    def propose_ahead(self) -> None:
        """Choose the next trial in advance, so that the next request does not have to wait."""
        reading = Reading.of(self._study)
        if reading.declared.space is None or any(t.state == TrialState.WAITING for t in reading.trials):
            return  # a queued trial needs no proposal
        if _tried_again(reading, {}) or reading.structure.contexts:
            return
        snapshot = Snapshot.of(reading, _axes(reading), reading.declared)
        seed = TrialSeed(seed_of(self._study, reading.trials), len(reading.trials))
        if self._ahead is None or self._ahead[0] != _question(snapshot, seed):
            self._ahead = _question(snapshot, seed), next(self._chosen(1, snapshot, {}, seed))

    def _suggestions(
        self, count: int, snapshot: Snapshot, seed: TrialSeed, met: Mapping[str, Any]
    ) -> Iterable[tuple[Suggestion, ...]]:
        if not len(snapshot.axes):  # every parameter has a single value
            return [(Suggestion({}, "design", None, None, True),) * count]
        ahead, self._ahead = self._ahead, None
        if ahead is not None and len(ahead[1]) >= count and ahead[0] == _question(snapshot, seed):
            return [ahead[1][:count]]
        return self._chosen(count, snapshot, met, seed)

    def _wished(
        self, reading: Reading, axes: Axes, trial: FrozenTrial, seed: TrialSeed, met: Mapping[str, Any]
    ) -> Suggestion:
        """A queued setting; parameters that it leaves open are chosen by the models."""
        others = Snapshot.of(reading, axes, reading.declared, without=trial.number)
        wishes = {**_wishes(trial, axes), **met}
        if axes.place(wishes):
            return others.wished(wishes, self._memories.get(models_of(others)))
        fixed = enqueued(trial, {name: axes.axis(name).distribution for name in axes.names})
        return next(self._chosen(1, others, {**fixed, **met}, seed))[0]

    def _chosen(
        self, count: int, snapshot: Snapshot, fixed: Mapping[str, Any], seed: TrialSeed
    ) -> Iterator[tuple[Suggestion, ...]]:
        """The next points, a few at a time. A fit that fails from where the last one ended begins anew."""
        key = models_of(snapshot)
        memory, given = self._held(key, snapshot) if count >= CROWD else self._memories.get(key), 0
        while given < count:
            try:
                for some, new in snapshot.ask_stream(count - given, fixed, seed, memory):
                    if not given:
                        self._remember(key, memory, new)
                    given += len(some)
                    yield some
            except (ArithmeticError, AssertionError) as error:
                if memory is None or given:
                    raise
                _log.warning("a fit failed from where the last one ended (%r); beginning anew", error)
                memory = None

    def _held(self, key: Any, snapshot: Snapshot) -> Any:
        """The models' memory; where the last fit will do for a while, as if it were of all that was told by now."""
        memory, told = self._memories.get(key), sum(t.counts for t in snapshot.trials)
        heard = self._heard.pop(key, None)
        if heard is not None and heard["fitted_at"] > self._fitted.get(key, 0):
            memory, self._fitted[key] = heard, heard["fitted_at"]
        fitted = self._fitted.get(key, 0)
        if memory is None or told <= _FEW or not fitted <= told < _GROWTH * fitted:
            return memory
        return {**memory, "fitted_at": told}

    def _remember(self, key: Any, before: Any, new: Any) -> None:
        self._memories[key] = new
        if new is not None and (before is None or repr(new["views"]) != repr(before["views"])):  # it was fitted
            self._fitted[key] = new["fitted_at"]


def _wishes(trial: FrozenTrial, axes: Axes) -> dict[str, Any]:
    """What a queued trial fixes."""
    return {name: v for name, v in trial.system_attrs.get("fixed_params", {}).items() if name in axes.names}


def _axes(reading: Reading) -> Axes:
    return Axes(reading.distributions, reading.structure, reading.declared.rules or ())


def _tried_again(reading: Reading, met: Mapping[str, Any]) -> list[Suggestion]:
    """The settings of workers that died, to be tried once more."""
    wanted, when = reading.distributions, reading.structure.when
    dead = [
        t
        for t in reading.deaths(reading.declared).untried
        if deaths.fits(t, {n: d for n, d in wanted.items() if n not in when or n in deaths.params_of(t)}, {})
    ]
    found = map(Suggestion.again_at, dead)
    return [replace(s, params={n: s.params[n] for n in wanted if n in s.params} | met) for s in found]  # type: ignore[operator]


def models_of(snapshot: Snapshot) -> tuple[Any, ...]:
    """What tells the models of one study from those of another: its parameters and constraints."""
    return tuple(snapshot.axes.names), tuple(snapshot.study.names)


def _question(snapshot: Snapshot, seed: TrialSeed) -> tuple[Any, ...]:
    """Everything that a suggestion depends on, except the models' memory."""
    return snapshot.trials, snapshot.voids, snapshot.comparisons, snapshot.study, seed


def _with(planned: Planned, single: Mapping[str, Any]) -> Planned:
    suggestion = replace(planned.suggestion, params={**single, **planned.suggestion.params})
    return replace(planned, suggestion=suggestion)
