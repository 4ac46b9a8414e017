"""Twelve crash problems for choosing defaults, so that the paper's benchmarks are reserved for validation.

The present default does not fully respect that separation: the calibration of P(safe) (search/calibration.py) was added
after looking at crashes on the paper's benchmarks, and a few settings of the leaps, and the box of the first trials,
were compared there, too.

Smooth and rugged costs, optima inside and on the boundary, several safe regions, 2 to 8 dimensions, crash shares of
10 to 70 %. Noise 0.01 on the cost and on the constraint. Constrained minima come from a sampled local search.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo import Float
from crashbo.problems.problem import Limit, Problem, vector

Array = NDArray[np.float64]
TAU = 2.0 * np.pi


class Recipe(NamedTuple):
    dimension: int
    cost: Callable[[Array], Array]  # (m, D) -> (m,)
    constraint: Callable[[Array], Array]
    threshold: float


def _ackley(X: Array) -> Array:
    far = -20.0 * np.exp(-0.2 * np.sqrt(np.mean((X - 0.3) ** 2, axis=1) * 100.0))
    return far - np.exp(np.mean(np.cos(3.0 * TAU * (X - 0.3)), axis=1)) + 20.0 + np.e


def _levy(X: Array) -> Array:
    z = 1.0 + 6.0 * (X - 0.35)
    steps = np.sum((z[:, :-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * z[:, :-1] + 1.0) ** 2), axis=1)
    return (np.sin(np.pi * z[:, 0]) ** 2 + steps + (z[:, -1] - 1.0) ** 2) / 10.0


def _branin(X: Array) -> Array:
    u, v = 15.0 * X[:, 0] - 5.0, 15.0 * X[:, 1]
    bowl = (v - 5.1 / (4.0 * np.pi**2) * u**2 + 5.0 / np.pi * u - 6.0) ** 2
    return (bowl + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(u) + 10.0) / 10.0


def _valley(X: Array) -> Array:
    u = 2.0 * X
    return np.sum(100.0 * ((u[:, 1:] - u[:, :-1] ** 2) / 4.0) ** 2 + (1.0 - u[:, :-1]) ** 2, axis=1) / 10.0


def _rastrigin(X: Array) -> Array:
    u = X - np.array([0.2, 0.35, 0.7])
    return np.sum((6.0 * u) ** 2 - 3.0 * np.cos(2.0 * TAU * u) + 3.0, axis=1) / 3.0


def _rugged(X: Array) -> Array:
    steps = np.arange(6) % 3 + 1
    return -np.sum(np.sin(np.pi * X) * np.sin(steps * np.pi * X**2) ** 6, axis=1)


def _wells(X: Array) -> Array:
    centres = np.random.default_rng(5).random((6, X.shape[1]))
    depths = np.array([3.0, 2.85, 2.6, 2.3, 2.0, 1.5])
    return -np.sum(depths * np.exp(-4.0 * np.sum((X[:, None] - centres) ** 2, axis=2)), axis=1)


RECIPES = {
    "bound2d": Recipe(2, lambda X: 10.0 * np.sum((X - [0.8, 0.7]) ** 2, axis=1), lambda X: X.sum(axis=1), 1.2),
    "ackley4d": Recipe(4, _ackley, lambda X: np.sum((X - 0.45) ** 2, axis=1), 0.33),
    "levy5d": Recipe(5, _levy, lambda X: np.sin(0.8 * TAU * X).mean(axis=1), 0.15),
    "sphere8d": Recipe(
        8,
        lambda X: np.sum(np.arange(1, 9) * (X - 0.55) ** 2, axis=1),
        lambda X: np.sum((X - 0.4) ** 2, axis=1),
        0.55,
    ),
    "branin2d": Recipe(
        2, _branin, lambda X: 0.05 * np.sin(12.0 * X[:, 0]) - np.sum((X - [0.5, 0.3]) ** 2, axis=1), -0.09
    ),
    "valley4d": Recipe(4, _valley, lambda X: X.sum(axis=1) + 0.3 * np.sin(6.0 * X[:, 0]), 1.75),
    "cells3d": Recipe(3, _rastrigin, lambda X: np.prod(np.sin(TAU * X + 0.5), axis=1), 0.05),
    "plateau3d": Recipe(
        3,
        lambda X: -5.0 * np.exp(-12.0 * np.sum((X - [0.8, 0.8, 0.2]) ** 2, axis=1)),
        lambda X: np.abs(X - 0.5).max(axis=1) + 0.1 * np.sin(9.0 * X[:, 1]),
        0.47,
    ),
    "rugged6d": Recipe(
        6, _rugged, lambda X: np.cos(3.0 * X).mean(axis=1) + 0.2 * np.sin(8.0 * X[:, 0] * X[:, 1]), 0.35
    ),
    "cells2d": Recipe(
        2,
        lambda X: 10.0 * np.sum((X - [0.3, 0.75]) ** 2, axis=1) + 2.0 * np.sum(np.sin(9.0 * X) ** 2, axis=1),
        lambda X: np.sin(1.5 * TAU * X[:, 0]) * np.sin(TAU * X[:, 1]),
        0.1,
    ),
    "wells5d": Recipe(5, _wells, lambda X: np.prod(np.cos(5.0 * X + np.arange(5)), axis=1), 0.0),
    "meeting2d": Recipe(
        2,
        lambda X: (
            20.0 * np.sum((X - [0.4, 0.6]) ** 2, axis=1) + 2.0 * np.sum(np.sin(12.0 * (X - [0.4, 0.6])) ** 2, axis=1)
        ),
        lambda X: np.sin(9.0 * (X[:, 0] - 0.4)) * np.sin(7.0 * (X[:, 1] - 0.6)),
        0.0,
    ),
}


@cache
def get(name: str) -> Problem:
    """The problem of that name."""
    recipe = RECIPES[name]
    low = _constrained_minimum(recipe)
    return Problem(
        name=name,
        space={f"x{d + 1}": Float(0.0, 1.0) for d in range(recipe.dimension)},
        simulate=partial(_simulate, name),
        limits=(Limit("g", recipe.threshold, noise=0.01),),
        cost_noise=0.01,
        source="made for tuning crashbo's defaults",
        minimum=low,
        constrained_minimum=low,
    )


def _simulate(name: str, params: dict[str, float]) -> tuple[float, dict[str, float]]:
    x = vector(params)[None, :]
    return float(RECIPES[name].cost(x)[0]), {"g": float(RECIPES[name].constraint(x)[0])}


def _constrained_minimum(recipe: Recipe) -> float:
    """The lowest safe cost that a long sampled search finds."""
    rng = np.random.default_rng(0)

    def safe_cost(X: Array) -> Array:
        return np.where(recipe.constraint(X) <= recipe.threshold, recipe.cost(X), np.inf)

    X = rng.random((200_000, recipe.dimension))
    cost = safe_cost(X)
    x, best, step = X[np.argmin(cost)], cost.min(), 0.2
    for _ in range(300):
        moves = rng.standard_normal((500, recipe.dimension)) * (rng.random((500, recipe.dimension)) < 0.5)
        Z = np.clip(x + step * moves, 0.0, 1.0)
        cost_z = safe_cost(Z)
        if cost_z.min() < best:
            x, best = Z[np.argmin(cost_z)], cost_z.min()
        else:
            step *= 0.95
    return float(best)
