"""Figures of a study for optuna-dashboard, stored in the study itself. Data are gathered first, then drawn.

May import optimizer and below, Optuna, optuna-dashboard and plotly (the extra `dashboard`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna_dashboard
import plotly.graph_objects as go
from numpy.typing import NDArray
from optuna import Study as OptunaStudy
from optuna.trial import FrozenTrial

from crashbo.integrations.optuna.insight import Insight, insight
from crashbo.optimizer.records import Constraint, Fault, Trial, cost_words
from crashbo.optimizer.study import Constraints, Noise, number_of
from crashbo.search.space import Choice, Int

Array = NDArray[np.float64]

# The colours of Okabe and Ito, as in all figures of crashbo: model, crash, success, threshold.
_MODEL, _CRASH, _SUCCESS, _LEVEL, _BAND = "#0072B2", "#D55E00", "#1A1A1A", "#8A6100", "#E69F00"
_BLAMED = (_CRASH, "#E69F00", "#CC79A7", "#0072B2", "#009E73", "#56B4E9", "#F0E442")
_MARKS = (("success", _SUCCESS, "circle"), ("crash", _CRASH, "x"), ("stopped", "#CC79A7", "square"))
_GRID = 25
_NOTE = "<!-- crashbo -->"


@dataclass(frozen=True)
class Readings:
    """One constraint's measurements, and the threshold learnt from them."""

    name: str
    side: str
    trials: tuple[Trial, ...]  # with a measurement
    value: float | None
    interval: tuple[float, float] | None
    words: str


@dataclass(frozen=True)
class SafeMap:
    """P(safe) over two parameters (or one), with the others fixed as in the best trial."""

    title: str
    names: tuple[str, ...]
    values: tuple[list[Any], ...]
    log: tuple[bool, ...]
    p_safe: Array  # (second, first)
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class BlameBars:
    """The blame of each crash."""

    numbers: list[int]
    reasons: list[str]
    shares: dict[str, list[float]]


@dataclass(frozen=True)
class CrashCount:
    """Cumulative number of crashes, and the number that P(safe) predicted."""

    numbers: list[int]
    crashed: list[float]
    predicted: list[float]


def levels(seen: Insight) -> list[Readings]:
    """One record per measured constraint."""
    found = []
    for c in seen.constraints:
        if not isinstance(c, Constraint):
            continue
        threshold = seen.thresholds[c.name]
        measured = tuple(t for t in seen.trials if c.name in t.measured)
        found.append(Readings(c.name, c.side, measured, threshold.value, threshold.interval, threshold.words))
    return found


