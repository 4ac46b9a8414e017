"""Does it ever hurt to tell a study the truth? Each case is run without it and with it, paired.

    python benchmarks/given.py [--seeds 0:5] [--families jump,causes] [--dimensions 2,4] [--trials 50] [--truths noise]

The truths: thresholds; an interval about each, as wide as the readings of safe settings spread; the noise of cost and
readings; the violated constraints of every crash, where a family has more than one. Prints, per truth, normalised
regret and crashes without and with it, and their difference with one standard error. Seeds below 100 are for tuning.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import crashbo
from crashbo.app.benchmark.campaign import seeds_of
from crashbo.benchmark import measures
from crashbo.problems import Problem, families

NOTHING = "nothing"
TRUTHS = ("threshold", "interval", "noise", "blame")
FAMILIES = ("smooth", "driven", "valley", "jump", "kink", "saturation", "causes", "several", "noisy")
_DRAWS = 400


class Case(NamedTuple):
    family: str
    dimension: int
    seed: int
    truth: str
    trials: int


class Ended(NamedTuple):
    regret: float
    crashes: int


def spreads(problem: Problem, rng: np.random.Generator) -> dict[str, float]:
    """Standard deviations of the readings of safe settings."""
    space = crashbo.Optimizer(problem.space).space
    drawn = (problem.truth(space.decode(u)) for u in space.uniform(rng.random((_DRAWS, space.dimension))))
    safe = [truth.measured for truth in drawn if not truth.crashed]
    return {limit.name: float(np.std([row[limit.name] for row in safe])) for limit in problem.limits}


def constraints(problem: Problem, truth: str, rng: np.random.Generator) -> list[Any]:
    """The problem's, with what is told of them; a quantity that has nothing to do with crashes has no threshold."""
    wide = spreads(problem, rng) if truth == "interval" else {}
    found: list[Any] = list(problem.constraints)
    for limit in problem.limits if truth != NOTHING else ():
        i = next(i for i, c in enumerate(found) if c.name == limit.name)
        if truth == "noise":
            found[i] = replace(found[i], noise=limit.noise)
        elif np.isfinite(limit.threshold) and truth in ("threshold", "interval"):
            below = 0.5 * wide.get(limit.name, 0.0)
            ends = (limit.threshold - below, limit.threshold + below)
            found[i] = replace(found[i], threshold=limit.threshold if truth == "threshold" else ends)
    return found


def violated(problem: Problem, params: dict[str, Any]) -> list[str]:
    """The constraints that params violate, without noise."""
    readings = problem.truth(params).measured
    return [limit.name for limit in problem.limits if limit.violated(readings[limit.name])]


def run(case: Case) -> Ended:
    warnings.simplefilter("ignore")
    problem = families.get(case.family, case.dimension, case.seed)
    rng = np.random.default_rng(case.seed)
    optimizer = crashbo.Optimizer(
        problem.space,
        constraints(problem, case.truth, np.random.default_rng(case.seed)),
        noise=problem.cost_noise if case.truth == "noise" else None,
        start=[problem.start] if problem.start is not None else None,
        seed=case.seed,
    )
    for _ in range(case.trials):
        trial = optimizer.ask()
        try:
            outcome = problem.evaluate(trial.params, rng)
        except crashbo.Crash:
            blame = violated(problem, trial.params) if case.truth == "blame" else []
            optimizer.tell(trial, crash=crashbo.Crash(blame=blame) if blame else True)
        else:
            optimizer.tell(trial, cost=outcome.cost, measured=outcome.measured)
    told = [t for t in optimizer.trials if t.state == "success"]
    costs = [t.cost for t in optimizer.trials]
    truths = [problem.truth(t.params).cost if t in told else None for t in optimizer.trials]
    assert problem.constrained_minimum is not None
    assert problem.median_safe_cost is not None
    last = measures.incumbents(costs, truths)[-1:]
    regret = measures.normalised_regret(last, problem.constrained_minimum, problem.median_safe_cost)
    return Ended(float(measures.score(regret)[0]), len(costs) - len(told))


def line(name: str, without: list[Ended], given: list[Ended]) -> str:
    """Means of both, and the paired difference with one standard error."""
    words = [f"{name:22s} {len(given):4d}"]
    for what in ("regret", "crashes"):
        a, b = (np.array([getattr(ended, what) for ended in part], dtype=float) for part in (without, given))
        error = np.std(b - a, ddof=1) / np.sqrt(len(a)) if len(a) > 1 else np.nan
        mark = " HURTS" if np.mean(b - a) > error else ""
        words.append(f"{a.mean():7.3f} {b.mean():7.3f}  {np.mean(b - a):+.3f} +- {error:.3f}{mark:6s}")
    return "   ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:5", type=seeds_of)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--dimensions", default="2,4")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--truths", default=",".join(TRUTHS))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    args = parser.parse_args()
    kinds = [(f, int(d), s) for f in args.families.split(",") for d in args.dimensions.split(",") for s in args.seeds]
    cases = [
        Case(*kind, truth, args.trials)
        for kind in kinds
        for truth in (NOTHING, *args.truths.split(","))
        if truth != "blame" or len(families.get(*kind).limits) > 1
    ]
    with ProcessPoolExecutor(args.workers) as pool:
        ended = dict(zip(cases, pool.map(run, cases), strict=True))
    print("truth, family         cases   regret without, with, difference     crashes without, with, difference")
    for truth in args.truths.split(","):
        for family in [*args.families.split(","), "all"]:
            part = [case for case in cases if case.truth == truth and family in (case.family, "all")]
            if part:
                without = [ended[case._replace(truth=NOTHING)] for case in part]
                print(line(f"{truth}, {family}", without, [ended[case] for case in part]))


if __name__ == "__main__":
    main()
