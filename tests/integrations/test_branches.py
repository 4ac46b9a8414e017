"""Optuna: parameters that exist beside values of others, rules, contexts, and settings that ran otherwise."""

import numpy as np
import optuna
import pytest

import crashbo
from crashbo.integrations.optuna import CrashSampler, ask, declare, insight, records, tell
from crashbo.integrations.optuna.settings import declared
from crashbo.integrations.optuna.spaces import branches

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = {
    "solver": crashbo.Choice(["direct", "multigrid"]),
    "levels": crashbo.Int(2, 6, when={"solver": "multigrid"}),
    "step": crashbo.Float(0.0, 1.0, step=0.05),
    "grade": crashbo.Choice(["fine", "medium", "coarse"], ordered=True),
    "size": crashbo.Choice([8, 16, 32]),
    "temperature": crashbo.Context(5.0, 40.0),
}
RULES = ["10 * step <= levels", "step * 32 >= size / 8"]


def training(trial):
    """Define by run: which parameters there are depends on what was drawn."""
    model = trial.suggest_categorical("model", ["trees", "network"])
    share = trial.suggest_float("share", 0.1, 1.0)
    if model == "trees":
        return 0.4 + 0.01 * (trial.suggest_int("depth", 1, 8) - 5) ** 2 - 0.1 * share
    layers, rate = trial.suggest_int("layers", 1, 3), trial.suggest_float("rate", 1e-4, 1.0, log=True)
    if layers * share > 2.0:
        raise crashbo.Crash("out of time")
    if layers > 1:
        trial.suggest_float("between", 0.0, 1.0)
    return 0.1 + 0.1 * (np.log10(rate) + 2.0) ** 2 - 0.1 * share - 0.02 * layers


def test_a_define_by_run_study_shows_its_branches():
    study = optuna.create_study(sampler=CrashSampler(seed=1))
    study.optimize(training, n_trials=16, catch=(crashbo.Crash,))
    seen = insight(study)
    when = {name: p.when for name, p in seen.snapshot.axes.space.parameters.items() if p.when}
    assert set(when) >= {"depth", "layers", "rate"}
    assert set(when["depth"]) == set(when["layers"]) == {"model"}
    recommended = seen.recommend().params
    assert recommended["model"] == "network"
    assert {"share", "layers", "rate"} <= set(recommended)
    assert "depth" not in recommended
    assert 0.0 <= seen.p_safe({"model": "trees", "share": 0.5, "depth": 3}) <= 1.0
    with pytest.raises(ValueError, match="params must name"):
        seen.p_safe({"model": "trees", "share": 0.5})
    assert len(seen.trials) >= 14  # of all branches


def test_branches_are_inferred_only_where_they_can_be():
    def made(params):
        kinds = {"a": optuna.distributions.CategoricalDistribution([0, 1])}
        named = {name: kinds.get(name, optuna.distributions.FloatDistribution(0.0, 1.0)) for name in params}
        return optuna.trial.create_trial(value=0.0, params=params, distributions=named)

    assert branches([made({"a": 0, "x": 0.1}), made({"a": 1, "x": 0.1})]) is None  # all have the same
    found = branches([made({"a": 0, "x": 0.1}), made({"a": 1, "y": 0.1})])
    assert found[1].when == {"x": {"a": (0,)}, "y": {"a": (1,)}}
    assert branches([made({"a": 0, "x": 0.1}), made({"a": 0, "y": 0.1})]) is None  # by chance
    assert branches([]) is None


def test_a_declared_space_keeps_its_rules_branches_and_context():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    said = declare(study, space=SPACE, rules=RULES)
    assert declared(study) == said
    for k in range(9):
        trial = ask(study, context={"temperature": 6.0 + k})
        params = trial.params
        assert params["temperature"] == 6.0 + k
        assert ("levels" in params) == (params["solver"] == "multigrid")
        assert 10 * params["step"] <= params.get("levels", 100)
        assert params["step"] * 32 >= params["size"] / 8
        cost = (params["step"] - 0.4) ** 2 + 0.01 * k * params["step"]
        told = tell(study, trial, cost=cost, context={"temperature": 6.5 + k}, ran={"step": params["step"] + 0.01})
        assert told.params == params
        assert told.ran == {**params, "step": params["step"] + 0.01, "temperature": 6.5 + k}
    assert records(study)[0].ran["temperature"] == 6.5
    found = insight(study).recommend(context={"temperature": 9.0})
    assert found.params["temperature"] == 9.0
    assert 10 * found.params["step"] <= found.params.get("levels", 100)
    assert insight(study).trials[-1].ran["temperature"] == 14.5


def test_what_cannot_be_declared_or_asked_is_refused():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    with pytest.raises(ValueError, match="rules must name parameters"):
        declare(study, space=SPACE, rules=["q <= 1"])
    with pytest.raises(ValueError, match="rules must be one of crashbo's to be declared"):
        declare(study, rules=[lambda params: True])
    declare(study, space=SPACE)
    for context in (None, {"temperature": 90.0}):
        with pytest.raises(ValueError, match=r"(context|temperature) must"):
            ask(study, context=context)


def test_a_sampler_takes_a_rule_of_ones_own():
    study = optuna.create_study(sampler=CrashSampler(seed=0, rules=["x <= y", lambda p: p["n"] != 4]))

    def objective(trial):
        x, y, n = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1), trial.suggest_int("n", 2, 8, step=2)
        return (x - 1) ** 2 + y**2 + n

    study.optimize(objective, n_trials=9)
    for trial in study.trials[1:]:  # before the first nothing is known of the parameters
        assert trial.params["x"] <= trial.params["y"]
        assert trial.params["n"] != 4


def ordered(trial):
    """Of two numbers, of which a rule says that the second is at least twice the first."""
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    return x + (y - 0.5) ** 2


@pytest.mark.parametrize("rule", ["x <= y", lambda params: params["x"] <= params["y"]])
def test_the_first_trial_of_an_unknown_space_keeps_its_rules(rule):
    for seed in range(6):
        study = optuna.create_study(sampler=CrashSampler(seed=seed, rules=[rule]))
        study.optimize(ordered, n_trials=1)
        assert study.trials[0].params["x"] <= study.trials[0].params["y"]


def test_a_wish_that_breaks_a_rule_is_tried_with_a_warning():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    declare(study, space={"x": (0.0, 1.0), "y": (0.0, 1.0)}, rules=["2 * x <= y"])
    study.enqueue_trial({"x": 0.9})
    with pytest.warns(RuntimeWarning, match=r"rules '2 \* x <= y' may be broken, .* where x is 0\.9"):
        study.optimize(ordered, n_trials=1)
    study.optimize(ordered, n_trials=3)
    assert study.trials[0].params["x"] == 0.9
    assert all(2 * t.params["x"] <= t.params["y"] for t in study.trials[1:])


def test_a_context_in_which_nothing_keeps_the_rules_begins_no_trial():
    space = {"drive": (0.0, 1.0), "temperature": crashbo.Context(5.0, 100.0)}
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    declare(study, space=space, rules=["drive <= 1.2 - temperature / 50"])
    with pytest.raises(ValueError, match=r"rules must be kept by some params; .* where temperature is 80\.0"):
        ask(study, context={"temperature": 80.0})
    assert not study.trials
    other = optuna.create_study(sampler=optuna.samplers.RandomSampler())
    declare(other, space=space)
    with pytest.raises(ValueError, match="study must have a CrashSampler to heed a context; got RandomSampler"):
        ask(other, context={"temperature": 20.0})
