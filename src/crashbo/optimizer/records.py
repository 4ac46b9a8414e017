"""What users say of a machine and of its trials: constraints, outcomes, crashes, voids, stops, trials.

May import strategies and below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from crashbo.search.space import is_number

Side = Literal["above", "below"]
Fault = Literal["crash", "void"]  # what may count as a crash, or as nothing
State = Literal["pending", "success", "crash", "void", "stopped"]
Censored = bool | str | Sequence[str] | None
Cost = float | Mapping[str, float]  # of a study with several objectives, by goal


@dataclass(frozen=True)
class Constraint:
    """A measured quantity that makes the machine crash beyond a threshold.

    Attributes:
        name: as in `measured`.
        threshold: None (to be learnt), a number (known) or a pair (an interval for it).
        side: whether the machine crashes "above" or "below" the threshold.
        noise: standard deviation of the measurement's noise where known.
        censored: whether what a crash still delivers of it is cut off, so that the true value lies at the reading or
            beyond it, towards the crash; a single trial's reading is marked so in `tell`, Crash or Outcome.
    """

    name: str
    threshold: float | tuple[float, float] | None = None
    side: Side = "above"
    noise: float | None = None
    censored: bool = False

    measured = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"constraint must have a name; got {self.name!r}. Name it as in `measured`.")
        if self.side not in ("above", "below"):
            raise ValueError(f"side must be 'above' or 'below'; got {self.side!r}. Name the side that crashes.")
        if self.noise is not None and not (is_number(self.noise) and self.noise >= 0):
            raise ValueError(f"noise must be a number >= 0 or None; got {self.noise!r}. None learns it.")
        c = self.threshold
        pair = isinstance(c, tuple | list) and len(c) == 2 and all(map(is_number, c)) and c[0] < c[1]
        if pair:
            object.__setattr__(self, "threshold", (float(c[0]), float(c[1])))  # type: ignore[index]
        elif not (c is None or is_number(c)):
            raise ValueError(f"threshold must be None, a number or a pair (low, high); got {c!r}. None learns it.")

    @property
    def sign(self) -> float:
        """Inside, every machine crashes above: a constraint that crashes below is turned over."""
        return 1.0 if self.side == "above" else -1.0

    @property
    def given(self) -> float | tuple[float, float] | None:
        """The threshold, as far as it is known, of the constraint so turned."""
        if isinstance(self.threshold, tuple):
            low, high = sorted(self.sign * end for end in self.threshold)
            return low, high
        return None if self.threshold is None else self.sign * float(self.threshold)


@dataclass(frozen=True)
class Unmeasured:
    """A cause of crashes that nobody measures: only labels inform it."""

    name: str = "other"

    measured = False
    threshold = given = noise = None
    censored = False
    sign = 1.0


AnyConstraint = Constraint | Unmeasured


@dataclass(frozen=True)
class Outcome:
    """A success.

    Attributes:
        cost: of several goals, each by its name.
        measured: constraint name to reading.
        censored: names of what was cut off, True for all of it.
        ran: parameters that ran otherwise than they were proposed.
        context: what was met, where it differed.
    """

    cost: Any
    measured: Mapping[str, float] = field(default_factory=dict)
    censored: Censored = ()
    ran: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)


class Crash(Exception):
    """The trial crashed because of its parameters.

    Attributes:
        reason: text.
        blame: names of the constraints that were violated, where that is known.
        measured: what the machine still delivered.
        censored: names of what was cut off, True for all of it: the true value lies at the reading or beyond it,
            towards the crash. None of it by default.
        reached: the farthest readings, towards the crash, that came before it: the machine survived those.
        rises: by how much these rose, towards the crash, from one reading to the next, at the most.
        ran: parameters that ran otherwise than they were proposed.
        context: what was met, where it differed.
    """

    def __init__(
        self,
        reason: str = "",
        blame: str | Sequence[str] | None = None,
        measured: Mapping[str, float] | None = None,
        censored: Censored = (),
        reached: Mapping[str, float] | None = None,
        rises: Mapping[str, float] | None = None,
        ran: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = str(reason)
        self.blame = (blame,) if isinstance(blame, str) else tuple(blame or ())
        self.measured = dict(measured or {})
        self.censored = censored
        self.reached = dict(reached or {})
        self.rises = dict(rises or {})
        self.ran = dict(ran or {})
        self.context = dict(context or {})

    def __reduce__(self) -> tuple[Any, ...]:
        seen = self.measured, self.censored, self.reached, self.rises
        return Crash, (self.reason, self.blame, *seen, self.ran, self.context)


class Void(Exception):
    """The trial failed for a reason that says nothing of its parameters."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = str(reason)

    def __reduce__(self) -> tuple[Any, ...]:
        return Void, (self.reason,)


