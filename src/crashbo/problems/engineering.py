"""Engineering design problems: several measured quantities, each of which makes the design fail beyond a threshold.

May import the public API, from the modules that define it, and `problem`.

Constraints that are implied by the parameter bounds are left out.
"""

from collections.abc import Mapping
from math import hypot, pi, sqrt
from typing import Any

from crashbo.problems.problem import Limit, Problem
from crashbo.search.space import Float, Int

_PLATE = 0.0625  # inch: thickness of rolled plates comes in multiples of it
_LOAD, _SPAN = 6000.0, 14.0  # of the welded beam, in lbf and inch
_YOUNG, _SHEAR = 30e6, 12e6  # its moduli, psi


def _simulate_pressure_vessel(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """A cylinder with two round heads: minimum cost of plate, forging and welds."""
    shell, head = _PLATE * params["shell_plates"], _PLATE * params["head_plates"]
    r, length = params["radius"], params["length"]
    cost = 0.6224 * shell * r * length + 1.7781 * head * r**2 + 3.1661 * shell**2 * length + 19.84 * shell**2 * r
    return cost, {
        "shell_load": 0.0193 * r / shell,
        "head_load": 0.00954 * r / head,
        "volume": pi * r**2 * length + 4.0 / 3.0 * pi * r**3,
    }


def _simulate_welded_beam(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """A bar welded to a wall: minimum cost of bar and weld."""
    h, length = params["weld_thickness"], params["weld_length"]
    t, b = params["bar_height"], params["bar_thickness"]
    cost = 1.10471 * h**2 * length + 0.04811 * t * b * (_SPAN + length)

    # Shear in the weld: primary, and secondary by the moment about the weld's centre.
    arm = hypot(length / 2.0, (h + t) / 2.0)
    inertia = 2.0 * sqrt(2.0) * h * length * (length**2 / 12.0 + ((h + t) / 2.0) ** 2)
    primary = _LOAD / (sqrt(2.0) * h * length)
    secondary = _LOAD * (_SPAN + length / 2.0) * arm / inertia
    shear = sqrt(primary**2 + primary * secondary * length / arm + secondary**2)

    buckling = 4.013 * _YOUNG / (6.0 * _SPAN**2) * t * b**3 * (1.0 - t / (4.0 * _SPAN) * sqrt(_YOUNG / _SHEAR))
    return cost, {
        "shear_stress": shear,
        "bending_stress": 6.0 * _LOAD * _SPAN / (b * t**2),
        "deflection": 4.0 * _LOAD * _SPAN**3 / (_YOUNG * b * t**3),
        "buckling_load": buckling,
        "weld_overhang": h - b,
    }


def _simulate_speed_reducer(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """A gearbox between engine and propeller: minimum weight."""
    x1, x2, x3, x4, x5, x6, x7 = params.values()
    cost = (
        0.7854 * x1 * x2**2 * (3.3333 * x3**2 + 14.9334 * x3 - 43.0934)
        - 1.508 * x1 * (x6**2 + x7**2)
        + 7.4777 * (x6**3 + x7**3)
        + 0.7854 * (x4 * x6**2 + x5 * x7**2)
    )
    return cost, {
        "tooth_bending": 27.0 / (x1 * x2**2 * x3),
        "tooth_contact": 397.5 / (x1 * x2**2 * x3**2),
        "shaft1_deflection": 1.93 * x4**3 / (x2 * x3 * x6**4),
        "shaft1_stress": sqrt((745.0 * x4 / (x2 * x3)) ** 2 + 16.9e6) / (0.1 * x6**3),
        "shaft2_stress": sqrt((745.0 * x5 / (x2 * x3)) ** 2 + 157.5e6) / (0.1 * x7**3),
        "face_ratio": x1 / x2,
        "shaft1_fit": (1.5 * x6 + 1.9) / x4,
        "shaft2_fit": (1.1 * x7 + 1.9) / x5,
    }


def _simulate_tension_spring(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """A coil spring under tension or compression: minimum weight."""
    d, coil, n = params["wire"], params["coil"], params["turns"]
    stress = (4.0 * coil**2 - d * coil) / (12566.0 * (coil * d**3 - d**4)) + 1.0 / (5108.0 * d**2)
    return (n + 2.0) * coil * d**2, {
        "deflection": coil**3 * n / (71785.0 * d**4),
        "shear_stress": stress,
        "surge": 140.45 * d / (coil**2 * n),
    }


PROBLEMS = (
    Problem(
        name="pressure-vessel",
        space={
            "shell_plates": Int(1, 99),
            "head_plates": Int(1, 99),
            "radius": Float(10.0, 200.0),
            "length": Float(10.0, 200.0),
        },
        simulate=_simulate_pressure_vessel,
        limits=(
            Limit("shell_load", 1.0, noise=0.01),
            Limit("head_load", 1.0, noise=0.01),
            Limit("volume", 1_296_000.0, "below", noise=10_000.0),
        ),
        cost_noise=100.0,
        source="B. K. Kannan, S. N. Kramer, An Augmented Lagrange Multiplier Based Method for Mixed Integer Discrete "
        "Continuous Optimization, J. Mechanical Design 116(2), 1994. Thicknesses are whole multiples of 1/16 inch, "
        "1 to 99 of them; the limit on the length, 240, lies outside the box. The literature prints 6059.7143 for this "
        "form, and less (5885.33) only for plates of any thickness.",
        minimum=15.90180078,
        constrained_minimum=6059.714335,
        median_safe_cost=143600.0,
        optimum={"shell_plates": 13, "head_plates": 7, "radius": 42.0984455958, "length": 176.636595844},
    ),
    Problem(
        name="welded-beam",
        space={
            "weld_thickness": Float(0.125, 2.0),
            "weld_length": Float(0.1, 10.0),
            "bar_height": Float(0.1, 10.0),
            "bar_thickness": Float(0.1, 2.0),
        },
        simulate=_simulate_welded_beam,
        limits=(
            Limit("shear_stress", 13_600.0, noise=100.0),
            Limit("bending_stress", 30_000.0, noise=200.0),
            Limit("deflection", 0.25, noise=0.0005),
            Limit("buckling_load", _LOAD, "below", noise=100.0),
            Limit("weld_overhang", 0.0, noise=0.002),
        ),
        cost_noise=0.05,
        source="K. M. Ragsdell, D. T. Phillips, Optimal Design of a Class of Welded Structures Using Geometric "
        "Programming, J. Engineering for Industry 98(3), 1976, in the form of C. A. Coello Coello, Use of a "
        "self-adaptive penalty approach for engineering optimization problems, Computers in Industry 41(2), 2000, "
        "without its cap of 5 on a cost, which is no way to fail. The literature prints 1.724852 for this form, and "
        "2.38 for others, with another moment of inertia of the weld.",
        minimum=0.00850962,
        constrained_minimum=1.72485231,
        median_safe_cost=12.73,
        optimum={
            "weld_thickness": 0.2057296397,
            "weld_length": 3.4704886676,
            "bar_height": 9.0366239107,
            "bar_thickness": 0.2057296398,
        },
    ),
    Problem(
        name="speed-reducer",
        space={
            "face_width": Float(2.6, 3.6),
            "module": Float(0.7, 0.8),
            "teeth": Int(17, 28),
            "shaft1_length": Float(7.3, 8.3),
            "shaft2_length": Float(7.3, 8.3),
            "shaft1_diameter": Float(2.9, 3.9),
            "shaft2_diameter": Float(5.0, 5.5),
        },
        simulate=_simulate_speed_reducer,
        limits=(
            Limit("tooth_bending", 1.0, noise=0.005),
            Limit("tooth_contact", 1.0, noise=0.005),
            Limit("shaft1_deflection", 1.0, noise=0.005),
            Limit("shaft1_stress", 1100.0, noise=5.0),
            Limit("shaft2_stress", 850.0, noise=5.0),
            Limit("face_ratio", 5.0, "below", noise=0.01),
            Limit("shaft1_fit", 1.0, noise=0.002),
            Limit("shaft2_fit", 1.0, noise=0.002),
        ),
        cost_noise=10.0,
        source="J. Golinski, Optimal synthesis problems solved by means of nonlinear programming and random methods, "
        "J. Mechanisms 5, 1970, in the form of T. Ray, Golinski's Speed Reducer Problem Revisited, AIAA Journal 41(3), "
        "2003. Three of its eleven constraints cannot be violated in the box. The literature prints 2994.4711, and "
        "2996.35 where shaft 2 is at least 7.8 long.",
        minimum=2352.44784872,
        constrained_minimum=2994.47106615,
        median_safe_cost=4440.0,
        optimum={
            "face_width": 3.5,
            "module": 0.7,
            "teeth": 17,
            "shaft1_length": 7.3,
            "shaft2_length": 7.715319913,
            "shaft1_diameter": 3.350214667,
            "shaft2_diameter": 5.286654466,
        },
    ),
    Problem(
        name="tension-spring",
        space={"wire": Float(0.05, 0.2), "coil": Float(0.25, 1.3), "turns": Float(2.0, 15.0)},
        simulate=_simulate_tension_spring,
        limits=(
            Limit("deflection", 1.0, "below", noise=0.01),
            Limit("shear_stress", 1.0, noise=0.005),
            Limit("surge", 1.0, "below", noise=0.01),
        ),
        cost_noise=0.0005,
        source="A. D. Belegundu, J. S. Arora, A study of mathematical programming methods for structural optimization, "
        "Int. J. Numerical Methods in Engineering 21(9), 1985; J. S. Arora, Introduction to Optimum Design, 1989. The "
        "literature lets the wire be up to 2 thick, but beyond 0.147 none in the box deflects enough, and from 0.25 on "
        "the formula of the stress breaks down; up to 0.2 the limit on the diameter, 1.5, cannot be passed. It prints "
        "0.012665.",
        minimum=0.0025,
        constrained_minimum=0.01266523,
        median_safe_cost=0.06826,
        optimum={"wire": 0.0516890617678, "coil": 0.3567177562363, "turns": 11.2889647906},
    ),
)
