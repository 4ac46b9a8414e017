"""Workers that die: a setting is tried once more, and a second death there counts."""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from crashbo.app.bench import Bench, Told
from crashbo.app.bench.bench import Asked
from crashbo.integrations.optuna import CrashSampler, ask, declare, records, renew, tell, void_expired
from crashbo.integrations.optuna.deaths import tried_again_by
from crashbo.integrations.optuna.ledger import Ledger, Order
from crashbo.integrations.optuna.proposer import Proposer

X = {"x": FloatDistribution(0, 1)}
XY = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
AGAIN = "its worker died here again: lease ran out"


@contextmanager
def storage_of(kind, folder):
    if kind == "journal":
        yield JournalStorage(JournalFileBackend(f"{folder}/study.log"))
    elif kind == "sqlite":
        storage = RDBStorage(f"sqlite:///{folder}/study.db")
        yield storage
        storage.engine.dispose()
    else:
        yield optuna.storages.InMemoryStorage()


every_storage = pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])


@pytest.fixture
def study():
    """A study whose first two trials succeeded."""
    study = optuna.create_study(sampler=CrashSampler(seed=0, lease=60.0))
    for _ in range(2):
        study.tell(study.ask(X), 1.0)
    return study


def die(trial):
    """Its worker is gone, and its lease has run out."""
    renew(trial, -1.0)
    return trial


def states(study, **settings):
    return [t.state for t in records(study, **settings)]


class TestOneMoreTry:
    def test_the_next_ask_is_for_the_very_setting(self, study):
        dead = die(study.ask(X))
        again = study.ask(X)
        assert again.params == dead.params
        assert states(study)[2:] == ["void", "pending"]

    def test_only_one_worker_tries_it(self, study):
        dead = die(study.ask(X))
        asked = [study.ask(X).params["x"] for _ in range(3)]
        assert asked[0] == dead.params["x"]
        assert all(abs(x - dead.params["x"]) > 1e-6 for x in asked[1:])

    def test_a_success_there_ends_it(self, study):
        dead = die(study.ask(X))
        study.tell(study.ask(X), 0.5)
        assert states(study)[2:] == ["void", "success"]
        assert study.ask(X).params != dead.params

    @pytest.mark.parametrize("word", ["crash", "void"])
    def test_a_second_death_counts_as_on_death_says_and_is_the_last(self, study, word):
        declare(study, on_death=word)
        dead = die(study.ask(X))
        die(study.ask(X))
        assert [(t.state, t.reason) for t in records(study)[2:]] == [("void", "lease ran out"), (word, AGAIN)]
        assert study.ask(X).params != dead.params

    def test_a_second_death_is_a_crash_by_default(self, study):
        die(study.ask(X))
        die(study.ask(X))
        assert states(study)[2:] == ["void", "crash"]
        assert states(study, on_death="void")[2:] == ["void", "void"]

    def test_what_was_measured_before_the_second_death_is_kept(self, study):
        die(study.ask(X))
        again = study.ask(X)
        again.set_user_attr("measured:memory", 7.9)
        die(again)
        assert (records(study)[3].state, records(study)[3].measured) == ("crash", {"memory": 7.9})

    def test_two_settings_are_tried_in_turn(self, study):
        dead = [study.ask(X) for _ in range(2)]
        for trial in dead:
            die(trial)
        assert [study.ask(X).params for _ in range(2)] == [trial.params for trial in dead]

    def test_a_setting_that_was_queued_again_is_not_tried_twice(self, study):
        dead = die(study.ask(X))
        study.enqueue_trial(dead.params)
        asked = [study.ask(X).params for _ in range(2)]
        assert asked[0] == dead.params
        assert asked[1] != dead.params

    def test_a_queued_trial_comes_first_and_is_left_alone(self, study):
        dead = die(study.ask(X))
        study.enqueue_trial({"x": 0.123})
        assert [study.ask(X).params["x"] for _ in range(2)] == [0.123, dead.params["x"]]

    def test_a_setting_that_no_longer_fits_is_let_go(self, study):
        die(study.ask(X))
        narrow = study.ask({"x": FloatDistribution(2, 3)}).params["x"]
        assert 2 <= narrow <= 3

    def test_a_worker_that_died_before_it_had_a_setting_is_forgotten(self, study):
        die(study.ask())
        study.ask(X)
        assert states(study)[2:] == ["void", "pending"]

    def test_of_two_workers_that_ask_at_once_one_gives_way(self, study, monkeypatch):
        dead, rival = die(study.ask(X)), study.ask()
        publish = CrashSampler._publish

        def and_the_rival_is_faster(sampler, study, trial, chosen):
            if chosen.again is not None:
                proposal = {"params": chosen.params, "again": chosen.again}
                rival.storage.set_trial_system_attr(rival._trial_id, "crashbo:proposal", proposal)
            publish(sampler, study, trial, chosen)

        monkeypatch.setattr(CrashSampler, "_publish", and_the_rival_is_faster)
        mine = study.ask(X)
        assert mine.params != dead.params
        assert tried_again_by(study.trials, dead.number) == [rival.number]

    def test_parameters_that_only_some_trials_have_are_tried_again_too(self):
        def suggest(trial):
            if trial.suggest_categorical("kind", ["a", "b"]) == "a":
                return {"kind": "a", "speed": trial.suggest_float("speed", 0, 1)}
            return {"kind": "b", "load": trial.suggest_float("load", 0, 1)}

        study = optuna.create_study(sampler=CrashSampler(seed=0, lease=60.0))
        for kind in "abab":
            study.enqueue_trial({"kind": kind})
            trial = study.ask()
            study.tell(trial, sum(v for v in suggest(trial).values() if isinstance(v, float)))
        trial = study.ask()
        said = suggest(trial)
        die(trial)
        assert suggest(study.ask()) == said

    def test_a_worker_that_died_between_two_parameters_is_tried_again_once(self):
        study = optuna.create_study(sampler=CrashSampler(seed=0, lease=60.0))
        for _ in range(3):
            trial = study.ask()
            study.tell(trial, trial.suggest_float("x", 0, 1))
        dead = study.ask()
        x = dead.suggest_float("x", 0, 1)
        die(dead)
        again = study.ask()
        assert again.suggest_float("x", 0, 1) == x
        again.suggest_float("y", 0, 1)  # which the other one did not come to
        assert study.ask().suggest_float("x", 0, 1) != x
        die(again)
        assert states(study)[3:5] == ["void", "crash"]


