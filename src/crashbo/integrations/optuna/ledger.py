"""A study as a ledger: its trials with everything that the storage knows about them, and all ways to write to it.

May import optimizer and below, and Optuna. It does not check what may be written when: that is up to the caller.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import optuna
from optuna import Study as OptunaStudy
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna import clock, deaths, keys, stored, studies, writing
from crashbo.integrations.optuna.atomic import atomic
from crashbo.integrations.optuna.proposer import Batch, Planned
from crashbo.integrations.optuna.settings import Settings, declared_in, direction_of
from crashbo.integrations.optuna.snapshot import Suggestion
from crashbo.integrations.optuna.spaces import Distributions, widened
from crashbo.integrations.optuna.stored import Reading
from crashbo.integrations.optuna.writing import End
from crashbo.optimizer.records import Trial
from crashbo.optimizer.study import Direction
from crashbo.optimizer.told import Told
from crashbo.search.space import Choice, Float, Int, Parameter, Space


class _Taken(Exception):
    """Others have taken the point; the id of the trial to make void, if it could not be rolled back."""

    def __init__(self, trial_id: int | None) -> None:
        self.trial_id = trial_id


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
    def read_only(self) -> bool:
        """Whether the storage can be read, but not written to."""
        return studies.is_read_only(self.study._storage)

    def neighbours(self) -> list[dict[str, Any]]:
        """All studies in the storage: name, number of trials, when the first began."""
        return studies.summaries(self.study._storage)

    def read(self) -> Reading:
        """The current content of the storage."""
        return Reading.of(self.study)

    def entry(self, number: int) -> tuple[Entry, Settings, Mapping[str, Any]] | None:
        """One trial, read without the others, with the study's settings and attributes; None if it does not exist."""
        storage, attrs = self.study._storage, self.study.user_attrs
        settings = declared_in(attrs)
        if settings.space is None:  # then the parameters follow from all trials together
            return self._entry_among_all(number)
        try:
            found = storage.get_trial(storage.get_trial_id_from_study_id_trial_number(self.study._study_id, number))
        except (KeyError, OverflowError):
            return None
        trial = stored.single(found, attrs, settings)
        if trial is None:
            return self._entry_among_all(number)
        return _entry(found, trial, attrs, settings, list(settings.space)), settings, attrs

    def _entry_among_all(self, number: int) -> tuple[Entry, Settings, Mapping[str, Any]] | None:
        reading = self.read()
        entries = entries_of(reading)
        return (entries[number], reading.declared, reading.attrs) if 0 <= number < len(entries) else None

    def own(self, number: int) -> tuple[dict[str, Any], Told]:
        """Params and outcome of a trial as first written, whatever corrected it."""
        reading = self.read()
        frozen = reading.trials[number]
        return dict(frozen.params), stored.first_told(frozen, reading.declared)

    def set_attr(self, key: str, value: Any) -> None:
        """Write an attribute of the study, completely or not at all."""
        self.study.set_user_attr(key, value)

    def queue(self, params: Mapping[str, Any]) -> None:
        """Queue a setting, to be handed out before any proposal."""
        self.study.enqueue_trial(dict(params))

    def hand_out(
        self, batch: Batch, planned: Planned, request: str | None, lease: float | None, ours: Iterable[int] = ()
    ) -> int | None:
        """Write a planned trial; returns its number. A lease of None is the study's own.

        Returns None if others have taken the point, or the queued trial, since the batch was planned; `ours` are trials
        of this batch. Databases create one trial at a time, so the second of two workers sees the first one's.
        """
        seconds = lease or batch.snapshot.settings.lease
        notes = {keys.REQUEST: request, keys.ASKED: lease, keys.PROPOSAL: asdict(planned.suggestion)}
        notes |= clock.lease_of(seconds)
        try:
            with atomic(self.study) as (storage, undoes):
                if planned.queued is not None:
                    return self._pop(storage, planned, batch, notes)
                trial_id = storage.create_new_trial(self.study._study_id, _running(planned.suggestion, batch, notes))
                number = int(storage.get_trial(trial_id).number)
                if self._rivals(storage, planned, batch, {number, *ours}):
                    raise _Taken(None if undoes else trial_id)
                return number
        except _Taken as taken:
            if taken.trial_id is not None:
                void = Told("void", reason="another trial had this setting just before")
                writing.write(self.study, [End(taken.trial_id, void, {keys.REQUEST: None})])
            return None

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
        distributions, numbers = self.read().distributions, []
        trials = [
            optuna.trial.create_trial(
                state=End(-1, told).state,
                value=told.cost,
                params=dict(params),
                distributions={name: widened(d, params[name]) for name, d in distributions.items()},
                user_attrs=writing.attrs_of(told),
                system_attrs=dict(notes),
            )
            for params, told, notes in words
        ]
        with atomic(self.study) as (storage, _):
            for trial in trials:
                trial_id = storage.create_new_trial(self.study._study_id, template_trial=trial)
                numbers.append(int(storage.get_trial(trial_id).number))
        return numbers

    def _pop(self, storage: BaseStorage, planned: Planned, batch: Batch, notes: Mapping[str, Any]) -> int | None:
        """Hand out a queued trial; None if somebody else did."""
        trial_id = planned.queued
        assert trial_id is not None
        try:
            if not storage.set_trial_state_values(trial_id, TrialState.RUNNING):
                return None
        except optuna.exceptions.UpdateFinishedTrialError:
            return None
        trial = _running(planned.suggestion, batch, notes)
        for name, value in trial.params.items():
            d = trial.distributions[name]
            storage.set_trial_param(trial_id, name, d.to_internal_repr(value), d)
        for key, value in trial.user_attrs.items():
            storage.set_trial_user_attr(trial_id, key, value)
        for key, value in notes.items():
            storage.set_trial_system_attr(trial_id, key, value)
        return int(storage.get_trial(trial_id).number)

    def _rivals(self, storage: BaseStorage, planned: Planned, batch: Batch, ours: Collection[int]) -> list[int]:
        """Trials of others near this one that were written since it was planned."""
        if not batch.unplaced and max(ours) - batch.count < len(ours):
            return []  # there are no new trials of others
        again = planned.suggestion.again
        if again is not None:
            every = storage.get_all_trials(self.study._study_id, deepcopy=False)
            return deaths.tried_again_by((t for t in every if t.number not in ours), again)
        states = (TrialState.RUNNING, TrialState.WAITING)
        found = storage.get_all_trials(self.study._study_id, deepcopy=False, states=states)
        others = [t for t in found if t.number not in ours]
        return batch.snapshot.rivals(planned.suggestion, stored.under_way(others, batch.snapshot.settings))