class Stopped(Exception):
    """The trial was stopped before it could crash, as a guard does.

    Attributes:
        measured: constraint name to the farthest reading, towards the crash, that it had reached by then.
        reason: text.
    """

    def __init__(self, measured: Mapping[str, float], reason: str = "") -> None:
        super().__init__(reason)
        self.measured = dict(measured)
        self.reason = str(reason)

    def __reduce__(self) -> tuple[Any, ...]:
        return Stopped, (self.measured, self.reason)


@dataclass(frozen=True)
class Trial:
    """One x that was handed out, and what came of it."""

    number: int
    params: dict[str, Any]
    state: State = "pending"
    p_safe: float | None = None  # the study's P(safe) when it was asked or told; None while no model was fitted
    cost: Any = None  # a number; of a study with several objectives a dict, goal to number; None but of a success
    measured: dict[str, float] = field(default_factory=dict)
    reason: str = ""  # why it crashed or is void; of a success, the note that was told with it
    blame: tuple[str, ...] = ()  # as told, not as inferred
    censored: tuple[str, ...] = ()  # what of `measured` was told to be cut off
    origin: str = "search"  # or "start", "design", "told", "confirm"
    admissible: bool = True  # False where the risk asked for more safety than any x has
    repeats: int | None = None  # of a repeat, which confirmation it belongs to
    p_model: float | None = None  # of a proposal of the search, P(safe) before the correction
    reached: dict[str, float] = field(default_factory=dict)  # of a crash, the farthest readings that came before it
    rises: dict[str, float] = field(default_factory=dict)  # of these, the largest from one reading to the next
    as_run: dict[str, Any] = field(default_factory=dict)  # the params that were really run, where that was told
    against: int | None = None  # where trials are compared, the one to compare it with: the winner when it was asked

    @property
    def ran(self) -> dict[str, Any]:
        """What was run: the params, unless it was told that others were; with the context as it was met."""
        return self.as_run or self.params

    @property
    def counts(self) -> bool:
        """Whether something was learnt from it: it is neither pending nor void."""
        return self.state in ("success", "crash", "stopped")


def cost_words(cost: Cost | None, label: str = "cost") -> str:
    """A cost, or every goal by its name."""
    if isinstance(cost, Mapping):
        return ", ".join(f"{name} {value:g}" for name, value in cost.items())
    return f"{label} none" if cost is None else f"{label} {cost:g}"


@dataclass(frozen=True)
class Comparison:
    """Which of two trials, by their numbers, was better; of a tie both were about the same."""

    better: int
    worse: int
    tie: bool = False


def constraints_of(
    constraints: Sequence[str | AnyConstraint] | str | AnyConstraint | None,
) -> tuple[AnyConstraint, ...]:
    """Constraints from names and records; none at all is one cause that nobody measures."""
    if constraints is None:
        constraints = ()
    if isinstance(constraints, str | Constraint | Unmeasured):
        constraints = (constraints,)
    if isinstance(constraints, Mapping):
        name, value = next(iter(constraints.items()), ("current", 5.0))
        raise ValueError(
            f"constraints must be a list of names, Constraint or Unmeasured; got {constraints!r}. "
            f"A threshold is written Constraint({name!r}, threshold={value!r})."
        )
    out = tuple(Constraint(c) if isinstance(c, str) else c for c in constraints)
    for c in out:
        if not isinstance(c, Constraint | Unmeasured):
            raise ValueError(f"constraints must be names, Constraint or Unmeasured; got {c!r}. Name each one.")
    names = [c.name for c in out]
    if len(set(names)) < len(names):
        raise ValueError(f"constraints must have different names; got {names}. Rename one.")
    return out or (Unmeasured("crash"),)
