"""The loop of `minimize`: keep every worker busy, tell what comes back, stop when it is time.

May import strategies and below.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from crashbo.optimizer.journal import Journal
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.progress import Progress
from crashbo.optimizer.records import Crash, Fault, Outcome, Trial, Void
from crashbo.optimizer.stopping import StopRule
from crashbo.optimizer.told import said_by
from crashbo.search.space import is_number

Experiment = Callable[[dict[str, Any]], Any]

_LOOK_AGAIN = 0.02  # seconds, while a trial waits for a worker
_MOST_VOIDS = 20  # in a row: an experiment that never says anything is broken


class Recorded:
    """An Optimizer whose every ask and tell is on disk before the next one, where there is a journal."""

    def __init__(self, optimizer: Optimizer, journal: Journal | None) -> None:
        self.optimizer, self._journal = optimizer, journal

    def ask(self) -> Trial:
        """The next trial."""
        trial = self.optimizer.ask()
        if self._journal is not None:
            self._journal.asked(trial, self.optimizer)
        return trial

    def tell(self, trial: Trial, outcome: Outcome | Crash | Void) -> Trial:
        """What came of it; Ctrl-C waits until it is on disk, too."""
        with _uninterrupted():
            told = self.optimizer.tell(trial, **said_by(outcome))
            if self._journal is not None:
                self._journal.told(told)
        return told

    def settle_lost(self, on_lost: str) -> list[Trial]:
        """Trials that ran when an earlier process died: told, or given back to be run again."""
        lost = [t for t in self.optimizer.trials if t.state == "pending"]
        if on_lost == "repeat":
            return lost
        words = "lost: the process that ran it died"
        for trial in lost:
            self.tell(trial, Crash(words) if on_lost == "crash" else Void(words))
        return []


@contextmanager
def opened(journal: str | PathLike[str] | None) -> Iterator[Journal | None]:
    """The journal at that path, held for as long as it is needed."""
    log = Journal(journal) if journal is not None else None
    try:
        yield log
    finally:
        if log is not None:
            log.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits; only the main thread is ever interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *event: pressed.append(event))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed and callable(before):
            before(*pressed[0])


@dataclass
class _Running:
    """A trial under way."""

    trial: Trial
    future: Future[Any]
    submitted: float
    since: float | None = None  # when a worker took it


@dataclass
class Loop:
    """Runs an experiment on a pool of workers until its trials are used up."""

    recorded: Recorded
    experiment: Experiment
    pool: "Executor | Inline | Threads"
    workers: int
    trials: int
    timeout: float | None
    on_timeout: Fault
    stop: tuple[StopRule, ...]
    shown: Progress | None
    running: list[_Running] = field(default_factory=list)
    voids: int = 0  # in a row

    def to_the_end(self, again: list[Trial]) -> str:
        """Run; the reason why it ended. Ctrl-C is one."""
        reason = None
        try:
            while True:
                reason = reason or self._reason_to_stop()
                while reason is None and len(self.running) < self.workers and self._room():
                    trial = again.pop(0) if again else self.recorded.ask()
                    future = self.pool.submit(outcome_of, self.experiment, trial.params)
                    self.running.append(_Running(trial, future, time.monotonic()))
                if not self.running:
                    return reason or f"{self.trials} trials"
                self._collect()
        except KeyboardInterrupt:
            return "interrupted"

    def _room(self) -> bool:
        counted = sum(t.counts for t in self.recorded.optimizer.trials)
        return counted + len(self.running) < self.trials

    def _reason_to_stop(self) -> str | None:
        if self.voids >= _MOST_VOIDS:
            return f"{self.voids} void trials in a row"
        return next((reason for rule in self.stop if (reason := rule(self.recorded.optimizer))), None)

    def _collect(self) -> None:
        """Wait for something to end or to run out of time, and tell it."""
        done, _ = wait([r.future for r in self.running], timeout=self._patience(), return_when=FIRST_COMPLETED)
        errors = []
        for run in [r for r in self.running if r.future in done]:
            self.running.remove(run)
            try:
                error = run.future.exception()
                if error is not None:
                    raise error
                self._tell(run.trial, run.future.result())
            except Exception as error:  # the user's bug: it says nothing of x, and is theirs to mend
                self._tell(run.trial, Void(f"the experiment failed: {error!r}"))
                errors.append(error)
        self._give_up_late_ones()
        if errors:
            raise errors[0]

    def _patience(self) -> float | None:
        """How long to wait: until the first trial is late; a trial's clock starts when a worker takes it."""
        if self.timeout is None:
            return None
        now = time.monotonic()
        for run in self.running:
            if run.since is None and (run.future.running() or run.future.done()):
                run.since = now
        left = [run.since + self.timeout - now for run in self.running if run.since is not None]
        waiting = [_LOOK_AGAIN] if any(run.since is None for run in self.running) else []
        return max(min(left + waiting), 0.0)

    def _give_up_late_ones(self) -> None:
        now = time.monotonic()
        for run in list(self.running):
            if self.timeout is None or run.future.done() or now - (run.since or run.submitted) < self.timeout:
                continue
            never_began = run.future.cancel()
            self.running.remove(run)
            words = f"no answer within {self.timeout:g} s"
            if never_began:
                self._tell(run.trial, Void(f"no worker took it within {self.timeout:g} s"))
            else:
                self._tell(run.trial, Crash(words) if self.on_timeout == "crash" else Void(words))

    def _tell(self, trial: Trial, outcome: Outcome | Crash | Void) -> None:
        told = self.recorded.tell(trial, outcome)
        self.voids = self.voids + 1 if told.state == "void" else 0
        if self.shown is not None:
            self.shown(self.recorded.optimizer, told, self.trials)


def outcome_of(experiment: Experiment, params: dict[str, Any]) -> Outcome | Crash | Void:
    """Run the experiment; a crash or a void is an outcome, too."""
    try:
        answer = experiment(dict(params))
    except (Crash, Void) as outcome:
        return outcome
    if isinstance(answer, Outcome):
        return answer
    if is_number(answer):
        return Outcome(float(answer))
    raise TypeError(
        f"experiment must return an Outcome or a finite cost, or raise Crash or Void; got {answer!r}. "
        "A trial without a cost is a Crash or a Void."
    )


class Inline:
    """Runs at once, here: an experiment that is not parallel stays in the caller's own thread."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """The finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class Threads:
    """One daemon thread per experiment: one that hangs does not keep the process from ending."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """A future that a thread of its own fulfils."""
        future: Future[Any] = Future()

        def work() -> None:
            future.set_running_or_notify_cancel()
            try:
                future.set_result(function(*args))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future