class TestSlowWorkers:
    def test_one_that_ends_after_the_second_death_counts_and_the_second_becomes_the_first(self, study):
        slow = die(study.ask(X))
        die(study.ask(X))
        study.tell(slow, 0.25)
        assert states(study)[2:] == ["success", "void"]

    def test_the_second_one_counts_as_well(self, study):
        die(study.ask(X))
        slow = die(study.ask(X))
        study.tell(slow, 0.25)
        assert [(t.state, t.cost) for t in records(study)[2:]] == [("void", None), ("success", 0.25)]

    def test_a_lease_that_is_renewed_too_late_still_is(self, study):
        slow = die(study.ask(X))
        renew(slow, 60.0)
        assert states(study)[2:] == ["pending"]
        assert study.ask(X).params != slow.params

    def test_a_correction_is_no_death(self, study):
        dead = die(study.ask(X))
        die(study.ask(X))
        void_expired(study)
        tell(study, dead, cost=0.5, replace=True)
        assert states(study)[2:] == ["success", "void"]


@every_storage
def test_closing_expired_trials_changes_no_count(kind, tmp_path):
    with storage_of(kind, tmp_path) as storage:
        study = optuna.create_study(storage=storage, sampler=CrashSampler(seed=0, lease=60.0))
        first = die(study.ask(X))
        assert void_expired(study) == [0]
        again = study.ask(X)
        assert again.params == first.params
        die(again)
        open_ = [(t.state, t.reason) for t in records(study)]
        assert void_expired(study) == [1]
        assert [t.state for t in study.trials] == [TrialState.FAIL] * 2
        assert [(t.state, t.reason) for t in records(study)] == open_ == [("void", "lease ran out"), ("crash", AGAIN)]
        assert study.ask(X).params != first.params


