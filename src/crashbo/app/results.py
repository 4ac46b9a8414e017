"""The results of a campaign as tables: CSV, Markdown and one HTML page. May import every other layer.

Gathers rows from a `PaperSummary` and writes them.
"""

import csv
import math
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy

from crashbo.app import html_page
from crashbo.paper.methods import METHODS
from crashbo.paper.published import TABLE_1
from crashbo.paper.summary import Cell, PaperSummary, claims, std
from crashbo.version import __version__

FIGURES = {
    "figure.png": "Learnt thresholds (above) and final regrets (below): the paper's figure.",
    "curves.png": "Regret and crashes over trials.",
}
_NONE = "-"


class Table(NamedTuple):
    """A table of text with its title and a note."""

    title: str
    note: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Origin:
    """How the results were produced."""

    command: str
    cores: int

    def words(self) -> str:
        """One line."""
        versions = f"crashbo {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
        return f"{versions}, SciPy {scipy.__version__}; {platform.system()} {platform.machine()}, {self.cores} cores"


def tables(summary: PaperSummary) -> list[Table]:
    """All tables."""
    return [_safe(summary), _regret(summary), _thresholds(summary), _orderings(summary), _times(summary)]


def markdown(summary: PaperSummary, origin: Origin) -> str:
    """The results as Markdown."""
    parts = ["# The paper's comparison", _protocol(summary), f"`{origin.command}`, with {origin.words()}."]
    for table in tables(summary):
        parts += [f"## {table.title}", table.note, _markdown_table(table)]
    parts += [f"![{words}]({name})" for name, words in FIGURES.items()]
    return "\n\n".join(part for part in parts if part) + "\n"


def page(summary: PaperSummary, origin: Origin, folder: Path) -> str:
    """The results as one HTML page that needs no other file; figures are read from the folder."""
    body = [f"<h1>The paper's comparison</h1><p>{escape(_protocol(summary))}</p>"]
    for name, words in FIGURES.items():
        body.append(html_page.picture((folder / name).read_bytes(), words, caption=words))
    for table in tables(summary):
        body += [f"<h2>{escape(table.title)}</h2><p>{escape(table.note)}</p>", html_page.table(table.head, table.rows)]
    body.append(f"<footer><code>{escape(origin.command)}</code><br>{escape(origin.words())}</footer>")
    return html_page.page("crashbo: the paper's comparison", body)


def write_csv(summary: PaperSummary, folder: Path) -> None:
    """Write table I, the final numbers of every run, and the curves."""
    table = _safe(summary)
    _write_rows(folder / "table1.csv", [table.head, *table.rows])
    head = ["method", "problem", "repeat", "safe_percent", "regret", "crashes", "reach", "seconds_a_trial"]
    rows: list[list[object]] = [
        [method, problem, i, cell.safe[i], cell.regret[i], int(cell.crashes[i, -1]), cell.reach[i], cell.seconds[i]]
        for (method, problem), cell in summary.cells.items()
        for i in range(len(cell.safe))
    ]
    _write_rows(folder / "runs.csv", [head, *rows])
    head = ["method", "problem", "trial", "regret_mean", "regret_median", "crashes_mean"]
    rows = [
        [method, problem, trial + 1, *figures]
        for (method, problem), cell in summary.cells.items()
        for trial, figures in enumerate(zip(*curves(cell), strict=True))
    ]
    _write_rows(folder / "curves.csv", [head, *rows])


def curves(cell: Cell) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    """Mean and median regret, and mean crashes, after each trial; regret is NaN until every run has had a success."""
    return tuple(cell.regrets.mean(axis=0)), tuple(np.median(cell.regrets, axis=0)), tuple(cell.crashes.mean(axis=0))


def _protocol(summary: PaperSummary) -> str:
    c = summary.campaign
    noise = "told the noise, as the paper's are" if c.known_noise else "not told the noise"
    return (
        f"{c.repeats} repeats of {c.trials} trials, each from a safe start that all methods share; methods are "
        f"{noise}. The paper has 100 repeats of 100 trials."
    )


def _safe(summary: PaperSummary) -> Table:
    rows = []
    for method in summary.campaign.methods:
        row = [METHODS[method].label]
        for problem in summary.campaign.problems:
            cell, theirs = summary.cells.get((method, problem)), TABLE_1.get(method, {}).get(problem)
            row.append(_NONE if cell is None else f"{cell.safe.mean():.2f} ({_number(std(cell.safe), '.2f')})")
            row.append(_NONE if theirs is None else f"{theirs.mean:.2f} ({theirs.std:.2f})")
        rows.append(row)
    head = ["Method", *(f"{problem}{whose}" for problem in summary.campaign.problems for whose in ("", ", paper"))]
    refused = {f"{METHODS[m].label} on {p}: {reason}" for (m, p), reason in summary.refusals.items()}
    note = "Safe trials in percent, mean and standard deviation over repeats: the paper's table I, ours beside theirs. "
    return Table("Safe trials", note + " ".join(sorted(refused)), head, rows)


def _regret(summary: PaperSummary) -> Table:
    def words(cell: Cell) -> str:
        return f"{cell.regret.mean():.3g} ({_number(std(cell.regret), '.2g')}), {np.median(cell.regret):.3g}"

    note = (
        "Noise-free cost at the best observed trial less the unconstrained minimum: mean (standard deviation), median."
    )
    return _grid(summary, "Final regret", note, words)


def _thresholds(summary: PaperSummary) -> Table:
    def words(cell: Cell) -> str:
        errors = cell.threshold_errors
        return f"{errors.mean():.3g} ({_number(std(errors), '.2g')})" if len(errors) else _NONE

    learners = [m for m in summary.campaign.methods if METHODS[m].learns]
    return _grid(summary, "Learnt thresholds", "Learnt less true: mean and standard deviation.", words, learners)


def _times(summary: PaperSummary) -> Table:
    note = "Milliseconds per trial, mean over runs, as measured on a machine that may have been busy."
    return _grid(summary, "Time", note, lambda cell: f"{1e3 * cell.seconds.mean():.0f}")


def _orderings(summary: PaperSummary) -> Table:
    rows = []
    for claim in claims(summary):
        verdict = ("yes" if claim.holds else "no") + ("" if claim.sure else ", but within the error")
        rows.append([claim.words, verdict, claim.figures])
    note = (
        "Safe shares in percent, regrets, mean distances from the start as shares of the cube's diagonal; differences "
        "are paired by repeat, with their standard error, and count as more than chance beyond twice that."
    )
    return Table("The paper's orderings", note, ["Ordering", "Holds", "Measured"], rows)


def _grid(
    summary: PaperSummary, title: str, note: str, words: Callable[[Cell], str], methods: Iterable[str] | None = None
) -> Table:
    """One row per method, one column per problem."""
    rows = [
        [
            METHODS[m].label,
            *(words(cell) if (cell := summary.cells.get((m, p))) else _NONE for p in summary.campaign.problems),
        ]
        for m in (summary.campaign.methods if methods is None else methods)
    ]
    return Table(title, note, ["Method", *summary.campaign.problems], rows)


def _number(value: float, form: str) -> str:
    return _NONE if math.isnan(value) else format(value, form)


def _markdown_table(table: Table) -> str:
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _write_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
