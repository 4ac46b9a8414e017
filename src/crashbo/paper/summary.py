"""Statistics over a campaign's runs: shares, regrets, thresholds, curves, and whether the paper's orderings hold.

May import the public API and `problems`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo import problems
from crashbo.paper.campaign import Campaign
from crashbo.paper.runs import PaperRun

Array = NDArray[np.float64]

PENALTIES = ("ei-mc", "ei-hc", "ei-ac")


@dataclass(frozen=True)
class Cell:
    """One method on one problem; arrays have one row per run."""

    safe: Array  # percent of the trials, (runs,)
    regrets: Array  # after each trial, NaN before the first success, (runs, trials)
    crashes: Array  # cumulative, after each trial, (runs, trials)
    reach: Array  # (runs,)
    threshold_errors: Array  # learnt minus true, of the first constraint, in runs that learnt one
    seconds: Array  # per trial, (runs,)

    @property
    def regret(self) -> Array:
        """Final regret, (runs,)."""
        return self.regrets[:, -1]

    @property
    def crashes_after_start(self) -> int:
        """Total over all runs; the start itself is safe by construction."""
        return int(self.crashes[:, -1].sum())


@dataclass(frozen=True)
class PaperSummary:
    """The results of a campaign."""

    campaign: Campaign
    cells: dict[tuple[str, str], Cell]  # by method and problem
    refusals: dict[tuple[str, str], str]


@dataclass(frozen=True)
class Claim:
    """One of the paper's orderings, and what we measured."""

    words: str
    holds: bool
    sure: bool  # beyond two standard errors, or not subject to chance
    figures: str


def summarise(campaign: Campaign, runs: Sequence[PaperRun]) -> PaperSummary:
    """Summarise the runs of a campaign."""
    groups: dict[tuple[str, str], list[PaperRun]] = {}
    for run in runs:
        groups.setdefault((run.spec.method, run.spec.problem), []).append(run)
    return PaperSummary(campaign, {pair: _cell(group) for pair, group in groups.items()}, campaign.refusals)


def _cell(runs: list[PaperRun]) -> Cell:
    limits = problems.get(runs[0].spec.problem).limits[:1]  # empty if nothing is measured
    learnt = [(run.thresholds.get(limit.name), limit.threshold) for limit in limits for run in runs]
    return Cell(
        safe=np.array([run.safe for run in runs]),
        regrets=np.array([run.regret for run in runs], dtype=float),  # None becomes NaN
        crashes=np.cumsum([run.crashed for run in runs], axis=1).astype(float),
        reach=np.array([run.reach for run in runs]),
        threshold_errors=np.array([c - true for c, true in learnt if c is not None]),
        seconds=np.array([run.seconds / len(run.crashed) for run in runs]),
    )


def std(values: Array) -> float:
    """Standard deviation over runs; NaN for a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def claims(summary: PaperSummary) -> list[Claim]:
    """The paper's orderings, where the methods that they compare took part."""
    found: list[Claim] = []
    for problem in summary.campaign.problems:
        cells = {m: summary.cells[m, problem] for m in summary.campaign.methods if (m, problem) in summary.cells}
        for ours in ("eicc", "eicc-paper"):
            for rival in (name for name in PENALTIES if {ours, name} <= cells.keys()):
                safe, regret = ({m: getattr(cells[m], what) for m in (ours, rival)} for what in ("safe", "regret"))
                found.append(_ordering(f"{problem}: {ours} is safer than {rival}", safe, higher=True))
                found.append(_ordering(f"{problem}: {ours} has lower regret than {rival}", regret, higher=False))
        if "safeopt" in cells:
            count = cells["safeopt"].crashes_after_start
            words = f"{problem}: safeopt never crashes after its seed"
            found.append(Claim(words, count == 0, True, f"{count} crashes in {len(cells['safeopt'].safe)} runs"))
        if {"pibu", "eicc"} <= cells.keys():
            safe, reach = ({m: getattr(cells[m], what) for m in ("pibu", "eicc")} for what in ("safe", "reach"))
            found.append(_ordering(f"{problem}: pibu is safer than eicc", safe, higher=True))
            found.append(_ordering(f"{problem}: pibu stays closer to its start than eicc", reach, higher=False))
    return found


def _ordering(words: str, measured: dict[str, Array], *, higher: bool) -> Claim:
    """Whether the first of two has the higher (or lower) mean; runs are paired, since they share their starts."""
    first, second = measured.values()
    gap = first - second
    error = std(gap) / np.sqrt(len(gap))  # NaN for a single run: nothing is sure then
    means = ", ".join(f"{name} {values.mean():.4g}" for name, values in measured.items())
    return Claim(
        words,
        holds=bool(gap.mean() > 0 if higher else gap.mean() < 0),
        sure=bool(abs(gap.mean()) > 2.0 * error),
        figures=f"{means}, difference {gap.mean():.3g} ± {error:.2g}",
    )
