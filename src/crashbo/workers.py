"""Processes that call one function again and again, and may die of it: each is replaced, and how it died is told.

Belongs to all layers, so it needs the standard library only.

Between us and the workers stands a keeper, a process that does little and so cannot be harmed. It starts the workers,
holds them to their limits, and ends what a worker leaves behind when it dies. It adopts orphans, so nothing that an
experiment started escapes it; and when we ourselves are killed, it ends all of them and then itself.

    us ── keeper ─┬─ worker ── whatever a call starts
                  └─ worker ── ...

Where the start method is fork (on Linux, unless multiprocessing was told otherwise) a worker inherits everything that
was loaded, so any function will do. Where it is spawn, the function is sent, and must be of a kind that can be.
"""

import atexit
import contextlib
import itertools
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from crashbo import processes

_TICK = 0.2  # seconds between two looks for whether our parent lives
_GRACE = 1.0  # seconds that an idle worker has to end by itself
_TRIES = 2  # workers that may fail to start, one after another

Task = Callable[..., Any]


class Died(Exception):
    """The process that ran a call ended before it did. The text says how."""


class Late(Exception):
    """A call took longer than it may."""


class BrokenWorkers(BrokenExecutor):
    """The keeper was killed, and the workers with it."""


class CannotStart(RuntimeError):
    """Workers end before they call anything."""


class Underway(Future[Any]):
    """A call; `begun` once a worker has taken it up."""

    begun = False


@dataclass(frozen=True)
class Limits:
    """What a call may take; None is without limit."""

    seconds: float | None = None
    memory: float | None = None  # bytes, of the worker and its descendants

    def __post_init__(self) -> None:
        if self.memory is not None and not processes.LINUX:
            raise ValueError(
                f"memory must be None here; got {self.memory:g}. It is watched through /proc, on Linux only."
            )


_FREE = Limits()


class Workers:
    """Calls a function in other processes, a few at a time.

    Args:
        function: what a worker calls.
        count: the most workers; each is started when it is first needed.
        limits: of every call, from the moment it begins.
        start: "fork" or "spawn"; by default as multiprocessing was told, else whichever is sound here.
    """

    def __init__(self, function: Task, count: int, limits: Limits = _FREE, *, start: str | None = None) -> None:
        if multiprocessing.current_process().daemon:
            raise ValueError(
                "workers must be started where processes may have children; this one is a daemon of multiprocessing. "
                "Call it in the main process."
            )
        context = _context(start)
        task = function if context.get_start_method() == "fork" else _Sent.of(function)
        ours, theirs = context.Pipe()
        inherited = ours if context.get_start_method() == "fork" else None
        plan = _Plan(task, count, limits, context.get_start_method(), os.getpid())
        self._keeper = context.Process(target=_keep, args=(theirs, inherited, plan), name="crashbo-keeper")
        with warnings.catch_warnings():
            # Python warns of forks in a process with threads, whose locks may be held for ever. The keeper takes none.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._keeper.start()
        theirs.close()
        self._pipe, self._owner = ours, os.getpid()
        self._calls: dict[int, Underway] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._over = self._greeted = False
        self._reader = threading.Thread(target=self._read, daemon=True, name="crashbo-workers")
        self._reader.start()
        atexit.register(self.close)  # before multiprocessing's own, which would wait for the keeper

    def submit(self, *arguments: Any) -> Underway:
        """Call the function in a worker. The future has its result, its exception, Died or Late."""
        future = Underway()
        message = pickle.dumps(arguments)
        with self._lock:
            number = next(self._numbers)
            self._calls[number] = future
            try:
                if self._over:
                    raise OSError
                self._pipe.send(("call", number, message))
            except OSError:
                del self._calls[number]
                _settle(future, error=self._gone())
        return future

    def close(self) -> None:
        """End every worker, with all that it started."""
        if os.getpid() != self._owner:  # in a fork of ours, at its end
            return
        atexit.unregister(self.close)
        with contextlib.suppress(OSError), self._lock:
            self._pipe.send(("close", 0, b""))
        self._keeper.join()
        self._reader.join()
        self._pipe.close()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._hear(*self._pipe.recv())
        with self._lock:
            self._over = True
            lost, self._calls = self._calls, {}
        for future in lost.values():
            _settle(future, error=self._gone())

    def _gone(self) -> Exception:
        if self._greeted:
            return BrokenWorkers("the process that keeps the workers was killed")
        return CannotStart(f"workers must be able to start; their keeper ended at once. {_HELP}")

    def _hear(self, what: str, number: int, message: bytes) -> None:
        if what == "hello":
            self._greeted = True
            return
        if what == "began":
            self._calls[number].begun = True
            self._calls[number].set_running_or_notify_cancel()
            return
        with self._lock:
            future = self._calls.pop(number)
        if what == "answer":
            try:
                value, error = pickle.loads(message)
            except Exception as unreadable:  # of the user's own class, say, that cannot be made here
                value, error = None, unreadable
            _settle(future, value, error)
            return
        kind: dict[str, type[Exception]] = {"died": Died, "late": Late, "unstarted": CannotStart}
        _settle(future, error=kind[what](message.decode()))


