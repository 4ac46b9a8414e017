"""What becomes of a trial in Optuna's storage, and how it is read back."""

import math
import time

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from studies import line

import crashbo
from crashbo.integrations.optuna import (
    CrashSampler,
    ask,
    declare,
    declared,
    insight,
    measure,
    prefer,
    records,
    renew,
    tell,
    void_expired,
)

X = {"x": FloatDistribution(0, 1)}


def run(objective, catch=(Exception,), sampler=None, **settings):
    study = optuna.create_study(sampler=sampler or CrashSampler(seed=0, **settings))

    def whole(trial):
        trial.suggest_float("x", 0, 1)
        return objective(trial)

    study.optimize(whole, n_trials=1, catch=catch)
    return study


def raising(error):
    def objective(trial):
        raise error

    return objective


def test_a_raised_crash_keeps_reason_blame_and_measurements():
    error = crashbo.Crash("boards tripped", blame="current", measured={"current": 120.5})
    study = run(raising(error), catch=(crashbo.Crash,))
    (trial,) = records(study)
    assert (trial.state, trial.reason, trial.blame) == ("crash", "boards tripped", ("current",))
    assert trial.measured == {"current": 120.5}
    assert study.trials[0].user_attrs["crashbo:reason"] == "boards tripped"  # where the dashboard shows it


def test_a_crash_with_numbers_of_numpy_and_without_is_kept_as_far_as_it_says_something():
    measured = {"current": np.float32(120.5), "heat": float("nan")}
    (trial,) = records(run(raising(crashbo.Crash("tripped " * 1000, measured=measured))))
    assert trial.measured == {"current": 120.5}
    assert trial.reason.startswith("tripped tripped")


def test_what_a_crash_measured_before_it_happened_is_kept():
    def objective(trial):
        measure(trial, current=99.0)
        measure(trial, current=104.2)  # the last word counts
        raise crashbo.Crash("tripped")

    (trial,) = records(run(objective))
    assert (trial.state, trial.measured) == ("crash", {"current": 104.2})


def test_a_reading_that_was_cut_off_is_known_to_be():
    def objective(trial):
        measure(trial, current=99.0, heat=40.0)
        raise crashbo.Crash("tripped", censored="current")

    (trial,) = records(run(objective))
    assert trial.censored == ("current",)
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    told = tell(study, study.ask(X), crash=True, measured={"current": 99.0}, censored=True)
    assert told.censored == ("current",)
    assert tell(study, 0, crash=True, measured={"current": 99.0}, replace=True).censored == ()


@pytest.mark.parametrize("error", [ZeroDivisionError("diverged"), MemoryError("24 GB")])
def test_an_exception_that_was_caught_is_a_crash_unless_fails_are_void(error):
    study = run(raising(error))
    assert [(t.state, t.reason) for t in records(study)] == [("crash", repr(error))]
    assert [(t.state, t.reason) for t in records(study, on_fail="void")] == [("void", repr(error))]


@pytest.mark.parametrize("error", [NameError("a typo"), KeyboardInterrupt(), MemoryError()])
def test_an_exception_that_ends_the_study_is_void(error):
    study = optuna.create_study(sampler=CrashSampler(seed=0))

    def objective(trial):
        trial.suggest_float("x", 0, 1)
        raise error

    with pytest.raises(type(error)):
        study.optimize(objective, n_trials=1, catch=(ZeroDivisionError, crashbo.Crash))
    assert [(t.state, t.reason) for t in records(study, on_fail="crash")] == [("void", repr(error))]


def test_a_crash_is_one_even_if_it_ends_the_study():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    with pytest.raises(crashbo.Crash):
        study.optimize(raising(crashbo.Crash("tripped")), n_trials=1)
    assert [(t.state, t.reason) for t in records(study)] == [("crash", "tripped")]


def test_what_was_caught_is_kept_away_from():
    """REALITY: with fails void by default, 39 of 40 failed, 38 of them at one point."""

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if x + y > 0.9:
            raise MemoryError
        return -x - y

    study = optuna.create_study(sampler=CrashSampler(seed=0))
    study.optimize(objective, n_trials=25, catch=MemoryError)
    assert sum(t.state == TrialState.FAIL for t in study.trials) < 18  # the best lies on the boundary
    assert len({tuple(t.params.values()) for t in study.trials if t.state == TrialState.FAIL}) > 5
    assert study.best_value < -0.88


def test_a_fail_of_which_nothing_is_known_counts_as_fails_do():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: math.sqrt(0.5 - trial.suggest_float("x", 0, 1)), n_trials=6, catch=ValueError)
    failed = [t.state == TrialState.FAIL for t in study.trials]
    assert any(failed)
    assert [t.state == "crash" for t in records(study)] == failed
    assert [t.state == "void" for t in records(study, on_fail="void")] == failed


