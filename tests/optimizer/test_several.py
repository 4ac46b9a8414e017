"""Studies with several constraints: crashes without a known cause, partial data, and every kind of threshold."""

import json

import numpy as np
import pytest
from machines import SPACE, cost_of

import crashbo
from crashbo.search.calibration import Calibration

LOAD, HEAT = 1.1, 62.0  # the loads at which a machine with two causes trips


def readings(params):
    return {"load": params["x"] + 0.5 * params["y"], "heat": 40.0 + 30.0 * params["y"] ** 2}


def causes(params):
    measured = readings(params)
    return [name for name, limit in (("load", LOAD), ("heat", HEAT)) if measured[name] > limit]


def silent(params):
    """What to tell of a machine that never says why it crashed."""
    return {"crash": True} if causes(params) else {"cost": cost_of(params), "measured": readings(params)}


def told(n=30, *, constraints=("load", "heat"), outcome=silent, seed=0, **kwargs):
    """A study that was told n random trials."""
    optimizer = crashbo.Optimizer(SPACE, list(constraints), **kwargs)
    for x, y in np.random.default_rng(seed).random((n, 2)):
        optimizer.tell({"x": x, "y": y}, **outcome({"x": x, "y": y}))
    return optimizer


def asked(optimizer, outcome, trials=10):
    points = []
    for _ in range(trials):
        trial = optimizer.ask()
        points.append([*trial.params.values()])
        optimizer.tell(trial, **outcome(trial.params))
    return np.array(points)


@pytest.fixture(scope="module")
def plain():
    optimizer = told(6, seed=5)
    assert sum(t.state == "crash" for t in optimizer.trials) >= 2
    return asked(optimizer, silent)


@pytest.mark.parametrize("change", ["order and names", "sides", "units"])
def test_order_names_sides_and_units_of_constraints_do_not_matter(plain, change):
    scale = {"order and names": (1.0, 1.0), "sides": (1.0, -1.0), "units": (1e3, 0.3)}[change]

    def outcome(params):
        said = silent(params)
        if "crash" in said:
            return said
        load, heat = said["measured"].values()
        return {"cost": said["cost"], "measured": {"a": scale[1] * heat, "b": scale[0] * load}}

    constraints = [crashbo.Constraint("a", side="below" if scale[1] < 0.0 else "above"), "b"]
    other = asked(told(6, seed=5, constraints=constraints, outcome=outcome), outcome)
    np.testing.assert_allclose(other, plain, atol=1e-3)


def test_what_each_constraint_would_do_multiplies_to_p_safe():
    optimizer = told()
    points = [{"x": 0.9, "y": 0.1}, {"x": 0.1, "y": 0.95}, {"x": 0.2, "y": 0.2}]
    violated = optimizer.p_violated(points)
    np.testing.assert_allclose((1.0 - violated["load"]) * (1.0 - violated["heat"]), optimizer.p_safe(points), atol=1e-9)
    assert violated["heat"][1] > 0.8 > 0.2 > violated["load"][1]
    one = optimizer.p_violated(points[0])
    assert one == pytest.approx({name: p[0] for name, p in violated.items()})
    assert np.isnan(crashbo.Optimizer(SPACE, ["load"]).p_violated(points[0])["load"])


def test_the_table_of_trials_tells_the_blame_of_every_crash():
    optimizer = told(25)
    optimizer.ask()
    rows = optimizer.table()
    assert [row["number"] for row in rows] == list(range(26))
    for row in rows:
        assert row["blame"] == (optimizer.blame(row["number"]) if row["state"] == "crash" else {})
    assert json.loads(json.dumps(rows))[0]["params"] == rows[0]["params"]
    assert crashbo.Optimizer(SPACE, ["load"]).table() == []


def test_a_cause_that_nobody_measures_takes_the_blame_that_the_measured_one_cannot():
    def outcome(params):  # crashes beyond a load, and in a corner where the load is low
        if params["x"] < 0.3 and params["y"] > 0.6:
            return {"crash": True}
        load = params["x"]
        return {"crash": True} if load > 0.8 else {"cost": cost_of(params), "measured": {"load": load}}

    optimizer = told(60, constraints=["load", crashbo.Unmeasured("other")], outcome=outcome)
    corner = optimizer.tell({"x": 0.12, "y": 0.85}, crash=True)
    loaded = optimizer.tell({"x": 0.97, "y": 0.3}, crash=True)
    assert optimizer.blame(corner)["other"] > 0.8 > 0.2 > optimizer.blame(corner)["load"]
    assert optimizer.blame(loaded)["load"] > 0.8
    assert optimizer.thresholds["load"].value == pytest.approx(0.8, abs=0.08)
    assert list(optimizer.thresholds) == ["load"]


def blaming(params):
    """The same machine, but it says why it crashed."""
    return {"crash": True, "blame": causes(params)} if causes(params) else silent(params)


def upper_end_with(params, **said):
    """How high the load's threshold may lie after one more crash."""
    optimizer = told(12, noise={"load": 0.005}, outcome=blaming)
    optimizer.tell(params, crash=True, **said)
    return optimizer.thresholds["load"].interval[1]


