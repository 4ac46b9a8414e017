"""Figures of a study, from `gathered` data. May import every other layer; matplotlib through `plots`.

Colours have the same meanings as in `plots`.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from crashbo.app.gathered import Gathered
from crashbo.app.overview import Level, Slice
from crashbo.app.plots import LEVEL, MODEL, Array, Axes, Figure, dress, panel, title
from crashbo.app.states import CRASH, LOOKS, NEXT, SUCCESS
from crashbo.app.text import value_text
from crashbo.optimizer.records import Trial
from crashbo.search.space import Choice

_SIZE = 7.6, 3.1  # inch
_BAND = "#E69F00"
_GOALS = (MODEL, SUCCESS, LEVEL)  # colours of goals, side by side
_SAFETY = "safety", "P(safe)", NEXT
_SAFE = 0.9


def draw_all(g: Gathered) -> dict[str, Figure]:
    """All figures for which there are data, by name."""
    if not any(t.counts for t in g.trials):
        return {}
    out = {"front": draw_front(g)} if g.titled.study.objectives else {"cost": draw_cost(g)}
    if g.titled.study.compared:
        out = {}
    if g.ranking:
        out["ranking"] = draw_ranking(g)
    for i, (name, levels) in enumerate(g.history.items()):
        out[f"threshold-{i + 1}"] = draw_level(g, name, levels)
    out["influence"] = draw_influence(g)
    for i, found in enumerate(g.slices):
        out[f"slice-{i + 1}"] = draw_line(g, found) if len(found.axes) == 1 else draw_slice(g, found)
    return out


def draw_cost(g: Gathered) -> Figure:
    """Cost over trials, with crashes and voids marked."""
    label, unit = g.titled.label, g.titled.study.units.get("cost", "")
    name = f"{label[:1].upper()}{label[1:]} over trials"
    figure, axes = panel(_SIZE, _plain(name), "crosses are crashes, rings are voids")
    done = [t for t in g.trials if t.cost is not None]
    if done:
        costs = np.array([t.cost for t in done], dtype=float)
        best = (np.maximum if g.titled.study.direction == "maximize" else np.minimum).accumulate(costs)
        numbers = [t.number for t in done]
        axes.step([*numbers, len(g.trials) - 1], [*best, best[-1]], where="post", color=MODEL, linewidth=1.8, zorder=2)
        axes.plot(numbers, costs, "o", color=SUCCESS, markersize=5, zorder=3)
        axes.set_ylim(*_ends(costs, [best[-1]]))
    _rail(axes, [t for t in g.trials if LOOKS[t.state].rail])
    axes.set_ylabel(_with_unit(label, unit))
    return figure


def draw_front(g: Gathered) -> Figure:
    """Every pair of goals: the successes, those on the front joined, and in words how many crashed."""
    pairs = list(combinations(g.titled.goals, 2))
    figure = Figure(figsize=(7.6, 3.9) if len(pairs) == 1 else (7.6, 3.1 * len(pairs)), layout="constrained")
    done = [t for t in g.trials if t.state == "success"]
    members = set((g.front or {}).get("trials", ()))
    crashes = sum(t.state == "crash" for t in g.trials)
    crashed = f"; {crashes} crashed, and are not shown" if crashes else ""
    for axes, (across, up) in zip(figure.subplots(len(pairs), 1, squeeze=False)[:, 0], pairs, strict=True):
        dress(axes)
        title(axes, _plain(f"{up.label} against {across.label}"), f"large dots: on the front{crashed}")
        known = [t for t in done if across.of(t.cost) is not None and up.of(t.cost) is not None]
        points = {t.number: (across.of(t.cost), up.of(t.cost)) for t in known}
        axes.plot(
            *_columns(points[n] for n in points if n not in members), "o", color=SUCCESS, markersize=4, alpha=0.45
        )
        on_it = sorted(points[n] for n in points if n in members)
        if len(pairs) == 1:
            axes.plot(*_columns(on_it), color=MODEL, linewidth=1.4, zorder=2)
        axes.plot(*_columns(on_it), "o", color=MODEL, markersize=6.5, zorder=3)
        if points:
            axes.set_xlim(*_ends(np.array([p[0] for p in points.values()]), [p[0] for p in on_it]))
            axes.set_ylim(*_ends(np.array([p[1] for p in points.values()]), [p[1] for p in on_it]))
        axes.set_xlabel(_with_unit(across.label, across.unit))
        axes.set_ylabel(_with_unit(up.label, up.unit))
    return figure


def _columns(points: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    kept = list(points)
    return [x for x, _ in kept], [y for _, y in kept]


def draw_ranking(g: Gathered) -> Figure:
    """The hidden cost of every compared trial with its uncertainty, in the order of trials."""
    figure, axes = panel(_SIZE, "Hidden cost of the compared trials", "with 90 % intervals; crosses are crashes")
    rows = sorted(g.ranking, key=lambda r: r.number)
    numbers, means = [r.number for r in rows], np.array([r.mean for r in rows])
    axes.errorbar(
        numbers, means, 1.645 * np.array([r.std for r in rows]), fmt="o", color=SUCCESS, ecolor=MODEL, markersize=5
    )
    best = g.best
    if best is not None and best.number in numbers:
        at = means[numbers.index(best.number)]
        axes.plot([best.number], [at], "o", color="#F0E442", markeredgecolor="black", markersize=8, zorder=4)
    _rail(axes, [t for t in g.trials if LOOKS[t.state].rail])
    axes.set_ylabel(_with_unit("hidden cost", g.titled.study.units.get("cost", "")))
    return figure


def draw_level(g: Gathered, name: str, levels: list[Level]) -> Figure:
    """A threshold with its interval over trials, and the measurements."""
    words = "90 % interval, as learnt; crosses are crashes"
    figure, axes = panel(_SIZE, _plain(f"Crash threshold of {name}"), words)
    known = [
        (level.number, level.value, *level.interval) for level in levels if level.value is not None and level.interval
    ]
    if known:
        x, value, low, high = np.array([*known, (len(g.trials) - 1, *known[-1][1:])], dtype=float).T
        beyond = 1e3 * (np.nanmax(np.abs([value, low, high])) + 1.0)  # where an open end is drawn: off the picture
        axes.fill_between(
            x, np.nan_to_num(low, nan=-beyond), np.nan_to_num(high, nan=beyond), color=_BAND, alpha=0.22, linewidth=0
        )
        axes.plot(x, value, color=LEVEL, linewidth=1.8)
    seen = [t for t in g.trials if name in t.measured and t.state not in ("void", "pending")]
    for state in LOOKS:
        of = [t for t in seen if t.state == state]
        axes.plot([t.number for t in of], [t.measured[name] for t in of], **_marker(state))
    values = np.array([t.measured[name] for t in seen] or [level[1] for level in known] or [0.0], dtype=float)
    axes.set_ylim(*_ends(values, [end for end in known[-1][1:] if end is not None] if known else []))
    _rail(axes, [t for t in g.trials if LOOKS[t.state].rail and (name not in t.measured or t.state == "void")])
    axes.set_ylabel(_with_unit(name, g.titled.study.units.get(name, "")))
    return figure


def draw_influence(g: Gathered) -> Figure:
    """The influence of each parameter on cost and P(safe)."""
    names = list(next(iter(g.influence.values())))
    size = _SIZE[0], 1.1 + 0.42 * len(names)
    words = "share of the variation over the space that involves each"
    figure, axes = panel(size, "Which parameters matter", words)
    names.sort(key=lambda name: max(of[name] for of in g.influence.values()))
    shown = [*((goal.name, goal.label, _GOALS[i]) for i, goal in enumerate(g.titled.goals)), _SAFETY]
    shown = [s for s in shown if s[0] in g.influence]
    step = 0.8 / max(len(shown), 2)
    for i, (kind, label, color) in enumerate(shown):
        at = np.arange(len(names)) + 0.5 * step * (max(len(shown), 2) - 1) - step * i
        axes.barh(at, [g.influence[kind][name] for name in names], height=0.9 * step, color=color, label=_plain(label))
    axes.set_yticks(range(len(names)), [_plain(name) for name in names])
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("share of the variation", fontsize=9)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def draw_slice(g: Gathered, found: Slice) -> Figure:
    """Expected cost and P(safe) over two parameters."""
    figure = Figure(figsize=(7.6, 3.7), layout="constrained")
    held = ", ".join(f"{k} {value_text(v, 3)}" for k, v in found.at.items() if k not in found.axes)
    goals = [] if found.cost is None else g.titled.goals
    fields = []
    for goal in goals:
        field = goal.of(found.cost)
        colours = "viridis" if goal.direction == "maximize" else "viridis_r"
        fields.append((field, f"expected {goal.label}", colours, (float(field.min()), float(field.max())), goal.unit))
    fields.append((found.p_safe, "P(safe)", "RdBu", (0.0, 1.0), "probability"))
    if len(goals) > 1:
        figure.set_size_inches(3.8 * len(fields), 3.7)
    panels = figure.subplots(1, len(fields), squeeze=False)[0]
    x, y = (_coordinates(g, name, values) for name, values in zip(found.axes, found.grid, strict=True))
    for axes, (field, words, colours, (low, high), unit) in zip(panels, fields, strict=True):
        smooth = not any(isinstance(g.titled.space.parameters[name], Choice) for name in found.axes)
        shading = "gouraud" if smooth else "nearest"
        image = axes.pcolormesh(x, y, field, cmap=colours, vmin=low, vmax=high, shading=shading, rasterized=True)
        if found.forbidden is not None and found.forbidden.any():
            hidden = np.ma.masked_where(found.forbidden == 0.0, found.forbidden)
            axes.pcolormesh(x, y, hidden, cmap="Greys", vmin=0.0, vmax=2.0, shading="nearest", rasterized=True)
        if smooth and found.p_safe.min() < _SAFE < found.p_safe.max():
            axes.contour(x, y, found.p_safe, levels=[_SAFE], colors="white", linewidths=1.6)
        _dots(axes, g, found.axes)
        _name_axes(axes, g, found.axes)
        axes.set_title(_plain(words), loc="left", fontsize=10, fontweight="bold")
        figure.colorbar(image, ax=axes, fraction=0.05).set_label(_plain(unit))
    marks = f"dots: successes, yellow {'on the front' if len(goals) > 1 else 'the best'}; crosses: crashes"
    if found.forbidden is not None and found.forbidden.any():
        marks += "; grey: a rule forbids it"
    words = f"white line: P(safe) = {_SAFE:g}; {marks}" + (f"\nat {held}" if held else "")
    figure.supxlabel("\n".join(_plain(line, 110) for line in words.splitlines()), fontsize=8.5, color="#4D4D4D")
    return figure


def draw_line(g: Gathered, found: Slice) -> Figure:
    """Expected cost and P(safe) over the only parameter."""
    goals = g.titled.goals
    figure = Figure(figsize=(7.6, 2.0 + 2.6 * len(goals)), layout="constrained")
    *uppers, lower = figure.subplots(1 + len(goals), 1, sharex=True, height_ratios=[*[3] * len(goals), 2])
    name = found.axes[0]
    x = _coordinates(g, name, found.grid[0])
    for axes in (*uppers, lower):
        dress(axes)
    for upper, goal in zip(uppers, goals, strict=True):
        title(upper, _plain(f"Expected {goal.label}"), "with its 90 % interval")
        if found.cost is not None and found.cost_std is not None:
            mean, half = goal.of(found.cost), 1.645 * goal.of(found.cost_std)
            upper.fill_between(x, mean - half, mean + half, color=MODEL, alpha=0.16)
            upper.plot(x, mean, color=MODEL, linewidth=1.8)
        done = [t for t in g.trials if t.state == "success" and goal.of(t.cost) is not None and name in t.ran]
        at = _coordinates(g, name, [t.ran[name] for t in done])
        upper.plot(at, [goal.of(t.cost) for t in done], "o", color=SUCCESS, markersize=5)
        upper.set_ylabel(_with_unit(goal.label, goal.unit), fontsize=9)
    squares = any(t.state == "stopped" for t in g.trials)
    title(lower, "P(safe)", "crosses are crashes" + (", squares were stopped" if squares else ""))
    lower.set_ylabel("probability", fontsize=9)
    lower.plot(x, found.p_safe, color=NEXT, linewidth=1.8)
    for state in ("crash", "stopped"):
        failed = _coordinates(g, name, [t.ran[name] for t in g.trials if t.state == state and name in t.ran])
        lower.plot(failed, [0.03] * len(failed), **_marker(state))
    lower.set_ylim(-0.03, 1.05)
    _name_axes(lower, g, found.axes)
    return figure


def _marker(state: str) -> dict[str, Any]:
    look = LOOKS[state]
    face = {} if look.filled else {"markerfacecolor": "none"}
    return {"marker": look.marker, "color": look.colour, "linestyle": "none", "markersize": 5.5, **face} | (
        {"markeredgewidth": 2.0} if look.marker == "x" else {}
    )


def _rail(axes: Axes, trials: list[Trial]) -> None:
    """Mark trials without a value on a line below the others."""
    low, high = axes.get_ylim()
    at = low - 0.07 * (high - low)
    for state in LOOKS:
        numbers = [t.number for t in trials if t.state == state]
        axes.plot(numbers, [at] * len(numbers), **_marker(state))
    axes.set_ylim(low - 0.14 * (high - low), high)
    axes.set_xlabel("trial", fontsize=9)
    axes.locator_params(axis="x", integer=True)


def _dots(axes: Axes, g: Gathered, names: tuple[str, ...]) -> None:
    told = [t for t in g.trials if t.counts and all(name in t.ran for name in names)]
    leaders = set(g.leaders)
    best = [t for t in told if t.number in leaders]
    of_state = {state: [t for t in told if t.state == state and t not in best] for state in LOOKS}

    def draw(trials: list[Trial], *form: str, **look: Any) -> None:
        at = [_coordinates(g, name, [t.ran[name] for t in trials]) for name in names]
        axes.plot(*at, *form, **{"linestyle": "none"} | look)

    draw(of_state["success"], "o", color="white", markeredgecolor="black", markersize=4)
    draw(of_state["stopped"], **_marker("stopped") | {"markeredgecolor": "white"})
    for colour, width in (("white", 3.6), (CRASH, 2.0)):
        draw(of_state["crash"], "x", color=colour, markersize=7, markeredgewidth=width)
    draw(best, "o", color="#F0E442", markeredgecolor="black", markersize=7)


def _name_axes(axes: Axes, g: Gathered, names: tuple[str, ...]) -> None:
    units = g.titled.study.units
    for name, letter in zip(names, "xy", strict=False):
        getattr(axes, f"set_{letter}label")(_with_unit(name, units.get(name, "")), fontsize=9)
        parameter = g.titled.space.parameters[name]
        if isinstance(parameter, Choice):
            getattr(axes, f"set_{letter}ticks")(
                range(len(parameter.options)), [_plain(str(o)) for o in parameter.options]
            )
        else:
            if parameter.log:
                getattr(axes, f"set_{letter}scale")("log")
            getattr(axes, f"set_{letter}lim")(parameter.low, parameter.high)
    axes.tick_params(labelsize=8.5)


def _coordinates(g: Gathered, name: str, values: Sequence[Any]) -> Array:
    """Values of a parameter as positions on an axis; a choice is at the position of its option."""
    parameter = g.titled.space.parameters[name]
    if isinstance(parameter, Choice):
        values = [parameter.options.index(v) for v in values]
    return np.array(values, dtype=float)


def _ends(values: Array, always: list[float]) -> tuple[float, float]:
    """Axis limits that contain the bulk of the values: one huge cost must not flatten all others."""
    q10, q25, q75, q90 = np.quantile(values, [0.1, 0.25, 0.75, 0.9])
    spread = max(q75 - q25, 0.5 * (q90 - q10))
    low = min(max(float(values.min()), q25 - 4.0 * spread), *always, np.inf)
    high = max(min(float(values.max()), q75 + 4.0 * spread), *always, -np.inf)
    pad = 0.08 * (high - low or abs(high) or 1.0)
    return low - pad, high + pad


def _with_unit(name: str, unit: str) -> str:
    return _plain(f"{name} ({unit})" if unit else name)


def _plain(text: str, most: int = 80) -> str:
    """Text escaped for matplotlib, where a dollar sign would begin a formula."""
    return text.replace("\\", "").replace("$", r"\$")[:most]
