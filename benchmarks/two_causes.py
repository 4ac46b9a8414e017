"""A machine that crashes for two reasons and never says which: what is learnt about both, and the cost of not knowing.

    python benchmarks/two_causes.py [--seeds 10] [--trials 60] [--machine press]

A press is tuned by speed and force. Its motor trips at 112.3 A, on a scale of 60 to 130; its frame is bent beyond
0.02 mm, on a scale of 0 to 0.05. The two crash regions overlap partly. Its output per hour grows with both parameters,
so the best setting lies where both boundaries meet; the `bumpy-press` has a cost with a bump, whose best setting lies
only on the frame's boundary, and most settings near the motor's boundary are not promising. Every seed is run twice:
without blame, and with the true blame given. Bounds: both thresholds within a tenth of their scale, blame above 0.5 for
the true cause in 85 % of the crashes with a single one, regret at most 1.3 times as high.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import NamedTuple

import numpy as np

import crashbo

SPACE = {"speed": (0.0, 1.0), "force": (0.0, 1.0)}
LIMITS = {"current": 112.3, "strain": 0.02}
SCALES = {"current": 130.0 - 60.0, "strain": 0.05}
NOISE = {"cost": 0.005, "current": 0.5, "strain": 0.0003}


def press(x: float, y: float) -> float:
    return 1.0 - x * (0.5 + y)


def bumpy_press(x: float, y: float) -> float:
    return float(1.0 - 0.9 * x - 0.7 * y + 0.5 * x**2 + 0.15 * np.cos(6.0 * x))


MACHINES = {"press": press, "bumpy-press": bumpy_press}


def loads(params: dict[str, float]) -> dict[str, float]:
    """Noise-free current and strain."""
    x, y = params["speed"], params["force"]
    return {"current": 60.0 + 62.0 * x + 8.0 * y, "strain": 0.004 + 0.046 * y**2 * (1.0 - 0.5 * x)}


def causes(params: dict[str, float]) -> list[str]:
    """The constraints that params violate."""
    measured = loads(params)
    return [name for name, limit in LIMITS.items() if measured[name] > limit]


@cache
def lowest(machine: str) -> float:
    """The lowest cost of a safe setting, on a fine grid."""
    grid = np.linspace(0.0, 1.0, 501)
    points = ({"speed": float(x), "force": float(y)} for x in grid for y in grid)
    return min(MACHINES[machine](*p.values()) for p in points if not causes(p))


class Figures(NamedTuple):
    thresholds: dict[str, float]  # error over scale
    judged: int  # crashes with a single cause
    right: int  # of these, how many are blamed on it
    regret: float
    crashes: int


def study(seed: int, told: bool, trials: int = 60, machine: str = "press") -> Figures:
    """One study; `told` gives the true blame of every crash."""
    rng = np.random.default_rng(1000 + seed)
    optimizer = crashbo.Optimizer(SPACE, list(LIMITS), seed=seed)
    for _ in range(trials):
        trial = optimizer.ask()
        noise = dict(zip(NOISE, rng.standard_normal(3) * list(NOISE.values()), strict=True))
        violated = causes(trial.params)
        if violated:
            optimizer.tell(trial, crash=True, blame=violated if told else None)
            continue
        cost = MACHINES[machine](*trial.params.values())
        readings = {name: value + noise[name] for name, value in loads(trial.params).items()}
        optimizer.tell(trial, cost=cost + noise["cost"], measured=readings)
    crashed = [t for t in optimizer.trials if t.state == "crash"]
    single = [(t, causes(t.params)[0]) for t in crashed if len(causes(t.params)) == 1]
    assert optimizer.best is not None
    values = {name: threshold.value for name, threshold in optimizer.thresholds.items()}
    return Figures(
        {k: float("inf") if v is None else abs(v - LIMITS[k]) / SCALES[k] for k, v in values.items()},
        len(single),
        sum(optimizer.blame(t)[cause] > 0.5 for t, cause in single),
        MACHINES[machine](*optimizer.best.params.values()) - lowest(machine),
        len(crashed),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--machine", choices=list(MACHINES), default="press")
    args = parser.parse_args()
    grid = np.random.default_rng(0).random((20_000, 2))
    shares = [tuple(causes({"speed": x, "force": y})) for x, y in grid]
    print("crashes from", {" and ".join(c) or "nothing": shares.count(c) / len(grid) for c in sorted(set(shares))})
    with ProcessPoolExecutor() as pool:
        seeds = range(args.seeds)
        blind, told = (
            list(pool.map(partial(study, told=told, trials=args.trials, machine=args.machine), seeds))
            for told in (False, True)
        )
    print("seed   error of thresholds     blame right    regret, blamed   crashes, blamed")
    for seed, (b, t) in enumerate(zip(blind, told, strict=True)):
        errors = "  ".join(f"{k} {e:6.1%}" for k, e in b.thresholds.items())
        figures = f"{b.right:3d} of {b.judged:3d}    {b.regret:.4f}  {t.regret:.4f}    {b.crashes:3d}  {t.crashes:3d}"
        print(f"{seed:4d}   {errors}   {figures}")
    worst = max(max(b.thresholds.values()) for b in blind)
    judged = sum(b.judged for b in blind)
    right = sum(b.right for b in blind)
    regrets = [np.median([f.regret for f in runs]) for runs in (blind, told)]
    means = [np.mean([f.regret for f in runs]) for runs in (blind, told)]
    print(f"worst error of a threshold  {worst:.1%} (at most 10 %)")
    print(f"blame right                 {right} of {judged} = {right / max(judged, 1):.1%} (at least 85 %)")
    print(f"median regret               {regrets[0]:.4f}, with the blame told {regrets[1]:.4f} (at most 1.3 times)")
    print(f"mean regret                 {means[0]:.4f}, with the blame told {means[1]:.4f}")


if __name__ == "__main__":
    main()
