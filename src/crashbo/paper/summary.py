"""What a campaign's runs say together: shares, regrets, thresholds, curves, and whether the paper's orderings hold.

May import the public API and `problems`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo import problems
from crashbo.paper.campaign import Campaign
from crashbo.paper.runs import Run

Array = NDArray[np.float64]

PENALTIES = ("ei-mc", "ei-hc", "ei-ac")


@dataclass(frozen=True)
class Cell:
    """One method on one problem; arrays have one row a run."""

    safe: Array  # percent of the trials, (runs,)
    regrets: Array  # after each trial, NaN before the first success, (runs, trials)
    crashes: Array  # so far, after each trial, (runs, trials)
    reach: Array  # (runs,)
    threshold_errors: Array  # learnt less true, of the first constraint, where one was learnt
    seconds: Array  # a trial, (runs,)

    @property
    def regret(self) -> Array:
        """At the end, (runs,)."""
        return self.regrets[:, -1]

    @property
    def crashes_after_start(self) -> int:
        """In all runs together; the start itself is safe by construction."""
        return int(self.crashes[:, -1].sum())


@dataclass(frozen=True)
class Summary:
    """A campaign's outcome."""

    campaign: Campaign
    cells: dict[tuple[str, str], Cell]  # by method and problem
    refusals: dict[tuple[str, str], str]


@dataclass(frozen=True)
class Claim:
    """One ordering of the paper's, and what we measured."""

    words: str
    holds: bool
    figures: str


def summarise(campaign: Campaign, runs: Sequence[Run]) -> Summary:
    """Put a campaign's runs together."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.spec.method, run.spec.problem), []).append(run)
    return Summary(campaign, {pair: _cell(group) for pair, group in groups.items()}, campaign.refusals)


def _cell(runs: list[Run]) -> Cell:
    limit = problems.get(runs[0].spec.problem).limits[0]
    learnt = [run.thresholds.get(limit.name) for run in runs]
    return Cell(
        safe=np.array([run.safe for run in runs]),
        regrets=np.array([run.regret for run in runs], dtype=float),  # None becomes NaN
        crashes=np.cumsum([run.crashed for run in runs], axis=1).astype(float),
        reach=np.array([run.reach for run in runs]),
        threshold_errors=np.array([c - limit.threshold for c in learnt if c is not None]),
        seconds=np.array([run.seconds / len(run.crashed) for run in runs]),
    )


def std(values: Array) -> float:
    """Standard deviation over runs; NaN for a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def claims(summary: Summary) -> list[Claim]:
    """The paper's orderings, as far as the methods that they need took part."""
    found: list[Claim] = []
    for problem in summary.campaign.problems:
        cells = {m: summary.cells[m, problem] for m in summary.campaign.methods if (m, problem) in summary.cells}
        for ours in ("eicc", "eicc-paper"):
            found += [_versus(problem, ours, rival, cells) for rival in PENALTIES if {ours, rival} <= cells.keys()]
        if "safeopt" in cells:
            count = cells["safeopt"].crashes_after_start
            found.append(Claim(f"{problem}: safeopt never crashes after its seed", count == 0, f"{count} crashes"))
        if {"pibu", "eicc"} <= cells.keys():
            found.append(_local(problem, cells))
    return found


def _versus(problem: str, ours: str, rival: str, cells: dict[str, Cell]) -> Claim:
    a, b = cells[ours], cells[rival]
    safer, lower = a.safe.mean() > b.safe.mean(), a.regret.mean() < b.regret.mean()
    figures = (
        f"safe {a.safe.mean():.1f} against {b.safe.mean():.1f} %, "
        f"mean regret {a.regret.mean():.3g} against {b.regret.mean():.3g}"
    )
    return Claim(f"{problem}: {ours} is safer than {rival}, with lower regret", bool(safer and lower), figures)


def _local(problem: str, cells: dict[str, Cell]) -> Claim:
    a, b = cells["pibu"], cells["eicc"]
    safer, nearer = a.safe.mean() > b.safe.mean(), a.reach.mean() < b.reach.mean()
    figures = (
        f"safe {a.safe.mean():.1f} against {b.safe.mean():.1f} %, "
        f"mean distance from the start {a.reach.mean():.2f} against {b.reach.mean():.2f} of the diagonal"
    )
    return Claim(f"{problem}: pibu is safer than eicc, and stays closer to its start", bool(safer and nearer), figures)
