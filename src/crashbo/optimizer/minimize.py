"""minimize: run an experiment until its trials are used up, alone or on many workers.

May import strategies and below.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from crashbo.optimizer.journal import Journal
from crashbo.optimizer.optimizer import Confirmation, Direction, Optimizer, Params, Recommendation, Threshold
from crashbo.optimizer.progress import Progress, TerminalProgress, progress_of
from crashbo.optimizer.records import AnyConstraint, Crash, Outcome, Trial, Void, is_number
from crashbo.optimizer.stopping import StopRule
from crashbo.search.risk import Risk, announced, risk_of
from crashbo.search.space import Space
from crashbo.search.surrogates import PosteriorOver
from crashbo.strategies.base import Strategy

Experiment = Callable[[dict[str, Any]], Any]
Fault = Literal["crash", "void"]

_LOOK_AGAIN = 0.02  # seconds, while a trial waits for a worker
_MOST_VOIDS = 20  # in a row: an experiment that never says anything is broken


@dataclass(frozen=True)
class Result:
    """What a study found. Everything is read from its optimizer, which can go on."""

    optimizer: Optimizer
    stopped: str  # why it ended
    journal: str | PathLike[str] | None = None

    @property
    def best(self) -> Trial | None:
        """The success with the best observed cost."""
        return self.optimizer.best

    @property
    def trials(self) -> list[Trial]:
        """Every trial, in order."""
        return self.optimizer.trials

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The crash threshold of every measured constraint."""
        return self.optimizer.thresholds

    def recommend(self, delta: float = 0.1) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta (eq. 3)."""
        return self.optimizer.recommend(delta)

    def p_safe(self, params: Any) -> Any:
        """Probability that a trial at params succeeds; a list gives an array."""
        return self.optimizer.p_safe(params)

    def blame(self, trial: Trial | int) -> dict[str, float]:
        """Probability that each constraint was violated in a trial that crashed."""
        return self.optimizer.blame(trial)

    def p_violated(self, params: Any) -> Any:
        """Probability that a trial at params would violate each constraint; a list gives arrays."""
        return self.optimizer.p_violated(params)

    def table(self) -> list[dict[str, Any]]:
        """Every trial as a row of plain values, with the blame of crashes as inferred."""
        return self.optimizer.table()

    def confirm(self, experiment: Experiment, n: int = 10) -> Confirmation:
        """Repeat the best trial n times and report mean, spread and crashes; a study's journal keeps them, too.

        A repeat that was void is made again, up to n in all.
        """
        confirmation = self.optimizer.confirm(n)
        with _opened(self.journal) as log:
            while not confirmation.done and len(confirmation.trials) < 2 * n:
                trial = self.optimizer.ask()
                if log is not None:
                    log.asked(trial, self.optimizer)
                outcome = _outcome(experiment, trial.params)
                with _uninterrupted():
                    told = _tell(self.optimizer, trial, outcome)
                    if log is not None:
                        log.told(told)
        return confirmation


def minimize(
    experiment: Experiment,
    space: Space | Mapping[str, Any],
    *,
    constraints: Sequence[str | AnyConstraint] | str | AnyConstraint | None = None,
    trials: int = 50,
    seed: int | None = 0,
    strategy: str | Strategy = "eicc",
    risk: Risk | str | None = None,
    start: Sequence[Params] | None = None,
    noise: float | Mapping[str, float] | None = None,
    direction: Direction = "minimize",
    posterior: PosteriorOver = "marginal",
    executor: Executor | None = None,
    n_parallel: int | None = None,
    timeout: float | None = None,
    on_timeout: Fault = "crash",
    on_lost: Literal["void", "crash", "repeat"] = "void",
    stop: Sequence[StopRule] = (),
    journal: str | PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Result:
    """Minimise an experiment's cost, learning from crashes.

    Args:
        experiment: gets the params and returns an Outcome or a cost, or raises Crash or Void. Any other exception
            is raised to the caller; the study keeps what it had.
        space: names to (low, high), Float, Int or Choice.
        constraints: the measured reasons for a crash: names, Constraint or Unmeasured.
        trials: successes and crashes to run; voids do not count.
        seed: of the proposals.
        strategy: how the next trial is chosen: a name, see `crashbo.strategies.names()`, or a record.
        risk: None (ours), "paper", Budget or MinSafe.
        start: params to try first.
        noise: standard deviation of the cost where known, or a mapping with "cost" and constraints.
        direction: "minimize" or "maximize".
        posterior: "marginal" averages P(safe) over plausible hyperparameters; "map" takes the most probable ones.
        executor: runs the experiments; None runs them here, one after another.
        n_parallel: experiments at a time; by default as many as the executor has workers.
        timeout: seconds after which a trial is given up.
        on_timeout: what a trial that is given up counts as.
        on_lost: what becomes, on resuming, of a trial that ran when the process died; "repeat" runs it again.
        stop: rules that end the study early, see `crashbo.stopping`.
        journal: a file that keeps every event as it happens; a second call with the same file resumes.
        progress: None shows a line on a terminal; True, False, or a function of your own.
    """
    for name, value in (("trials", trials), ("n_parallel", n_parallel)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"{name} must be a whole number, at least 1; got {value!r}. Count them.")
    if timeout is not None and not (is_number(timeout) and timeout > 0):
        raise ValueError(f"timeout must be a positive number of seconds, or None; got {timeout!r}. None waits.")
    if on_timeout not in ("crash", "void"):
        raise ValueError(f"on_timeout must be 'crash' or 'void'; got {on_timeout!r}. Choose one.")
    if on_lost not in ("void", "crash", "repeat"):
        raise ValueError(f"on_lost must be 'void', 'crash' or 'repeat'; got {on_lost!r}. Choose one.")
    study = Optimizer(
        space,
        constraints,
        seed=seed,
        strategy=strategy,
        risk=announced(risk_of(risk), trials),
        start=start,
        noise=noise,
        direction=direction,
        posterior=posterior,
    )
    shown = progress_of(progress)
    with _opened(journal) as log:
        try:
            if log is not None:
                study = log.open_study(study)
            again = _settle_lost(study, log, on_lost)
            workers = n_parallel or int(getattr(executor, "_max_workers", None) or 1)
            pool = executor or (_Inline() if timeout is None and workers == 1 else _Threads())
            run = _Run(study, experiment, pool, workers, trials, timeout, on_timeout, tuple(stop), log, shown)
            return Result(study, run.to_the_end(again), journal)
        finally:
            if isinstance(shown, TerminalProgress):
                shown.close()


@contextmanager
def _opened(journal: str | PathLike[str] | None) -> Iterator[Journal | None]:
    """The journal at that path, held for as long as it is needed."""
    log = Journal(journal) if journal is not None else None
    try:
        yield log
    finally:
        if log is not None:
            log.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until what was told is on disk, too; only the main thread is ever interrupted."""
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


