"""Parameters of a space: what values they have, and their coordinates in the unit cube.

May import models and below. Longer than most files, since four kinds of parameters answer the same dozen questions.

A Float, an Int, an ordered Choice and a Context take one coordinate; any other Choice takes one per option (one-hot),
scaled so that two different options lie at distance one. One-hot keeps one kernel for everything, lets every option
have a lengthscale of its own (an option that behaves like the others drops out), and needs no order.

A parameter with `when` exists only beside certain values of another. Where it does not exist it has the coordinates
`absent`, in the middle of its values; whether it exists shows in the coordinates of the other.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
When = Mapping[str, Any]  # a value, or a list of values, per parameter

SLACK = 1e-9  # judgement: of the range; rounding in a value that the user writes down is no error
_HOT = math.sqrt(0.5)  # derived: two options lie at distance one
_MIDDLE = [0.5]  # derived: the point of [0, 1] that lies nearest to all others


@dataclass(frozen=True)
class Float:
    """A real parameter between low and high, fixed where they are equal.

    Attributes:
        low: the least value.
        high: the largest.
        log: whether it lies on a logarithmic scale.
        step: it takes low and whole steps above it, up to high; None takes any value.
        when: it exists only where other parameters have these values: a name to a value, or to a list of values.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: When | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        _check_ends(self, "Float")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        object.__setattr__(self, "when", checked_when(self.when))
        if self.step is not None:
            if not is_number(self.step) or self.step <= 0.0:
                raise ValueError(f"step must be a positive number; got {self.step!r}. Leave it out for any value.")
            if self.log:
                raise ValueError(f"step must be left out on a log scale; got {self.step!r}. List options instead.")
            object.__setattr__(self, "step", float(self.step))

    width = 1
    absent = _MIDDLE

    @property
    def continuous(self) -> bool:
        """Whether any value in range will do."""
        return self.step is None

    @property
    def count(self) -> float:
        """How many values it has."""
        if self.step is None:
            return math.inf if self.low < self.high else 1
        return math.floor((self.high - self.low) / self.step * (1.0 + SLACK)) + 1

    def encode(self, value: Any) -> list[float]:
        """The value's coordinate, in [0, 1] if it is in range."""
        return [_coordinate(self, value)]

    def decode(self, u: Array) -> float:
        """The value at a coordinate, or nearest to it."""
        value = _value(self, float(u[0]))
        return min(max(value, self.low), self.high) if self.step is None else self._stepped(self._steps_to(value))

    def snap(self, U: Array) -> Array:
        """The nearest coordinates that a value has."""
        if self.step is None:
            return np.clip(U, 0.0, 1.0)
        return np.array([self.encode(self.decode(u)) for u in U]).reshape(-1, 1)

    def even(self, U: Array) -> Array:
        """Coordinates of values that get equal shares, from coordinates spread evenly over [0, 1]."""
        if self.step is None:
            return U
        steps = np.minimum(np.floor(U * self.count), self.count - 1)
        return np.asarray(steps * self.step / max(self.high - self.low, self.step))

    def values(self) -> list[float]:
        """Every value, of a parameter with steps."""
        return [self._stepped(k) for k in range(int(self.count))]

    def neighbours(self, value: float) -> list[float]:
        """The values a step away, where there are steps."""
        k = self._steps_to(value) if self.step is not None else 0
        return [self._stepped(i) for i in (k - 1, k + 1) if self.step is not None and 0 <= i < self.count]

    def accepts(self, value: Any) -> bool:
        """Whether the value can be proposed: it lies in range, and on a step."""
        if not self.spans(value):
            return False
        return self.step is None or abs(self._stepped(self._steps_to(value)) - value) <= SLACK * self.step

    def spans(self, value: Any) -> bool:
        """Whether the value lies in range."""
        slack = SLACK * (self.high - self.low)
        return is_number(value) and self.low - slack <= value <= self.high + slack

    def reads(self, value: Any) -> bool:
        """Whether models can take the value, in range or not."""
        return is_number(value) and (value > 0 or not self.log)

    def plain(self, value: Any) -> float:
        """The value as a float: an integer 1 is 1.0."""
        return min(max(float(value), self.low), self.high) if self.spans(value) else float(value)

    def rule(self) -> str:
        """What is accepted, in words."""
        steps = "" if self.step is None else f" in steps of {self.step:g}"
        return f"be a number from {self.low:g} to {self.high:g}{steps}"

    def _steps_to(self, value: float) -> int:
        assert self.step is not None
        return int(min(max(round((value - self.low) / self.step), 0), self.count - 1))

    def _stepped(self, k: int) -> float:
        """As a person would write it: 0.1 and two steps of 0.1 are 0.3."""
        return float(Decimal(repr(self.low)) + k * Decimal(repr(self.step)))


