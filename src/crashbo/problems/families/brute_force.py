"""The lowest safe cost of a machine whose functions are known, by brute force.

May import the public API, from the modules that define it, and `problem`.

Three stages, each from the best of the one before: points all over the space; many descents at once on the cost plus a
penalty that grows; and from the best of them, descents that keep to the constraints exactly (SLSQP). Whole numbers and
options jump at random among their levels; at the end, all other levels of one or two of them are tried, each with
descents of the rest, until none is better. All that three times, with steps of different lengths.

Where there are levels alone, and not too many, all combinations are tried instead.

U are points, (m, D); costs are scaled to the spread of the safe ones, margins crash above zero.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from crashbo.problems.families.instance import Instance, Lowest
from crashbo.problems.families.landscape import Array

_POINTS = 32_768
_RATES = (0.08, 0.03, 0.01)  # first steps of the descents: a long one for smooth machines, a short one for rough ones
_WALKERS, _STEPS = 240, 90
_FINAL = 16  # that are descended exactly
_EXCHANGES = 600  # of levels, at a time
_ROUNDS, _STEP = 60, 0.05  # of the last search at random, and its first step
_LONGER = 20  # times as many rounds where there are levels
_COMBINATIONS = 1_000_000  # that are all tried
_CHUNK = 16_384  # of them, at a time
_EPS = 1e-6
_INSIDE = 1e-7  # margin that an optimum keeps from its boundary: rounding must not carry it over


class _Scaled(NamedTuple):
    """The machine's cost, scaled, and its margins."""

    instance: Instance
    crashes: bool  # whether it does
    zero: float = 0.0
    unit: float = 1.0

    def cost(self, U: Array) -> Array:
        return (self.instance.cost(U) - self.zero) / self.unit

    def excess(self, U: Array) -> Array:
        """Margins; it crashes where one is above zero, or breaks a rule."""
        return self.instance.excess(U) if self.crashes else self.instance.forbidden(U)

    def safe_cost(self, U: Array) -> Array:
        """Infinite where it crashes."""
        return np.where(self.excess(U).max(axis=1) <= -_INSIDE, self.cost(U), np.inf)


def lowest(instance: Instance) -> Lowest:
    """The optima of a machine."""
    safe = _optimum(instance, crashes=True)
    free = np.stack([safe, _optimum(instance, crashes=False)])
    return Lowest(float(instance.cost(safe[None])[0]), float(instance.cost(free).min()), safe)


def _optimum(instance: Instance, *, crashes: bool) -> Array:
    """The best point that was found; among all, if crashes do not matter."""
    scaled = _Scaled(instance, crashes)
    if _can_be_counted(instance):
        tries = [U[np.argmin(scaled.safe_cost(U))] for U in _combinations(instance)]
    else:
        tries = _searches(instance, crashes)
    ends = np.array(tries)
    best: Array = ends[np.argmin(scaled.safe_cost(ends))]
    return best


def _can_be_counted(instance: Instance) -> bool:
    """Whether all combinations of levels can be tried, and there is nothing else."""
    counts = [len(levels) for _, levels in instance.columns if levels is not None]
    return len(counts) == instance.dimension and math.prod(counts) <= _COMBINATIONS


def _combinations(instance: Instance) -> Iterator[Array]:
    """All of them, some at a time."""
    levels = [levels for _, levels in instance.columns if levels is not None]
    counts = [len(of_one) for of_one in levels]
    for first in range(0, math.prod(counts), _CHUNK):
        chosen = np.unravel_index(np.arange(first, min(first + _CHUNK, math.prod(counts))), counts)
        U = np.column_stack([of_one[i] for of_one, i in zip(levels, chosen, strict=True)])
        yield instance.landscape.existing(U)


def _searches(instance: Instance, crashes: bool) -> list[Array]:
    """The ends of searches with steps of different lengths."""
    rng = np.random.default_rng(instance.seed)
    known = [instance.begin[None]] if instance.begin is not None else []
    known += [_snapped(instance, instance.landscape.hints)] if len(instance.landscape.hints) else []
    return [_searched(instance, crashes, np.vstack([*known, instance.uniform(_POINTS, rng)]), r, rng) for r in _RATES]


