"""The quadruped with two goals: height against energy. Makes the picture and the films of docs/goals.md.

python benchmarks/solo8/front.py --output docs/images
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import crashbo
from crashbo.app import animation, plots
from crashbo.app.animation import Film
from crashbo.problems.solo8.jump import jump
from crashbo.problems.solo8.problem import RANGES, SETUP, START, gains, height_and_energy

_GOALS: Any = {"height": "maximize", "energy": "minimize"}


def main() -> None:
    """Run the study, and draw its front."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    result = crashbo.minimize(
        lambda params: height_and_energy(params, rng),
        dict.fromkeys(RANGES, (0.0, 1.0)),
        constraints=["current", crashbo.Unmeasured("fall")],
        objectives=_GOALS,
        start=[START],
        trials=options.trials,
        seed=options.seed,
        progress=False,
    )
    front = sorted(result.front, key=lambda t: t.cost["energy"])
    for trial in front:
        print(trial.number, {k: round(v, 3) for k, v in trial.params.items()}, trial.cost, trial.measured)
    states = {state: sum(t.state == state for t in result.trials) for state in ("success", "crash")}
    print(
        states, "hypervolume", result.hypervolume({"height": 0.25, "energy": 60.0}), result.thresholds["current"].words
    )
    chosen = [front[0], front[len(front) // 2], front[-1]]
    plots.save(draw(result, chosen), options.output / "solo8-front.png")
    films = []
    for name, trial in zip(("thrifty", "middle", "high"), chosen, strict=True):
        tape = jump(gains(trial.params), SETUP, record=True).tape
        assert tape is not None
        title = f"{trial.cost['height']:.2f} m, {trial.cost['energy']:.0f} J"
        films.append(Film(options.output / f"solo8-front-{name}.gif", title, tape))
    animation.save(films)


def draw(result: crashbo.Result, chosen: list[crashbo.Trial]) -> plots.Figure:
    """Height against energy: the front, what it beats, and crashes beside it, where only a reason is known."""
    figure, axes = plots.panel(
        (7.6, 4.2), "Height against energy", "large: on the front; orange: filmed; crosses: crashes"
    )
    done, members = [t for t in result.trials if t.state == "success"], {t.number for t in result.front}
    beaten = [t for t in done if t.number not in members]
    axes.plot(
        [t.cost["energy"] for t in beaten], [t.cost["height"] for t in beaten], "o", color="#8C8C8C", markersize=4
    )
    on_it = sorted((t.cost["energy"], t.cost["height"]) for t in done if t.number in members)
    axes.plot([x for x, _ in on_it], [y for _, y in on_it], "-o", color=plots.MODEL, markersize=6, linewidth=1.4)
    axes.plot(
        [t.cost["energy"] for t in chosen], [t.cost["height"] for t in chosen], "o", color="#E69F00", markersize=10
    )
    crashes = sum(t.state == "crash" for t in result.trials)
    low, high = axes.get_xlim()
    edge = axes.get_ylim()[0]
    axes.plot(
        np.linspace(low, high, crashes + 2)[1:-1], [edge] * crashes, "x", color="#D55E00", markersize=7, clip_on=False
    )
    axes.set_xlabel("energy drawn until landing (J)")
    axes.set_ylabel("height of the base (m)")
    return figure


if __name__ == "__main__":
    main()
