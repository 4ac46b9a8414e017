"""Processes that fit models, so that nobody who tells a result waits for them.

May import every other layer.

One process chooses the next trials, one looks at the study; each reads the store for itself, and neither writes to it:
they run at low priority, and whoever has begun to write keeps all others waiting. What they remember is a cache: a
worker that dies is replaced, and whatever it was doing is done again.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from crashbo.app.bench.bench import Bench
from crashbo.app.bench.overview import Expectation, Level, Overview, Slice
from crashbo.integrations.optuna.proposer import Batch, Proposer
from crashbo.optimizer.records import Trial

T = TypeVar("T")
Digest = tuple[Any, ...]  # of what the models learn from
_TRIES = 2


@dataclass(frozen=True)
class Place:
    """Which study is meant."""

    store: str
    name: str


class Worker:
    """One process that does one thing after the other for one study. A dead one is replaced."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Begin; the answer comes later."""
        with self._lock:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, context, initializer=_settle, initargs=(self._place,))
            return self._pool.submit(function, *arguments)

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Wait for the answer."""
        for _ in range(_TRIES - 1):
            try:
                return self.submit(function, *arguments).result()
            except BrokenProcessPool:
                self.close()
        return self.submit(function, *arguments).result()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


class Chooser:
    """Chooses the next trials, in a process of its own."""

    def __init__(self, place: Place) -> None:
        self.worker = Worker(place)
        self._ahead: Future[None] | None = None

    def propose(self, count: int, turn: int) -> Batch:
        """The next trials."""
        return self.worker.run(_propose, count, turn)

    def propose_ahead(self) -> None:
        """Choose the next trial now, so that whoever asks next need not wait."""
        if self._ahead is None or self._ahead.done():
            self._ahead = self.worker.submit(_propose_ahead)


@dataclass(frozen=True)
class Picture:
    """All that a page shows of what was learnt."""

    digest: Digest  # what it was learnt from
    levels: dict[str, Level]
    recommended: dict[str, Any] | None
    blame: dict[int, dict[str, float]]
    influence: dict[str, dict[str, float]]


class Viewer:
    """Looks at the study, from a process of its own."""

    def __init__(self, place: Place) -> None:
        self.worker = Worker(place)

    def picture(self) -> Picture | None:
        """What the models make of the study now; None before a trial was told."""
        return self.worker.run(_picture)

    def expect(self, params: list[dict[str, Any]]) -> list[Expectation]:
        """What to expect of points, by the last picture."""
        return self.worker.run(_expect, params)

    def slice(self, axes: list[str], at: dict[str, Any], size: int) -> Slice:
        """Cost and P(safe) over one or two parameters, by the last picture."""
        return self.worker.run(_slice, axes, at, size)

    def levels_before(self, count: int) -> dict[str, Level]:
        """The thresholds when only so many trials had been told, by the last picture."""
        return self.worker.run(_levels_before, count)


def digest_of(trials: Sequence[Trial]) -> Digest:
    """Everything that the models learn from, as a value that can be compared."""
    return tuple((t.number, t.state, t.cost, repr(t.measured), t.blame, t.censored) for t in trials if t.counts)


# What follows runs in a worker, for one study.


@dataclass
class _Cache:
    """What a worker remembers of its study, made when it is first needed."""

    place: Place

    @cached_property
    def bench(self) -> Bench:
        return Bench.open(self.place.store, self.place.name)

    @cached_property
    def proposer(self) -> Proposer:
        return Proposer(self.bench.ledger.study)

    @cached_property
    def overview(self) -> Overview:
        return Overview(self.bench.insight())


_cache = _Cache(Place("", ""))


def _settle(place: Place) -> None:
    """Leave the machine to whoever tells results: they wait, the models do not."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's
    if hasattr(os, "nice"):
        os.nice(10)
    _cache.place = place


def _propose(count: int, turn: int) -> Batch:
    return _cache.proposer.propose(count, turn)


def _propose_ahead() -> None:
    _cache.proposer.propose_ahead()


def _picture() -> Picture | None:
    digest = digest_of(_cache.bench.trials)
    if not digest:
        return None
    # What is told from here on may be in it already: then it is looked at once more.
    seen = _cache.overview = Overview(_cache.bench.insight())
    return Picture(digest, seen.levels(), seen.recommended(), seen.blame(), seen.influence())


def _expect(params: list[dict[str, Any]]) -> list[Expectation]:
    return _cache.overview.expect(params)


def _slice(axes: list[str], at: dict[str, Any], size: int) -> Slice:
    return _cache.overview.slice(axes, at, size)


def _levels_before(count: int) -> dict[str, Level]:
    return _cache.overview.before(count).levels()
