"""The current state of the study, models included, and the listeners that are told when it changes.

May import every other layer. One thread keeps it up to date; fits run in processes of their own (`bench.workers`).
"""

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from crashbo.app.bench.bench import Bench
from crashbo.app.bench.store import load
from crashbo.app.bench.workers import (
    Chooser,
    Digest,
    Picture,
    Place,
    Viewer,
    Worker,
    digest_of,
    limits_of,
    with_bench,
)
from crashbo.app.overview import Expectation, Level, Slice
from crashbo.app.server.ask_queue import AskQueue
from crashbo.app.server.changes import Changes
from crashbo.app.server.films import Films
from crashbo.integrations.optuna.comparing import SaidOfTwo
from crashbo.integrations.optuna.ledger import Entry
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.records import Trial

_LOOK_AGAIN = 1.0  # seconds between readings of the store, which others may write to
_BREATH = 0.2  # seconds at least, so that many tells at once need only one reading
_log = logging.getLogger("crashbo")

T = TypeVar("T")
Signs = dict[str, Any] | None  # what a listener gets; None: the server is being stopped


class Live:
    """A study with its models, kept up to date in the background."""

    def __init__(self, store: str, name: str | None = None, films: str | None = None) -> None:
        self.films = Films.of(films)
        ledger = load(store, name)
        place = Place(store, ledger.name)
        self._chooser, self._viewer, self._writer = Chooser(place), Viewer(place), Worker(place)
        self.bench = Bench(ledger, self._chooser.some)
        self.asks = AskQueue(self.bench)
        self.boot = uuid.uuid4().hex
        self.changes = Changes()
        self.revision = 0
        self.thinking = False
        self.picture: Picture | None = None
        self.expected: dict[int, Expectation] = {}  # by number of the running trials
        self.history: dict[str, list[Level]] = {}
        self.findings: list[Finding] | None = None  # None until they are known
        self._voids = 0  # that they were found with
        self._levels: dict[Digest, dict[str, Level]] = {}  # by the data that they were learnt from
        self._limits: tuple[tuple[Digest, int | None], dict[str, float | None]] | None = None  # newer than the picture
        self._seen: tuple[list[Entry], list[SaidOfTwo]] | None = None  # as last read from the store
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Queue[Signs]]] = set()
        self._poke, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="crashbo-live", daemon=True)

    def start(self) -> None:
        """Start the threads."""
        self.asks.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop the threads and the worker processes, and tell the listeners that nothing will come any more."""
        self._stopped.set()
        self._poke.set()
        self._send(None)
        for worker in (self._viewer.worker, self._chooser.worker, self._writer):
            worker.close()
        self.asks.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def poke(self) -> None:
        """Something was written: tell the listeners, and read the store at once."""
        self._publish()
        self._poke.set()

    def listen(self) -> "asyncio.Queue[Signs]":
        """A queue of changes from now on, for the running event loop."""
        queue: asyncio.Queue[Signs] = asyncio.Queue(maxsize=100)
        self._listeners.add((asyncio.get_running_loop(), queue))
        if self._stopped.is_set():
            _put(queue, None)
        return queue

    def leave(self, queue: "asyncio.Queue[Signs]") -> None:
        """Remove a listener's queue."""
        self._listeners = {pair for pair in self._listeners if pair[1] is not queue}

    def slice(self, axes: list[str], at: dict[str, Any], size: int) -> Slice | None:
        """Cost and P(safe) over one or two parameters; None before a trial was told."""
        return None if self.picture is None else self._viewer.slice(axes, at, size)

    def limits(self, trial: Trial | None = None) -> dict[str, float | None]:
        """The readings at which a guard stops a trial, or any, by constraint, with all that was told; else None.

        The picture may be several trials behind, and whoever asks is about to run a machine: it is not good enough.
        """
        digest = digest_of(self.bench.trials, self.bench.comparisons())
        if trial is None and self.picture is not None and self.picture.digest == digest:
            return {name: level.limit for name, level in self.picture.levels.items()}
        key = digest, None if trial is None else trial.number
        if self._limits is None or self._limits[0] != key:
            self._limits = key, self.in_background(partial(limits_of, params=None if trial is None else trial.params))
        return self._limits[1]

    def in_background(self, function: Callable[[Bench], T]) -> T:
        """What a function of the module level makes of the study, in a process of its own."""
        made: T = self._writer.run(with_bench, function)
        return made

    def signs(self) -> dict[str, Any]:
        """The message that is sent to listeners."""
        ready = self._chooser.ready
        return {"revision": self.revision, "boot": self.boot, "thinking": self.thinking, "ready": ready}

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self._poke.wait(_LOOK_AGAIN)
            self._poke.clear()
            try:
                self._refresh()
                self._stopped.wait(_BREATH)
            except Exception:  # the store may be unreachable for a while, or a worker was killed: try again later
                if self._stopped.is_set():
                    return
                _log.exception("could not look at the study; trying again")
                self._set_thinking(False)
                self._stopped.wait(_LOOK_AGAIN)

    def _refresh(self) -> None:
        entries, comparisons = self.bench.entries(), self.bench.comparisons()
        if (entries, comparisons) != self._seen:
            self._seen = entries, comparisons
            self._publish()
        if not self.asks.busy:  # waiting requests come first
            self._chooser.propose_ahead()  # before the picture: somebody may be about to ask
        digest = digest_of([e.trial for e in entries], comparisons)
        if digest != (self.picture.digest if self.picture else ()):
            self._look()
        self._expect(entries)
        self._check(sum(e.trial.state == "void" for e in entries))
        self._remember()

    def _look(self) -> None:
        """Fit the models again, in the worker process."""
        self._set_thinking(True)
        self._chooser.learn(self._viewer.fit())
        self.picture, self.expected, self.findings = self._viewer.picture(), {}, None
        if self.picture is not None:
            self._levels[self.picture.digest] = self.picture.levels
        self._draw_history()
        self._expect(self.bench.entries())
        self.thinking = False
        self._publish()

    def _expect(self, entries: list[Entry]) -> None:
        """Update the predictions for the running trials."""
        pending = [e.trial for e in entries if e.open]
        if self.picture is None or {t.number for t in pending} == set(self.expected):
            return
        found = self._viewer.expect([t.params for t in pending])
        self.expected = {t.number: e for t, e in zip(pending, found, strict=True)}
        self._publish()

    def _check(self, voids: int) -> None:
        """What speaks against the models: after everything that somebody waits for."""
        known = self.findings is not None and voids == self._voids
        if self.picture is None or known or self._poke.is_set():
            return
        self.findings, self._voids = self._viewer.check(voids), voids
        self._publish()

    def _remember(self) -> None:
        """Compute one more point of the thresholds' history, newest first."""
        if self.picture is None or self._poke.is_set():
            return
        digest = self.picture.digest
        for count in reversed(self.picture.points):
            if digest[:count] not in self._levels:
                self._levels[digest[:count]] = self._viewer.levels_before(count)
                self._draw_history()
                self._publish()
                self._poke.set()  # there may be more
                return

    def _draw_history(self) -> None:
        digest = self.picture.digest if self.picture else ()
        points = self.picture.points if self.picture else ()
        known = {n: self._levels[digest[:n]] for n in points if digest[:n] in self._levels}
        self._levels = {digest[:n]: levels for n, levels in known.items()}  # the others no longer match the trials
        names = self.picture.levels if self.picture else ()
        self.history = {name: [levels[name] for levels in known.values() if name in levels] for name in names}

    def _set_thinking(self, now: bool) -> None:
        if self.thinking != now:
            self.thinking = now
            self._publish()

    def _publish(self) -> None:
        self.revision += 1
        self._send(self.signs())

    def _send(self, signs: Signs) -> None:
        for loop, queue in list(self._listeners):
            try:
                loop.call_soon_threadsafe(_put, queue, signs)
            except RuntimeError:
                continue  # its event loop is closed


def _put(queue: "asyncio.Queue[Signs]", signs: Signs) -> None:
    if queue.full():  # a slow listener only needs the latest
        queue.get_nowait()
    queue.put_nowait(signs)
