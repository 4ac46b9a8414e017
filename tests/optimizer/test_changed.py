"""A study that goes on with other bounds, a parameter frozen, or a constraint added."""

import numpy as np
import pytest
from machines import SPACE, run

import crashbo


def study(trials=8, **kwargs):
    optimizer = crashbo.Optimizer(SPACE, ["load"], **kwargs)
    run(optimizer, trials)
    return optimizer


def test_narrower_bounds_are_kept_and_old_trials_still_inform():
    optimizer = study(10)
    narrow = optimizer.changed(space={"x": (0.4, 0.6), "y": (0.0, 0.5)})
    assert narrow.trials == optimizer.trials
    for _ in range(4):
        trial = narrow.ask()
        assert 0.4 <= trial.params["x"] <= 0.6
        assert 0.0 <= trial.params["y"] <= 0.5
        narrow.tell(trial, cost=1.0, measured={"load": 1.0})
    assert [t.number for t in narrow.trials] == list(range(14))
    assert len(optimizer.trials) == 10


def test_p_safe_hardly_changes_with_the_bounds():
    optimizer = study(14)
    wide = optimizer.changed(space={"x": (0.0, 1.2), "y": (-0.2, 1.0)})
    points = [{"x": 0.3, "y": 0.3}, {"x": 0.95, "y": 0.95}]
    np.testing.assert_allclose(wide.p_safe(points), optimizer.p_safe(points), atol=0.15)


def test_wider_bounds_open_new_settings():
    optimizer = crashbo.Optimizer({"x": (0.0, 0.3)}, seed=0)
    for _ in range(6):
        trial = optimizer.ask()
        optimizer.tell(trial, cost=-trial.params["x"])
    wide = optimizer.changed(space={"x": (0.0, 1.0)})
    reached = []
    for _ in range(4):
        trial = wide.ask()
        reached.append(trial.params["x"])
        wide.tell(trial, cost=-trial.params["x"])
    assert max(reached) > 0.4


def test_a_fixed_parameter_stays_where_it_was_put():
    optimizer = study().changed(fixed={"x": 0.25})
    assert all(params["x"] == 0.25 for params in run(optimizer, 3))
    both = optimizer.changed(fixed={"y": 0.5})
    assert run(both, 1) == [{"x": 0.25, "y": 0.5}]


def test_a_fixed_parameter_stays_fixed_when_bounds_change():
    optimizer = study(5).changed(fixed={"x": 0.25}).changed(space={"x": (0.0, 0.5), "y": (0.0, 1.0)})
    assert optimizer.ask().params["x"] == 0.25


def test_a_fixed_parameter_survives_saving():
    optimizer = study().changed(fixed={"x": 0.25})
    again = crashbo.Optimizer.from_json(optimizer.to_json())
    assert again.ask().params == pytest.approx(optimizer.ask().params, abs=1e-6)


def test_an_added_constraint_is_learnt_from_then_on():
    optimizer = study().changed(constraints=["load", "heat"])
    assert optimizer.thresholds["heat"].value is None
    for _ in range(3):
        trial = optimizer.ask()
        optimizer.tell(trial, cost=1.0, measured={"load": 0.5, "heat": 60.0 + trial.params["x"]})
    assert optimizer.thresholds["heat"].value is not None
    assert set(optimizer.thresholds) == {"load", "heat"}
    crash = optimizer.tell({"x": 1.0, "y": 1.0}, crash=True)
    assert set(optimizer.blame(crash)) == {"load", "heat"}


def test_a_constraint_that_was_blamed_may_be_dropped():
    optimizer = crashbo.Optimizer(SPACE, ["load", "heat"])
    for i in range(5):
        trial = optimizer.ask()
        optimizer.tell(
            trial, **({"crash": True, "blame": "heat"} if i == 1 else {"cost": 1.0, "measured": {"load": i}})
        )
    assert set(optimizer.changed(constraints=["load"]).thresholds) == {"load"}


