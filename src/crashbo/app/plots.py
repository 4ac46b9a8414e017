"""Figures: the only import of matplotlib, and the paper's illustration. May import every other layer.

Colours are those of Okabe and Ito, which colour-blind people can tell apart; each has one meaning throughout.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.app.blame import Blames
from crashbo.app.illustration import FASTEST, SLOWEST, TRIP_LEVEL, Illustration
from crashbo.app.reliability import Reliability
from crashbo.app.states import CRASH, NEXT, SUCCESS
from crashbo.extras import Absent

try:
    from matplotlib import figure as _figure
    from matplotlib.axes import Axes as Axes  # re-exported: other files draw through this one
except ModuleNotFoundError as error:
    raise Absent("a figure", error.name, "plot") from error

Array = NDArray[np.float64]

MODEL, LEVEL = "#0072B2", "#8A6100"
_LEVEL_BAND, _TRUTH, _HIDDEN, _GRID = "#E69F00", "#8C8C8C", "#666666", "#E6E6E6"
_DPI = 115
_MANY = 100  # trials in a bin from which its share is reliable
_CAUSES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8A6100")
_MARKERS = ("o", "s", "^", "D", "v", "P")


class Figure(_figure.Figure):
    """A figure that shows in a notebook by itself: nobody has to import pyplot first."""

    def _repr_png_(self) -> bytes:
        return png(self)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    path.write_bytes(png(figure))


def png(figure: Figure, dpi: int = _DPI) -> bytes:
    """A figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", backend="agg", dpi=dpi, pil_kwargs={"optimize": True})
    return buffer.getvalue()


def draw_illustration(seen: Illustration) -> Figure:
    """The paper's figure 2: cost, constraint, P(safe) and acquisition, one above the other."""
    figure = Figure(figsize=(7.6, 9.0), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.06, hspace=0.02)  # type: ignore[union-attr, call-arg]
    panels = figure.subplots(4, 1, sharex=True, height_ratios=[3.0, 4.0, 1.7, 1.9])
    figure.suptitle(
        "Three successes, two crashes: where to try next?", x=0.02, ha="left", fontsize=13, fontweight="bold"
    )
    for axes, draw in zip(panels, (_draw_cost, _draw_current, _draw_p_safe, _draw_acquisition), strict=True):
        dress(axes)
        axes.axvline(seen.speeds[seen.next], color=NEXT, linewidth=1.2, alpha=0.8, zorder=1)
        draw(axes, seen)
    panels[-1].set_xlim(SLOWEST, FASTEST)
    panels[-1].set_xlabel("spindle speed (1000 rpm)")
    figure.align_ylabels()
    return figure


def draw_reliability(found: Sequence[Reliability]) -> Figure:
    """Share of successes against P(safe), one panel each; points on the diagonal are perfectly calibrated."""
    figure = Figure(figsize=(3.6 * len(found), 4.6), layout="constrained")
    panels = figure.subplots(2, len(found), sharex=True, sharey="row", height_ratios=[3.4, 1.0], squeeze=False)
    for (upper, lower), r in zip(panels.T, found, strict=True):
        dress(upper)
        dress(lower)
        upper.set_title(r.name, loc="left", fontsize=10.5, fontweight="bold")
        upper.plot([0.0, 1.0], [0.0, 1.0], color=_TRUTH, linewidth=1.2, linestyle=":")
        seen = r.counts > 0
        sure = seen & (r.counts >= _MANY)
        bars = 2.0 * r.std[seen]
        upper.errorbar(r.predicted[seen], r.observed[seen], yerr=bars, fmt="none", ecolor=MODEL, alpha=0.5, zorder=3)
        upper.plot(
            r.predicted[seen], r.observed[seen], "o", color=MODEL, markersize=6, markerfacecolor="white", zorder=4
        )
        upper.plot(r.predicted[sure], r.observed[sure], "o", color=MODEL, markersize=6, zorder=5)
        upper.set_ylim(-0.03, 1.03)
        lower.bar(0.5 * (r.edges[1:] + r.edges[:-1]), r.counts, width=0.8 * np.diff(r.edges), color=MODEL, alpha=0.35)
        lower.set_xlabel("P(safe)")
    panels[0, 0].set_ylabel("share that succeeded")
    panels[1, 0].set_ylabel("how many")
    return figure


