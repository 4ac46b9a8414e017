"""The models' memory in a study's storage: a worker that joins begins with the hyperparameters that others have learnt.

May import optimizer and below, and Optuna.

It is written when hyperparameters were fitted, which is seldom once there are many trials, and read by who has none or
is about to fit them. Whoever writes last wins: it only makes the next proposal faster. EP's sites are not stored: they
are large; a worker goes on with its own, or soon finds them.

Of many workers one fits for all. Who is about to says so in the storage. The others go on with the hyperparameters that
there are, and those who have none wait for them, unless too long: a worker may die.
"""

import os
import threading
import time
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from optuna import Study as OptunaStudy

from crashbo.integrations.optuna import keys
from crashbo.integrations.optuna.snapshot import Snapshot
from crashbo.optimizer import saving

_MANY = 100  # trials from which a fit takes longer than a look into the storage; judgement: 0.2 s
_DUE = 1.03  # growth of the trials at which hyperparameters may be fitted again; that of search.fitting
_LATE = 1.2  # growth at which nobody waits for another's fit any more; judgement: a few fits are missing by then
_PATIENCE = 20.0  # seconds that a fit may take; judgement: twice what the first of 10,000 trials takes
_LOOK_AGAIN = 0.1  # seconds
_PROCESS = uuid.uuid4().hex


@dataclass(frozen=True)
class Recalled:
    """What a worker begins with."""

    memory: Any  # as plain values
    fitted_at: int | None = None  # what it says of itself, where it is taken as if it were of now: another fits anew
    stale: bool = False  # whether it knows trials that the snapshot does not: the storage is to be read again

    def onward(self, new: Any) -> tuple[Any, bool]:
        """The memory after an ask that left `new`, and whether its hyperparameters were fitted there."""
        if new is None or self.memory is None:
            return new, new is not None
        if repr(new["views"]) != repr(self.memory["views"]):
            return new, True
        return (new if self.fitted_at is None else {**new, "fitted_at": self.fitted_at}), False


def recalled(study: OptunaStudy, snapshot: Snapshot, own: Any) -> Recalled:
    """The memory to begin with: the worker's own, or a later one of another's."""
    told = sum(t.counts for t in snapshot.trials)
    if told < _MANY or (own is not None and told < _DUE * own["fitted_at"]):
        return Recalled(own)
    attrs = study._storage.get_study_system_attrs(study._study_id)
    found = _latest(attrs, snapshot, own)
    memory = found.memory
    if memory is not None and told < _DUE * memory["fitted_at"]:
        return found
    if memory is not None and told < _LATE * memory["fitted_at"] and _is_claimed(attrs, snapshot, memory):
        return replace(found, memory={**memory, "fitted_at": told}, fitted_at=memory["fitted_at"])
    if memory is None and _is_claimed(attrs, snapshot, None):
        return _awaited(study, snapshot)
    _claim(study, snapshot, told)
    if memory is None:  # those who began at the same moment have done so, too: the last to say so fits
        time.sleep(_LOOK_AGAIN)
        attrs = study._storage.get_study_system_attrs(study._study_id)
        return _awaited(study, snapshot) if _is_claimed(attrs, snapshot, None) else found
    return found


def kept(study: OptunaStudy, snapshot: Snapshot, before: Recalled, new: Any) -> Any:
    """The worker's memory after an ask; it is stored if hyperparameters were fitted there."""
    memory, fitted = before.onward(new)
    if fitted and memory["fitted_at"] >= _MANY:
        study._storage.set_study_system_attr(study._study_id, _key(keys.MEMORY, snapshot), saving.light(memory))
    return memory


def _latest(attrs: Mapping[str, Any], snapshot: Snapshot, own: Any) -> Recalled:
    """The worker's own memory, or a later one in the storage, with EP's sites of its own."""
    found = attrs.get(_key(keys.MEMORY, snapshot))
    if found is None or (own is not None and found["fitted_at"] <= own["fitted_at"]):
        return Recalled(own)
    here = {t.number for t in snapshot.trials if t.counts}
    return Recalled(saving.with_sites_of(found, own), stale=not saving.known_in(found) <= here)


def _claim(study: OptunaStudy, snapshot: Snapshot, told: int) -> None:
    """Say that this worker is about to fit so many trials."""
    claim: dict[str, Any] = {"by": _worker(), "told": told, "until": time.time() + _PATIENCE}
    study._storage.set_study_system_attr(study._study_id, _key(keys.FITTING, snapshot), claim)


def _awaited(study: OptunaStudy, snapshot: Snapshot) -> Recalled:
    """What another is fitting now; nothing if that takes too long. Trials may have been told meanwhile."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        time.sleep(_LOOK_AGAIN)
        attrs = study._storage.get_study_system_attrs(study._study_id)
        found = _latest(attrs, snapshot, None)
        if found.memory is not None or not _is_claimed(attrs, snapshot, None):
            return replace(found, stale=True)
    return Recalled(None, stale=True)


def _is_claimed(attrs: Mapping[str, Any], snapshot: Snapshot, memory: Any) -> bool:
    """Whether another worker is fitting hyperparameters that are newer than these."""
    claim = attrs.get(_key(keys.FITTING, snapshot))
    if claim is None or claim["by"] == _worker() or claim["until"] < time.time():
        return False
    return memory is None or bool(claim["told"] > memory["fitted_at"])


def _worker() -> str:
    """Who fits: a thread of a process, which may have been forked."""
    return f"{_PROCESS}-{os.getpid()}-{threading.get_ident()}"


def _key(prefix: str, snapshot: Snapshot) -> str:
    """By the parameters and the constraints of the models, with all that is given of them."""
    models = repr((snapshot.axes.names, snapshot.study.constraints, snapshot.study.noise))
    return f"{prefix}{zlib.crc32(models.encode()):08x}"
