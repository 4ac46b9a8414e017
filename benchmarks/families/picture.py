"""A picture of every family: two parameters, one seed. For docs/benchmark.md.

python benchmarks/families/picture.py [--seed 3] [--output docs/images/families.png]
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from crashbo.app import plots
from crashbo.problems import families
from crashbo.problems.families import Instance, brute_force

FINE = 160  # pixels of a side
COLUMNS = 6
WORST = 1.5  # normalised regret at which the scale ends


def draw(axes: plots.Axes, member: Instance) -> None:
    lowest = brute_force.lowest(member)
    grid = (np.arange(FINE) + 0.5) / FINE
    U = np.array([(a, b) for b, a in product(grid, grid)])
    for d, (_, levels) in enumerate(member.columns):
        if levels is not None:
            U[:, d] = np.sort(levels)[(U[:, d] * len(levels)).astype(int)]
    regret = (member.cost(U) - lowest.safe) / (member.median - lowest.safe)
    shown = np.where(member.excess(U).max(axis=1) > 0.0, np.nan, np.clip(regret, 0.0, WORST))
    axes.set_facecolor(plots.CRASH)
    axes.imshow(shown.reshape(FINE, FINE), origin="lower", extent=(0, 1, 0, 1), cmap="viridis", vmin=0.0, vmax=WORST)
    best, start = _shown(member, lowest.point), None if member.begin is None else _shown(member, member.begin)
    if start is not None:
        axes.plot(*start, "o", color="white", markeredgecolor="black", markersize=6, clip_on=False)
    axes.plot(*best, "*", color="white", markeredgecolor="black", markersize=13, clip_on=False)
    axes.set_title(f"{member.family.name}, {100.0 * member.share:.0f} % crash", fontsize=9.5, loc="left")
    axes.set_xticks([])
    axes.set_yticks([])


def _shown(member: Instance, u: np.ndarray) -> list[float]:
    """Where a point is in the picture: options are drawn side by side, in an order that shows the cost."""
    return [
        float(x) if levels is None else (float(np.searchsorted(np.sort(levels), x)) + 0.5) / len(levels)
        for x, (_, levels) in zip(u, member.columns, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("docs/images/families.png"))
    options = parser.parse_args()
    names = families.names()
    rows = -(-len(names) // COLUMNS)
    figure = plots.Figure(figsize=(2.0 * COLUMNS, 2.2 * rows), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, squeeze=False).flat
    for axes, name in zip(panels, names, strict=False):
        draw(axes, families.draw(name, 2, options.seed))
    for axes in figure.axes[len(names) :]:
        axes.set_axis_off()
    plots.save(figure, options.output)
    print(options.output)


if __name__ == "__main__":
    main()
