"""Small pictures of any study, to stand beside one of the machine: its course, and P(safe) over two parameters.

May import every other layer; matplotlib comes through `plots`. The gallery in `examples/` is drawn with them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crashbo.app.plots import MODEL, Array, Axes, dress, title
from crashbo.app.states import CRASH, LOOKS, SUCCESS
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Trial
from crashbo.search.parameters import Float, Int

_FINE = 61  # points along an axis of a map
_LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_SAFE = "Blues"
_BEST = "#F0E442"


@dataclass(frozen=True)
class SafetyMap:
    """P(safe) over two parameters, with the others held."""

    names: tuple[str, str]
    x: Array
    y: Array
    p_safe: Array  # one row for each y
    logarithmic: tuple[bool, bool]


def gather_safety(optimizer: Optimizer, across: tuple[str, str], at: Mapping[str, Any] | None = None) -> SafetyMap:
    """P(safe) on a grid over two parameters; the others are as in `at`, by default the best trial's."""
    held = {} if optimizer.best is None else dict(optimizer.best.ran)
    held |= at or {}
    ranges = [_range(optimizer, name) for name in across]
    grid = [_along(r) for r in ranges]
    points = [held | dict(zip(across, (x, y), strict=True)) for y in grid[1] for x in grid[0]]
    p_safe = optimizer.p_safe(points).reshape(len(grid[1]), len(grid[0]))
    return SafetyMap(across, grid[0], grid[1], p_safe, (ranges[0].log, ranges[1].log))


def draw_safety(axes: Axes, seen: SafetyMap, trials: Sequence[Trial] = (), best: Trial | None = None) -> None:
    """P(safe) as shades of blue, with the trials on top: dots succeeded, crosses crashed, the best is yellow."""
    title(axes, "P(safe)", "the darker the safer")
    axes.contourf(seen.x, seen.y, seen.p_safe, _LEVELS, cmap=_SAFE, vmin=-0.1, vmax=1.3)
    axes.contour(seen.x, seen.y, seen.p_safe, [0.5], colors="white", linewidths=1.2)
    for letter, name, log in zip("xy", seen.names, seen.logarithmic, strict=True):
        axes.set(**{f"{letter}label": name})
        if log:
            axes.set(**{f"{letter}scale": "log"})
            getattr(axes, f"{letter}axis").set_major_formatter("{x:g}")
    axes.minorticks_off()
    mark_trials(axes, [(t.state, t.ran[seen.names[0]], t.ran[seen.names[1]]) for t in trials])
    if best is not None:
        at = [[best.ran[name]] for name in seen.names]
        axes.plot(
            *at,
            "*",
            color=_BEST,
            markeredgecolor=SUCCESS,
            markersize=15,
            zorder=6,
            linestyle="none",
            clip_on=False,
            in_layout=False,
        )
    dress(axes)
    axes.grid(visible=False)


def mark_trials(axes: Axes, marks: Sequence[tuple[str, float, float]]) -> None:
    """Trials as state, x, y: each state by its own mark."""
    for state, look in LOOKS.items():
        at = np.array([(x, y) for s, x, y in marks if s == state], dtype=float).reshape(-1, 2)
        face = look.colour if look.filled else "none"
        edge = "white" if look.filled else look.colour
        widths = {"markeredgewidth": 2.0} if look.marker == "x" else {"markeredgecolor": edge, "markersize": 6}
        axes.plot(
            *at.T,
            look.marker,
            color=look.colour,
            markerfacecolor=face,
            zorder=5,
            clip_on=False,
            in_layout=False,
            **widths,
        )


def draw_course(
    axes: Axes, trials: Sequence[Trial], value: Callable[[float], float] = float, *, up: bool = False
) -> None:
    """A study's costs over its trials and the best so far; what has no cost is marked below.

    `value` turns a cost into what is shown, `up` says that more of that is better.
    """
    dress(axes)
    shown = np.array([np.nan if t.cost is None else value(t.cost) for t in trials])
    best = (np.fmax if up else np.fmin).accumulate(shown)
    numbers = np.array([t.number for t in trials])
    axes.step(numbers, best, where="post", color=MODEL, linewidth=1.8)
    axes.plot(numbers, shown, "o", color=SUCCESS, markersize=4.5)
    known = shown[np.isfinite(shown)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    rail = low - 0.09 * (high - low or 1.0)
    mark_trials(axes, [(t.state, t.number, rail) for t in trials if t.cost is None])
    axes.set_xlabel("trial")


def note(axes: Axes, text: str, point: tuple[float, float], offset: tuple[float, float], **style: Any) -> None:
    """A few words beside a point, at an `offset` in typographic points."""
    look: dict[str, Any] = {"fontsize": 9, "color": CRASH} | style
    axes.annotate(text, point, offset, textcoords="offset points", zorder=7, **look)


def _range(optimizer: Optimizer, name: str) -> Float | Int:
    parameter = optimizer.space.parameters[name]
    if not isinstance(parameter, Float | Int):
        raise ValueError(f"across must name two parameters with a range; got {name!r}. Name numbers instead.")
    return parameter


def _along(parameter: Float | Int) -> Array:
    spaced = (np.geomspace if parameter.log else np.linspace)(parameter.low, parameter.high, _FINE)
    return np.unique(np.rint(spaced)) if isinstance(parameter, Int) else spaced