def draw_blame(seen: Blames) -> Figure:
    """The probability that each constraint was violated, one row per crash; blame told by the user is filled."""
    size = 6.4, 1.4 + 0.28 * len(seen.numbers)
    figure, axes = panel(size, "Blame", "probability that a constraint was violated, crash by crash")
    rows = np.arange(len(seen.numbers))
    for j, name in enumerate(seen.constraints):
        color, marker = _CAUSES[j % len(_CAUSES)], _MARKERS[j % len(_MARKERS)]
        axes.plot(seen.p[:, j], rows, marker, color=color, markerfacecolor="none", markersize=7, label=name, zorder=4)
        told = seen.told[:, j]
        axes.plot(seen.p[told, j], rows[told], marker, color=color, markersize=7, zorder=5)
    axes.set_yticks(rows, [f"trial {number}" for number in seen.numbers])
    axes.set_xlim(-0.03, 1.03)
    axes.invert_yaxis()
    axes.set_xlabel("P(violated | crash)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, frameon=False, fontsize=9)
    return figure


def _draw_cost(axes: Axes, seen: Illustration) -> None:
    title(axes, "Cost", "a Gaussian process on the successes; a crash has no cost")
    axes.set_ylabel("EUR per part")
    axes.set_ylim(0.0, 5.4)
    _draw_belief(axes, seen.speeds, seen.cost_mean, seen.cost_std, seen.true_cost)
    axes.plot(seen.tried, seen.costs, "o", color=SUCCESS, markersize=6, zorder=5)
    crashed = seen.tried[seen.crashed]
    axes.plot(crashed, np.full_like(crashed, 0.25), "x", color=CRASH, markersize=9, markeredgewidth=2.4, zorder=5)
    best = seen.best
    _say(axes, "best so far", (seen.tried[best], seen.costs[best]), (-4, -17), SUCCESS, ha="center")
    _say(axes, "mean ± 2 std", _on(seen.speeds, seen.cost_mean, 9.2), (0, 7), MODEL, ha="center")
    _say(axes, "truth (hidden)", _on(seen.speeds, seen.true_cost, 11.95), (0, -5), _HIDDEN, ha="right", va="top")


def _draw_current(axes: Axes, seen: Illustration) -> None:
    title(axes, "Constraint", "GPCR on all five trials, with the crash threshold it learns")
    axes.set_ylabel("drive current (A)")
    axes.set_ylim(5.0, 23.0)
    axes.set_yticks([5.0, 10.0, 15.0, 20.0])
    low, high = seen.threshold_interval
    axes.axhspan(low, high, color=_LEVEL_BAND, alpha=0.22, linewidth=0, zorder=0)
    axes.axhline(seen.threshold, color=LEVEL, linewidth=1.6, linestyle=(0, (5, 3)), zorder=3)
    axes.axhline(TRIP_LEVEL, color=_TRUTH, linewidth=1.0, linestyle=":", zorder=2)
    _draw_belief(axes, seen.speeds, seen.current_mean, seen.current_std, seen.true_current)
    axes.plot(seen.tried, seen.currents, "o", color=SUCCESS, markersize=6, zorder=5)
    for speed in seen.tried[seen.crashed]:
        arrow = {"arrowstyle": "->", "color": CRASH, "linewidth": 1.6, "shrinkA": 5, "shrinkB": 0}
        axes.annotate("", (speed, seen.threshold + 3.6), (speed, seen.threshold), arrowprops=arrow, zorder=5)
        axes.plot(speed, seen.threshold, "x", color=CRASH, markersize=9, markeredgewidth=2.4, zorder=6)
    first = float(seen.tried[seen.crashed][0])
    _say(axes, "crash: known only\nto lie above", (first, high), (0, 6), CRASH, ha="right")
    _say(axes, "success: measured", (seen.tried[1], seen.currents[1]), (0, -20), SUCCESS, ha="center")
    _say(axes, f"learnt threshold {seen.threshold:.1f} A", (5.0, low), (0, -4), LEVEL, ha="center", va="top")
    _say(axes, "its 90 % interval", (5.0, high), (0, -5), LEVEL, ha="center", va="top")
    _say(axes, f"true trip level {TRIP_LEVEL:.0f} A (hidden)", (5.0, TRIP_LEVEL), (0, 3), _HIDDEN, ha="center")


def _draw_p_safe(axes: Axes, seen: Illustration) -> None:
    title(axes, "P(safe)", "the probability that a trial succeeds")
    axes.set_ylabel("probability")
    axes.set_ylim(-0.05, 1.12)
    axes.set_yticks([0.0, 0.5, 1.0])
    axes.fill_between(seen.speeds, seen.p_safe, color=MODEL, alpha=0.12, linewidth=0)
    axes.plot(seen.speeds, seen.p_safe, color=MODEL, linewidth=1.8)
    there = seen.speeds[seen.next], seen.p_safe[seen.next]
    axes.plot(*there, "o", color=NEXT, markersize=7, zorder=6)
    _say(axes, f"{there[1]:.2f}", there, (8, 2), NEXT, ha="left", fontweight="bold")


def _draw_acquisition(axes: Axes, seen: Illustration) -> None:
    title(axes, "Acquisition", "expected improvement times P(safe); its maximum is the next trial")
    axes.set_ylabel("EUR per part")
    top = float(seen.expected_improvement.max())
    axes.set_ylim(-0.04 * top, 1.25 * top)
    axes.plot(seen.speeds, seen.expected_improvement, color=_TRUTH, linewidth=1.2, linestyle="--")
    axes.fill_between(seen.speeds, seen.acquisition, color=NEXT, alpha=0.15, linewidth=0)
    axes.plot(seen.speeds, seen.acquisition, color=NEXT, linewidth=1.8)
    there = seen.speeds[seen.next], seen.acquisition[seen.next]
    axes.plot(*there, "o", color=NEXT, markersize=8, zorder=6)
    _say(axes, f"next trial: {1000.0 * there[0]:.0f} rpm", there, (-8, 11), NEXT, ha="right", fontweight="bold")
    greedy = seen.speeds[seen.greedy], seen.expected_improvement[seen.greedy]
    _say(axes, "without P(safe)", greedy, (0, 4), _HIDDEN, ha="center")


def _draw_belief(axes: Axes, x: Array, mean: Array, std: Array, truth: Array) -> None:
    """Mean and two standard deviations of a Gaussian process, and the truth."""
    axes.fill_between(x, mean - 2.0 * std, mean + 2.0 * std, color=MODEL, alpha=0.16, linewidth=0, zorder=2)
    axes.plot(x, mean, color=MODEL, linewidth=1.8, zorder=4)
    axes.plot(x, truth, color=_TRUTH, linewidth=1.2, linestyle=":", zorder=3)


def panel(size: tuple[float, float], name: str, what: str) -> tuple[Figure, Axes]:
    """A figure with one panel, and what it shows."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    dress(axes)
    title(axes, name, what)
    return figure, axes


def dress(axes: Axes) -> None:
    """Set light grid lines and no frame."""
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9, labelcolor="#4D4D4D")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#B3B3B3")


def title(axes: Axes, name: str, what: str) -> None:
    """Set a panel's title: its name on the left, the rest on the right."""
    axes.set_title(name, loc="left", fontsize=10.5, fontweight="bold", pad=5)
    axes.set_title(what, loc="right", fontsize=9.5, color="#4D4D4D", pad=5)


def _say(
    axes: Axes, text: str, point: tuple[float, float], offset: tuple[float, float], color: str, **style: Any
) -> None:
    """Add a label near a point, at an `offset` in typographic points."""
    style = {"fontsize": 9, "zorder": 7} | style
    axes.annotate(text, point, offset, textcoords="offset points", color=color, **style)


def _on(x: Array, curve: Array, at: float) -> tuple[float, float]:
    """The point of a curve at x = at."""
    return at, float(np.interp(at, x, curve))
