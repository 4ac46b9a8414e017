"""Spaces: from the user's parameters to the unit cube and back.

May import models and below.

A Float or Int takes one coordinate; a Choice takes one coordinate per option (one-hot), scaled so that two
different options lie at distance one. One-hot keeps one kernel for everything, lets every option have a
lengthscale of its own (an option that behaves like the others drops out), and needs no order.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Params = Mapping[str, Any]  # a value per parameter

SLACK = 1e-9  # judgement: of the range; rounding in a value that the user writes down is no error
SAME = 1e-6  # judgement: two points closer than this in every coordinate are one
_ROWS = 64  # judgement: compared at once, for memory
_HOT = math.sqrt(0.5)  # derived: two options lie at distance one


@dataclass(frozen=True)
class Float:
    """A real parameter between low and high, fixed where they are equal; on a logarithmic scale with log=True."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_ends(self, "Float")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    width = 1
    continuous = True

    def encode(self, value: Any) -> list[float]:
        """The value's coordinate, in [0, 1] if it is in range."""
        return [_coordinate(self, value)]

    def decode(self, u: Array) -> float:
        """The value at a coordinate."""
        return min(max(_value(self, float(u[0])), self.low), self.high)

    def snap(self, U: Array) -> Array:
        """The nearest coordinates that a value has."""
        return np.clip(U, 0.0, 1.0)

    def accepts(self, value: Any) -> bool:
        """Whether the value lies in range."""
        slack = SLACK * (self.high - self.low)
        return is_number(value) and self.low - slack <= value <= self.high + slack

    def rule(self) -> str:
        """What is accepted, in words."""
        return f"be a number from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Int:
    """A whole parameter between low and high, both included, fixed where they are equal; log=True as for Float."""

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        _check_ends(self, "Int")
        if int(self.low) != self.low or int(self.high) != self.high:
            raise ValueError(f"Int must have whole ends; got ({self.low}, {self.high}). Use Float for real ones.")

    width = 1
    continuous = False

    def encode(self, value: Any) -> list[float]:
        """The value's coordinate in [0, 1]."""
        return [_coordinate(self, value)]

    def decode(self, u: Array) -> int:
        """The value nearest to a coordinate."""
        return int(min(max(round(_value(self, float(u[0]))), self.low), self.high))

    def snap(self, U: Array) -> Array:
        """The nearest coordinates that a value has."""
        return np.array([self.encode(self.decode(u)) for u in U])

    def accepts(self, value: Any) -> bool:
        """Whether the value is whole and lies in range."""
        return is_number(value) and float(value).is_integer() and self.low <= value <= self.high

    def rule(self) -> str:
        """What is accepted, in words."""
        return f"be a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Choice:
    """One of several options, in no order."""

    options: tuple[Any, ...]

    def __init__(self, options: Sequence[Any]) -> None:
        if isinstance(options, str) or len(options) < 2 or len({repr(o) for o in options}) < len(options):
            raise ValueError(f"Choice must have two or more different options; got {options!r}. List them.")
        object.__setattr__(self, "options", tuple(options))

    continuous = False

    @property
    def width(self) -> int:
        """Coordinates that it takes."""
        return len(self.options)

    def encode(self, value: Any) -> list[float]:
        """One-hot coordinates."""
        at = self._index(value)
        return [_HOT if i == at else 0.0 for i in range(len(self.options))]

    def decode(self, u: Array) -> Any:
        """The option whose coordinate is largest."""
        return self.options[int(np.argmax(u))]

    def snap(self, U: Array) -> Array:
        """The nearest one-hot coordinates."""
        out: Array = _HOT * np.eye(len(self.options))[np.argmax(U, axis=1)]
        return out

    def accepts(self, value: Any) -> bool:
        """Whether the value is an option."""
        return self._index(value) is not None

    def rule(self) -> str:
        """What is accepted, in words."""
        return f"be one of {', '.join(repr(o) for o in self.options)}"

    def _index(self, value: Any) -> int | None:
        # True == 1 in Python, but an option True is not the option 1.
        matches = (i for i, o in enumerate(self.options) if type(o) is type(value) and o == value)
        loose = (i for i, o in enumerate(self.options) if o == value)
        return next(matches, next(loose, None))


Parameter = Float | Int | Choice


