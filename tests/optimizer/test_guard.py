"""The guard: stops an experiment before it crashes; and what is made of a trial that was stopped."""

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import crashbo
from crashbo.optimizer.experiment import Job, outcome_of

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
TRIP = 60.0


def motor(params, guard=None, ticks=40):
    """A motor whose current rises within a run; it trips at 60 A."""
    peak = 20.0 + 50.0 * params["x"] + 30.0 * params["x"] * params["y"]
    for tick in range(1, ticks + 1):
        current = peak * tick / ticks
        if current > TRIP:
            raise crashbo.Crash("tripped")
        if guard is not None:
            guard.update(current=current)
    return crashbo.Outcome(-params["x"] - 0.3 * params["y"], {"current": peak})


def guarded(trials=25, **more):
    return crashbo.minimize(
        motor_with_guard, SPACE, constraints=["current"], trials=trials, progress=False, noise=0.01, **more
    )


def motor_with_guard(params, guard):
    return motor(params, guard)


@pytest.fixture(scope="module")
def watched():
    return guarded(guard=0.2)


class TestGuard:
    def test_it_stops_at_its_limit_and_not_before(self):
        guard = crashbo.Guard({"current": 108.2}, {"current": "above"})
        for current in (50.0, 108.19, 96.3):
            guard.update(current=current)
        with pytest.raises(crashbo.Stopped, match=r"^current reached 108\.9, its limit is 108\.2$") as stop:
            guard.update(current=108.9)
        assert stop.value.measured == {"current": 108.9}
        assert guard.reached == {"current": 108.9}

    def test_on_the_other_side_it_stops_below(self):
        guard = crashbo.Guard({"pressure": 2.0, "heat": math.inf}, {"pressure": "below", "heat": "above"})
        guard.update(pressure=3.0, heat=1e9)
        guard.update(pressure=5.0)
        with pytest.raises(crashbo.Stopped) as stop:
            guard.update(pressure=1.5)
        assert stop.value.measured == {"pressure": 1.5, "heat": 1e9}

    @pytest.mark.parametrize(
        ("readings", "words"),
        [
            ({"amps": 1.0}, r"readings must name measured constraints \(current\); got 'amps'\. "),
            ({"current": math.nan}, r"current must be a finite number; got nan\. "),
            ({"current": "high"}, r"current must be a finite number; got 'high'\. "),
        ],
    )
    def test_what_is_no_reading_is_refused(self, readings, words):
        guard = crashbo.Guard({"current": 1.0}, {"current": "above"})
        with pytest.raises(ValueError, match="^" + words):
            guard.update(**readings)

    def test_it_crosses_a_process_boundary_with_what_it_has_seen(self):
        guard = crashbo.Guard({"current": 10.0}, {"current": "above"})
        guard.update(current=4.0)
        sent = pickle.loads(pickle.dumps(guard))
        assert (sent.limits, sent.reached) == (guard.limits, guard.reached)
        with pytest.raises(crashbo.Stopped):
            sent.update(current=11.0)
        stopped = pickle.loads(pickle.dumps(crashbo.Stopped({"current": 11.0}, "why")))
        assert (stopped.measured, stopped.reason, str(stopped)) == ({"current": 11.0}, "why", "why")


