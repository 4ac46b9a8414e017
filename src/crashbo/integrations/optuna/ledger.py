"""A study as a ledger: its trials with everything that the storage knows about them, and all ways to write to it.

May import optimizer and below, and Optuna. It does not check what may be written when: that is up to the caller.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import optuna
from optuna import Study as OptunaStudy
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna import clock, deaths, keys, stored, studies, writing
from crashbo.integrations.optuna.atomic import atomic
from crashbo.integrations.optuna.proposer import Batch, Planned
from crashbo.integrations.optuna.settings import Settings, declared_in, user_attrs
from crashbo.integrations.optuna.spaces import space_of, widened
from crashbo.integrations.optuna.stored import Reading
from crashbo.integrations.optuna.studies import direction_of, goals_of
from crashbo.integrations.optuna.writing import End
from crashbo.optimizer.objectives import Direction
from crashbo.optimizer.records import Trial
from crashbo.optimizer.told import Told
from crashbo.search.space import Space


class _Taken(Exception):
    """Others have taken a point."""


@dataclass(frozen=True)
class Order:
    """A planned trial, and for whom it is."""

    planned: Planned
    request: str | None = None
    lease: float | None = None  # seconds; None: the study's own


@dataclass(frozen=True)
class Entry:
    """A trial, and what else the storage knows about it."""

    trial: Trial
    id: int  # in the storage
    queued: bool  # not handed out yet
    choosing: bool  # handed out, but its parameters are still being chosen
    lease: float | None  # end of its lease, in seconds since 1970
    late: bool  # its lease ran out before it was told
    request: str | None  # id of the request that asked for it
    asked: float | None  # the lease that it wanted, in seconds
    told_by: str | None  # id of the request that told it
    finished: bool  # Optuna's own record is closed
    at: float  # place of the last change in the order of all; close to its time, in seconds since 1970
    who: str  # who told it
    began: float | None  # when it was handed out, in seconds since 1970; None if nobody asked for it
    ended: float | None  # when it was first told
    history: tuple[Mapping[str, Any], ...]  # what was said of it before, oldest first
    first: Told | None  # Optuna's own record, where a correction of an earlier edition did not keep it

    @property
    def open(self) -> bool:
        """Whether it is running."""
        return self.trial.state == "pending" and not self.queued and not self.choosing

    @property
    def corrections(self) -> int:
        """How often what was said of it has changed."""
        return len(self.history)


class Ledger:
    """One study in its storage."""

    def __init__(self, study: OptunaStudy) -> None:
        self.study = study

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.study.study_name)

    @property
    def direction(self) -> Direction:
        """Whether the cost is minimized or maximized."""
        return direction_of(self.study.direction)

    @property
    def goals(self) -> dict[str, Direction]:
        """The goals of a study with several; none of others."""
        return goals_of(self.study)

    @property
    def read_only(self) -> bool:
        """Whether the storage can be read, but not written to."""
        return studies.is_read_only(self.study._storage)

    def neighbours(self) -> list[dict[str, Any]]:
        """All studies in the storage: name, number of trials, when the first began."""
        return studies.summaries(self.study._storage)

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The study's attributes, read without its trials."""
        return user_attrs(self.study)

    @property
    def has_parameters(self) -> bool:
        """Whether it is known what to choose."""
        return bool(declared_in(self.attrs).space or self.read().distributions)

    def asked_by(self, requests: Iterable[str | None]) -> dict[str, int]:
        """The number of the first trial that each of some requests was given, if any."""
        wanted = {request for request in requests if request is not None}
        return writing.first_with(self.study, keys.REQUEST, wanted) if wanted else {}

    def read(self) -> Reading:
        """The current content of the storage."""
        return Reading.of(self.study)

    def entry(self, number: int) -> tuple[Entry, Settings, Mapping[str, Any]] | None:
        """One trial, read without the others, with the study's settings and attributes; None if it does not exist."""
        attrs = self.study.user_attrs
        settings = declared_in(attrs).with_goals(self.goals)
        if settings.space is None:  # then the parameters follow from all trials together
            return self._entry_among_all(number)
        try:
            found = self._frozen(number)
        except (KeyError, OverflowError):
            return None
        trial = stored.single(found, attrs, settings)
        if trial is None:
            return self._entry_among_all(number)
        space = space_of(settings.space, settings.structure)
        return _entry(found, trial, attrs, settings, space), settings, attrs

    def _entry_among_all(self, number: int) -> tuple[Entry, Settings, Mapping[str, Any]] | None:
        reading = self.read()
        entries = entries_of(reading)
        return (entries[number], reading.declared, reading.attrs) if 0 <= number < len(entries) else None

    def own(self, number: int) -> tuple[dict[str, Any], Told]:
        """Params and outcome of a trial as first written, whatever corrected it."""
        frozen = self._frozen(number)
        return dict(frozen.params), stored.first_told(frozen, declared_in(self.attrs).with_goals(self.goals))

    def _frozen(self, number: int) -> FrozenTrial:
        """Optuna's own record of one trial, read without the others."""
        storage = self.study._storage
        return storage.get_trial(storage.get_trial_id_from_study_id_trial_number(self.study._study_id, number))

    def set_attr(self, key: str, value: Any) -> None:
        """Write an attribute of the study, completely or not at all."""
        self.study.set_user_attr(key, value)

    def queue(self, params: Mapping[str, Any]) -> None:
        """Queue a setting, to be handed out before any proposal."""
        self.study.enqueue_trial(dict(params))

    def hand_out(self, batch: Batch, orders: Sequence[Order], ours: Iterable[int] = ()) -> list[Entry | None]:
        """Write planned trials, in one commit.

        None stands for one whose point, or queued trial, others have taken since the batch was planned; `ours` are
        earlier trials of this batch. Databases create one trial at a time, so the second of two workers sees the first
        one's.
        """
        if any(order.planned.queued is not None for order in orders):
            return [self._hand_out_alone(batch, order, ours) for order in orders]
        try:
            with atomic(self.study) as (storage, undoes):
                written = writing.create(self.study, storage, [_running(order, batch) for order in orders])
                known = {t.number for t in written} | {*ours}
                others = self._others(storage, batch, known)
                taken = [t for t, o in zip(written, orders, strict=True) if self._is_taken(o.planned, batch, others)]
                if taken and undoes:
                    raise _Taken
        except _Taken:  # some of them: the others are written one by one
            if len(orders) == 1:
                return [None]
            handed: list[Entry | None] = []
            for order in orders:
                handed += self.hand_out(batch, [order], [*ours, *(e.trial.number for e in handed if e is not None)])
            return handed
        if taken:
            void = Told("void", reason="another trial had this setting just before")
            writing.write(self.study, [End(t._trial_id, void, {keys.REQUEST: None}) for t in taken])
        return [None if t in taken else self._new_entry(t, batch) for t in written]

    def close_all(self, words: Sequence[tuple[Entry, Told, Mapping[str, Any]]]) -> list[bool]:
        """Write the outcomes of several trials, with notes, in one commit; returns which of them were still open."""
        return writing.write(self.study, [End(e.id, told, notes) for e, told, notes in words])

    def renew(self, trial_id: int, seconds: float) -> bool:
        """Let a trial's lease end in so many seconds; False if the trial has already ended."""
        try:
            for key, value in clock.lease_of(seconds).items():
                self.study._storage.set_trial_system_attr(trial_id, key, value)
        except optuna.exceptions.UpdateFinishedTrialError:
            return False
        return True

    def add_all(self, words: Sequence[tuple[Mapping[str, Any], Told, Mapping[str, Any]]]) -> list[int]:
        """Write trials that were not asked for, with notes, in one commit; returns their numbers."""
        distributions = self.read().distributions
        trials = [
            optuna.trial.create_trial(
                state=End(-1, told).state,
                values=writing.values_of(told, self.study),
                params=dict(params),
                distributions={name: widened(d, params[name]) for name, d in distributions.items() if name in params},
                user_attrs=writing.attrs_of(told, self.study),
                system_attrs=dict(notes),
            )
            for params, told, notes in words
        ]
        with atomic(self.study) as (storage, _):
            return [t.number for t in writing.create(self.study, storage, trials)]

    def _hand_out_alone(self, batch: Batch, order: Order, ours: Iterable[int]) -> Entry | None:
        if order.planned.queued is None:
            return self.hand_out(batch, [order], ours)[0]
        with atomic(self.study) as (storage, _):
            number = self._pop(storage, order, batch)
        found = None if number is None else self.entry(number)
        return None if found is None else found[0]

    def _pop(self, storage: BaseStorage, order: Order, batch: Batch) -> int | None:
        """Hand out a queued trial; None if somebody else did."""
        trial_id = order.planned.queued
        assert trial_id is not None
        try:
            if not storage.set_trial_state_values(trial_id, TrialState.RUNNING):
                return None
        except optuna.exceptions.UpdateFinishedTrialError:
            return None
        trial = _running(order, batch)
        for name, value in trial.params.items():
            d = trial.distributions[name]
            storage.set_trial_param(trial_id, name, d.to_internal_repr(value), d)
        for key, value in trial.user_attrs.items():
            storage.set_trial_user_attr(trial_id, key, value)
        for key, value in trial.system_attrs.items():
            storage.set_trial_system_attr(trial_id, key, value)
        return int(storage.get_trial(trial_id).number)

    def _others(self, storage: BaseStorage, batch: Batch, ours: Collection[int]) -> list[FrozenTrial]:
        """Trials of others that may have been written since the batch was planned."""
        if not batch.unplaced and max(ours) - batch.count < len(ours):
            return []  # there are no new trials
        again = any(planned.suggestion.again is not None for planned in batch.planned)
        states = None if again else (TrialState.RUNNING, TrialState.WAITING)
        found = storage.get_all_trials(self.study._study_id, deepcopy=False, states=states)
        return [t for t in found if t.number not in ours]

    def _is_taken(self, planned: Planned, batch: Batch, others: Sequence[FrozenTrial]) -> bool:
        """Whether one of these trials is where a planned one would be."""
        again = planned.suggestion.again
        if again is not None:
            return bool(deaths.tried_again_by(others, again))
        open_ones = [t for t in others if t.state in (TrialState.RUNNING, TrialState.WAITING)]
        return bool(batch.snapshot.rivals(planned.suggestion, stored.under_way(open_ones, batch.snapshot.settings)))

    def _new_entry(self, written: FrozenTrial, batch: Batch) -> Entry:
        """A trial that was written just now."""
        settings = batch.snapshot.settings
        trial = stored.single(written, {}, settings)
        assert trial is not None
        return _entry(written, trial, {}, settings, space_of(batch.distributions, settings.structure))


