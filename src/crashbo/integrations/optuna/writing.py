"""Writes the outcomes of trials to a storage, many at a time. Nothing else writes outcomes.

May import optimizer and below, and Optuna with its dependency SQLAlchemy.

Optuna's own functions look up a trial again for each of its attributes. When many results arrive at once, that is most
of the work; so databases are written with a few statements here, into the tables of Optuna's models.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy
from optuna import Study as OptunaStudy
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages._rdb import models
from optuna.trial import TrialState

from crashbo.integrations.optuna import keys
from crashbo.integrations.optuna.atomic import atomic
from crashbo.optimizer.told import Told

Rows = list[dict[str, Any]]
_LONGEST = 2000  # characters of a reason


def attrs_of(told: Told) -> dict[str, Any]:
    """What Optuna has no field for, as attributes of the trial."""
    attrs: dict[str, Any] = {keys.MEASURED + name: value for name, value in told.measured.items()}
    if told.state != "success":
        attrs |= {keys.STATE: told.state, keys.REASON: told.reason[:_LONGEST]}
    elif told.reason:
        attrs[keys.REASON] = told.reason[:_LONGEST]
    for key, names in ((keys.BLAME, told.blame), (keys.CENSORED, told.censored)):
        if names:
            attrs[key] = list(names)
    for key, readings in ((keys.REACHED, told.reached), (keys.RISES, told.rises)):
        if readings:
            attrs[key] = dict(readings)
    return attrs


def note(study: OptunaStudy, trial_id: int, told: Told) -> None:
    """Write the outcome of a trial whose end Optuna itself is about to store."""
    _note(study, trial_id, attrs_of(told))


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
        return TrialState.COMPLETE if self.told.state == "success" else TrialState.FAIL


def write(study: OptunaStudy, ends: Sequence[End]) -> list[bool]:
    """Write the ends of several trials in one commit; returns which of them were still open. Others are unchanged."""
    with atomic(study) as (storage, _):
        if not isinstance(storage, RDBStorage):
            return [_write_one(storage, end) for end in ends]
        connection = storage.scoped_session().connection()
        fresh = [_close(connection, end) for end in ends]
        closed = [end for end, was_open in zip(ends, fresh, strict=True) if was_open]
        _set(connection, models.TrialUserAttributeModel, _rows((e.trial_id, attrs_of(e.told)) for e in closed))
        _set(connection, models.TrialSystemAttributeModel, _rows((e.trial_id, e.system) for e in closed))
        values = [_value(end.trial_id, end.told.cost) for end in closed if end.told.cost is not None]
        if values:
            connection.execute(sqlalchemy.insert(models.TrialValueModel.__table__), values)
        return fresh


def _close(connection: sqlalchemy.Connection, end: End) -> bool:
    """Set a trial's state; done first, since it locks the trial."""
    table = models.TrialModel.__table__
    running = sqlalchemy.update(table).where(table.c.trial_id == end.trial_id, table.c.state == TrialState.RUNNING)
    return connection.execute(running.values(state=end.state, datetime_complete=datetime.now())).rowcount == 1


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


def _value(trial_id: int, value: float) -> dict[str, Any]:
    stored, kind = models.TrialValueModel.value_to_stored_repr(value)
    return {"trial_id": trial_id, "objective": 0, "value": stored, "value_type": kind}


def _write_one(storage: BaseStorage, end: End) -> bool:
    """The same with Optuna's functions; the state comes last, so that a finished trial is complete."""
    try:
        for key, value in end.system.items():
            storage.set_trial_system_attr(end.trial_id, key, value)
        for key, value in attrs_of(end.told).items():
            storage.set_trial_user_attr(end.trial_id, key, value)
        cost = end.told.cost
        storage.set_trial_state_values(end.trial_id, end.state, None if cost is None else [cost])
    except UpdateFinishedTrialError:
        return False
    return True
