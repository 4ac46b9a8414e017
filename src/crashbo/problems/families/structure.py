"""Costs with a structure that a method may find: additive, few parameters that matter, several decades.

May import the public API, from the modules that define it, and `problem`.
"""

from functools import partial

import numpy as np

from crashbo.problems.families.functions import SMOOTH, waves
from crashbo.problems.families.landscape import Array, Cause, Family, Function, Landscape

_GRID = np.linspace(0.0, 1.0, 501)


def _additive(dimension: int, rng: np.random.Generator) -> Landscape:
    parts = [waves(1, rng, lengthscale=(0.2, 0.6)) for _ in range(dimension)]
    weights = rng.dirichlet(np.full(dimension, 2.0))
    lowest = np.array([_GRID[np.argmin(part(_GRID[:, None]))] for part in parts])
    load = waves(dimension, rng, nu=(2.5, np.inf))
    return Landscape(partial(_sum_of, parts, weights), (Cause(load, SMOOTH),), hints=lowest[None])


def _sum_of(parts: list[Function], weights: Array, U: Array) -> Array:
    columns = zip(weights, parts, U.T, strict=True)
    return np.asarray(sum(weight * part(column[:, None]) for weight, part, column in columns))


def _irrelevant(dimension: int, rng: np.random.Generator) -> Landscape:
    few = min(dimension, int(rng.integers(2, 4)))
    relevant = rng.permutation(dimension)[: few + 1]
    cost = waves(dimension, rng, among=relevant[:few])
    return Landscape(cost, (Cause(waves(dimension, rng, nu=(2.5, np.inf), among=relevant[-few:]), SMOOTH),))


def _decades(dimension: int, rng: np.random.Generator) -> Landscape:
    exponent = waves(dimension, rng, nu=(2.5, np.inf))
    cost = partial(_power_of_ten, exponent, float(rng.uniform(0.7, 1.4)))
    return Landscape(cost, (Cause(waves(dimension, rng, nu=(2.5, np.inf)), SMOOTH),))


def _power_of_ten(exponent: Function, decades: float, U: Array) -> Array:
    """As many decades to each standard deviation."""
    return np.asarray(10.0 ** (decades * exponent(U)))


FAMILIES = (
    Family("additive", "the cost is a sum of functions of one parameter each", _additive, (6, 24), most=60),
    Family("irrelevant", "two or three parameters matter to the cost, as many to the load", _irrelevant, (8, 24, 60), most=60),
    Family("decades", "the cost spans several decades", _decades, (3, 8)),
)