class TestLimits:
    def test_before_the_first_crash_nothing_is_stopped(self):
        optimizer = crashbo.Optimizer(SPACE, ["current"])
        assert optimizer.guard(optimizer.ask()).limits == {"current": math.inf}
        for x in (0.1, 0.5, 0.3):
            optimizer.tell({"x": x, "y": 0.0}, cost=-x, measured={"current": 20.0 + 50.0 * x})
        assert optimizer.guard(optimizer.ask()).limits == {"current": math.inf}

    def test_a_known_threshold_is_the_limit_from_the_first_trial_on(self):
        optimizer = crashbo.Optimizer(SPACE, [crashbo.Constraint("current", threshold=TRIP, noise=0.0)])
        assert optimizer.guard(optimizer.ask()).limits == {"current": TRIP}
        optimizer.tell(0, cost=1.0, measured={"current": 30.0})
        optimizer.tell({"x": 0.2, "y": 0.9}, cost=0.9, measured={"current": 35.0})
        limit = optimizer.guard(optimizer.ask()).limits["current"]
        assert limit == pytest.approx(TRIP, abs=1.0)

    @pytest.mark.parametrize(("side", "limit"), [("above", 50.0), ("below", 70.0)])
    def test_an_interval_has_its_limit_from_the_first_trial_on(self, side, limit):
        optimizer = crashbo.Optimizer(SPACE, [crashbo.Constraint("current", threshold=(40.0, 80.0), side=side)])
        assert optimizer.guard(optimizer.ask(), p=0.25).limits == {"current": limit}

    def test_a_side_below_has_limits_below(self):
        optimizer = crashbo.Optimizer(SPACE, [crashbo.Constraint("pressure", side="below")])
        assert optimizer.guard(optimizer.ask()).limits == {"pressure": -math.inf}
        optimizer.tell(0, void=True)
        for x in (0.1, 0.3, 0.5, 0.6):
            optimizer.tell({"x": x, "y": 0.0}, cost=-x, measured={"pressure": 9.0 - 10.0 * x})
        for x in (0.8, 0.9):
            optimizer.tell({"x": x, "y": 0.0}, crash=True, reached={"pressure": 2.1})
        limit = optimizer.guard(optimizer.ask()).limits["pressure"]
        assert 1.0 < limit < 3.2

    def test_the_more_careful_the_guard_the_lower_its_limit(self, watched):
        optimizer = watched.optimizer
        trial = optimizer.ask()
        limits = [optimizer.guard(trial, p).limits["current"] for p in (0.05, 0.2, 0.5, 0.8)]
        assert limits == sorted(limits)
        assert limits[0] < limits[-1]
        assert optimizer.guard(trial).limits["current"] == limits[1]
        with pytest.raises(ValueError, match=r"^guard must be a probability between 0 and 1; got 1\.5\. "):
            optimizer.guard(trial, 1.5)

    def test_only_a_pending_trial_is_guarded(self, watched):
        with pytest.raises(ValueError, match=r"^trial 0 must be pending to be guarded; it is success\. "):
            watched.optimizer.guard(0)


