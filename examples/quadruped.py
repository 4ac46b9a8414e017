"""A quadruped learns to jump, in simulation.

A Solo8 tunes four gains to jump as high as it can. Its boards trip above a total current that nobody told, and with
soft hips it falls: how close it came to that is not measured. `crashbo demo` is the same with films; this is the code
to replace by your own robot: `jump` is the only function that knows of it. Needs `pip install 'crashbo[robot,plot]'`.

    python examples/quadruped.py [--trials 40] [--output quadruped.png]
"""

import argparse
from pathlib import Path

import numpy as np

import crashbo
from crashbo.app import plots, sketches
from crashbo.problems.solo8 import jump as robot
from crashbo.problems.solo8.plan import TICK
from crashbo.problems.solo8.problem import SETUP, gains

SPACE = dict.fromkeys(("p_knee", "p_hip", "d_knee", "d_hip"), (0.0, 1.0))
CAUTIOUS = {"p_knee": 0.0, "p_hip": 0.0, "d_knee": 1.0, "d_hip": 1.0}  # soft legs, full damping: a hop


def jump(params, rng):
    """One jump: its height and the sum of the motors' peak currents, or why it crashed."""
    flight = robot.jump(gains(params), SETUP, rng=rng)
    if flight.crash:
        raise crashbo.Crash(flight.crash)
    return crashbo.Outcome(flight.height, measured={"current": flight.current})


def draw(result, output):
    """Height of the base over time, and the gains that were tried."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.dress(left)
    plots.title(left, "The jump", "first, best, and the crashes")
    crashes = [(t, plots.CRASH, 0.9) for t in result.trials if t.state == "crash"]
    for trial, colour, width in [*crashes, (result.trials[0], "#8C8C8C", 1.6), (result.best, plots.MODEL, 2.4)]:
        flight = robot.jump(gains(trial.params), SETUP, record=True)  # without the robot's own scatter
        if bool(flight.crash) != (trial.state == "crash"):
            continue
        height = flight.tape.pose[: flight.tape.end, 2]
        left.plot(TICK * np.arange(len(height)), height, color=colour, linewidth=width)
        if flight.crash:
            left.plot(TICK * len(height), height[-1], "x", color=colour, markeredgewidth=2.0)
    left.set_xlabel("time (s)")
    left.set_ylabel("height of the base (m)")
    seen = sketches.gather_safety(result.optimizer, ("p_knee", "p_hip"))
    sketches.draw_safety(right, seen, result.trials, result.best)
    right.set_xlabel("stiffness of the knees")
    right.set_ylabel("stiffness of the hips")
    plots.save(figure, output)


def main():
    """Jump, say what was learnt, draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--output", type=Path, default="quadruped.png")
    options = parser.parse_args()
    rng = np.random.default_rng(0)  # of the robot: no two jumps are the same
    result = crashbo.minimize(
        lambda params: jump(params, rng),
        SPACE,
        constraints=["current", crashbo.Unmeasured("fall")],
        direction="maximize",
        risk=crashbo.Price(crash=10),  # somebody has to pick it up
        start=[CAUTIOUS],
        units={"cost": "m", "current": "A"},
        trials=options.trials,
        seed=0,
    )
    print(f"jumps {result.best.cost:.2f} m")
    print(f"the boards: {result.thresholds['current'].words}")
    draw(result, options.output)


if __name__ == "__main__":
    main()
