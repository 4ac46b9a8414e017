"""One run of an experiment: its outcome, or why there is none.

May import strategies and below.
"""

import inspect
import math
import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from crashbo import processes
from crashbo.optimizer.guard import Guard
from crashbo.optimizer.records import Crash, Fault, Outcome, Stopped, Void
from crashbo.search.space import is_number

Experiment = Callable[..., Any]  # of the params; and of a guard, where it has a parameter of that name
Word = Literal["crash", "void", "raise"]
_WORDS = 200  # characters of an error that are kept as a reason


@dataclass(frozen=True)
class Failure:
    """Why a trial has no outcome."""

    kind: Literal["timeout", "death", "error", "nan", "executor"]  # the last is no fault of the experiment
    reason: str
    error: BaseException | None = None  # what to raise, where that is asked for
    reached: Mapping[str, float] = field(default_factory=dict)  # the farthest readings of its guard before it
    rises: Mapping[str, float] = field(default_factory=dict)  # the largest from one reading to the next

    def sendable(self) -> "Failure":
        """The same for another process, where the traceback would be lost, and whatever else cannot be sent."""
        if self.error is None:
            return self
        told = "".join(traceback.format_exception(self.error))
        try:
            self.error.add_note(f"In another process: {told}")
            pickle.loads(pickle.dumps(self))
        except Exception:
            return replace(self, error=RuntimeError(f"{self.error!r}, in another process: {told}"))
        return self


Ending = Outcome | Crash | Stopped | Void | Failure


@dataclass(frozen=True)
class Job:
    """What an experiment is called with."""

    params: Mapping[str, Any]
    guard: Guard | None = None  # for an experiment that takes one

    def of(self, experiment: Experiment) -> Any:
        """Call it."""
        params = dict(self.params)
        return experiment(params) if self.guard is None else experiment(params, guard=self.guard)

    @property
    def watched(self) -> tuple[dict[str, float], dict[str, float]]:
        """The farthest readings of its guard by now, and their largest rises."""
        return ({}, {}) if self.guard is None else (self.guard.reached, self.guard.rises)


def takes_guard(experiment: Experiment) -> bool:
    """Whether an experiment has a parameter named guard."""
    try:
        return "guard" in inspect.signature(experiment).parameters
    except (TypeError, ValueError):  # of a built-in
        return False


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
        word: Word = "raise" if failure.kind == "executor" else getattr(self, f"on_{failure.kind}")
        return word

    def outcome(self, failure: Failure) -> Crash | Void:
        """What a failure is told as."""
        word = self.word(failure)
        if word == "raise":  # the user's bug: it says nothing of x, and is theirs to mend
            return Void(f"the experiment failed: {failure.error!r}")
        if word == "crash":
            return Crash(failure.reason, reached=failure.reached, rises=failure.rises)
        return Void(failure.reason)


def outcome_of(experiment: Experiment, job: Job) -> Ending:
    """Run the experiment; a crash, a stop or a void is an outcome, too."""
    watched = job.watched
    try:
        answer = job.of(experiment)
    except Crash as crash:
        reached, rises = watched
        crash.reached = {**reached, **crash.reached}
        own = {name: rise for name, rise in rises.items() if crash.reached[name] == reached[name]}
        crash.rises = {**own, **crash.rises}
        return crash
    except (Stopped, Void) as outcome:
        return outcome
    except (Exception, SystemExit) as error:
        return Failure("error", brief(f"{type(error).__name__}: {error}"), error, *watched)
    cost = _scalars(answer.cost if isinstance(answer, Outcome) else answer)
    if isinstance(answer, Outcome):
        answer = replace(answer, cost=cost)
    if is_number(cost):
        return answer if isinstance(answer, Outcome) else Outcome(float(cost))
    goals = [value for value in cost.values() if value is not None] if isinstance(cost, Mapping) else []
    if goals and all(map(is_number, goals)):
        return answer if isinstance(answer, Outcome) else Outcome(cost)
    refusal = TypeError(
        f"experiment must return an Outcome or a finite cost, or raise Crash or Void; got {answer!r}. "
        "A trial without a cost is a Crash or a Void."
    )
    absent = _is_absent(cost) or (
        isinstance(cost, Mapping) and all(is_number(v) or _is_absent(v) for v in cost.values())
    )
    return Failure("nan" if absent else "error", brief(f"no finite cost: {answer!r}"), refusal, *watched)


def _is_absent(cost: Any) -> bool:
    return cost is None or (isinstance(cost, float) and not math.isfinite(cost))


def _scalars(answer: Any) -> Any:
    """A number, or one per goal."""
    return {name: _scalar(value) for name, value in answer.items()} if isinstance(answer, Mapping) else _scalar(answer)


def _scalar(answer: Any) -> Any:
    """A number, where it comes as an array or a tensor without dimensions."""
    return answer.item() if getattr(answer, "shape", None) == () and hasattr(answer, "item") else answer


def sent_outcome_of(experiment: Experiment, job: Job) -> Ending:
    """Run the experiment in a process of its own, from which its outcome has to be sent."""
    outcome = outcome_of(experiment, job)
    if not isinstance(outcome, Failure):
        return outcome
    if isinstance(outcome.error, SystemExit):
        code = outcome.error.code
        why = processes.how_it_ended(code if isinstance(code, int) else int(code is not None))
        return Failure("death", why, reached=outcome.reached, rises=outcome.rises)
    if isinstance(outcome.error, MemoryError):
        return Failure("death", f"out of memory: {outcome.error!r}", reached=outcome.reached, rises=outcome.rises)
    return outcome.sendable()


def brief(words: str) -> str:
    """The first line, and not too much of it."""
    first = words.partition("\n")[0]
    return first if len(first) <= _WORDS else first[: _WORDS - 1] + "…"