@dataclass(frozen=True)
class Int:
    """A whole parameter between low and high, both included, fixed where they are equal; log and when as for Float."""

    low: int
    high: int
    log: bool = False
    when: When | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        _check_ends(self, "Int")
        if int(self.low) != self.low or int(self.high) != self.high:
            raise ValueError(f"Int must have whole ends; got ({self.low}, {self.high}). Use Float for real ones.")
        object.__setattr__(self, "when", checked_when(self.when))

    width = 1
    continuous = False
    absent = _MIDDLE

    @property
    def count(self) -> int:
        """How many values it has."""
        return self.high - self.low + 1

    def encode(self, value: Any) -> list[float]:
        """The value's coordinate in [0, 1]."""
        return [_coordinate(self, value)]

    def decode(self, u: Array) -> int:
        """The value nearest to a coordinate."""
        return int(min(max(round(_value(self, float(u[0]))), self.low), self.high))

    def snap(self, U: Array) -> Array:
        """The nearest coordinates that a value has."""
        return np.array([self.encode(self.decode(u)) for u in U]).reshape(-1, 1)

    def even(self, U: Array) -> Array:
        """Coordinates of values that get equal shares, the end ones too; on a log scale they do not."""
        if self.log:
            return U
        return np.asarray(np.minimum(np.floor(U * self.count), self.count - 1) / max(self.count - 1, 1))

    def values(self) -> Sequence[int]:
        """Every value."""
        return range(self.low, self.high + 1)

    def neighbours(self, value: int) -> list[int]:
        """The values beside it."""
        return [other for other in (value - 1, value + 1) if self.accepts(other)]

    def accepts(self, value: Any) -> bool:
        """Whether the value is whole and lies in range."""
        return is_number(value) and float(value).is_integer() and self.low <= value <= self.high

    spans = accepts

    def reads(self, value: Any) -> bool:
        """Whether models can take the value, whole and in range or not."""
        return is_number(value) and (value > 0 or not self.log)

    def plain(self, value: Any) -> int | float:
        """The value as an int, where it is whole."""
        return int(value) if float(value).is_integer() else float(value)

    def rule(self) -> str:
        """What is accepted, in words."""
        return f"be a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Choice:
    """One of several options.

    Attributes:
        options: what to choose from.
        ordered: whether their order means something: then neighbours are more alike than others.
        when: as for Float.
    """

    options: tuple[Any, ...]
    ordered: bool = False
    when: When | None = field(default=None, hash=False)

    def __init__(self, options: Sequence[Any], ordered: bool = False, when: When | None = None) -> None:
        if isinstance(options, str) or len(options) < 2 or len({repr(o) for o in options}) < len(options):
            raise ValueError(f"Choice must have two or more different options; got {options!r}. List them.")
        if not isinstance(ordered, bool):
            raise ValueError(f"ordered must be True or False; got {ordered!r}. List the options in their order.")
        object.__setattr__(self, "options", tuple(options))
        object.__setattr__(self, "ordered", ordered)
        object.__setattr__(self, "when", checked_when(when))

    continuous = False

    @property
    def width(self) -> int:
        """Coordinates that it takes."""
        return 1 if self.ordered else len(self.options)

    @property
    def absent(self) -> list[float]:
        """No option."""
        return _MIDDLE if self.ordered else [0.0] * len(self.options)

    @property
    def count(self) -> int:
        """How many options there are."""
        return len(self.options)

    def encode(self, value: Any) -> list[float]:
        """One-hot coordinates, or the place in the order."""
        at = self._index(value)
        if self.ordered:
            return [(at or 0) / (len(self.options) - 1)]
        return [_HOT if i == at else 0.0 for i in range(len(self.options))]

    def decode(self, u: Array) -> Any:
        """The option whose coordinate is largest, or whose place is nearest."""
        return self.options[self._place(float(u[0])) if self.ordered else int(np.argmax(u))]

    def snap(self, U: Array) -> Array:
        """The nearest coordinates that an option has."""
        if self.ordered:
            return np.array([[self._place(float(u[0])) / (self.count - 1)] for u in U]).reshape(-1, 1)
        out: Array = _HOT * np.eye(len(self.options))[np.argmax(U, axis=1)]
        return out

    def even(self, U: Array) -> Array:
        """Coordinates of options that get equal shares."""
        return (
            np.asarray(np.minimum(np.floor(U * self.count), self.count - 1) / (self.count - 1)) if self.ordered else U
        )

    def values(self) -> Sequence[Any]:
        """Every option."""
        return self.options

    def neighbours(self, value: Any) -> list[Any]:
        """All other options, or those beside it in their order."""
        at = self._index(value)
        return [o for i, o in enumerate(self.options) if i != at and not (self.ordered and abs(i - (at or 0)) > 1)]

    def accepts(self, value: Any) -> bool:
        """Whether the value is an option."""
        return self._index(value) is not None

    spans = reads = accepts

    def plain(self, value: Any) -> Any:
        """The option itself."""
        return self.options[self._index(value) or 0]

    def rule(self) -> str:
        """What is accepted, in words."""
        return f"be one of {', '.join(repr(o) for o in self.options)}"

    def _place(self, u: float) -> int:
        return min(max(round(u * (self.count - 1)), 0), self.count - 1)

    def _index(self, value: Any) -> int | None:
        # True == 1 in Python, but an option True is not the option 1.
        matches = (i for i, o in enumerate(self.options) if type(o) is type(value) and o == value)
        loose = (i for i, o in enumerate(self.options) if o == value)
        return next(matches, next(loose, None))


