"""Where experiments run: here, in threads, in workers of our own, or in somebody's executor.

May import strategies and below.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from crashbo import processes
from crashbo.optimizer.attendance import NO_SHEET, Attendance, Sheet, attended
from crashbo.optimizer.experiment import Ending, Experiment, Failure, Job, brief, outcome_of, sent_outcome_of
from crashbo.optimizer.guard import Guard
from crashbo.optimizer.records import Trial
from crashbo.workers import CannotStart, Died, Late, Limits, Workers

_LOOK_AGAIN = 0.02  # seconds, where nothing wakes us: while a call may begin, or a job has to be asked
_LAST_WORDS = 5.0  # seconds that a broken pool has to say so of all its calls
_STUCK = 10  # timeouts for which an executor may hang in calls that were given up, all its workers
_FALSE_STARTS = 3  # pools that may break, one after another, before any call begins
_DEATHS = ("KilledWorker", "UncompletedJobError")  # of Dask and submitit: the worker died, and of this very call


@dataclass(eq=False)
class Call:
    """A trial under way. `job` is a future, or whatever an executor has in its place."""

    trial: Trial
    job: Any
    alone: bool
    sheet: Sheet = NO_SHEET  # on which it signs in, in an executor
    since: float | None = None  # when it was seen to have begun

    def ending(self) -> Ending:
        """What came of it. Only once it is done, and its pool is whole."""
        error = self.job.exception()
        if error is None:
            ending: Ending = self.job.result()
            return ending
        if isinstance(error, Late):
            return Failure("timeout", str(error))
        if isinstance(error, Died) or type(error).__name__ in _DEATHS:
            return Failure("death", brief(" ".join(str(error).split())))
        if isinstance(error, Exception):
            if "pickle" in str(error):
                error.add_note(
                    "The experiment must be one that can be sent: of a module's top level. Or give workers=."
                )
            return Failure("executor", str(error), error)
        raise error  # Ctrl-C, in an experiment that runs here

    @property
    def broken(self) -> bool:
        """Whether it ended because its pool did."""
        if not (isinstance(self.job, Future) and self.job.done()):
            return False
        return self.job.cancelled() or isinstance(self.job.exception(), BrokenExecutor)


def _suspected(begun: list[Call], others: list[Call]) -> "Wreck":
    """A wreck of which only is known what had begun."""
    if len(begun) == 1:
        return Wreck({begun[0]: processes.how_it_ended(None)}, spared=others)
    return Wreck(suspects=begun, spared=others)


@dataclass
class Wreck:
    """What a pool's end did to its calls."""

    died: dict[Call, str] = field(default_factory=dict)  # of these, for this reason
    suspects: list[Call] = field(default_factory=list)  # one of them was it
    spared: list[Call] = field(default_factory=list)  # they had nothing to do with it


class Pool(Protocol):
    """Runs experiments."""

    def start(self, trial: Trial, guard: Guard | None = None, *, alone: bool) -> Call:
        """Run the experiment on a trial, with its guard if it takes one; alone, if nothing else runs beside it."""

    def free(self, running: Sequence[Call]) -> int:
        """How many more calls would begin at once."""

    def wait(self, running: Sequence[Call]) -> None:
        """Wait until something has happened."""

    def late(self, running: Sequence[Call]) -> dict[Call, str]:
        """Calls to be given up, with the reason. They are then no longer ours."""

    def wreck(self, running: Sequence[Call]) -> Wreck | None:
        """What became of the calls, if the pool is no more; it has a successor then, unless `lost`."""

    @property
    def lost(self) -> str | None:
        """Why nothing can run any more."""

    def close(self) -> None:
        """End what is ours."""


class _Own:
    """What the pools have in common that are ours: as many places as were asked for, and no wreck."""

    lost: str | None = None

    def __init__(self, experiment: Experiment, count: int, seconds: float | None = None) -> None:
        self._run = partial(outcome_of, experiment)
        self._count, self._seconds = count, seconds

    def free(self, running: Sequence[Call]) -> int:
        return self._count - len(running)

    def wait(self, running: Sequence[Call]) -> None:
        left = [call.since + self._seconds - time.monotonic() for call in running if call.since and self._seconds]
        wait_for(
            [call.job for call in running], timeout=max(min(left), 0.0) if left else None, return_when=FIRST_COMPLETED
        )

    def late(self, running: Sequence[Call]) -> dict[Call, str]:
        return _late(running, self._seconds)

    def wreck(self, running: Sequence[Call]) -> Wreck | None:
        return None

    def close(self) -> None:
        pass


class Here(_Own):
    """Runs at once: an experiment that is not parallel stays in the caller's own thread."""

    def start(self, trial: Trial, guard: Guard | None = None, *, alone: bool) -> Call:
        job: Future[Any] = Future()
        _fulfil(job, self._run, Job(trial.params, guard))
        return Call(trial, job, alone)


