"""What a generator draws: a cost and its loads over the unit cube, and what can be measured of them.

May import the public API, from the modules that define it, and `problem`.

A point is a row u of [0, 1]^D, one coordinate per parameter; whole numbers and options stand on levels of their own.
The machine crashes where a load exceeds its level. Levels are set afterwards, so that the crash share is as drawn.

m points, D parameters; all functions take (m, D) and return (m,).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
Kind = Literal["float", "log", "int", "choice"]

MIDDLE = 0.5  # between both halves of the options, and where a parameter that does not exist stands

# What is read where a load stands at `margin`: standard deviations beyond its level, so that it crashes above zero.
Gauge = Callable[[Array], Array]


class Dial(NamedTuple):
    """A gauge, and the reading at which the machine crashes."""

    gauge: Gauge
    threshold: float


@dataclass(frozen=True)
class Cause:
    """A reason to crash: a load, and how it is read; `dial` is None if nobody measures it."""

    load: Function
    dial: Dial | None


@dataclass(frozen=True)
class Half:
    """A rule that is known beforehand: factors times coordinates, at most a level."""

    factors: tuple[float, ...]
    level: float

    def excess(self, U: Array) -> Array:
        """By how much it is broken; at most zero where it is kept."""
        return np.asarray(U @ np.array(self.factors) - self.level)


@dataclass(frozen=True)
class Landscape:
    """Everything about a machine but its units.

    Attributes:
        cost: lower is better.
        causes: it crashes where the load of any of them is beyond its level.
        shares: the range that the crash share is drawn from.
        bystanders: quantities that are measured, and have nothing to do with a crash.
        noise: the range of the noise's share of the costs' spread; None for a small one, or none.
        kinds: of the parameters; all floats if None.
        counts: of the options, where all parameters are choices; a few if None.
        has_start: whether a safe start is given; None leaves it to chance.
        start: where it is, if not at a random safe point of the worse half.
        hints: points where the search for the optimum should look, too, (k, D).
        beside: coordinates that exist only where the first, a choice, lies in its upper half, or in its lower.
        rules: known beforehand, of floats.
    """

    cost: Function
    causes: tuple[Cause, ...]
    shares: tuple[float, float] = (0.1, 0.9)
    bystanders: tuple[Function, ...] = ()
    noise: tuple[float, float] | None = None
    kinds: tuple[Kind, ...] | None = None
    counts: tuple[int, ...] | None = None
    has_start: bool | None = None
    start: Array | None = None
    hints: Array = field(default_factory=lambda: np.zeros((0, 0)))
    beside: Mapping[int, bool] = field(default_factory=dict)
    rules: tuple[Half, ...] = ()

    def existing(self, U: Array) -> Array:
        """Points with what does not exist there in the middle."""
        return existing(U, self.beside)


def existing(U: Array, beside: Mapping[int, bool]) -> Array:
    """Points with coordinates in the middle that do not exist there."""
    known = U.copy() if beside else U
    for d, upper in beside.items():
        known[(U[:, 0] > MIDDLE) != upper, d] = MIDDLE
    return known


@dataclass(frozen=True)
class Family:
    """A generator of problems.

    Attributes:
        name: as `get` knows it.
        what: what its members have in common, in a sentence.
        draw: a landscape of so many parameters.
        dimensions: that the benchmark takes.
        most: the highest dimension that it makes sense in.
        group: the group that the benchmark reports it in.
    """

    name: str
    what: str
    draw: Callable[[int, np.random.Generator], Landscape]
    dimensions: tuple[int, ...]
    most: int = 24
    group: str = "smooth"