class TestStudies:
    def test_a_guard_stops_what_would_crash_and_the_optimum_is_found(self, watched):
        """The best is x = 0.8 at y = 0, or x = 0.5 at y = 1: -0.8."""
        states = [t.state for t in watched.trials]
        assert states.count("stopped") >= 1
        assert states.count("crash") <= 3
        assert watched.best.cost < -0.76
        low, high = watched.thresholds["current"].interval
        assert low < TRIP < high
        assert high - low < 20.0

    def test_crashes_carry_what_they_had_reached(self, watched):
        crashes = [t for t in watched.trials if t.state == "crash"]
        assert crashes
        assert all(50.0 < t.reached["current"] <= TRIP for t in crashes)
        assert all(0.0 < t.rises["current"] <= 3.0 for t in crashes)

    def test_a_stopped_trial_has_no_cost_is_no_crash_and_counts(self, watched):
        stopped = next(t for t in watched.trials if t.state == "stopped")
        assert stopped.cost is None
        assert stopped.counts
        assert stopped.censored == ("current",)
        assert stopped.number not in watched.optimizer.blames()
        assert "its limit is" in stopped.reason
        assert watched.ended == "25 trials"
        assert sum(t.counts for t in watched.trials) == 25

    def test_a_stop_makes_its_place_less_safe_and_lifts_the_threshold(self):
        optimizer = crashbo.Optimizer(SPACE, ["current"])
        for x, y in ((0.1, 0.1), (0.3, 0.8), (0.5, 0.2), (0.2, 0.5), (0.6, 0.1)):
            optimizer.tell({"x": x, "y": y}, cost=-x, measured={"current": 20.0 + 50.0 * x + 30.0 * x * y})
        for x, y in ((0.95, 0.9), (0.9, 0.5)):
            optimizer.tell({"x": x, "y": y}, crash=True, reached={"current": 59.5})
        there, before = {"x": 0.6, "y": 0.6}, optimizer.thresholds["current"].interval
        safe = optimizer.p_safe(there)
        optimizer.tell(there, stopped={"current": 58.9})
        assert optimizer.p_safe(there) < min(safe, 0.6)
        assert optimizer.p_safe({"x": 0.1, "y": 0.1}) > 0.9
        assert optimizer.thresholds["current"].interval[0] >= before[0] - 0.1
        assert optimizer.thresholds["current"].proven > 55.0

    def test_a_budget_is_not_spent_by_stops(self):
        result = guarded(trials=20, risk=crashbo.Budget(3))
        assert sum(t.state == "crash" for t in result.trials) <= 3
        assert result.optimizer.risk.left(np.array([t.state == "crash" for t in result.trials]), 0) == 3 - sum(
            t.state == "crash" for t in result.trials
        )

    def test_it_works_in_workers_and_is_resumed_from_a_journal(self, tmp_path):
        journal = tmp_path / "study.jsonl"
        first = guarded(trials=12, workers=1, journal=journal)
        again = guarded(trials=12, journal=journal)
        assert again.trials == first.trials
        more = guarded(trials=14, journal=journal)
        assert more.trials[:12] == first.trials
        assert sum(t.counts for t in more.trials) == 14

    def test_a_saved_study_goes_on_with_the_same_proposals_and_limits(self, watched):
        optimizer = watched.optimizer
        text = optimizer.to_json()
        one, other = crashbo.Optimizer.from_json(text), crashbo.Optimizer.from_json(text)
        assert one.trials == optimizer.trials
        a, b = one.ask(), other.ask()
        assert a.params == b.params
        assert one.guard(a).limits == other.guard(b).limits

    def test_an_experiment_without_that_parameter_gets_no_guard(self):
        seen = []
        result = crashbo.minimize(lambda p: seen.append(p) or p["x"], SPACE, trials=3, progress=False)
        assert len(seen) == 3
        assert all(t.state == "success" for t in result.trials)


class TestTelling:
    def test_stopped_is_told_as_a_record_or_as_readings(self):
        optimizer = crashbo.Optimizer(SPACE, ["current"])
        a = optimizer.tell(optimizer.ask(), stopped=crashbo.Stopped({"current": 50.0}, "limit"))
        b = optimizer.tell(optimizer.ask(), stopped={"current": 51.0})
        assert (a.state, a.measured, a.reason) == ("stopped", {"current": 50.0}, "limit")
        assert (b.state, b.measured, b.reason, b.censored) == ("stopped", {"current": 51.0}, "", ("current",))
        assert optimizer.best is None

    def test_it_can_be_corrected(self):
        optimizer = crashbo.Optimizer(SPACE, ["current"])
        trial = optimizer.tell(optimizer.ask(), stopped={"current": 50.0})
        assert optimizer.tell(trial, crash="it had tripped", replace=True).state == "crash"
        assert optimizer.tell(trial, stopped={"current": 49.0}, replace=True).measured == {"current": 49.0}
        assert optimizer.tell(trial, cost=1.0, replace=True).censored == ()

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ({"stopped": {}}, r"stopped must map constraints to the readings at which the trial was stopped; got \{\}"),
            ({"stopped": True}, r"stopped must map constraints to the readings"),
            ({"stopped": {"current": math.nan}}, r"measured\['current'\] must be a finite number; got nan"),
            ({"stopped": {"heat": 1.0}}, r"stopped must name constraints \(current\); got 'heat'"),
            (
                {"stopped": {"current": 1.0}, "cost": 1.0},
                r"tell must get exactly one of cost, success, crash",
            ),
            ({"stopped": {"current": 1.0}, "blame": "current"}, r"blame must belong to a crash"),
            ({"crash": True, "reached": {"heat": 1.0}}, r"reached must name constraints \(current\); got 'heat'"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, said, words):
        optimizer = crashbo.Optimizer(SPACE, ["current"])
        with pytest.raises(ValueError, match="^" + words):
            optimizer.tell(optimizer.ask(), **said)
        assert [t.state for t in optimizer.trials] == ["pending"]

    def test_nothing_but_stops_and_crashes_is_no_harm(self):
        optimizer = crashbo.Optimizer(SPACE, ["current", crashbo.Unmeasured("other")])
        for k in range(6):
            trial = optimizer.ask()
            optimizer.guard(trial)
            if k % 2:
                optimizer.tell(trial, crash=True, reached={"current": 50.0 + k})
            else:
                optimizer.tell(trial, stopped={"current": 40.0 + k})
        assert 0.0 <= optimizer.p_safe({"x": 0.5, "y": 0.5}) <= 1.0
        assert optimizer.thresholds["current"].value is None


