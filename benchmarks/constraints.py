"""The time of `tell` and `ask()` with G constraints, relative to one constraint.

    python benchmarks/constraints.py [--trials 200] [--most 10]

Three times are measured: a cold fit (a study that was told everything and is asked for the first time), the trials
after it (hyperparameters are not fitted again after a hundred trials), and one threshold's interval. With blamed
crashes, then without blame.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: both sides of a ratio use one core

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import crashbo

DIMENSION = 4
REPEATS = 5
NOISE = 0.01

Params = dict[str, float]


class Cost(NamedTuple):
    """Seconds."""

    cold: float
    warm: float
    interval: float


def machine(params: Params, G: int, blamed: bool, rng: np.random.Generator) -> dict[str, Any]:
    """What to tell: loads in G directions, each of which trips in about a tenth of the space over G."""
    x = np.array(list(params.values()))
    directions = np.random.default_rng(7).standard_normal((64, DIMENSION))[:G]
    loads = np.sin(2.0 * (directions @ (x - 0.5))) + 0.1 * np.arange(G)
    limits = 0.1 * np.arange(G) + (0.75 if G == 1 else 0.9)
    names = [f"g{j}" for j in range(G)]
    violated = [name for name, over in zip(names, loads > limits, strict=True) if over]
    if violated:
        return {"crash": True, "blame": violated if blamed else None}
    readings = loads + NOISE * rng.standard_normal(G)
    return {
        "cost": float(np.mean((x - 0.4) ** 2) + NOISE * rng.standard_normal()),
        "measured": dict(zip(names, map(float, readings), strict=True)),
    }


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def measure(G: int, n: int, blamed: bool) -> Cost:
    rng = np.random.default_rng(1)
    space = {f"x{d}": (0.0, 1.0) for d in range(DIMENSION)}
    optimizer = crashbo.Optimizer(space, [f"g{j}" for j in range(G)], seed=0)
    for x in np.random.default_rng(0).random((n, DIMENSION)):
        params = dict(zip(space, map(float, x), strict=True))
        optimizer.tell(params, **machine(params, G, blamed, rng))
    cold, trial = seconds(optimizer.ask)
    warm = []
    for _ in range(REPEATS):
        optimizer.tell(trial, **machine(trial.params, G, blamed, rng))
        took, trial = seconds(optimizer.ask)
        warm.append(took)
    interval, _ = seconds(lambda: optimizer.thresholds["g0"].interval)
    return Cost(cold, float(np.median(warm)), interval)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--most", type=int, default=10)
    args = parser.parse_args()
    print(f"n = {args.trials}, D = {DIMENSION}: seconds of CPU, and times those of one constraint")
    print("  G  crashes        cold ask         ask       interval of one")
    one: Cost | None = None
    for G in sorted({1, 2, 5, args.most}):
        for blamed in (True, False):
            if G == 1 and not blamed:
                continue
            cost = measure(G, args.trials, blamed)
            one = one or cost
            ratios = [f"{took:7.2f} ({took / alone:5.1f})" for took, alone in zip(cost, one, strict=True)]
            print(f"{G:3d}  {'blamed' if blamed else 'not'}     " + " ".join(ratios), flush=True)


if __name__ == "__main__":
    main()
