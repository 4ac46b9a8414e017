"""Problems of two and three goals from the literature, where what violates a constraint crashes and gives no data.

All goals are minimised. `g` is what a machine would measure, one number per constraint: it crashes above 0. `reference`
is the usual one of each problem, or a round number beyond its front.

ZDT: Zitzler, Deb, Thiele 2000, here in four dimensions, with a crash region that holds part of the front. DTLZ2: Deb et
al. 2005, likewise. C2-DTLZ2: Jain, Deb 2014. SRN, TNK, OSY, BNH: Deb 2001, section 8. Welded beam: Deb, Sundar 2006.
Disc brake, four bar truss, car side impact: Tanabe, Ishibuchi 2020.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi, sin, sqrt

import numpy as np

Vector = np.ndarray


@dataclass(frozen=True)
class GoalProblem:
    """Goals and constraints of a point in the units of `low` and `high`."""

    name: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    reference: tuple[float, ...]
    evaluate: Callable[[Vector], tuple[list[float], list[float]]]

    @property
    def dimension(self) -> int:
        """Of its space."""
        return len(self.low)


def _zdt(number: int) -> Callable[[Vector], tuple[list[float], list[float]]]:
    def evaluate(x: Vector) -> tuple[list[float], list[float]]:
        f1, g = x[0], 1.0 + 9.0 * float(np.mean(x[1:]))
        shape = {1: 1.0 - sqrt(f1 / g), 2: 1.0 - (f1 / g) ** 2, 3: 1.0 - sqrt(f1 / g) - f1 / g * sin(10.0 * pi * f1)}
        # A machine that is driven hard in the middle of the front trips, the more easily the better it is tuned.
        load = 1.0 - ((x[0] - 0.55) / 0.2) ** 2 - float(np.mean(x[1:]) / 0.5) ** 2
        return [f1, g * shape[number]], [load]

    return evaluate


def _dtlz2(goals: int, crash: str) -> Callable[[Vector], tuple[list[float], list[float]]]:
    def evaluate(x: Vector) -> tuple[list[float], list[float]]:
        g = float(np.sum((x[goals - 1 :] - 0.5) ** 2))
        f = [1.0 + g] * goals
        for i in range(goals):
            for j in range(goals - 1 - i):
                f[i] *= cos(0.5 * pi * x[j])
            if i:
                f[i] *= sin(0.5 * pi * x[goals - 1 - i])
        if crash == "c2":
            r = 0.2 if goals == 2 else 0.4
            corner = min(
                (f[i] - 1.0) ** 2 + sum(f[j] ** 2 for j in range(goals) if j != i) - r**2 for i in range(goals)
            )
            middle = sum((v - 1.0 / sqrt(goals)) ** 2 for v in f) - r**2
            return f, [min(corner, middle)]
        return f, [1.0 - ((x[0] - 0.5) / 0.2) ** 2 - ((x[-1] - 0.5) / 0.3) ** 2]

    return evaluate


def _srn(x: Vector) -> tuple[list[float], list[float]]:
    f = [2.0 + (x[0] - 2.0) ** 2 + (x[1] - 1.0) ** 2, 9.0 * x[0] - (x[1] - 1.0) ** 2]
    return f, [x[0] ** 2 + x[1] ** 2 - 225.0, x[0] - 3.0 * x[1] + 10.0]


def _tnk(x: Vector) -> tuple[list[float], list[float]]:
    ripple = 0.1 * cos(16.0 * np.arctan2(x[0], x[1]))
    return [x[0], x[1]], [1.0 + ripple - x[0] ** 2 - x[1] ** 2, (x[0] - 0.5) ** 2 + (x[1] - 0.5) ** 2 - 0.5]


def _bnh(x: Vector) -> tuple[list[float], list[float]]:
    f = [4.0 * x[0] ** 2 + 4.0 * x[1] ** 2, (x[0] - 5.0) ** 2 + (x[1] - 5.0) ** 2]
    return f, [(x[0] - 5.0) ** 2 + x[1] ** 2 - 25.0, 7.7 - (x[0] - 8.0) ** 2 - (x[1] + 3.0) ** 2]


def _osy(x: Vector) -> tuple[list[float], list[float]]:
    f1 = -(25.0 * (x[0] - 2) ** 2 + (x[1] - 2) ** 2 + (x[2] - 1) ** 2 + (x[3] - 4) ** 2 + (x[4] - 1) ** 2)
    g = [
        2.0 - x[0] - x[1],
        x[0] + x[1] - 6.0,
        x[1] - x[0] - 2.0,
        x[0] - 3.0 * x[1] - 2.0,
        (x[2] - 3.0) ** 2 + x[3] - 4.0,
        4.0 - (x[4] - 3.0) ** 2 - x[5],
    ]
    return [f1, float(np.sum(x**2))], g


def _welded_beam(x: Vector) -> tuple[list[float], list[float]]:
    h, length, t, b = x
    cost = 1.10471 * h**2 * length + 0.04811 * t * b * (14.0 + length)
    primary = 6000.0 / (sqrt(2.0) * h * length)
    arm = sqrt(0.25 * (length**2 + (h + t) ** 2))
    second = (
        6000.0 * (14.0 + 0.5 * length) * arm / (2.0 * 0.707 * h * length * (length**2 / 12.0 + 0.25 * (h + t) ** 2))
    )
    shear = sqrt(primary**2 + second**2 + length * primary * second / arm)
    buckling = 64746.022 * (1.0 - 0.0282346 * t) * t * b**3
    g = [shear / 13600.0 - 1.0, 504000.0 / (t**2 * b) / 30000.0 - 1.0, h - b, 6000.0 / buckling - 1.0]
    return [cost, 2.1952 / (t**3 * b)], g


def _disc_brake(x: Vector) -> tuple[list[float], list[float]]:
    inner, outer, force, plates = x
    ring = outer**2 - inner**2
    cube = outer**3 - inner**3
    f = [4.9e-5 * ring * (plates - 1.0), 9.82e6 * ring / (force * plates * cube)]
    g = [
        20.0 - (outer - inner),
        force / (3.14 * ring) - 0.4,
        2.22e-3 * force * cube / ring**2 - 1.0,
        900.0 - 2.66e-2 * force * plates * cube / ring,
    ]
    return f, g


def _truss(x: Vector) -> tuple[list[float], list[float]]:
    length, force, young = 200.0, 10.0, 2e5
    volume = length * (2.0 * x[0] + sqrt(2.0) * x[1] + sqrt(x[2]) + x[3])
    joint = force * length / young * (2.0 / x[0] + 2.0 * sqrt(2.0) / x[1] - 2.0 * sqrt(2.0) / x[2] + 2.0 / x[3])
    return [volume / 1000.0, 100.0 * joint], [1.6 - x[0] * x[3] / x[1] + 0.1 * (x[2] - 2.0)]


def _car_side(x: Vector) -> tuple[list[float], list[float]]:
    x1, x2, x3, x4, x5, x6, x7 = x
    weight = 1.98 + 4.9 * x1 + 6.67 * x2 + 6.98 * x3 + 4.01 * x4 + 1.78 * x5 + 1e-5 * x6 + 2.73 * x7
    force = 4.72 - 0.5 * x4 - 0.19 * x2 * x3
    v_b = 10.58 - 0.674 * x1 * x2 - 0.67275 * x2
    v_d = 16.45 - 0.489 * x3 * x7 - 0.843 * x5 * x6
    g = [
        1.16 - 0.3717 * x2 * x4 - 0.0092928 * x3 - 1.0,
        0.261 - 0.0159 * x1 * x2 - 0.06486 * x1 - 0.019 * x2 * x7 + 0.0144 * x3 * x5 + 0.0154464 * x6 - 0.32,
        0.214
        + 0.00817 * x5
        - 0.045195 * x1
        - 0.0135168 * x1
        + 0.03099 * x2 * x6
        - 0.018 * x2 * x7
        + 0.007176 * x3
        + 0.023232 * x3
        - 0.00364 * x5 * x6
        - 0.018 * x2**2
        - 0.32,
        0.74 - 0.61 * x2 - 0.031296 * x3 - 0.031872 * x7 + 0.227 * x2**2 - 0.32,
        (28.98 + 3.818 * x3 - 4.2 * x1 * x2 + 1.27296 * x6 - 2.68065 * x7) / 32.0 - 1.0,
        (33.86 + 2.95 * x3 - 5.057 * x1 * x2 - 3.795 * x2 - 3.4431 * x7 + 1.45728) / 32.0 - 1.0,
        (46.36 - 9.9 * x2 - 4.4505 * x1) / 32.0 - 1.0,
        force / 4.0 - 1.0,
        v_b / 9.9 - 1.0,
        v_d / 15.7 - 1.0,
    ]
    return [weight, force, 0.5 * (v_b + v_d)], g


def _unit(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (0.0,) * n, (1.0,) * n


_CAR = (0.5, 0.45, 0.5, 0.5, 0.875, 0.4, 0.4), (1.5, 1.35, 1.5, 1.5, 2.625, 1.2, 1.2)

PROBLEMS = {
    problem.name: problem
    for problem in (
        GoalProblem("zdt1", *_unit(4), (1.1, 1.1), _zdt(1)),
        GoalProblem("zdt2", *_unit(4), (1.1, 1.1), _zdt(2)),
        GoalProblem("zdt3", *_unit(4), (1.1, 1.1), _zdt(3)),
        GoalProblem("dtlz2-2", *_unit(4), (1.1, 1.1), _dtlz2(2, "region")),
        GoalProblem("dtlz2-3", *_unit(5), (1.1, 1.1, 1.1), _dtlz2(3, "region")),
        GoalProblem("c2dtlz2-2", *_unit(4), (1.1, 1.1), _dtlz2(2, "c2")),
        GoalProblem("c2dtlz2-3", *_unit(5), (1.1, 1.1, 1.1), _dtlz2(3, "c2")),
        GoalProblem("srn", (-20.0, -20.0), (20.0, 20.0), (250.0, 50.0), _srn),
        GoalProblem("tnk", (1e-3, 1e-3), (pi, pi), (1.2, 1.2), _tnk),
        GoalProblem("bnh", (0.0, 0.0), (5.0, 3.0), (140.0, 50.0), _bnh),
        GoalProblem("osy", (0.0, 0.0, 1.0, 0.0, 1.0, 0.0), (10.0, 10.0, 5.0, 6.0, 5.0, 10.0), (-75.0, 75.0), _osy),
        GoalProblem("welded-beam", (0.125, 0.1, 0.1, 0.125), (5.0, 10.0, 10.0, 5.0), (40.0, 0.015), _welded_beam),
        GoalProblem("disc-brake", (55.0, 75.0, 1000.0, 11.0), (80.0, 110.0, 3000.0, 20.0), (5.78, 3.97), _disc_brake),
        GoalProblem("truss", (1.0, sqrt(2.0), sqrt(2.0), 1.0), (3.0, 3.0, 3.0, 3.0), (3.0, 4.0), _truss),
        GoalProblem("car-side", *_CAR, (45.4872, 4.5114, 13.3394), _car_side),
    )
}
