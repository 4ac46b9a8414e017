"""The data of a report, gathered before anything is drawn or written.

May import every other layer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from crashbo.app.bench import Bench, Definition, table
from crashbo.app.bench.overview import Level, Overview, Slice, history_of
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.comparing import Ranked
from crashbo.optimizer.records import Trial

_SLICES = 3  # pairs of parameters that are drawn
_DEARER = 1.5  # power of the number of trials by which the models take longer, about


@dataclass(frozen=True)
class Gathered:
    """The data of a report."""

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
    more: list[dict[str, Any]] = field(default_factory=list)  # per trial: id, who told it, when, how long it took
    findings: list[Finding] = field(default_factory=list)
    front: dict[str, Any] | None = None  # of several goals, see Overview
    ranking: list[Ranked] = field(default_factory=list)  # where trials were compared, the best first

    @property
    def leaders(self) -> list[int]:
        """Numbers of the best trial, or of those on the front."""
        if self.front is not None:
            return list(self.front["trials"])
        return [] if self.best is None else [self.best.number]


def gather(bench: Bench, progress: Callable[[float], None] = lambda share: None) -> Gathered:
    """Gather everything about a study; `progress` is called with the fraction that is done."""
    definition, entries, study = bench.definition, bench.entries(), bench.id
    trials, more = [e.trial for e in entries], [table.more_of(e, study) for e in entries]
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    if not any(t.counts for t in trials):
        return Gathered(definition, trials, None, None, {}, {}, {}, {}, [], when, more)
    seen, best = Overview(bench.insight()), bench.best()
    points = history_of(seen.told, per_doubling=1)
    work = _Progress(progress, [count**_DEARER for count in points] + [len(seen.told) ** _DEARER] * 2)
    influence, recommended = seen.influence(), seen.recommended()
    at = recommended["params"] if recommended else best.params if best else seen.insight.trials[-1].params
    work.step()
    history: dict[str, list[Level]] = {}
    for count in points[:-1]:
        _add(history, seen.before(count).levels(limits=False))
        work.step()
    levels = seen.levels()
    _add(history, levels)
    work.step()
    findings = seen.check()
    work.step()
    return Gathered(
        definition=definition,
        trials=trials,
        best=best,
        recommended=recommended,
        levels=levels,
        history=history,
        influence=influence,
        blame=seen.blame(),
        slices=_slices(seen, influence, at),
        when=when,
        more=more,
        findings=findings,
        front=seen.front(),
        ranking=seen.ranking(),
    )


def _add(history: dict[str, list[Level]], levels: dict[str, Level]) -> None:
    for name, level in levels.items():
        history.setdefault(name, []).append(level)


class _Progress:
    """The fraction of the work that is done, by what each step is expected to take."""

    def __init__(self, progress: Callable[[float], None], expected: list[float]) -> None:
        self._progress, self._left, self._total = progress, list(expected), sum(expected)

    def step(self) -> None:
        """One more step is done."""
        self._left.pop(0)
        self._progress(1.0 - sum(self._left) / self._total)


def _slices(seen: Overview, influence: dict[str, dict[str, float]], at: dict[str, Any]) -> list[Slice]:
    """Through one setting, over the pairs of parameters that matter most."""
    weight = {name: max(of[name] for of in influence.values()) for name in seen.parameters}
    names = sorted(weight, key=lambda name: -weight[name])
    if len(names) == 1:
        return [seen.slice(names, at, 81)]
    pairs = sorted(combinations(names, 2), key=lambda pair: -sum(weight[name] for name in pair))
    return [seen.slice(pair, at) for pair in pairs[:_SLICES]]
