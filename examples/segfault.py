"""A solver that segfaults, tuned by workers that may die.

A loaded chain of forty springs is relaxed, step by step, against some friction. The solver is written as people write
them in C: it looks up the stress of each spring in the material's table, and does not check that the strain is in
there. Long steps with little friction need the fewest sweeps, until they overshoot: then a strain leaves the table,
the look-up reads memory that is not there, and the process dies of SIGSEGV. The deaths are real: `workers=` runs each
trial in a process of its own and replaces what dies.

    python examples/segfault.py [--trials 40] [--output segfault.png]
"""

import argparse
import ctypes
import math
from pathlib import Path

import numpy as np

import crashbo
from crashbo.app import plots, sketches

SPRINGS, CELLS, SWEEPS = 40, 400, 4000
STRAIN = (np.arange(CELLS) + 0.5) / CELLS * 4 - 2  # the table covers strains from -2 to 2
TABLE = (ctypes.c_double * CELLS)(*(STRAIN + 4 * STRAIN**3))
STRESS = ctypes.cast(TABLE, ctypes.POINTER(ctypes.c_double))  # as in C: no index is refused
LOAD = 0.02 * np.sin(np.linspace(0, math.pi, SPRINGS))


def relax(step, friction):
    """Sweeps until the chain is in balance; the residual after each."""
    x, v, residuals = np.zeros(SPRINGS), np.zeros(SPRINGS), []
    with np.errstate(all="ignore"):
        for _ in range(SWEEPS):
            strain = np.diff(x, prepend=0.0)
            cells = ((strain + 2) * CELLS / 4).astype(np.int32)  # what is no number becomes the lowest one, as in C
            blend = (strain + 2) * CELLS / 4 - cells - 0.5  # between two rows of the table
            stress = np.array(
                [STRESS[i] + b * (STRESS[i + 1] - STRESS[i]) for i, b in zip(cells.tolist(), blend, strict=True)]
            )
            force = LOAD + np.diff(stress, append=0.0)
            residuals.append(float(np.abs(force).max()))
            if residuals[-1] < 1e-4:
                break
            v = (1 - friction) * v + step * force
            x = x + v
    return residuals


def experiment(params):
    """The number of sweeps, on a log scale. A death needs no code here."""
    return math.log10(len(relax(params["step"], params["friction"])))


def draw(result, output):
    """Which settings kill it, and what was gained."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.dress(left)
    plots.title(left, "The solver", "first and best success")
    first = next(t for t in result.trials if t.state == "success")
    for trial, colour, width in [(first, "#8C8C8C", 1.6), (result.best, plots.MODEL, 2.4)]:
        residuals = relax(**trial.params)
        left.plot(np.arange(1, len(residuals) + 1), residuals, color=colour, linewidth=width)
    left.set(xscale="log", yscale="log", xlabel="sweeps", ylabel="largest force out of balance")
    left.minorticks_off()
    seen = sketches.gather_safety(result.optimizer, ("step", "friction"))
    sketches.draw_safety(right, seen, result.trials, result.best)
    plots.save(figure, output)


def main():
    """Tune, count the deaths, draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--output", type=Path, default="segfault.png")
    options = parser.parse_args()
    result = crashbo.minimize(
        experiment,
        {"step": crashbo.Float(0.03, 3.0, log=True), "friction": crashbo.Float(0.01, 1.0, log=True)},
        trials=options.trials,
        workers=2,
        timeout=10.0,  # seconds from the moment that an experiment begins
        risk=crashbo.Price(crash=1),  # a crash takes no longer than a success
        seed=0,
    )
    reasons = [t.reason for t in result.trials if t.state == "crash"]
    for reason in sorted(set(reasons)):
        print(f"{reasons.count(reason)} times {reason}")
    best = result.best
    print(
        f"best: {10**best.cost:.0f} sweeps with step {best.params['step']:.3g}, friction {best.params['friction']:.3g}"
    )
    draw(result, options.output)


if __name__ == "__main__":
    main()
