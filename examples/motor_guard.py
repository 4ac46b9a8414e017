"""A guard on a motor: a trial is stopped before it crashes.

A spindle runs up to speed with a load. Its drive heats with the current's square and trips at a temperature that is
nowhere written. The temperature is read all the time, so a guard compares each reading with what earlier trials have
taught and stops the run when going on would more likely trip than not. A stopped trial costs no crash, and is learnt
from.

    python examples/motor_guard.py [--trials 30] [--output motor_guard.png]
"""

import argparse
from pathlib import Path

import numpy as np

import crashbo
from crashbo.app import plots, sketches

STEP, SECONDS = 0.25, 40.0
TRIPS = 96.0  # degrees Celsius; nobody tells crashbo


def temperatures(speed, load):
    """The drive's temperature over a run, reading by reading: two bodies that heat each other."""
    winding = housing = 22.0
    current = 3.0 + 8.0 * load + 5.5 * speed * (0.4 + load)
    for _ in range(round(SECONDS / STEP)):
        winding += STEP * (0.042 * current**2 - 0.30 * (winding - housing))
        housing += STEP * (0.09 * (winding - housing) - 0.035 * (housing - 22.0))
        yield winding


def experiment(params, guard):
    """A run. `minimize` passes a guard to whatever has a parameter of that name."""
    hottest = 0.0
    for reading in temperatures(**params):
        if reading > TRIPS:
            raise crashbo.Crash("the drive tripped")
        guard.update(temperature=reading)  # raises crashbo.Stopped: slow the machine down here, and let it pass
        hottest = max(hottest, reading)
    removed = params["speed"] * (0.3 + params["load"]) ** 0.7  # what is cut per minute
    return crashbo.Outcome(removed, measured={"temperature": hottest})


def draw(result, output):
    """Temperatures of all runs, and where they lie."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.dress(left)
    plots.title(left, "The runs", "crosses tripped, squares were stopped")
    looks = {"success": ("#8C8C8C", 0.8, None), "crash": (plots.CRASH, 1.2, "x"), "stopped": ("#CC79A7", 1.2, "s")}
    for trial in result.trials:
        colour, width, mark = looks[trial.state]
        course = np.array(list(temperatures(**trial.params)))
        end = TRIPS if trial.state == "crash" else trial.measured["temperature"]
        course = course[: int(np.argmax(course >= end)) + 1]
        time = STEP * np.arange(1, len(course) + 1)
        best = trial.number == result.best.number
        left.plot(time, course, color=plots.MODEL if best else colour, linewidth=2.4 if best else width)
        left.plot(
            time[-1:], course[-1:], mark or "", color=colour, markersize=6, markeredgewidth=2.0 if mark == "x" else 0
        )
    left.axhline(TRIPS, color="#666666", linestyle=":", linewidth=1.6)
    left.set_xlabel("time (s)")
    left.set_ylabel("temperature of the winding (°C)")
    seen = sketches.gather_safety(result.optimizer, ("speed", "load"))
    sketches.draw_safety(right, seen, result.trials, result.best)
    plots.save(figure, output)


def main():
    """Tune, count, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--output", type=Path, default="motor_guard.png")
    options = parser.parse_args()
    result = crashbo.minimize(
        experiment,
        {"speed": (0.0, 1.0), "load": (0.0, 1.0)},
        constraints=["temperature"],
        direction="maximize",
        units={"temperature": "°C"},
        trials=options.trials,
        seed=0,
    )
    states = [t.state for t in result.trials]
    print(f"{states.count('crash')} crashes, {states.count('stopped')} stopped, of {len(states)}")
    print(f"trip level: {result.thresholds['temperature'].words}")
    draw(result, options.output)


if __name__ == "__main__":
    main()
