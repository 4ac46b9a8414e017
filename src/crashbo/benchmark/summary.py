"""Statistics over runs: means with bootstrap intervals, paired comparisons, profiles, and where we lead and lose.

May import the public API, `problems` and `campaigns`.

All methods are compared on the same cases: one that a method has not finished is left out for all. Intervals are by
the bootstrap over cases, 95 %; comparisons are paired by case.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from crashbo.benchmark import methods
from crashbo.benchmark.cases import Case
from crashbo.benchmark.chance import chance_on
from crashbo.benchmark.groups import GROUPS, members
from crashbo.benchmark.measures import Array
from crashbo.benchmark.methods import Method
from crashbo.benchmark.runs import Run

_RESAMPLES = 2000
_ENDS = (2.5, 97.5)
_FEW = 5  # cases, fewer than which no interval is worth its name
TARGETS = (0.1, 0.01)  # normalised regret that counts as solved, where no target was published
PRICE = 5.0  # of a crash, in trials, of the figure that everything is compared by
STEPS = 100  # of a curve over the share of the trials
OURS = ("eicc", "eicc-labels")  # whose leads and losses are told
ORACLE = "oracle"
_BASELINES = ("random", "sobol")  # nobody's: counted among the peers
_BEATEN = 1e-6  # of the span: a cost that is lower than the optimum by more is no rounding


class Estimate(NamedTuple):
    """A mean over cases with its interval; NaN where there are too few cases for one."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """Runs of several methods on the same cases."""

    methods: tuple[str, ...]
    cases: tuple[Case, ...]
    runs: dict[tuple[str, Case], Run]
    unfinished: int  # cases that are left out since a method has not run on them

    @staticmethod
    def of(runs: Iterable[Run]) -> "Summary":
        """The cases that all methods have finished."""
        found = {(run.spec.method, run.spec.case): run for run in runs}
        names = tuple(dict.fromkeys(method for method, _ in found))
        everywhere = dict.fromkeys(case for _, case in found)
        cases = tuple(case for case in everywhere if all((name, case) in found for name in names))
        return Summary(names, cases, found, len(everywhere) - len(cases))

    def on(self, cases: Iterable[Case]) -> "Summary":
        """A part of the cases."""
        chosen = set(cases)
        return Summary(self.methods, tuple(case for case in self.cases if case in chosen), self.runs, 0)

    def of_method(self, method: str) -> list[Run]:
        """Its runs, in the order of the cases."""
        return [self.runs[method, case] for case in self.cases]

    def values(self, method: str, what: Callable[[Run], float]) -> Array:
        """One number per case."""
        return np.array([what(run) for run in self.of_method(method)])

    def estimate(self, method: str, what: Callable[[Run], float]) -> Estimate:
        """The mean over the cases that have a value."""
        values = self.values(method, what)
        mean, low, high = bootstrap(values[~np.isnan(values)])
        most = np.inf if what is suggestion_seconds else 1.0  # all others are scores and shares
        return Estimate(mean, float(np.clip(low, 0.0, most)), float(np.clip(high, 0.0, most)))

    def difference(self, one: str, other: str, what: Callable[[Run], float]) -> Estimate:
        """How much higher one is than the other, case by case."""
        return bootstrap(self.values(one, what) - self.values(other, what))

    def curves(self, method: str, what: Callable[[Run], Array], before: float) -> Array:
        """Values over the share of the trials, one row per case, (cases, STEPS + 1); `before` is that of no trial."""
        return np.stack([_resampled(what(run), before) for run in self.of_method(method)])

    def ranked(self) -> list[str]:
        """The methods, that with the lowest mean regret first."""
        return sorted(self.methods, key=lambda method: float(np.mean(self.values(method, final_score))))

    @cached_property
    def groups(self) -> "dict[str, Summary]":
        """The groups that every comparison is by, as far as there are cases."""
        runs = [run for method in self.methods for run in self.of_method(method)]
        found = {group.name: Summary.of(members(group, runs)) for group in GROUPS}
        return {name: part for name, part in found.items() if part.cases}

    @cached_property
    def problems(self) -> "dict[str, Summary]":
        """The cases of each problem or family."""
        parts: dict[str, list[Case]] = {}
        for case in sorted(self.cases, key=lambda case: (case.problem, case.dimension)):
            parts.setdefault(case.problem, []).append(case)
        return {name: self.on(cases) for name, cases in parts.items()}

    def by_problem_and_dimension(self) -> "dict[tuple[str, int], Summary]":
        """The finest parts: members of one family in one dimension."""
        cells: dict[tuple[str, int], list[Case]] = {}
        for case in self.cases:
            cells.setdefault((case.problem, case.dimension), []).append(case)
        return {cell: self.on(cases) for cell, cases in cells.items()}


def final_score(run: Run) -> float:
    """Normalised regret at the end, between zero and one."""
    return float(run.score[-1])


def anytime_score(run: Run) -> float:
    """Mean of the normalised regret over the trials, each between zero and one."""
    return run.over_price(1.0)


def priced_score(run: Run) -> float:
    """The same over the price paid, a crash costing five trials."""
    return run.over_price(PRICE)


def dearly_priced_score(run: Run) -> float:
    """The same, a crash costing twenty trials."""
    return run.over_price(20.0)


def final_regret(run: Run) -> float:
    """Normalised regret at the end as it is; NaN without a success."""
    return float(run.regret[-1])


def crash_share(run: Run) -> float:
    """Crashes as a share of the trials made."""
    return float(run.crashes[-1]) / max(len(run.costs), 1)


def wasted_share(run: Run) -> float:
    """Wasted trials as a share of those made."""
    return float(np.mean(run.wasted)) if run.wasted else 0.0


def suggestion_seconds(run: Run) -> float:
    """Mean time of a suggestion; NaN if none was made."""
    return float(np.mean(run.suggesting)) if run.suggesting else float("nan")


def bootstrap(values: Array) -> Estimate:
    """The mean and its interval by resampling cases."""
    mean = float(np.mean(values)) if len(values) else float("nan")
    if len(values) < _FEW:
        return Estimate(mean, float("nan"), float("nan"))
    picks = np.random.default_rng(0).integers(len(values), size=(_RESAMPLES, len(values)))
    low, high = mean + _stretch(len(values)) * (np.percentile(values[picks].mean(axis=1), _ENDS) - mean)
    return Estimate(mean, float(low), float(high))


def _stretch(n: int) -> float:
    """What makes a bootstrap interval of few cases as wide as Student's: without it, one in six misses at five."""
    return float(stdtrit(n - 1, 0.975) / ndtri(0.975) * np.sqrt(n / (n - 1)))


