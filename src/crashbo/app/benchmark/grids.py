"""The tables of a benchmark's page: overview, groups, and families in colour. May import every other layer."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from crashbo.app.benchmark.words import number, percent, seconds
from crashbo.app.text import counted
from crashbo.benchmark.published import HERE, THERE, judged, reached
from crashbo.benchmark.runs import Run
from crashbo.benchmark.summary import (
    ORACLE,
    OURS,
    TARGETS,
    Estimate,
    Summary,
    anytime_score,
    best_peer,
    crash_share,
    dearly_priced_score,
    final_score,
    is_peer,
    label,
    priced_score,
    suggestion_seconds,
    trials_to,
    verdict,
    wasted_share,
)

MARKS = {"lead": "✓", "lose": "✗"}  # of a verdict that is sure
_REGRETS = (0.01, 0.03, 0.1, 0.2, 0.4)  # upper ends of the shades of a table
_CRASHES = (0.05, 0.1, 0.2, 0.35, 0.5)


class GridCell(NamedTuple):
    """A cell of a table."""

    text: str
    note: str = ""  # a second line
    css: str = ""  # classes


def overview(summary: Summary) -> str:
    """A row per method, the best first."""
    head = ["method", "regret at the end", "over the run", "a crash costs 5", "costs 20", "crashes", "wasted"]
    head.append("per suggestion")
    rows = [_overview_row(summary, method) for method in summary.ranked()]
    return _grid(
        [*map(GridCell, head), *(GridCell(f"solved to {target:g}") for target in TARGETS)],
        rows,
        _rows(summary.ranked()),
    )


def _overview_row(summary: Summary, method: str) -> list[GridCell]:
    regrets = dict.fromkeys((anytime_score, priced_score, dearly_priced_score), number)
    figures = {**regrets, crash_share: percent, wasted_share: percent, suggestion_seconds: seconds}
    solved = [summary.values(method, _trials_to(target)) for target in TARGETS]
    return [
        _named(method),
        _estimated(summary.estimate(method, final_score)),
        *(GridCell(text(summary.estimate(method, what).mean)) for what, text in figures.items()),
        *(GridCell(percent(float(np.mean(np.isfinite(needed))))) for needed in solved),
    ]


def _trials_to(target: float) -> Callable[[Run], float]:
    return lambda run: trials_to(run, target)


def by_group(summary: Summary) -> str:
    """Regret per price of five: a row per method, a column per group; small, regret at the end and crashes."""
    groups = summary.groups
    head = [GridCell("method"), *(GridCell(name, counted(len(part.cases), "case")) for name, part in groups.items())]
    means = {
        (method, name): float(np.mean(part.values(method, priced_score)))
        for name, part in groups.items()
        for method in part.methods
    }
    best = {name: min(means[method, name] for method in part.methods) for name, part in groups.items()}
    overall = {m: float(np.mean([means.get((m, name), np.nan) for name in groups])) for m, _ in means}
    ranked = sorted(overall, key=lambda method: (np.isnan(overall[method]), overall[method]))
    rows = []
    for method in ranked:
        row = [_named(method)]
        for name, part in groups.items():
            if method not in part.methods:
                row.append(GridCell("-"))
                continue
            mean = means[method, name]
            ends, crashed = (float(np.mean(part.values(method, what))) for what in (final_score, crash_share))
            css = "peer" if mean == best[name] else ""
            row.append(GridCell(number(mean), f"{number(ends)} · {percent(crashed)}", css))
        rows.append([*row, GridCell(number(overall[method]))])
    return _grid([*head, GridCell("mean of groups")], rows, _rows(ranked))


def published(summary: Summary, problem: str) -> str:
    """What methods reach on a published problem, those of others as they were published."""
    published = judged(summary)[problem]
    if published.figure == "trials":
        head = ["method", "runs", f"trials until the target, at most {published.trials}", "reached", "crashes"]
    else:
        what = "optimum / best" if published.figure == "share" else "gap"
        head = ["method", "runs", *(f"{what} after {n}" for n in published.at), "crashes"]
    rows, css = [], []
    for row in reached(summary, problem):
        solved = [GridCell(percent(row.solved))] if published.figure == "trials" else []
        figures = [
            GridCell(number(mean), "" if np.isnan(error) else f"± {number(error)}")
            for mean, error in zip(row.figures, row.errors, strict=True)
        ]
        counts = GridCell(str(row.runs) if row.runs else row.origin)
        note = "" if row.origin == HERE else row.origin
        rows.append(
            [
                GridCell(row.name, note),
                counts,
                *figures,
                *solved,
                GridCell("-" if np.isnan(row.crashes) else f"{row.crashes:.1f}"),
            ]
        )
        css.append("ours" if row.origin == HERE and row.method in OURS else "oracle" if row.origin == THERE else "")
    return _grid([*map(GridCell, head)], rows, css)


def regrets(summary: Summary) -> str:
    """Mean regret at the end in colour: a row per family and dimension, a column per method."""
    return _heat(summary, final_score, _REGRETS, lambda mean: f"{mean:.3f}" if mean < 0.0095 else f"{mean:.2f}", MARKS)


def crashes(summary: Summary) -> str:
    """Crashes in percent of the trials, in colour."""
    return _heat(summary, crash_share, _CRASHES, lambda mean: f"{100.0 * mean:.0f}", {})


def _heat(
    summary: Summary,
    what: Callable[[Run], float],
    ends: Sequence[float],
    text: Callable[[float], str],
    marks: Mapping[str, str],
) -> str:
    columns = _columns(summary)
    rows = []
    for (name, dimension), part in sorted(summary.by_problem_and_dimension().items()):
        row, rival = [GridCell(name), GridCell(str(dimension)), GridCell(str(len(part.cases)))], best_peer(part)
        for method, css in columns.items():
            mean = float(np.mean(part.values(method, what)))
            found = verdict(part, "", method) if marks and method in OURS else None
            mark = marks.get(found.word, "") if found is not None else ""
            peer = "peer" if method == rival else ""
            row.append(GridCell(text(mean) + mark, css=f"shade{np.searchsorted(ends, mean)} {css} {peer}".strip()))
        rows.append(row)
    head = [GridCell("family"), GridCell("parameters", css="up"), GridCell("cases", css="up")]
    return _grid(
        [*head, *(GridCell(label(method), css=f"up {css}") for method, css in columns.items())], rows, css="heat"
    )


def _columns(summary: Summary) -> dict[str, str]:
    """Methods with their classes: ours, peers, our other strategies and the oracle, the best first in each."""
    ranked = summary.ranked()
    groups = [
        [method for method in ranked if method in OURS],
        [method for method in ranked if is_peer(method)],
        [method for method in ranked if not is_peer(method) and method not in (*OURS, ORACLE)],
        [method for method in ranked if method == ORACLE],
    ]
    first = {group[0] for group in groups if group}
    own = {method: "ours " if method in OURS else "" for group in groups for method in group}
    return {method: css + ("first" if method in first else "") for method, css in own.items()}


def _grid(
    head: Sequence[GridCell], rows: Sequence[Sequence[GridCell]], of_rows: Sequence[str] = (), css: str = "grid"
) -> str:
    top = "".join(_cell("th", cell) for cell in head)
    body = ""
    for i, row in enumerate(rows):
        body += f"<tr class='{of_rows[i] if of_rows else ''}'>{''.join(_cell('td', cell) for cell in row)}</tr>"
    return f"<div class='scroll'><table class='{css}'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(tag: str, cell: GridCell) -> str:
    css = f" class='{cell.css}'" if cell.css else ""
    note = f"<small>{escape(cell.note)}</small>" if cell.note else ""
    return f"<{tag}{css}><span>{escape(cell.text)}</span>{note}</{tag}>"


def _named(method: str) -> GridCell:
    note = "ours" if method in OURS else "the line to approach" if method == ORACLE else ""
    return GridCell(label(method), note)


def _rows(ranked: Sequence[str]) -> list[str]:
    return ["ours" if method in OURS else "oracle" if method == ORACLE else "" for method in ranked]


def _estimated(found: Estimate) -> GridCell:
    ends = "too few" if np.isnan(found.low) else f"{number(found.low)} to {number(found.high)}"
    return GridCell(number(found.mean), ends)
