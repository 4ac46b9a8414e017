"""Interior optima: bowls, curved valleys, and basins in a plateau.

May import the public API, from the modules that define it, and `problem`.
"""

from functools import partial

import numpy as np

from crashbo.problems.families.functions import SMOOTH, bowl, total, waves
from crashbo.problems.families.landscape import Array, Cause, Family, Function, Landscape

_BASIN = (0.05, 0.15)  # share of the space that a basin takes up
_DRAWS = 4096  # to find its size


def _bowl(dimension: int, rng: np.random.Generator) -> Landscape:
    centre = rng.uniform(0.2, 0.8, dimension)
    cost = bowl(centre, rng, condition=float(np.exp(rng.uniform(0.0, np.log(30.0)))))
    return Landscape(cost, (Cause(_safe_at(centre, dimension, rng), SMOOTH),), hints=centre[None])


def _safe_at(centre: Array, dimension: int, rng: np.random.Generator) -> Function:
    """A random load that is low about the centre."""
    return total((0.7, waves(dimension, rng, nu=(2.5, np.inf))), (12.0, bowl(centre, rng, condition=3.0)))


def _valley(dimension: int, rng: np.random.Generator) -> Landscape:
    bends, end = rng.uniform(0.0, 2.0 * np.pi, dimension - 1), float(rng.uniform(0.1, 0.9))
    cost = partial(_valley_cost, bends, end, float(rng.uniform(10.0, 60.0)))
    floor = _along(bends, np.array([end]), dimension)
    return Landscape(cost, (Cause(waves(dimension, rng, nu=(2.5, np.inf)), SMOOTH),), hints=floor)


def _valley_cost(bends: Array, end: float, steepness: float, U: Array) -> Array:
    """Across the valley it rises steeply, along its floor slowly."""
    across: Array = np.sum((U[:, 1:] - _floor(bends, U[:, :-1])) ** 2, axis=1)
    return steepness * across + (U[:, 0] - end) ** 2


def _floor(bends: Array, before: Array) -> Array:
    """Where the floor is in a coordinate, by the coordinate before it."""
    return np.asarray(0.5 + 0.35 * np.sin(5.0 * before + bends))


def _along(bends: Array, first: Array, dimension: int) -> Array:
    """Points of the floor, by their first coordinates."""
    out = np.empty((len(first), dimension))
    out[:, 0] = first
    for d in range(1, dimension):
        out[:, d] = _floor(bends[d - 1], out[:, d - 1])
    return out


def _corridor(dimension: int, rng: np.random.Generator) -> Landscape:
    bends = rng.uniform(0.0, 2.0 * np.pi, dimension - 1)
    here, there = _along(bends, np.array([rng.uniform(0.02, 0.15), rng.uniform(0.7, 0.95)]), dimension)
    cost = bowl(there, rng, condition=5.0)
    load = partial(_off_floor, bends)
    return Landscape(
        cost, (Cause(load, SMOOTH),), shares=(0.8, 0.9), has_start=True, start=here, hints=np.stack([there, here])
    )


def _off_floor(bends: Array, U: Array) -> Array:
    out: Array = np.sqrt(np.mean((U[:, 1:] - _floor(bends, U[:, :-1])) ** 2, axis=1))
    return out


def _plateau(dimension: int, rng: np.random.Generator) -> Landscape:
    centres = rng.uniform(0.15, 0.85, (3, dimension))
    distances = _distances(centres, rng.random((_DRAWS, dimension)))
    sizes = np.array([np.quantile(d, share) for d, share in zip(distances.T, rng.uniform(*_BASIN, 3), strict=True)])
    cost = partial(_basins, centres, sizes, np.array([1.0, 0.7, 0.5]))
    return Landscape(cost, (Cause(_safe_at(centres[0], dimension, rng), SMOOTH),), hints=centres)


def _basins(centres: Array, sizes: Array, depths: Array, U: Array) -> Array:
    """Exactly flat, but for a few basins."""
    inside = np.maximum(1.0 - (_distances(centres, U) / sizes) ** 2, 0.0)
    out: Array = -np.max(depths * inside**2, axis=1)
    return out


def _distances(centres: Array, U: Array) -> Array:
    """From every centre, (m, centres)."""
    return np.asarray(np.linalg.norm(U[:, None] - centres, axis=2))


FAMILIES = (
    Family("bowl", "an interior bowl, safe at its bottom", _bowl, (4, 16), most=60),
    Family("valley", "a curved valley of the cost, crossed by a random load", _valley, (2, 6)),
    Family(
        "corridor",
        "a thin curved safe corridor, to be followed from one end to the other",
        _corridor,
        (2, 4),
        most=8,
        group="cusps and islands",
    ),
    Family("plateau", "a flat cost with a few basins", _plateau, (2, 6), group="cusps and islands"),
)