def band(curves: Array) -> tuple[Array, Array]:
    """The interval of the mean curve, point by point, by resampling cases; NaN where there are too few."""
    n = len(curves)
    if n < _FEW:
        none = np.full(curves.shape[1], np.nan)
        return none, none
    picks = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))
    weights = np.stack([np.bincount(row, minlength=n) for row in picks]) / n
    mean = curves.mean(axis=0)
    low, high = mean + _stretch(n) * (np.percentile(weights @ curves, _ENDS, axis=0) - mean)
    return low, high


def trials_to(run: Run, target: float) -> float:
    """Trials after which it was solved first; infinite if it never was."""
    there = np.flatnonzero(run.solved(target))
    return float(there[0] + 1) if len(there) else np.inf


def data_profile(summary: Summary, method: str, target: float) -> tuple[Array, Array]:
    """The share of cases solved within so many trials, in the manner of Moré and Wild: the trials, and the shares.

    On a list, random search is computed, not sampled.
    """
    trials = np.arange(1 + max(run.spec.trials for run in summary.of_method(method)))
    chances = {problem: chance_on(problem) if method == "random" else None for problem in summary.problems}
    rows = []
    for run in summary.of_method(method):
        chance = chances[run.spec.case.problem]
        row = np.concatenate([[False], run.solved(target)]) if chance is None else chance.solved(_cost_of(run, target))
        rows.append(row[np.minimum(trials, len(row) - 1)])
    return trials.astype(float), np.mean(rows, axis=0)


