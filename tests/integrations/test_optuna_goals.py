"""Optuna studies with several directions: goals by name, values that are missing, and what the models say of them."""

import math

import optuna
import pytest

import crashbo
from crashbo.integrations.optuna import CrashSampler, declare, insight, measure, records, tell

optuna.logging.set_verbosity(optuna.logging.ERROR)
DIRECTIONS = ["minimize", "maximize"]


def objective(trial):
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    measure(trial, load=x + 0.5 * y)
    if x + 0.5 * y > 1.05:
        raise crashbo.Crash("tripped")
    return (1.0 - x) ** 2 + (y - 0.3) ** 2, 1.0 - x**2 - (y - 0.3) ** 2


@pytest.fixture(scope="module")
def study():
    found = optuna.create_study(directions=DIRECTIONS, sampler=CrashSampler(["load"], seed=1))
    found.optimize(objective, 16, catch=crashbo.Crash)
    return found


def test_the_front_is_optunas_own(study):
    seen = insight(study)
    assert [t.number for t in seen.front] == sorted(t.number for t in study.best_trials)
    assert seen.hypervolume({"values_0": 1.1, "values_1": -0.1}) > 0.8
    assert set(seen.recommend(weights={"values_1": 1.0}).cost) == {"values_0", "values_1"}
    assert seen.thresholds["load"].learned
    seen.check()


def test_there_is_no_best_trial(study):
    with pytest.raises(ValueError, match="this has several"):
        insight(study).best  # noqa: B018


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_goals_have_the_names_of_metrics_and_may_be_missing():
    study = optuna.create_study(directions=DIRECTIONS, sampler=CrashSampler())
    study.set_metric_names(["time", "accuracy"])
    for cost in ({"time": 1.0, "accuracy": 0.5}, {"time": 2.0}, {"accuracy": 0.4}):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        assert tell(study, trial, cost=cost).cost == cost
    assert study.trials[1].values == [2.0, -math.inf]
    assert [t.cost for t in records(study)] == [{"time": 1.0, "accuracy": 0.5}, {"time": 2.0}, {"accuracy": 0.4}]
    assert [t.number for t in insight(study).front] == [0]
    corrected = tell(study, 1, cost={"time": 0.5, "accuracy": 0.6}, replace=True)
    assert corrected.cost == {"time": 0.5, "accuracy": 0.6}
    assert [t.number for t in insight(study).front] == [1]
    trial = study.ask()
    for cost in (1.0, {"heat": 1.0}):
        with pytest.raises(ValueError, match="cost must"):
            tell(study, trial, cost=cost)


def test_an_infinite_goal_counts_as_any_other_failure():
    study = optuna.create_study(directions=DIRECTIONS, sampler=CrashSampler())
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    study.tell(trial, [1.0, math.inf])
    assert [t.state for t in records(study)] == ["crash"]


def test_a_database_keeps_goals(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=url, study_name="s", directions=DIRECTIONS, sampler=CrashSampler())
    declare(study, space={"x": (0.0, 1.0)}, reference={"values_0": 9.0, "values_1": 0.0})
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    tell(study, trial, cost={"values_0": 3.0})
    again = optuna.load_study(storage=url, study_name="s", sampler=CrashSampler())
    assert records(again)[0].cost == {"values_0": 3.0}
    assert insight(again).view.reference == {"values_0": 9.0, "values_1": 0.0}


def test_what_optunas_own_study_says_is_refused_elsewhere(study):
    with pytest.raises(ValueError, match="objectives must be given to Optuna's create_study as directions"):
        CrashSampler(objectives={"a": "minimize", "b": "minimize"})
    with pytest.raises(ValueError, match="reference must name every goal"):
        declare(study, reference={"a": 1.0})
    many = optuna.create_study(directions=["minimize"] * 4, sampler=CrashSampler())
    with pytest.raises(ValueError, match="two or three goals"):
        many.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0),) * 4, n_trials=2)
