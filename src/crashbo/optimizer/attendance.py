"""Who has begun: calls of an experiment in another's executor sign in when they begin, and out when they end.

May import strategies and below.

An executor does not say when a call begins: a process pool calls everything running that it has queued, others say
nothing. So each call leaves a note in a folder of ours. Where that folder cannot be reached, on another machine, the
call keeps the time itself.
"""

import contextlib
import os
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashbo import processes
from crashbo.optimizer.experiment import Ending, Experiment, Failure, Job, outcome_of, sent_outcome_of


@dataclass(frozen=True)
class Sheet:
    """Where one call signs in."""

    path: str
    owner: int  # the process that it is of

    @contextmanager
    def signed(self) -> Iterator[bool]:
        """Signed in, if that is possible; the sheet is open meanwhile, and so it is in every fork of this process."""
        with ExitStack() as stack:
            try:
                file = stack.enter_context(open(self.path, "w"))
                file.write(f"{os.getpid()} {platform.node()} {processes.started(os.getpid())} {time.time_ns()}")
                file.flush()
            except OSError:
                yield False
                return
            stack.callback(_without_error, os.remove, self.path)
            if os.getpid() != self.owner and threading.current_thread() is threading.main_thread():
                # Alone in its process, so that all it starts is its own, and is known by this mark.
                processes.adopt_orphans()
                os.environ[processes.MARK] = self.path
                stack.callback(os.environ.pop, processes.MARK, None)
            yield True


def _without_error(function: Callable[..., Any], *args: Any) -> None:
    with contextlib.suppress(OSError):
        function(*args)


NO_SHEET = Sheet("", 0)


class Attendance:
    """The sheets of a study's calls."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="crashbo-"))
        self._count = 0
        self._seen: dict[Sheet, tuple[str, float]] = {}

    def sheet(self) -> Sheet:
        """A new one."""
        self._count += 1
        return Sheet(str(self.folder / f"{self._count}."), os.getpid())

    def since(self, sheet: Sheet) -> float | None:
        """When a call was first seen to have begun; None before, and after its end or that of its process."""
        said = self._said(sheet)
        if said is None or _is_dead(*said.split()[:3]):  # the executor may run again what died
            return None
        if self._seen.get(sheet, ("",))[0] != said:
            self._seen[sheet] = said, time.monotonic()
        return self._seen[sheet][1]

    def process(self, sheet: Sheet) -> int | None:
        """In which process a call is under way, or was when that died."""
        said = self._said(sheet)
        return None if said is None else int(said.split()[0])

    def close(self) -> None:
        """Throw the sheets away."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _said(self, sheet: Sheet) -> str | None:
        try:
            text = Path(sheet.path).read_text()
        except OSError:
            return None
        return text if len(text.split()) == 4 else None


def _is_dead(pid: str, machine: str, begun: str) -> bool:
    return machine == platform.node() and not processes.lives(int(pid), begun)


def attended(experiment: Experiment, job: Job, sheet: Sheet, seconds: float | None) -> Ending:
    """Run an experiment in an executor's worker."""
    here = os.getpid()
    run = outcome_of if here == sheet.owner else sent_outcome_of
    with sheet.signed() as watched:
        ending = run(experiment, job) if watched or seconds is None else _in_time(run, experiment, job, seconds)
        if os.getpid() != here:  # a fork that the experiment made, and that came back as well
            os._exit(0)
        return ending


def _in_time(run: Callable[..., Ending], experiment: Experiment, job: Job, seconds: float) -> Ending:
    """Run an experiment, and give it up when it takes too long: nobody else sees when it began."""
    came: list[Ending] = []
    thread = threading.Thread(target=lambda: came.append(run(experiment, job)), daemon=True)
    thread.start()
    thread.join(seconds)
    if came:
        return came[0]
    reached, rises = (dict(values) for values in job.watched)
    return Failure("timeout", f"no answer within {seconds:g} s", None, reached, rises)
