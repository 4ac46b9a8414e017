"""LQR weights of a cart-pole on a short rail.

A cart balances a pole from a tilt of 14 degrees. The weights of the linear-quadratic regulator are tuned on the real,
nonlinear plant, whose motor saturates and whose sensors lag. Two things end a trial: the cart hits the end of the
rail, whose position nobody told (how far the cart goes is measured), or the pole falls (nothing measures how close
that was).

    python examples/cart_pole_lqr.py [--trials 40] [--output cart_pole_lqr.png]
"""

import argparse
import math
from pathlib import Path

import numpy as np
from scipy.linalg import solve_continuous_are

import crashbo
from crashbo.app import plots, sketches

CART, POLE, HALF, GRAVITY = 0.9, 0.25, 0.35, 9.81  # kg, kg, m to the pole's centre, m/s^2
STEP, SECONDS, DELAY = 0.005, 3.0, 4  # s, s, ticks
FORCE = 9.0  # N, what the motor can do
RAIL = 0.31  # m to either side; nobody tells crashbo
TILT = math.radians(14)


def regulator(weights):
    """Gains of the LQR for the plant linearised about the upright pole: of position, angle and their speeds."""
    inertia = 4 / 3 * POLE * HALF**2
    mass = np.array([[CART + POLE, POLE * HALF], [POLE * HALF, inertia]])
    push = np.linalg.solve(mass, [[1.0], [0.0]])
    pull = np.linalg.solve(mass, [[0.0, 0.0], [0.0, POLE * GRAVITY * HALF]])
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [pull, np.zeros((2, 2))]])
    B = np.vstack([np.zeros((2, 1)), push])
    Q = np.diag([weights["position"], weights["angle"], weights["speed"], 1.0])
    return (B.T @ solve_continuous_are(A, B, Q, np.eye(1)))[0]  # only ratios matter: the effort weighs 1


def balance(weights):
    """Positions and angles tick by tick, and why it ended early, if it did."""
    gains, state = regulator(weights), np.array([0.0, TILT, 0.0, 0.0])
    seen, states = [state] * DELAY, []
    inertia = 4 / 3 * POLE * HALF**2
    for _ in range(round(SECONDS / STEP)):
        seen.append(state)
        force = float(np.clip(-gains @ seen[-DELAY], -FORCE, FORCE))
        _, angle, speed, rate = state
        sine, cosine = math.sin(angle), math.cos(angle)
        coupling, weight = POLE * HALF * cosine, POLE * HALF * GRAVITY * sine
        pushed = force + POLE * HALF * rate**2 * sine - 0.5 * speed
        determinant = (CART + POLE) * inertia - coupling**2
        faster = (inertia * pushed - coupling * weight) / determinant
        turning = ((CART + POLE) * weight - coupling * pushed) / determinant
        speed, rate = speed + STEP * faster, rate + STEP * turning
        state = np.array([state[0] + STEP * speed, angle + STEP * rate, speed, rate])
        states.append(state[:2])
        if abs(state[0]) > RAIL:
            return np.array(states), "hit the end of the rail"
        if abs(state[1]) > math.pi / 2:
            return np.array(states), "the pole fell"
    return np.array(states), ""


def experiment(weights):
    """How far from rest it was, on average; and how far the cart went. Or why it crashed."""
    states, why = balance(weights)
    if why:
        raise crashbo.Crash(why)
    away = np.abs(states[:, 0]) / 0.1 + np.abs(states[:, 1]) / math.radians(5)
    return crashbo.Outcome(float(away.mean()), measured={"travel": float(np.abs(states[:, 0]).max())})


def draw(result, output):
    """The cart's way on the left, its weights on the right."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.dress(left)
    plots.title(left, "The cart", "first, best, and the crashes")
    first = next(t for t in result.trials if t.state == "success")
    crashes = [(t, plots.CRASH, 0.9) for t in result.trials if t.state == "crash"]
    for trial, colour, width in [*crashes, (first, "#8C8C8C", 1.6), (result.best, plots.MODEL, 2.4)]:
        states, why = balance(trial.params)
        left.plot(STEP * np.arange(len(states)), states[:, 0], color=colour, linewidth=width)
        if why:
            left.plot(STEP * len(states), states[-1, 0], "x", color=colour, markeredgewidth=2.0)
    for end in (-RAIL, RAIL):
        left.axhline(end, color="#666666", linestyle=":", linewidth=1.6)
    left.set_xlabel("time (s)")
    left.set_ylabel("position on the rail (m)")
    seen = sketches.gather_safety(result.optimizer, ("position", "speed"))
    sketches.draw_safety(right, seen, result.trials, result.best)
    right.set_xlabel("weight of the position")
    right.set_ylabel("weight of its speed")
    plots.save(figure, output)


def main():
    """Tune, say what was found, draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--output", type=Path, default="cart_pole_lqr.png")
    options = parser.parse_args()
    space = {
        "position": crashbo.Float(1.0, 1e5, log=True),
        "angle": crashbo.Float(1.0, 1e4, log=True),
        "speed": crashbo.Float(1.0, 1e3, log=True),
    }
    causes = ["travel", crashbo.Unmeasured("fall")]
    units = {"travel": "m"}
    result = crashbo.minimize(experiment, space, constraints=causes, trials=options.trials, units=units, seed=0)
    print("best weights:", {name: float(f"{value:.3g}") for name, value in result.best.params.items()})
    print(f"end of the rail: {result.thresholds['travel'].words}")
    for trial in result.trials:
        if trial.state == "crash":
            blame = ", ".join(f"{name} {p:.2f}" for name, p in result.blame(trial).items())
            print(f"  trial {trial.number} {trial.reason}; by the models: {blame}")
    draw(result, options.output)


if __name__ == "__main__":
    main()
