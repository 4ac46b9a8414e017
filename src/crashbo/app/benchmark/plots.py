"""Figures of a benchmark, drawn through `plots`. May import every other layer.

A method looks the same in all figures of a page: ours in blue, the oracle in black, the best peers in colours, all
others muted; dashes and markers tell them apart without colour.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from crashbo.app.plots import MODEL, Array, Axes, Figure, dress, title
from crashbo.app.states import SUCCESS
from crashbo.benchmark.published import THERE, judged, reached
from crashbo.benchmark.runs import Run
from crashbo.benchmark.summary import (
    ORACLE,
    OURS,
    STEPS,
    TARGETS,
    Estimate,
    Summary,
    band,
    best_peer,
    data_profile,
    is_peer,
    label,
    suggestion_seconds,
    wasted_share,
)

_LEAST = 1e-3  # mean regrets below it are drawn there
_AT_ONCE = 1e-5  # seconds: the last digit that is kept of a suggestion's time
_OWN = dict(zip(OURS, ((MODEL, "o"), ("#56B4E9", "s")), strict=True))  # colour and marker
_PEERS = ("#D55E00", "#009E73", "#CC79A7", "#B8860B")  # of the best, by rank
_MUTED = ("#8C8C8C", "#A08A6A", "#7C97A3", "#9A86A4")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
_MARKERS = ("D", "^", "v", "P", "X", "<", ">", "p", "d")  # of all others
_WIDTH, _HEIGHT = 10.0, 3.7  # inches, of a row of panels
_FONT, _LINE = 8.0, 0.142  # points, and inches from one label to the next
_FEW_CELLS = 12  # up to which each gets a panel
_COLUMNS = 4
_SHARES = np.linspace(0.0, 100.0, STEPS + 1)


class Look(NamedTuple):
    """How a method is drawn."""

    color: str
    dash: Any
    marker: str
    width: float
    order: float  # what is drawn on top
    banded: bool  # whether its interval is drawn

    def line(self, *, marked: bool = True) -> dict[str, Any]:
        """Arguments of a plot."""
        marks = {"marker": self.marker, "markersize": 4.2, "markeredgewidth": 0.0}
        own = {"color": self.color, "linestyle": self.dash, "linewidth": self.width, "zorder": self.order}
        return own | (marks if marked else {})


def looks(summary: Summary) -> dict[str, Look]:
    """How each method is drawn, best first."""
    ranked = summary.ranked()
    rival = best_peer(summary)
    peers = iter(_PEERS)
    others, markers = count(), iter(_MARKERS * (1 + len(ranked) // len(_MARKERS)))
    found = {}
    for method in ranked:
        if method in _OWN:
            found[method] = Look(_OWN[method][0], "-", _OWN[method][1], 2.3, 6.0, True)
        elif method == ORACLE:
            found[method] = Look(SUCCESS, (0, (1.2, 1.2)), "h", 1.6, 5.0, False)
        elif is_peer(method) and (color := next(peers, None)):
            found[method] = Look(color, "-", next(markers), 1.6, 4.0, method == rival)
        else:
            i = next(others)
            dash = _DASHES[1 + i // len(_MUTED) % (len(_DASHES) - 1)]
            found[method] = Look(_MUTED[i % len(_MUTED)], dash, next(markers), 1.1, 3.0, False)
    return found


def scores(run: Run) -> Array:
    """Regret after each trial."""
    return run.score


def crashes(run: Run) -> Array:
    """Crashes up to each trial, in percent of all trials of the run."""
    return 100.0 * run.crashes / run.spec.trials


def draw_curves(part: Summary, look: Mapping[str, Look]) -> Figure:
    """Regret and crashes against the share of the trials, and regret against crashes."""
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    regret, crashed, both = figure.subplots(1, 3)
    ends = {}
    for (method, style), i in zip(look.items(), count()):
        r, c = part.curves(method, scores, 1.0), part.curves(method, crashes, 0.0)
        line = style.line() | {"markevery": (4 + 7 * i % 25, 25)}
        mean = _drawn(r.mean(axis=0))
        regret.plot(_SHARES, mean, **line)
        crashed.plot(_SHARES, c.mean(axis=0), **line)
        both.plot(c.mean(axis=0), mean, **style.line(marked=False))
        both.plot(c.mean(axis=0)[-1], mean[-1], style.marker, color=style.color, markersize=7, clip_on=False, **_EDGE)
        if style.banded:
            for axes, curves in ((regret, r), (crashed, c)):
                low, high = band(curves)
                low, high = (_drawn(low), _drawn(high)) if axes is regret else (low, high)
                axes.fill_between(_SHARES, low, high, color=style.color, alpha=0.15, linewidth=0, zorder=2)
        ends[method] = float(mean[-1])
    for axes, name, below in (
        (regret, "Regret", "trials, % of a run"),
        (crashed, "Crashes, % of all trials", "trials, % of a run"),
        (both, "Regret against crashes", "crashes, % of all trials"),
    ):
        dress(axes)
        title(axes, name, "")
        axes.set_xlabel(below, fontsize=9)
    lowest = min(0.5, *(float(line.get_ydata().min()) for line in regret.lines)) if regret.lines else 0.5
    for axes in (regret, both):
        _regret_axis(axes, lowest)
    for axes in (regret, crashed):
        axes.set_xlim(0.0, 100.0)
    crashed.set_ylim(bottom=0.0)
    both.set_xlim(left=0.0)
    _label_ends(regret, ends, look)
    return figure


def draw_profiles(summary: Summary, look: Mapping[str, Look]) -> Figure:
    """The share of cases solved against trials, each method a line over all problems; one panel per target."""
    figure = Figure(figsize=(_WIDTH, 1.15 * _HEIGHT), layout="constrained")
    for axes, target in zip(figure.subplots(1, len(TARGETS)), TARGETS, strict=True):
        dress(axes)
        title(axes, f"Solved to {target:g}", "% of cases")
        ends = {}
        for i, (method, style) in enumerate(look.items()):
            trials, shares = data_profile(summary, method, target)
            axes.plot(trials[1:], 100.0 * shares[1:], **style.line(), markevery=(3 + 7 * i % 20, 20))
            ends[method] = 100.0 * float(shares[-1])
            axes.set_xlim(1.0, trials[-1])
        axes.set_xscale("log")
        _plain_ticks(axes, "x")
        axes.set_xlabel("trials", fontsize=9)
        axes.set_ylim(0.0, max(10.0, 1.05 * max(ends.values(), default=0.0)))
        _label_ends(axes, ends, look)
    return figure


def draw_published(summary: Summary, look: Mapping[str, Look]) -> Figure | None:
    """What methods reach on published problems, a panel each; dotted: others' best and random runs, as published."""
    there = judged(summary)
    if not there:
        return None
    figure, panels = _panels(len(there), len(look))
    handles: dict[str, Any] = {}
    for axes, (problem, published) in zip(panels, there.items(), strict=True):
        rows = reached(summary, problem)
        axes.set_title(problem, loc="left", fontsize=9, fontweight="bold", pad=4)
        best = next((row for row in rows if row.origin == THERE), None)
        for row in rows:
            known = np.isfinite(row.curve)
            x, y = row.trials[known], np.maximum(row.curve[known], _LEAST_GAP if published.figure == "gap" else 0.0)
            if row.origin != THERE and row.method in look:
                name = label(row.method)
                handles[name] = axes.plot(x, y, **look[row.method].line(marked=False))[0]
            elif row is best or (row.origin == THERE and row.method == "random"):
                marks: dict[str, Any] = {"marker": "x", "markersize": 5} if published.figure == "gap" else {}
                handles["as published: best, random"] = axes.plot(x, y, **_THERE, **marks)[0]
                axes.annotate(row.name, (x[-1], y[-1]), (-3, 5), textcoords="offset points", fontsize=7, ha="right")
        axes.set_xlim(0.0, published.trials)
        axes.set_ylabel(_FIGURES[published.figure], fontsize=7.5)
        axes.set_xlabel("trials", fontsize=8)
        if published.figure == "gap":
            axes.set_yscale("log")
            _plain_ticks(axes, "y")
    _legend(figure, handles)
    return figure


