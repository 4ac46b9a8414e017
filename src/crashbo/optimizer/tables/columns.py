"""The columns of a table of trials, and a trial's value in each: the same in CSV files, data frames and reports.

May import strategies and below.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.study import Study

TALE = ("cost", "state", "reason", "blame", "censored", "reached", "rises", "ran", "p_safe", "p_model", "origin")
MORE = ("id", "who", "told_at", "took")  # of a trial at a bench
COST = "cost:"  # before the name of a goal, where there are several
COMPARED = ("beat", "lost_to", "tied_with")  # numbers of rows that a trial was compared with, once per verdict
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run text that begins with one of these as a formula
_SELDOM = {"reached": "reached", "rises": "rises", "ran": "as_run"}  # left out where no trial has them: their fields
_OWN = ("number", *TALE)  # no parameter or constraint has a column that is called so


class TableColumn(NamedTuple):
    """A column of a table of trials."""

    kind: str  # field of a trial that has its value by name; empty where the value is a field
    name: str
    header: str


def columns(study: Study, trials: Sequence[Trial] = ()) -> list[TableColumn]:
    """The columns of these trials."""
    params = [_named("params", name, _OWN) for name in study.space.parameters]
    names = dict.fromkeys([c.name for c in study.measured] + sorted({m for t in trials for m in t.measured}))
    costs = [TableColumn("cost", name, COST + name) for name in study.objectives] or [TableColumn("", "cost", "cost")]
    rest = [n for n in TALE[1:] if n not in _SELDOM or any(getattr(t, _SELDOM[n]) for t in trials)]
    return [
        TableColumn("", "number", "number"),
        *params,
        *costs,
        *(_named("measured", name, (*_OWN, *study.space.parameters)) for name in names),
        *(TableColumn("", name, name) for name in rest),
    ]


def _named(kind: str, name: str, taken: Sequence[str]) -> TableColumn:
    return TableColumn(kind, name, f"{kind}:{name}" if name in taken else name)


def value(trial: Trial, column: TableColumn) -> Any:
    """A trial's value in a column, or None."""
    if column.kind == "cost":
        return (trial.cost or {}).get(column.name)
    if column.kind:
        return getattr(trial, column.kind).get(column.name)
    return getattr(trial, _SELDOM.get(column.name, column.name))


def cell(trial: Trial, column: TableColumn) -> Any:
    """The same as one cell: names side by side, several values as JSON."""
    found = value(trial, column)
    if column.kind:
        return found
    if isinstance(found, dict):
        return json.dumps(found) if found else None
    return " ".join(found) if isinstance(found, tuple) else found


def compared_with(number: int, comparisons: Sequence[Comparison]) -> dict[str, str]:
    """What a trial was compared with, by column."""
    found: dict[str, list[str]] = {name: [] for name in COMPARED}
    for c in comparisons:
        if number in (c.better, c.worse):
            column = "tied_with" if c.tie else "beat" if c.better == number else "lost_to"
            found[column].append(str(c.worse if c.better == number else c.better))
    return {column: " ".join(others) for column, others in found.items()}


def to_csv(
    study: Study,
    trials: Sequence[Trial],
    more: Sequence[Mapping[str, Any]] = (),
    comparisons: Sequence[Comparison] = (),
) -> str:
    """One row per trial, with more columns if there are any; floats in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    shown = columns(study, trials)
    headers = [column.header for column in shown]
    extra = [name for name in MORE if more and name not in headers]
    if comparisons:
        of_trials = [compared_with(t.number, comparisons) for t in trials]
        more = [{**of, **pairs} for of, pairs in zip(more or [{}] * len(trials), of_trials, strict=True)]
        extra += COMPARED
    rows = [[cell(t, column) for column in shown] for t in trials]
    rows = [[*row, *(of.get(name) for name in extra)] for row, of in zip(rows, more or [{}] * len(rows), strict=True)]
    writer.writerow([_safe(name) for name in [*headers, *extra]])
    writer.writerows([[_safe(v) for v in row] for row in rows])
    return out.getvalue()


def _safe(found: Any) -> Any:
    if isinstance(found, str) and found.startswith(FORMULA):
        return "'" + found
    return repr(found) if isinstance(found, float) else found
