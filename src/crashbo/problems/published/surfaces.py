"""Surfaces on the unit square with forbidden regions; nothing is told but whether a trial failed.

May import the public API, from the modules that define it, and `problem`.

u are the two parameters; the surfaces are functions of p, which spans what is usual for them.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crashbo.problems.problem import Array, Episode, Problem, vector
from crashbo.problems.publication import Published
from crashbo.search.space import Float

_SOURCE = (
    "Anubis: Bayesian optimization with unknown feasibility constraints for scientific experimentation, Digital "
    "Discovery, 2025, and its repository aspuru-guzik-group/atlas-unknown-constraints (MIT)."
)


def _branin(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    a, b = 15.0 * vector(params) - np.array([5.0, 0.0])
    bend = b - 5.1 / (4.0 * math.pi**2) * a**2 + 5.0 / math.pi * a - 6.0
    return float(bend**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(a) + 10.0), {}


def _styblinski(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    p = 10.0 * vector(params) - 5.0
    return float(np.sum(p**4 - 16.0 * p**2 + 5.0 * p)) / 2.0, {}


def _hyperellips(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    p = 10.0 * vector(params) - 5.0
    return float(p[0] ** 2 + 2.0 * p[1] ** 2), {}


def _in_two_discs(u: Array) -> bool:
    discs = ((0.12389382, 0.81833333, 0.2), (0.961652, 0.165, 0.35))
    return any(math.hypot(u[0] - a, u[1] - b) < radius for a, b, radius in discs)


def _in_corners(u: Array) -> bool:
    low, high = u < 0.4, u > 0.6
    return bool(u.sum() < 0.4 or high.all() or (low[0] and high[1]) or (high[0] and low[1]))


def _in_twenty_discs(u: Array) -> bool:
    return bool(np.any(np.hypot(*(_CENTRES - u).T) < _RADII))


_LEGACY = np.random.RandomState(42)  # as the discs were drawn
_CENTRES = np.array([_LEGACY.uniform(0.0, 1.0, 2) for _ in range(20)])
_RADII = np.array([_LEGACY.uniform(0.05, 0.15, 1) for _ in range(20)])[:, 0]
_FORBIDDEN = {"branin": _in_two_discs, "styblinski": _in_corners, "hyperellips": _in_twenty_discs}


def _run(problem: Problem, params: Mapping[str, Any], rng: np.random.Generator | None) -> Episode:
    """Without noise."""
    cost, _ = problem.simulate(params)
    return Episode(cost, {}, "forbidden" if _FORBIDDEN[problem.name](vector(params)) else "")


def _surface(
    name: str,
    simulate: Callable[[Mapping[str, Any]], tuple[float, dict[str, float]]],
    best: float,
    optimum: tuple[float, float],
    median: float,
) -> Problem:
    return Problem(
        name=name,
        space={"u0": Float(0.0, 1.0), "u1": Float(0.0, 1.0)},
        simulate=simulate,
        limits=(),
        cost_noise=0.0,
        source=_SOURCE,
        minimum=best,
        constrained_minimum=best,
        optimum=dict(zip(("u0", "u1"), optimum, strict=True)),
        machine=_run,
        unmeasured=("forbidden",),
        median_safe_cost=median,
        published=Published("gap", 100, at=(25, 50, 100), name=name),
    )


PROBLEMS = (
    _surface("branin", _branin, 0.39788736, (0.5427728, 0.1516667), 55.7),
    _surface("styblinski", _styblinski, -78.33233141, (0.2096466, 0.2096466), -21.3),
    _surface("hyperellips", _hyperellips, 0.0, (0.5, 0.5), 25.0),
)