def test_an_outcome_that_was_written_is_kept_when_its_trial_is_closed(study):
    trial = study.ask(X)
    trial.set_user_attr("crashbo:state", "crash")
    trial.set_user_attr("crashbo:reason", "tripped")
    die(trial)
    assert void_expired(study) == [2]
    assert [(t.state, t.reason) for t in records(study)[2:]] == [("crash", "tripped")]


def test_what_an_earlier_edition_closed_as_void_stays_void(study):
    for _ in range(2):
        study.enqueue_trial({"x": 0.4})
        tell(study, study.ask(X), void="lease ran out")
    assert states(study)[2:] == ["void", "void"]


@every_storage
def test_a_setting_kills_two_workers_at_most_and_its_region_is_learnt(kind, tmp_path):
    """REALITY: a setting that got its worker killed out of memory killed 15 workers out of 15."""
    with storage_of(kind, tmp_path) as storage:
        study = optuna.create_study(storage=storage)
        declare(study, space={"x": (0, 1), "y": (0, 1)}, lease=60.0)
        for _ in range(36):
            study.sampler = CrashSampler(seed=0)  # as a new worker
            trial = ask(study)
            x, y = trial.params["x"], trial.params["y"]
            if x + y > 0.9:
                die(trial)
            else:
                study.tell(trial, -x - y)
        read = records(study)
    points = [tuple(t.params.values()) for t in read if t.state in ("void", "crash")]
    assert max(points.count(p) for p in points) == 2
    assert [t.state for t in read].count("success") >= 6  # the best lies on the boundary, and each crash took two
    assert min(t.cost for t in read if t.state == "success") < -0.86


def test_a_study_with_optimize_goes_on_after_a_dead_worker(study):
    dead = die(study.ask(X))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert study.trials[3].params == dead.params
    assert study.trials[4].params != dead.params


def test_a_sampler_may_have_a_lease_that_nobody_declared():
    study = optuna.create_study()  # asked by another sampler, which keeps no lease
    dead = study.ask(X)
    time.sleep(0.02)
    study.sampler = CrashSampler(seed=0, lease=0.01)
    assert study.ask(X).params == dead.params


class TestBench:
    @pytest.fixture
    def bench(self, tmp_path):
        with storage_of("sqlite", tmp_path) as storage:
            study = optuna.create_study(storage=storage)
            declare(study, space={"x": (0, 1), "y": (0, 1)}, lease=60.0)
            yield Bench(Ledger(study))

    def gone(self, bench):
        trial = bench.ask()
        bench.ledger.renew(bench.entry(trial.number).id, -1.0)
        return trial

    def test_a_setting_is_asked_for_once_more_and_then_a_crash(self, bench):
        first = self.gone(bench)
        second = self.gone(bench)
        assert second.params == first.params
        assert [(t.state, t.reason) for t in bench.trials] == [("void", "lease ran out"), ("crash", AGAIN)]
        assert [bench.entry(n).trial.state for n in range(2)] == ["void", "crash"]  # read one at a time, too
        assert bench.ask().params != first.params

    def test_a_late_result_is_welcome_even_of_the_second(self, bench):
        self.gone(bench)
        second = self.gone(bench)
        assert bench.entry(second.number).late
        bench.tell(second.number, Told.of(cost=0.5))
        assert [t.state for t in bench.trials] == ["void", "success"]

    def test_several_who_ask_at_once_get_it_once(self, bench):
        first = self.gone(bench)
        asked = bench.ask_batch([Asked(), Asked(), Asked()])
        assert [t.params == first.params for t in asked] == [True, False, False]

    def test_of_two_services_one_gets_it(self, bench):
        first = self.gone(bench)
        here, there = (Proposer(bench.ledger.study).propose(1) for _ in range(2))
        assert here.planned[0].suggestion.params == there.planned[0].suggestion.params == first.params
        (entry,) = bench.ledger.hand_out(here, [Order(here.planned[0])])
        assert entry.trial.number == 1
        assert bench.ledger.hand_out(there, [Order(there.planned[0])]) == [None]
        assert len(bench.trials) == 2