def _cost_of(run: Run, target: float) -> float:
    """The cost that counts as solved."""
    return run.optimum + target * (run.median - run.optimum) if run.target is None else run.target


class Part(NamedTuple):
    """Some of the cases, and what they have in common."""

    kind: str  # all, group, problem, problem and dimension
    name: str
    where: str  # in a sentence
    summary: Summary


def parts(summary: Summary) -> list[Part]:
    """All cases, the groups, and what they consist of."""
    found = [Part("all", "all cases", "over all cases", summary)]
    found += [Part("group", name, f"on {name}", part) for name, part in summary.groups.items()]
    found += [Part("problem", name, f"on {name}", part) for name, part in summary.problems.items()]
    for (name, dimension), part in sorted(summary.by_problem_and_dimension().items()):
        words = f"{name} ({dimension} parameters)"
        found.append(Part("problem and dimension", words, f"on {words}", part))
    return found


class Verdict(NamedTuple):
    """How one of our methods stands beside the best peer, on some cases."""

    where: str
    ours: str
    rival: str  # the peer with the lowest mean there, in hindsight
    own: float  # mean normalised regret
    theirs: float
    difference: Estimate  # ours less theirs
    crashes: float  # ours, share of the trials
    their_crashes: float
    cases: int

    @property
    def word(self) -> str:
        """Lead, lose or level: by whether the interval of the difference has zero in it; "few" if it has none."""
        if np.isnan(self.difference.low):
            return "few"
        if self.difference.low <= 0.0 <= self.difference.high:
            return "level"
        return "lead" if self.difference.high < 0.0 else "lose"


def is_peer(method: str) -> bool:
    """Whether it is somebody else's: neither one of our strategies nor the oracle."""
    if method == ORACLE:
        return False
    found = _found(method)
    return method in _BASELINES or ":" in method or found is None or bool(found.libraries)


def label(method: str) -> str:
    """What a method is called in tables and figures; its name if it cannot be loaded here."""
    found = _found(method)
    return method if found is None else found.label


@cache
def _found(method: str) -> Method | None:
    try:
        return methods.get(method)
    except (ValueError, ImportError):
        return None


def verdict(part: Summary, where: str, ours: str) -> Verdict | None:
    """Our method beside the best peer on these cases; None if there is no peer."""
    rival = best_peer(part, ours)
    if rival is None or ours not in part.methods:
        return None
    return Verdict(
        where,
        ours,
        rival,
        part.estimate(ours, final_score).mean,
        part.estimate(rival, final_score).mean,
        part.difference(ours, rival, final_score),
        part.estimate(ours, crash_share).mean,
        part.estimate(rival, crash_share).mean,
        len(part.cases),
    )


def best_peer(part: Summary, ours: str = "") -> str | None:
    """The peer with the lowest mean regret on these cases, in hindsight."""
    if not part.cases:
        return None
    return next((method for method in part.ranked() if is_peer(method) and method != ours), None)


def standings(summary: Summary, ours: str) -> dict[str, list[Verdict]]:
    """Our method beside the best peer on all parts, by kind; a part with the cases of one before is left out."""
    found: dict[str, list[Verdict]] = {}
    seen: set[frozenset[Case]] = set()
    for part in parts(summary):
        cases = frozenset(part.summary.cases)
        told = verdict(part.summary, part.where, ours) if cases not in seen else None
        if told is not None:
            seen.add(cases)
            found.setdefault(part.kind, []).append(told)
    return found


def below_optimum(run: Run) -> float:
    """How far the best true cost is below the optimum on file, as a share of the span; zero if it is not."""
    costs = [truth for truth in run.truths if truth is not None]
    share = (run.optimum - min(costs)) / (run.median - run.optimum) if costs else 0.0
    return share if share > _BEATEN else 0.0


def _resampled(values: Array, before: float) -> Array:
    """Over the share of the trials, as steps."""
    n = len(values)
    at = np.floor(np.linspace(0.0, 1.0, STEPS + 1) * n + 1e-9).astype(int)
    return np.where(at > 0, values[np.maximum(at - 1, 0)], before)
