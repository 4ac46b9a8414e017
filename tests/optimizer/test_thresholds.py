"""What a study says of its thresholds: how sure it is, and when it is not."""

import json
import math
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest

import crashbo
from crashbo.optimizer.threshold import Threshold

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def told(crashes, load, trials=40, side="above", drift=0.0, constraints=None, seed=0):
    """A study of random points, with the load measured in the successes."""
    rng = np.random.default_rng(seed)
    constraints = constraints or [crashbo.Constraint("load", side=side)]
    optimizer = crashbo.Optimizer(SQUARE, constraints, units={"load": "A"}, seed=seed)
    for i in range(trials):
        x, y = rng.random(2)
        params = {"x": float(x), "y": float(y)}
        if crashes(x, y, drift * (i - trials + 1) / trials):
            optimizer.tell(params, crash=True)
        else:
            optimizer.tell(params, cost=-x, measured={"load": float(load(x, y) + 0.02 * rng.standard_normal())})
    return optimizer


def smooth(x, y):
    return 10.0 + 5.0 * x + 2.0 * y**2


def test_a_level_that_was_crossed_has_both_ends():
    level = told(lambda x, y, _: smooth(x, y) > 13.5, smooth).thresholds["load"]
    low, high = level.interval
    assert low <= 13.5 <= high < 14.5
    assert level.proven <= 13.5
    assert level.words.endswith(f"{high:.4g} A")


@pytest.mark.parametrize("side", ["above", "below"])
def test_crashes_that_the_load_does_not_explain_leave_its_threshold_open(side):
    sign = 1.0 if side == "above" else -1.0
    optimizer = told(lambda x, y, _: y > 0.6 + 0.3 * x, lambda x, y: sign * (10.0 + 5.0 * x), side=side)
    level = optimizer.thresholds["load"]
    low, high = level.interval
    assert (high if side == "above" else -low) == math.inf
    assert sign * (low if side == "above" else high) >= sign * level.proven - 0.5
    assert level.words.startswith("at least" if side == "above" else "at most")
    assert "crashes begin before anything" in level.words


def test_before_a_crash_nothing_bounds_a_threshold():
    level = told(lambda x, y, _: False, smooth, trials=12).thresholds["load"]
    assert level.interval[1] == math.inf
    assert level.words.endswith("nothing has crashed yet")


def test_an_interval_never_ends_below_a_success():
    """The jump of a machine that becomes unstable: 10 + 5x, but 120 beyond a line; it trips at 60."""
    optimizer = told(lambda x, y, _: x + 0.3 * y > 0.85, lambda x, y: 10.0 + 5.0 * x)
    level = optimizer.thresholds["load"]
    assert level.interval[0] <= 60.0 <= level.interval[1]
    assert level.value >= level.proven


def test_a_threshold_that_drifts_is_that_of_the_last_trial():
    def covers(drift, seed):
        optimizer = told(lambda x, y, by: smooth(x, y) > 13.5 + by, smooth, trials=80, drift=drift, seed=seed)
        low, high = optimizer.thresholds["load"].interval
        return low <= 13.5 <= high

    assert sum(covers(drift, seed) for drift in (-0.8, 0.8) for seed in range(3)) >= 5


def test_what_was_given_bounds_the_interval():
    pair = [crashbo.Constraint("load", threshold=(12.0, 20.0))]
    level = told(lambda x, y, _: y > 0.6 + 0.3 * x, lambda x, y: 10.0 + 5.0 * x, constraints=pair).thresholds["load"]
    assert 12.0 <= level.interval[0] <= level.interval[1] <= 20.0
    known = told(lambda x, y, _: smooth(x, y) > 13.5, smooth, constraints=[crashbo.Constraint("load", 13.5)])
    assert known.thresholds["load"].interval == (13.5, 13.5)
    assert known.thresholds["load"].words == "13.5 A, as given"


def test_a_study_without_trials_knows_nothing():
    level = crashbo.Optimizer(SQUARE, ["load"]).thresholds["load"]
    assert (level.value, level.interval, level.proven) == (None, None, None)
    assert level.words == "nothing is known yet"


