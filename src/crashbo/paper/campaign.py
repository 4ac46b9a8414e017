"""A campaign: every method on every problem, repeat by repeat, on all cores.

May import the public API and `problems`.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crashbo import problems
from crashbo.paper.methods import METHODS
from crashbo.paper.run_log import RunLog
from crashbo.paper.runs import Run, Spec, execute

# Called after each run with that run, the number of runs done and the total.
Report = Callable[[Run, int, int], None]

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Campaign:
    """What is compared.

    Attributes:
        methods: names in METHODS.
        problems: names for `problems.get`: ours, or "module:name" of the user's own.
        repeats: of every method on every problem.
        trials: per run.
        known_noise: whether the methods are told the noise.
    """

    methods: tuple[str, ...]
    problems: tuple[str, ...]
    repeats: int
    trials: int
    known_noise: bool = False

    def __post_init__(self) -> None:
        own = [name for name in self.problems if ":" in name]
        for name in own:
            problems.get(name)  # raises an error that says what is wrong with it
        for what, given, known in (
            ("methods", self.methods, list(METHODS)),
            ("problems", self.problems, [*problems.names(), *own]),
        ):
            strange = [name for name in given if name not in known]
            if strange or not given or len(set(given)) < len(given):
                raise ValueError(
                    f"{what} must be different ones of {', '.join(known)}; got {', '.join(given) or 'none'}. "
                    "Separate them by commas."
                )
        for what, count in (("repeats", self.repeats), ("trials", self.trials)):
            if count < 1:
                raise ValueError(f"{what} must be a whole number, at least 1; got {count}. Count them.")

    @property
    def refusals(self) -> dict[tuple[str, str], str]:
        """Pairs of method and problem that cannot be combined, and why."""
        found = {name: problems.get(name) for name in self.problems}
        reasons = {(m, p): METHODS[m].refusal(problem) for m in self.methods for p, problem in found.items()}
        return {pair: reason for pair, reason in reasons.items() if reason is not None}

    def specs(self) -> list[Spec]:
        """All runs, ordered by repeat: what is finished at any time is balanced."""
        refused = self.refusals
        return [
            Spec(method, problem, repeat, self.trials, self.known_noise)
            for repeat in range(self.repeats)
            for problem in self.problems
            for method in self.methods
            if (method, problem) not in refused
        ]


def run_all(specs: Sequence[Spec], log: RunLog, *, workers: int, report: Report | None = None) -> list[Run]:
    """The runs of all specs, in their order; those missing from the log are run now and logged as they finish."""
    todo = [spec for spec in specs if spec not in log.runs]
    if todo:
        for name in _THREADS:  # read by the workers when they load NumPy: threads would compete for the cores
            os.environ.setdefault(name, "1")
        # Spawned, not forked, so that a worker's arithmetic does not depend on what this process has loaded.
        with multiprocessing.get_context("spawn").Pool(min(workers, len(todo)), _prepare_worker) as pool:
            for done, run in enumerate(pool.imap_unordered(_attempt, todo), start=1):
                log.add(run)
                if report is not None:
                    report(run, done, len(todo))
    return [log.runs[spec] for spec in specs]


def _attempt(spec: Spec) -> Run:
    try:
        return execute(spec)
    except Exception as error:
        raise RuntimeError(f"{spec} failed: {error!r}") from error


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and exit when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
