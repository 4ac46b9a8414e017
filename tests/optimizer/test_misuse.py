"""What is easily written wrong is refused with a sentence, and NumPy's numbers are numbers."""

import re

import numpy as np
import pytest

import crashbo

SPACE = {"x": (0.0, 1.0)}


def square(params):
    return params["x"] ** 2


def test_constraints_with_thresholds_in_a_dict_are_refused_with_what_to_write():
    with pytest.raises(ValueError, match=re.escape("written Constraint('c', threshold=5.0)")):
        crashbo.Optimizer(SPACE, {"c": 5.0})


@pytest.mark.parametrize("stop", [[crashbo.stopping.NoGain], crashbo.stopping.NoGain(), 3, ["later"]])
def test_what_is_no_rule_does_not_stop_a_study(stop):
    with pytest.raises(ValueError, match="stop must be a list of rules; got"):
        crashbo.minimize(square, SPACE, trials=2, stop=stop)


def test_an_experiment_that_was_called_already_is_refused():
    with pytest.raises(ValueError, match=re.escape("experiment must be a function of params; got 0.25. Pass it")):
        crashbo.minimize(square({"x": 0.5}), SPACE, trials=2)


def test_a_trial_of_another_study_is_refused():
    one, other = crashbo.Optimizer(SPACE, seed=0), crashbo.Optimizer(SPACE, seed=1)
    trial = one.ask()
    other.ask()
    with pytest.raises(ValueError, match="trial 0 must have the params that it was asked with"):
        other.tell(trial, cost=1.0)
    assert one.tell(trial, cost=1.0).state == "success"


def test_params_that_were_changed_in_place_are_refused_and_change_nothing():
    optimizer = crashbo.Optimizer(SPACE)
    trial = optimizer.ask()
    asked = trial.params["x"]
    trial.params["x"] = 0.5
    with pytest.raises(ValueError, match="must have the params that it was asked with"):
        optimizer.tell(trial, cost=1.0)
    assert optimizer.trials[0].params == {"x": asked}


@pytest.mark.parametrize("start", [{"x": 0.5}, "x"])
def test_a_start_is_a_list(start):
    with pytest.raises(ValueError, match="start must be a list of params; got"):
        crashbo.Optimizer(SPACE, start=start)


def test_numpys_integers_count():
    result = crashbo.minimize(square, SPACE, trials=np.int64(3), n_parallel=np.int32(1), seed=np.int64(1))
    assert len(result.trials) == 3
    optimizer = crashbo.Optimizer(SPACE)
    assert len(optimizer.ask_batch(np.int64(2))) == 2
    assert optimizer.tell(np.int64(1), cost=np.float32(1.0)).number == 1
    assert optimizer.confirm(np.int64(3)).n == 3


@pytest.mark.parametrize("n", [-1, 1.5, True, "3"])
def test_a_batch_has_a_number_of_trials(n):
    with pytest.raises(ValueError, match="n must be a whole number, at least 0; got"):
        crashbo.Optimizer(SPACE).ask_batch(n)


def test_a_study_says_what_it_is():
    optimizer = crashbo.Optimizer({"knee": (0.0, 1.0), "hip": (0.0, 1.0)})
    assert repr(optimizer) == "<Optimizer of knee, hip to minimize cost: no trials>"
    optimizer.tell({"knee": 0.5, "hip": 0.25}, cost=1.5)
    optimizer.tell({"knee": 1.0, "hip": 1.0}, crash=True)
    told = "1 success, 1 crash; best 1.5 at {'knee': 0.5, 'hip': 0.25}"
    assert repr(optimizer) == f"<Optimizer of knee, hip to minimize cost: {told}>"
    compared = crashbo.Optimizer(SPACE, cost="compared")
    compared.tell({"x": 0.5}, success=True)
    assert repr(compared) == "<Optimizer of x by comparisons: 1 success>"
    several = crashbo.Optimizer(SPACE, ["heat"], objectives={"time": "minimize", "yield": "maximize"})
    several.tell({"x": 0.5}, cost={"time": 1.0, "yield": 2.0})
    assert repr(several) == "<Optimizer of x to minimize time and maximize yield; crashes by heat: 1 success>"
