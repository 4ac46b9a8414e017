"""Opens Optuna's storages: a SQLite file, or any other by its URL.

May import optimizer and below, and Optuna.
"""

from pathlib import Path

import optuna
from optuna import Study as OptunaStudy
from optuna.storages import BaseStorage, RDBStorage

from crashbo.optimizer.study import Direction

_PATIENCE = 60.0  # seconds that a process waits for others to finish writing to the same SQLite file


def open_storage(store: str, *, create: bool = False) -> BaseStorage:
    """The storage of a file name or of one of Optuna's URLs."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would report every failed trial, which is expected here
    if "://" not in store:
        if not create and not Path(store).is_file():
            raise ValueError(f"store must be an existing file or a URL; got {store!r}. Begin with: crashbo new")
        store = f"sqlite:///{Path(store).absolute()}"
    try:
        if store.startswith("sqlite:"):
            storage = RDBStorage(store, engine_kwargs={"connect_args": {"timeout": _PATIENCE}})
            with storage.engine.connect() as connection:  # so that readers do not block writers
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return optuna.storages.get_storage(storage)
        return optuna.storages.get_storage(store)
    except Exception as error:  # anything that the database driver raises
        words = str(error).strip() or type(error).__name__
        raise ValueError(
            f"store must be a database that can be opened; got {store!r} ({words.splitlines()[0][:200]}). Check it."
        ) from None


def create_study(store: str, name: str, direction: Direction) -> OptunaStudy:
    """Create a study in a store."""
    storage = open_storage(store, create=True)
    if name in names(storage):
        raise ValueError(f"name must be new in its store; {name!r} is there. Choose another.")
    return optuna.create_study(storage=storage, study_name=name, direction=direction)


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


def names(storage: BaseStorage) -> list[str]:
    """Names of the studies in a storage."""
    return sorted(optuna.get_all_study_names(storage))
