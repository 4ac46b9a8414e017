"""A machine that trips, as an Optuna objective."""

import optuna

import crashbo
from crashbo.integrations.optuna import CrashSampler, measure, tell

TRIPS_AT = 112.3


def current_of(knee, hip):
    return 60 + 45 * knee + 40 * knee * hip


def height_of(knee, hip):
    return 0.35 + 0.4 * knee - 0.5 * (hip - 0.6) ** 2


def jump(trial):
    knee, hip = trial.suggest_float("knee", 0, 1), trial.suggest_float("hip", 0, 1)
    current = current_of(knee, hip)
    if current > TRIPS_AT:
        raise crashbo.Crash("boards tripped")
    measure(trial, current=current)
    return height_of(knee, hip)


def jumps(n, *, seed=0, storage=None, **settings):
    """A study of n jumps."""
    sampler = CrashSampler(seed=seed, **settings)
    study = optuna.create_study(direction="maximize", sampler=sampler, storage=storage)
    study.optimize(jump, n_trials=n, catch=(crashbo.Crash,))
    return study


def line(points, *, crashed=lambda x: x > 0.6, sampler=None, **told):
    """A study of one parameter x in [0, 1] at given points, told by hand."""
    study = optuna.create_study(sampler=sampler or CrashSampler(seed=0))
    for x in points:
        study.enqueue_trial({"x": x})
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        if crashed(x):
            tell(study, trial, crash=True)
        else:
            tell(study, trial, cost=(x - 0.5) ** 2, **told)
    return study
