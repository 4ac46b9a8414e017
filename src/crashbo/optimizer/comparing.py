"""Comparisons of trials: what may be said of which two, and what counts of it.

May import strategies and below.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models.hidden_cost import Comparisons
from crashbo.optimizer.records import Comparison, Trial

Array = NDArray[np.float64]

_WHY = {
    "crash": "A crash is not worse than anything: it tells nothing of the cost.",
    "stopped": "It was stopped before anybody could judge it.",
    "void": "A void trial tells nothing of its setting.",
    "pending": "Tell it first, with success=True if it has no cost.",
}


class Worth(NamedTuple):
    """What is known of the hidden cost at a setting, or at several: lower is better where the study minimises."""

    mean: Any
    std: Any


@dataclass(frozen=True)
class Ranked:
    """A trial that was compared or has a cost, and what is known of its hidden cost."""

    number: int
    mean: float
    std: float
    beat: tuple[int, ...]  # trials that it was found better than, once per verdict
    lost_to: tuple[int, ...]
    tied_with: tuple[int, ...]


def compared(trials: Mapping[int, Trial], better: Any, worse: Any, tie: Any) -> Comparison:
    """A comparison, if it can be one; else one sentence on why not."""
    if not isinstance(tie, bool | np.bool_):
        raise ValueError(f"tie must be True or False; got {tie!r}. True says that both were about the same.")
    numbers = [_number(trials, name, trial) for name, trial in (("better", better), ("worse", worse))]
    if numbers[0] == numbers[1]:
        raise ValueError(f"better and worse must be two trials; got trial {numbers[0]} twice. Name another.")
    for number in numbers:
        state = trials[number].state
        if state != "success":
            raise ValueError(f"trial {number} must be a success to be compared; it is {_words(state)}. {_WHY[state]}")
    return Comparison(numbers[0], numbers[1], bool(tie))


def of_pair(comparisons: Sequence[Comparison], one: int, other: int) -> list[int]:
    """Where these two were compared, in order."""
    return [i for i, c in enumerate(comparisons) if {c.better, c.worse} == {one, other}]


def _number(trials: Mapping[int, Trial], name: str, trial: Any) -> int:
    number = trial.number if isinstance(trial, Trial) else trial
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or int(number) not in trials:
        raise ValueError(f"{name} must be a trial of this study, or its number; got {trial!r}. See `trials`.")
    return int(number)


def _words(state: str) -> str:
    return f"a {state}" if state in ("crash", "void") else state


def arrays(comparisons: Iterable[Comparison], numbers: Sequence[int], successes: Iterable[int]) -> Comparisons | None:
    """Comparisons by rows of the told trials, for the models; those of trials that are no successes by now wait."""
    comparisons = tuple(comparisons)
    if not comparisons:
        return None
    row, good = {number: i for i, number in enumerate(numbers)}, set(successes)
    kept = [c for c in comparisons if c.better in good and c.worse in good]
    if not kept:
        return None
    pairs = np.array([[row[c.better], row[c.worse]] for c in kept], dtype=np.intp)
    return Comparisons(pairs, np.array([c.tie for c in kept], dtype=bool))


def winner(numbers: Sequence[int], judged: Sequence[int], worth: Array) -> int | None:
    """The best of the successes `numbers`, of which the `judged` have this worth; before any was, the first of them."""
    if len(judged):
        return int(judged[int(np.argmin(worth))])
    return numbers[0] if numbers else None


def ranking(judged: Sequence[int], mean: Array, std: Array, comparisons: Sequence[Comparison]) -> list[Ranked]:
    """The judged trials, those of least mean first, and who beat whom."""
    beat: dict[int, list[int]] = {number: [] for number in judged}
    lost: dict[int, list[int]] = {number: [] for number in judged}
    tied: dict[int, list[int]] = {number: [] for number in judged}
    for c in comparisons:
        if c.better in beat and c.worse in beat:
            (tied if c.tie else beat)[c.better].append(c.worse)
            (tied if c.tie else lost)[c.worse].append(c.better)
    found = [
        Ranked(n, float(m), float(s), tuple(beat[n]), tuple(lost[n]), tuple(tied[n]))
        for n, m, s in zip(judged, mean, std, strict=True)
    ]
    return sorted(found, key=lambda r: r.mean)