def _settle(future: "Future[Any]", value: Any = None, error: BaseException | None = None) -> None:
    if not future.running():
        future.set_running_or_notify_cancel()
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def _context(start: str | None) -> Any:
    """Fork where it is sound and nobody chose otherwise; a server of forks is of no use beside our own keeper."""
    chosen = start or multiprocessing.get_start_method(allow_none=True)
    return multiprocessing.get_context("fork" if processes.LINUX and chosen in (None, "fork") else "spawn")


@dataclass(frozen=True)
class _Sent:
    """A function on its way to another process."""

    text: bytes

    @staticmethod
    def of(function: Task) -> "_Sent":
        """As bytes, by cloudpickle where that is needed and there."""
        why: object = "it belongs to a session that no other process can load"
        with contextlib.suppress(ImportError):
            import cloudpickle  # type: ignore[import-untyped]

            return _Sent(cloudpickle.dumps(function))
        main = sys.modules["__main__"]
        if hasattr(main, "__file__") or getattr(function, "__module__", None) != "__main__":
            try:
                return _Sent(pickle.dumps(function))
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                why = error
        raise ValueError(
            f"experiment must be one that can be sent to another process; got {function!r} ({why}). Define it at the "
            "top of a module, or install cloudpickle: pip install 'crashbo[workers]'."
        )


@dataclass(frozen=True)
class _Plan:
    """What a keeper has to do."""

    task: Task | _Sent
    count: int
    limits: Limits
    method: str
    parent: int


# From here on: the keeper's process.


def _keep(pipe: Connection, inherited: Connection | None, plan: _Plan) -> None:
    """Be a keeper until told to close, or orphaned."""
    if inherited is not None:
        inherited.close()
    if hasattr(os, "setsid"):
        os.setsid()  # neither Ctrl-C nor a signal to our parent's group is for us
    processes.adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keeper = _Keeper(pipe, plan)
    signal.signal(signal.SIGTERM, lambda *_: setattr(keeper, "over", True))
    try:
        with contextlib.suppress(EOFError, OSError):  # our parent is gone
            keeper.to_the_end()
    except Exception:
        traceback.print_exc()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        keeper.end_all()
        pipe.close()
        os._exit(0)


