"""Opens Optuna's storages: a SQLite file, or any other by its URL.

May import optimizer and below, and Optuna.
"""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import optuna
from optuna import Study as OptunaStudy
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage, RDBStorage
from optuna.study import StudyDirection

from crashbo.optimizer.objectives import Direction

_PATIENCE = 60.0  # seconds that a process waits for others to finish writing to the same SQLite file
_READ_ONLY = "mode=ro"


def open_storage(store: str, *, create: bool = False) -> BaseStorage:
    """The storage of a file name or of one of Optuna's URLs. A file that may not be written to can be read."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would report every failed trial, which is expected here
    if "://" not in store:
        if not create and not Path(store).is_file():
            raise ValueError(f"store must be an existing file or a URL; got {store!r}. Begin with: crashbo new")
        if not create and not _is_writable(Path(store)):
            return _open_read_only(Path(store))
        store = f"sqlite:///{Path(store).absolute()}"
    try:
        if store.startswith("sqlite:"):
            storage = RDBStorage(store, engine_kwargs={"connect_args": {"timeout": _PATIENCE}})
            with storage.engine.connect() as connection:  # so that readers do not block writers
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return optuna.storages.get_storage(storage)
        return optuna.storages.get_storage(store)
    except Exception as error:  # anything that the database driver raises
        raise _unopened(store, error) from None


def is_read_only(storage: BaseStorage) -> bool:
    """Whether a storage was opened for reading alone."""
    backend = getattr(storage, "_backend", storage)
    return isinstance(backend, RDBStorage) and _READ_ONLY in str(backend.url)


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)  # SQLite writes files beside it


def _open_read_only(path: Path) -> BaseStorage:
    """A SQLite file that may only be read; where it cannot be locked either, as it is at this moment."""
    for more in ("", "&immutable=1"):
        url = f"sqlite:///file:{quote(str(path.absolute()))}?{_READ_ONLY}{more}&uri=true"
        try:
            storage = RDBStorage(url, skip_compatibility_check=True, skip_table_creation=True)
            with storage.engine.connect() as connection:
                connection.exec_driver_sql("SELECT count(*) FROM studies")
            return optuna.storages.get_storage(storage)
        except Exception as error:  # anything that the database driver raises
            failed = error
    raise _unopened(str(path), failed) from None


def _unopened(store: str, error: Exception) -> ValueError:
    words = str(error).strip() or type(error).__name__
    return ValueError(
        f"store must be a database that can be opened; got {store!r} ({words.splitlines()[0][:200]}). Check it."
    )


def create_study(
    store: str, name: str, direction: Direction, objectives: Mapping[str, Direction] | None = None
) -> OptunaStudy:
    """Create a study in a store, with one cost or with several objectives."""
    storage = open_storage(store, create=True)
    if name in names(storage):
        raise ValueError(f"name must be new in its store; {name!r} is there. Choose another.")
    if not objectives:
        return optuna.create_study(storage=storage, study_name=name, direction=direction)
    study = optuna.create_study(storage=storage, study_name=name, directions=list(objectives.values()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        study.set_metric_names(list(objectives))
    return study


def load_study(store: str, name: str | None = None) -> OptunaStudy:
    """Load a study of a store; without a name, the only one."""
    storage = open_storage(store)
    found = names(storage)
    if name is None and len(found) != 1:
        raise ValueError(f"study must be named where a store has {len(found)}: {', '.join(found)}. Say --study NAME.")
    chosen = found[0] if name is None else name
    if chosen not in found:
        raise ValueError(f"study must be one of {', '.join(found) or 'none yet'}; got {chosen!r}. Mend the name.")
    return optuna.load_study(storage=storage, study_name=chosen)


def summaries(storage: BaseStorage) -> list[dict[str, Any]]:
    """The studies in a storage: name, number of trials, and when the first began, in seconds since 1970."""
    found = sorted(optuna.get_all_study_summaries(storage, include_best_trial=False), key=lambda s: s.study_name)
    began = [None if s.datetime_start is None else s.datetime_start.timestamp() for s in found]
    return [{"name": s.study_name, "trials": s.n_trials, "began": when} for s, when in zip(found, began, strict=True)]


def names(storage: BaseStorage) -> list[str]:
    """Names of the studies in a storage."""
    return sorted(optuna.get_all_study_names(storage))


def direction_of(direction: StudyDirection) -> Direction:
    """Optuna's direction as a word."""
    return "maximize" if direction == StudyDirection.MAXIMIZE else "minimize"


def goals_of(study: OptunaStudy) -> dict[str, Direction]:
    """The goals of a study with several, by their metric names, else as Optuna's tables name them; none of others."""
    directions = study.directions
    if len(directions) < 2:
        return {}
    names = study.metric_names or [f"values_{i}" for i in range(len(directions))]
    return dict(zip(names, map(direction_of, directions), strict=True))
