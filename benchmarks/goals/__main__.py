"""Hypervolume after 50 and 100 trials, crashes, and seconds of an ask: `python -m benchmarks.goals --help`.

Every run is a line of a file, and is not made again. Seeds below 100 are for tuning.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.goals.methods import METHODS, Machine
from benchmarks.goals.problems import PROBLEMS

from crashbo.numerics.hypervolume import hypervolume

_AFTER = (25, 50, 100)


def main() -> None:
    """Run what is missing, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0:3")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--label", default="", help="appended to the methods' names")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    seeds = range(*map(int, options.seeds.split(":")))
    for seed in seeds:
        for name in options.problems.split(","):
            for method in options.methods.split(","):
                path = options.output / f"{name}.{method}{options.label}.jsonl"
                if not any(run["seed"] == seed and run["trials"] >= options.trials for run in _runs(path)):
                    line = _run(name, method, seed, options.trials)
                    with path.open("a") as file:
                        file.write(json.dumps(line) + "\n")
    print(table(options.output, options.problems.split(","), seeds))


def _runs(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _run(problem: str, method: str, seed: int, trials: int) -> dict[str, Any]:
    machine = Machine(PROBLEMS[problem], seed, trials)
    METHODS[method](machine)
    reference = np.array(PROBLEMS[problem].reference)
    marks = {}
    for k in _AFTER:
        known = np.array([v for v in machine.values[:k] if v is not None]).reshape(-1, len(reference))
        marks[k] = hypervolume(known, reference)
    crashes = {k: sum(v is None for v in machine.values[:k]) for k in _AFTER}
    last = float(np.median(machine.asked[-10:]))
    return {
        "seed": seed,
        "trials": trials,
        "hypervolume": marks,
        "crashes": crashes,
        "ask": last,
        "values": machine.values,
    }


def table(folder: Path, problems: list[str], seeds: range) -> str:
    """Mean hypervolume as a share of the best known, and mean crashes, per problem and method."""
    lines = []
    for name in problems:
        found = {p.name.split(".", 1)[1][:-6]: _runs(p) for p in sorted(folder.glob(f"{name}.*.jsonl"))}
        found = {m: [r for r in runs if r["seed"] in seeds] for m, runs in found.items()}
        most = max(
            (r["hypervolume"][k] for runs in found.values() for r in runs for k in r["hypervolume"]), default=1.0
        )
        lines.append(f"{name} (best {most:.4g})")
        for method, runs in found.items():
            cells = []
            for k in map(str, _AFTER):
                some = [r for r in runs if r["trials"] >= int(k)]
                if some:
                    shares = np.array([r["hypervolume"][k] for r in some]) / most
                    crashes = np.mean([r["crashes"][k] for r in some])
                    error = shares.std(ddof=1) / np.sqrt(len(some)) if len(some) > 1 else np.nan
                    cells.append(f"{shares.mean():.3f} +-{error:.3f} ({crashes:4.1f})")
            ask = np.median([r["ask"] for r in runs]) if runs else np.nan
            lines.append(f"  {method:22s} n={len(runs):2d}  " + "   ".join(cells) + f"   ask {ask:.2f} s")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
