"""A mixture: three parts that make one whole, and a rule.

An electrolyte for batteries is mixed of three solvents. Their parts sum to one, and there is never more of EC, which
is solid at room temperature, than of the other two: both are known beforehand, so they are rules, and no trial is
wasted on what cannot be mixed. A mixture that is too thick blocks the robot's pump; at which viscosity, nobody knows.
Wanted: the best conductivity.

    python examples/mixture.py [--trials 30] [--output mixture.png]
"""

import argparse
import math
from pathlib import Path

import numpy as np

import crashbo
from crashbo.app import plots, sketches

BLOCKS = 3.3  # mPa s; nobody tells crashbo
RULES = ["EC + DMC + EMC == 1", "EC <= DMC + EMC"]


def conductivity(EC, DMC, EMC):
    """In mS/cm: EC dissolves the salt, DMC keeps it moving."""
    return 11.8 * math.exp(-(((EC - 0.46) / 0.33) ** 2) - ((EMC - 0.15) / 0.55) ** 2)


def viscosity(EC, DMC, EMC):
    """Thick of EC, and a little of EMC."""
    return math.exp(0.15 + 2.3 * EC + 0.5 * EMC + 1.2 * EC * EMC)


def experiment(mix):
    """The conductivity of a mixture and its viscosity; or that the pump is blocked."""
    thick = viscosity(**mix)
    if thick > BLOCKS:
        raise crashbo.Crash("the pump is blocked")
    return crashbo.Outcome(conductivity(**mix), measured={"viscosity": thick})


def corner(mix):
    """A mixture as a point in a triangle: DMC at the left, EMC at the right, EC on top."""
    return mix["EMC"] + mix["EC"] / 2, mix["EC"] * math.sqrt(3) / 2


def mixtures(n=50):
    """Mixtures all over the part of the triangle that keeps the rules."""
    shares = np.linspace(0, 1, n)
    parts = [{"EC": a / 2, "EMC": b * (1 - a / 2)} for a in shares for b in shares]
    return [{**m, "DMC": 1 - m["EC"] - m["EMC"]} for m in parts]


def draw(result, output):
    """The triangle of all mixtures: P(safe), conductivity, and the trials."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.3, 1.0])
    points = mixtures()
    x, y = np.array([corner(m) for m in points]).T
    shades = left.tricontourf(x, y, result.p_safe(points), np.linspace(0, 1, 11), cmap="Blues", vmin=-0.1, vmax=1.3)
    lines = left.tricontour(x, y, [conductivity(**m) for m in points], range(2, 12, 2), colors="white", linewidths=0.9)
    left.clabel(lines, fmt="%g mS/cm", fontsize=7)
    sketches.mark_trials(left, [(t.state, *corner(t.params)) for t in result.trials])
    left.plot(*corner(result.best.params), "*", color="#F0E442", markeredgecolor="black", markersize=15, zorder=6)
    left.plot([0, 1, 0.5, 0], [0, 0, math.sqrt(3) / 2, 0], color="#8C8C8C", linewidth=1.2)
    for words, at, where in (("DMC", (0, 0), (0, -14)), ("EMC", (1, 0), (0, -14)), ("EC", (0.5, 0.87), (0, 5))):
        sketches.note(left, words, at, where, color="black", ha="center", fontsize=10)
    sketches.note(left, "ruled out", (0.5, 0.52), (0, 0), color="#8C8C8C", ha="center")
    left.set(aspect="equal", xlim=(-0.05, 1.05), ylim=(-0.1, 0.95))
    left.set_axis_off()
    left.set_title("Every mixture", loc="left", fontsize=10.5, fontweight="bold")
    figure.colorbar(shades, ax=left, label="P(safe)", shrink=0.7, ticks=[0, 0.5, 1])
    plots.title(right, "Conductivity", "crosses blocked the pump")
    sketches.draw_course(right, result.trials, up=True)
    right.set_ylabel("mS/cm")
    plots.save(figure, output)


def main():
    """Mix, say what was found, draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--output", type=Path, default="mixture.png")
    options = parser.parse_args()
    result = crashbo.minimize(
        experiment,
        {"EC": (0.0, 1.0), "DMC": (0.0, 1.0), "EMC": (0.0, 1.0)},
        constraints=["viscosity"],
        rules=RULES,
        direction="maximize",
        units={"cost": "mS/cm", "viscosity": "mPa s"},
        trials=options.trials,
        seed=0,
    )
    best = ", ".join(f"{100 * part:.1f} % {name}" for name, part in result.best.params.items())
    print(f"{result.best.cost:.2f} mS/cm with {best}")
    print(f"the pump: {result.thresholds['viscosity'].words}")
    draw(result, options.output)


if __name__ == "__main__":
    main()