class _Run:
    """The loop: keep every worker busy, tell what comes back, stop when it is time."""

    def __init__(
        self,
        study: Optimizer,
        experiment: Experiment,
        pool: "Executor | _Inline | _Threads",
        workers: int,
        trials: int,
        timeout: float | None,
        on_timeout: Fault,
        stop: tuple[StopRule, ...],
        log: Journal | None,
        shown: Progress | None,
    ) -> None:
        self.study, self.experiment, self.pool, self.workers = study, experiment, pool, workers
        self.trials, self.timeout, self.on_timeout, self.stop = trials, timeout, on_timeout, stop
        self.log, self.shown = log, shown
        self.running: list[_Running] = []
        self.voids = 0

    def to_the_end(self, again: list[Trial]) -> str:
        """Run; the reason why it ended. Ctrl-C is one."""
        reason = None
        try:
            while True:
                reason = reason or self._reason_to_stop()
                while reason is None and len(self.running) < self.workers and self._room():
                    trial = again.pop(0) if again else self._ask()
                    future = self.pool.submit(_outcome, self.experiment, trial.params)
                    self.running.append(_Running(trial, future, time.monotonic()))
                if not self.running:
                    return reason or f"{self.trials} trials"
                self._collect()
        except KeyboardInterrupt:
            return "interrupted"

    def _room(self) -> bool:
        counted = sum(t.state in ("success", "crash") for t in self.study.trials)
        return counted + len(self.running) < self.trials

    def _reason_to_stop(self) -> str | None:
        if self.voids >= _MOST_VOIDS:
            return f"{self.voids} void trials in a row"
        return next((reason for rule in self.stop if (reason := rule(self.study))), None)

    def _ask(self) -> Trial:
        trial = self.study.ask()
        if self.log is not None:
            self.log.asked(trial, self.study)
        return trial

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
        with _uninterrupted():
            told = _tell(self.study, trial, outcome)
            if self.log is not None:
                self.log.told(told)
        self.voids = self.voids + 1 if told.state == "void" else 0
        if self.shown is not None:
            self.shown(self.study, told, self.trials)


def _settle_lost(study: Optimizer, log: Journal | None, on_lost: str) -> list[Trial]:
    """Trials that ran when an earlier process died: told, or given back to be run again."""
    lost = [t for t in study.trials if t.state == "pending"]
    if on_lost == "repeat":
        return lost
    for trial in lost:
        words = "lost: the process that ran it died"
        told = _tell(study, trial, Crash(words) if on_lost == "crash" else Void(words))
        if log is not None:
            log.told(told)
    return []


def _outcome(experiment: Experiment, params: dict[str, Any]) -> Outcome | Crash | Void:
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


def _tell(study: Optimizer, trial: Trial, outcome: Outcome | Crash | Void) -> Trial:
    if isinstance(outcome, Crash):
        return study.tell(trial, crash=outcome)
    if isinstance(outcome, Void):
        return study.tell(trial, void=outcome.reason or True)
    return study.tell(trial, cost=outcome.cost, measured=outcome.measured, censored=outcome.censored)


class _Inline:
    """Runs at once, here: an experiment that is not parallel stays in the caller's own thread."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """The finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class _Threads:
    """One daemon thread an experiment: one that hangs does not keep the process from ending."""

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