def test_a_raised_void_is_void_even_where_every_fail_counts():
    study = run(raising(crashbo.Void("unplugged")))
    assert [(t.state, t.reason) for t in records(study, on_fail="crash")] == [("void", "unplugged")]


@pytest.mark.parametrize("cost", [float("nan"), None, "fast"])
def test_an_objective_without_a_cost_is_a_crash_unless_fails_are_void(cost):
    study = run(lambda trial: cost)
    assert [(t.state, t.reason) for t in records(study)] == [("crash", "the objective gave no cost")]
    assert [t.state for t in records(study, on_fail="void")] == ["void"]


def test_an_infinite_cost_is_no_success():
    study = run(lambda trial: float("inf"))
    assert [t.state for t in records(study)] == ["crash"]
    assert [t.state for t in records(study, on_fail="void")] == ["void"]


def test_a_fail_told_by_hand_is_a_crash():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    study.tell(study.ask(X), state=TrialState.FAIL)
    assert [t.state for t in records(study)] == ["crash"]


def test_a_study_told_within_another_ones_objective_is_not_mistaken_for_it():
    inner = optuna.create_study(sampler=CrashSampler(seed=0))

    def objective(trial):
        inner.tell(inner.ask(X), state=TrialState.FAIL)
        raise ZeroDivisionError

    outer = run(objective, on_fail="void")
    assert [t.state for t in records(inner, on_fail="void")] == ["crash"]
    assert [t.state for t in records(outer, on_fail="void")] == ["void"]


def test_a_wrapped_sampler_still_learns_why():
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        sampler = optuna.samplers.PartialFixedSampler({"y": 1}, CrashSampler(seed=0))
    study = run(raising(crashbo.Crash("tripped")), sampler=sampler)
    assert [(t.state, t.reason) for t in records(study)] == [("crash", "tripped")]


def test_a_pruned_trial_counts_by_its_last_value():
    def objective(trial):
        trial.report(3.5, 1)
        raise optuna.TrialPruned

    def silent(trial):
        raise optuna.TrialPruned

    assert [(t.state, t.cost) for t in records(run(objective))] == [("success", 3.5)]
    assert [(t.state, t.cost) for t in records(run(silent))] == [("void", None)]


def test_a_measurement_must_be_a_number():
    study = optuna.create_study()
    with pytest.raises(ValueError, match="current must be a finite number; got nan"):
        measure(study.ask(), current=float("nan"))


def test_an_attribute_named_as_a_constraint_is_its_measurement():
    study = optuna.create_study()  # a study from before crashbo
    trial = study.ask(X)
    trial.set_user_attr("current", 96.0)
    study.tell(trial, 1.0)
    assert records(study)[0].measured == {}
    assert records(study, names=["current"])[0].measured == {"current": 96.0}


class TestLease:
    def started(self, ago, lease):
        study = optuna.create_study(sampler=CrashSampler(seed=0, lease=lease))
        trial = study.ask(X)
        renew(trial, lease - ago)
        return study, trial

    def test_a_trial_within_its_lease_is_pending(self):
        study, _ = self.started(ago=5, lease=60)
        assert [t.state for t in records(study)] == ["pending"]

    def test_a_trial_past_its_lease_is_void(self):
        study, _ = self.started(ago=61, lease=60)
        assert [(t.state, t.reason) for t in records(study)] == [("void", "lease ran out")]

    def test_a_lease_is_written_when_a_trial_is_asked(self):
        study = optuna.create_study(sampler=CrashSampler(lease=60))
        until = study.ask(X).storage.get_trial(0).system_attrs["crashbo:lease"]
        assert 50 < until - time.time() <= 60

    def test_a_late_worker_may_still_tell(self):
        study, trial = self.started(ago=61, lease=60)
        study.tell(trial, 0.5)
        assert [(t.state, t.cost) for t in records(study)] == [("success", 0.5)]

    def test_expired_trials_can_be_closed_and_told_even_so(self):
        study, trial = self.started(ago=61, lease=60)
        study.ask(X)
        assert void_expired(study) == [0]
        assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.RUNNING]
        assert [(t.state, t.reason) for t in records(study)] == [("void", "lease ran out"), ("pending", "")]
        tell(study, trial, cost=0.5, replace=True)
        assert [t.state for t in records(study)] == ["success", "pending"]

    def test_another_samplers_trial_is_measured_by_its_start(self):
        study = optuna.create_study()
        study.ask(X)
        time.sleep(0.02)
        assert [t.state for t in records(study, lease=60)] == ["pending"]
        assert [t.state for t in records(study, lease=0.01)] == ["void"]

    def test_a_crash_that_was_marked_holds_though_its_worker_died_before_the_end_was_stored(self):
        study, trial = self.started(ago=61, lease=60)
        trial.set_user_attr("crashbo:state", "crash")
        assert [t.state for t in records(study)] == ["crash"]


