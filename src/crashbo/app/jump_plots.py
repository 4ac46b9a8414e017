"""Figures of a jumping study: the paper's slice through both models, and the results over trials.

May import every other layer; matplotlib comes through `plots`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.app import plots
from crashbo.app.demo import Story
from crashbo.app.plots import LEVEL, MODEL, Array, Axes, Figure
from crashbo.app.slices import JumpSlice
from crashbo.app.states import CRASH, NEXT, STOPPED, SUCCESS

_BAND, _TRUTH = "#E69F00", "#666666"
_HALO = "white"


def draw_slice(seen: JumpSlice) -> Figure:
    """The cost's GP beside GPCR over the P gains, with successes and crashes (the paper's figure)."""
    figure = Figure(figsize=(9.6, 4.9), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    held = f"D gains held at the best jump's, ({seen.held[0]:.2f}, {seen.held[1]:.2f})"
    figure.suptitle(f"Both models over the P gains; {held}", x=0.01, ha="left", fontsize=12, fontweight="bold")
    _surface(figure, left, seen.grid, seen.height, "viridis", "height (m)")
    left.set_title("Cost: a GP on the successes alone", loc="left", fontsize=10.5)
    _surface(figure, right, seen.grid, seen.current, "cividis", "sum of peak currents (A)")
    right.set_title("Constraint: GPCR on successes and crashes", loc="left", fontsize=10.5)
    if seen.threshold is not None and seen.current.min() < seen.threshold < seen.current.max():
        line = right.contour(seen.grid, seen.grid, seen.current, [seen.threshold], colors=_HALO, linewidths=2.0)
        right.clabel(line, fmt=f"trips at {seen.threshold:.1f} A", fontsize=8.5)
    for axes in (left, right):
        axes.plot(seen.successes[:, 0], seen.successes[:, 1], "o", label="success", **_mark(NEXT, 6))
        axes.plot(*seen.best[:2], "*", label="best", **_mark("#F0E442", 15, SUCCESS))
        axes.set_xlabel("P of the knees")
    right.plot(seen.tripped[:, 0], seen.tripped[:, 1], "X", label="boards tripped", **_mark(CRASH, 8))
    if len(seen.fallen):
        right.plot(seen.fallen[:, 0], seen.fallen[:, 1], "P", label="fell", **_mark("#CC79A7", 8))
    if len(seen.stopped):
        right.plot(seen.stopped[:, 0], seen.stopped[:, 1], "s", label="stopped", **_mark(STOPPED, 6))
    left.set_ylabel("P of the hips")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return figure


def draw_course(story: Story) -> Figure:
    """Heights and currents over trials, with the best so far and the learnt trip current."""
    figure = Figure(figsize=(9.0, 6.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    numbers = np.array([t.number for t in story.trials])
    crashed = np.array([t.state == "crash" for t in story.trials])
    heights = np.array([np.nan if t.cost is None else -t.cost for t in story.trials])
    currents = np.array([t.measured.get("current", np.nan) for t in story.trials])
    for axes in (upper, lower):
        plots.dress(axes)
    stopped = np.array([t.state == "stopped" for t in story.trials])
    _draw_heights(upper, numbers, heights, crashed)
    _draw_currents(lower, story, numbers, np.where(stopped, np.nan, currents), crashed)
    if stopped.any():
        lower.plot(numbers[stopped], currents[stopped], "s", label="stopped", **_mark(STOPPED, 6))
    lower.set_xlabel("trial")
    lower.set_xlim(-0.8, numbers[-1] + 0.8)
    handles, labels = (a + b for a, b in zip(*(x.get_legend_handles_labels() for x in (upper, lower)), strict=True))
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=9, frameon=False)
    return figure


def _draw_heights(axes: Axes, numbers: Array, heights: Array, crashed: NDArray[np.bool_]) -> None:
    plots.title(axes, "Height", "a crash has none")
    axes.set_ylabel("highest point of the base (m)")
    best = np.fmax.accumulate(heights)
    axes.step(numbers, best, where="post", color=MODEL, linewidth=1.6, label="best so far")
    axes.plot(numbers, heights, "o", color=SUCCESS, markersize=5, label="jump")
    low, high = np.nanmin(heights), np.nanmax(heights)
    floor = low - 0.06 * (high - low + 0.1)
    axes.plot(numbers[crashed], np.full(crashed.sum(), floor), "x", label="crash", **_cross())


def _draw_currents(axes: Axes, story: Story, numbers: Array, currents: Array, crashed: NDArray[np.bool_]) -> None:
    plots.title(axes, "Current", "and the trip level learnt from it; the true one was never told")
    axes.set_ylabel("sum of peak currents (A)")
    value = np.array([np.nan if k.value is None else k.value for k in story.learnt])
    ends = np.array([k.interval or (np.nan, np.nan) for k in story.learnt])
    axes.plot(numbers, value, color=LEVEL, linewidth=1.8, label="learnt trip level")
    top = story.trip + 25.0
    axes.fill_between(
        numbers,
        ends[:, 0],
        np.minimum(ends[:, 1], top),
        color=_BAND,
        alpha=0.25,
        linewidth=0,
        label="its 90 % interval",
    )
    axes.axhline(story.trip, color=_TRUTH, linewidth=1.2, linestyle=":", label=f"true trip level {story.trip:.1f} A")
    axes.plot(numbers, currents, "o", color=SUCCESS, markersize=5)
    low = np.nanmin(currents)
    axes.plot(numbers[crashed], np.full(crashed.sum(), low - 4.0), "x", **_cross())
    axes.set_ylim(low - 8.0, top)


def _surface(figure: Figure, axes: Axes, grid: Array, values: Array, colours: str, words: str) -> None:
    drawn = axes.pcolormesh(grid, grid, values, cmap=colours, shading="gouraud", rasterized=True)
    axes.contour(grid, grid, values, 10, colors=_HALO, linewidths=0.5, alpha=0.6)
    axes.set_aspect("equal")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    figure.colorbar(drawn, ax=axes, shrink=0.8, label=words)


def _mark(colour: str, size: float, edge: str = _HALO) -> dict[str, Any]:
    return {
        "color": colour,
        "markersize": size,
        "markeredgecolor": edge,
        "markeredgewidth": 1.0,
        "linestyle": "none",
    }


def _cross() -> dict[str, Any]:
    return {"color": CRASH, "markersize": 7, "markeredgewidth": 2.0, "linestyle": "none"}
