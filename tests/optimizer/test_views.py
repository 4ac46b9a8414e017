"""What a study says of itself: best, recommend, thresholds, P(safe), blame, confirmations; and its symmetries."""

import numpy as np
import pytest
from machines import SPACE, THRESHOLD, cost_of, load_of, run, telling

import crashbo

INSIDE, OUTSIDE = {"x": 0.3, "y": 0.3}, {"x": 0.9, "y": 0.9}


def told(n=30, *, constraints=("load",), seed=0, outcome=telling, **kwargs):
    """A study that was told n random trials."""
    optimizer = crashbo.Optimizer(SPACE, list(constraints), **kwargs)
    for x, y in np.random.default_rng(seed).random((n, 2)):
        optimizer.tell({"x": x, "y": y}, **outcome({"x": x, "y": y}))
    return optimizer


def turned(params):
    """The machine that crashes below -1.2."""
    outcome = telling(params)
    return {**outcome, "measured": {"load": -load_of(params)}} if "cost" in outcome else outcome


def scaled(cost_scale, load_scale):
    def outcome(params):
        outcome = telling(params)
        if "crash" in outcome:
            return outcome
        return {"cost": cost_scale * outcome["cost"], "measured": {"load": load_scale * load_of(params)}}

    return outcome


def assert_close(ours, theirs, atol):
    np.testing.assert_allclose([[*p.values()] for p in ours], [[*p.values()] for p in theirs], atol=atol)


def test_a_constraint_that_crashes_below_mirrors_one_that_crashes_above():
    above = crashbo.Optimizer(SPACE, ["load"], seed=2)
    below = crashbo.Optimizer(SPACE, [crashbo.Constraint("load", side="below")], seed=2)
    assert_close(run(above, 9), run(below, 9, turned), 1e-3)
    assert above.thresholds["load"].value == pytest.approx(-below.thresholds["load"].value, rel=1e-6)
    low, high = above.thresholds["load"].interval
    assert below.thresholds["load"].interval == pytest.approx((-high, -low), rel=1e-6)


def test_maximising_mirrors_minimising():
    least = crashbo.Optimizer(SPACE, ["load"], seed=2)
    most = crashbo.Optimizer(SPACE, ["load"], seed=2, direction="maximize")
    assert_close(run(least, 9), run(most, 9, scaled(-1.0, 1.0)), 1e-6)
    assert most.best.number == least.best.number
    assert most.best.cost == -least.best.cost
    assert most.recommend().cost == pytest.approx(-least.recommend().cost, rel=1e-6)


@pytest.mark.parametrize(("cost_scale", "load_scale"), [(1e6, 1e-6), (1e-6, 1e6)])
def test_the_units_of_cost_and_measurements_do_not_matter(cost_scale, load_scale):
    plain, other = (crashbo.Optimizer(SPACE, ["load"], seed=2) for _ in range(2))
    # Rounding differs, and fits that end a little earlier or later pass it on from trial to trial.
    assert_close(run(plain, 8), run(other, 8, scaled(cost_scale, load_scale)), 0.02)
    assert other.thresholds["load"].value == pytest.approx(load_scale * plain.thresholds["load"].value, rel=0.02)
    assert other.recommend().cost == pytest.approx(cost_scale * plain.recommend().cost, abs=0.01 * cost_scale)


def test_the_search_finds_the_best_safe_point():
    optimizer = crashbo.Optimizer(SPACE, ["load"], seed=0)
    run(optimizer, 22)
    assert optimizer.best.cost < 0.005 + 0.1**2 / 2  # (0.65, 0.55), on the boundary
    assert sum(t.state == "crash" for t in optimizer.trials[4:]) <= 6


