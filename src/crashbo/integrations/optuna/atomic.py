"""Several writes to a storage in one transaction: all or none, with a single commit.

May import optimizer and below, and Optuna with its dependency SQLAlchemy.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from optuna import Study as OptunaStudy
from optuna.storages import BaseStorage, RDBStorage
from sqlalchemy.orm import Session


class _Held(Session):
    """A session that delays Optuna's commits until the last write is done."""

    def commit(self) -> None:
        """Only flush, so that the next statement sees the change."""
        self.flush()

    def close(self) -> None:
        """Nothing yet."""


@contextmanager
def atomic(study: OptunaStudy) -> Iterator[tuple[BaseStorage, bool]]:
    """A storage for writes from one thread, and whether an exception rolls all of them back.

    Only databases can roll back; other storages (journal, memory) write immediately. Optuna's cache is bypassed, since
    it would keep what was rolled back.
    """
    storage = getattr(study._storage, "_backend", study._storage)  # Optuna's cache in front of a database
    if not isinstance(storage, RDBStorage):
        yield study._storage, False
        return
    held = _Held(bind=storage.engine)
    registry = storage.scoped_session.registry
    registry.clear()
    registry.set(held)  # for this thread only
    try:
        yield storage, True
        Session.commit(held)
    except BaseException:
        held.rollback()
        raise
    finally:
        registry.clear()
        Session.close(held)
