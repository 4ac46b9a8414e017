"""Constrained problems from the literature, with measured quantities that make the machine crash.

May import the public API, from the modules that define it, and `problem`.
"""

import math
from collections.abc import Mapping
from math import cos, exp, pi, sin
from typing import Any

from crashbo.problems.problem import Limit, Problem
from crashbo.search.space import Float

_GARDNER = (
    "J. R. Gardner, M. J. Kusner, Z. E. Xu, K. Q. Weinberger, J. P. Cunningham, Bayesian Optimization with "
    "Inequality Constraints, ICML 2014"
)


def _simulate_gardner1(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Gardner's first simulation: two diagonal bands crash."""
    x, y = params["x"], params["y"]
    return cos(2.0 * x) * cos(y) + sin(x), {"c": cos(x) * cos(y) - sin(x) * sin(y)}


def _simulate_gardner2(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Gardner's second simulation: all but two small spots crash."""
    x, y = params["x"], params["y"]
    return sin(x) + y, {"c": sin(x) * sin(y)}


def _simulate_lsq(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Linear cost, a sinusoidal and a quadratic constraint."""
    x1, x2 = params["x1"], params["x2"]
    sinusoid = 1.5 - x1 - 2.0 * x2 - 0.5 * sin(2.0 * pi * (x1**2 - 2.0 * x2))
    return x1 + x2, {"sinusoid": sinusoid, "square": x1**2 + x2**2}


def _simulate_branin_disk(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Branin's function within a disk: two of its three minima crash."""
    x, y = params["x"], params["y"]
    valley = y - 5.1 / (4.0 * pi**2) * x**2 + 5.0 / pi * x - 6.0
    cost = valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * cos(x) + 10.0
    return cost, {"distance": (x - 2.5) ** 2 + (y - 7.5) ** 2}


def _simulate_townsend(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """A rough cost within the outline of a heart."""
    x, y = params["x"], params["y"]
    t = math.atan2(x, y)
    heart = 2.0 * cos(t) - 0.5 * cos(2.0 * t) - 0.25 * cos(3.0 * t) - 0.125 * cos(4.0 * t)
    cost = -(cos((x - 0.1) * y) ** 2) - x * sin(3.0 * x + y)
    return cost, {"outline": x**2 + y**2 - heart**2 - (2.0 * sin(t)) ** 2}


def _simulate_mishra_bird(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Mishra's bird function within a disk."""
    x, y = params["x"], params["y"]
    cost = sin(y) * exp((1.0 - cos(x)) ** 2) + cos(x) * exp((1.0 - sin(y)) ** 2) + (x - y) ** 2
    return cost, {"distance": (x + 5.0) ** 2 + (y + 5.0) ** 2}


def _simulate_simionescu(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """A saddle within the outline of a flower; two best points, symmetric."""
    x, y = params["x"], params["y"]
    # The source has atan(x / y); eight times that angle is the same in every quadrant.
    return 0.1 * x * y, {"outline": x**2 + y**2 - (1.0 + 0.2 * cos(8.0 * math.atan2(x, y))) ** 2}


def _simulate_rosenbrock_cubic_line(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Rosenbrock's valley between a cubic and a line, which meet at the optimum."""
    x, y = params["x"], params["y"]
    cost = (1.0 - x) ** 2 + 100.0 * (y - x**2) ** 2
    return cost, {"cubic": (x - 1.0) ** 3 - y + 1.0, "line": x + y - 2.0}


def _simulate_gomez_levy(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """The six-hump camel on a field of islands; one of its two best points is safe."""
    x, y = params["x"], params["y"]
    cost = 4.0 * x**2 - 2.1 * x**4 + x**6 / 3.0 + x * y - 4.0 * y**2 + 4.0 * y**4
    return cost, {"ripple": -sin(4.0 * pi * x) + 2.0 * sin(2.0 * pi * y) ** 2}


PROBLEMS = (
    Problem(
        name="gardner1",
        space={"x": Float(0.0, 6.0), "y": Float(0.0, 6.0)},
        simulate=_simulate_gardner1,
        limits=(Limit("c", 0.5, noise=0.01),),
        cost_noise=0.01,
        source=f"{_GARDNER}, simulation 1.",
        minimum=-2.0,
        constrained_minimum=-2.0,
        median_safe_cost=0.03676,
        optimum={"x": 1.5 * pi, "y": 0.0},
    ),
    Problem(
        name="gardner2",
        space={"x": Float(0.0, 6.0), "y": Float(0.0, 6.0)},
        simulate=_simulate_gardner2,
        limits=(Limit("c", -0.95, noise=0.002),),
        cost_noise=0.01,
        source=f"{_GARDNER}, simulation 2. The optimum, at sin(x) = -1, is arcsin(0.95) - 1 exactly.",
        minimum=-1.0,
        constrained_minimum=math.asin(0.95) - 1.0,
        median_safe_cost=5.422,
        optimum={"x": 1.5 * pi, "y": 1.2532358976},
    ),
    Problem(
        name="lsq",
        space={"x1": Float(0.0, 1.0), "x2": Float(0.0, 1.0)},
        simulate=_simulate_lsq,
        limits=(Limit("sinusoid", 0.0, noise=0.01), Limit("square", 1.5, noise=0.01)),
        cost_noise=0.01,
        source="R. B. Gramacy, G. A. Gray, S. Le Digabel, H. K. H. Lee, P. Ranjan, G. Wells, S. M. Wild, Modeling an "
        "Augmented Lagrangian for Blackbox Constrained Optimization, Technometrics 58(1), 2016 (its toy problem; also "
        "in the papers of Gelbart and of Hernandez-Lobato). They print 0.5998 at (0.1954, 0.4044); the first "
        "place is 0.1951, 0.4047 to more digits.",
        minimum=0.0,
        constrained_minimum=0.59978805,
        median_safe_cost=1.248,
        optimum={"x1": 0.1951226876, "x2": 0.4046653645},
    ),
    Problem(
        name="branin-disk",
        space={"x": Float(-5.0, 10.0), "y": Float(0.0, 15.0)},
        simulate=_simulate_branin_disk,
        limits=(Limit("distance", 50.0, noise=0.5),),
        cost_noise=0.1,
        source="M. A. Gelbart, J. Snoek, R. P. Adams, Bayesian Optimization with Unknown Constraints, UAI 2014.",
        minimum=10.0 / (8.0 * pi),
        constrained_minimum=10.0 / (8.0 * pi),
        median_safe_cost=31.77,
        optimum={"x": pi, "y": 2.275},
    ),
    Problem(
        name="townsend",
        space={"x": Float(-2.25, 2.25), "y": Float(-2.5, 1.75)},
        simulate=_simulate_townsend,
        limits=(Limit("outline", 0.0, noise=0.01),),
        cost_noise=0.01,
        source="A. Townsend, Constrained optimization in Chebfun, chebfun.org, 2014, as modified in Wikipedia's "
        "'Test functions for optimization', which prints -2.0239884 at (2.0052938, 1.1944509); so do we.",
        minimum=-3.19972407,
        constrained_minimum=-2.02398836,
        median_safe_cost=-0.7487,
        optimum={"x": 2.0052927, "y": 1.1944529},
    ),
    Problem(
        name="mishra-bird",
        space={"x": Float(-10.0, 0.0), "y": Float(-6.5, 0.0)},
        simulate=_simulate_mishra_bird,
        limits=(Limit("distance", 25.0, noise=0.1),),
        cost_noise=0.1,
        source="S. K. Mishra, Some New Test Functions for Global Optimization, MPRA 2718, 2006, constrained as in "
        "Wikipedia's 'Test functions for optimization'.",
        minimum=-106.764536749,
        constrained_minimum=-106.764536749,
        median_safe_cost=11.88,
        optimum={"x": -3.1302468, "y": -1.5821422},
    ),
    Problem(
        name="simionescu",
        space={"x": Float(-1.25, 1.25), "y": Float(-1.25, 1.25)},
        simulate=_simulate_simionescu,
        limits=(Limit("outline", 0.0, noise=0.01),),
        cost_noise=0.001,
        source="P. A. Simionescu, Computer Aided Graphing and Simulation Tools for AutoCAD Users, CRC Press, 2014.",
        minimum=-0.15625,
        constrained_minimum=-0.072,
        median_safe_cost=-0.0003436,
        optimum={"x": 0.848528137, "y": -0.848528137},
    ),
    Problem(
        name="rosenbrock-cubic-line",
        space={"x": Float(-1.5, 1.5), "y": Float(-0.5, 2.5)},
        simulate=_simulate_rosenbrock_cubic_line,
        limits=(Limit("cubic", 0.0, noise=0.01), Limit("line", 0.0, noise=0.01)),
        cost_noise=0.1,
        source="P. A. Simionescu, D. Beale, New Concepts in Graphic Visualization of Objective Functions, ASME DETC "
        "2002.",
        minimum=0.0,
        constrained_minimum=0.0,
        median_safe_cost=72.31,
        optimum={"x": 1.0, "y": 1.0},
    ),
    Problem(
        name="gomez-levy",
        space={"x": Float(-1.0, 0.75), "y": Float(-1.0, 1.0)},
        simulate=_simulate_gomez_levy,
        limits=(Limit("ripple", 1.5, noise=0.01),),
        cost_noise=0.01,
        source="S. Gomez, A. V. Levy, The tunnelling method for solving the constrained global optimization problem "
        "with several non-connected feasible regions, Numerical Analysis, LNM 909, 1982.",
        minimum=-1.03162845349,
        constrained_minimum=-1.03162845349,
        median_safe_cost=0.2408,
        optimum={"x": 0.08984201, "y": -0.7126564},
    ),
)
