"""What the models of a study have learnt is in its storage: a worker that joins begins with it."""

import json

import numpy as np
import optuna
import pytest
from studies import TRIPS_AT, current_of, height_of

from crashbo.integrations.optuna import CrashSampler, keys, memories

SPACE = {name: optuna.distributions.FloatDistribution(0, 1) for name in ("knee", "hip")}


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A study of 45 jumps that no search chose, in a database; as if those were many."""
    monkeypatch.setattr(memories, "_MANY", 20)
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db")
    study = optuna.create_study(direction="maximize", storage=storage)
    trials = []
    for knee, hip in np.random.default_rng(0).random((45, 2)):
        current = current_of(knee, hip)
        known = {"user_attrs": {keys.MEASURED + "current": current}, "value": height_of(knee, hip)}
        if current > TRIPS_AT:
            known = {"user_attrs": {keys.STATE: "crash"}, "state": optuna.trial.TrialState.FAIL}
        params = {"knee": knee, "hip": hip}
        trials.append(optuna.trial.create_trial(params=params, distributions=SPACE, **known))
    study.add_trials(trials)
    return study


def worker(study):
    sampler = CrashSampler(["current"], seed=0, space=SPACE)
    return optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=sampler)


def kept(study):
    attrs = study._storage.get_study_system_attrs(study._study_id)
    return next((value for key, value in attrs.items() if key.startswith(keys.MEMORY)), None)


def fitted_by(study):
    (memory,) = study.sampler._memories.values()
    return memory


def test_a_worker_that_joins_begins_with_what_another_has_learnt(stored, monkeypatch):
    first, second = worker(stored), worker(stored)
    first.ask(SPACE)
    assert kept(stored)["fitted_at"] == 45
    assert kept(stored)["crash"]["sites"] is None
    assert len(json.dumps(kept(stored))) < 5000

    def refuse(*args, **kwargs):
        raise AssertionError("hyperparameters were fitted again")

    monkeypatch.setattr("crashbo.search.fitting.fit", refuse)
    trial = second.ask(SPACE)
    assert fitted_by(second)["fitted_at"] == 45
    assert set(trial.params) == {"knee", "hip"}


def test_a_memory_is_read_and_written_no_more_often_than_hyperparameters_are_fitted(stored, monkeypatch):
    study, looks = worker(stored), []
    original = study._storage.get_study_system_attrs
    monkeypatch.setattr(study._storage, "get_study_system_attrs", lambda i: looks.append(i) or original(i))
    study.tell(study.ask(SPACE), 0.5)
    before, written = len(looks), kept(study)
    looks.clear()
    study.ask(SPACE)
    assert before > len(looks)
    assert kept(study) == written


def test_few_trials_leave_nothing_in_the_storage():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    for _ in range(8):
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        study.tell(trial, trial.params["x"])
    assert kept(study) is None
