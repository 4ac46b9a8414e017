"""Figures of a campaign, drawn through `plots`. May import every other layer."""

from itertools import cycle
from typing import Literal

import numpy as np

from crashbo.app.plots import LEVEL, MODEL, Array, Axes, Figure, dress, title
from crashbo.app.results import curves
from crashbo.app.states import CRASH, NEXT, SUCCESS
from crashbo.paper.methods import METHODS
from crashbo.paper.summary import Cell, PaperSummary, std

_LEAST = 1e-4  # regrets below it are drawn there: they are below what can be measured
_DECADES = 30.0  # ratio of values above which an axis is logarithmic
_COLOURS = {"eicc": MODEL, "eicc-paper": "#56B4E9", "eic": NEXT, "safeopt": LEVEL, "pibu": "#CC79A7"}
_PENALTY, _OTHER = CRASH, "#7A7A7A"
_DASHES = ("-", "--", ":", "-.")


def draw_figure(summary: PaperSummary) -> Figure:
    """The paper's figure: learnt thresholds above, final regrets below, one column per problem."""
    names = summary.campaign.problems
    figure = Figure(figsize=(max(3.9 * len(names), 5.5), 8.2), layout="constrained")
    panels = figure.subplots(2, len(names), squeeze=False, height_ratios=[1.0, 2.6])
    for problem, above, below in zip(names, *panels, strict=True):
        _draw_thresholds(above, summary, problem)
        _draw_regrets(below, summary, problem)
    return figure


def draw_curves(summary: PaperSummary) -> Figure:
    """Median regret above, mean crashes below, over trials, one column per problem."""
    names = summary.campaign.problems
    figure = Figure(figsize=(max(3.9 * len(names), 5.5), 8.2), layout="constrained")
    panels = figure.subplots(2, len(names), sharex="col", squeeze=False)
    for problem, above, below in zip(names, *panels, strict=True):
        dress(above)
        dress(below)
        title(above, problem, "median regret")
        title(below, "", "mean crashes so far")
        below.set_xlabel("trial")
        for method, style in _styles(summary).items():
            if (cell := summary.cells.get((method, problem))) is not None:
                _, regret, crashes = curves(cell)
                trial = np.arange(1, len(crashes) + 1)
                above.plot(trial, np.maximum(regret, _LEAST), **style)
                below.plot(trial, crashes, **style, label=METHODS[method].label)
        _scale(above, "y")
        below.set_ylim(bottom=0.0)
    handles = {label: line for axes in panels[1] for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _draw_thresholds(axes: Axes, summary: PaperSummary, problem: str) -> None:
    dress(axes)
    title(axes, problem, "threshold error")
    axes.axhline(0.0, color=SUCCESS, linewidth=1.0)
    learners = [m for m in summary.campaign.methods if METHODS[m].learns and (m, problem) in summary.cells]
    for x, method in enumerate(learners):
        errors = summary.cells[method, problem].threshold_errors
        if len(errors):
            axes.plot(_scattered(x, len(errors)), errors, ".", color=_colour(method), alpha=0.3, markersize=5)
            axes.errorbar(x, errors.mean(), std(errors), fmt="o", color=_colour(method), capsize=4)
    axes.set_xlim(-0.6, max(len(learners) - 0.4, 0.6))
    axes.set_xticks(range(len(learners)), [METHODS[m].label for m in learners])


def _draw_regrets(axes: Axes, summary: PaperSummary, problem: str) -> None:
    dress(axes)
    title(axes, "", "final regret: runs, median and mean")
    methods = [m for m in summary.campaign.methods if (m, problem) in summary.cells]
    for y, method in enumerate(methods):
        cell: Cell = summary.cells[method, problem]
        regret = np.maximum(cell.regret, _LEAST)
        colour = _colour(method)
        axes.plot(regret, _scattered(y, len(regret)), ".", color=colour, alpha=0.35, markersize=6)
        axes.plot(np.median(regret), y, "|", color=colour, markersize=16, markeredgewidth=2.5)
        axes.plot(cell.regret.mean(), y, "D", color=colour, markersize=5, markeredgecolor="white")
    axes.set_yticks(range(len(methods)), [METHODS[m].label for m in methods])
    axes.set_ylim(len(methods) - 0.4, -0.6)
    _scale(axes, "x")


def _scale(axes: Axes, which: Literal["x", "y"]) -> None:
    """Use a logarithmic axis if values span decades, else a linear one from zero."""
    ends: tuple[float, float] = getattr(axes.dataLim, f"interval{which}")
    if ends[1] > _DECADES * max(ends[0], _LEAST):
        axes.set(**{f"{which}scale": "log"})
    else:
        axes.set(**{f"{which}lim": (0.0, 1.05 * ends[1])})


def _scattered(at: float, n: int) -> Array:
    """n positions around a line, evenly spread so that equal values stay visible."""
    return np.asarray(at + 0.36 * ((np.arange(n) * 0.618034) % 1.0 - 0.5))


def _colour(method: str) -> str:
    return _COLOURS.get(method, _PENALTY if method.startswith("ei-") else _OTHER)


def _styles(summary: PaperSummary) -> dict[str, dict[str, object]]:
    """A line style for every method: colours distinguish families, dashes their members."""
    dashes: dict[str, cycle[str]] = {}
    return {
        method: {
            "color": _colour(method),
            "linestyle": next(dashes.setdefault(_colour(method), cycle(_DASHES))),
            "linewidth": 2.0 if method == "eicc" else 1.3,
        }
        for method in summary.campaign.methods
    }
