"""minimize: run an experiment until its trials are used up, alone or on many workers.

May import strategies and below.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack

from crashbo import processes
from crashbo.lazy import above
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.confirmation import Confirmation
from crashbo.optimizer.experiment import Experiment, Rules, Word, takes_guard
from crashbo.optimizer.keywords import counted
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.pools import Borrowed, Here, Kept, Pool, Threads
from crashbo.optimizer.progress import Progress, TerminalProgress, progress_of
from crashbo.optimizer.records import Fault, Trial
from crashbo.optimizer.running import Callback, Contexts, Loop, Recorded, opened
from crashbo.optimizer.stopping import StopRule
from crashbo.optimizer.study import Constraints, Options, Study, takes_options
from crashbo.optimizer.threshold import Threshold
from crashbo.optimizer.view import Recommendation, View
from crashbo.search.risk import announced
from crashbo.search.space import Params, Space, is_number
from crashbo.workers import Limits


@dataclass(frozen=True)
class Result:
    """What a study found. Everything is read from its optimizer, which can go on."""

    optimizer: Optimizer
    ended: str  # why
    journal: str | PathLike[str] | None = None

    @property
    def best(self) -> Trial | None:
        """The success with the best observed cost."""
        return self.optimizer.best

    @property
    def front(self) -> list[Trial]:
        """Of several goals, the trials that no other beats in all of them, in order."""
        return self.optimizer.front

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """Of several goals, the volume of what the front beats, up to a reference point."""
        return self.view.hypervolume(reference)

    @property
    def reference(self) -> dict[str, float] | None:
        """Of several goals, the worst values that count."""
        return self.view.reference

    @property
    def trials(self) -> list[Trial]:
        """Every trial, in order."""
        return self.optimizer.trials

    @property
    def view(self) -> View:
        """The study as its models see it."""
        return self.optimizer.view

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The crash threshold of every measured constraint."""
        return self.view.thresholds

    def recommend(
        self, delta: float = 0.1, weights: Mapping[str, float] | None = None, *, context: Params | None = None
    ) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta (eq. 3), in a context; by default the last.

        Of several goals, by their `weights`: see `Optimizer`.
        """
        return self.view.at(context).recommend(delta, weights)

    def p_safe(self, params: Any, *, context: Params | None = None) -> Any:
        """Probability that a trial at params succeeds; a list gives an array."""
        return self.view.at(context).p_safe(params)

    def blame(self, trial: Trial | int) -> dict[str, float]:
        """Probability that each constraint was violated in a trial that crashed."""
        return self.view.blame(trial)

    def p_violated(self, params: Any) -> Any:
        """Probability that a trial at params would violate each constraint; a list gives arrays."""
        return self.view.p_violated(params)

    def check(self) -> list[Finding]:
        """What in the trials speaks against the model, in words, with a remedy: the strongest first; then advice."""
        return self.optimizer.check()

    def table(self) -> list[dict[str, Any]]:
        """Every trial as a row of plain values, with the blame of crashes as inferred."""
        return self.view.table()

    def to_dataframe(self) -> Any:
        """Every trial as a row of a pandas data frame, in order, with the columns of the CSV."""
        return self.optimizer.to_dataframe()

    def plot(self, what: str | None = None, *, axes: Sequence[str] | None = None) -> Any:
        """A picture of the study, a matplotlib figure: see `Optimizer.plot`."""
        return self.optimizer.plot(what, axes=axes)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the study as one HTML file, to mail around; returns its path."""
        return self.optimizer.report(path)

    def _repr_html_(self) -> str:
        return str(above("html")(self.optimizer, self.ended))

    def __repr__(self) -> str:
        return f"<Result: {self.ended}; {self.optimizer!r}>"

    def confirm(
        self,
        experiment: Experiment,
        n: int = 10,
        *,
        params: Params | Trial | None = None,
        workers: int | None = None,
        timeout: float | None = None,
        memory: str | float | None = None,
        on_timeout: Fault = "crash",
        on_death: Fault = "crash",
        on_error: Word = "raise",
        on_nan: Word = "raise",
        context: Contexts = None,
    ) -> Confirmation:
        """Repeat the best trial n times and report mean, spread and crashes; a study's journal keeps them, too.

        A repeat that was void is made again, up to n in all. `params`, or a trial such as one of the front, are
        repeated in place of the best. The other keywords are those of `minimize`.
        """
        confirmation = self.optimizer.confirm(n, params)
        told = sum(t.counts for t in self.trials)
        rules = Rules(on_timeout, on_death, on_error, on_nan)

        def tried(_: Optimizer) -> str | None:
            return "void again and again" if len(confirmation.trials) >= 2 * n else None

        with _pool(experiment, workers, None, None, timeout, memory, rules) as pool, opened(self.journal) as log:
            loop = Loop(
                Recorded(self.optimizer, log, context), pool, told + n, rules, (tried,), guarded=takes_guard(experiment)
            )
            loop.to_the_end()
        return confirmation


