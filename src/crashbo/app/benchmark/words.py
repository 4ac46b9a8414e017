"""A benchmark in words: where we lead and lose, what failed, what the numbers mean. May import every other layer."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from crashbo.app.text import counted
from crashbo.benchmark import measures
from crashbo.benchmark.cases import are_tuning
from crashbo.benchmark.runs import Run
from crashbo.benchmark.summary import OURS, Summary, Verdict, below_optimum, label, standings, verdict

_NAMED = 5  # runs that are named in a sentence; runs.csv has them all
_COARSE = ("all", "group")  # kinds of parts that have a sentence whatever the verdict is
VERDICTS = {"lead": "We lead", "lose": "We lose", "level": "We are level", "few": "Too few to tell"}


class Standing(NamedTuple):
    """How one of our methods stands beside the best peer, in sentences."""

    name: str
    coarse: list[str]  # over all cases, and on each group
    leads: list[str]  # on families, and on families in one dimension; the largest first
    losses: list[str]
    level: str
    few: str


def in_words(summary: Summary) -> list[str]:
    """Where we lead and where we lose, and which runs failed: a sentence each."""
    if not summary.cases:
        return ["No case has been finished by all methods yet.", *troubles(summary)]
    lines: list[str] = []
    for found in told(summary):
        lines += [f"{found.name}, beside the best peer in hindsight:", *found.coarse, *found.losses, *found.leads]
        lines += filter(None, (found.level, found.few))
    return [*(lines or ["There is no peer to compare with."]), *troubles(summary)]


def told(summary: Summary) -> list[Standing]:
    """How our methods stand."""
    out = []
    for ours in OURS:
        found = standings(summary, ours)
        fine = [v for kind, verdicts in found.items() if kind not in _COARSE for v in verdicts]
        parted = {word: [v for v in fine if v.word == word] for word in VERDICTS}
        standing = Standing(
            label(ours),
            [sentence(v) for kind in _COARSE for v in found.get(kind, ())],
            [sentence(v) for v in sorted(parted["lead"], key=lambda v: v.difference.mean)],
            [sentence(v) for v in sorted(parted["lose"], key=lambda v: -v.difference.mean)],
            _listed("Level with the best peer", parted["level"]),
            _listed("Too few to tell", parted["few"]),
        )
        out += [standing] if found else []
    return out


def in_short(summary: Summary) -> str:
    """What was compared, and how it ended, in one paragraph."""
    if not summary.cases:
        return f"No case has been finished by all methods yet; {counted(summary.unfinished, 'case')} under way."
    sizes = sorted({case.dimension for case in summary.cases})
    trials = sorted({run.spec.trials for run in summary.of_method(summary.methods[0])})
    drawn = {case.problem for case in summary.cases if case.is_family}
    others = len(summary.problems) - len(drawn)
    parts = [counted(len(drawn), "family", "families")] if drawn else []
    kinds = " and ".join([*parts, *([counted(others, "other problem")] if others else [])])
    words = (
        f"{counted(len(summary.methods), 'method')} on the same {counted(len(summary.cases), 'case')} of {kinds}, "
        f"with {_range(sizes)} parameters and {_range(trials)} trials each. No method is told the noise or where "
        "crashes begin. Regret is 0 at the best safe cost and 1 at the median safe cost: lower is better."
    )
    if are_tuning(summary.cases):
        words += " These are tuning seeds, for choosing settings: not results to report."
    if summary.unfinished:
        words += f" {counted(summary.unfinished, 'case')} left out, since not all methods have finished there."
    found = filter(None, (verdict(summary, "over all cases", ours) for ours in OURS))
    return " ".join([words, *(f"{label(v.ours)}: {sentence(v)}" for v in found)])


def sentence(v: Verdict) -> str:
    """A verdict with its figures."""
    difference = signed(v.difference.mean)
    if v.word != "few":
        difference += f" ({signed(v.difference.low)} to {signed(v.difference.high)})"
    return (
        f"{VERDICTS[v.word]} {v.where}: {number(v.own)} against {number(v.theirs)} of {label(v.rival)}, difference "
        f"{difference}, with {percent(v.crashes)} crashes against {percent(v.their_crashes)}."
    )


def _listed(words: str, found: Iterable[Verdict]) -> str:
    """The parts of some verdicts: families, and families with the numbers of parameters."""
    named: dict[str, list[str]] = {}
    for v in found:
        family, _, rest = v.where.removeprefix("on ").partition(" (")
        named.setdefault(family, []).append(rest.removesuffix(" parameters)") if rest else "whole")
    names = [f"{family} ({', '.join(sizes)})" for family, sizes in sorted(named.items())]
    return f"{words}, on families as a whole or with so many parameters: {'; '.join(names)}." if names else ""


def troubles(summary: Summary) -> list[str]:
    """Runs that failed or ended early, and those that got below the optimum on file: a sentence each."""
    out = []
    for method in summary.methods:
        runs = [run for (name, _), run in summary.runs.items() if name == method]
        failed = [run for run in runs if run.error is not None]
        unfinished = [run for run in runs if run.error is None and len(run.costs) < run.spec.trials]
        early = [run for run in unfinished if not run.has_arrived]
        if failed:
            out.append(
                f"{label(method)} failed in {len(failed)} of {counted(len(runs), 'run')}: {_runs(failed, _why)}."
            )
        if early:
            out.append(f"{label(method)} ended early in {len(early)} of {len(runs)} runs: {_runs(early, _made)}.")
    beaten = [run for run in summary.runs.values() if below_optimum(run)]
    if beaten:
        out.append(
            f"The brute force was beaten: {counted(len(beaten), 'run')} got below the optimum on file: "
            f"{_runs(beaten, _below)}. Regret counts as 0 there; the optimum has to be found again."
        )
    return out


def _runs(runs: Sequence[Run], what: Callable[[Run], str]) -> str:
    named = [f"{run.spec.case} ({what(run)})" for run in runs[:_NAMED]]
    return "; ".join([*named, *([f"and {len(runs) - _NAMED} more, see runs.csv"] if len(runs) > _NAMED else [])])


def _why(run: Run) -> str:
    lines = (run.error or "").strip().splitlines()
    return lines[-1] if lines else "no reason given"


def _made(run: Run) -> str:
    return f"{len(run.costs)} of {run.spec.trials} trials"


def _below(run: Run) -> str:
    return f"{label(run.spec.method)}, by {below_optimum(run):.2g} of the span"


def number(value: float) -> str:
    """Two digits or a little more, without exponents."""
    if np.isnan(value):
        return "-"
    for least, form in ((0.0995, ".2f"), (0.00995, ".3f"), (5e-5, ".4f")):
        if abs(value) >= least:
            return format(value, form)
    return "0"


def signed(value: float) -> str:
    """A difference, with its sign."""
    words = number(value)
    return f"+{words}" if value > 0.0 and words != "0" else words


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100.0 * share:.0f} %"


def seconds(value: float) -> str:
    """A time, in the unit that fits."""
    if np.isnan(value):
        return "-"
    return (
        f"{value:.1f} s"
        if value >= 0.9995
        else f"{1e3 * value:.0f} ms"
        if value >= 0.00995
        else f"{1e3 * value:.1f} ms"
    )


def _range(values: Sequence[int]) -> str:
    return str(values[0]) if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


DEFINITIONS = {
    "Regret": "Normalised: the noise-free cost of the success with the lowest observed cost so far, less the "
    "optimum, divided by the span. The optimum is the lowest safe cost, found by brute force with the "
    "truth in hand. The span is the median cost of safe random params less the optimum. In means regret "
    "is cut to 0..1: before a success and beyond the median it counts as 1, below the optimum as 0. A "
    "trial that a method did not make changes nothing.",
    "Crashes": "Trials that gave no cost, as a share of the trials made.",
    "Wasted": f"A trial within {measures.NEAR:g} of the range, in every parameter, of an earlier success that was "
    f"plainly worse than the best known then: by more than {measures.NOISES:g} times the noise and by more "
    f"than {percent(measures.SHARE)} of the span. As a share of the trials made.",
    "Over the run": "Regret averaged over the trials.",
    "A crash costs 5, 20": "Regret averaged over the price paid, up to as much as the run has trials: a success costs "
    "one, a crash five, or twenty. The best so far is carried on.",
    "Solved": "The published target was reached, or regret was at most 0.1, or 0.01, after some trial.",
    "Groups": "Smooth: all families but those of the groups named here, with 2 to 8 parameters; with labels only, a "
    "method is told nothing but whether a trial crashed. Many parameters: more than 8, both ways. Options: parameters "
    "that are options. Cusps and islands: costs that are not smooth, and safe regions apart. Published, paper: "
    "problems of others, and of the paper.",
    "Published": "Runs that others published: their figures, not ours. Random search on a list of settings is "
    "computed, each setting tried once.",
    "Time": "What a method takes to suggest its next trial, on a machine that may have been busy.",
    "Interval": "95 %, by the bootstrap: the cases are drawn again, with replacement, 2000 times; for few cases "
    "stretched to the width of Student's. Fewer than five cases have none.",
    "Lead, lose, level": "Our regret less that of the best peer, case by case. A lead or a loss is sure if the "
    "interval of the mean difference does not contain zero. The best peer is that with the lowest mean on the very "
    "cases compared: known in hindsight only, and another one from part to part. Among many parts about one "
    "interval in twenty misses by chance.",
    "Peers": "Methods of other libraries, those of users, and plain random and Sobol search. Our other strategies "
    "are shown but are no peers.",
    "Curves": "At a share of the trials, each case is taken after that share of its trials, rounded down; before "
    "the first trial regret is 1. All cases have the same weight.",
    "Numbers": "runs.csv, trials.csv and summary.csv have every run, every trial and all means.",
}