@pytest.mark.parametrize(("direction", "huge"), [("minimize", {2}), ("minimize", {2, 7, 15}), ("maximize", {2})])
def test_huge_costs_do_not_spoil_the_search(direction, huge):
    optimizer = crashbo.Optimizer(SPACE, seed=0, direction=direction)
    sign = 1.0 if direction == "minimize" else -1.0
    for i in range(30):
        trial = optimizer.ask()
        bowl = (trial.params["x"] - 0.3) ** 2 + (trial.params["y"] - 0.6) ** 2
        optimizer.tell(trial, cost=sign * (1e9 if i in huge else 1.0 + bowl))
    assert sign * optimizer.best.cost < 1.001


def test_the_best_is_the_success_with_the_least_cost():
    optimizer = told(12)
    costs = [t.cost for t in optimizer.trials if t.state == "success"]
    assert optimizer.best.cost == min(costs)
    assert optimizer.best.measured.keys() == {"load"}
    assert crashbo.Optimizer(SPACE).best is None


def test_before_anything_was_told_nothing_is_claimed():
    optimizer = crashbo.Optimizer(SPACE, ["load"])
    assert optimizer.best is None
    assert optimizer.recommend() is None
    assert np.isnan(optimizer.p_safe(INSIDE))
    assert np.isnan(optimizer.p_safe([INSIDE, OUTSIDE])).all()
    assert (optimizer.thresholds["load"].value, optimizer.thresholds["load"].interval) == (None, None)
    assert optimizer.thresholds["load"].learned
    assert optimizer.gain_left() is None


def test_after_crashes_alone_there_is_p_safe_but_no_recommendation_and_no_threshold():
    optimizer = crashbo.Optimizer(SPACE, ["load"])
    optimizer.tell(OUTSIDE, crash=True)
    optimizer.tell({"x": 0.8, "y": 0.9}, crash=True)
    assert optimizer.recommend() is None
    assert optimizer.thresholds["load"].value is None
    assert optimizer.p_safe(OUTSIDE) < 0.5 + 1e-9


def test_a_threshold_is_learnt_with_an_interval_that_holds_it():
    threshold = told(40).thresholds["load"]
    assert threshold.learned
    assert threshold.value == pytest.approx(THRESHOLD, abs=0.06)
    low, high = threshold.interval
    assert low <= THRESHOLD <= high
    assert low <= threshold.value <= high
    assert high - low < 0.3


def test_more_trials_narrow_the_interval():
    widths = [np.ptp(told(n).thresholds["load"].interval) for n in (8, 60)]
    assert widths[1] < widths[0]


@pytest.mark.parametrize("side", ["above", "below"])
def test_a_known_threshold_is_taken_as_it_is(side):
    sign = 1.0 if side == "above" else -1.0
    known = crashbo.Constraint("load", threshold=sign * 1.25, side=side)
    empty = crashbo.Optimizer(SPACE, [known]).thresholds["load"]
    full = told(10, constraints=[known], outcome=telling if side == "above" else turned).thresholds["load"]
    for threshold in (empty, full):
        assert not threshold.learned
        assert threshold.value == pytest.approx(sign * 1.25)
        assert threshold.interval == pytest.approx((sign * 1.25, sign * 1.25))


@pytest.mark.parametrize("side", ["above", "below"])
def test_a_threshold_is_learnt_within_the_interval_that_was_given(side):
    sign = 1.0 if side == "above" else -1.0
    given = tuple(sorted((sign * 1.3, sign * 1.6)))  # the truth, 1.2, lies outside
    pair = crashbo.Constraint("load", threshold=given, side=side)
    assert crashbo.Optimizer(SPACE, [pair]).thresholds["load"].interval == given
    threshold = told(20, constraints=[pair], outcome=telling if side == "above" else turned).thresholds["load"]
    slack = 1e-6
    assert given[0] - slack <= threshold.value <= given[1] + slack
    assert given[0] - slack <= threshold.interval[0] <= threshold.interval[1] <= given[1] + slack


