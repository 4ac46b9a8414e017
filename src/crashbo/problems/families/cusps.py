"""Costs that are not smooth where they are best, on safe regions that do not touch.

May import the public API, from the modules that define it, and `problem`.

The cost is the lowest of several pits, one on each island and a deeper one at sea. Each is a root of a distance: it has
a cusp at its bottom, creases along its seams, and a crease where it meets the next.
"""

from functools import partial

import numpy as np

from crashbo.problems.families.functions import SMOOTH
from crashbo.problems.families.islands import apart, out_at_sea
from crashbo.problems.families.landscape import Array, Cause, Family, Function, Landscape

_FEWEST, _MOST = 3, 5
_SIZES = (0.8, 1.2)  # of islands, about their mean
_SHARES = (0.5, 0.9)
_BEST, _OTHERS, _AT_SEA = -1.0, (-0.9, -0.6), -1.1  # depths of the cusps
_ROOT = (0.5, 1.0)  # power of the distance
_SLOPES = (1.0, 4.0)  # of the sides of a pit, per distance
_OFF = 0.3  # how far a cusp is from its island's centre, of the way to the shore
_DRAWS = 4096  # to find the shore, and the open sea


def _cusps(dimension: int, rng: np.random.Generator) -> Landscape:
    centres = apart(int(rng.integers(_FEWEST, _MOST + 1)), dimension, rng)
    load = partial(out_at_sea, centres, rng.uniform(*_SIZES, len(centres)))
    cusps = _bottoms(centres, load, rng)
    depths = np.array([_BEST, *rng.uniform(*_OTHERS, len(centres) - 1), _AT_SEA])
    sides = np.stack([_sides(dimension, rng) for _ in cusps])
    dial = SMOOTH if rng.random() < 0.5 else None
    return Landscape(
        partial(_pits, cusps, sides, depths, float(rng.uniform(*_ROOT))),
        (Cause(load, dial),),
        shares=_SHARES,
        start=centres[rng.integers(1, len(centres))],
        hints=cusps,
    )


def _bottoms(centres: Array, load: Function, rng: np.random.Generator) -> Array:
    """Off the centres, but ashore even where islands are smallest; and the last of them far out at sea."""
    draws = rng.random((_DRAWS, centres.shape[1]))
    loads = load(draws)
    shore = float(np.quantile(loads, 1.0 - _SHARES[1]))  # in shares of the way to the next island
    gaps = np.linalg.norm(centres[:, None] - centres, axis=2) + 9.0 * np.eye(len(centres))
    ways = rng.standard_normal(centres.shape)
    steps = _OFF * shore * gaps.min(axis=1) / np.linalg.norm(ways, axis=1)
    ashore = np.clip(centres + steps[:, None] * ways, 0.0, 1.0)
    return np.vstack([ashore, draws[np.argmax(loads)]])


def _sides(dimension: int, rng: np.random.Generator) -> Array:
    """Directions at right angles, turned at random, each of its own slope."""
    turn = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    return np.asarray(turn * np.exp(rng.uniform(np.log(_SLOPES[0]), np.log(_SLOPES[1]), dimension)))


def _pits(cusps: Array, sides: Array, depths: Array, power: float, U: Array) -> Array:
    """The lowest of them."""
    away = np.abs(np.einsum("mkd,kde->mke", U[:, None] - cusps, sides)).mean(axis=2)
    out: Array = np.min(depths + away**power, axis=1)
    return out


FAMILIES = (
    Family(
        "cusps",
        "a cost of creases and cusps; safe islands that do not touch; a start, if there is one, is not on the best",
        _cusps,
        (2, 3),
        most=6,
        group="cusps and islands",
    ),
)
