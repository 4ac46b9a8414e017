"""Processes that fit models, so that telling a result never waits for a fit.

May import every other layer.

One process chooses the next trials, one evaluates the models for the page. Each reads the store itself and neither
writes to it: a slow writer would block all others. The first is as urgent as the server, since whoever asks waits for
it; the others run at low priority. What they remember is only a cache: a worker that dies is replaced, and its work is
done again. So none is waited for at the end, and none outlives the server, however that ends.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from crashbo.app.bench.bench import Bench
from crashbo.app.overview import Expectation, Level, Overview, Slice, history_of
from crashbo.integrations.optuna.comparing import SaidOfTwo
from crashbo.integrations.optuna.insight import Insight
from crashbo.integrations.optuna.proposer import Batch, Planned, Proposer, models_of
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.comparing import Ranked
from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.saving import memory_out
from crashbo.processes import Orphaned

T = TypeVar("T")
Digest = tuple[Any, ...]  # of the data that the models learn from
_TRIES = 2
_NICE = 10  # of what nobody waits for: those who ask or tell come first


@dataclass(frozen=True)
class Place:
    """Where a study is stored."""

    store: str
    name: str


class Worker:
    """One process that executes tasks for one study, one at a time. It is replaced if it dies."""

    def __init__(self, place: Place, niceness: int = _NICE) -> None:
        self._place, self._niceness = place, niceness
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._closed = False

    def submit(self, function: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Start a task; its result is in the future."""
        with self._lock:
            if self._closed:
                raise BrokenProcessPool("the server is being stopped")
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                said = (self._place, os.getpid(), self._niceness)
                self._pool = ProcessPoolExecutor(1, context, initializer=_settle, initargs=said)
            return self._pool.submit(function, *arguments)

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a task and wait for its result."""
        for _ in range(_TRIES - 1):
            try:
                return self.submit(function, *arguments).result()
            except BrokenProcessPool:
                self._drop()
        return self.submit(function, *arguments).result()

    def close(self) -> None:
        """End the process, whatever it is doing, for good."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
            if pool is not None:
                for process in [*(pool._processes or {}).values()]:  # `kill_workers`, from Python 3.14 on
                    process.kill()
                pool.shutdown(wait=False, cancel_futures=True)


class Chooser:
    """Chooses the next trials, in a process of its own: no less urgent than the server, since whoever asks waits."""

    def __init__(self, place: Place) -> None:
        self.worker = Worker(place, niceness=0)
        self._ahead: Future[None] | None = None
        self._last: Batch | None = None  # of the last fit
        self._fit: MadeFit | None = None  # news for it

    def learn(self, fit: "MadeFit | None") -> None:
        """A fit that another process made: while many ask, it saves one of its own."""
        self._fit = fit or self._fit

    def some(self, count: int, turn: int, onward: bool, context: Mapping[str, Any] | None = None) -> Batch | None:
        """The first of the next trials, as soon as they are chosen; see `Proposer.some`."""
        fit, self._fit = self._fit, None
        said = self.worker.run(_propose, count, turn, onward and self._last is not None, fit, context)
        if isinstance(said, Batch):
            self._last = said
            return said
        return None if said is None or self._last is None else replace(self._last, planned=said)

    def propose_ahead(self) -> None:
        """Choose the next trial now, so that the next request does not have to wait."""
        if self._ahead is None or self._ahead.done():
            self._ahead = self.worker.submit(_propose_ahead)

    @property
    def ready(self) -> bool:
        """Whether nothing is being chosen ahead."""
        return self._ahead is None or self._ahead.done()


class MadeFit(NamedTuple):
    """The models' memory of a fit, and what they are models of."""

    key: tuple[Any, ...]
    memory: Any


@dataclass(frozen=True)
class Picture:
    """Everything that a page shows about the models."""

    digest: Digest  # of the data that it was learnt from
    levels: dict[str, Level]
    recommended: dict[str, Any] | None
    blame: dict[int, dict[str, float]]
    influence: dict[str, dict[str, float]]
    exhausted: bool  # whether nothing is left to gain
    points: tuple[int, ...]  # numbers of told trials at which to show the thresholds
    front: dict[str, Any] | None = None  # of several goals, see Overview
    ranking: tuple[Ranked, ...] = ()  # where trials were compared, the best first