def entries_of(reading: Reading) -> list[Entry]:
    """Every trial, in order of number."""
    settings, names = reading.declared, list(reading.distributions)
    pairs = zip(reading.trials, reading.records(settings), strict=True)
    return [_entry(frozen, trial, reading.attrs, settings, names) for frozen, trial in pairs]


def space_of(distributions: Distributions) -> Space:
    """The parameters as a space, for users."""
    return Space({name: _parameter(d) for name, d in distributions.items()})


def _entry(
    frozen: FrozenTrial, trial: Trial, attrs: Mapping[str, Any], settings: Settings, names: Sequence[str]
) -> Entry:
    notes = frozen.system_attrs
    correction = attrs.get(f"{keys.CORRECTED}{trial.number}") or {}
    when = frozen.datetime_complete or frozen.datetime_start
    lease = clock.until(notes)
    if lease is None and settings.lease is not None and frozen.datetime_start is not None:
        lease = frozen.datetime_start.timestamp() + settings.lease
    running = frozen.state == TrialState.RUNNING
    ordered = {name: trial.params[name] for name in names if name in trial.params}
    return Entry(
        trial=replace(trial, params=ordered or trial.params),
        id=frozen._trial_id,
        queued=frozen.state == TrialState.WAITING,
        choosing=running and not all(name in frozen.params for name in names),
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


def _running(suggestion: Suggestion, batch: Batch, notes: Mapping[str, Any]) -> FrozenTrial:
    """A running trial, with all its attributes."""
    return optuna.trial.create_trial(
        state=TrialState.RUNNING,
        params=dict(suggestion.params),
        distributions={name: widened(batch.distributions[name], v) for name, v in suggestion.params.items()},
        user_attrs={} if suggestion.p_safe is None else {keys.P_SAFE: suggestion.p_safe},
        system_attrs=dict(notes),
    )


def _parameter(d: BaseDistribution) -> Parameter:
    """A distribution as a parameter, for users."""
    if isinstance(d, CategoricalDistribution):
        return Choice(d.choices if len(d.choices) > 1 else (*d.choices, "—"))
    assert isinstance(d, FloatDistribution | IntDistribution)
    kind = Float if isinstance(d, FloatDistribution) else Int
    return kind(d.low, d.high if d.high > d.low else d.low + 1, log=d.log)  # type: ignore[arg-type]