_FIGURES = {"trials": "share that found one", "gap": "gap", "share": "optimum / best"}
_LEAST_GAP = 1e-4
_THERE: dict[str, Any] = {"color": "#222222", "linestyle": ":", "linewidth": 1.5, "zorder": 5.5}


def draw_effort(summary: Summary, look: Mapping[str, Look]) -> Figure:
    """Wasted trials, and the time of a suggestion, with intervals."""
    figure = Figure(figsize=(_WIDTH, 1.0 + 0.23 * len(look)), layout="constrained")
    waste, time = figure.subplots(1, 2, sharey=True)
    for axes, name, what, scale, least in (
        (waste, "Wasted trials, %", wasted_share, 100.0, 0.0),
        (time, "Seconds per suggestion", suggestion_seconds, 1.0, _AT_ONCE),
    ):
        dress(axes)
        title(axes, name, "mean over cases, 95 % interval")
        for y, (method, style) in enumerate(look.items()):
            found = Estimate(*np.maximum(scale * np.array(summary.estimate(method, what)), least))
            axes.plot([found.low, found.high], [y, y], color=style.color, linewidth=2.4, alpha=0.45, zorder=3)
            axes.plot(found.mean, y, style.marker, color=style.color, markersize=6.5, zorder=4, clip_on=False, **_EDGE)
    waste.set_yticks(range(len(look)), [label(method) for method in look])
    waste.set_ylim(len(look) - 0.4, -0.6)
    waste.set_xlim(left=0.0)
    if np.isfinite(time.dataLim.intervalx).all():  # else no method made a trial
        time.set_xscale("log")
        _plain_ticks(time, "x")
    for text, method in zip(waste.get_yticklabels(), look, strict=True):
        text.set(fontweight="bold" if method in OURS else "normal")
    return figure


