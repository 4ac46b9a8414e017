"""Compared costs: ours against the same search with P(safe) held at one, BoTorch's PairwiseGP with EUBO, and random.

    python benchmarks/compare/run.py --seeds 100:120 --output runs
    python benchmarks/compare/run.py --output runs --table

A judge who errs in 5 % of the verdicts compares every success with the winner so far. Every finished run is kept, one
file per method; runs that are there are not made again.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ours
from judged import Judged, problem_of

PROBLEMS = "branin-disk,eggcrate2d,hartmann6d,mueller-ackley5d,smooth-4,driven-4,bowl-4,valley-2"


def _pairwise(machine: Judged, trials: int) -> dict[str, Any]:
    from pairwise import pairwise  # only here: torch takes seconds to import

    return pairwise(machine, trials)


METHODS: dict[str, Callable[[Judged, int], dict[str, Any]]] = {
    "crashbo": lambda machine, trials: ours.ours(machine, trials),
    "crashbo-labels": lambda machine, trials: ours.ours(machine, trials, measures=False),
    "reckless": lambda machine, trials: ours.ours(machine, trials, ours.reckless),
    "pairwise-eubo": _pairwise,
    "random": lambda machine, trials: ours.ours(machine, trials, "random"),
}


def main() -> None:
    """Run what is missing, or show the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", default=PROBLEMS)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0:4", help="first:end; those from 100 on are for reporting")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    if options.table:
        print(table(options.output, options.problems.split(",")))
        return
    first, end = map(int, options.seeds.split(":"))
    warnings.simplefilter("ignore")
    for problem in options.problems.split(","):
        for method in options.methods.split(","):
            for seed in range(first, end):
                run(options.output / f"{method}.jsonl", problem, method, seed, options.trials)


def run(path: Path, problem: str, method: str, seed: int, trials: int) -> None:
    """One study, unless it is there."""
    if any((row["problem"], row["seed"]) == (problem, seed) for row in rows(path)):
        return
    began, machine = time.process_time(), Judged(problem_of(problem, seed), seed)
    found = METHODS[method](machine, trials)
    point = found["recommended"] if method.startswith("crashbo") else found["best"]
    row = {
        "problem": problem,
        "seed": seed,
        "crashes": machine.crashes,
        "regret": machine.regret(point),
        "best": machine.regret(found["best"]),
        "seconds": round(time.process_time() - began, 1),
    }
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def rows(path: Path) -> list[dict[str, Any]]:
    """The runs that a file holds."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(folder: Path, problems: list[str]) -> str:
    """Mean regret and crashes per problem, and what ours leaves over the best of the others, paired, with its error."""
    found = {m: {(r["problem"], r["seed"]): r for r in rows(folder / f"{m}.jsonl")} for m in METHODS}
    found = {m: of for m, of in found.items() if of}
    lines = ["| | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    everyone = set.intersection(*({*of} for of in found.values()))
    for problem in [*problems, "all"]:
        keys = sorted(k for k in everyone if problem in ("all", k[0]))
        if not keys:
            continue
        cells = [f"{problem} ({len(keys)})"]
        for of in found.values():
            regrets, crashes = (np.array([of[k][what] for k in keys]) for what in ("regret", "crashes"))
            error = regrets.std(ddof=1) / len(keys) ** 0.5 if len(keys) > 1 else np.nan
            cells.append(f"{regrets.mean():.3f} ± {error:.3f} ({crashes.mean():.1f})")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
