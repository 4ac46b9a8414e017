"""Seconds of an ask at 100 trials with several goals, beside Optuna's GPSampler, on the same trials in the same run.

python -m benchmarks.goals.ask
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
import optuna
from benchmarks.goals.problems import PROBLEMS

import crashbo


def main() -> None:
    """Both in turn, trial by trial, from the 100th on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default="zdt1,dtlz2-2,welded-beam,c2dtlz2-3")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--asks", type=int, default=5)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    for name in options.problems.split(","):
        ours, theirs = _compare(name, options.trials, options.asks)
        print(f"{name}: crashbo {ours:.3f} s, GPSampler {theirs:.3f} s, ratio {ours / theirs:.2f}", flush=True)


def _compare(name: str, trials: int, asks: int) -> tuple[float, float]:
    """Medians of process time."""
    problem = PROBLEMS[name]
    low, high, M = np.array(problem.low), np.array(problem.high), len(problem.reference)
    names, goals = [f"x{i}" for i in range(problem.dimension)], [f"f{j}" for j in range(M)]
    directions: Any = dict.fromkeys(goals, "minimize")
    optimizer = crashbo.Optimizer(dict.fromkeys(names, (0.0, 1.0)), objectives=directions)
    study = optuna.create_study(directions=["minimize"] * M, sampler=optuna.samplers.GPSampler(seed=0))
    distributions: Any = {n: optuna.distributions.FloatDistribution(0.0, 1.0) for n in names}
    taken: tuple[list[float], list[float]] = ([], [])
    for k in range(trials + asks):
        began = time.process_time()
        trial = optimizer.ask()
        if k >= trials:
            taken[0].append(time.process_time() - began)
            began = time.process_time()
            asked = study.ask(distributions)
            taken[1].append(time.process_time() - began)
            study.tell(asked, state=optuna.trial.TrialState.FAIL)
        values, g = problem.evaluate(low + (high - low) * np.array([trial.params[n] for n in names]))
        if max(g) > 0.0:
            optimizer.tell(trial, crash=True)
            known = [list(t.cost.values()) for t in optimizer.trials if t.cost is not None]
            values = np.max(known, axis=0).tolist() if known else [1e3] * M
        else:
            optimizer.tell(trial, cost=dict(zip(goals, map(float, values), strict=True)))
        study.add_trial(
            optuna.trial.create_trial(params=trial.params, distributions=distributions, values=list(map(float, values)))
        )
    return float(np.median(taken[0])), float(np.median(taken[1]))


if __name__ == "__main__":
    main()
