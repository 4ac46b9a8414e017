"""Worker processes that fit models, so that nobody who tells a result waits for them.

May import every other layer.

One process chooses the next trial, one looks at the study. What they hold is a cache: a worker that dies is replaced,
and whatever it was doing is done again.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, TypeVar

from crashbo.app.bench.looking import Expectation, Level, Look, Slice
from crashbo.integrations.optuna.insight import Insight
from crashbo.integrations.optuna.ledger import Ledger, LedgerSampler
from crashbo.integrations.optuna.rebuild import Lot, Proposal, Scene, seed_of
from crashbo.integrations.optuna.spaces import Axes

T = TypeVar("T")
Answer = tuple[Proposal, Any]
_TRIES = 2


class Worker:
    """One process that runs one function after the other. A dead one is replaced."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Begin; the answer comes later."""
        with self._lock:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_modest)
            return self._pool.submit(function, *arguments)

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Wait for the answer."""
        for turn in range(_TRIES):
            try:
                return self.submit(function, *arguments).result()
            except BrokenProcessPool:
                self.close()
                if turn == _TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


@dataclass(frozen=True)
class _Thought:
    """A proposal under way, and what it is for."""

    question: tuple[Any, ...]
    answer: "Future[Answer]"


class ThoughtfulSampler(LedgerSampler):
    """A LedgerSampler that has proposals made by a worker, if possible before they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.worker = Worker()
        self._ahead: _Thought | None = None

    def think_ahead(self, ledger: Ledger) -> None:
        """Begin to choose the next trial, as things stand now."""
        study, reading = ledger.study, ledger.read().reading
        settings = self.given.over(reading.declared)
        space = settings.space
        if space is None or any(t.state.name == "WAITING" for t in reading.trials) or not reading.trials:
            return  # what is queued needs no thought
        axes = Axes(space)
        scene = Scene.of(reading, axes, settings, study.direction)
        lot = Lot(seed_of(study, reading.trials), len(reading.trials))
        question = _question(scene, {}, lot)
        if self._ahead is not None and self._ahead.question == question:
            return
        memory = next(iter(self._memories.values()), None)
        self._ahead = _Thought(question, self.worker.submit(_ask, scene, {}, lot, memory))

    def _think(self, scene: Scene, fixed: Mapping[str, Any], lot: Lot, memory: Any) -> Answer:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.question == _question(scene, fixed, lot):
            try:
                return ahead.answer.result()
            except BrokenProcessPool:
                self.worker.close()
        return self.worker.run(_ask, scene, fixed, lot, memory)


@dataclass(frozen=True)
class Picture:
    """All that a page shows of what was learnt."""

    told: int
    levels: dict[str, Level]
    recommended: dict[str, Any] | None
    blame: dict[int, dict[str, float]]
    influence: dict[str, dict[str, float]]


class Viewer:
    """Looks at a study from a process of its own."""

    def __init__(self) -> None:
        self.worker = Worker()

    def picture(self, key: int, seen: Insight) -> Picture:
        """What the models make of the study; the worker keeps them under this key."""
        return self.worker.run(_picture, key, seen)

    def expect(self, key: int, seen: Insight, params: list[dict[str, Any]]) -> list[Expectation]:
        """What to expect of points."""
        return self.worker.run(_expect, key, seen, params)

    def slice(self, key: int, seen: Insight, axes: list[str], at: dict[str, Any], size: int) -> Slice:
        """Cost and P(safe) over one or two parameters."""
        return self.worker.run(_slice, key, seen, axes, at, size)

    def levels_before(self, key: int, seen: Insight, count: int) -> dict[str, Level]:
        """The thresholds when only so many trials had been told."""
        return self.worker.run(_levels_before, key, seen, count)

    def close(self) -> None:
        """End the process."""
        self.worker.close()


def _question(scene: Scene, fixed: Mapping[str, Any], lot: Lot) -> tuple[Any, ...]:
    """All that a proposal depends on, but for the models' memory, which only makes it faster."""
    return scene.trials, scene.voids, scene.settings, scene.constraints, dict(fixed), lot


# What follows runs in a worker.

_looks: dict[int, Look] = {}


def _modest() -> None:
    """Leave the machine to whoever tells results: they wait, the models do not."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's
    if hasattr(os, "nice"):
        os.nice(5)


def _ask(scene: Scene, fixed: Mapping[str, Any], lot: Lot, memory: Any) -> Answer:
    return scene.ask(fixed, lot, memory)


def _look(key: int, seen: Insight) -> Look:
    if key not in _looks:
        _looks.clear()
        _looks[key] = Look(seen)
    return _looks[key]


def _picture(key: int, seen: Insight) -> Picture:
    look = _look(key, seen)
    return Picture(len(look.told), look.levels(), look.recommended(), look.blame(), look.influence())


def _expect(key: int, seen: Insight, params: list[dict[str, Any]]) -> list[Expectation]:
    return _look(key, seen).expect(params)


def _slice(key: int, seen: Insight, axes: list[str], at: dict[str, Any], size: int) -> Slice:
    return _look(key, seen).slice(axes, at, size)


def _levels_before(key: int, seen: Insight, count: int) -> dict[str, Level]:
    return _look(key, seen).before(count).levels()
