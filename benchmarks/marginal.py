"""Does it help to average P(safe) over plausible hyperparameters, instead of using the most probable ones?

    python benchmarks/marginal.py [--seeds 2]             # how good P(safe) is at random x, after random trials
    python benchmarks/marginal.py --studies [--seeds 4]   # regret and crashes of whole studies

Compares `posterior="map"` with `posterior="marginal"`, the default.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import crashbo
import tuning_problems

Array = NDArray[np.float64]

WAYS = ("map", "marginal")
PROBLEMS = ("bound2d", "branin2d", "cells2d", "cells3d", "plateau3d", "ackley4d", "valley4d", "levy5d", "wells5d")
SIZES = (5, 10, 25, 50)
POINTS = 200


class Quality(NamedTuple):
    """Quality of predictions p: log loss, Brier score, and the mean gap between P(safe) and outcomes."""

    log_loss: float
    brier: float
    gap: float


def quality(p: Array, safe: Array) -> Quality:
    q = np.clip(p, 1e-6, 1.0 - 1e-6)
    log_loss = -np.mean(np.where(safe, np.log(q), np.log1p(-q)))
    bins = np.minimum((10.0 * p).astype(int), 9)
    gaps = [abs(np.mean(p[bins == k]) - np.mean(safe[bins == k])) * np.mean(bins == k) for k in np.unique(bins)]
    return Quality(float(log_loss), float(np.mean((p - safe) ** 2)), float(np.sum(gaps)))


def predictions(cell: tuple[str, int, int]) -> tuple[Array, Array, Array]:
    """P(safe) at random x by both, after n random trials, and the truth."""
    name, n, seed = cell
    problem = tuning_problems.get(name)
    found = []
    for way in WAYS:
        rng = np.random.default_rng(seed)
        optimizer = crashbo.Optimizer(problem.space, problem.constraints, seed=seed, posterior=way)
        space = optimizer.space
        for u in rng.random((n, space.dimension)):
            params = space.decode(u)
            try:
                outcome = problem.evaluate(params, rng)
                optimizer.tell(params, cost=outcome.cost, measured=outcome.measured)
            except crashbo.Crash:
                optimizer.tell(params, crash=True)
        points = [space.decode(u) for u in np.random.default_rng(seed + 1).random((POINTS, space.dimension))]
        found.append(np.asarray(optimizer.p_safe(points)))
    return found[0], found[1], np.array([not problem.truth(params).crashed for params in points])


def compare(seeds: int) -> None:
    print("P(safe) at random x after n random trials: log loss, Brier's score, gap of a reliability diagram")
    for n in SIZES:
        with ProcessPoolExecutor() as pool:
            of_n = list(pool.map(predictions, [(name, n, seed) for name in PROBLEMS for seed in range(seeds)]))
        safe = np.concatenate([truth for *_, truth in of_n])
        for k, way in enumerate(WAYS):
            q = quality(np.concatenate([each[k] for each in of_n]), safe)
            print(f"n = {n:3d}  {way:9s} {q.log_loss:.4f}  {q.brier:.4f}  {q.gap:.4f}", flush=True)
        losses = [[quality(p, truth).log_loss for p in (a, b)] for a, b, truth in of_n]
        print(f"         marginal is better on {np.mean([b < a for a, b in losses]):.0%} of {len(of_n)} data sets")


def study(job: tuple[str, int], way: str, trials: int) -> tuple[float, int]:
    """Regret and crashes of one study."""
    name, seed = job
    problem, rng = tuning_problems.get(name), np.random.default_rng(1000 + seed)
    result = crashbo.minimize(
        lambda params: problem.evaluate(params, rng),
        problem.space,
        constraints=problem.constraints,
        trials=trials,
        seed=seed,
        start=[problem.safe_start(rng)],
        posterior=way,
        progress=False,
    )
    assert result.best is not None
    regret = problem.truth(result.best.params).cost - problem.minimum
    return regret, sum(t.state == "crash" for t in result.trials)


def compare_studies(seeds: int, trials: int) -> None:
    print(f"studies of {trials} trials: median regret, mean crashes")
    jobs = [(name, seed) for name in PROBLEMS for seed in range(seeds)]
    with ProcessPoolExecutor() as pool:
        both = {
            way: dict(zip(jobs, pool.map(partial(study, way=way, trials=trials), jobs), strict=True)) for way in WAYS
        }
    for name in PROBLEMS:
        for way, found in both.items():
            regret, crashes = zip(*(value for job, value in found.items() if job[0] == name), strict=True)
            print(f"{name:10s} {way:9s} {np.median(regret):8.4f}  {np.mean(crashes):5.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--studies", action="store_true")
    parser.add_argument("--trials", type=int, default=60)
    args = parser.parse_args()
    if args.studies:
        compare_studies(args.seeds, args.trials)
    else:
        compare(args.seeds)


if __name__ == "__main__":
    main()
