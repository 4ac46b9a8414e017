"""Solo8's jump as a benchmark problem. May import the public API, from the modules that define it.

The paper's experiment in simulation. Four gains, of knees and hips, change during the jump from the values that the
optimiser sets to fixed final values; the cost is minus the maximum height of the base; the sum of the motors' peak
currents is measured, and above an unknown level the boards trip. With soft hips the robot pitches up in flight, lands
on its hind legs and falls over: a second cause of crashes, which is not measured.

What was fitted: we have no robot, so the plan, the schedule and the ranges of the gains were chosen such that the
simulation resembles the paper's report; the trip level is the number that the paper learnt; the delay and the
off-centre mass were chosen among plausible values because with them all four gains matter and falls happen. That a
jump of about 0.77 m is possible, that the best one lies close to tripping and that about a third of the cube crashes is
therefore built in, not predicted.
"""

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crashbo.optimizer.guard import Guard
from crashbo.optimizer.records import Crash, Outcome, Stopped
from crashbo.problems.problem import Episode, Limit, Problem
from crashbo.problems.publication import Published
from crashbo.problems.solo8.jump import Flight, Gains, Setup, jump
from crashbo.search.space import Float

SETUP = Setup()
START = {"p_knee": 0.0, "p_hip": 0.0, "d_knee": 1.0, "d_hip": 1.0}  # the paper's
RANGES = {"p_knee": (1.4, 5.0), "p_hip": (1.0, 10.0), "d_knee": (0.0, 0.065), "d_hip": (0.0, 0.2)}  # Nm/rad, Nms/rad
_SOURCE = (
    "A. Marco et al., Robot Learning with Crash Constraints, IEEE Robotics and Automation Letters 6(2), 2021: the "
    "experiment on a real Solo8, here in simulation. Robot: F. Grimminger et al., An Open Torque-Controlled Modular "
    "Robot Architecture for Legged Locomotion Research, IEEE Robotics and Automation Letters 5(2), 2020, and its "
    "description in example-robot-data. Plan, schedule, ranges of the gains and trip level are fitted to the paper's "
    "figures; delay, friction, winding, droop and an off-centre mass are assumed."
)


def make() -> Problem:
    """The problem: Solo8 jumps as high as it can, while its boards trip above an unknown total current."""
    trip = SETUP.trip
    assert trip is not None
    return Problem(
        name="solo8-jump",
        space={name: Float(0.0, 1.0) for name in RANGES},
        simulate=simulate,
        limits=(Limit("current", trip, noise=0.6),),  # noise: of repeats, from robot and instruments together
        cost_noise=0.0025,
        source=_SOURCE,
        minimum=-0.910,
        constrained_minimum=-0.773,  # of repeatable jumps; one exactly at the trip level reaches 0.780 m
        optimum={"p_knee": 0.677, "p_hip": 0.664, "d_knee": 0.381, "d_hip": 0.210},
        machine=experiment,
        unmeasured=("fall",),
        start=START,
        median_safe_cost=-0.6,
        published=Published("gap", 50, at=(10, 25, 50), has_start=True),
    )


def gains(params: Mapping[str, Any]) -> Gains:
    """Gains in physical units from parameters in the unit cube."""
    return Gains(**{name: low + (high - low) * params[name] for name, (low, high) in RANGES.items()})


def simulate(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    """Cost and current of a perfect robot whose boards never trip."""
    flight = jump(gains(params), SETUP.untrippable)
    return -flight.height, {"current": flight.current}


def experiment(problem: Problem, params: Mapping[str, Any], rng: np.random.Generator | None) -> Episode:
    """One jump. Here the noise acts on the robot itself, so near the trip level it decides whether it crashes."""
    same = copy.deepcopy(rng)
    flight = jump(gains(params), SETUP, rng=rng)
    if not flight.crash:
        return _episode(flight, "")
    if rng is None or problem.is_informed:  # what would have happened if the boards had not tripped
        return _episode(jump(gains(params), SETUP.untrippable, rng=same), flight.crash)
    return _episode(flight, flight.crash)


def guarded(params: Mapping[str, Any], rng: np.random.Generator, guard: Guard) -> Outcome:
    """One jump whose current a guard watches.

    Raises:
        Crash: with only a reason.
        Stopped: before the boards could trip.
    """
    flight = jump(gains(params), SETUP, rng=rng, watch=watcher(guard))
    if flight.stopped is not None:
        raise flight.stopped
    if flight.crash:
        raise Crash(flight.crash, reached=guard.reached, rises=guard.rises)
    return Outcome(-flight.height, {"current": flight.current})


def height_and_energy(params: Mapping[str, Any], rng: np.random.Generator | None = None) -> Outcome:
    """One jump with two goals: the height of the base, and the energy that the motors draw until it lands.

    Raises:
        Crash: with only a reason.
    """
    flight = jump(gains(params), SETUP, rng=rng, record=True)
    if flight.crash:
        raise Crash(flight.crash)
    assert flight.tape is not None
    return Outcome({"height": flight.height, "energy": flight.tape.energy}, {"current": flight.current})


def watcher(guard: Guard) -> Callable[[float], None]:
    """The controller's part: it looks one tick ahead, since the current may rise by two amperes within one."""
    before = math.inf

    def watch(current: float) -> None:
        nonlocal before
        guard.update(current=current)
        if 2.0 * current - before >= guard.limits["current"]:
            raise Stopped(guard.reached, f"the next reading would reach its limit, {guard.limits['current']:.4g} A")
        before = current

    return watch


def _episode(flight: Flight, crash: str) -> Episode:
    return Episode(-flight.height, {"current": flight.current}, crash)
