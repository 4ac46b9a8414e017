"""What models of many trials are worth: against models that know every trial, and with more trials than before.

    python benchmarks/many.py exact [--trials 1000] [--families smooth,noisy] [--seeds 0:2]
    python benchmarks/many.py growth [--trials 500 3000]

`exact`: the share of places at which P(safe) lies within 0.02 of that of a fit of all trials at once, at random and
about the best, where the search looks; and the time that either takes. A fit of all takes seconds at 1000 trials,
half a minute at 2000.

`growth`: how good P(safe) and the recommended setting are after ever more trials of the same study: the mean log
score of true labels at random places (0 is perfect), and the regret of `recommend()` as a share of the spread of costs.

Trials are those of a family's problem in four dimensions: a quarter at random, then most of them about the best so far.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: CPU time is of one core

import time
from typing import Any

import numpy as np

import crashbo
from crashbo.models import hyperpriors
from crashbo.optimizer.observed import observations
from crashbo.problems import families
from crashbo.search import fitting
from crashbo.search.acquisition import LogGamma

DIMENSION = 4
WITHIN = 0.02
FAMILIES = "smooth,rugged,driven,bowl,kink,jump,noisy,additive,plateau"


def study(problem: Any, n: int, seed: int) -> crashbo.Optimizer:
    """n trials of a problem, told."""
    rng, optimizer = np.random.default_rng(seed), crashbo.Optimizer(problem.space, problem.constraints, seed=0)
    space, best, least = optimizer.space, None, np.inf
    for i in range(n):
        x = rng.random(space.dimension)
        if i >= n // 4 and best is not None and rng.random() > 0.2:
            moved = (x < 0.5 + 1.0 / space.dimension) * 10.0 ** rng.uniform(-3.0, -0.7)
            x = best + moved * rng.standard_normal(space.dimension)
        x = space.snap(np.clip(x, 0.0, 1.0)[None])[0]
        told = outcome(problem, space.decode(x), rng)
        cost = told.get("cost", np.inf)
        if cost < least:
            best, least = x, cost
        optimizer.tell(space.decode(x), **told)
    return optimizer


def outcome(problem: Any, params: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """What to tell of a trial."""
    try:
        found = problem.evaluate(params, rng)
    except crashbo.Crash as crash:
        return {"crash": crash}
    return {"cost": found.cost, "measured": found.measured}


def exact(names: list[str], seeds: range, n: int) -> None:
    """Both kinds of models of the same trials."""
    print("family    seed  crashes   all  many   random  about the best")
    shares = []
    for name in names:
        for seed in seeds:
            optimizer = study(families.get(name, DIMENSION, seed), n, seed)
            seen = observations(optimizer.study, optimizer.trials)
            priors = hyperpriors.of_cost(DIMENSION), hyperpriors.of_crash(DIMENSION)
            took_all, whole = timed(lambda: fitting._of_all(seen, None, *priors, "marginal", True))  # noqa: B023
            took, many = timed(lambda: fitting.fit_surrogates(seen))  # noqa: B023
            places = random_places(1000), about_the_best(seen, whole, 500)
            gaps = [np.abs(np.exp(LogGamma(many.ensemble)(X)) - np.exp(LogGamma(whole.ensemble)(X))) for X in places]
            near = [float(np.mean(gap < WITHIN)) for gap in gaps]
            shares.append(near)
            crashes = float(seen.crashed.mean())
            print(
                f"{name:10s} {seed:3d} {crashes:7.0%} {took_all:6.1f} {took:5.1f}  {near[0]:7.1%} {near[1]:14.1%}",
                flush=True,
            )
    pooled = np.mean(shares, axis=0)
    print(f"within {WITHIN}, in the mean: {pooled[0]:.1%} at random, {pooled[1]:.1%} about the best")


def random_places(count: int) -> np.ndarray:
    """All over the space."""
    return np.random.default_rng(9).random((count, DIMENSION))


def about_the_best(seen: Any, models: Any, count: int) -> np.ndarray:
    """Where the search has its candidates."""
    rng = np.random.default_rng(9)
    steps = 0.5 * np.minimum(models.cost.hypers[0].lengthscales, 1.0) * rng.standard_normal((count, DIMENSION))
    best = seen.X[np.nanargmin(seen.cost)]
    return np.clip(best + steps * (rng.random((count, DIMENSION)) < 0.6), 0.0, 1.0)


def timed(work: Any) -> tuple[float, Any]:
    """CPU seconds, and what came of it."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def growth(names: list[str], seeds: range, sizes: list[int]) -> None:
    """P(safe) and the recommendation after ever more trials."""
    print("family    seed" + "".join(f"{f'n = {n}: log score, regret':>34}" for n in sizes))
    table = []
    for name in names:
        for seed in seeds:
            problem = families.get(name, DIMENSION, seed)
            space = crashbo.Optimizer(problem.space).space
            points = [space.decode(space.snap(x[None])[0]) for x in random_places(500)]
            truths = [problem.truth(p) for p in points]
            crashed = np.array([t.crashed for t in truths])
            spread = float(np.std([t.cost for t in truths]))
            row = []
            for n in sizes:
                optimizer = study(problem, n, seed)
                p = np.clip(optimizer.p_safe(points), 1e-6, 1.0 - 1e-6)
                score = float(np.mean(np.where(crashed, np.log1p(-p), np.log(p))))
                advice = optimizer.recommend()
                truth = problem.truth(advice.params)
                least = problem.constrained_minimum
                row += [score, np.nan if truth.crashed else (truth.cost - least) / spread]
            table.append(row)
            print(f"{name:10s} {seed:3d}" + "".join(f"{v:17.4f}" for v in row), flush=True)
    means = np.nanmedian(table, axis=0)
    print("median        " + "".join(f"{v:17.4f}" for v in means))
    first, last = np.array(table)[:, :2], np.array(table)[:, -2:]
    better = np.mean(last[:, 0] > first[:, 0]), np.mean(last[:, 1] <= first[:, 1] + 1e-12)
    print(
        f"better with n = {sizes[-1]} than with {sizes[0]}: P(safe) in {better[0]:.0%}, the setting in {better[1]:.0%}"
    )


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("exact", "growth"))
    parser.add_argument("--trials", type=int, nargs="+")
    parser.add_argument("--families", default=FAMILIES)
    parser.add_argument("--seeds", default="0:1", help="first:end")
    options = parser.parse_args()
    names, seeds = options.families.split(","), range(*map(int, options.seeds.split(":")))
    if options.what == "exact":
        for n in options.trials or [1000]:
            exact(names, seeds, n)
    else:
        growth(names, seeds, options.trials or [500, 3000])


if __name__ == "__main__":
    main()