class TestTell:
    def test_it_says_what_optuna_has_no_words_for(self):
        study = optuna.create_study(sampler=CrashSampler(seed=0))
        told = [
            tell(study, study.ask(X), cost=1.0, measured={"current": 90.0}),
            tell(study, study.ask(X), crash="tripped", blame="current", measured={"current": 120.0}),
            tell(study, study.ask(X).number, void="unplugged"),
        ]
        assert told == records(study)
        assert [(t.state, t.cost, t.reason, t.blame) for t in told] == [
            ("success", 1.0, "", ()),
            ("crash", None, "tripped", ("current",)),
            ("void", None, "unplugged", ()),
        ]
        assert [t.measured for t in told] == [{"current": 90.0}, {"current": 120.0}, {}]

    def test_a_trial_is_told_once(self):
        study = line([0.2])
        with pytest.raises(ValueError, match="trial 0 must be running to be told; it is COMPLETE"):
            tell(study, 0, cost=2.0)

    def test_a_correction_is_what_counts_from_then_on(self):
        study = line([0.1, 0.4, 0.8])
        assert insight(study).best.number == 1
        tell(study, 1, crash="the cost was read off wrongly", replace=True)
        tell(study, 2, cost=0.0, replace=True)
        assert [t.state for t in records(study)] == ["success", "crash", "success"]
        assert insight(study).best.number == 2
        tell(study, 1, void=True, replace=True)
        assert records(study)[1].state == "void"

    @pytest.mark.parametrize("told", [{}, {"cost": 1.0, "crash": True}, {"cost": float("nan")}])
    def test_nonsense_is_refused_and_leaves_the_trial_running(self, told):
        study = optuna.create_study(sampler=CrashSampler(seed=0))
        trial = study.ask(X)
        with pytest.raises(ValueError, match="must"):
            tell(study, trial, **told)
        assert study.trials[0].state == TrialState.RUNNING

    def test_a_name_that_was_not_declared_is_refused(self):
        study = optuna.create_study(sampler=CrashSampler(seed=0))
        declare(study, constraints=["current"])
        with pytest.raises(ValueError, match="measured must name constraints"):
            tell(study, study.ask(X), cost=1.0, measured={"curent": 3.0})

    def test_a_trial_that_waits_in_the_queue_must_be_asked_first(self):
        study = line([0.1])
        study.enqueue_trial({"x": 0.3})
        with pytest.raises(ValueError, match="it is WAITING"):
            tell(study, 1, crash=True)
        assert [t.state for t in records(study)] == ["success", "pending"]

    def test_a_number_that_is_none_is_refused(self):
        with pytest.raises(ValueError, match="got number 7"):
            tell(line([0.1]), 7, cost=1.0)


def test_a_lease_that_ran_out_is_closed_in_a_journal_too(tmp_path):
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))
    study = optuna.create_study(storage=storage, sampler=CrashSampler(lease=60.0))
    trial = study.ask(X)
    renew(trial, -1.0)
    assert void_expired(study) == [0]
    assert [t.state for t in study.trials] == [TrialState.FAIL]
    assert records(study)[0].state == "void"


def test_units_may_be_of_what_only_some_trials_have():
    study = optuna.create_study(sampler=CrashSampler(["load"], seed=0, units={"x": "m", "y": "s", "load": "A"}))
    study.optimize(lambda t: t.suggest_float("x", 0, 1) + (t.suggest_float("y", 0, 1) if t.number % 2 else 0.0), 6)
    assert insight(study).view.study.units == {"x": "m", "load": "A"}


def test_what_was_declared_of_a_constraint_that_is_no_more_does_no_harm():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    declare(study, constraints=["a"], noise={"a": 0.1, "cost": 0.2})
    declare(study, constraints=["b"])
    study.optimize(lambda t: t.suggest_float("x", 0, 1), 6)
    assert insight(study).view.study.noise == {"cost": 0.2}


def test_a_name_may_be_own():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    assert declare(study, constraints=["own"], noise={"own": 0.1}, units={"own": "A"}).noise == {"own": 0.1}


def test_a_reason_is_kept_as_far_as_a_storage_takes_it_whichever_way_it_comes():
    raised = run(raising(crashbo.Crash("x" * 3000)))
    told = optuna.create_study(sampler=CrashSampler(seed=0))
    tell(told, told.ask(X), crash="x" * 3000)
    assert [len(records(study)[0].reason) for study in (raised, told)] == [2000, 2000]