def test_a_killed_process_loses_no_stop(tmp_path):
    """kill -9 right after a stop was told: the journal has it."""
    script = f"""
import os, crashbo
def run(params, guard):
    raise crashbo.Stopped({{"current": 50.0}}, "here")
def end(optimizer, trial):
    if trial.number == 2:
        os.kill(os.getpid(), 9)
more = dict(constraints=["current"], trials=5, journal={str(tmp_path / "j")!r}, callbacks=[end])
crashbo.minimize(run, {{"x": (0.0, 1.0)}}, **more)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    events = [json.loads(line) for line in (tmp_path / "j").read_text().splitlines()[1:]]
    assert [e["trial"]["state"] for e in events if e["event"] == "tell"] == ["stopped"] * 3


def tripping_by_error(params, guard):
    try:
        return motor(params, guard)
    except crashbo.Crash:
        raise RuntimeError("the drive is off") from None


@pytest.mark.parametrize("more", [{}, {"workers": 1}])
def test_an_error_that_counts_as_a_crash_carries_what_it_had_reached(more):
    said = {"constraints": ["current"], "trials": 6, "progress": False, "on_error": "crash"}
    crashes = [t for t in crashbo.minimize(tripping_by_error, SPACE, **said, **more).trials if t.state == "crash"]
    assert crashes
    assert all(TRIP - 3.0 < t.reached["current"] <= TRIP for t in crashes)
    assert all(0.0 < t.rises["current"] <= 3.0 for t in crashes)


def test_a_guard_keeps_the_largest_rise_towards_the_crash_between_two_readings():
    guard = crashbo.Guard({"current": math.inf, "pressure": -math.inf}, {"current": "above", "pressure": "below"})
    for current, pressure in ((10.0, 9.0), (12.5, 8.0), (11.0, 8.5), (13.0, 6.0)):
        guard.update(current=current)
        guard.update(pressure=pressure)
    assert guard.rises == {"current": 2.5, "pressure": 2.5}
    assert guard.reached == {"current": 13.0, "pressure": 6.0}
    assert pickle.loads(pickle.dumps(guard)).rises == guard.rises


def test_the_first_reading_is_no_rise_and_readings_of_somebody_else_have_none():
    guard = crashbo.Guard({"current": math.inf}, {"current": "above"})
    guard.update(current=50.0)
    assert guard.rises == {}
    guard.update(current=51.0)

    def experiment(params, guard):
        raise crashbo.Crash("tripped", reached={"current": 58.0})  # of a logger, which reads more often

    crash = outcome_of(experiment, Job({}, guard))
    assert (crash.reached, crash.rises) == ({"current": 58.0}, {})
    crash = outcome_of(lambda params, guard: motor({"x": 1.0, "y": 1.0}, guard), Job({}, guard))
    assert crash.rises.keys() == {"current"}


def test_a_crash_whose_rise_is_known_bounds_its_threshold_from_above():
    def study(rises):
        optimizer = crashbo.Optimizer(SPACE, ["current"], noise={"current": 0.1})
        for x in (0.1, 0.3, 0.5):
            optimizer.tell({"x": x, "y": 0.2}, cost=-x, measured={"current": 20.0 + 60.0 * x})
        optimizer.tell({"x": 0.9, "y": 0.9}, crash=True, reached={"current": 59.0}, rises=rises)
        return optimizer.thresholds["current"].interval

    (low, high), (_, coarse) = study(rises={"current": 0.5}), study(rises={"current": 10.0})
    assert low < 59.3 < high < 63.0 < 70.0 < coarse


def test_a_threshold_that_is_given_is_the_limit_whatever_the_last_readings_before_crashes():
    optimizer = crashbo.Optimizer(SPACE, [crashbo.Constraint("current", threshold=60.0)], noise={"current": 0.01})
    optimizer.tell({"x": 0.1, "y": 0.2}, cost=0.0, measured={"current": 30.0})
    optimizer.tell({"x": 0.4, "y": 0.2}, cost=0.0, measured={"current": 45.0})
    optimizer.tell({"x": 0.9, "y": 0.2}, crash=True, reached={"current": 50.0}, rises={"current": 0.1})
    assert optimizer.guard(optimizer.ask()).limits["current"] == pytest.approx(60.0, abs=0.5)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"crash": True, "rises": {"current": 1.0}}, r"rises must be of what was reached; got 'current'"),
        (
            {"crash": True, "reached": {"current": 1.0}, "rises": {"current": -1.0}},
            r"rises\['current'\] must not be neg",
        ),
        (
            {"cost": 1.0, "rises": {"current": 1.0}},
            r"rises must belong to a crash; got {'current': 1.0} with a success",
        ),
        (
            {"stopped": {"current": 1.0}, "rises": {"current": 1.0}},
            r"rises must belong to a crash; got .* with stopped",
        ),
    ],
)
def test_rises_are_of_what_a_crash_had_reached(said, words):
    optimizer = crashbo.Optimizer(SPACE, ["current"])
    with pytest.raises(ValueError, match=f"^{words}"):
        optimizer.tell(optimizer.ask(), **said)


@pytest.mark.parametrize("said", [{"cost": 1.0}, {"stopped": {"current": 50.0}}])
def test_last_readings_before_a_crash_are_not_lost_without_a_word_where_there_was_none(said):
    optimizer = crashbo.Optimizer(SPACE, ["current"])
    with pytest.raises(ValueError, match=r"^reached must belong to a crash; got {'current': 55\.0} with "):
        optimizer.tell(optimizer.ask(), reached={"current": 55.0}, **said)


def test_a_confirmation_says_how_many_repeats_were_stopped():
    optimizer = crashbo.Optimizer(SPACE, ["current"])
    optimizer.tell(optimizer.ask(), cost=1.0, measured={"current": 50.0})
    repeats = optimizer.confirm(n=2)
    optimizer.tell(optimizer.ask(), cost=1.0, measured={"current": 50.0})
    optimizer.tell(optimizer.ask(), stopped={"current": 59.0})
    assert repeats.done
    assert repr(repeats).startswith("Confirmation(2 of 2 told")
    assert repr(repeats).endswith("stopped 1)")


def jumping(params, guard):
    """It idles, and then goes to its peak at once: what is read before it trips says nothing."""
    peak = 12.0 + 70.0 * params["x"] + 40.0 * params["y"] ** 2
    guard.update(current=0.3 * peak)
    if peak > TRIP:
        raise crashbo.Crash("tripped")
    guard.update(current=peak)
    return crashbo.Outcome(-params["x"] - 0.6 * params["y"], {"current": peak})


def test_where_crashes_seem_to_have_another_cause_a_study_is_not_stopped_at_one_place_again_and_again():
    known = crashbo.Constraint("current", threshold=TRIP)
    trials = crashbo.minimize(jumping, SPACE, constraints=[known], trials=20, progress=False).trials
    stops = np.array([[t.params["x"], t.params["y"]] for t in trials if t.state == "stopped"]).reshape(-1, 2)
    near = np.linalg.norm(stops[:, None] - stops[None], axis=2) < 0.02
    assert near.sum(axis=1).max(initial=0) <= 3
