"""What the models of a study have learnt is in its storage: a worker that joins begins with it."""

import json
import time

import numpy as np
import optuna
import pytest
from studies import TRIPS_AT, current_of, height_of

import crashbo
from crashbo.integrations.optuna import CrashSampler, keys, memories
from crashbo.integrations.optuna.spaces import Axes
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer import saving

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


def worker(study, constraint="current"):
    sampler = CrashSampler([constraint], seed=0, space=SPACE)
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

    monkeypatch.setattr("crashbo.search.fitting.fit", refuse)
    trial = second.ask(SPACE)
    assert fitted_by(second)["fitted_at"] == 45
    assert set(trial.params) == {"knee", "hip"}


@pytest.mark.parametrize(
    ("said", "learnt", "value"), [("threshold", "threshold", 3.0 * TRIPS_AT), ("noise", "noise_std", 1.0)]
)
def test_what_was_learnt_with_another_threshold_or_noise_is_not_taken_over(stored, said, learnt, value):
    worker(stored).ask(SPACE)
    other = worker(stored, crashbo.Constraint("current", **{said: value}))
    other.ask(SPACE)
    assert fitted_by(other)["views"]["hypers"][0][0][learnt] == value


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


def claim(study, told, seconds=30.0):
    """As another worker writes it that fits now."""
    key = next(k for k in attrs_of(study) if k.startswith(keys.FITTING))
    study._storage.set_study_system_attr(
        study._study_id, key, {"by": "another", "told": told, "until": time.time() + seconds}
    )


def attrs_of(study):
    return study._storage.get_study_system_attrs(study._study_id)


def add_some(study, count):
    rng = np.random.default_rng(1)
    for knee, hip in rng.random((count, 2)) * 0.3:
        known = {"user_attrs": {keys.MEASURED + "current": current_of(knee, hip)}, "value": height_of(knee, hip)}
        params = {"knee": knee, "hip": hip}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=SPACE, **known))


def refuse(*args, **kwargs):
    raise AssertionError("hyperparameters were fitted")


def test_while_another_fits_a_worker_goes_on_with_the_hyperparameters_that_there_are(stored, monkeypatch):
    study = worker(stored)
    study.ask(SPACE)
    before = fitted_by(study)
    add_some(study, 4)
    claim(study, told=49)
    monkeypatch.setattr("crashbo.search.fitting.fit", refuse)
    study.ask(SPACE)
    after = fitted_by(study)
    assert after["fitted_at"] == before["fitted_at"] == 45
    assert repr(after["views"]) == repr(before["views"])
    assert kept(study)["fitted_at"] == 45


@pytest.mark.parametrize("why", ["it died", "nothing came for long"])
def test_nobody_waits_for_ever_for_a_fit_of_another(stored, monkeypatch, why):
    study = worker(stored)
    study.ask(SPACE)
    add_some(study, 4 if why == "it died" else 12)
    claim(study, told=49, seconds=-1.0 if why == "it died" else 30.0)
    study.ask(SPACE)
    assert fitted_by(study)["fitted_at"] == kept(study)["fitted_at"] == (49 if why == "it died" else 57)


def test_a_worker_without_any_hyperparameters_waits_for_those_that_another_fits(stored, monkeypatch):
    first, second = worker(stored), worker(stored)
    first.ask(SPACE)
    (key, found) = next((k, v) for k, v in attrs_of(stored).items() if k.startswith(keys.MEMORY))
    stored._storage.set_study_system_attr(stored._study_id, key, None)
    claim(stored, told=45)
    monkeypatch.setattr("crashbo.search.fitting.fit", refuse)
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            stored._storage.set_study_system_attr(stored._study_id, key, found)

    monkeypatch.setattr(memories.time, "sleep", sleep)
    second.ask(SPACE)
    assert len(slept) == 3
    assert fitted_by(second)["fitted_at"] == 45


def test_of_workers_that_begin_at_the_same_moment_the_last_to_say_so_fits(stored, monkeypatch):
    worker(stored).ask(SPACE)
    (key, found) = next((k, v) for k, v in attrs_of(stored).items() if k.startswith(keys.MEMORY))
    for old in [k for k in attrs_of(stored) if k.startswith((keys.MEMORY, keys.FITTING))]:
        stored._storage.set_study_system_attr(stored._study_id, old, None)
    slept = []

    def sleep(seconds):  # another has read at the same moment, and writes a little later
        slept.append(seconds)
        if len(slept) == 1:
            claim(stored, told=45)
        else:
            stored._storage.set_study_system_attr(stored._study_id, key, found)

    monkeypatch.setattr(memories.time, "sleep", sleep)
    monkeypatch.setattr("crashbo.search.fitting.fit", refuse)
    second = worker(stored)
    second.ask(SPACE)
    assert len(slept) == 2
    assert fitted_by(second)["fitted_at"] == 45


def test_a_worker_whose_reading_is_older_than_another_s_fit_reads_again(stored, monkeypatch):
    first, second = worker(stored), worker(stored)
    reading = Reading.of(stored)
    add_some(stored, 3)
    first.ask(SPACE)
    monkeypatch.setattr("crashbo.search.fitting.fit", refuse)
    trial = stored._storage.get_trial(stored._storage.create_new_trial(stored._study_id))
    axes = Axes(SPACE, second.sampler._space(trial, reading)[1], ())
    assert set(second.sampler._propose(second, trial, axes, {}, reading)) == set(SPACE)
    assert fitted_by(second)["fitted_at"] == 48


def test_sites_go_with_their_trials_from_one_memory_to_another():
    sites = np.arange(8.0).reshape(2, 4)
    own = {"numbers": [3, 5, 8], "crash": {"hypers": [], "sites": [saving._array_out(sites)] * 2}}
    found = saving.with_sites_of({"numbers": [2, 5, 3], "crash": {"hypers": [1], "sites": None}}, own)
    for site in found["crash"]["sites"]:
        np.testing.assert_array_equal(saving._array_in(site), [[0.0, 1.0, 0.0], [0.0, 5.0, 4.0]])
    assert found["crash"]["hypers"] == [1]
    assert saving.with_sites_of({"numbers": [2], "crash": None}, own)["crash"] is None
