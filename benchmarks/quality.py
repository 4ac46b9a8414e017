"""Regret and crashes of whole studies: the paper's benchmarks, our tuning problems, or any other by name.

    python benchmarks/quality.py                              # the paper's four, 10 seeds, 100 trials, our default
    python benchmarks/quality.py --risk paper
    python benchmarks/quality.py --risk budget:10
    python benchmarks/quality.py --problems tuning --seeds 5

Regret is the noise-free cost at the trial with the best observed cost, minus the problem's minimum. The optimiser is
told neither noise nor threshold, and starts from one random safe point.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two studies at a time fill two cores

import numpy as np

import crashbo
import tuning_problems
from crashbo.problems.problem import Problem

PAPER = ("eggcrate2d", "hartmann6d", "michalewicz10d", "eggcrate2d-corner")


class Study(NamedTuple):
    problem: str
    seed: int
    trials: int
    risk: str


class Figures(NamedTuple):
    regret: float
    safe: float
    crashes: int
    threshold: float
    seconds: float


def problem_of(name: str) -> Problem:
    return tuning_problems.get(name) if name in tuning_problems.RECIPES else crashbo.problems.get(name)


def risk_of(word: str, trials: int) -> object:
    kind, _, value = word.partition(":")
    if kind == "budget":
        return crashbo.Budget(int(value), trials=trials)
    if kind == "price":
        return crashbo.Price(float(value))
    return crashbo.MinSafe(float(value)) if kind == "minsafe" else {"default": None, "paper": "paper"}[kind]


def run(study: Study) -> Figures:
    problem, rng = problem_of(study.problem), np.random.default_rng(1000 + study.seed)
    since = time.process_time()
    result = crashbo.minimize(
        lambda params: problem.evaluate(params, rng),
        problem.space,
        constraints=problem.constraints,
        trials=study.trials,
        seed=study.seed,
        risk=risk_of(study.risk, study.trials),
        start=[problem.safe_start(rng)],
        progress=False,
    )
    assert result.best is not None
    crashes = sum(t.state == "crash" for t in result.trials)
    first = next(iter(result.thresholds.values())).value
    return Figures(
        regret=problem.truth(result.best.params).cost - problem.minimum,
        safe=1.0 - crashes / len(result.trials),
        crashes=crashes,
        threshold=float("nan") if first is None else first,
        seconds=(time.process_time() - since) / study.trials,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default=",".join(PAPER), help="names with commas, or 'tuning'")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--risk", default="default", help="default, paper, price:C, budget:K or minsafe:P")
    parser.add_argument("--each", action="store_true", help="every seed's regret and crashes, too")
    args = parser.parse_args()
    names = list(tuning_problems.RECIPES) if args.problems == "tuning" else args.problems.split(",")
    print(f"risk {args.risk}, {args.seeds} seeds, {args.trials} trials")
    print(f"{'problem':18s} {'median':>9s} {'worst':>9s}   safe  most crashes  threshold  ms/trial")
    with ProcessPoolExecutor() as pool:
        for name in names:
            studies = [Study(name, seed, args.trials, args.risk) for seed in range(args.seeds)]
            done = list(pool.map(run, studies))
            regret = np.array([f.regret for f in done])
            print(
                f"{name:18s} {np.median(regret):9.4f} {regret.max():9.4f}  {np.mean([f.safe for f in done]):5.1%}"
                f"  {max(f.crashes for f in done):12d}  {np.nanmean([f.threshold for f in done]):9.4g}"
                f"  {1e3 * np.mean([f.seconds for f in done]):8.0f}",
                flush=True,
            )
            if args.each:
                print("   " + "  ".join(f"{f.regret:.3g}/{f.crashes}" for f in done), flush=True)


if __name__ == "__main__":
    main()
