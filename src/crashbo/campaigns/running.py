"""Runs on all cores: what is missing from a log is run now, and logged as it finishes.

Needs the standard library and what belongs to all.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from crashbo.campaigns.run_log import R, RunLog, S
from crashbo.workers import Died, Late, Limits, Workers

# Called after each run with that run, the number of runs done and the total.
Report = Callable[[R, int, int], None]

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    specs: Sequence[S],
    execute: Callable[[S], R],
    log: RunLog[S, R],
    *,
    workers: int,
    report: Report[R] | None = None,
    lost: Callable[[S, str], R] | None = None,
    limits: Limits = Limits(),  # noqa: B008  # frozen
) -> list[R]:
    """The runs of all specs, in their order.

    Args:
        specs: what to run.
        execute: runs one; of a module's top level.
        log: what is finished.
        workers: processes.
        report: called after each run.
        lost: the record of a run whose process died or came to its limits; by default that ends everything.
        limits: of each run.
    """
    todo = [spec for spec in specs if spec not in log.runs]
    if todo:
        for name in _THREADS:  # read by the workers when they load NumPy: threads would compete for the cores
            os.environ.setdefault(name, "1")
        # Spawned, not forked, so that a worker's arithmetic does not depend on what this process has loaded.
        with Workers(execute, min(workers, len(todo)), limits, start="spawn") as pool:
            underway: dict[Future[Any], S] = {pool.submit(spec): spec for spec in todo}
            for done, (spec, future) in enumerate(_as_they_finish(underway), start=1):
                run = _result(spec, future, lost)
                log.add(run)
                if report is not None:
                    report(run, done, len(todo))
    return [log.runs[spec] for spec in specs]


def _as_they_finish(underway: "dict[Future[Any], S]") -> "Iterable[tuple[S, Future[Any]]]":
    waiting = dict(underway)
    while waiting:
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            yield waiting.pop(future), future


def _result(spec: S, future: "Future[R]", lost: Callable[[S, str], R] | None) -> R:
    try:
        return future.result()
    except (Died, Late) as error:
        if lost is None:
            raise RuntimeError(f"{spec} failed: {error}") from error
        return lost(spec, str(error))
    except Exception as error:
        raise RuntimeError(f"{spec} failed: {error!r}") from error