@dataclass(frozen=True)
class Space:
    """Named parameters, and the unit cube that the models see.

    Parameters in `fixed` stay where they are in everything that is proposed.
    """

    parameters: Mapping[str, Parameter]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(space: "Space | Mapping[str, Any]") -> "Space":
        """A space from a mapping of names to Float, Int, Choice or (low, high); what has one value is fixed."""
        if isinstance(space, Space):
            return space
        if not isinstance(space, Mapping) or not space:
            raise ValueError(
                f"space must map names to parameters; got {space!r}. Write {{'gain': (0.0, 1.0)}}, for example."
            )
        parameters = {_name(name): _parameter(name, value) for name, value in space.items()}
        alone = {n: p.low for n, p in parameters.items() if not isinstance(p, Choice) and p.low == p.high}
        return Space(parameters, alone)

    @property
    def dimension(self) -> int:
        """Coordinates in the unit cube."""
        return sum(p.width for p in self.parameters.values())

    @property
    def continuous(self) -> NDArray[np.bool_]:
        """Which coordinates may take any value in [0, 1]."""
        return np.concatenate(
            [np.full(p.width, p.continuous and name not in self.fixed) for name, p in self.parameters.items()]
        )

    @property
    def size(self) -> float:
        """How many different points there are."""
        sizes = [
            math.inf if isinstance(p, Float) else len(p.options) if isinstance(p, Choice) else p.high - p.low + 1
            for name, p in self.parameters.items()
            if name not in self.fixed
        ]
        return math.prod(sizes)

    def accepts(self, params: Mapping[str, Any]) -> bool:
        """Whether every value lies in range, and is the fixed one where one is."""
        return all(
            p.accepts(params[name]) and (name not in self.fixed or p.encode(params[name]) == p.encode(self.fixed[name]))
            for name, p in self.parameters.items()
        )

    def check(self, params: Params) -> dict[str, Any]:
        """The params in the space's order and types, or one clear sentence."""
        if not isinstance(params, Mapping) or set(params) != set(self.parameters):
            raise ValueError(
                f"params must name each of {', '.join(map(repr, self.parameters))}; got {params!r}. "
                "Give one value per parameter."
            )
        for name, p in self.parameters.items():
            if not p.accepts(params[name]):
                raise ValueError(f"{name} must {p.rule()}; got {params[name]!r}. Mend it, or widen the space.")
        return {name: _plain(params[name], p) for name, p in self.parameters.items()}

    def revived(self, params: Params) -> dict[str, Any]:
        """Params that went through JSON, where an option that is a tuple comes back as a list."""
        out = dict(params)
        for name, p in self.parameters.items():
            if isinstance(p, Choice) and isinstance(out.get(name), list):
                out[name] = next((o for o in p.options if isinstance(o, tuple) and _listed(o) == out[name]), out[name])
        return out

    def encode(self, params: Mapping[str, Any]) -> Array:
        """The unit-cube point of params."""
        return np.array([u for name, p in self.parameters.items() for u in p.encode(params[name])])

    def decode(self, u: Array) -> dict[str, Any]:
        """The params at (or nearest to) a unit-cube point."""
        return {name: p.decode(u[at]) for name, p, at in self._slices()}

    def snap(self, U: Array) -> Array:
        """The nearest points that params have, row by row."""
        out = np.array(U, dtype=float)
        for name, p, at in self._slices():
            out[:, at] = p.encode(self.fixed[name]) if name in self.fixed else p.snap(out[:, at])
        return out

    def with_fixed(self, fixed: Mapping[str, Any]) -> "Space":
        """The space with some parameters held at a value."""
        for name, value in fixed.items():
            if name not in self.parameters:
                raise ValueError(f"fixed must name parameters of the space; got {name!r}. Mend the name.")
            if not self.parameters[name].accepts(value):
                raise ValueError(f"{name} must {self.parameters[name].rule()}; got {value!r}. Mend it.")
        plain = {name: _plain(value, self.parameters[name]) for name, value in fixed.items()}
        return Space(self.parameters, {**self.fixed, **plain})

    def changed(self, space: "Space | Mapping[str, Any] | None", fixed: Mapping[str, Any] | None) -> "Space":
        """The same parameters with other bounds, if given, and some of them held."""
        new = self if space is None else Space.of(space)
        if list(new.parameters) != list(self.parameters):
            raise ValueError(
                f"space must keep the parameters {list(self.parameters)}; got {list(new.parameters)}. "
                "Fix one with `fixed` instead of leaving it out."
            )
        return new.with_fixed({**self.fixed, **(fixed or {})})

    def uniform(self, U: Array) -> Array:
        """Points spread evenly over the params, from points spread evenly over the unit cube (m, dimension)."""
        out = np.array(U, dtype=float)
        for _, p, at in self._slices():
            if isinstance(p, Int) and not p.log:  # every value gets the same share, the end ones too
                count = p.high - p.low + 1
                out[:, at] = np.minimum(np.floor(out[:, at] * count), count - 1) / max(count - 1, 1)
        return self.snap(out)

    def steps(self, u: Array) -> Array:
        """The points that are one step from u in a whole number, or another option, (m, dimension)."""
        params, found = self.decode(u), []
        for name, p, at in self._slices():
            if name in self.fixed or isinstance(p, Float):
                continue
            now = params[name]
            others = [o for o in p.options if o != now] if isinstance(p, Choice) else [now - 1, now + 1]
            for other in filter(p.accepts, others):
                step = np.array(u, dtype=float)
                step[at] = p.encode(other)
                found.append(step)
        return np.array(found).reshape(-1, len(u))

    def lacks_options(self, tried: Array) -> bool:
        """Whether some option of a Choice is at none of the tried points."""
        return any(
            isinstance(p, Choice) and name not in self.fixed and not tried[:, at].any(axis=0).all()
            for name, p, at in self._slices()
        )

    def with_rarest_options(self, U: Array, tried: Array) -> Array:
        """The points U, each Choice at the option that is rarest among the tried points."""
        out = np.array(U, dtype=float)
        for name, p, at in self._slices():
            if isinstance(p, Choice) and name not in self.fixed:
                out[:, at] = p.encode(p.options[int(np.argmin(tried[:, at].sum(axis=0)))])
        return out

    def _slices(self) -> Iterator[tuple[str, Parameter, slice]]:
        start = 0
        for name, p in self.parameters.items():
            yield name, p, slice(start, start + p.width)
            start += p.width


