"""minimize: run an experiment until its trials are used up, alone or on many workers.

May import strategies and below.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, Unpack

from crashbo.optimizer.confirmation import Confirmation
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.progress import Progress, TerminalProgress, progress_of
from crashbo.optimizer.records import Fault, Trial
from crashbo.optimizer.running import Experiment, Inline, Loop, Recorded, Threads, opened, outcome_of
from crashbo.optimizer.stopping import StopRule
from crashbo.optimizer.study import Constraints, Options, Study, takes_options
from crashbo.optimizer.view import Recommendation, Threshold, View
from crashbo.search.risk import announced
from crashbo.search.space import Params, Space, is_number


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
    def view(self) -> View:
        """The study as its models see it."""
        return self.optimizer.view

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The crash threshold of every measured constraint."""
        return self.view.thresholds

    def recommend(self, delta: float = 0.1) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta (eq. 3)."""
        return self.view.recommend(delta)

    def p_safe(self, params: Any) -> Any:
        """Probability that a trial at params succeeds; a list gives an array."""
        return self.view.p_safe(params)

    def blame(self, trial: Trial | int) -> dict[str, float]:
        """Probability that each constraint was violated in a trial that crashed."""
        return self.view.blame(trial)

    def p_violated(self, params: Any) -> Any:
        """Probability that a trial at params would violate each constraint; a list gives arrays."""
        return self.view.p_violated(params)

    def table(self) -> list[dict[str, Any]]:
        """Every trial as a row of plain values, with the blame of crashes as inferred."""
        return self.view.table()

    def confirm(self, experiment: Experiment, n: int = 10) -> Confirmation:
        """Repeat the best trial n times and report mean, spread and crashes; a study's journal keeps them, too.

        A repeat that was void is made again, up to n in all.
        """
        confirmation = self.optimizer.confirm(n)
        with opened(self.journal) as log:
            study = Recorded(self.optimizer, log)
            while not confirmation.done and len(confirmation.trials) < 2 * n:
                trial = study.ask()
                study.tell(trial, outcome_of(experiment, trial.params))
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
    executor: Executor | None = None,
    n_parallel: int | None = None,
    timeout: float | None = None,
    on_timeout: Fault = "crash",
    on_lost: Literal["void", "crash", "repeat"] = "void",
    stop: Sequence[StopRule] = (),
    journal: str | PathLike[str] | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[Options],
) -> Result:
    """Minimise an experiment's cost, learning from crashes.

    Args:
        experiment: gets the params and returns an Outcome or a cost, or raises Crash or Void. Any other exception
            is raised to the caller; the study keeps what it had.
        space: names to (low, high), Float, Int or Choice; or a whole Study.
        constraints: the measured reasons for a crash: names, Constraint or Unmeasured.
        trials: successes and crashes to run; voids do not count.
        seed: of the proposals.
        start: params to try first.
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
    study = Study.of(space, constraints, **options)
    optimizer = Optimizer(replace(study, risk=announced(study.risk, trials)), seed=seed, start=start)
    shown = progress_of(progress)
    with opened(journal) as log:
        try:
            if log is not None:
                optimizer = log.open_study(optimizer)
            recorded = Recorded(optimizer, log)
            again = recorded.settle_lost(on_lost)
            workers = n_parallel or int(getattr(executor, "_max_workers", None) or 1)
            pool = executor or (Inline() if timeout is None and workers == 1 else Threads())
            loop = Loop(recorded, experiment, pool, workers, trials, timeout, on_timeout, tuple(stop), shown)
            return Result(optimizer, loop.to_the_end(again), journal)
        finally:
            if isinstance(shown, TerminalProgress):
                shown.close()
