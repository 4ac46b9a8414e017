"""A finding, and how it is put in words.

May import strategies and below.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

_NAMED = 6  # numbers of trials that a sentence names


@dataclass(frozen=True)
class Finding:
    """Something in a study's data that speaks against its model, or advice.

    Attributes:
        kind: which test found it, see docs/check.md.
        words: what was found, in a sentence.
        trials: numbers of the trials that it is about.
        remedy: what to do, in a sentence.
        advice: whether the model may well be right: then it is about what to do next.
        strength: nats of evidence beyond those that make it a finding. Findings are in the order of it.
    """

    kind: str
    words: str
    trials: tuple[int, ...]
    remedy: str
    advice: bool = False
    strength: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        return f"{self.words} {self.remedy}"


def named(numbers: Sequence[int]) -> str:
    """Trials by their numbers, a few of them: "trials 3, 7 and 12", "trials 1, 2, 5, 6, ... and 40"."""
    shown = [str(n) for n in numbers]
    if len(shown) > _NAMED:
        shown = [*shown[: _NAMED - 2], "...", shown[-1]]
    return f"{'trial' if len(shown) == 1 else 'trials'} {listed(shown)}"


def listed(words: Sequence[str]) -> str:
    """Words as people list them: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def amount(value: float, unit: str = "") -> str:
    """A number with its unit."""
    return f"{value:.4g} {unit}".rstrip() if math.isfinite(value) else "unknown"