WORKER = """
import sys, time, optuna, warnings
from crashbo.integrations.optuna import CrashSampler
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.CRITICAL)
storage = optuna.storages.RDBStorage(sys.argv[1], heartbeat_interval=1, grace_period=2)
study = optuna.load_study(study_name="s", storage=storage, sampler=CrashSampler(seed=0))

def objective(trial):
    trial.suggest_float("x", 0, 1)
    print("began", flush=True)
    time.sleep(60)

study.optimize(objective, n_trials=1)
"""


def beats(study):
    """The trials that have a heartbeat."""
    with study._storage._backend.engine.connect() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM trial_heartbeats").scalar()


def failed(study):
    optuna.storages.fail_stale_trials(study)
    return sum(t.state == TrialState.FAIL for t in study.trials)


def patiently(ready):
    for _ in range(300):
        if ready():
            return
        time.sleep(0.1)
    pytest.fail("waited for nothing")


@pytest.fixture
def beating(tmp_path):
    """A study in a database with heartbeats."""
    url = f"sqlite:///{tmp_path}/study.db"
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        storage = RDBStorage(url, heartbeat_interval=1, grace_period=2)
    yield url, optuna.create_study(study_name="s", storage=storage, sampler=CrashSampler(seed=0))
    storage.engine.dispose()


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_killed_worker_found_by_its_heartbeat_is_tried_once_more_and_then_counts(beating):
    url, study = beating
    for number in range(2):
        with subprocess.Popen([sys.executable, "-c", WORKER, url], stdout=subprocess.PIPE) as worker:
            assert worker.stdout.readline() == b"began\n"
            patiently(lambda n=number: beats(study) > n)  # its thread may come later
            worker.send_signal(signal.SIGKILL)
        patiently(lambda n=number: failed(study) > n)
    first, again = study.trials
    assert first.params == again.params
    assert [(t.state, t.reason) for t in records(study)] == [
        ("void", "heartbeat stopped"),
        ("crash", "its worker died here again: heartbeat stopped"),
    ]


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
def test_a_fail_told_by_hand_is_no_death_though_the_storage_has_heartbeats(beating):
    _, study = beating
    study.tell(study.ask(X), state=TrialState.FAIL)
    assert states(study) == ["crash"]


def test_a_fail_told_by_another_sampler_is_a_fail_not_a_death(study):
    trial = study.ask(X)
    study.sampler = optuna.samplers.RandomSampler()
    study.tell(trial, state=TrialState.FAIL)
    assert states(study)[2:] == ["crash"]
    assert states(study, on_fail="void", on_death="crash")[2:] == ["void"]


def test_a_thousand_trials_with_deaths_are_read_in_little_time():
    study = optuna.create_study(sampler=CrashSampler(seed=0, lease=60.0))
    rng = np.random.default_rng(0)
    params = [dict(zip("abcdef", map(float, row), strict=True)) for row in rng.random((1000, 6))]
    space = {name: FloatDistribution(0, 1) for name in "abcdef"}
    study.add_trials([optuna.create_trial(params=p, distributions=space, value=0.0) for p in params])
    before = min(timed(records, study) for _ in range(5))
    for _ in range(3):
        trial = study.ask()
        for name in space:
            trial.storage.set_trial_param(trial._trial_id, name, 0.5, space[name])
        die(trial)
    assert states(study)[1000:] == ["void", "crash", "crash"]
    assert min(timed(records, study) for _ in range(5)) < before + 0.1


def timed(call, *args):
    began = time.perf_counter()
    call(*args)
    return time.perf_counter() - began
