"""Hidden-constraint problems from the literature: simulations that fail in parts of the space.

May import the public API, from the modules that define it, and `problem`.

Their authors only give the failing region. Where it is an inequality, its left side is the measured quantity here;
where it is a set of intervals, the measured quantity is the distance from the nearest of them.
"""

import math
from collections.abc import Mapping
from math import cos, exp, pi, sin, sqrt
from typing import Any

import numpy as np

from crashbo.problems.problem import Limit, Problem, vector
from crashbo.search.space import Float

_MUELLER = (
    "J. Mueller, M. Day, Surrogate Optimization of Computationally Expensive Black-Box Problems with Hidden "
    "Constraints, INFORMS Journal on Computing 31(4), 2019"
)
_TFAILY = (
    "A. Tfaily, M. Kokkolaras, N. Bartoli, Y. Diouane, Efficient Acquisition Functions for Bayesian Optimization in "
    "the Presence of Hidden Constraints, AIAA Aviation Forum 2023"
)
_READ = "as read from SBArchOpt's description of it"


def _simulate_mueller_ackley(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Ackley's function, whose centre crashes, with many disconnected safe regions."""
    x = vector(params)
    hole = 20.0 * exp(-0.2 * sqrt(float(np.mean(x**2))))
    cost = 20.0 - hole + math.e - exp(float(np.mean(np.cos(2.0 * pi * x))))
    return cost, {"ripple": float(np.sum(x * (np.sin(x) + 0.1))), "off_axis": float(np.min(np.abs(x)))}


def _simulate_mueller_bird(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Mishra's bird function of two parameters; the other two only cause crashes."""
    x = vector(params)
    a, b = x[0], x[1]
    cost = (a - b) ** 2 + exp((1.0 - sin(a)) ** 2) * cos(b) + exp((1.0 - cos(b)) ** 2) * sin(a)
    minus, plus = np.sqrt(np.abs(a - x + 1.0)), np.sqrt(np.abs(a + x + 1.0))
    ripple = np.sum(x * np.sin(minus) * np.cos(plus) + (a + 1.0) * np.sin(plus) * np.cos(minus))
    return cost, {"ripple": float(ripple)}


def _simulate_alimo(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """A bowl on a few islands; the bottom of the bowl lies outside them."""
    x = vector(params)
    cost = float(np.sum((x - np.array([0.19, 0.29])) ** 2)) - 0.048
    return cost, {"ripple": 2.0 / 12.0 + 0.1 * float(np.sum(4.0 * (x - 0.7) ** 2 - 2.0 * np.cos(4.0 * pi * (x - 0.7))))}


def _simulate_tfaily_tooth(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Herbie's tooth with an ellipse cut out, which contains the deepest wells."""
    a, b = params["x1"], params["x2"]
    return -_tooth(a) * _tooth(b), {"ellipse": (a + b) ** 2 / 8.0 + (a - b) ** 2 / 2.0}


def _simulate_tfaily_rosenbrock(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Rosenbrock's valley crossed by slabs that crash; the optimum is a corner of four of them."""
    x = vector(params)
    cost = float(np.sum((1.0 - x[:-1]) ** 2 + 100.0 * (x[1:] - x[:-1] ** 2) ** 2))
    return cost, {"distance": float(np.min(np.abs(x - np.array([0.5, 0.5, 1.5, 1.5]))))}


def _tooth(z: float) -> float:
    return exp(-((z - 1.0) ** 2)) + exp(-0.8 * (z + 1.0) ** 2) - 0.05 * sin(8.0 * (z + 0.1))


PROBLEMS = (
    Problem(
        name="mueller-ackley5d",
        space={f"x{d + 1}": Float(-10.0, 10.0) for d in range(5)},
        simulate=_simulate_mueller_ackley,
        limits=(Limit("ripple", 0.0, noise=0.1), Limit("off_axis", 0.2, "below", noise=0.01)),
        cost_noise=0.05,
        source=f"{_MUELLER}, problem 1 of its supplement, {_READ}. No optimum is printed; ours is by constrained "
        "descent from 400 starts in each kind of orthant.",
        minimum=0.0,
        constrained_minimum=6.01547094,
        median_safe_cost=14.79,
        optimum={"x1": -3.06725907178, "x2": -0.2, "x3": -0.2, "x4": -0.2, "x5": -0.2},
    ),
    Problem(
        name="mueller-bird4d",
        space={f"x{d + 1}": Float(-3.0 * pi, 3.0 * pi) for d in range(4)},
        simulate=_simulate_mueller_bird,
        limits=(Limit("ripple", 5.0, noise=0.1),),
        cost_noise=0.5,
        source=f"{_MUELLER}, problem 2 of its supplement, {_READ}. The minimum of the cost is safe for some x3 and x4.",
        minimum=-106.764536749,
        constrained_minimum=-106.764536749,
        median_safe_cost=34.55,
        optimum={"x1": 4.70104313, "x2": 3.15293852, "x3": 9.35044253, "x4": -1.40725864},
    ),
    Problem(
        name="alimo2d",
        space={"x1": Float(0.0, 1.0), "x2": Float(0.0, 1.0)},
        simulate=_simulate_alimo,
        limits=(Limit("ripple", 0.0, noise=0.002),),
        cost_noise=0.001,
        source="S. R. Alimo, P. Beyhaghi, T. R. Bewley, Delaunay-Based Global Optimization in Nonconvex Domains "
        f"Defined by Hidden Constraints, Evolutionary and Deterministic Methods for Design, 2019, {_READ}. "
        "No constrained optimum is printed; ours is by constrained descent from 586 starts.",
        minimum=-0.048,
        constrained_minimum=-0.04707343,
        median_safe_cost=0.253,
        optimum={"x1": 0.1990238933, "x2": 0.2609287494},
    ),
    Problem(
        name="tfaily-tooth2d",
        space={"x1": Float(-2.0, 2.0), "x2": Float(-2.0, 2.0)},
        simulate=_simulate_tfaily_tooth,
        limits=(Limit("ellipse", 1.0, "below", noise=0.01),),
        cost_noise=0.01,
        source=f"{_TFAILY}, problem 1 (the ellipse), {_READ}; the cost is that of H. K. H. Lee, R. B. Gramacy, C. "
        "Linkletter, G. A. Gray, Optimization Subject to Hidden Constraints via Statistical Emulation, Pacific Journal "
        "of Optimization 7(3), 2011, whose factor of the sine is 0.05 (SBArchOpt has 0.5; with "
        "that the answers are others).",
        minimum=-1.12687175,
        constrained_minimum=-1.0933964,
        median_safe_cost=-0.6151,
        optimum={"x1": 1.1366537, "x2": -1.0408259},
    ),
    Problem(
        name="tfaily-rosenbrock4d",
        space={f"x{d + 1}": Float(-2.048, 2.048) for d in range(4)},
        simulate=_simulate_tfaily_rosenbrock,
        limits=(Limit("distance", 0.5, "below", noise=0.01),),
        cost_noise=1.0,
        source=f"{_TFAILY}, problem 3, {_READ}: it fails with x1 or x2 in (0, 1), or x3 or x4 in (1, 2). Measured here "
        "is the distance from the nearest slab's middle.",
        minimum=0.0,
        constrained_minimum=0.0,
        median_safe_cost=1565.0,
        optimum={f"x{d + 1}": 1.0 for d in range(4)},
    ),
)
