"""Which gains matter to Solo8's jump, and where it crashes: variance-based indices by Saltelli's scheme.

    python benchmarks/solo8/sensitivity.py                    # 1,024 base points, 6,144 jumps: 4 minutes on 2 cores
    python benchmarks/solo8/sensitivity.py --points 64

The height is that of a perfect robot whose boards never trip, so that it exists for every x. First-order indices by
Saltelli (2010), total ones by Jansen (1999), 90 % intervals by bootstrap. Crashes are counted over the same points.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the jumps themselves are spread over the cores

import numpy as np
from scipy.stats import qmc

NAMES = ("p_knee", "p_hip", "d_knee", "d_hip")


def run(x: np.ndarray) -> tuple[float, float, bool]:
    from crashbo.problems.solo8 import problem
    from crashbo.problems.solo8.jump import jump

    flight = jump(problem.gains(dict(zip(NAMES, x, strict=True))), problem.SETUP.untrippable)
    return flight.height, flight.current, bool(flight.crash)


def design(points: int, seed: int) -> np.ndarray:
    """A, B, and A with each column in turn from B: (6, points, 4)."""
    A, B = np.split(qmc.Sobol(8, seed=seed).random(points), 2, axis=1)
    mixed = [np.where(np.arange(4) == j, B, A) for j in range(4)]
    return np.stack([A, B, *mixed])


def indices(f: np.ndarray) -> np.ndarray:
    """First-order and total index of every parameter, (2, 4), from heights (6, points)."""
    a, b, mixed = f[0], f[1], f[2:]
    var = np.var(f[:2])
    first = np.mean(b * (mixed - a), axis=1) / var
    total = np.mean((a - mixed) ** 2, axis=1) / (2.0 * var)
    return np.stack([first, total])


def bootstrap(f: np.ndarray, rounds: int = 1000) -> np.ndarray:
    rng = np.random.default_rng(0)
    n = f.shape[1]
    drawn = [indices(f[:, rng.integers(n, size=n)]) for _ in range(rounds)]
    return np.quantile(drawn, [0.05, 0.95], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1024, help="base points, a power of two")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from crashbo.problems.solo8 import problem

    X = design(options.points, options.seed)
    with ProcessPoolExecutor() as pool:
        runs = list(pool.map(run, X.reshape(-1, 4), chunksize=32))
    heights, currents, fell = (np.array(column).reshape(6, -1) for column in zip(*runs, strict=True))
    found, (low, high) = indices(heights), bootstrap(heights)
    print(f"{options.points} base points, {heights.size} jumps: height with the trip disabled")
    print(f"{'':8s} {'first':>6s} {'total':>6s}   90 % interval of the total")
    for j, name in enumerate(NAMES):
        print(f"{name:8s} {found[0, j]:6.3f} {found[1, j]:6.3f}   {low[1, j]:.3f} to {high[1, j]:.3f}")

    X, currents, fell, heights = X[:2].reshape(-1, 4), currents[:2].ravel(), fell[:2].ravel(), heights[:2].ravel()
    tripped = currents > problem.SETUP.trip
    crashed = tripped | fell
    print(f"crashes {crashed.mean():.1%} of the cube: {tripped.mean():.1%} trip, {fell.mean():.1%} fall (or would)")
    stiff = X[:, :2] > 0.5
    for words, knee, hip in (("neither", 0, 0), ("hips", 0, 1), ("knees", 1, 0), ("both", 1, 1)):
        corner = (stiff[:, 0] == bool(knee)) & (stiff[:, 1] == bool(hip))
        shares = crashed[corner].mean(), crashed[corner].sum() / crashed.sum()
        print(f"  high P of {words:7s} {shares[0]:6.1%} crash, {shares[1]:.0%} of all crashes")
    safe = heights[~crashed]
    print(f"safe heights: least {safe.min():.2f}, median {np.median(safe):.2f}, best {safe.max():.3f} m")


if __name__ == "__main__":
    main()