def _searched(instance: Instance, crashes: bool, U: Array, rate: float, rng: np.random.Generator) -> Array:
    """The best end of all descents from some of the points U."""
    costs = _Scaled(instance, crashes).safe_cost(U)
    order, low = np.argsort(costs), float(costs.min())
    scaled = _Scaled(instance, crashes, low, (instance.median - low) or 1.0)
    # Half of them where it is best, half all over, safe or not; and where the landscape itself says.
    walkers = np.vstack([U[order[: _WALKERS // 2]], U[rng.permutation(len(U))[: _WALKERS // 2]], U[:4]])
    best = _polished(scaled, np.vstack([_descend(scaled, walkers, rate, rng), U[order[:_FINAL]]]), rng)
    while not _moving(instance).all():  # as long as other levels are better
        near = _descend(scaled, _exchanged(instance, best, rng), rate, rng)
        other = _polished(scaled, np.vstack([best, near]), rng)
        if not scaled.safe_cost(other[None])[0] < scaled.safe_cost(best[None])[0]:
            break
        best = other
    return best


def _polished(scaled: _Scaled, found: Array, rng: np.random.Generator) -> Array:
    """The best of exact descents from the most hopeful of the points, and of the points themselves."""
    hopeful = _apart(found[np.argsort(_hopes(scaled, found))])
    ends = np.vstack([*(_exactly(scaled, u)[None] for u in hopeful), found])
    return _shaken(scaled, ends[np.argmin(scaled.safe_cost(ends))], rng)


def _exchanged(instance: Instance, u: Array, rng: np.random.Generator) -> Array:
    """The points with one or two levels changed: all, or some at random where they are many."""
    discrete = [(d, levels) for d, (_, levels) in enumerate(instance.columns) if levels is not None]
    changes = [(d, level) for d, levels in discrete for level in levels if level != u[d]]
    pairs = [(a, b) for i, a in enumerate(changes) for b in changes[i:] if a[0] != b[0] or a == b]
    if len(pairs) > _EXCHANGES:
        pairs = [pairs[i] for i in rng.choice(len(pairs), _EXCHANGES, replace=False)]
    U = np.repeat(u[None], len(pairs), axis=0)
    for row, ((d, level), (e, other)) in zip(U, pairs, strict=True):
        row[d], row[e] = level, other
    return U


def _hopes(scaled: _Scaled, U: Array) -> Array:
    """Costs, with a margin for points that are nearly safe: the exact descent will make them so."""
    beyond = np.maximum(scaled.excess(U).max(axis=1), 0.0)
    return np.where(beyond < 0.05, scaled.cost(U) + 2.0 * beyond, np.inf)


def _apart(U: Array) -> Array:
    """The first of those that lie close to one another."""
    kept: list[Array] = []
    for u in U:
        if all(np.abs(u - other).max() > 0.02 for other in kept):
            kept.append(u)
        if len(kept) == _FINAL:
            break
    return np.array(kept)


def _descend(scaled: _Scaled, U: Array, rate: float, rng: np.random.Generator) -> Array:
    """All at once, by gradients of the cost and of a penalty that grows (Adam's steps, which know no units)."""
    moving = _moving(scaled.instance)
    first, second = np.zeros_like(U), np.zeros_like(U)
    for step in range(1, _STEPS + 1):
        penalty = 2.0 * 1.07**step
        gradient = _gradient(scaled, U, penalty, moving)
        first, second = 0.8 * first + 0.2 * gradient, 0.95 * second + 0.05 * gradient**2
        move = first / (1.0 - 0.8**step) / (np.sqrt(second / (1.0 - 0.95**step)) + 1e-12)
        U = np.clip(U - rate * 0.96**step * move * moving, 0.0, 1.0)
        if not moving.all() and step % 5 == 0:
            U = _hop(scaled, U, penalty, rng)
        if step == _STEPS // 3:  # the rest of the way is for the better half
            better = np.argsort(_penalised(scaled, U, penalty))[: (len(U) + 1) // 2]
            U, first, second = U[better], first[better], second[better]
    return U


def _penalised(scaled: _Scaled, U: Array, penalty: float) -> Array:
    beyond: Array = np.sum(np.maximum(scaled.excess(U), 0.0) ** 2, axis=1)
    return scaled.cost(U) + penalty * beyond


def _gradient(scaled: _Scaled, U: Array, penalty: float, moving: Array) -> Array:
    """By forward differences, all coordinates of all points at once."""
    m, D = U.shape
    here = _penalised(scaled, U, penalty)
    ahead = np.where(U + _EPS <= 1.0, _EPS, -_EPS)
    steps = np.flatnonzero(moving)
    near = np.repeat(U[None], len(steps), axis=0)
    near[np.arange(len(steps)), :, steps] += ahead.T[steps]
    there = _penalised(scaled, near.reshape(-1, D), penalty).reshape(len(steps), m)
    gradient = np.zeros_like(U)
    gradient[:, steps] = ((there - here) / ahead.T[steps]).T
    return gradient


def _hop(scaled: _Scaled, U: Array, penalty: float, rng: np.random.Generator) -> Array:
    """One level of one parameter changed, where that is better."""
    other = U.copy()
    discrete = np.flatnonzero(_moving(scaled.instance) == 0.0)
    chosen = rng.choice(discrete, len(U))
    fresh = scaled.instance.uniform(len(U), rng)
    other[np.arange(len(U)), chosen] = fresh[np.arange(len(U)), chosen]
    better = _penalised(scaled, other, penalty) < _penalised(scaled, U, penalty)
    return np.where(better[:, None], other, U)


def _exactly(scaled: _Scaled, u: Array) -> Array:
    """The end of a descent that keeps to the constraints; levels stay as they are."""
    moving = np.flatnonzero(_moving(scaled.instance))
    if not len(moving):
        return u

    def whole(v: Array) -> Array:
        """The point, and its neighbours one step ahead, for differences."""
        U = np.repeat(u[None], len(moving) + 1, axis=0)
        U[:, moving] = np.clip(v, 0.0, 1.0)
        ahead = np.where(U[0, moving] + _EPS <= 1.0, _EPS, -_EPS)
        U[np.arange(1, len(moving) + 1), moving] += ahead
        return U

    def slopes(values: Array, v: Array) -> Array:
        """Differences of the first value, over the steps."""
        ahead = np.where(np.clip(v, 0.0, 1.0) + _EPS <= 1.0, _EPS, -_EPS)
        out: Array = (values[1:] - values[0]) / ahead.reshape(-1, *[1] * (values.ndim - 1))
        return out

    def cost(v: Array) -> tuple[float, Array]:
        values = scaled.cost(whole(v))
        return float(values[0]), slopes(values, v)

    def room(v: Array) -> Array:
        out: Array = -scaled.excess(whole(v)[:1])[0] - 2.0 * _INSIDE
        return out

    def room_slopes(v: Array) -> Array:
        return -slopes(scaled.excess(whole(v)), v).T

    done = minimize(
        cost,
        u[moving],
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(moving),
        constraints={"type": "ineq", "fun": room, "jac": room_slopes},
        options={"maxiter": 200, "ftol": 1e-12},
    )
    end = whole(done.x)[0]
    return end if np.isfinite(end).all() else u


def _shaken(scaled: _Scaled, u: Array, rng: np.random.Generator) -> Array:
    """The best of many moves of a few coordinates, for kinks and corners that have no gradient, and for other levels.

    Steps of real coordinates become smaller until something is better; levels are drawn anew. With levels that goes on
    for long, and steps grow again: the rest of the space has to follow each exchange.
    """
    best, step = float(scaled.safe_cost(u[None])[0]), _STEP
    D, moving = len(u), _moving(scaled.instance)
    for turn in range(_ROUNDS if moving.all() else _ROUNDS * _LONGER):
        few = rng.random((128, D)) < min(1.0, 2.0 / D)
        near = u + step * rng.standard_normal((128, D))
        U = np.where(few, np.where(moving > 0.0, near, scaled.instance.uniform(128, rng)), u)
        U = _snapped(scaled.instance, U)
        costs = scaled.safe_cost(U)
        if costs.min() < best:
            u, best = U[np.argmin(costs)], float(costs.min())
        else:
            step = _STEP if turn % _ROUNDS == 0 else 0.8 * step
    return u


def _snapped(instance: Instance, U: Array) -> Array:
    """In the cube, and on the nearest levels."""
    U = np.clip(U, 0.0, 1.0)
    for d, (_, levels) in enumerate(instance.columns):
        if levels is not None:
            U[:, d] = levels[np.argmin(np.abs(U[:, d, None] - levels), axis=1)]
    return U


def _moving(instance: Instance) -> Array:
    """One for coordinates that may have any value, zero for those with levels."""
    return np.array([float(column.levels is None) for column in instance.columns])
