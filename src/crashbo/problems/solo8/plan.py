"""The plan of a jump: reference joint angles and feedforward torques for every millisecond.

May import the public API, from the modules that define it.

The robot waits, crouches, pushes off, and retracts its legs to land. It is modelled as a point mass, as in an offline
planner with a simple model: the feedforward is a fraction of the torque that this mass would need, at the knees only,
and the rest is left to the feedback gains. All four legs do the same, the hind legs mirrored.

Notation: z height of the base, r from hip to foot, q half the knee's angle, psi the leg's lean.
"""

from dataclasses import dataclass

import numpy as np

from crashbo.problems.problem import Array

LINK, FOOT_RADIUS = 0.16, 0.016
MASS, GRAVITY = 2.17785, 9.81
TICK = 0.001  # s, period of the controller
MIRROR = np.repeat([1.0, -1.0], 4)  # the joints of the hind legs turn the other way
_STRAIGHT = 0.9999  # of the leg's length: at 1 (singular) joint speeds would be infinite


@dataclass(frozen=True)
class Plan:
    """Heights of the base in m, speeds in m/s and durations in s of a jump's phases. Fitted; see `problem`."""

    rest: float = 0.25
    wait: float = 0.10
    lowest: float = 0.135
    crouch: float = 0.32
    take_off: float = 0.29
    speed: float = 3.7  # at take-off
    push: float = 0.08
    extended: float = 0.316  # where the legs stop extending
    retract: float = 0.28
    landing: float = 0.23
    foot_x: float = -0.04  # of the feet, outward from the hips
    feedforward: float = 0.45  # fraction of the point mass's torque


@dataclass(frozen=True)
class Reference:
    """Joint angles and feedforward torques, (ticks, 8): hip and knee of FL, FR, HL, HR."""

    angles: Array
    torques: Array
    take_off_time: float


def reference(plan: Plan, duration: float) -> Reference:
    """The reference trajectory of a plan."""
    t = np.asarray(np.arange(round(duration / TICK)) * TICK, dtype=float)
    z, acceleration, leaves = _heights(plan, t)
    r = np.hypot(z - FOOT_RADIUS, plan.foot_x)
    q = np.arccos(np.minimum(r / (2.0 * LINK), _STRAIGHT))
    hip, knee = q - np.arcsin(plan.foot_x / r), -2.0 * q
    load = MASS * (GRAVITY + acceleration) / 4.0
    torque = -plan.feedforward * load * LINK * np.sin(hip + knee)  # lever arm of the load about the knee
    torque[t >= leaves] = 0.0
    pair = np.stack([hip, knee], axis=1)
    fed = np.stack([np.zeros_like(torque), torque], axis=1)
    return Reference(np.tile(pair, 4) * MIRROR, np.tile(fed, 4) * MIRROR, leaves)


def smooth_step(u: Array) -> Array:
    """A smooth step from 0 to 1, with zero velocity and acceleration at both ends."""
    u = np.clip(u, 0.0, 1.0)
    return np.asarray(u**3 * (10.0 - 15.0 * u + 6.0 * u**2))


def _heights(plan: Plan, t: Array) -> tuple[Array, Array, float]:
    """Height of the base, its acceleration, and when it leaves the ground."""
    z, acceleration = np.full_like(t, plan.rest), np.zeros_like(t)
    stretch = 2.0 * (plan.extended - plan.take_off) / plan.speed  # constant deceleration
    phases = (
        (plan.crouch, (plan.rest, 0.0, 0.0), (plan.lowest, 0.0, 0.0)),
        (plan.push, (plan.lowest, 0.0, 0.0), (plan.take_off, plan.speed, 0.0)),
        (stretch, (plan.take_off, plan.speed, -plan.speed / stretch), (plan.extended, 0.0, -plan.speed / stretch)),
        (plan.retract, (plan.extended, 0.0, 0.0), (plan.landing, 0.0, 0.0)),
    )
    since = plan.wait
    for duration, begin, end in phases:
        during = (t >= since) & (t < since + duration)
        z[during], acceleration[during] = _quintic(t[during] - since, duration, begin, end)
        since += duration
    z[t >= since] = plan.landing
    return z, acceleration, plan.wait + plan.crouch + plan.push


def _quintic(
    t: Array, duration: float, begin: tuple[float, float, float], end: tuple[float, float, float]
) -> tuple[Array, Array]:
    """Position and acceleration on the quintic polynomial with given position, speed and acceleration at both ends."""
    p, v, a = begin
    T = duration
    left = np.array([[T**3, T**4, T**5], [3 * T**2, 4 * T**3, 5 * T**4], [6 * T, 12 * T**2, 20 * T**3]])
    right = np.array([end[0] - p - v * T - a * T**2 / 2, end[1] - v - a * T, end[2] - a])
    polynomial = np.polynomial.Polynomial([p, v, a / 2, *np.linalg.solve(left, right)])
    return polynomial(t), polynomial.deriv(2)(t)
