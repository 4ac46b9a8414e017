"""Several writes to a storage as one: all of them or none, and a single commit to wait for.

May import optimizer and below, and Optuna with the SQLAlchemy that it brings along.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from optuna import Study
from optuna.storages import BaseStorage, RDBStorage
from sqlalchemy.orm import Session


class _Held(Session):
    """A session that keeps what Optuna commits until the last write is done."""

    def commit(self) -> None:
        """Not yet: only let the next statement see it."""
        self.flush()

    def close(self) -> None:
        """Not yet."""


@contextmanager
def atomic(study: Study) -> Iterator[tuple[BaseStorage, bool]]:
    """A storage to write to from one thread, and whether an exception takes all of it back.

    Only databases can do so; other storages (a journal, memory) write each thing at once. Nothing of it enters
    Optuna's cache, which would keep what was taken back.
    """
    storage = getattr(study._storage, "_backend", study._storage)
    if not isinstance(storage, RDBStorage):
        yield storage, False
        return
    held = _Held(bind=storage.engine)
    registry = storage.scoped_session.registry
    registry.clear()
    registry.set(held)  # for this thread alone
    try:
        yield storage, True
        Session.commit(held)
    except BaseException:
        held.rollback()
        raise
    finally:
        registry.clear()
        Session.close(held)