@pytest.mark.parametrize("change", [{"fixed": {"y": 0.2}}, {"space": {"x": (0.8, 1.0), "y": (0.0, 1.0)}}])
def test_a_spent_budget_repeats_only_what_lies_in_the_changed_space(change):
    optimizer = crashbo.Optimizer(SPACE, ["load"], seed=0, risk=crashbo.Budget(1, 20))
    optimizer.tell({"x": 0.1, "y": 0.5}, cost=1.0, measured={"load": 0.6})
    optimizer.tell({"x": 0.9, "y": 0.9}, crash=True)
    changed = optimizer.changed(**change)
    trial = changed.ask()
    assert changed.space.accepts(trial.params)
    assert not trial.admissible
    changed.tell(trial, cost=2.0, measured={"load": 0.1})
    assert changed.ask().params == trial.params


@pytest.mark.parametrize("change", [{"fixed": {"y": 0.2}}, {"space": {"x": (0.5, 1.0), "y": (0.0, 1.0)}}])
def test_what_is_confirmed_is_the_best_that_lies_in_the_changed_space(change):
    optimizer = crashbo.Optimizer(SPACE, ["load"])
    optimizer.tell({"x": 0.1, "y": 0.5}, cost=1.0)
    changed = optimizer.changed(**change)
    with pytest.raises(ValueError, match="there is none in the space"):
        changed.confirm()
    changed.tell({"x": 0.6, "y": 0.2}, cost=2.0)
    assert changed.confirm(2).params == {"x": 0.6, "y": 0.2}


def test_a_changed_risk_holds_from_then_on():
    optimizer = study(8).changed(risk=crashbo.MinSafe(0.95))
    trial = optimizer.ask()
    assert trial.p_safe >= 0.93 or not trial.admissible


def test_a_study_may_go_on_at_the_most_probable_hyperparameters():
    optimizer = study(8)
    sure = optimizer.changed(posterior="map")
    assert (optimizer.posterior, sure.posterior, sure.changed().posterior) == ("marginal", "map", "map")
    points = [{"x": x, "y": 0.9} for x in (0.1, 0.5, 0.9)]
    assert np.abs(sure.p_safe(points) - optimizer.p_safe(points)).max() > 1e-4
    with pytest.raises(ValueError, match="posterior must be 'marginal' or 'map'; got 'mode'"):
        optimizer.changed(posterior="mode")


def test_known_noise_survives_saving_and_a_change_of_constraints():
    optimizer = crashbo.Optimizer(SPACE, ["load", "heat"], noise={"cost": 0.1, "load": 0.05})
    for study in (optimizer, crashbo.Optimizer.from_json(optimizer.to_json())):
        changed = study.changed(constraints=["load"])
        assert [c.noise for c in changed.constraints] == [0.05]
        assert changed.study.noise["cost"] == 0.1


def test_the_study_that_was_changed_goes_on_as_before():
    changed, left = study(), study()
    other = changed.changed(fixed={"x": 0.9})
    run(other, 2)
    assert changed.ask().params == left.ask().params


def test_start_points_outside_new_bounds_are_not_proposed():
    optimizer = crashbo.Optimizer(SPACE, start=[{"x": 0.9, "y": 0.1}])
    assert optimizer.changed(space={"x": (0.0, 0.5), "y": (0.0, 1.0)}).ask().params["x"] <= 0.5


def test_an_option_may_be_added_at_any_time():
    space = {"mode": crashbo.Choice(["a", "b"]), "x": (0.0, 1.0)}
    wider = {"mode": crashbo.Choice(["a", "b", "c"]), "x": (0.0, 1.0)}
    for trials in (1, 6):
        optimizer = crashbo.Optimizer(space)
        for _ in range(trials):
            optimizer.tell(optimizer.ask(), cost=1.0)
        assert optimizer.changed(space=wider).ask().params["mode"] in "abc"


def test_a_space_with_other_names_is_refused():
    with pytest.raises(ValueError, match=r"^space must keep the parameters \['x', 'y'\]; got .+\. Fix one with"):
        study(1).changed(space={"x": (0.0, 1.0), "z": (0.0, 1.0)})
    with pytest.raises(ValueError, match=r"^x must be a number from 0 to 1; got 2\. "):
        study(1).changed(fixed={"x": 2})
