"""Writes trials and their outcomes to a storage, many at a time. Nothing else writes outcomes.

May import optimizer and below, and Optuna with its dependency SQLAlchemy.

Optuna's own functions look up a trial again for each of its attributes. When many trials are asked for or told at once,
that is most of the work; so databases are written with a few statements here, into the tables of Optuna's models.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy
from optuna import Study as OptunaStudy
from optuna.distributions import distribution_to_json
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.orm import Session

from crashbo.integrations.optuna import keys
from crashbo.integrations.optuna.atomic import atomic
from crashbo.integrations.optuna.studies import goals_of
from crashbo.optimizer.told import Told

Rows = list[dict[str, Any]]
_LONGEST = 2000  # characters of a reason


def attrs_of(told: Told, study: OptunaStudy) -> dict[str, Any]:
    """What Optuna has no field for, as attributes of the trial."""
    attrs: dict[str, Any] = {keys.MEASURED + name: value for name, value in told.measured.items()}
    if told.state != "success" or told.cost is None:
        attrs |= {keys.STATE: told.state, keys.REASON: told.reason[:_LONGEST]}
    elif told.reason:
        attrs[keys.REASON] = told.reason[:_LONGEST]
    for key, names in ((keys.BLAME, told.blame), (keys.CENSORED, told.censored)):
        if names:
            attrs[key] = list(names)
    for key, values in ((keys.REACHED, told.reached), (keys.RISES, told.rises), (keys.RAN, told.as_run)):
        if values:
            attrs[key] = dict(values)
    if isinstance(told.cost, Mapping) and (unmeasured := [name for name in goals_of(study) if name not in told.cost]):
        attrs[keys.UNMEASURED] = unmeasured
    return attrs


def note(study: OptunaStudy, trial_id: int, told: Told) -> None:
    """Write the outcome of a trial whose end Optuna itself is about to store."""
    _note(study, trial_id, attrs_of(told, study))


def note_error(study: OptunaStudy, trial_id: int, reason: str) -> None:
    """Write why a trial is about to fail that is neither a crash nor void."""
    _note(study, trial_id, {keys.STATE: "error", keys.REASON: reason[:_LONGEST]})


def _note(study: OptunaStudy, trial_id: int, attrs: Mapping[str, Any]) -> None:
    for key, value in attrs.items():
        study._storage.set_trial_user_attr(trial_id, key, value)


@dataclass(frozen=True)
class End:
    """The outcome of a trial, to be written."""

    trial_id: int
    told: Told
    system: Mapping[str, Any] = field(default_factory=dict)  # attributes

    @property
    def state(self) -> TrialState:
        """Optuna's state for it."""
        return TrialState.COMPLETE if self.told.cost is not None else TrialState.FAIL


def write(study: OptunaStudy, ends: Sequence[End]) -> list[bool]:
    """Write the ends of several trials in one commit; returns which of them were still open. Others are unchanged."""
    with atomic(study) as (storage, _):
        if not isinstance(storage, RDBStorage):
            return [_write_one(storage, end, study) for end in ends]
        connection = storage.scoped_session().connection()
        fresh = [_close(connection, end) for end in ends]
        closed = [end for end, was_open in zip(ends, fresh, strict=True) if was_open]
        _set(connection, models.TrialUserAttributeModel, _rows((e.trial_id, attrs_of(e.told, study)) for e in closed))
        _set(connection, models.TrialSystemAttributeModel, _rows((e.trial_id, e.system) for e in closed))
        values = [
            _value(end.trial_id, objective, value)
            for end in closed
            for objective, value in enumerate(values_of(end.told, study) or ())
        ]
        if values:
            connection.execute(sqlalchemy.insert(models.TrialValueModel.__table__), values)
        return fresh