def test_a_guilty_reading_bounds_the_threshold_and_an_innocent_one_does_not():
    hot, reading = {"x": 0.575, "y": 0.95}, {"measured": {"load": 1.05}}  # as it is there
    assert upper_end_with(hot, **reading, blame="load") < 1.08
    assert upper_end_with(hot, **reading, blame="heat") > LOAD


def test_a_reading_that_was_cut_off_does_not_bound_the_threshold():
    loaded, reading = {"x": 0.95, "y": 0.5}, {"measured": {"load": 1.05}}  # the load there is 1.2
    assert upper_end_with(loaded, **reading, blame="load") < 1.08
    assert upper_end_with(loaded, **reading, blame="load", censored=True) > LOAD


def test_a_constraint_whose_crashes_are_always_cut_off_says_so_once():
    said = {"x": 0.95, "y": 0.9}, {"crash": True, "blame": "load", "measured": {"load": 1.0}}
    intervals = []
    for constraint, more in (("load", {"censored": True}), (crashbo.Constraint("load", censored=True), {})):
        optimizer = told(14, constraints=[constraint, "heat"])
        optimizer.tell(said[0], **said[1], **more)
        intervals.append(optimizer.thresholds["load"].interval)
    assert intervals[0] == pytest.approx(intervals[1], rel=1e-9)


def test_what_was_cut_off_survives_saving_and_a_crash_can_carry_it():
    optimizer = told(10)
    crash = crashbo.Crash("peak", blame="load", measured={"load": 1.2, "heat": 50.0}, censored="load")
    trial = optimizer.tell({"x": 0.9, "y": 0.9}, crash=crash)
    assert trial.censored == ("load",)
    again = crashbo.Optimizer.from_json(optimizer.to_json())
    assert again.trials[-1] == trial
    assert again.thresholds["load"].value == pytest.approx(optimizer.thresholds["load"].value, rel=1e-6)
    saturated = optimizer.tell({"x": 0.1, "y": 0.1}, cost=1.0, measured={"load": 0.1}, censored=True)
    assert saturated.censored == ("load",)
    assert optimizer.tell(10, crash="again", measured={"load": 1.2}, replace=True).censored == ()


def test_only_what_was_measured_can_be_cut_off():
    with pytest.raises(ValueError, match=r"^censored must name what was measured \(load\); got 'heat'\. "):
        told(3).tell({"x": 0.9, "y": 0.9}, crash=True, measured={"load": 1.0}, censored="heat")


def test_cut_off_readings_before_any_whole_one_are_no_harm():
    optimizer = crashbo.Optimizer(SPACE, [crashbo.Constraint("load", censored=True), "heat"])
    for x in (0.9, 0.8, 0.7):
        optimizer.tell({"x": x, "y": x}, crash=True, measured={"load": 1e6 * x})
    assert optimizer.thresholds["load"].value is None
    assert 0.0 <= optimizer.p_safe({"x": 0.1, "y": 0.1}) <= 1.0


def test_known_unknown_and_confined_thresholds_of_both_sides_mix():
    def outcome(params):
        measured = {
            "known": params["x"],
            "learnt": 5.0 - 10.0 * params["y"],
            "confined": 100.0 * (params["x"] - params["y"]),
            "free": params["y"] + 0.2 * params["x"],
        }
        over = measured["known"] > 0.85 or measured["learnt"] < -3.0 or measured["confined"] < -50.0
        crashed = over or measured["free"] > 0.75
        return {"crash": True} if crashed else {"cost": cost_of(params), "measured": measured}

    constraints = [
        crashbo.Constraint("known", 0.85),
        crashbo.Constraint("learnt", side="below"),
        crashbo.Constraint("confined", (-60.0, -40.0), side="below"),
        "free",
        crashbo.Unmeasured("other"),
    ]
    optimizer = told(40, constraints=constraints, outcome=outcome)
    thresholds = optimizer.thresholds
    assert (thresholds["known"].value, thresholds["known"].learned) == (0.85, False)
    assert -60.0 <= thresholds["confined"].value <= -40.0
    assert thresholds["free"].value == pytest.approx(0.75, abs=0.1)
    low, high = thresholds["learnt"].interval
    assert low <= thresholds["learnt"].value <= high <= 0.0
    asked(optimizer, outcome, 3)
    assert optimizer.p_safe({"x": 0.4, "y": 0.3}) > 0.8 > 0.2 > optimizer.p_safe({"x": 0.95, "y": 0.95})


def test_blame_is_right_where_two_causes_overlap_in_part():
    optimizer = told(30)
    single = [(t, causes(t.params)[0]) for t in optimizer.trials if len(causes(t.params)) == 1]
    assert {cause for _, cause in single} == {"load", "heat"}
    assert np.mean([optimizer.blame(t)[cause] > 0.5 for t, cause in single]) >= 0.85


def test_a_proposal_reports_the_model_s_p_safe_as_the_stored_trials_bear_it_out():
    optimizer = told(6)
    asked(optimizer, silent, 3)
    searched = [t for t in optimizer.trials if t.origin == "search"]
    calibration = Calibration.of(
        np.array([t.p_model for t in searched]), np.array([t.state == "crash" for t in searched])
    )
    again = crashbo.Optimizer.from_json(optimizer.to_json())
    trial = optimizer.ask()
    assert calibration != Calibration()
    assert trial.p_safe == pytest.approx(calibration.corrected(trial.p_model))
    assert again.ask() == trial