@dataclass(frozen=True)
class Context:
    """What is met and not chosen, such as the temperature of the day: given with `ask`, told as it was met.

    Attributes:
        low: the least value that is expected; one beyond is taken, too.
        high: the largest.
        log: whether it lies on a logarithmic scale.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_ends(self, "Context")
        if not self.low < self.high:
            raise ValueError(
                f"Context must have low < high; got ({self.low!r}, {self.high!r}). Leave out what is constant."
            )
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    width = 1
    continuous = True
    absent = _MIDDLE
    when = None
    count = math.inf

    def encode(self, value: Any) -> list[float]:
        """The value's coordinate, in [0, 1] if it was expected."""
        return [_coordinate(self, value)]

    def decode(self, u: Array) -> float:
        """The value at a coordinate."""
        return _value(self, float(u[0]))

    def snap(self, U: Array) -> Array:
        """The same: any value may be met."""
        return U

    even = snap

    def values(self) -> Sequence[float]:
        """None is countable."""
        return ()

    def neighbours(self, value: float) -> list[float]:
        """None: it cannot be chosen."""
        return []

    def accepts(self, value: Any) -> bool:
        """Whether the value can be met."""
        return is_number(value) and (value > 0 or not self.log)

    spans = reads = accepts

    def plain(self, value: Any) -> float:
        """The value as a float."""
        return float(value)

    def rule(self) -> str:
        """What is accepted, in words."""
        return "be a finite number above zero" if self.log else "be a finite number"


Parameter = Float | Int | Choice | Context


def parameter_of(name: Any, value: Any) -> Parameter:
    """What a user writes for a parameter; a pair is a real range."""
    if isinstance(value, Float | Int | Choice | Context):
        return value
    if isinstance(value, tuple | list) and len(value) == 2 and all(map(is_number, value)):
        return Float(*value)
    raise ValueError(
        f"space[{name!r}] must be (low, high), Float, Int, Choice or Context; got {value!r}. "
        "A pair is a real range; use Int for whole numbers and Choice for options."
    )


def checked_when(said: Any) -> dict[str, tuple[Any, ...]] | None:
    """The values of other parameters beside which one exists, in tuples; None for any."""
    if said is None:
        return None
    if not isinstance(said, Mapping) or not said or not all(isinstance(name, str) for name in said):
        raise ValueError(f"when must map a parameter to a value, or to a list of values; got {said!r}. Mend it.")
    several = {name: tuple(v) if isinstance(v, list | tuple | set | frozenset) else (v,) for name, v in said.items()}
    for name, values in several.items():
        if not values:
            raise ValueError(f"when[{name!r}] must have at least one value; got {said[name]!r}. List them.")
    return several


def is_number(value: Any) -> bool:
    """Whether value is one finite real number."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def listed(values: Iterable[Any]) -> str:
    """Values in words."""
    return ", ".join(map(repr, values))


def _coordinate(p: Float | Int | Context, value: Any) -> float:
    """Where a value lies between the ends, on a logarithmic scale if the parameter has one."""
    low, high, at = (math.log(v) if p.log else float(v) for v in (p.low, p.high, value))
    return (at - low) / (high - low) if low < high else 0.0


def _value(p: Float | Int | Context, u: float) -> float:
    """What lies at a coordinate between the ends."""
    if p.log:
        low, high = math.log(p.low), math.log(p.high)
        return math.exp(low + u * (high - low))
    return p.low + u * (p.high - p.low)


def _check_ends(p: Any, kind: str) -> None:
    if not (is_number(p.low) and is_number(p.high) and p.low <= p.high):
        raise ValueError(f"{kind} must have low <= high, both finite; got ({p.low!r}, {p.high!r}). Swap or mend them.")
    if p.log and p.low <= 0:
        raise ValueError(f"{kind} must have low > 0 on a log scale; got {p.low!r}. Raise low, or leave log out.")
