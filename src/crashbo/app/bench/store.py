"""Where studies live: a SQLite file by default, any storage of Optuna's else. The app's door to Optuna.

May import every other layer.
"""

import os
from pathlib import Path
from typing import Any

import optuna
from optuna import Study
from optuna.storages import BaseStorage, RDBStorage

from crashbo.app.bench.definition import Definition
from crashbo.integrations.optuna import declare

DEFAULT = "crashbo.db"
EXTRAS = "crashbo:bench"
_PATIENCE = 60.0  # seconds that one process waits for another to finish writing to the same SQLite file


def open_storage(store: str, *, create: bool = False) -> BaseStorage:
    """The storage of a file name or of one of Optuna's URLs."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it reports every failed trial; here they are expected
    if "://" not in store:
        if not create and not Path(store).is_file():
            raise ValueError(f"store must be an existing file or a URL; got {store!r}. Begin with: crashbo new")
        store = f"sqlite:///{Path(store).absolute()}"
    if store.startswith("sqlite:"):
        options: dict[str, Any] = {"connect_args": {"timeout": _PATIENCE}}
        return optuna.storages.get_storage(_opened(store, options))
    return optuna.storages.get_storage(store)


def _opened(url: str, options: dict[str, Any]) -> RDBStorage:
    try:
        storage = RDBStorage(url, engine_kwargs=options)
        with storage.engine.connect() as connection:  # readers and a writer at once, and half the waiting for the disk
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        return storage
    except Exception as error:  # whatever the database's driver raises
        raise ValueError(
            f"store must be a database that can be opened; got {url!r} ({_first(error)}). Check it."
        ) from None


def create_study(store: str, definition: Definition) -> Study:
    """A new study in a store. Its start points are queued."""
    storage = open_storage(store, create=True)
    if definition.name in names(storage):
        raise ValueError(f"name must be new in its store; {definition.name!r} is there. Choose another.")
    study = optuna.create_study(storage=storage, study_name=definition.name, direction=definition.direction)
    study.set_user_attr(EXTRAS, definition.extras())
    declare(
        study,
        space=definition.space,
        constraints=definition.constraints,
        risk=definition.risk,
        noise=definition.noise,
        strategy=definition.strategy,
        lease=definition.lease,
    )
    for params in definition.start:
        study.enqueue_trial(dict(params))
    return study


def load_study(store: str, name: str | None = None) -> Study:
    """A study of a store; without a name the only one there is."""
    storage = open_storage(store)
    found = names(storage)
    if name is None and len(found) != 1:
        raise ValueError(f"study must be named where a store has {len(found)}: {', '.join(found)}. Say --study NAME.")
    chosen = found[0] if name is None else name
    if chosen not in found:
        raise ValueError(f"study must be one of {', '.join(found) or 'none yet'}; got {chosen!r}. Mend the name.")
    return optuna.load_study(storage=storage, study_name=chosen)


def names(storage: BaseStorage) -> list[str]:
    """Names of the studies in a storage."""
    return sorted(optuna.get_all_study_names(storage))


def default_store() -> str:
    """Where studies are kept unless said otherwise."""
    return os.environ.get("CRASHBO_STORE", DEFAULT)


def _first(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