def entries_of(reading: Reading) -> list[Entry]:
    """Every trial, in order of number."""
    settings, space = reading.declared, space_of(reading.distributions, reading.structure)
    kept = reading.memo["entry", settings.lease, *space.parameters]

    def entry(frozen: FrozenTrial, trial: Trial) -> Entry:
        def made(trial: Trial) -> Entry:
            return _entry(frozen, trial, reading.attrs, settings, space)

        changes = not frozen.state.is_finished() or f"{keys.CORRECTED}{trial.number}" in reading.attrs
        return made(trial) if changes else kept.of(trial.number, trial, made)

    return [entry(frozen, trial) for frozen, trial in zip(reading.trials, reading.records(settings), strict=True)]


def _entry(frozen: FrozenTrial, trial: Trial, attrs: Mapping[str, Any], settings: Settings, space: Space) -> Entry:
    notes = frozen.system_attrs
    correction = attrs.get(f"{keys.CORRECTED}{trial.number}") or {}
    when = frozen.datetime_complete or frozen.datetime_start
    lease = clock.until(notes)
    if lease is None and settings.lease is not None and frozen.datetime_start is not None:
        lease = frozen.datetime_start.timestamp() + settings.lease
    running = frozen.state == TrialState.RUNNING
    ordered = {name: trial.params[name] for name in space.parameters if name in trial.params}
    return Entry(
        trial=replace(trial, params=ordered or trial.params),
        id=frozen._trial_id,
        queued=frozen.state == TrialState.WAITING,
        choosing=running and bool(space.conditions.lacking(frozen.params)),
        lease=lease if running else None,
        late=stored.died(frozen, attrs, settings) or trial.reason == deaths.EXPIRED,
        request=notes.get(keys.REQUEST),
        asked=notes.get(keys.ASKED),
        told_by=notes.get(keys.TOLD),
        finished=frozen.state.is_finished(),
        at=max(correction.get("at", 0.0), notes.get(keys.ORDER) or (0.0 if when is None else when.timestamp())),
        who=str((correction or {"who": notes.get(keys.WHO)}).get("who") or ""),
        began=frozen.datetime_start.timestamp() if frozen.datetime_start and keys.PROPOSAL in notes else None,
        ended=frozen.datetime_complete.timestamp() if frozen.datetime_complete else None,
        history=tuple(correction.get("past", ())),
        first=stored.first_told(frozen, settings) if correction and "below" not in correction else None,
    )


def _running(order: Order, batch: Batch) -> FrozenTrial:
    """A running trial, with all its attributes."""
    suggestion = order.planned.suggestion
    notes = {keys.REQUEST: order.request, keys.ASKED: order.lease, keys.PROPOSAL: asdict(suggestion)}
    return optuna.trial.create_trial(
        state=TrialState.RUNNING,
        params=dict(suggestion.params),
        distributions={name: widened(batch.distributions[name], v) for name, v in suggestion.params.items()},
        user_attrs={} if suggestion.p_safe is None else {keys.P_SAFE: suggestion.p_safe},
        system_attrs=notes | clock.lease_of(order.lease or batch.snapshot.settings.lease),
    )