def _coordinate(p: Float | Int, value: Any) -> float:
    """Where a value lies between the ends, on a logarithmic scale if the parameter has one."""
    low, high, at = (math.log(v) if p.log else float(v) for v in (p.low, p.high, value))
    return (at - low) / (high - low) if low < high else 0.0


def _value(p: Float | Int, u: float) -> float:
    """What lies at a coordinate between the ends."""
    if p.log:
        low, high = math.log(p.low), math.log(p.high)
        return math.exp(low + u * (high - low))
    return p.low + u * (p.high - p.low)


def _listed(option: Any) -> Any:
    """An option as JSON gives it back."""
    return [_listed(o) for o in option] if isinstance(option, tuple) else option


def _plain(value: Any, p: Parameter) -> Any:
    """The value as the space's own type: an integer 1 in a Float is 1.0."""
    if isinstance(p, Float):
        return min(max(float(value), p.low), p.high)
    return int(value) if isinstance(p, Int) else p.options[p._index(value) or 0]


def _parameter(name: Any, value: Any) -> Parameter:
    if isinstance(value, Float | Int | Choice):
        return value
    if isinstance(value, tuple | list) and len(value) == 2 and all(map(is_number, value)):
        return Float(*value)
    raise ValueError(
        f"space[{name!r}] must be (low, high), Float, Int or Choice; got {value!r}. "
        "A pair is a real range; use Int for whole numbers and Choice for options."
    )


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"space must have names that are text; got {name!r}. Name each parameter.")
    return name


def is_near(X: Array, points: Array, gap: float) -> NDArray[np.bool_]:
    """Which rows of X lie closer than `gap` to one of `points`, in every coordinate."""
    near = np.zeros(len(X), dtype=bool)
    if len(points):
        for start in range(0, len(X), _ROWS):
            apart = np.abs(X[start : start + _ROWS, None, :] - points[None, :, :]).max(axis=2)
            near[start : start + _ROWS] = (apart < gap).any(axis=1)
    return near


def is_number(value: Any) -> bool:
    """Whether value is one finite real number."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def _check_ends(p: Any, kind: str) -> None:
    if not (is_number(p.low) and is_number(p.high) and p.low <= p.high):
        raise ValueError(f"{kind} must have low <= high, both finite; got ({p.low!r}, {p.high!r}). Swap or mend them.")
    if p.log and p.low <= 0:
        raise ValueError(f"{kind} must have low > 0 on a log scale; got {p.low!r}. Raise low, or leave log out.")


def places(X: Array) -> NDArray[np.intp]:
    """Numbers from 0 on, one for every row of X; those of rows at one place are the same."""
    return np.unique(np.round(X / SAME), axis=0, return_inverse=True)[1].reshape(-1)
