"""All that a report of a study shows, gathered before anything is drawn or written.

May import every other layer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from crashbo.app.bench import Bench, Definition
from crashbo.app.bench.overview import Level, Overview, Slice, history_points
from crashbo.optimizer.records import Trial

_SLICES = 3  # pairs of parameters that are drawn


@dataclass(frozen=True)
class Gathered:
    """All that a report shows."""

    definition: Definition
    trials: list[Trial]
    best: Trial | None
    recommended: dict[str, Any] | None
    levels: dict[str, Level]
    history: dict[str, list[Level]]
    influence: dict[str, dict[str, float]]
    blame: dict[int, dict[str, float]]
    slices: list[Slice]
    when: str


def gather(bench: Bench, progress: Callable[[float], None] = lambda share: None) -> Gathered:
    """Everything about a study; `progress` hears the share that is done."""
    definition, trials = bench.definition, bench.trials
    told = any(t.counts for t in trials)
    seen = Overview(bench.insight()) if told else None
    history: dict[str, list[Level]] = {}
    points = history_points(len(seen.told)) if seen else []
    for i, count in enumerate(points):
        for name, level in seen.before(count).levels().items():  # type: ignore[union-attr]
            history.setdefault(name, []).append(level)
        progress((i + 1) / (len(points) + 1))
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    if seen is None:
        return Gathered(definition, trials, None, None, {}, {}, {}, {}, [], when)
    influence, best = seen.influence(), bench.best()
    return Gathered(
        definition=definition,
        trials=trials,
        best=best,
        recommended=seen.recommended(),
        levels=seen.levels(),
        history=history,
        influence=influence,
        blame=seen.blame(),
        slices=_slices(seen, influence, best),
        when=when,
    )


def _slices(seen: Overview, influence: dict[str, dict[str, float]], best: Trial | None) -> list[Slice]:
    """Through the recommended setting, over the pairs of parameters that matter most."""
    weight = {name: max(of[name] for of in influence.values()) for name in seen.parameters}
    names = sorted(weight, key=lambda name: -weight[name])
    recommended = seen.recommended()
    at = recommended["params"] if recommended else best.params if best else seen.insight.trials[-1].params
    if len(names) == 1:
        return [seen.slice(names, at, 81)]
    pairs = sorted(combinations(names, 2), key=lambda pair: -sum(weight[name] for name in pair))
    return [seen.slice(pair, at) for pair in pairs[:_SLICES]]
