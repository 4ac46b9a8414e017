"""The groups that every comparison is by: kinds of problems, and what a method is told of them.

May import the public API, `problems` and `campaigns`.

A case with labels only is the same case, told nothing but whether a trial crashed: of our methods, which use what is
measured, it is the run of the variant that does not; of all others, the very run.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from crashbo.benchmark.cases import PAPER, Case
from crashbo.benchmark.runs import Run
from crashbo.problems import PUBLISHED, families

LABELS = {"eicc": "eicc-labels", "eicc-paper": "eicc-paper-labels"}  # our methods, and what they are without readings
_MOST = 8  # parameters of the smooth groups
# What a method is told: all there is; all, where the cause of crashes is measured; nothing but labels.
ALL, READINGS, NOTHING = "all", "readings", "labels only"


class Group(NamedTuple):
    """A kind of problems."""

    name: str
    has: Callable[[Case], bool]
    told: tuple[str, ...] = (ALL,)  # what methods are told there: each case takes part once with each of these


def kind(case: Case) -> str:
    """What kind of problem it is: a family's group, "published", "paper", or "other" for one of the user's own."""
    if case.is_family:
        return families.family(case.problem).group
    return "paper" if case.problem in PAPER else "published" if case.problem in PUBLISHED else "other"


def _is_smooth(case: Case) -> bool:
    return kind(case) == "smooth" and case.dimension <= _MOST


GROUPS = (
    Group("smooth measured", _is_smooth, told=(READINGS,)),
    Group("smooth labels only", _is_smooth, told=(NOTHING,)),
    Group("many parameters", lambda case: kind(case) == "smooth" and case.dimension > _MOST, told=(ALL, NOTHING)),
    Group("options", lambda case: kind(case) == "options"),
    Group("cusps and islands", lambda case: kind(case) == "cusps and islands"),
    Group("published", lambda case: kind(case) == "published"),
    Group("paper", lambda case: kind(case) == "paper"),
    Group("other", lambda case: kind(case) == "other"),
)


def members(group: Group, runs: Iterable[Run]) -> list[Run]:
    """The runs of a group; those with labels only stand under the method's own name, on a case that says so."""
    found = {(run.spec.method, run.spec.case): run for run in runs if group.has(run.spec.case)}
    variants = {LABELS[method] for method, _ in found if method in LABELS}
    pairs = [(method, case) for method, case in found if method not in variants]
    out: list[Run] = []
    for told in group.told:
        if told == NOTHING:
            heard = [(method, found.get((LABELS.get(method, method), case))) for method, case in pairs]
            out += [_with_labels_only(run, method) for method, run in heard if run is not None]
        else:
            out += [found[pair] for pair in pairs if told == ALL or _hears(pair[0], found[pair])]
    return out


def _hears(method: str, run: Run) -> bool:
    """Whether a cause is measured, and the method does not close its ears to that."""
    return run.measured and method not in LABELS.values()


def _with_labels_only(run: Run, method: str) -> Run:
    case = replace(run.spec.case, problem=f"{run.spec.case.problem}, {NOTHING}")
    return replace(run, spec=replace(run.spec, method=method, case=case))
