"""PID gains of a pendulum whose drive trips.

An arm on a geared motor swings up to 115 degrees within half a second and holds there against gravity. Stiff gains
follow closely and draw a lot of current, too little damping rings; beyond a level that nobody has written down, the
drive trips and the arm drops. What is tuned: three gains, for the least error and wobble. What is learnt on the way:
the level at which the drive trips.

    python examples/pendulum_pid.py [--trials 40] [--output pendulum_pid.png]
"""

import argparse
import math
from pathlib import Path

import numpy as np

import crashbo
from crashbo.app import plots, sketches

GOAL = math.radians(115)
STEP, SECONDS, SWING = 0.002, 2.5, 0.5  # s: of the controller, of a trial, of the move in it
MASS, LENGTH, FRICTION = 1.2, 0.35, 0.08  # kg, m, Nm s
TORQUE_CONSTANT, DELAY = 0.9, 15  # Nm/A behind the gear; ticks from the encoder to the drive
TRIPS = 16.0  # A, for longer than a few milliseconds; nobody tells crashbo


def reference(time):
    """The wanted angle: a smooth move (minimum jerk), then rest."""
    s = np.minimum(np.asarray(time) / SWING, 1.0)
    return GOAL * s**3 * (10 - 15 * s + 6 * s**2)


def swing(gains):
    """Angles, currents, and whether the drive tripped, tick by tick."""
    inertia, gravity = MASS * LENGTH**2, MASS * 9.81 * LENGTH
    angle = speed = integral = filtered = 0.0
    seen = [0.0] * DELAY
    angles, currents = [], []
    for goal in reference(STEP * np.arange(round(SECONDS / STEP))):
        seen.append(angle)
        error, rate = goal - seen[-DELAY], (seen[-DELAY] - seen[-DELAY - 1]) / STEP
        integral += error * STEP
        torque = gains["p"] * error + gains["i"] * integral - gains["d"] * rate
        filtered += 0.1 * (torque / TORQUE_CONSTANT - filtered)  # what the drive's fuse feels
        speed += STEP * (torque - gravity * math.sin(angle) - FRICTION * speed) / inertia
        angle += STEP * speed
        angles.append(angle)
        currents.append(abs(filtered))
        if abs(filtered) > TRIPS:
            return np.array(angles), np.array(currents), True
    return np.array(angles), np.array(currents), False


def experiment(gains):
    """What a trial costs, and the peak current; or that it crashed."""
    angles, currents, tripped = swing(gains)
    if tripped:
        raise crashbo.Crash("the drive tripped")
    error = math.degrees(np.sqrt(np.mean((angles - reference(STEP * np.arange(len(angles)))) ** 2)))
    wobble = math.degrees(angles[-round(1 / STEP) :].std())  # what still swings in the last second
    return crashbo.Outcome(error + 2 * wobble, measured={"current": float(currents.max())})


def draw(result, output):
    """The swings on the left, what the study knows by now on the right."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.dress(left)
    plots.title(left, "The swing", "first, best, and the crashes")
    first = next(t for t in result.trials if t.state == "success")
    shown = [(t, plots.CRASH, 1.0) for t in result.trials if t.state == "crash"]
    for trial, colour, width in [*shown, (first, "#8C8C8C", 1.6), (result.best, plots.MODEL, 2.4)]:
        angles, _, tripped = swing(trial.params)
        left.plot(STEP * np.arange(len(angles)), np.degrees(angles), color=colour, linewidth=width)
        if tripped:
            left.plot(STEP * len(angles), math.degrees(angles[-1]), "x", color=colour, markeredgewidth=2.0)
    time = STEP * np.arange(round(SECONDS / STEP))
    left.plot(time, np.degrees(reference(time)), color="#666666", linestyle=":", linewidth=1.6)
    left.set_ylim(-20, 150)
    left.set_xlabel("time (s)")
    left.set_ylabel("angle (degrees)")
    seen = sketches.gather_safety(result.optimizer, ("p", "d"))
    sketches.draw_safety(right, seen, result.trials, result.best)
    right.set_xlabel("proportional gain (Nm/rad)")
    right.set_ylabel("derivative gain (Nm s/rad)")
    plots.save(figure, output)


def main():
    """Tune, say what was found, draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--output", type=Path, default="pendulum_pid.png")
    options = parser.parse_args()
    space = {
        "p": crashbo.Float(2.0, 200.0, log=True),
        "i": crashbo.Float(0.5, 200.0, log=True),
        "d": crashbo.Float(0.05, 10.0, log=True),
    }
    units = {"cost": "deg", "current": "A"}
    result = crashbo.minimize(experiment, space, constraints=["current"], trials=options.trials, units=units, seed=0)
    gains = ", ".join(f"{name} = {value:.3g}" for name, value in result.best.params.items())
    print(f"error and wobble {result.best.cost:.1f} degrees with {gains}")
    print(f"trip level: {result.thresholds['current'].words}")
    draw(result, options.output)


if __name__ == "__main__":
    main()