@pytest.mark.parametrize("threshold", [60.0, (40.0, 80.0)])
def test_the_true_threshold_does_not_hurt_where_the_load_jumps_over_it(threshold):
    def crashes(given):
        constraint = crashbo.Constraint("load", threshold=given)
        optimizer = crashbo.Optimizer(SQUARE, [constraint], seed=0)
        for _ in range(30):
            trial = optimizer.ask()
            x, y = trial.params["x"], trial.params["y"]
            if x + 0.3 * y > 0.85:
                optimizer.tell(trial, crash=True)
            else:
                optimizer.tell(trial, cost=-(x + y), measured={"load": 10.0 + 5.0 * x})
        return sum(t.state == "crash" for t in optimizer.trials)

    assert crashes(threshold) <= crashes(None) + 4


def test_a_recommendation_says_whether_it_is_as_safe_as_was_asked():
    optimizer = told(lambda x, y, _: y > 0.5 * x + 0.3, smooth, trials=10)
    asked = [optimizer.recommend(delta) for delta in (0.3, 1e-6)]
    assert asked[0].admissible
    assert asked[1].admissible == (asked[1].p_safe >= 1.0 - 1.1e-6)
    assert not asked[1].admissible


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e160, 1e300])
def test_costs_and_readings_of_any_finite_size_are_taken(size):
    optimizer = crashbo.Optimizer(SQUARE, ["load"], seed=0)
    for _ in range(10):
        trial = optimizer.ask()
        x, y = trial.params["x"], trial.params["y"]
        if x + y > 1.4:
            optimizer.tell(trial, crash=True)
        else:
            optimizer.tell(trial, cost=-size * x, measured={"load": size * y})
    assert optimizer.best.cost == min(t.cost for t in optimizer.trials if t.cost is not None)
    assert optimizer.thresholds["load"].interval is not None


def test_a_range_of_one_value_is_a_fixed_parameter():
    space = {
        "x": (0.0, 1.0),
        "n": crashbo.Int(3, 3),
        "z": crashbo.Float(1.0, 1.0),
        "w": crashbo.Float(2.0, 2.0, log=True),
    }
    optimizer = crashbo.Optimizer(space, seed=0)
    for _ in range(12):
        trial = optimizer.ask()
        assert (trial.params["n"], trial.params["z"], trial.params["w"]) == (3, 1.0, 2.0)
        optimizer.tell(trial, cost=(trial.params["x"] - 0.3) ** 2)
    assert optimizer.best.cost < 1e-2
    again = crashbo.Optimizer.from_json(optimizer.to_json())
    assert again.ask().params == optimizer.ask().params


def test_a_page_s_levels_are_json_where_an_end_is_open():
    from crashbo.app.overview import Level, _plain

    level = Level(3, 2, 13.0, _plain((12.0, math.inf)), True, 12.5, "at least 12")
    assert json.loads(json.dumps(asdict(level), allow_nan=False))["interval"] == [12.0, None]


@pytest.mark.parametrize(("deviations", "is_open"), [(0.5, False), (2.5, False), (3.5, True)])
def test_a_success_beyond_the_interval_opens_it_only_where_noise_cannot_explain_it(deviations, is_open):
    optimizer = told(lambda x, y, _: smooth(x, y) > 13.5, smooth)
    view = optimizer.view
    highest = max(t.measured["load"] for t in optimizer.trials if t.state == "success")
    found = highest - deviations * float(view.models.crash.hypers[0].noise_std)
    causes = SimpleNamespace(interval=lambda _: (13.0, found), silent=[0.0])
    seen = SimpleNamespace(
        study=view.study, seen=view.seen, models=view.models, risen=0.0, risen_std=0.0, causes=causes
    )
    level = Threshold(seen, optimizer.view.study.constraints[0], 0)
    assert level.interval[1] == (math.inf if is_open else max(found, level.proven, level.value))


@pytest.mark.parametrize("side", ["above", "below"])
def test_a_pair_that_a_success_lies_beyond_still_has_its_ends_in_order(side):
    sign = 1.0 if side == "above" else -1.0
    given = crashbo.Constraint("load", side=side, threshold=tuple(sorted((sign * 10.5, sign * 12.0))))
    level = told(lambda x, y, _: smooth(x, y) > 13.5, lambda x, y: sign * smooth(x, y), constraints=[given]).thresholds[
        "load"
    ]
    low, high = level.interval
    assert low <= level.value <= high
    assert {low, high} <= {sign * 10.5, sign * 12.0}


@pytest.mark.parametrize("reading", [smooth, lambda x, y: 5.0])
@pytest.mark.parametrize("trials", [1, 8])
def test_what_nothing_bounds_is_at_least_what_was_proven(reading, trials):
    level = told(lambda x, y, _: False, reading, trials=trials).thresholds["load"]
    assert level.interval == (level.proven, math.inf)