class Threads(_Own):
    """One daemon thread per experiment: one that hangs does not keep the process from ending."""

    def start(self, trial: Trial, guard: Guard | None = None, *, alone: bool) -> Call:
        job: Future[Any] = Future()
        threading.Thread(target=_fulfil, args=(job, self._run, Job(trial.params, guard)), daemon=True).start()
        return Call(trial, job, alone, since=time.monotonic())


class Kept(_Own):
    """Workers of our own, which may die: a process each, held to its limits by a keeper."""

    def __init__(self, experiment: Experiment, count: int, limits: Limits) -> None:
        super().__init__(experiment, count)
        self._run, self._limits = partial(sent_outcome_of, experiment), limits
        self._workers = Workers(self._run, count, limits)

    def start(self, trial: Trial, guard: Guard | None = None, *, alone: bool) -> Call:
        return Call(trial, self._workers.submit(Job(trial.params, guard)), alone)

    def wreck(self, running: Sequence[Call]) -> Wreck | None:
        """Somebody killed the keeper, which may have been any of the experiments."""
        for call in running:
            if call.job.done() and isinstance(error := call.job.exception(), CannotStart):
                raise error
        if not any(call.broken for call in running):
            return None
        wait_for([call.job for call in running], timeout=_LAST_WORDS)
        self._workers.close()
        self._workers = Workers(self._run, self._count, self._limits)
        return _suspected([call for call in running if call.broken], [])

    def close(self) -> None:
        self._workers.close()


class Borrowed:
    """Somebody's executor. What it cannot do, end a call or say which one died, is made up for as far as possible."""

    def __init__(
        self, executor: Any, experiment: Experiment, count: int | None, seconds: float | None, memory: float | None
    ) -> None:
        self._executor, self._experiment, self._seconds = executor, experiment, seconds
        self._count = count or int(getattr(executor, "_max_workers", None) or 1)
        self._attendance = Attendance()
        in_processes = hasattr(executor, "_processes") and not processes.WINDOWS
        self._sentry = processes.Sentry(str(self._attendance.folder)) if in_processes else None
        self._scales = None if memory is None else _Scales(memory, self._attendance)
        self._members: dict[int, Any] = {}  # processes of a pool on this machine
        self._hung: list[Call] = []  # given up, but they go on
        self._stuck: float | None = None  # since when all places are taken by those
        self._false_starts = 0
        self._successor: Any = None
        self.lost: str | None = None

    def start(self, trial: Trial, guard: Guard | None = None, *, alone: bool) -> Call:
        sheet = self._attendance.sheet()
        with nullcontext() if self._sentry is None else self._sentry.over_forks():
            try:
                job = self._executor.submit(attended, self._experiment, Job(trial.params, guard), sheet, self._seconds)
            except (RuntimeError, OSError, ValueError) as error:  # it breaks in this moment, or was shut down
                job = Future()
                job.set_exception(BrokenExecutor(str(error)))
        if self._sentry is not None:
            self._members.update(self._executor._processes or {})
            self._sentry.over(self._members)
        return Call(trial, job, alone, sheet)

    def free(self, running: Sequence[Call]) -> int:
        self._hung = [call for call in self._hung if not call.job.done()]
        if len(self._hung) < self._count:
            self._stuck = None
        elif not running:
            self._unstick()
        return self._count - len(self._hung) - len(running)

    def wait(self, running: Sequence[Call]) -> None:
        if self._scales is not None:
            self._scales.weighed = [call.sheet for call in running]
        jobs = [call.job for call in (*self._hung, *running)]
        if jobs and all(isinstance(job, Future) for job in jobs):
            wait_for(jobs, timeout=self._patience(running), return_when=FIRST_COMPLETED)
        elif not any(job.done() for job in jobs):
            time.sleep(5 * _LOOK_AGAIN)

    def late(self, running: Sequence[Call]) -> dict[Call, str]:
        self._look(running)
        late = _late(running, self._seconds)
        for call in late:
            call.job.cancel()
            processes.end_marked(call.sheet.path, spare=self._members)
            if isinstance(call.job, Future) and not call.job.done():
                self._hung.append(call)
        return late

    def wreck(self, running: Sequence[Call]) -> Wreck | None:
        if not any(call.broken for call in running):
            return None
        wait_for([call.job for call in running if isinstance(call.job, Future)], timeout=_LAST_WORDS)
        broken = [call for call in running if call.broken]
        found = self._inquest(broken)
        self._false_starts = 0 if found.died or found.suspects else self._false_starts + 1
        for call in broken:
            processes.end_marked(call.sheet.path)
        self._replace(str(broken[0].job.exception()) if not broken[0].job.cancelled() else "it was shut down")
        return found

    def close(self) -> None:
        for call in self._hung:  # an experiment that was given up must not go on, even if its pool breaks of it
            self._end_member(self._attendance.process(call.sheet))
        if self._scales is not None:
            self._scales.close()
        if self._successor is not None:
            self._end_members()
            self._successor.shutdown(wait=True, cancel_futures=True)
        processes.end_marked(str(self._attendance.folder), spare=self._members)
        if self._sentry is not None:
            self._sentry.close()
        self._attendance.close()

    def _look(self, running: Sequence[Call]) -> None:
        for call in running:
            call.since = self._attendance.since(call.sheet)

    def _patience(self, running: Sequence[Call]) -> float | None:
        """Until the first call is late; a call's clock starts when it is seen to have begun."""
        if self._seconds is None:
            return None
        self._look(running)
        if self._hung or any(call.since is None for call in running):
            return _LOOK_AGAIN
        return max(min(call.since + self._seconds - time.monotonic() for call in running if call.since), 0.0)

    def _inquest(self, broken: list[Call]) -> Wreck:
        """Who died, by what had begun and by how the pool's processes ended: the innocent are ended by the pool."""
        codes = {pid: self._exit_code(member) for pid, member in self._members.items()}
        by_the_pool = {None, -signal.SIGTERM} | (set() if type(self._executor) is ProcessPoolExecutor else {-9})
        reasons = {pid: processes.how_it_ended(code) for pid, code in codes.items() if code not in by_the_pool}
        if self._scales is not None:
            reasons |= dict.fromkeys(self._scales.heavy & codes.keys(), self._scales.words)
        where = {call: self._attendance.process(call.sheet) for call in broken}
        begun = [call for call in broken if where[call] is not None]
        others = [call for call in broken if where[call] is None]
        if reasons or self._hung:  # it may also have been one that was given up before, or that did nothing
            died = {call: reasons[pid] for call in begun if (pid := where[call]) in reasons}
            rest = [call for call in begun if call not in died]
            return Wreck(died, spared=[*others, *rest]) if reasons else Wreck(suspects=rest, spared=others)
        return _suspected(begun, others)

    def _exit_code(self, member: Any) -> int | None:
        member.join(_LAST_WORDS)
        code: int | None = member.exitcode
        return code

    def _replace(self, why: str) -> None:
        """A new pool of the same kind, if it is of a kind that can be had."""
        self._end_members()
        self._hung, self._stuck = [], None
        self._executor = new = _successor_of(self._executor)
        self._successor = new if isinstance(new, ProcessPoolExecutor) else None
        if new is None or self._false_starts >= _FALSE_STARTS:
            words = brief(" ".join(why.split()))
            self.lost = f"the executor can run nothing any more ({words}). What was told is kept: go on with a new one"

    def _unstick(self) -> None:
        """Every worker hangs in a call that was given up: a pool of processes is replaced, any other is waited for."""
        assert self._seconds is not None
        self._stuck = now = time.monotonic() if self._stuck is None else self._stuck
        if self._members:
            self._replace("all its workers hang")
        elif time.monotonic() - now > _STUCK * self._seconds:
            self.lost = (
                f"all workers of the executor ({self._count}) hang in trials that were given up; workers={self._count} "
                "in its place would end them"
            )

    def _end_members(self) -> None:
        for pid in self._members:
            self._end_member(pid)
        self._members = {}

    def _end_member(self, pid: int | None) -> None:
        if pid in self._members and self._members[pid].exitcode is None:  # else its number may be another's by now
            processes.end_tree(pid)


