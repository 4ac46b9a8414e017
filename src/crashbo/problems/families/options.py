"""Nothing but options, of which only the names are told.

May import the public API, from the modules that define it, and `problem`.

Like materials or solvents: each option has a few numbers, its descriptors, that decide what it does. Cost and load are
smooth in them; nobody is told what they are.
"""

from dataclasses import dataclass

import numpy as np

from crashbo.problems.families.functions import SMOOTH, waves
from crashbo.problems.families.landscape import Array, Cause, Family, Function, Kind, Landscape

_OPTIONS = (5, 30)  # of a choice
_DESCRIPTORS = (2, 3)  # of an option
_LENGTHSCALE = (0.15, 0.5)  # in descriptors; about a quarter of the variance is then interaction between parameters
_MEASURED = 0.25  # share of the machines in which the cause is
_SHARES = (0.14, 0.9)  # that crash: of 25 combinations, one fewer may


@dataclass(frozen=True)
class Described:
    """A function of the descriptors of all options that are chosen.

    Attributes:
        tables: of each choice, the descriptors of its options, in the order of their levels.
        function: of the descriptors side by side.
    """

    tables: tuple[Array, ...]
    function: Function

    def __call__(self, U: Array) -> Array:
        """At the points U."""
        chosen = [table[np.rint(u * (len(table) - 1)).astype(int)] for table, u in zip(self.tables, U.T, strict=True)]
        return self.function(np.hstack(chosen))


def _options(dimension: int, rng: np.random.Generator) -> Landscape:
    counts = tuple(map(int, rng.integers(_OPTIONS[0], _OPTIONS[1] + 1, dimension)))
    tables = tuple(rng.random((count, rng.integers(_DESCRIPTORS[0], _DESCRIPTORS[1] + 1))) for count in counts)
    total = sum(table.shape[1] for table in tables)
    cost, load = (Described(tables, waves(total, rng, nu=(2.5, np.inf), lengthscale=_LENGTHSCALE)) for _ in range(2))
    dial = SMOOTH if rng.random() < _MEASURED else None
    kinds: list[Kind] = ["choice"] * dimension
    return Landscape(cost, (Cause(load, dial),), shares=_SHARES, kinds=tuple(kinds), counts=counts)


FAMILIES = (
    Family(
        "options",
        "options alone, 5 to 30 a parameter; cost and load are smooth in numbers of theirs that nobody is told",
        _options,
        (2, 3, 4),
        most=4,
        group="options",
    ),
)
