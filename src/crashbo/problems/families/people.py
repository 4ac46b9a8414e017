"""Spaces that people have: parameters that exist only beside options of another, and rules between parameters.

May import the public API, from the modules that define it, and `problem`.
"""

from functools import partial

import numpy as np

from crashbo.problems.families.functions import SMOOTH, some_pair
from crashbo.problems.families.landscape import Array, Cause, Family, Function, Half, Kind, Landscape, existing

_BOTH = 0.3  # share of the other parameters that exist in both branches
_DRAWS = 4096  # that shares are taken from
_RULED = (0.2, 0.7)  # share of the space that rules leave


def _conditional(dimension: int, rng: np.random.Generator) -> Landscape:
    """The first parameter is a choice; some of the others exist only beside its options of one half."""
    cost, load = some_pair(dimension, rng)
    beside = {d: bool(rng.random() < 0.5) for d in range(1, dimension) if d == 1 or rng.random() >= _BOTH}
    kinds: list[Kind] = ["choice", *rng.choice(["int", "float", "float"], dimension - 1)]
    cost, load = (partial(_where_it_exists, f, beside) for f in (cost, load))
    return Landscape(cost, (Cause(load, SMOOTH),), kinds=tuple(kinds), beside=beside)


def _where_it_exists(function: Function, beside: dict[int, bool], U: Array) -> Array:
    """A function that what does not exist makes no difference to."""
    return function(existing(U, beside))


def _ruled(dimension: int, rng: np.random.Generator) -> Landscape:
    """Half-spaces of a few parameters each, which together leave a share of the space."""
    cost, load = some_pair(dimension, rng)
    U = rng.random((_DRAWS, dimension))
    rules: list[Half] = []
    left = np.ones(len(U), dtype=bool)
    while not rules or left.mean() > _RULED[1]:
        a = np.zeros(dimension)
        among = rng.permutation(dimension)[: int(rng.integers(2, 4))]
        a[among] = rng.choice([-1.0, 1.0], len(among)) * rng.choice([1.0, 1.0, 2.0], len(among))
        half = Half(tuple(map(float, a)), round(float(np.quantile(U[left] @ a, rng.uniform(0.4, 0.8))), 2))
        kept = left & (half.excess(U) <= 0.0)
        if kept.mean() >= _RULED[0]:
            rules, left = [*rules, half], kept
    floats: list[Kind] = ["float"] * dimension
    return Landscape(cost, (Cause(load, SMOOTH),), kinds=tuple(floats), rules=tuple(rules))


FAMILIES = (
    Family(
        "conditional",
        "parameters that exist only beside some options of the first",
        _conditional,
        (4, 8),
        group="options",
    ),
    Family(
        "ruled", "rules between parameters, known beforehand, leave 20 to 70 % of the space", _ruled, (3, 6), most=12
    ),
)