def draw_families(summary: Summary, look: Mapping[str, Look]) -> Figure:
    """Regret against trials: a panel for each problem and dimension if these are few, else for each problem."""
    cells = sorted(summary.by_problem_and_dimension().items())
    if len(cells) <= _FEW_CELLS:
        return _multiples(
            {f"{name}, {dimension} parameters": part for (name, dimension), part in cells}, look, _by_trial, "trial"
        )
    return _multiples(dict(sorted(summary.problems.items())), look, _by_share, "trials, % of a run")


def _by_trial(part: Summary, method: str) -> tuple[Array, Array]:
    runs = [run.score for run in part.of_method(method)]
    n = min(map(len, runs))
    return np.arange(1.0, n + 1.0), np.mean([run[:n] for run in runs], axis=0)


def _by_share(part: Summary, method: str) -> tuple[Array, Array]:
    return _SHARES, part.curves(method, scores, 1.0).mean(axis=0)


def _multiples(
    parts: Mapping[str, Summary],
    look: Mapping[str, Look],
    curve: Callable[[Summary, str], tuple[Array, Array]],
    below: str,
) -> Figure:
    figure, panels = _panels(len(parts), len(look))
    handles = {}
    for i, (axes, (name, part)) in enumerate(zip(panels, parts.items(), strict=True)):
        axes.set_title(name, loc="left", fontsize=9, fontweight="bold", pad=4)
        lowest = 0.5
        for j, (method, style) in enumerate(look.items()):
            x, y = curve(part, method)
            every = max(len(x) // 3, 1)
            line = style.line() | {"linewidth": 0.8 * style.width, "markersize": 3.0}
            handles[label(method)] = axes.plot(x, _drawn(y), **line, markevery=((5 * j) % every, every))[0]
            lowest = min(lowest, float(_drawn(y).min()))
        axes.set_xlim(x[0], x[-1])
        _regret_axis(axes, lowest)
        if i >= len(parts) - _COLUMNS:
            axes.set_xlabel(below, fontsize=8)
    _legend(figure, handles)
    return figure


def _panels(count: int, methods: int) -> tuple[Figure, list[Axes]]:
    """Small panels in rows, with room for a legend below them."""
    columns = min(_COLUMNS, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(_WIDTH, 2.05 * rows + 0.2 + 0.17 * -(-methods // 5)), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.07, w_pad=0.05)  # type: ignore[union-attr, call-arg]
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    for axes in panels[:count]:
        dress(axes)
        axes.tick_params(labelsize=7.5)
    return figure, panels[:count]


def _legend(figure: Figure, handles: Mapping[str, Any]) -> None:
    place: Any = "outside lower center"
    figure.legend(list(handles.values()), list(handles), loc=place, ncols=5, frameon=False, fontsize=8)


_EDGE = {"markeredgecolor": "white", "markeredgewidth": 0.6}


def _drawn(regret: Array) -> Array:
    """Regret as far as a logarithmic axis shows it."""
    return np.maximum(regret, _LEAST)


def _regret_axis(axes: Axes, lowest: float) -> None:
    """A logarithmic axis of regret, down to the lowest value."""
    axes.set_yscale("log")
    axes.set_ylim(0.85 * lowest, 1.08)
    _plain_ticks(axes, "y")


def _plain_ticks(axes: Axes, which: str) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5 in each decade as far as there is room, as plain numbers."""
    axis = getattr(axes, f"{which}axis")
    low, high = axis.get_view_interval()
    for steps in ((1, 2, 5), (1, 3), (1,)):
        decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) <= _TICKS:
            break
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


_TICKS = 8


def _label_ends(axes: Axes, ends: Mapping[str, float], look: Mapping[str, Look]) -> None:
    """Name the lines right of a panel, at the height of their ends as far as there is room: a legend in their order."""
    to_axes = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    heights = {method: float(to_axes.transform((x, end))[1]) for method, end in ends.items()}
    ordered = sorted(heights, key=lambda method: heights[method])
    gap = min(_LINE / (_HEIGHT - 0.85), 1.0 / max(len(ordered) - 1, 1))
    for method, y in zip(ordered, spread([heights[method] for method in ordered], gap), strict=True):
        style = look[method]
        free: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([1.005, 1.04], [heights[method], y], color=style.color, linewidth=0.6, **free)
        axes.plot([1.05, 1.085, 1.12], [y, y, y], **style.line(), markevery=[1], **free)
        weight = "bold" if method in OURS else "normal"
        text: dict[str, Any] = {"va": "center", "fontsize": _FONT, "fontweight": weight, "annotation_clip": False}
        axes.annotate(label(method), (1.14, y), xycoords="axes fraction", **text)


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Heights in ascending order, moved apart as little as can be so that none is nearer to the next than the gap.

    They stay between zero and one if there is room. Those that touch are a block, at the mean of what its members want.
    """
    blocks: list[list[float]] = []  # of where its first member would go, for each member's sake
    for i, height in enumerate(heights):
        blocks.append([height - i * gap])
        while len(blocks) > 1 and np.mean(blocks[-2]) >= np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    firsts = [float(np.mean(block)) for block in blocks for _ in block]
    highest = max(1.0 - (len(heights) - 1) * gap, 0.0)
    return [min(max(first, 0.0), highest) + i * gap for i, first in enumerate(firsts)]