def _death_bell() -> socket.socket:
    """Can be read whenever a child has died. Its pipes do not say so: a fork that it left behind has them open, too."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, lambda *_: None)  # and not ignored, which would hide how a child ended
    signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
    return ours


@dataclass
class _Worker:
    """One worker, as its keeper sees it."""

    process: Any
    pipe: Connection
    call: tuple[int, bytes] | None = None
    began: float | None = None
    ever_began: bool = False


def _said_by(worker: _Worker) -> Iterator[tuple[str, bytes]]:
    """What a worker has sent by now."""
    try:
        while worker.pipe.poll():
            yield worker.pipe.recv()
    except (EOFError, OSError):
        yield "hung up", b""


def _wait_for_end(worker: _Worker, deadline: float) -> None:
    """Wait for a worker; `join` would wait for ever for one that lives and has closed its descriptors."""
    while worker.process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)


@dataclass
class _Keeper:
    pipe: Connection
    plan: _Plan
    workers: list[_Worker] = field(default_factory=list)
    waiting: deque[tuple[int, bytes]] = field(default_factory=deque)
    failures: int = 0  # workers that did not start, one after another
    next_weighing: float = 0.0  # when to look at the memory in use
    over: bool = False  # somebody wants us to end

    def to_the_end(self) -> None:
        """Hand out calls and tell what comes of them, until the parent closes its end or is no more."""
        orphaned, bell = processes.Orphaned(self.plan.parent), _death_bell()
        self.pipe.send(("hello", 0, b""))
        while not (self.over or orphaned()):
            ready = wait([self.pipe, bell, *self._ends()], timeout=self._patience())
            if bell in ready:
                bell.recv(1024)
            for worker in [w for w in self.workers if w.pipe in ready or not w.process.is_alive()]:
                self._hear(worker)
            self._hold_to_limits()
            if self.pipe in ready:
                what, number, message = self.pipe.recv()
                if what == "close":
                    return
                self.waiting.append((number, message))
            self._hand_out()

    def end_all(self) -> None:
        """End every worker: those that are idle may end by themselves first."""
        for worker in self.workers:
            worker.pipe.close()
        deadline = time.monotonic() + _GRACE
        for worker in self.workers:
            if worker.call is None:
                _wait_for_end(worker, deadline)
        for worker in self.workers:
            self._end(worker)
        self.workers.clear()
        self._end_orphans()

    def _ends(self) -> Iterator[Any]:
        for worker in self.workers:
            yield worker.pipe
            yield worker.process.sentinel

    def _patience(self) -> float:
        limits, now = self.plan.limits, time.monotonic()
        begun = [w.began for w in self.workers if w.began is not None]
        tick = min(_TICK, max(self.next_weighing - now, 0.0)) if begun and limits.memory is not None else _TICK
        if limits.seconds is not None:
            tick = min([tick, *(began + limits.seconds - now for began in begun)])
        return max(tick, 0.0)

    def _hand_out(self) -> None:
        while self.waiting:
            worker = next((w for w in self.workers if w.call is None), None)
            if worker is None and len(self.workers) < self.plan.count:
                worker = self._start()
            if worker is None:
                return
            worker.call = self.waiting.popleft()
            with contextlib.suppress(OSError):  # it is dead: its sentinel will say so
                worker.pipe.send_bytes(worker.call[1])

    def _start(self) -> _Worker:
        context: Any = multiprocessing.get_context(self.plan.method)
        ours, theirs = context.Pipe()
        forked = self.plan.method == "fork"
        inherited = [self.pipe, ours, *(w.pipe for w in self.workers)] if forked else []
        process = context.Process(target=_work, args=(theirs, inherited, self.plan.task), name="crashbo-worker")
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self.workers.append(worker)
        return worker

    def _hear(self, worker: _Worker) -> None:
        """What a worker says; its last words, if it is dead."""
        dead = not worker.process.is_alive()
        if dead:
            self._end_orphans()  # they may hold its pipe open
        for what, message in _said_by(worker):
            if what == "hung up":
                _wait_for_end(worker, time.monotonic() + _GRACE)
                dead = True
            elif what == "began":
                worker.began, worker.ever_began, self.failures = time.monotonic(), True, 0
                self._tell("began", worker)
            else:
                self._tell(what, worker, message)
                worker.call = worker.began = None
        if dead:
            self._bury(worker)

    def _bury(self, worker: _Worker) -> None:
        hung_up = worker.process.is_alive()  # it closed all that it had open: nobody will ever hear of it
        self._end(worker)
        self.workers.remove(worker)
        code = worker.process.exitcode
        how = "closed the descriptors of its own process" if hung_up else processes.how_it_ended(code)
        if worker.call is not None and worker.began is None:  # what it was to call had not begun
            self.failures += not worker.ever_began
            if self.failures < _TRIES:
                self.waiting.appendleft(worker.call)
                return
            words = f"workers must be able to start; one ended before its first call began ({how}). {_HELP}"
            self._tell("unstarted", worker, words.encode())
        elif worker.call is not None:
            self._tell("died", worker, how.encode())

    def _hold_to_limits(self) -> None:
        limits, now = self.plan.limits, time.monotonic()
        busy = {w.process.pid: w for w in self.workers if w.began is not None}
        for worker in busy.values():
            if limits.seconds is not None and worker.began is not None and now - worker.began >= limits.seconds:
                self._put_an_end_to(worker, "late", f"no answer within {limits.seconds:g} s")
        if limits.memory is not None and now >= self.next_weighing:
            heavy, pause = processes.heavy(busy, limits.memory, kin=os.getpid())
            self.next_weighing = now + pause
            for pid in heavy:
                self._put_an_end_to(busy[pid], "died", f"used more than {processes.sized(limits.memory)}")

    def _put_an_end_to(self, worker: _Worker, what: str, why: str) -> None:
        if worker not in self.workers or worker.pipe.poll():  # it answered in this very moment
            return
        self._end(worker)
        self.workers.remove(worker)
        self._tell(what, worker, why.encode())

    def _end(self, worker: _Worker) -> None:
        if worker.process.is_alive():
            processes.end_tree(worker.process.pid)
            worker.process.join()
        worker.pipe.close()
        self._end_orphans()

    def _end_orphans(self) -> None:
        """End what dead workers left behind: it has become ours."""
        processes.end_below(os.getpid(), spare=[w.process.pid for w in self.workers])

    def _tell(self, what: str, worker: _Worker, message: bytes = b"") -> None:
        assert worker.call is not None
        self.pipe.send((what, worker.call[0], message))


_HELP = (
    "Under the start method spawn, call minimize under `if __name__ == '__main__':`, and have the experiment in a "
    "module that can be imported."
)

# From here on: a worker's process.


def _work(pipe: Connection, inherited: list[Connection], task: Task | _Sent) -> None:
    """Call the function for as long as the keeper asks for it."""
    for other in inherited:
        other.close()
    if hasattr(os, "setsid"):
        os.setsid()  # a signal to its own group reaches nobody else
    processes.adopt_orphans()
    processes.die_with_parent()
    signal.set_wakeup_fd(-1)
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if "numpy" in sys.modules:  # else workers that were forked would all draw the same numbers
        sys.modules["numpy"].random.seed()
    function = pickle.loads(task.text) if isinstance(task, _Sent) else task
    with contextlib.suppress(EOFError, OSError):  # the keeper has hung up
        while True:
            message = pipe.recv_bytes()
            pipe.send(("began", b""))
            pipe.send(("answer", _answer(function, message)))


def _answer(function: Task, message: bytes) -> bytes:
    """What the function returns or raises, as bytes."""
    here = os.getpid()
    value, error = None, None
    try:
        value = function(*pickle.loads(message))
    except Exception as raised:
        raised.add_note(f"In a worker: {traceback.format_exc()}")
        error = raised
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)  # silently: it is an end as any other
    if os.getpid() != here:  # a fork that the call made, and that came back as well
        os._exit(0)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    try:
        text = pickle.dumps((value, error))
        pickle.loads(text)  # some exceptions can be sent but not received
    except Exception as unsent:
        words = f"{error!r}" if error is not None else f"the answer cannot be sent to another process ({unsent})"
        text = pickle.dumps((None, RuntimeError("\n".join([words, *getattr(error, "__notes__", ())]))))
    return text