def create(study: OptunaStudy, storage: BaseStorage, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Write new trials, within a transaction of `atomic`; returns them with their numbers and ids."""
    if not trials:
        return []
    if isinstance(storage, RDBStorage):
        return _create(study._study_id, storage.scoped_session(), trials)
    ids = [storage.create_new_trial(study._study_id, template_trial=trial) for trial in trials]
    return [storage.get_trial(trial_id) for trial_id in ids]


def first_with(study: OptunaStudy, key: str, values: Collection[str]) -> dict[str, int]:
    """The number of the first trial with each value of a system attribute; as stored, not as somebody has cached it."""
    storage = getattr(study._storage, "_backend", study._storage)
    if not isinstance(storage, RDBStorage):
        trials = reversed(study.get_trials(deepcopy=False))
        return {str(t.system_attrs[key]): t.number for t in trials if t.system_attrs.get(key) in values}
    trial, attr = models.TrialModel.__table__, models.TrialSystemAttributeModel.__table__
    said = {json.dumps(value): value for value in values}
    found = (
        sqlalchemy.select(attr.c.value_json, sqlalchemy.func.min(trial.c.number))
        .join(trial, trial.c.trial_id == attr.c.trial_id)
        .where(trial.c.study_id == study._study_id, attr.c.key == key, attr.c.value_json.in_(list(said)))
        .group_by(attr.c.value_json)
    )
    with storage.engine.connect() as connection:
        return {said[text]: int(number) for text, number in connection.execute(found)}


def _create(study_id: int, session: Session, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The same in a database."""
    models.StudyModel.find_or_raise_by_id(study_id, session, for_update=True)  # one at a time: they are numbered
    rows = [
        models.TrialModel(
            study_id=study_id,
            number=None,
            state=t.state,
            datetime_start=t.datetime_start,
            datetime_complete=t.datetime_complete,
        )
        for t in trials
    ]
    session.add_all(rows)
    session.flush()
    before = min(rows, key=lambda row: int(row.trial_id)).count_past_trials(session)
    for i, row in enumerate(sorted(rows, key=lambda row: int(row.trial_id))):
        row.number = before + i
    session.flush()
    written = [_numbered(t, row) for t, row in zip(trials, rows, strict=True)]
    connection = session.connection()
    parts = {
        models.TrialParamModel: [_param(t, name) for t in written for name in t.params],
        models.TrialUserAttributeModel: _rows((t._trial_id, t.user_attrs) for t in written),
        models.TrialSystemAttributeModel: _rows((t._trial_id, t.system_attrs) for t in written),
        models.TrialValueModel: [_value(t._trial_id, j, v) for t in written for j, v in enumerate(t.values or ())],
    }
    for model, values in parts.items():
        if values:
            connection.execute(sqlalchemy.insert(model.__table__), values)  # type: ignore[attr-defined]
    return written


def _numbered(trial: FrozenTrial, row: Any) -> FrozenTrial:
    written = copy(trial)
    written.number, written._trial_id = int(row.number), int(row.trial_id)
    return written


def _param(trial: FrozenTrial, name: str) -> dict[str, Any]:
    d = trial.distributions[name]
    return {
        "trial_id": trial._trial_id,
        "param_name": name,
        "param_value": d.to_internal_repr(trial.params[name]),
        "distribution_json": distribution_to_json(d),
    }


def _close(connection: sqlalchemy.Connection, end: End) -> bool:
    """Set a trial's state; done first, since it locks the trial."""
    table = models.TrialModel.__table__
    running = sqlalchemy.update(table).where(table.c.trial_id == end.trial_id, table.c.state == TrialState.RUNNING)
    return connection.execute(running.values(state=end.state, datetime_complete=_now())).rowcount == 1


def _now() -> datetime:
    """The time as this version of Optuna stores it in a database: as UTC from version 5 on."""
    now = datetime.now()
    stored: datetime = getattr(models.TrialModel(datetime_complete=now), "_datetime_complete_utc", now)
    return stored


def _set(connection: sqlalchemy.Connection, model: Any, rows: Rows) -> None:
    """Set attributes, replacing old values."""
    if not rows:
        return
    table = model.__table__
    same = (table.c.trial_id == sqlalchemy.bindparam("of"), table.c.key == sqlalchemy.bindparam("named"))
    connection.execute(sqlalchemy.delete(table).where(*same), [{"of": r["trial_id"], "named": r["key"]} for r in rows])
    connection.execute(sqlalchemy.insert(table), rows)


def _rows(notes: Any) -> Rows:
    return [
        {"trial_id": trial_id, "key": key, "value_json": json.dumps(value)}
        for trial_id, attrs in notes
        for key, value in attrs.items()
    ]


def values_of(told: Told, study: OptunaStudy) -> list[float] | None:
    """What Optuna keeps of a cost, one number per goal; one that was not measured is infinitely bad."""
    if not isinstance(told.cost, Mapping):
        return None if told.cost is None else [told.cost]
    bad = {"minimize": math.inf, "maximize": -math.inf}
    return [told.cost.get(name, bad[direction]) for name, direction in goals_of(study).items()]


def _value(trial_id: int, objective: int, value: float) -> dict[str, Any]:
    stored, kind = models.TrialValueModel.value_to_stored_repr(value)
    return {"trial_id": trial_id, "objective": objective, "value": stored, "value_type": kind}


def _write_one(storage: BaseStorage, end: End, study: OptunaStudy) -> bool:
    """The same with Optuna's functions; the state comes last, so that a finished trial is complete."""
    try:
        for key, value in end.system.items():
            storage.set_trial_system_attr(end.trial_id, key, value)
        for key, value in attrs_of(end.told, study).items():
            storage.set_trial_user_attr(end.trial_id, key, value)
        storage.set_trial_state_values(end.trial_id, end.state, values_of(end.told, study))
    except UpdateFinishedTrialError:
        return False
    return True
