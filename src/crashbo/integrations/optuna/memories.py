"""The models' memory in a study's storage: a worker that joins begins with the hyperparameters that others have learnt.

May import optimizer and below, and Optuna.

It is written when hyperparameters were fitted, which is seldom once there are many trials, and read by who has none or
is about to fit them. Whoever writes last wins: it only makes the next proposal faster. EP's sites are not stored: they
are large, and soon found again.
"""

import zlib
from typing import Any

from optuna import Study as OptunaStudy

from crashbo.integrations.optuna import keys
from crashbo.integrations.optuna.snapshot import Snapshot
from crashbo.optimizer import saving

_MANY = 100  # trials from which a fit takes longer than a look into the storage; judgement: 0.2 s
_DUE = 1.03  # growth of the trials at which hyperparameters may be fitted again; that of search.fitting


def recalled(study: OptunaStudy, snapshot: Snapshot, own: Any) -> Any:
    """The memory to begin with: the worker's own, or a later one of another's."""
    told = sum(t.counts for t in snapshot.trials)
    if told < _MANY or (own is not None and told < _DUE * own["fitted_at"]):
        return own
    found = study._storage.get_study_system_attrs(study._study_id).get(_key(snapshot))
    return found if found is not None and (own is None or found["fitted_at"] > own["fitted_at"]) else own


def keep(study: OptunaStudy, snapshot: Snapshot, before: Any, memory: Any) -> None:
    """Store a memory whose hyperparameters were fitted since the one `before`."""
    if memory is None or memory["fitted_at"] < _MANY:
        return
    if before is None or memory["fitted_at"] > before["fitted_at"]:
        study._storage.set_study_system_attr(study._study_id, _key(snapshot), saving.light(memory))


def _key(snapshot: Snapshot) -> str:
    """By the parameters and the constraints of the models."""
    models = repr((snapshot.axes.names, snapshot.study.names))
    return f"{keys.MEMORY}{zlib.crc32(models.encode()):08x}"