class TestDeclared:
    def test_settings_survive_the_storage(self, tmp_path):
        storage = f"sqlite:///{tmp_path}/study.db"
        study = optuna.create_study(storage=storage, study_name="s")
        said = declare(
            study,
            space={"x": (0, 1), "n": crashbo.Int(1, 8), "mode": crashbo.Choice(["a", "b"])},
            constraints=[crashbo.Constraint("current", threshold=(80.0, 120.0), side="below"), crashbo.Unmeasured("o")],
            risk=crashbo.Budget(5, trials=50),
            noise={"cost": 0.1, "current": 0.2},
            strategy="eicc",
            posterior="map",
            on_fail="void",
            on_death="void",
            lease=30.0,
        )
        assert declared(optuna.load_study(storage=storage, study_name="s")) == said
        again = declare(study, lease=60.0)
        assert (again.lease, again.options["risk"]) == (60.0, crashbo.Budget(5, trials=50))
        assert (again.on_fail, again.on_death) == ("void", "void")
        study._storage._backend.engine.dispose()

    def test_every_sampler_finds_them(self):
        study = optuna.create_study(sampler=CrashSampler())
        declare(study, space={"x": (0, 1), "y": (0, 1)}, constraints=["current"], lease=60.0)
        trial = ask(study)
        assert set(trial.params) == {"x", "y"}
        assert trial.storage.get_trial(0).system_attrs["crashbo:lease"] > time.time()
        assert [c.name for c in insight(study).constraints] == ["current"]

    def test_what_a_sampler_was_given_comes_first(self):
        study = optuna.create_study()
        declare(study, on_fail="void", on_death="void", lease=60.0)
        settings = CrashSampler(on_death="crash", lease=5.0).settings(study)
        assert (settings.lease, settings.on_fail, settings.on_death) == (5.0, "void", "crash")

    def test_asking_needs_a_space(self):
        with pytest.raises(ValueError, match="declared space"):
            ask(optuna.create_study())

    @pytest.mark.parametrize(
        "wrong", [{"lease": -1.0}, {"on_fail": "ignore"}, {"on_death": "raise"}, {"risk": "bold"}, {"space": {}}]
    )
    def test_nonsense_is_refused(self, wrong):
        with pytest.raises(ValueError, match="must"):
            CrashSampler(**wrong)


def test_a_raised_stop_keeps_its_readings_and_those_measured_before():
    def objective(trial):
        measure(trial, heat=71.0)
        raise crashbo.Stopped({"current": 107.9}, "at its limit")

    (trial,) = records(run(objective, catch=(crashbo.Stopped,)))
    assert (trial.state, trial.cost, trial.reason) == ("stopped", None, "at its limit")
    assert trial.measured == {"heat": 71.0, "current": 107.9}
    assert set(trial.censored) == {"heat", "current"}


def test_a_stop_without_readings_has_those_that_were_measured_and_is_void_without_any():
    def objective(trial):
        measure(trial, current=107.9)
        raise crashbo.Stopped({})

    (trial,) = records(run(objective))
    assert (trial.state, trial.measured, trial.censored) == ("stopped", {"current": 107.9}, ("current",))
    (trial,) = records(run(raising(crashbo.Stopped({}))))
    assert trial.state == "void"


def test_a_stop_is_told_corrected_and_guarded():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    declare(study, space=X, constraints=[crashbo.Constraint("current", threshold=108.0)])
    assert insight(study).guard().limits == {"current": 108.0}
    trial = ask(study)
    assert tell(study, trial, stopped={"current": 107.9}).state == "stopped"
    said = {"reached": {"current": 107.9}, "rises": {"current": 0.5}}
    corrected = tell(study, trial.number, crash=True, replace=True, **said)
    assert {"reached": corrected.reached, "rises": corrected.rises} == said
    assert tell(study, trial.number, stopped={"current": 107.0}, replace=True).measured == {"current": 107.0}
    assert records(study)[0].reached == {}


def test_trials_without_a_cost_are_compared_by_any_worker():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    declare(study, space={"x": (0.0, 1.0)}, cost="compared")
    for _ in range(3):
        trial = ask(study)
        tell(study, trial, success=True)
    assert [t.state for t in records(study)] == ["success"] * 3
    assert all(t.state == optuna.trial.TrialState.FAIL for t in study.trials)
    prefer(study, 1, 0)
    prefer(study, 1, 2, tie=True)
    seen = insight(study)
    assert [(c.better, c.worse, c.tie) for c in seen.snapshot.comparisons] == [(1, 0, False), (1, 2, True)]
    assert seen.best is not None
    assert seen.best.number in (1, 2)
    with pytest.raises(ValueError, match="must be two trials"):
        prefer(study, 1, 1)
