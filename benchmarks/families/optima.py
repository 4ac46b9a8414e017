"""Find the optima of the families' members by brute force, and put them on file: crashbo/problems/families/optima.json.

    python benchmarks/families/optima.py --seeds 0:3,100:103   # what is on file is kept; --again finds it anew
    python benchmarks/families/optima.py --check 100:103       # compare with differential evolution
    python benchmarks/families/optima.py --seeds 0:25 --families options,cusps

The file saves a second or so per problem; a member that is not on file is searched when it is asked for.
"""

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two processes fill two cores

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy.optimize import differential_evolution

from crashbo.app.benchmark.campaign import seeds_of
from crashbo.benchmark.cases import Case, of_families
from crashbo.problems import families
from crashbo.problems.families import Instance, brute_force, stored

DIGITS = 9
ROUNDED = 1e-8  # of the span, that rounding may cost
WORSE = 1e-6  # of the span


def find(case: Case) -> list[float]:
    member = families.draw(case.problem, case.dimension, case.seed)
    found = brute_force.lowest(member)
    rounded = np.round(found.point, DIGITS)
    # A cusp is steep: there, rounding would cost something.
    higher = float(member.cost(rounded[None])[0]) - found.safe
    agrees = member.excess(rounded[None]).max() <= 0.0 and higher <= ROUNDED * (member.median - found.safe)
    u = rounded if agrees else found.point
    return [float(member.cost(u[None])[0]), found.overall, member.median, *map(float, u)]


def write(found: dict[str, dict[str, list[float]]]) -> None:
    families_ = [
        f"{json.dumps(name)}: {{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}"
        for name, rows in found.items()
    ]
    stored.PATH.write_text("{\n" + ",\n".join(families_) + "\n}\n", encoding="utf-8")


def search(names: list[str], seeds: list[int], again: bool) -> None:
    found: dict[str, dict[str, list[float]]] = json.loads(stored.PATH.read_text(encoding="utf-8"))
    cases = of_families(names, seeds)
    todo = [c for c in cases if again or stored.lowest(families.draw(c.problem, c.dimension, c.seed)) is None]
    with ProcessPoolExecutor() as pool:
        for done, (case, row) in enumerate(zip(todo, pool.map(find, todo), strict=True), start=1):
            found.setdefault(case.problem, {})[f"{case.dimension}/{case.seed}"] = row
            if done % 50 == 0 or done == len(todo):
                write(found)
                print(f"{done} of {len(todo)}: {case}", flush=True)


def penalised(member: Instance, x: np.ndarray) -> np.ndarray:
    """Cost where it is safe, else how far it is from safe; points are columns."""
    U = x.T.copy()
    for d, (_, levels) in enumerate(member.columns):
        if levels is not None:
            U[:, d] = levels[np.minimum((U[:, d] * len(levels)).astype(int), len(levels) - 1)]
    beyond = member.excess(U).max(axis=1)
    return np.where(
        beyond <= 0.0, (member.cost(U) - member.median) / member.unit, 1e9 * (1.0 + np.maximum(beyond, 0.0))
    )


def compare(case: Case) -> float:
    """How much lower differential evolution comes than what we have, of the span."""
    member, problem = families.draw(case.problem, case.dimension, case.seed), case.make()
    lows = []
    for seed in range(2):
        found = differential_evolution(
            partial(penalised, member),
            [(0.0, 1.0)] * case.dimension,
            popsize=max(8, 160 // case.dimension),
            maxiter=400,
            vectorized=True,
            updating="deferred",
            polish=False,
            rng=seed,
            tol=1e-10,
        )
        lows.append(found.fun * member.unit + member.median)
    return (problem.constrained_minimum - min(lows)) / (member.median - problem.constrained_minimum)


def check(names: list[str], seeds: list[int], most: int) -> None:
    cases = [case for case in of_families(names, seeds) if case.dimension <= most]
    with ProcessPoolExecutor() as pool:
        gaps = np.array(list(pool.map(compare, cases)))
    for case, gap in zip(cases, gaps, strict=True):
        if gap > WORSE:
            print(f"{case}: differential evolution is lower by {gap:.2g} of the span")
    print(
        f"{len(cases)} cases of up to {most} parameters: ours is higher by more than {WORSE:g} of the span in", end=" "
    )
    print(f"{np.sum(gaps > WORSE)}, differential evolution's by more than 0.001 in {np.sum(gaps < -1e-3)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="", help="to be put on file")
    parser.add_argument("--families", default=",".join(families.names()), help="some of them")
    parser.add_argument("--again", action="store_true", help="also what is on file")
    parser.add_argument("--check", default="", metavar="SEEDS", help="compare with another brute force")
    parser.add_argument("--most", type=int, default=20, help="parameters that the other brute force is good for")
    options = parser.parse_args()
    names = options.families.split(",")
    for words in filter(None, options.seeds.split(",")):
        search(names, seeds_of(words), options.again)
    if options.check:
        check(names, seeds_of(options.check), options.most)


if __name__ == "__main__":
    main()
