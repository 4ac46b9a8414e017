"""Is crashbo as good through Optuna? The same problems with `minimize` and CrashSampler, and a TPE study taken over.

Prints, over the seeds, the median regret (noise-free, of the best success), its quartiles and the share of crashes;
then what a study with Optuna's TPE and a hundred failed trials had found, and what it finds when CrashSampler takes
over.
"""

import argparse
from collections.abc import Callable

import numpy as np
import optuna

import crashbo
from crashbo.integrations.optuna import CrashSampler, distributions_of, measure, records

PROBLEMS = ("eggcrate2d", "hartmann6d")


def by_minimize(problem: crashbo.problems.Problem, trials: int, seed: int) -> list[crashbo.Trial]:
    rng = np.random.default_rng([seed, 1])
    result = crashbo.minimize(
        lambda params: problem.evaluate(params, rng=rng),
        problem.space,
        constraints=problem.constraints,
        trials=trials,
        seed=seed,
        progress=False,
    )
    return result.trials


def objective_of(problem: crashbo.problems.Problem, seed: int) -> Callable[[optuna.Trial], float]:
    rng = np.random.default_rng([seed, 1])
    distributions = distributions_of(problem.space)

    def objective(trial: optuna.Trial) -> float:
        outcome = problem.evaluate({name: trial._suggest(name, d) for name, d in distributions.items()}, rng=rng)
        measure(trial, **outcome.measured)
        return outcome.cost

    return objective


def by_sampler(problem: crashbo.problems.Problem, trials: int, seed: int) -> list[crashbo.Trial]:
    study = optuna.create_study(sampler=CrashSampler(problem.constraints, seed=seed))
    study.optimize(objective_of(problem, seed), n_trials=trials, catch=(crashbo.Crash,))
    return records(study)


def regret(problem: crashbo.problems.Problem, trials: list[crashbo.Trial]) -> float:
    """Noise-free cost of the best observed success, above the optimum."""
    best = min((t for t in trials if t.state == "success"), key=lambda t: t.cost, default=None)
    return np.inf if best is None else problem.truth(best.params).cost - problem.minimum


def compare(name: str, trials: int, seeds: int) -> None:
    problem = crashbo.problems.get(name)
    for label, run in (("minimize", by_minimize), ("CrashSampler", by_sampler)):
        runs = [run(problem, trials, seed) for seed in range(seeds)]
        low, middle, high = np.quantile([regret(problem, r) for r in runs], [0.25, 0.5, 0.75])
        crashed = np.mean([[t.state == "crash" for t in r] for r in runs])
        print(
            f"{name:12s} {label:12s} regret {middle:8.4f} ({low:.4f} to {high:.4f}), crashes {crashed:.0%}", flush=True
        )


def take_over(name: str, failed: int, more: int, seeds: int) -> None:
    """TPE until so many trials have failed, then the same number of trials with each sampler."""
    problem = crashbo.problems.get(name)
    for seed in range(seeds):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        objective = objective_of(problem, seed)
        while sum(t.state.name == "FAIL" for t in study.trials) < failed:
            study.optimize(objective, n_trials=1, catch=(crashbo.Crash,))
        before, n = study.best_value, len(study.trials)
        line = f"{name:12s} seed {seed}: {n} trials by TPE, {failed} failed, best {before:.4f}; {more} more"
        for label, sampler in (
            ("TPE", optuna.samplers.TPESampler(seed=seed + 100)),
            ("CrashSampler", CrashSampler(problem.constraints, seed=seed, on_fail="crash")),
        ):
            heir = optuna.create_study(sampler=sampler)
            heir.add_trials(study.trials)
            heir.optimize(objective_of(problem, seed), n_trials=more, catch=(crashbo.Crash,))
            crashes = sum(t.state.name == "FAIL" for t in heir.trials[n:])
            line += f"; {label} {heir.best_value:.4f}, {crashes} crashes"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--failed", type=int, default=100)
    parser.add_argument("--more", type=int, default=20)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    for name in PROBLEMS:
        compare(name, args.trials, args.seeds)
    for name in PROBLEMS:
        take_over(name, args.failed, args.more, min(args.seeds, 3))


if __name__ == "__main__":
    main()