def safe_map(seen: Insight) -> SafeMap | None:
    """P(safe) over the two parameters along which it varies most, through the best trial; None before any trial."""
    told = [t for t in seen.trials if t.counts]
    if not told:
        return None
    grids = {name: _grid(seen, name) for name in seen.params}
    # With a value for what does not exist there: it may beside other values.
    centre = {name: grid[len(grid) // 2] for name, grid in grids.items()} | (_centre(seen) or told[-1]).params
    spread = {name: np.ptp(seen.p_safe([{**centre, name: v} for v in grid])) for name, grid in grids.items()}
    names = tuple(sorted(spread, key=lambda name: -spread[name])[:2])
    first, second = grids[names[0]], grids[names[-1]] if len(names) == 2 else [None]
    points = [{**centre, **({names[1]: w} if len(names) == 2 else {}), names[0]: v} for w in second for v in first]
    p_safe = np.asarray(seen.p_safe(points)).reshape(len(second), len(first))
    log = tuple(bool(getattr(seen.snapshot.axes.space.parameters[name], "log", False)) for name in names)
    which = "a trial of the front" if seen.snapshot.study.objectives else "the best trial"
    title = "P(safe)" if len(names) == len(seen.params) else f"P(safe), the other parameters as in {which}"
    return SafeMap(title, names, tuple(grids[name] for name in names), log, p_safe, tuple(told))


def _centre(seen: Insight) -> Trial | None:
    """The best trial; of several goals, the first on the front."""
    return next(iter(seen.front), None) if seen.snapshot.study.objectives else seen.best


def blames(seen: Insight) -> BlameBars:
    """One row per crash."""
    crashes = [t for t in seen.trials if t.state == "crash"]
    found = seen.view.blames()
    rows = [found[t.number] for t in crashes]
    shares = {c.name: [row[c.name] for row in rows] for c in seen.constraints}
    return BlameBars([t.number for t in crashes], [t.reason for t in crashes], shares)


def calibration(seen: Insight) -> CrashCount:
    """Crashes and predictions over the trials that the search proposed."""
    told = [t for t in seen.trials if t.counts and t.p_safe is not None]
    crashed = np.cumsum([t.state != "success" for t in told])  # who was stopped was about to crash
    predicted = np.cumsum([1.0 - (t.p_safe or 0.0) for t in told])
    return CrashCount([t.number for t in told], crashed.astype(float).tolist(), predicted.tolist())


def figures(seen: Insight) -> dict[str, go.Figure]:
    """All figures, by their names in the dashboard."""
    drawn = {f"crashbo-threshold-{i}": draw_level(level) for i, level in enumerate(levels(seen))}
    safe = safe_map(seen)
    if safe is not None:
        drawn["crashbo-p-safe"] = draw_safe_map(safe)
    if any(t.state == "crash" for t in seen.trials):
        drawn["crashbo-blame"] = draw_blames(blames(seen))
    known = calibration(seen)
    if known.numbers:
        drawn["crashbo-calibration"] = draw_calibration(known)
    return drawn


def publish(
    study: OptunaStudy,
    *,
    constraints: Constraints | None = None,
    noise: Noise | None = None,
    on_fail: Fault | None = None,
    lease: float | None = None,
) -> list[str]:
    """Add crashbo's figures, and a note with a summary, to a study in optuna-dashboard; returns the figures' names.

    Publishing again updates them. A note written by somebody else is left alone. Arguments as in `insight`.
    """
    seen = insight(study, constraints=constraints, noise=noise, on_fail=on_fail, lease=lease)
    drawn = figures(seen)
    for name, figure in drawn.items():
        optuna_dashboard.save_plotly_graph_object(study, figure, graph_object_id=name)
    written = optuna_dashboard.get_note(study)
    if not written or written.startswith(_NOTE):
        optuna_dashboard.save_note(study, note(seen))
    return list(drawn)


def publisher(every: int = 10) -> Callable[[OptunaStudy, FrozenTrial], None]:
    """A callback for `study.optimize` that publishes every so many trials."""

    def after(study: OptunaStudy, trial: FrozenTrial) -> None:
        if (trial.number + 1) % every == 0:
            publish(study)

    return after


def note(seen: Insight) -> str:
    """The study in a few lines of Markdown."""
    count = {s: sum(t.state == s for t in seen.trials) for s in ("success", "crash", "stopped", "pending")}
    stopped = f"{count['stopped']} stopped before they could crash, " if count["stopped"] else ""
    lines = [
        _NOTE,
        "### Crashes",
        f"{count['success']} successes, {count['crash']} crashes, {stopped}{count['pending']} pending.",
    ]
    for level in levels(seen):
        if level.value is not None:
            lines.append(f"- **{level.name}** crashes {level.side} a threshold: {level.words}")
    safest = seen.recommend()
    if seen.snapshot.study.objectives:
        lines += [f"- front: trial {t.number}, {cost_words(t.cost)}, at {_said(t.params)}" for t in seen.front]
        lines.append(f"- hypervolume: {seen.hypervolume():.6g}, up to {_said(seen.view.reference or {})}")
    elif (best := seen.best) is not None:
        figure = "" if best.cost is None else f", {number_of(best):.6g}"
        lines.append(f"- best: trial {best.number}{figure}, at {_said(best.params)}")
    if safest is not None:
        words = f"{cost_words(safest.cost, '')} expected, P(safe) {safest.p_safe:.2f}, at {_said(safest.params)}"
        lines.append(f"- recommended: {words.strip()}")
    reasons = sorted({t.reason for t in seen.trials if t.state == "crash" and t.reason})
    lines += [f"- reason: {reason}" for reason in reasons[:10]]
    return "\n\n".join(lines[:3]) + "\n\n" + "\n".join(lines[3:])


def _drawn(level: Readings) -> tuple[float, float]:
    """The interval, an open end as far beyond the measurements as those reach."""
    assert level.interval is not None
    assert level.value is not None
    values = [t.measured[level.name] for t in level.trials] + [level.value]
    reach = max(values) - min(values) or abs(level.value) or 1.0
    low, high = level.interval
    return max(low, min(values) - reach), min(high, max(values) + reach)


def draw_level(level: Readings) -> go.Figure:
    """Measurements by trial, and the learnt threshold with its interval."""
    figure = _figure(f"{level.name}: learnt crash threshold", "trial", level.name)
    if level.interval is not None:
        figure.add_hrect(*_drawn(level), fillcolor=_BAND, opacity=0.2, line_width=0)
    if level.value is not None:
        words = f"crashes {level.side} {level.value:.4g}"
        figure.add_hline(level.value, line={"color": _LEVEL, "dash": "dash"}, annotation_text=words)
    for state, color, symbol in _MARKS:
        trials = [t for t in level.trials if t.state == state]
        x, y = [t.number for t in trials], [t.measured[level.name] for t in trials]
        figure.add_scatter(x=x, y=y, mode="markers", name=state, marker={"color": color, "symbol": symbol})
    return figure


def draw_safe_map(safe: SafeMap) -> go.Figure:
    """P(safe) as a map, or a curve, with the trials on it."""
    if len(safe.names) == 1:
        figure = _figure(safe.title, safe.names[0], "P(safe)")
        x = [_shown(value) for value in safe.values[0]]
        figure.add_scatter(x=x, y=safe.p_safe[0].tolist(), name="P(safe)", line={"color": _MODEL})
        figure.update_yaxes(range=[-0.05, 1.05])
    else:
        figure = _figure(safe.title, *safe.names)
        scale = {
            "zmin": 0.0,
            "zmax": 1.0,
            "colorscale": [[0, "white"], [1, _MODEL]],
            "colorbar": {"title": {"text": "P(safe)"}},
        }
        x, y = ([_shown(value) for value in values] for values in safe.values)
        figure.add_heatmap(x=x, y=y, z=safe.p_safe.tolist(), **scale)
        figure.update_yaxes(type="log" if safe.log[1] else None)
    figure.update_xaxes(type="log" if safe.log[0] else None)
    for state, color, symbol in _MARKS:
        trials = [t for t in safe.trials if t.state == state and all(name in t.params for name in safe.names)]
        x = [_shown(t.params[safe.names[0]]) for t in trials]
        y = [_shown(t.params[safe.names[1]]) for t in trials] if len(safe.names) == 2 else [state == "success"] * len(x)
        words = [f"trial {t.number} {t.reason}" for t in trials]
        marker = {"color": color, "symbol": symbol, "line": {"color": "white", "width": 1}}
        figure.add_scatter(x=x, y=y, mode="markers", name=state, text=words, marker=marker)
    return figure


def draw_blames(seen: BlameBars) -> go.Figure:
    """Bars for every crash: the probability that each constraint was violated."""
    figure = _figure("Blame: P(constraint violated | crash)", "trial that crashed", "probability")
    for i, (name, shares) in enumerate(seen.shares.items()):
        color = _BLAMED[i % len(_BLAMED)]
        figure.add_bar(x=[str(n) for n in seen.numbers], y=shares, name=name, text=seen.reasons, marker_color=color)
    figure.update_layout(barmode="group", xaxis_type="category")
    return figure


def draw_calibration(known: CrashCount) -> go.Figure:
    """Cumulative crashes, and those that P(safe) predicted."""
    figure = _figure("Crashes: announced by P(safe), and made", "trial", "crashes so far")
    figure.add_scatter(x=known.numbers, y=known.predicted, name="announced", line={"color": _MODEL})
    figure.add_scatter(x=known.numbers, y=known.crashed, name="made", line={"color": _CRASH, "shape": "hv"})
    return figure


def _figure(title: str, x: str, y: str) -> go.Figure:
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1.0, "xanchor": "right"}
    axes = {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}
    return go.Figure(layout=go.Layout(title={"text": title}, legend=legend, template="none", showlegend=True, **axes))


def _grid(seen: Insight, name: str) -> list[Any]:
    """Values of a parameter; all of them if they are few."""
    p, axis = seen.snapshot.axes.space.parameters[name], seen.snapshot.axes.axis(name)
    if isinstance(p, Choice):
        inward: Sequence[Any] = p.options
    elif isinstance(p, Int) and p.high - p.low < _GRID:
        inward = range(p.low, p.high + 1)
    else:
        inward = [p.decode(np.array([u])) for u in np.linspace(0.0, 1.0, _GRID)]
    return [axis.outward(v) for v in inward]


def _shown(value: Any) -> Any:
    """A value for plotly: numbers as they are, choices as text."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _said(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {v:.5g}" if isinstance(v, float) else f"{name} {v}" for name, v in params.items())
