"""One software beside another on the same cases: is it better, worse or level? By group and in all, with errors.

May import the public API, `problems` and `campaigns`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crashbo.benchmark.cases import Case
from crashbo.benchmark.groups import GROUPS, LABELS, NOTHING, Group, members
from crashbo.benchmark.runs import Run, Spec
from crashbo.benchmark.summary import anytime_score, crash_share, final_score, priced_score

PAIRS = 40  # of a group, without which there is no verdict
ALL = "mean of groups"
MEASURES: dict[str, Callable[[Run], float]] = {
    "regret": final_score,
    "over the run": anytime_score,
    "per price of 5": priced_score,
    "crashes": crash_share,
}


class Difference(NamedTuple):
    """Of a measure, in one group: here less there."""

    here: float
    there: float
    mean: float
    error: float  # standard error of the mean difference

    @property
    def word(self) -> str:
        """Better, worse or level: by whether it is beyond two standard errors; lower is better in all measures."""
        if not abs(self.mean) > 2.0 * self.error:
            return "level"
        return "better" if self.mean < 0.0 else "worse"


class GroupDifference(NamedTuple):
    """A group."""

    group: str
    pairs: int
    differences: dict[str, Difference]  # by measure

    @property
    def is_enough(self) -> bool:
        """Whether there are pairs enough for a verdict."""
        return self.pairs >= PAIRS


def specs_of(groups: Iterable[Group], cases: Iterable[Case], method: str) -> list[Spec]:
    """The runs that a comparison of a method needs: with readings, with labels only, or both, as its groups have it."""
    wanted: dict[Spec, None] = {}
    for case in cases:
        for group in groups:
            if group.has(case):
                for told in group.told:
                    wanted[Spec(LABELS.get(method, method) if told == NOTHING else method, case, case.trials)] = None
    return list(wanted)


def compare(here: Iterable[Run], there: Iterable[Run], groups: Iterable[Group] = GROUPS) -> list[GroupDifference]:
    """By group, and in the mean of the groups.

    A case counts that both have run on the same machine. A method that hears nothing but labels has one run for a case
    with readings and without: it counts once, in the first of the groups.
    """
    ours, theirs = list(here), list(there)
    counted: set[int] = set()
    found = [_difference_in(group.name, members(group, ours), members(group, theirs), counted) for group in groups]
    found = [one for one in found if one.pairs]
    return [*found, _overall(found)] if found else []


def _difference_in(name: str, here: Sequence[Run], there: Sequence[Run], counted: set[int]) -> GroupDifference:
    others, pairs = {run.spec: run for run in there}, []
    for run in here:
        other = others.get(run.spec)
        if other is not None and id(run.costs) not in counted and _is_same(run, other):
            counted.add(id(run.costs))
            optimum = min(run.optimum, other.optimum)  # one may have been found better since
            pairs.append((replace(run, optimum=optimum), replace(other, optimum=optimum)))
    return GroupDifference(
        name, len(pairs), {word: _difference(pairs, what) for word, what in MEASURES.items()} if pairs else {}
    )


def _is_same(one: Run, other: Run) -> bool:
    """Whether both were of one machine: a family may have changed since."""
    return (one.median, one.noise) == (other.median, other.noise)


def _difference(pairs: Sequence[tuple[Run, Run]], what: Callable[[Run], float]) -> Difference:
    here, there = np.array([[what(run) for run in pair] for pair in pairs]).T
    gap = here - there
    error = float(np.std(gap, ddof=1)) / math.sqrt(len(gap)) if len(gap) > 1 else math.inf
    return Difference(float(here.mean()), float(there.mean()), float(gap.mean()), error)


def _overall(found: Sequence[GroupDifference]) -> GroupDifference:
    """Every group has the same weight."""
    rows = {word: np.array([one.differences[word] for one in found]) for word in MEASURES}
    means = {}
    for word, row in rows.items():
        here, there, mean = map(float, row[:, :3].mean(axis=0))
        means[word] = Difference(here, there, mean, float(np.linalg.norm(row[:, 3])) / len(row))
    return GroupDifference(ALL, min(one.pairs for one in found), means)


def table(found: Sequence[GroupDifference]) -> list[str]:
    """A line per group: both means, and the difference with two standard errors."""
    lines = [f"{'':20s} pairs" + "".join(f"  {word:^28s}" for word in MEASURES)]
    lines.append(f"{'':26s}" + "  here  there  difference     " * len(MEASURES))
    for one in found:
        cells = [
            f"{d.here:6.3f} {d.there:6.3f} {d.mean:+.3f} ± {2.0 * d.error:.3f}{_MARKS[d.word]}"
            for d in one.differences.values()
        ]
        lines.append(f"{one.group:20s} {one.pairs:5d}" + "".join(f"  {cell}" for cell in cells))
    return lines


_MARKS = {"better": " +", "worse": " !", "level": "  "}


def verdicts(found: Sequence[GroupDifference]) -> list[str]:
    """A sentence per group, and the last of all."""
    return [f"{one.group}: {_verdict(one)}." for one in found]


def _verdict(one: GroupDifference) -> str:
    if not one.is_enough:
        return f"too few to tell ({one.pairs} pairs of {PAIRS})"
    words = {word: difference.word for word, difference in one.differences.items()}
    if len(set(words.values())) == 1:
        return f"{next(iter(words.values()))} in all of {', '.join(words)}"
    return ", ".join(f"{verdict} in {word}" for word, verdict in words.items())
