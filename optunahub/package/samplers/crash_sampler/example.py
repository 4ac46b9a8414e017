"""A machine that blows its fuse at a current that nobody knows, tuned with and without learning from it."""

import optuna
import optunahub

import crashbo

module = optunahub.load_module(package="samplers/crash_sampler")


def objective(trial: optuna.Trial) -> float:
    """Lower is better; close to the best settings the fuse blows."""
    speed = trial.suggest_float("speed", 0, 1)
    load = trial.suggest_float("load", 0, 1)
    current = 60 + 45 * speed + 40 * speed * load
    if current > 112.3:  # unknown to the sampler
        raise crashbo.Crash("fuse blown")
    module.measure(trial, current=current)
    return 0.5 * (load - 0.6) ** 2 - 0.4 * speed


def run(sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    """Thirty trials."""
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=30, catch=(crashbo.Crash,))
    failed = sum(t.state == optuna.trial.TrialState.FAIL for t in study.trials)
    print(f"{type(sampler).__name__}: best {study.best_value:.4f}, {failed} of 30 trials failed")
    return study


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    run(optuna.samplers.TPESampler(seed=0))
    study = run(module.CrashSampler(seed=0))
    low, high = module.insight(study).thresholds["current"].interval
    print(f"the fuse blows between {low:.1f} and {high:.1f} A")