class Viewer:
    """Evaluates the models, in a process of its own."""

    def __init__(self, place: Place) -> None:
        self.worker = Worker(place)

    def fit(self) -> MadeFit | None:
        """Fit the models, for the next picture; None before a trial was told."""
        return self.worker.run(_fit)

    def picture(self) -> Picture | None:
        """What the models say about the study now; None before a trial was told."""
        return self.worker.run(_picture)

    def expect(self, params: list[dict[str, Any]]) -> list[Expectation]:
        """Predictions at points, from the models of the last picture."""
        return self.worker.run(_expect, params)

    def slice(self, axes: list[str], at: dict[str, Any], size: int) -> Slice:
        """Cost and P(safe) over one or two parameters, from the models of the last picture."""
        return self.worker.run(_slice, axes, at, size)

    def check(self, voids: int) -> list[Finding]:
        """What in the trials speaks against the models, and advice; there are so many voids, which no picture shows."""
        return self.worker.run(_check, voids)

    def levels_before(self, count: int) -> dict[str, Level]:
        """The thresholds after the first `count` told trials of the last picture."""
        return self.worker.run(_levels_before, count)


def digest_of(trials: Sequence[Trial], comparisons: Sequence[SaidOfTwo] = ()) -> Digest:
    """The data that the models learn from, as a hashable value; a comparison belongs to the later one of its trials."""
    pairs: dict[int, list[Comparison]] = {}
    for said in comparisons:
        if not said.undone:
            pairs.setdefault(max(said.comparison.better, said.comparison.worse), []).append(said.comparison)
    return tuple(
        (t.number, t.state, repr(t.cost), repr(t.measured), t.blame, t.censored, repr((t.reached, t.rises, t.as_run)))
        + ((*pairs[t.number],) if t.number in pairs else ())
        for t in trials
        if t.counts
    )


# The rest of this file runs in a worker process, for one study.


@dataclass
class _Cache:
    """What a worker keeps of its study, created when first needed."""

    place: Place
    digest: Digest = ()  # of what the overview was learnt from

    @cached_property
    def bench(self) -> Bench:
        return Bench.open(self.place.store, self.place.name)

    @cached_property
    def proposer(self) -> Proposer:
        return Proposer(self.bench.ledger.study)

    @cached_property
    def overview(self) -> Overview[Insight]:
        return Overview(self.bench.insight())


_cache = _Cache(Place("", ""))


def _settle(place: Place, server: int, niceness: int) -> None:
    """Prepare a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the server
    Orphaned(server).end_when_true()  # else it would wait for its next task for ever
    if niceness and hasattr(os, "nice"):
        os.nice(niceness)
    _cache.place = place


def with_bench(function: Callable[[Bench], T]) -> T:
    """What a function makes of the study."""
    return function(_cache.bench)


def limits_of(bench: Bench, params: dict[str, Any] | None = None) -> dict[str, float | None]:
    """The readings at which a guard stops a trial of the study, at params or any, by constraint."""
    return Overview(bench.insight()).limits(params)


def _propose(
    count: int, turn: int, onward: bool, fit: MadeFit | None, context: Mapping[str, Any] | None = None
) -> Batch | tuple[Planned, ...] | None:
    """The first trials of a batch; onward the trials alone, since the rest is known and large."""
    if fit is not None:
        _cache.proposer.learn(fit.key, fit.memory)
    found = _cache.proposer.some(count, turn, onward=onward, context=context)
    return found.planned if onward and found is not None else found


def _propose_ahead() -> None:
    _cache.proposer.propose_ahead()


def _fit() -> MadeFit | None:
    _cache.digest = digest_of(_cache.bench.trials, _cache.bench.comparisons())
    # Trials told from here on may already be included: then the picture is computed once more.
    _cache.overview = Overview(_cache.bench.insight())
    models = _cache.overview.view.models if _cache.digest else None
    return None if models is None else MadeFit(models_of(_cache.overview.sight.snapshot), memory_out(models.memory))


def _picture() -> Picture | None:
    digest, seen = _cache.digest, _cache.overview
    if not digest:
        return None
    levels, recommended, blame = seen.levels(), seen.recommended(), seen.blame()
    points, ranking = tuple(history_of(seen.told)), tuple(seen.ranking())
    made = levels, recommended, blame, seen.influence(), seen.exhausted(), points, seen.front(), ranking
    return Picture(digest, *made)


def _expect(params: list[dict[str, Any]]) -> list[Expectation]:
    return _cache.overview.expect(params)


def _slice(axes: list[str], at: dict[str, Any], size: int) -> Slice:
    return _cache.overview.slice(axes, at, size)


def _check(voids: int) -> list[Finding]:
    if len(_cache.overview.sight.snapshot.voids) != voids:
        _cache.overview = Overview(_cache.bench.insight())
    return _cache.overview.check()


def _levels_before(count: int) -> dict[str, Level]:
    return _cache.overview.before(count).levels(limits=False)
