"""What methods reach on a published problem: those that were run here, chance, and the runs as they were published.

May import the public API, `problems` and `campaigns`.

The figure is that of the publication: trials until the target (as many as a run has where it is never reached), the gap
between the best cost and the optimum (before a success, that of the median safe cost), or the optimum's share of the
best cost, 0 before a success. Curves of "trials"
are of the share of runs that have reached the target.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crashbo import problems
from crashbo.benchmark.cases import publication_of
from crashbo.benchmark.chance import Chance, chance_on
from crashbo.benchmark.measures import Array, incumbents
from crashbo.benchmark.runs import Run
from crashbo.benchmark.summary import Summary, label
from crashbo.problems import Published, PublishedRun

HERE, COMPUTED, THERE = "here", "computed", "published"
_CHANCE = "Random, no repeats"


@dataclass(frozen=True)
class Reached:
    """What a method reached on a published problem."""

    problem: str
    method: str
    name: str  # in tables and figures
    origin: str  # HERE, COMPUTED or THERE
    runs: int  # none where it was computed
    trials: Array  # at which the curve is known
    curve: Array  # mean over the runs
    figures: tuple[float, ...]  # the figure at the problem's `at`, or trials until the target; means over the runs
    errors: tuple[float, ...]  # their standard errors
    solved: float  # share of the runs that reached the target; NaN where there is none
    crashes: float  # of a run, on average


def judged(summary: Summary) -> dict[str, Published]:
    """The published problems among the cases, and how each is judged."""
    found = {problem: publication_of(problem) for problem in summary.problems}
    return {problem: published for problem, published in found.items() if published is not None}


def reached(summary: Summary, problem: str) -> list[Reached]:
    """All methods on a published problem, the best first."""
    published, part = judged(summary)[problem], summary.problems[problem]
    found = [_here(problem, method, part.of_method(method), published) for method in part.methods]
    chance = chance_on(problem)
    if chance is not None:
        found = [*(row for row in found if row.method != "random"), _computed(problem, chance, published)]
    for method in dict.fromkeys(run.method for run in published.runs):
        found.append(_there(problem, method, [run for run in published.runs if run.method == method], published))
    sign = -1.0 if published.figure == "share" else 1.0
    return sorted(found, key=lambda row: sign * row.figures[-1])


def _here(problem: str, method: str, runs: Sequence[Run], published: Published) -> Reached:
    values = np.stack([_values(run, published) for run in runs])
    crashes = float(np.mean([run.crashes[: published.trials][-1] for run in runs]))
    figures = _until(values) if published.figure == "trials" else values[:, np.array(published.at) - 1]
    solved = float(values[:, -1].mean()) if published.figure == "trials" else np.nan
    trials = np.arange(1.0, published.trials + 1.0)
    return Reached(
        problem, method, label(method), HERE, len(runs), trials, values.mean(axis=0), *_means(figures), solved, crashes
    )


def _values(run: Run, published: Published) -> Array:
    """The figure after each trial."""
    if published.figure == "trials":
        return _held(run.solved(0.0).astype(float), published.trials)
    best = _held(incumbents(run.costs, run.truths), published.trials)
    if published.figure == "gap":
        return np.where(np.isnan(best), run.median, best) - run.optimum
    return np.where(np.isnan(best), 0.0, run.optimum / best)


def _held(values: Array, trials: int) -> Array:
    """As many values as trials: the last one is carried on, and NaN without any."""
    missing = max(trials - len(values), 0)
    return np.concatenate([values[:trials], np.full(missing, values[-1] if len(values) else np.nan)])


def _until(values: Array) -> Array:
    """Trials until the target is reached, or all of them, (runs, 1)."""
    return np.asarray(1.0 + (1.0 - values[:, :-1]).sum(axis=1, keepdims=True))


def _computed(problem: str, chance: Chance, published: Published) -> Reached:
    if published.figure == "trials":
        assert published.target is not None
        curve = chance.solved(published.target)
        figures: tuple[float, ...] = (float((1.0 - curve[:-1]).sum()),)
    else:
        best = chance.costs[0]
        is_gap = published.figure == "gap"
        without = float(np.median(chance.costs)) - best if is_gap else 0.0
        curve = chance.mean(chance.costs - best if is_gap else best / chance.costs, without)
        figures = tuple(float(curve[n]) for n in published.at)
    solved = float(curve[-1]) if published.figure == "trials" else np.nan
    errors = (np.nan,) * len(figures)
    trials, crashes = np.arange(1.0, chance.trials + 1.0), chance.crashes(published.target)
    return Reached(problem, "random", _CHANCE, COMPUTED, 0, trials, curve[1:], figures, errors, solved, crashes)


def _there(problem: str, method: str, runs: Sequence[PublishedRun], published: Published) -> Reached:
    crashes, solved = float(np.mean([run.failures for run in runs])), np.nan
    if published.figure == "trials":
        if any(run.trials > published.trials for run in runs):  # it is not known how many were before the cap
            crashes = np.nan
        until = np.array([[run.trials] for run in runs], dtype=float)
        trials = np.arange(1.0, published.trials + 1.0)
        curve, figures = (until <= trials).mean(axis=0), np.minimum(until, published.trials)
        solved = float(curve[-1])
    else:
        optimum = problems.get(problem).constrained_minimum
        assert optimum is not None
        trials = np.array(published.at, dtype=float)
        figures = np.array([[run.best[n] - optimum for n in published.at] for run in runs])
        curve = figures.mean(axis=0)
    name = method.removeprefix("wodesc_").replace("desc_", "descriptors, ")
    return Reached(problem, method, name, THERE, len(runs), trials, curve, *_means(figures), solved, crashes)


def _means(figures: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Means, and their standard errors; NaN for a single run."""
    n = len(figures)
    errors = figures.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(figures.shape[1], np.nan)
    return tuple(map(float, figures.mean(axis=0))), tuple(map(float, errors))