def test_a_success_beyond_a_known_threshold_warns_once_and_is_taken():
    optimizer = crashbo.Optimizer(SPACE, [crashbo.Constraint("load", threshold=0.5)])
    optimizer.tell({"x": 0.1, "y": 0.1}, cost=1.0, measured={"load": 0.2})
    with pytest.warns(RuntimeWarning, match=r"trial 1 succeeded with load 0\.6 beyond its known threshold 0\.5"):
        optimizer.tell(INSIDE, cost=1.0, measured={"load": 0.6})
    optimizer.tell({"x": 0.3, "y": 0.4}, cost=0.9, measured={"load": 0.7})  # a second warning would be an error
    assert optimizer.best.cost == 0.9
    assert optimizer.thresholds["load"].value == 0.5
    assert 0.0 <= optimizer.p_safe(INSIDE) <= 1.0


def test_a_success_beyond_a_known_threshold_below_warns_too():
    optimizer = crashbo.Optimizer(SPACE, [crashbo.Constraint("voltage", threshold=11.0, side="below")])
    optimizer.tell(INSIDE, cost=1.0, measured={"voltage": 12.0})
    with pytest.warns(RuntimeWarning, match="beyond its known threshold 11"):
        optimizer.tell(OUTSIDE, cost=1.0, measured={"voltage": 10.0})


def test_p_safe_takes_one_setting_or_many():
    optimizer = told()
    one, many = optimizer.p_safe(INSIDE), optimizer.p_safe([INSIDE, OUTSIDE, INSIDE])
    assert isinstance(one, float)
    assert many.shape == (3,)
    assert many[0] == many[2] == pytest.approx(one, abs=1e-12)
    assert one > 0.95
    assert many[1] < 0.05


def test_p_safe_of_no_setting_is_an_empty_array():
    assert told(5).p_safe([]).shape == (0,)


def two_causes(params):
    """Crashes from load where x > 0.7 and from heat where y > 0.7."""
    if params["x"] > 0.7 or params["y"] > 0.7:
        return {"crash": True}
    return {"cost": cost_of(params), "measured": {"load": params["x"], "heat": 100.0 * params["y"]}}


def test_blame_falls_on_the_constraint_that_was_violated():
    optimizer = told(40, constraints=("load", "heat"), outcome=two_causes)
    by_load = optimizer.tell({"x": 0.95, "y": 0.2}, crash=True)
    by_heat = optimizer.tell({"x": 0.2, "y": 0.95}, crash=True)
    assert optimizer.blame(by_load)["load"] > 0.8 > 0.3 > optimizer.blame(by_load)["heat"]
    assert optimizer.blame(by_heat.number)["heat"] > 0.8 > 0.3 > optimizer.blame(by_heat.number)["load"]
    assert list(optimizer.blame(by_load)) == ["load", "heat"]


def test_a_blame_that_was_told_is_certain():
    optimizer = told(12, constraints=("load", "heat"), outcome=two_causes)
    trial = optimizer.tell({"x": 0.95, "y": 0.95}, crash=True, blame="heat")
    assert optimizer.blame(trial)["heat"] == 1.0


def test_the_only_constraint_gets_the_blame_but_for_a_doubt():
    optimizer = told(10)
    crash = next(t for t in optimizer.trials if t.state == "crash")
    assert 0.9 < optimizer.blame(crash)["load"] < 1.0


def test_only_a_crash_has_a_blame():
    optimizer = told(10)
    success = optimizer.best
    for wrong in (success, success.number, 99):
        with pytest.raises(ValueError, match=r"^trial must be one that crashed; got .+\. "):
            optimizer.blame(wrong)


@pytest.mark.parametrize("delta", [-0.1, 1.5, "0.1", float("nan")])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ValueError, match=r"^delta must lie in \[0, 1\]; got .+\. "):
        told(5).recommend(delta)


def test_a_noise_that_is_known_is_used():
    optimizer = told(15, noise={"cost": 0.25, "load": 0.125})
    models = optimizer.view.models
    assert models.aim.noise_std == pytest.approx(0.25)
    assert models.crash.hypers[0].noise_std == pytest.approx(0.125)
    assert optimizer.constraints[0].noise == 0.125