@takes_options
def minimize(
    experiment: Experiment,
    space: Study | Space | Mapping[str, Any],
    *,
    constraints: Constraints | None = None,
    trials: int = 50,
    seed: int | None = 0,
    start: Sequence[Params] | None = None,
    workers: int | None = None,
    executor: Executor | Any = None,
    n_parallel: int | None = None,
    timeout: float | None = None,
    memory: str | float | None = None,
    on_timeout: Fault = "crash",
    on_death: Fault = "crash",
    on_error: Word = "raise",
    on_nan: Word = "raise",
    on_lost: Literal["void", "crash", "repeat"] = "void",
    stop: Sequence[StopRule] = (),
    journal: str | PathLike[str] | None = None,
    progress: Progress | bool | None = None,
    callbacks: Sequence[Callback] = (),
    context: Contexts = None,
    **options: Unpack[Options],
) -> Result:
    """Minimise an experiment's cost, learning from crashes.

    Args:
        experiment: gets the params and returns an Outcome or a cost, or raises Crash or Void. With several objectives
            the cost is a mapping, goal to value. One that has a parameter named guard gets that, too: see
            `Optimizer.guard`.
        space: names to (low, high), Float, Int, Choice or Context; or a whole Study.
        constraints: the measured reasons for a crash: names, Constraint or Unmeasured.
        trials: successes, crashes and stopped trials to run; voids do not count.
        seed: of the proposals.
        start: params to try first.
        workers: run so many experiments at a time, each in a process that may die and is replaced.
        executor: runs the experiments in place of `workers`: of threads, processes, Dask, submitit or joblib. With
            neither they run here, one after another.
        n_parallel: experiments at a time; by default as many as the executor has workers.
        timeout: seconds after which a trial is given up, from the moment its experiment begins.
        memory: the most that an experiment with all its processes may use, such as "2GB".
        on_timeout: what a trial that is given up counts as.
        on_death: what the death of an experiment's process counts as: a segfault, an exit, a kill, out of memory.
        on_error: what any other exception counts as; "raise" raises it to you, and the study keeps what it had.
        on_nan: what a cost that is no finite number counts as.
        on_lost: what becomes, on resuming, of a trial that ran when this process died; "repeat" runs it again.
        stop: rules that end the study early, see `crashbo.stopping`.
        journal: a file that keeps every event as it happens; a second call with the same file resumes.
        progress: None shows a line on a terminal and in a notebook; True elsewhere, too, there a line per trial; False;
            or a function of your own.
        callbacks: functions of the optimizer and a trial, called after every trial that is told.
        context: what is met, a value for each Context of the space; or a function that says it before every trial.
    """
    trials = counted("trials", trials)
    if not callable(experiment):
        raise ValueError(f"experiment must be a function of params; got {experiment!r}. Pass it without calling it.")
    if on_lost not in ("void", "crash", "repeat"):
        raise ValueError(f"on_lost must be 'void', 'crash' or 'repeat'; got {on_lost!r}. Choose one.")
    if not (isinstance(callbacks, Sequence) and all(map(callable, callbacks))):
        raise ValueError(f"callbacks must be a list of functions; got {callbacks!r}. Write [function].")
    if not (isinstance(stop, Sequence) and all(callable(rule) and not isinstance(rule, type) for rule in stop)):
        raise ValueError(f"stop must be a list of rules; got {stop!r}. Write [crashbo.stopping.NoGain()].")
    rules = Rules(on_timeout, on_death, on_error, on_nan)
    study = Study.of(space, constraints, **options)
    if study.compared:
        raise ValueError(
            "cost must be a number that the experiment returns; got 'compared'. Use Optimizer: ask, tell and prefer."
        )
    optimizer = Optimizer(replace(study, risk=announced(study.risk, trials)), seed=seed, start=start)
    shown = progress_of(progress)
    # The pool first: a process that is forked later inherits more.
    with _pool(experiment, workers, executor, n_parallel, timeout, memory, rules) as pool, opened(journal) as log:
        try:
            if log is not None:
                optimizer = log.open_study(optimizer)
            recorded, guarded = Recorded(optimizer, log, context), takes_guard(experiment)
            loop = Loop(recorded, pool, trials, rules, tuple(stop), shown, tuple(callbacks), guarded)
            loop.settle_lost(on_lost)
            return Result(optimizer, loop.to_the_end(), journal)
        finally:
            if isinstance(shown, TerminalProgress):
                shown.close()


@contextmanager
def _pool(
    experiment: Experiment,
    workers: int | None,
    executor: Any,
    n_parallel: int | None,
    timeout: float | None,
    memory: str | float | None,
    rules: Rules,
) -> Iterator[Pool]:
    """Where the experiments run."""
    n_parallel = None if n_parallel is None else counted("n_parallel", n_parallel)
    workers = None if workers is None else counted("workers", workers)
    if timeout is not None and not (is_number(timeout) and timeout > 0):
        raise ValueError(f"timeout must be a positive number of seconds, or None; got {timeout!r}. None waits.")
    if workers is not None and (executor is not None or n_parallel is not None):
        other = "executor" if executor is not None else "n_parallel"
        raise ValueError(f"workers must be given without {other}; got {workers} and both. Leave {other} out.")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor must be one such as concurrent.futures has; got {executor!r}. Or give workers=4.")
    size = None if memory is None else processes.bytes_of(memory)
    in_processes = workers is not None or not (executor is None or isinstance(executor, ThreadPoolExecutor))
    if not in_processes and (size is not None or rules.on_death != "crash"):
        name = "on_death" if size is None else "memory"
        raise ValueError(f"{name} must go with workers or an executor of processes; got neither. Give workers=1.")
    if executor is not None and size is not None and not hasattr(executor, "_processes"):
        raise ValueError(
            f"memory must go with workers or a pool of processes on this machine; got {type(executor).__name__}. "
            "Set the limit where that executor has its own."
        )
    pool: Pool
    if workers is not None:
        pool = Kept(experiment, workers, Limits(timeout, size))
    elif executor is not None:
        pool = Borrowed(executor, experiment, n_parallel, timeout, size)
    elif timeout is None and (n_parallel or 1) == 1:
        pool = Here(experiment, 1)
    else:
        pool = Threads(experiment, n_parallel or 1, timeout)
    try:
        yield pool
    finally:
        pool.close()
