"""The paper's benchmarks, and its one-dimensional example.

May import the public API, from the modules that define it, and `problem`.

All are defined on the unit cube with one constraint, g(x) = prod_d sin(2 pi x_d), and crash where g > 0: half of the
cube, in cells like those of a chessboard. The noise on f and on g is 0.01.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from crashbo.problems.problem import Array, Limit, Problem, Simulation, vector
from crashbo.problems.publication import Published
from crashbo.search.space import Float

_PAPER = (
    "A. Marco, D. Baumann, M. Khadiv, P. Hennig, L. Righetti, S. Trimpe, Robot Learning with Crash Constraints, "
    "IEEE Robotics and Automation Letters 6(2), 2021"
)
_NOISE = 0.01
_COMPARED = Published("gap", 100, at=(25, 50, 100), has_start=True)  # of the three that the paper compares methods on

# Hartmann's constants: weights alpha, steepness A and centres P of the four wells.
_HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN_A = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
        [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
        [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
        [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
    ]
)


def _on_cube(
    name: str,
    simulate: Simulation,
    *,
    minimum: float,
    constrained_minimum: float,
    median_safe_cost: float,
    optimum: list[float],
    source: str,
    published: Published | None = None,
) -> Problem:
    return Problem(
        name=name,
        space={f"x{d + 1}": Float(0.0, 1.0) for d in range(len(optimum))},
        simulate=simulate,
        limits=(Limit("g", 0.0, noise=_NOISE),),
        cost_noise=_NOISE,
        source=source,
        minimum=minimum,
        constrained_minimum=constrained_minimum,
        optimum={f"x{d + 1}": x for d, x in enumerate(optimum)},
        median_safe_cost=median_safe_cost,
        published=published,
    )


def _simulate_toy(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """A damped cosine in one dimension; its best cell crashes."""
    x = float(params["x1"])
    return math.cos(6.0 * math.pi * x) * math.exp(-x), {"g": _chessboard(vector(params))}


def _simulate_eggcrate(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """The egg crate as the authors ran it: the optimum lies inside a safe cell."""
    x = vector(params)
    return _eggcrate(np.array([-5.0, -2.5]) + 7.5 * x), {"g": _chessboard(x)}


def _simulate_eggcrate_corner(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """The egg crate as in the paper's text: the optimum lies where four cells meet."""
    x = vector(params)
    return _eggcrate(-5.0 + 10.0 * x), {"g": _chessboard(x)}


def _simulate_hartmann(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Hartmann's function in six dimensions: four wells, the deepest of them safe."""
    x = vector(params)
    distances = np.sum(_HARTMANN_A * (x - _HARTMANN_P) ** 2, axis=1)
    return -float(_HARTMANN_ALPHA @ np.exp(-distances)), {"g": _chessboard(x)}


def _simulate_michalewicz(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Michalewicz's function in ten dimensions: narrow valleys, the optimum on the crash boundary."""
    x = vector(params)
    i = np.arange(1, len(x) + 1)
    return -float(np.sum(np.sin(np.pi * x) * np.sin(i * np.pi * x**2) ** 20)), {"g": _chessboard(x)}


def _eggcrate(u: Array) -> float:
    return float(np.sum(u**2 + 25.0 * np.sin(u) ** 2))


def _chessboard(x: Array) -> float:
    """prod_d sin(2 pi x_d), exactly 0 where a 2 x_d is an integer: optima lie there, and must not crash by rounding."""
    whole = np.round(2.0 * x)
    return float(np.prod(np.where(whole % 2 == 0, 1.0, -1.0) * np.sin(np.pi * (2.0 * x - whole))))


PROBLEMS = (
    _on_cube(
        "toy1d",
        _simulate_toy,
        minimum=-0.84767321,
        constrained_minimum=-math.exp(-0.5),
        median_safe_cost=-0.01407,
        optimum=[0.5],
        source=f"{_PAPER}: the flavour of its one-dimensional example. f = cos(6 pi x) exp(-x) is the authors' "
        "one-dimensional function; they print -0.6074 at 0.4972 for its minimum, a local one that crashes here.",
    ),
    _on_cube(
        "eggcrate2d",
        _simulate_eggcrate,
        minimum=0.0,
        constrained_minimum=0.0,
        median_safe_cost=38.62,
        optimum=[2 / 3, 1 / 3],
        published=_COMPARED,
        source=f"{_PAPER}; box as in the authors' code, u = (-5 + 7.5 x1, -2.5 + 7.5 x2), without its offset of -98.",
    ),
    _on_cube(
        "eggcrate2d-corner",
        _simulate_eggcrate_corner,
        minimum=0.0,
        constrained_minimum=0.0,
        median_safe_cost=41.02,
        optimum=[0.5, 0.5],
        source=f"{_PAPER}; the symmetric box of its text, u = -5 + 10 x.",
    ),
    _on_cube(
        "hartmann6d",
        _simulate_hartmann,
        minimum=-3.32236801,
        constrained_minimum=-3.32236801,
        median_safe_cost=-0.0955,
        optimum=[0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053],
        published=_COMPARED,
        source=f"{_PAPER}; on the standard scale (the authors' code takes ten times that).",
    ),
    _on_cube(
        "michalewicz10d",
        _simulate_michalewicz,
        minimum=-9.66015172,
        constrained_minimum=-9.66015172,
        median_safe_cost=-1.004,
        optimum=[0.70120661, 0.5, 0.40902552, 0.61212852, 0.54764254, 0.5, 0.46295435, 0.5589797, 0.52703122, 0.5],
        published=_COMPARED,
        source=f"{_PAPER}. The minimiser has x2 = x6 = x10 = 0.5, where g = 0.",
    ),
)
