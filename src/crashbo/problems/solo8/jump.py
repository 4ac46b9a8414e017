"""One jump of Solo8: controller, motors, boards that trip, and the flight, step by step.

May import the public API, from the modules that define it.

Control runs at 1 kHz on sensor readings that are some milliseconds old:

    tau = tau_ff + P (q* - q) - D dq,

with low-pass filtered velocity, and gains that change smoothly from their initial to their final values. Damping acts
only on the measured velocity, as in the motor drives: it costs height during the push-off, and damps the ringing of the
legs caused by the delay, which would draw extra current.

The boards trip when the sum of the motors' peak currents so far exceeds a level; all motors are then off. A robot that
lands tilted too far has fallen. A jump is over when a foot touches the ground again. Somebody may watch the current and
stop the jump before the boards trip: the motors are off then, too.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.optimizer.records import Stopped
from crashbo.problems.problem import Array
from crashbo.problems.solo8 import motors, robot
from crashbo.problems.solo8.engine import mujoco
from crashbo.problems.solo8.plan import TICK, Plan, Reference, reference, smooth_step

LONGEST = 1.6  # s, maximum duration of a jump
PATIENCE = 0.25  # s after the planned take-off in which the robot must leave the ground
AIRBORNE = 0.03  # s without contact that count as flight: feet may skip while they push
CAMERA = 5  # ticks between two readings of the motion capture: 200 Hz
AFTERMATH = 0.8  # s that are still recorded after a jump is over
_STEPS = round(TICK / robot.TIMESTEP)
_DEAD = np.zeros(8)


@dataclass(frozen=True)
class Gains:
    """P gains (Nm/rad) and D gains (Nms/rad) of knees and hips."""

    p_knee: float
    p_hip: float
    d_knee: float
    d_hip: float

    @property
    def p(self) -> Array:
        """P gains of the eight joints."""
        return np.array([self.p_hip, self.p_knee] * 4)

    @property
    def d(self) -> Array:
        """D gains of the eight joints."""
        return np.array([self.d_hip, self.d_knee] * 4)


@dataclass(frozen=True)
class JumpNoise:
    """Standard deviations of everything that varies from jump to jump."""

    zero: float = 0.004  # rad, of each joint's zero position
    strength: float = 0.01  # of each motor's torque, relative
    speed: float = 0.15  # rad/s, of each reading of a joint's speed
    height: float = 0.001  # m, of the motion capture
    current: float = 0.4  # A, of the measured sum of peaks


@dataclass(frozen=True)
class Setup:
    """Everything about a jump except the gains to be tuned."""

    plan: Plan = field(default_factory=Plan)
    final: Gains = Gains(2.0, 2.0, 0.05, 0.05)
    schedule: tuple[float, float] = (0.55, 1.0)  # s, start and end of the change of gains
    delay: int = 4  # ticks
    filter: float = 0.005  # s, time constant of the velocity's low-pass
    com_x: float = 0.025  # m, offset of the base's centre of mass to the front
    trip: float | None = 112.34  # A; None: the boards never trip
    tilt: float = 45.0  # deg, tilt at landing beyond which it has fallen
    noise: JumpNoise = field(default_factory=JumpNoise)

    @property
    def untrippable(self) -> "Setup":
        """The same setup with boards that never trip."""
        return replace(self, trip=None)


@dataclass(frozen=True)
class Tape:
    """The recording of a jump, one row per tick."""

    pose: Array  # (n, 15), qpos of the model
    centre: Array  # (n,), height of the centre of mass
    current: Array  # (n, 8)
    speed: Array  # (n, 8), of the joints
    contacts: NDArray[np.int64]  # (n,), contacts with the ground
    depth: Array  # (n,), penetration of the deepest contact
    end: int  # the tick at which the jump was over

    @property
    def energy(self) -> float:
        """What the motors draw from the supply until the jump is over, in J; what they brake is lost as heat."""
        power = motors.voltages(self.current[: self.end], self.speed[: self.end]) * self.current[: self.end]
        return float(np.maximum(power, 0.0).sum() * TICK)


class Flight(NamedTuple):
    """The outcome of a jump."""

    height: float  # m, highest reading of the base before landing
    current: float  # A, sum of the motors' peaks
    crash: str  # why it failed; empty if it did not
    tape: Tape | None  # if it was recorded
    stopped: Stopped | None = None  # if somebody stopped it


def jump(
    gains: Gains,
    setup: Setup,
    *,
    rng: np.random.Generator | None = None,
    record: bool = False,
    watch: Callable[[float], None] | None = None,
) -> Flight:
    """Simulate one jump; without an rng the robot and its sensors are perfect.

    `watch` hears of the sum of the peak currents at every tick, as the instruments read it, and may raise Stopped.
    """
    model = _model(setup.com_x)
    data = mujoco.MjData(model)
    orders = _Orders.of(gains, setup, rng)
    data.qpos[2], data.qpos[7:] = setup.plan.rest, orders.pose
    mujoco.mj_forward(model, data)
    senses = _Senses(setup, orders)
    noise = np.zeros(2) if rng is None else rng.standard_normal(2) * (setup.noise.height, setup.noise.current)
    peaks, highest, crash = np.zeros(8), setup.plan.rest, ""
    stopped: Stopped | None = None
    airborne, left = 0, False  # ticks since it last touched the ground, and whether it took off
    end: int | None = None  # the tick at which the jump is over
    rows: list[tuple[Any, ...]] = []
    for tick in range(len(orders.bias)):
        current = _DEAD
        if not crash and stopped is None:
            q, speed = senses(tick, data)
            asked = orders.bias[tick] - orders.p[tick] * q - orders.d[tick] * speed
            current = motors.currents(asked, data.qvel[6:])
            if end is None:
                peaks = np.maximum(peaks, np.abs(current))
                if setup.trip is not None and peaks.sum() > setup.trip:
                    crash, current, end = f"boards tripped at {tick * TICK:.2f} s", _DEAD, tick
                elif watch is not None and (stopped := _stop(watch, float(peaks.sum() + noise[1]))) is not None:
                    current, end = _DEAD, tick
        if record:
            rows.append(_row(data, current))
        elif end is not None:
            break
        data.qfrc_applied[6:] = orders.strength * motors.torques(current)
        mujoco.mj_step(model, data, _STEPS)
        if end is not None:
            if tick > end + AFTERMATH / TICK:
                break
            continue
        if tick % CAMERA == 0:
            highest = max(highest, float(data.qpos[2]))
        pushing = tick * TICK > setup.plan.wait + setup.plan.crouch  # feet may also lift off while it crouches
        airborne = airborne + 1 if pushing and data.ncon == 0 else 0
        if not left and airborne * TICK >= AIRBORNE:
            left = True
        elif not left and tick * TICK > orders.take_off_time + PATIENCE:
            end = tick  # it never left the ground
        elif left and not airborne:
            end, crash = tick, _fall(data, setup.tilt)
    tape = _tape(rows, end if end is not None else len(rows)) if record else None
    return Flight(highest + float(noise[0]), float(peaks.sum() + noise[1]), crash, tape, stopped)


def _stop(watch: Callable[[float], None], current: float) -> Stopped | None:
    try:
        watch(current)
    except Stopped as stopped:
        return stopped
    return None


@dataclass(frozen=True)
class _Orders:
    """The controller's tables, one row per tick; the torque asked of a joint is bias - p q - d dq."""

    bias: Array
    p: Array
    d: Array
    speed_noise: Array
    strength: Array  # (8,), of the motors
    pose: Array  # (8,), at rest
    take_off_time: float

    @staticmethod
    def of(gains: Gains, setup: Setup, rng: np.random.Generator | None) -> "_Orders":
        """The tables for these gains; what varies from jump to jump is drawn here."""
        planned = _reference(setup.plan)
        shape = planned.angles.shape
        zero, strength, speed_noise = np.zeros(8), np.ones(8), np.zeros(shape)
        if rng is not None:
            zero = setup.noise.zero * rng.standard_normal(8)
            strength = 1.0 + setup.noise.strength * rng.standard_normal(8)
            speed_noise = setup.noise.speed * rng.standard_normal(shape)
        begin, until = setup.schedule
        t = np.asarray(np.arange(shape[0]) * TICK, dtype=float)
        blend = smooth_step((t - begin) / (until - begin))[:, None]
        p = gains.p + blend * (setup.final.p - gains.p)
        d = gains.d + blend * (setup.final.d - gains.d)
        bias = planned.torques + p * (planned.angles - zero)
        return _Orders(bias, p, d, speed_noise, strength, planned.angles[0].copy(), planned.take_off_time)


