"""One run of an experiment: its outcome, or why there is none.

May import strategies and below.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from crashbo.optimizer.records import Crash, Fault, Outcome, Void
from crashbo.search.space import is_number

Experiment = Callable[[dict[str, Any]], Any]
Word = Literal["crash", "void", "raise"]


class NoCost(TypeError):
    """An experiment answered, but not with a finite cost."""

    def __init__(self, answer: str) -> None:
        super().__init__(
            f"experiment must return an Outcome or a finite cost, or raise Crash or Void; got {answer}. "
            "A trial without a cost is a Crash or a Void."
        )
        self.answer = answer

    def __reduce__(self) -> tuple[Any, ...]:
        return NoCost, (self.answer,)


@dataclass(frozen=True)
class Failure:
    """Why a trial has no outcome."""

    kind: Literal["timeout", "death", "error", "nan"]
    reason: str
    error: Exception | None = None  # what to raise, where that is asked for


@dataclass(frozen=True)
class Rules:
    """How each way to fail counts."""

    on_timeout: Fault = "crash"
    on_death: Fault = "crash"
    on_error: Word = "raise"
    on_nan: Word = "raise"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            words = ("crash", "void") if name in ("on_timeout", "on_death") else ("crash", "void", "raise")
            if value not in words:
                listed = " or ".join(", ".join(map(repr, words)).rsplit(", ", 1))
                raise ValueError(f"{name} must be {listed}; got {value!r}. Choose one.")

    def word(self, failure: Failure) -> Word:
        """What a failure counts as."""
        word: Word = getattr(self, f"on_{failure.kind}")
        return word

    def outcome(self, failure: Failure) -> Crash | Void:
        """What a failure is told as."""
        word = self.word(failure)
        if word == "raise":  # the user's bug: it says nothing of x, and is theirs to mend
            return Void(f"the experiment failed: {failure.error!r}")
        return (Crash if word == "crash" else Void)(failure.reason)


def outcome_of(experiment: Experiment, params: Mapping[str, Any]) -> Outcome | Crash | Void | NoCost:
    """Run the experiment; a crash or a void is an outcome, too."""
    try:
        answer = experiment(dict(params))
    except (Crash, Void) as outcome:
        return outcome
    if is_number(answer):
        return Outcome(float(answer))
    if isinstance(answer, Outcome) and is_number(answer.cost):
        return answer
    return NoCost(repr(answer))
