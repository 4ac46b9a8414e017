"""A journal for who asks and tells by hand: every event is on disk before the call returns.

May import strategies and below.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, Unpack

from crashbo.optimizer.journal import Journal
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.tables.old_data import TableReading
from crashbo.optimizer.told import Said, takes_said
from crashbo.search.space import Params


class JournaledOptimizer:
    """An Optimizer whose every ask, tell and prefer is on disk before it returns. All else is the Optimizer's."""

    def __init__(self, optimizer: Optimizer, journal: Journal) -> None:
        self._optimizer, self._journal = optimizer, journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    def __repr__(self) -> str:
        return repr(self._optimizer)

    def ask(self, context: Params | None = None) -> Trial:
        """The next trial to run."""
        return self.ask_batch(1, context)[0]

    def ask_batch(self, n: int, context: Params | None = None) -> list[Trial]:
        """The next n trials to run at the same time."""
        batch = self._optimizer.ask_batch(n, context)
        for trial in batch:
            self._journal.asked(trial, self._optimizer)
        return batch

    @takes_said
    def tell(self, trial: Trial | int | Params, *, replace: bool = False, **said: Unpack[Said]) -> Trial:
        """Say what came of a trial, as `Optimizer.tell`."""
        told = self._optimizer.tell(trial, replace=replace, **said)
        self._journal.told(told)
        return told

    def tell_table(self, table: Any, **how: Any) -> TableReading:
        """Tell trials that were made before, as `Optimizer.tell_table`; they are written as one event."""
        reading = self._optimizer.tell_table(table, **how)
        if reading.trials or reading.comparisons:
            self._journal.told_table(reading.trials, reading.comparisons)
        return reading

    def prefer(
        self, better: Trial | int, worse: Trial | int, tie: bool = False, *, replace: bool = False
    ) -> Comparison:
        """Say which of two successes was better, as `Optimizer.prefer`."""
        new = self._optimizer.prefer(better, worse, tie, replace=replace)
        self._journal.preferred(new, again=replace)
        return new

    def unprefer(self, one: Trial | int | None = None, other: Trial | int | None = None) -> Comparison:
        """Take back the last comparison, or the last one of these two."""
        old = self._optimizer.unprefer(one, other)
        self._journal.unpreferred(old)
        return old


@contextmanager
def journaled(path: str | PathLike[str], optimizer: Optimizer) -> Iterator[JournaledOptimizer]:
    """The study that the file holds, or this one, which the file then holds; nothing that was told is ever lost.

    Args:
        path: of the file; a second call with the same file resumes.
        optimizer: a study without trials, as it was defined the first time.
    """
    journal = Journal(path)
    try:
        yield JournaledOptimizer(journal.open_study(optimizer), journal)
    finally:
        journal.close()
