"""The loop of `minimize`: keep every worker busy, tell what comes back, stop when it is time.

May import strategies and below.
"""

import logging
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from crashbo.optimizer.experiment import Ending, Failure, Rules
from crashbo.optimizer.journal import Journal
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.pools import Call, Pool
from crashbo.optimizer.progress import Progress
from crashbo.optimizer.records import Crash, Outcome, Stopped, Trial, Void
from crashbo.optimizer.stopping import StopRule
from crashbo.optimizer.told import said_by
from crashbo.search.space import Params

Callback = Callable[[Optimizer, Trial], Any]
Contexts = Params | Callable[[], Params] | None  # what is met, or a function that says it

_log = logging.getLogger("crashbo")
_MOST_VOIDS = 20  # in a row: an experiment that never says anything is broken


class Recorded:
    """An Optimizer whose every ask and tell is on disk before the next one, where there is a journal."""

    def __init__(self, optimizer: Optimizer, journal: Journal | None, context: Contexts = None) -> None:
        self.optimizer, self._journal, self._context = optimizer, journal, context

    def ask(self) -> Trial:
        """The next trial, in the context that is met now."""
        trial = self.optimizer.ask(self._context() if callable(self._context) else self._context)
        if self._journal is not None:
            self._journal.asked(trial, self.optimizer)
        return trial

    def tell(self, trial: Trial, outcome: Outcome | Crash | Stopped | Void) -> Trial:
        """What came of it; Ctrl-C waits until it is on disk, too."""
        with _uninterrupted():
            told = self.optimizer.tell(trial, **said_by(outcome))
            if self._journal is not None:
                self._journal.told(told)
        return told


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
class Loop:
    """Runs an experiment on a pool until its trials are used up."""

    recorded: Recorded
    pool: Pool
    trials: int
    rules: Rules
    stop: tuple[StopRule, ...]
    shown: Progress | None = None
    callbacks: Sequence[Callback] = ()
    guarded: bool = False  # whether the experiment takes a guard
    again: deque[Trial] = field(default_factory=deque)  # to be run once more, of an earlier process
    suspects: deque[Trial] = field(default_factory=deque)  # to be run once more, alone: one of them ended its pool
    spared: deque[Trial] = field(default_factory=deque)  # to be run once more: they ran beside it
    running: list[Call] = field(default_factory=list)
    voids: int = 0  # in a row

    def settle_lost(self, on_lost: str) -> None:
        """Trials that ran when an earlier process died: told, or run again."""
        lost = [t for t in self.recorded.optimizer.trials if t.state == "pending"]
        if on_lost == "repeat":
            self.again.extend(lost)
            return
        words = "lost: the process that ran it died"
        self._tell([(t, Crash(words) if on_lost == "crash" else Void(words)) for t in lost])

    def to_the_end(self) -> str:
        """Run; the reason why it ended. Ctrl-C is one."""
        reason = None
        try:
            while True:
                if self.pool.lost is not None:
                    self._give_up()
                reason = reason or self.pool.lost or self._reason_to_stop()
                while (reason is None or self.suspects or self.spared) and self._room() and self._free():
                    self._start()
                if not self.running and (reason is not None or not self._room()):
                    return reason or f"{self.trials} trials"
                self.pool.wait(self.running)
                self._collect()
        except KeyboardInterrupt:
            return "interrupted"

    def _room(self) -> bool:
        counted = sum(t.counts for t in self.recorded.optimizer.trials)
        return counted + len(self.running) < self.trials

    def _free(self) -> bool:
        if self.suspects or any(call.alone for call in self.running):
            return not self.running
        return self.pool.free(self.running) > 0

    def _start(self) -> None:
        alone = bool(self.suspects)
        queue = self.suspects or self.spared or self.again
        trial = queue.popleft() if queue else self.recorded.ask()
        guard = self.recorded.optimizer.guard(trial) if self.guarded else None
        self.running.append(self.pool.start(trial, guard, alone=alone))

    def _give_up(self) -> None:
        """Nothing can run any more."""
        left = [*self.suspects, *self.spared]
        self.suspects.clear()
        self.spared.clear()
        self._tell([(trial, Void("not run: the executor was lost")) for trial in left])

    def _reason_to_stop(self) -> str | None:
        if self.voids >= _MOST_VOIDS:
            return f"{self.voids} void trials in a row"
        return next((reason for rule in self.stop if (reason := rule(self.recorded.optimizer))), None)

    def _collect(self) -> None:
        """Tell what has ended, or has been given up."""
        came: dict[Call, Ending] = {}
        if (wreck := self.pool.wreck(self.running)) is not None:
            came |= {call: Failure("death", why) for call, why in wreck.died.items()}
            self.suspects.extend(call.trial for call in wreck.suspects)
            self.spared.extend(call.trial for call in wreck.spared)
            gone = {*came, *wreck.suspects, *wreck.spared}
            _log.warning("a pool of workers broke: %d died, %d may have been it", len(wreck.died), len(wreck.suspects))
            self.running = [call for call in self.running if call not in gone]
        ended = [call for call in self.running if call.job.done() and not call.broken]
        came |= {call: call.ending() for call in ended}
        late = [call for call in self.running if call not in came]
        came |= {call: Failure("timeout", why) for call, why in self.pool.late(late).items()}
        self.running = [call for call in self.running if call not in came]
        self._tell([(call.trial, ending) for call, ending in came.items()])

    def _tell(self, came: "Sequence[tuple[Trial, Ending]]") -> None:
        """Tell them all, before anybody hears of it: what a callback raises must not lose the next outcome."""
        told: list[Trial] = []
        errors: list[BaseException] = []
        for trial, ending in came:
            try:
                outcome = ending if not isinstance(ending, Failure) else self._counted(ending, errors)
                told.append(self.recorded.tell(trial, outcome))
            except ValueError as error:  # an outcome that the study cannot take
                outcome = self._counted(Failure("error", str(error), error), errors)
                told.append(self.recorded.tell(trial, outcome))
        for trial in told:
            self.voids = self.voids + 1 if trial.state == "void" else 0
            if self.shown is not None:
                self.shown(self.recorded.optimizer, trial, self.trials)
            for callback in self.callbacks:
                callback(self.recorded.optimizer, trial)
        if errors:
            raise errors[0]

    def _counted(self, failure: Failure, errors: list[BaseException]) -> Crash | Void:
        """What a failure is told as; its error joins those that are to be raised, if it is."""
        if self.rules.word(failure) == "raise":
            assert failure.error is not None
            errors.append(failure.error)
        return self.rules.outcome(failure)