class _Senses:
    """The joint state as the controller sees it: delayed, with filtered speeds."""

    def __init__(self, setup: Setup, orders: _Orders) -> None:
        self._noise, self._keep = orders.speed_noise, TICK / (setup.filter + TICK)
        self._speed = np.zeros(8)
        self._late = deque([(orders.pose, self._speed)] * setup.delay)

    def __call__(self, tick: int, data: Any) -> tuple[Array, Array]:
        """Angles and speeds as known at this tick."""
        self._speed = self._speed + self._keep * (data.qvel[6:] + self._noise[tick] - self._speed)
        self._late.append((data.qpos[7:].copy(), self._speed))
        return self._late.popleft()


def _fall(data: Any, most: float) -> str:
    """Why a robot that touches down in this pose has fallen; empty if it lands."""
    w, x, y, z = data.qpos[3:7]
    upright = 1.0 - 2.0 * (x * x + y * y)  # cosine of the tilt
    if math.degrees(math.acos(max(-1.0, min(1.0, upright)))) <= most:
        return ""
    pitch = math.degrees(math.atan2(2.0 * (w * y - z * x), upright))
    return f"fell: pitch {abs(pitch):.0f} deg"


def _row(data: Any, current: Array) -> tuple[Any, ...]:
    depth = max(0.0, -float(data.contact.dist.min())) if data.ncon else 0.0
    return data.qpos.copy(), float(data.subtree_com[0, 2]), current, data.qvel[6:].copy(), int(data.ncon), depth


def _tape(rows: list[tuple[Any, ...]], end: int) -> Tape:
    pose, centre, current, speed, contacts, depth = (np.array(column) for column in zip(*rows, strict=True))
    return Tape(pose, centre, current, speed, contacts, depth, end)


@lru_cache(maxsize=8)
def _model(com_x: float) -> Any:
    return robot.build(com_x)


@lru_cache(maxsize=8)
def _reference(plan: Plan) -> Reference:
    return reference(plan, LONGEST)
