"""Does a share p of the trials with P(safe) near p succeed? Over studies of many problems, none of them the paper's.

    python benchmarks/calibration.py [--seeds 1] [--trials 60] [--problems all] [--save FILE] [--figure FILE]
    python benchmarks/calibration.py --load FILE [--figure FILE]

For every study: P(safe) of each trial that the search proposed, before the correction and as reported, and its outcome;
and at every tenth trial, both at uniformly random x against the truth. Prints shares in bins of 0.1 and the largest
gap of a bin with 100 trials or more (at most 0.1), and draws the reliability plot. A saved file can be evaluated again
without running anything.
"""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import crashbo
import tuning_problems
from crashbo.app import reliability
from crashbo.problems.problem import Problem
from crashbo.search.calibration import Calibration

# The paper's are reserved for validation; the spring and the reducer crash nearly everywhere: nothing is learnt.
LEFT_OUT = ("toy1d", "eggcrate2d", "eggcrate2d-corner", "hartmann6d", "michalewicz10d", "gardner2", "speed-reducer")
RANDOM = 40  # random points at every tenth trial


class Study(NamedTuple):
    problem: str
    seed: int
    trials: int


def names() -> list[str]:
    """All problems except those left out."""
    return [*tuning_problems.RECIPES, *(name for name in crashbo.problems.names() if name not in LEFT_OUT)]


def problem_of(name: str) -> Problem:
    return tuning_problems.get(name) if name in tuning_problems.RECIPES else crashbo.problems.get(name)


def run(study: Study) -> dict[str, Any]:
    """Predictions and outcomes of one study, as plain values."""
    problem, rng = problem_of(study.problem), np.random.default_rng(1000 + study.seed)
    optimizer = crashbo.Optimizer(problem.space, problem.constraints, seed=study.seed, start=[problem.safe_start(rng)])
    blind_model: list[float] = []
    blind_p: list[float] = []
    blind_safe: list[bool] = []
    for number in range(study.trials):
        trial = optimizer.ask()
        try:
            outcome = problem.evaluate(trial.params, rng)
            optimizer.tell(trial, cost=outcome.cost, measured=outcome.measured)
        except crashbo.Crash as crash:
            optimizer.tell(trial, crash=crash)
        if number % 10 == 9:
            points = [
                optimizer.space.decode(u)
                for u in optimizer.space.uniform(rng.random((RANDOM, optimizer.space.dimension)))
            ]
            view = optimizer.view
            blind_model += np.exp(view.safety.wary(np.array([optimizer.space.encode(p) for p in points]))).tolist()
            blind_p += view.p_safe(points).tolist()
            blind_safe += [not problem.truth(p).crashed for p in points]
    proposed = [t for t in optimizer.trials if t.origin == "search" and t.p_model is not None]
    return {
        "problem": study.problem,
        "seed": study.seed,
        "model": [t.p_model for t in proposed],
        "reported": [t.p_safe for t in proposed],
        "safe": [t.state == "success" for t in proposed],
        "random_model": blind_model,
        "random": blind_p,
        "random_safe": blind_safe,
    }


def replayed(record: dict[str, Any]) -> list[float]:
    """What the present calibration would have reported for each proposal."""
    p, safe = np.array(record["model"]), np.array(record["safe"], dtype=bool)
    return [Calibration.of(p[:i], ~safe[:i]).corrected(p[i]) for i in range(len(p))]


def gathered(records: list[dict[str, Any]]) -> list[reliability.Reliability]:
    safe = np.concatenate([np.array(r["safe"], dtype=bool) for r in records])
    random_safe = np.concatenate([np.array(r["random_safe"], dtype=bool) for r in records])
    return [
        reliability.gather(np.concatenate([r["model"] for r in records]), safe, "proposed, model"),
        reliability.gather(np.concatenate([replayed(r) for r in records]), safe, "proposed, reported"),
        reliability.gather(np.concatenate([r["random_model"] for r in records]), random_safe, "random x, model"),
        reliability.gather(np.concatenate([r["random"] for r in records]), random_safe, "random x, reported"),
    ]


def log_loss(p: np.ndarray, safe: np.ndarray) -> float:
    p = np.clip(p, 1e-6, 1.0 - 1e-6)
    return float(-np.mean(np.where(safe, np.log(p), np.log1p(-p))))


def show(records: list[dict[str, Any]]) -> None:
    found = gathered(records)
    print(reliability.table(found))
    for r in found:
        over = float(np.nansum(r.gaps * r.counts) / r.counts.sum())
        print(
            f"{r.name:20s} worst bin of 100 or more {r.worst():.3f} (at most 0.1), too sure by {over:+.3f} on average"
        )
    safe, random_safe = (
        np.concatenate([np.array(r[key], dtype=bool) for r in records]) for key in ("safe", "random_safe")
    )
    for name, p in (("model", [r["model"] for r in records]), ("reported", [replayed(r) for r in records])):
        print(f"log loss of proposals, {name:9s} {log_loss(np.concatenate(p), safe):.4f}")
    for name, key in (("model", "random_model"), ("reported", "random")):
        print(
            f"log loss of random x,  {name:9s} {log_loss(np.concatenate([r[key] for r in records]), random_safe):.4f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="all", help="names with commas")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--load", type=Path)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    if args.load:
        records = json.loads(args.load.read_text())
    else:
        chosen = names() if args.problems == "all" else args.problems.split(",")
        studies = [Study(name, seed, args.trials) for seed in range(args.seeds) for name in chosen]
        records = []
        with ProcessPoolExecutor(args.workers) as pool:
            for record in pool.map(run, studies):
                records.append(record)
                if args.save:
                    args.save.write_text(json.dumps(records))
    print(f"{len(records)} studies of {len({r['problem'] for r in records})} problems")
    show(records)
    if args.figure:
        from crashbo.app import plots

        plots.save(plots.draw_reliability(gathered(records)), args.figure)


if __name__ == "__main__":
    main()