def test_confirming_repeats_the_best_and_reports_mean_spread_and_crashes():
    optimizer = told(10)
    best = optimizer.best
    report = optimizer.confirm(4)
    assert (report.params, report.done, report.mean, report.std) == (best.params, False, None, None)
    outcomes = [{"cost": 1.0}, {"cost": 2.0}, {"crash": True}, {"cost": 3.0}]
    for outcome in outcomes:
        trial = optimizer.ask()
        assert trial.params == best.params
        assert trial.origin == "confirm"
        optimizer.tell(trial, **outcome)
    assert report.done
    assert (report.mean, report.std, report.crashes, report.costs) == (2.0, 1.0, 1, [1.0, 2.0, 3.0])
    assert "crashes 1" in repr(report)
    assert optimizer.ask().params != best.params


def test_confirming_is_possible_for_any_setting_and_needs_one():
    optimizer = crashbo.Optimizer(SPACE, ["load"])
    with pytest.raises(ValueError, match=r"^confirm must have a success to repeat; there is none in the space\. "):
        optimizer.confirm()
    with pytest.raises(ValueError, match=r"^n must be a whole number, at least 1; got 0\. "):
        optimizer.confirm(0)
    optimizer.confirm(2, INSIDE)
    assert [optimizer.ask().params for _ in range(2)] == [INSIDE, INSIDE]


def test_a_void_repeat_is_made_again():
    optimizer = told(10)
    report = optimizer.confirm(2)
    for outcome in ({"void": True}, {"cost": 1.0}, {"cost": 2.0}):
        trial = optimizer.ask()
        assert trial.origin == "confirm"
        optimizer.tell(trial, **outcome)
    assert report.done
    assert report.mean == 1.5


def test_two_confirmations_do_not_share_their_repeats():
    optimizer = told(10)
    first, second = optimizer.confirm(2), optimizer.confirm(2)
    for cost in (1.0, 1.0, 2.0, 2.0):
        optimizer.tell(optimizer.ask(), cost=cost)
    assert (first.mean, second.mean) == (1.0, 2.0)


def test_with_a_floor_nothing_below_it_is_proposed_and_what_cannot_reach_it_is_flagged():
    optimizer = crashbo.Optimizer(SPACE, ["load"], seed=0, risk=crashbo.MinSafe(0.9), start=[{"x": 0.2, "y": 0.2}])
    run(optimizer, 12)
    proposed = [t for t in optimizer.trials if t.origin == "search"]
    assert all(t.p_safe >= 0.88 for t in proposed if t.admissible)
    assert sum(t.admissible for t in proposed) >= 6
    hopeless = crashbo.Optimizer(SPACE, ["load"], risk=crashbo.MinSafe(0.999))
    hopeless.tell(INSIDE, crash=True)
    hopeless.tell({"x": 0.6, "y": 0.6}, cost=1.0, measured={"load": 1.0})
    hopeless.tell({"x": 0.7, "y": 0.6}, crash=True)
    assert not hopeless.ask().admissible


def test_a_floor_holds_as_reported_also_where_the_machine_crashes_for_no_reason_and_before_a_success():
    unlucky, rng = crashbo.Optimizer(SPACE, ["load"], seed=0, risk=crashbo.MinSafe(0.9)), np.random.default_rng(0)
    for _ in range(20):
        trial = unlucky.ask()
        outcome = {"crash": True} if rng.random() < 0.35 else {"cost": 1.0, "measured": {"load": 1.0}}
        unlucky.tell(trial, **outcome)
    assert all(t.p_safe >= 0.889 for t in unlucky.trials if t.origin == "search" and t.admissible)
    crashed = crashbo.Optimizer(SPACE, ["load"], risk=crashbo.MinSafe(0.95), start=[INSIDE])
    crashed.tell(crashed.ask(), crash=True)
    first = crashed.ask()
    assert first.p_safe < 0.9
    assert not first.admissible


