"""Costs with a structure that a method may find: additive, few parameters that matter, several decades.

May import the public API, from the modules that define it, and `problem`.
"""

from functools import partial

import numpy as np

from crashbo.problems.families.functions import SMOOTH, waves
from crashbo.problems.families.landscape import Array, Cause, Family, Function, Landscape

_GRID = np.linspace(0.0, 1.0, 501)
_WAVES = 5
_DRAWS = 4096  # to find the spread of an exponent


def _additive(dimension: int, rng: np.random.Generator) -> Landscape:
    count = np.arange(1, _WAVES + 1)[:, None]
    fade = np.exp(-((count * rng.uniform(0.3, 0.8, dimension)) ** 2))  # the fewer waves, the smoother
    heights = fade * rng.standard_normal((2, _WAVES, dimension)) * rng.dirichlet(np.full(dimension, 2.0))
    lowest = _GRID[np.argmin(_parts(heights, np.repeat(_GRID[:, None], dimension, axis=1)), axis=0)]
    load = waves(dimension, rng, nu=(2.5, np.inf))
    return Landscape(partial(_sum_of, heights), (Cause(load, SMOOTH),), hints=lowest[None])


def _sum_of(heights: Array, U: Array) -> Array:
    out: Array = _parts(heights, U).sum(axis=1)
    return out


def _parts(heights: Array, U: Array) -> Array:
    """A short Fourier series of every coordinate, (m, D)."""
    out = np.zeros_like(U)
    for i, (cosine, sine) in enumerate(heights.transpose(1, 0, 2), start=1):
        out += cosine * np.cos(np.pi * i * U) + sine * np.sin(np.pi * i * U)
    return out


def _irrelevant(dimension: int, rng: np.random.Generator) -> Landscape:
    few = min(dimension, int(rng.integers(2, 4)))
    relevant = rng.permutation(dimension)[: few + 1]
    cost = waves(dimension, rng, among=relevant[:few])
    return Landscape(cost, (Cause(waves(dimension, rng, nu=(2.5, np.inf), among=relevant[-few:]), SMOOTH),))


def _decades(dimension: int, rng: np.random.Generator) -> Landscape:
    exponent = waves(dimension, rng, nu=(2.5, np.inf))
    spread = float(np.std(exponent(rng.random((_DRAWS, dimension)))))  # that of a slow wave is small
    cost = partial(_power_of_ten, exponent, float(rng.uniform(0.6, 1.2)) / spread)
    return Landscape(cost, (Cause(waves(dimension, rng, nu=(2.5, np.inf)), SMOOTH),))


def _power_of_ten(exponent: Function, decades: float, U: Array) -> Array:
    """As many decades to each unit of the exponent."""
    return np.asarray(10.0 ** (decades * exponent(U)))


FAMILIES = (
    Family("additive", "the cost is a sum of functions of one parameter each", _additive, (6, 24), most=60),
    Family(
        "irrelevant",
        "two or three parameters matter to the cost, as many to the load",
        _irrelevant,
        (8, 24, 60),
        most=60,
    ),
    Family("decades", "the cost spans several decades", _decades, (3, 8)),
)
