"""What `ask_batch` costs, and what its points are worth.

    python benchmarks/batch.py cost                  # CPU time of tell x 32, ask_batch(32), over two asks of GPSampler
    python benchmarks/batch.py spread                # distances within a batch, and between asks that nobody has told
    python benchmarks/batch.py worth --seeds 0:2     # 10 batches of 32 beside 160 trials one by one, by family

Cost is measured at 100 and 1,000 trials in 4 and 10 dimensions, on the same random trials as benchmarks/ask.py, one
BLAS thread each, both in this process. Worth is paired by case: the normalised regret after ten batches of 32 less that
after 160 trials of one worker, and both numbers of crashes. Seeds from 100 on are for reporting.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: both sides of a ratio use one core

import time
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import numpy as np

import ask
import crashbo
from crashbo.app.benchmark.campaign import seeds_of
from crashbo.benchmark.cases import Case, of_families
from crashbo.benchmark.machine import Machine
from crashbo.benchmark.measures import incumbents, normalised_regret, score
from crashbo.problems import families

BATCH, BATCHES, SEQUENTIAL = 32, 10, 160
SIZES, DIMENSIONS = (100, 1000), (4, 10)


def study_of(n: int, dimension: int, rng: np.random.Generator) -> crashbo.Optimizer:
    """A study with n random trials, and then a batch: it is warm."""
    optimizer = crashbo.Optimizer(ask.space(dimension), ["load"], seed=0)
    for params in ask.settings(n - 2 * BATCH, dimension):
        optimizer.tell(params, **ask.outcome(params, rng))
    for trial in optimizer.ask_batch(BATCH):
        optimizer.tell(trial, **ask.outcome(trial.params, rng))
    return optimizer


def ours(n: int, dimension: int) -> tuple[float, list[crashbo.Trial]]:
    """CPU seconds of telling a batch and asking for the next one, at n trials."""
    rng = np.random.default_rng(1)
    optimizer = study_of(n, dimension, rng)
    told = [(trial, ask.outcome(trial.params, rng)) for trial in optimizer.ask_batch(BATCH)]
    began = time.process_time()
    for trial, said in told:
        optimizer.tell(trial, **said)
    batch = optimizer.ask_batch(BATCH)
    return time.process_time() - began, batch


def cost(repeats: int) -> None:
    """In turns, since other work comes and goes: the median of the ratios."""
    peer = all(map(find_spec, ("optuna", "torch")))
    ask.clock = time.process_time
    for dimension in DIMENSIONS:
        for n in SIZES:
            times, ratios = [], []
            for _ in range(repeats):
                times.append(ours(n, dimension)[0])
                if peer:
                    ratios.append(times[-1] / (2.0 * float(np.median(ask.optuna_s(n, dimension, 3)))))
            words = f"n = {n:4d}, D = {dimension:2d}: {1e3 * np.median(times):6.0f} ms of CPU"
            if peer:
                spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
                words += f", {np.median(ratios):.2f} of two asks of GPSampler ({spread}; at most 1)"
            print(words, flush=True)


def nearest(X: np.ndarray) -> np.ndarray:
    """The distance of each row from the nearest other."""
    gaps = np.linalg.norm(X[:, None, :] - X[None, :, :], axis=2)
    np.fill_diagonal(gaps, np.inf)
    return gaps.min(axis=1)


def spread() -> None:
    for dimension in (1, 2, *DIMENSIONS):
        optimizer = crashbo.Optimizer(ask.space(dimension), ["load"], seed=0)
        rng = np.random.default_rng(1)
        for _ in range(40):
            trial = optimizer.ask()
            optimizer.tell(trial, **ask.outcome(trial.params, rng))
        waiting = crashbo.Optimizer.from_json(optimizer.to_json())
        for what, trials in (
            (f"ask_batch({BATCH})", optimizer.ask_batch(BATCH)),
            ("10 asks", [waiting.ask() for _ in range(10)]),
        ):
            gaps = nearest(np.array([list(t.params.values()) for t in trials]))
            low, middle = gaps.min(), np.median(gaps)
            print(f"D = {dimension:2d}, {what:14s}: nearest other {low:.4f}, median {middle:.4f}", flush=True)


def one(case: Case, batches: int, size: int) -> tuple[float, int]:
    """Final score and crashes of a study in batches."""
    problem = case.make()
    machine = Machine(problem, batches * size, case.seed)
    start = None if machine.start is None else [dict(machine.start)]
    optimizer = crashbo.Optimizer(machine.space, machine.constraints, seed=case.seed, start=start)
    for _ in range(batches):
        for trial in optimizer.ask_batch(size):
            reply = machine(trial.params)
            said: dict[str, Any] = (
                {"crash": True} if reply.crashed else {"cost": reply.cost, "measured": reply.measured}
            )
            optimizer.tell(trial, **said)
    costs = [t.cost for t in machine.tried]
    truths = [None if t.cost is None else problem.truth(t.params).cost for t in machine.tried]
    regret = normalised_regret(incumbents(costs, truths), problem.constrained_minimum, problem.median_safe_cost)
    return float(score(regret)[-1]), sum(cost is None for cost in costs)


def both(case: Case) -> tuple[Case, tuple[float, int], tuple[float, int]]:
    return case, one(case, BATCHES, BATCH), one(case, SEQUENTIAL, 1)


def worth(names: list[str], dimensions: list[int], seeds: list[int], processes: int) -> None:
    cases = of_families(names, seeds, dimensions)
    with get_context("spawn").Pool(processes) as pool:
        found = []
        for case, batch, single in pool.imap_unordered(both, cases):
            found.append((case, batch, single))
            print(f"{case!s:45s} {batch[0]:.4f} ({batch[1]:3d} crashes)  {single[0]:.4f} ({single[1]:3d})", flush=True)
    print(f"\n{'':16s} cases  batch   one by one   difference        crashes")
    for name in [*dict.fromkeys(case.problem for case, _, _ in found), "all"]:
        rows = [(batch, single) for case, batch, single in found if name in (case.problem, "all")]
        table = np.array([[*batch, *single] for batch, single in rows])
        gap = table[:, 0] - table[:, 2]
        error = 2.0 * np.std(gap, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
        means = table.mean(axis=0)
        print(
            f"{name:16s} {len(gap):5d} {means[0]:6.4f} {means[2]:6.4f}   {gap.mean():+.4f} ± {error:.4f}  "
            f"{means[1]:6.1f} {means[3]:6.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    commands.add_parser("cost").add_argument("--repeats", type=int, default=3)
    commands.add_parser("spread")
    third = commands.add_parser("worth")
    third.add_argument("--families", default=",".join(families.names()))
    third.add_argument("--dimensions", default="2,4,8")
    third.add_argument("--seeds", default="0:2")
    third.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.what == "cost":
        cost(options.repeats)
    elif options.what == "spread":
        spread()
    else:
        dimensions = [int(word) for word in options.dimensions.split(",")]
        worth(options.families.split(","), dimensions, seeds_of(options.seeds), options.processes)


if __name__ == "__main__":
    main()