def test_a_budget_is_never_exceeded_even_by_what_is_pending():
    optimizer = crashbo.Optimizer(SPACE, ["load"], seed=0, risk=crashbo.Budget(2, 14), start=[{"x": 0.2, "y": 0.2}])
    run(optimizer, 14)
    assert sum(t.state == "crash" for t in optimizer.trials) <= 2
    spent = crashbo.Optimizer(SPACE, ["load"], seed=0, risk=crashbo.Budget(1, 20))
    spent.tell(INSIDE, cost=1.0, measured={"load": 0.6})
    spent.tell(OUTSIDE, crash=True)
    assert spent.ask().params == pytest.approx(INSIDE)


@pytest.mark.parametrize(("load", "again"), [(0.2, True), (0.97, False)])
def test_a_spent_budget_repeats_no_success_that_may_yet_crash(load, again):
    loads = crashbo.Constraint("load", threshold=1.0, noise=0.05)
    optimizer = crashbo.Optimizer(SPACE, [loads], seed=0, risk=crashbo.Budget(0, 20))
    better = {"x": 0.9, "y": 0.9}
    for y in (0.1, 0.2, 0.3, 0.4):
        optimizer.tell({"x": 0.2, "y": y}, cost=1.0 + y, measured={"load": 0.2})
    optimizer.tell(better, cost=0.0, measured={"load": load})
    assert (optimizer.ask().params == pytest.approx(better)) == again


@pytest.mark.parametrize("risk", [crashbo.Budget(0, 20), crashbo.Budget(3, 20), crashbo.MinSafe(0.9)])
def test_the_cautious_try_nothing_unknown_before_anything_was_told(risk):
    optimizer = crashbo.Optimizer(SPACE, ["load"], risk=risk, start=[INSIDE])
    assert [optimizer.ask().params for _ in range(4)] == [INSIDE] * 4


def test_a_budget_that_is_spent_before_the_first_success_says_so():
    optimizer = crashbo.Optimizer(SPACE, ["load"], risk=crashbo.Budget(2, 20))
    for expected in (True, True, False):
        trial = optimizer.ask()
        assert trial.admissible == expected
        optimizer.tell(trial, crash=True)


LEGS = {"legs": crashbo.Int(0, 5), "mode": crashbo.Choice(["walk", "run"])}


def walk(risk, trials=30):
    """A study of twelve settings, four of which succeed."""
    optimizer = crashbo.Optimizer(LEGS, ["load"], seed=0, risk=risk, start=[{"legs": 0, "mode": "walk"}])
    for _ in range(trials):
        trial = optimizer.ask()
        load = trial.params["legs"] + 3 * (trial.params["mode"] == "run")
        optimizer.tell(trial, **({"crash": True} if load > 3 else {"cost": -load, "measured": {"load": load}}))
    return optimizer


def test_where_every_setting_was_tried_none_that_crashed_is_tried_again():
    optimizer = walk(None)
    crashed = [tuple(t.params.values()) for t in optimizer.trials if t.state == "crash"]
    assert len(crashed) == len(set(crashed))
    last = [t.state for t in optimizer.trials[-20:]]  # one may have been looked at that nobody had tried
    assert last.count("success") >= 19


def test_where_no_new_setting_reaches_a_floor_a_safe_one_is_repeated():
    trials = walk(crashbo.MinSafe(0.9)).trials
    assert all(t.p_safe >= 0.889 or not t.admissible for t in trials[1:])
    assert all(t.admissible for t in trials[-15:])
    assert sum(t.state == "crash" for t in trials) <= 1


def test_confirming_comes_before_starts_that_still_wait():
    here, there = {"x": 0.2, "y": 0.3}, {"x": 0.9, "y": 0.8}
    optimizer = crashbo.Optimizer(SPACE, start=[here, there])
    optimizer.tell(optimizer.ask(), cost=1.0)
    optimizer.confirm(2)
    asked = [optimizer.ask().params for _ in range(3)]
    assert asked == [here, here, there]
