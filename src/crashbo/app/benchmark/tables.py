"""The results of a benchmark as CSV: runs, trials and means. May import every other layer.

Only the cases that all methods have finished are written, so that every figure can be computed again from `trials.csv`.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from crashbo.benchmark.published import judged, reached
from crashbo.benchmark.runs import Run
from crashbo.benchmark.summary import (
    Summary,
    anytime_score,
    crash_share,
    dearly_priced_score,
    final_regret,
    final_score,
    parts,
    priced_score,
    suggestion_seconds,
    wasted_share,
)

RUNS = (
    *("method", "problem", "dimension", "seed", "trials", "trials_made", "measured", "started", "optimum"),
    *("median_safe_cost", "noise", "final_regret", "score", "anytime_score", "score_price_5", "score_price_20"),
    *("crashes", "wasted", "seconds_per_suggestion", "error"),
)
TRIALS = (
    *("method", "problem", "dimension", "seed", "trial", "cost", "true_cost", "crashed", "regret", "score", "wasted"),
    *("seconds", "point"),
)
GROUPS = (
    *("group_kind", "group", "method", "cases", "mean_score", "low", "high", "anytime_score", "score_price_5"),
    *("score_price_20", "crashes", "wasted", "seconds"),
)
REACHED = ("problem", "figure", "trials", "method", "origin", "runs", "mean", "error", "solved", "crashes")

Row = Sequence[object]


def write(summary: Summary, folder: Path) -> None:
    """Write runs.csv, trials.csv, summary.csv and published.csv into a folder, which is created if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = [run for method in summary.methods for run in summary.of_method(method)]
    _write(folder / "runs.csv", RUNS, map(_run, runs))
    _write(folder / "trials.csv", TRIALS, (row for run in runs for row in _trials(run)))
    _write(folder / "summary.csv", GROUPS, _groups(summary) if summary.cases else ())
    _write(folder / "published.csv", REACHED, _reached(summary))


def _run(run: Run) -> Row:
    case = run.spec.case
    return [
        *(run.spec.method, case.problem, case.dimension, case.seed, run.spec.trials, len(run.costs)),
        *(int(run.measured), int(run.started), run.optimum, run.median, run.noise),
        *(_number(final_regret(run)), final_score(run), anytime_score(run), priced_score(run)),
        *(dearly_priced_score(run), int(run.crashes[-1]), sum(run.wasted)),
        *(_number(suggestion_seconds(run)), run.error or ""),
    ]


def _trials(run: Run) -> Iterator[Row]:
    case, regret, score = run.spec.case, run.regret, run.score
    for i, (cost, truth) in enumerate(zip(run.costs, run.truths, strict=True)):
        yield [
            *(run.spec.method, case.problem, case.dimension, case.seed, i + 1),
            *("" if cost is None else cost, "" if truth is None else truth, int(cost is None)),
            *(_number(float(regret[i])), float(score[i]), int(run.wasted[i]), run.suggesting[i]),
            " ".join(f"{x:.6g}" for x in run.points[i]),
        ]


def _groups(summary: Summary) -> Iterator[Row]:
    for part in parts(summary):
        for method in part.summary.methods:
            of = part.summary
            means = [of.estimate(method, what).mean for what in _MEANS]
            figures = map(_number, (*of.estimate(method, final_score), *means))
            yield [part.kind, part.name, method, len(of.cases), *figures]


_MEANS = (anytime_score, priced_score, dearly_priced_score, crash_share, wasted_share, suggestion_seconds)


def _reached(summary: Summary) -> Iterator[Row]:
    for problem, published in judged(summary).items():
        for row in reached(summary, problem):
            for at, mean, error in zip(published.at or (published.trials,), row.figures, row.errors, strict=True):
                figures = map(_number, (mean, error, row.solved, row.crashes))
                yield [problem, published.figure, at, row.name, row.origin, row.runs, *figures]


def _number(value: float) -> float | str:
    """Nothing where there is none."""
    return "" if np.isnan(value) else value


def _write(path: Path, head: Row, rows: Iterable[Row]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
