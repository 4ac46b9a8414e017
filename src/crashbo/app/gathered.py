"""The data of a report, gathered before anything is drawn or written.

May import every other layer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from crashbo.app.overview import GRID, Level, Overview, Slice, history_of
from crashbo.app.subject import Subject, Titled
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.comparing import Ranked
from crashbo.optimizer.records import Trial

ALONG_ONE = 81  # points of the only parameter
_SLICES = 3  # pairs of parameters that are drawn
_DEARER = 1.5  # power of the number of trials by which the models take longer, about


@dataclass(frozen=True)
class Gathered:
    """The data of a report."""

    titled: Titled
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


def gather(subject: Subject, progress: Callable[[float], None] = lambda share: None) -> Gathered:
    """Gather everything about a study; `progress` is called with the fraction that is done."""
    titled, trials, more = subject.titled, subject.trials, [dict(of) for of in subject.more]
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    if not any(t.counts for t in trials):
        return Gathered(titled, trials, None, None, {}, {}, {}, {}, [], when, more)
    seen, best = subject.overview, subject.best
    points = history_of(seen.told, per_doubling=1)
    work = _Progress(progress, [count**_DEARER for count in points] + [len(seen.told) ** _DEARER] * 2)
    influence, recommended = seen.influence(), subject.recommended
    at = at_best(subject)
    work.step()
    history = history_in(seen, work.step)
    findings = seen.check()
    work.step()
    return Gathered(
        titled=titled,
        trials=trials,
        best=best,
        recommended=recommended,
        levels={name: levels[-1] for name, levels in history.items()},
        history=history,
        influence=influence,
        blame=seen.blame(),
        slices=[seen.slice(axes, at, size) for axes, size in axes_of(seen, influence)],
        when=when,
        more=more,
        findings=findings,
        front=seen.front(),
        ranking=seen.ranking(),
    )


def history_in(seen: Overview[Any], step: Callable[[], None] = lambda: None) -> dict[str, list[Level]]:
    """The thresholds as they were learnt, up to now; `step` is called after each fit."""
    history: dict[str, list[Level]] = {}
    for count in history_of(seen.told, per_doubling=1)[:-1]:
        _add(history, seen.before(count).levels(limits=False))
        step()
    _add(history, seen.levels())
    step()
    return history


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


def at_best(subject: Subject) -> dict[str, Any]:
    """The setting through which slices go: what is recommended, else the best trial, else the last."""
    recommended, best = subject.recommended, subject.best
    return dict(recommended["params"] if recommended else best.params if best else subject.overview.outward_last())


def axes_of(seen: Overview[Any], influence: dict[str, dict[str, float]]) -> list[tuple[Sequence[str], int]]:
    """The pairs of parameters that matter most, or the only one; and how many points to draw along an axis."""
    free = [name for name, p in seen.parameters.items() if p.count > 1] or list(seen.parameters)
    weight = {name: max(of[name] for of in influence.values()) for name in free}
    names = sorted(weight, key=lambda name: -weight[name])
    if len(names) == 1:
        return [(names, ALONG_ONE)]
    pairs = sorted(combinations(names, 2), key=lambda pair: -sum(weight[name] for name in pair))
    return [(pair, GRID) for pair in pairs[:_SLICES]]
