"""Comparisons: nobody can write the cost down, but everybody sees which of two is better.

A robot arm swings a lamp into place. What looks right is a matter of taste: somebody watches two moves and says which
was better, or that they were about the same. Moves that are too brisk shake the bulb loose, and that is a crash. Here
a simulated judge stands in for your eyes: she dislikes overshoot and dawdling, cannot see small differences, and errs
in one verdict of twenty.

    python examples/judged.py [--trials 30] [--output judged.png]
"""

import argparse
import math
from pathlib import Path

import numpy as np

import crashbo
from crashbo.app import plots, sketches

LOOSE = 30.0  # m/s^2 at the bulb; nobody tells crashbo
TIME = np.linspace(0.0, 3.0, 301)


def move(pace, damping):
    """The lamp's way: it arrives at 1, as a spring and a damper would bring it there."""
    wave, decay = pace * math.sqrt(1 - damping**2), pace * damping
    return 1 - np.exp(-decay * TIME) * (np.cos(wave * TIME) + decay / wave * np.sin(wave * TIME))


def shake(pace, damping):
    """The largest acceleration at the bulb."""
    return float(np.abs(np.gradient(np.gradient(move(pace, damping), TIME), TIME)).max())


def taste(params):
    """What the judge feels and could not put into numbers: lower is better."""
    way = move(**params)
    overshoot = max(way.max() - 1.0, 0.0)
    dawdling = np.abs(way - 1).mean() * TIME[-1]
    return 4 * overshoot + 3 * dawdling


class Judge:
    """Somebody who looks at two moves."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def compare(self, optimizer, one, other):
        """Tell the optimizer which one is better."""
        gap = taste(other.params) - taste(one.params)
        if abs(gap) < 0.05:
            optimizer.prefer(one, other, tie=True)
        elif (gap > 0) != (self.rng.random() < 0.05):
            optimizer.prefer(one, other)
        else:
            optimizer.prefer(other, one)


def draw(optimizer, output):
    """The moves, the worst to the best by what was said of them; and the map of what is liked."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.dress(left)
    plots.title(left, "The moves", "the bluer the better, by the judge's words")
    ranked = [optimizer.trials[r.number] for r in optimizer.ranking()]
    for place, trial in reversed(list(enumerate(ranked))):
        fade = 1 - place / max(len(ranked) - 1, 1)
        left.plot(
            TIME, move(**trial.params), color=plots.MODEL, alpha=0.12 + 0.88 * fade**3, linewidth=2.4 * fade + 0.8
        )
    left.set_xlabel("time (s)")
    left.set_ylabel("way of the lamp")
    paces, dampings = np.linspace(1, 9, 45), np.linspace(0.1, 0.98, 45)
    grid = [{"pace": x, "damping": y} for y in dampings for x in paces]
    liked = -optimizer.worth(grid).mean.reshape(45, 45)
    right.contourf(paces, dampings, liked, 12, cmap="viridis")
    safe = optimizer.p_safe(grid).reshape(45, 45)
    right.contour(paces, dampings, safe, [0.5], colors=plots.CRASH, linewidths=2.0)
    sketches.mark_trials(right, [(t.state, t.params["pace"], t.params["damping"]) for t in optimizer.trials])
    best = optimizer.best.params
    right.plot(best["pace"], best["damping"], "*", color="#F0E442", markeredgecolor="black", markersize=15, zorder=6)
    plots.dress(right)
    right.grid(visible=False)
    plots.title(right, "What is liked", "bright: better; orange: P(safe) of one half")
    right.set_xlabel("pace (1/s)")
    right.set_ylabel("damping")
    plots.save(figure, output)


def main():
    """Move, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--output", type=Path, default="judged.png")
    options = parser.parse_args()
    optimizer = crashbo.Optimizer(
        {"pace": (1.0, 9.0), "damping": (0.1, 0.98)}, ["shake"], cost="compared", units={"shake": "m/s^2"}, seed=0
    )
    judge = Judge(seed=0)
    for _ in range(options.trials):
        trial = optimizer.ask()
        felt = shake(**trial.params)
        if felt > LOOSE:
            optimizer.tell(trial, crash="the bulb is loose")
            continue
        trial = optimizer.tell(trial, success=True, measured={"shake": felt})
        if trial.against is not None:  # the winner so far
            judge.compare(optimizer, trial, optimizer.trials[trial.against])
    print(f"the winner: {optimizer.best.params}")
    print(f"the bulb: {optimizer.thresholds['shake'].words}")
    draw(optimizer, options.output)


if __name__ == "__main__":
    main()