class _Scales(threading.Thread):
    """Ends processes that use too much memory, by the pool's sheets."""

    def __init__(self, limit: float, attendance: Attendance) -> None:
        super().__init__(daemon=True, name="crashbo-scales")
        self.words = f"used more than {processes.sized(limit)}"
        self.heavy: set[int] = set()
        self.weighed: list[Sheet] = []
        self._limit, self._attendance, self._over = limit, attendance, threading.Event()
        self.start()

    def run(self) -> None:
        pause = 0.0
        while not self._over.wait(pause):
            pids = {pid for pid in map(self._attendance.process, self.weighed) if pid not in (None, os.getpid())}
            heavy, pause = processes.heavy(filter(None, pids), self._limit, kin=os.getpid())
            self.heavy |= set(heavy)
            for pid in heavy:
                processes.end_tree(pid)

    def close(self) -> None:
        self._over.set()
        self.join()


def _successor_of(executor: Any) -> Any:
    """A new executor like this one; None if its kind does not say how to make one."""
    if type(executor) is ProcessPoolExecutor:
        known: Any = executor
        return ProcessPoolExecutor(
            known._max_workers,
            known._mp_context,
            known._initializer,
            known._initargs,
            max_tasks_per_child=known._max_tasks_per_child,
        )
    for kind in type(executor).__mro__:  # loky and joblib have one pool for all, and make it anew
        reuse = getattr(sys.modules[kind.__module__], "get_reusable_executor", None)
        if reuse is not None:
            return reuse(max_workers=executor._max_workers)
    return None


def _late(running: Iterable[Call], seconds: float | None) -> dict[Call, str]:
    if seconds is None:
        return {}
    now = time.monotonic()
    waited = [call for call in running if call.since is not None and now - call.since >= seconds]
    return {call: f"no answer within {seconds:g} s" for call in waited if not call.job.done()}


def _fulfil(future: "Future[Any]", run: Callable[..., Any], job: Job) -> None:
    try:
        future.set_result(run(job))
    except BaseException as error:
        future.set_exception(error)
