"""One P(safe) and one threshold: the same numbers whatever a trial's origin, and through every door."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from machines import SPACE, press, run, telling
from scipy.special import expit, logit

import crashbo
from crashbo.optimizer import view
from crashbo.optimizer.view import View
from crashbo.strategies import base

HERE, THERE, EDGE = {"x": 0.3, "y": 0.3}, {"x": 0.9, "y": 0.8}, {"x": 0.6, "y": 0.55}
POINTS = [HERE, THERE, EDGE]


def searched(trials=12, **kwargs):
    """A study whose search has proposed most of its trials."""
    optimizer = crashbo.Optimizer(SPACE, ["load"], **kwargs)
    run(optimizer, trials)
    return optimizer


@pytest.mark.parametrize("risk", [None, "paper", crashbo.MinSafe(0.8), crashbo.Budget(9, 30)])
@pytest.mark.parametrize("posterior", ["marginal", "map"])
def test_a_proposal_has_the_p_safe_that_the_study_gives_its_params(risk, posterior):
    optimizer = searched(risk=risk, posterior=posterior)
    for _ in range(2):  # the second while the first is under way
        trial = optimizer.ask()
        assert trial.origin == "search"
        assert optimizer.p_safe(trial.params) == pytest.approx(trial.p_safe, abs=1e-12)


def test_a_batch_has_the_p_safe_that_the_study_gives_it():
    optimizer = searched()
    batch = optimizer.ask_batch(3)
    assert optimizer.p_safe([t.params for t in batch]) == pytest.approx([t.p_safe for t in batch], abs=1e-12)


def test_a_proposal_is_corrected_and_p_model_is_what_it_was_before():
    optimizer = searched()
    trial = optimizer.ask()
    safety, x = optimizer.view.safety, optimizer.space.encode(trial.params)[None]
    slope, shift = safety.calibration.slope, safety.calibration.shift
    assert (slope, shift) != (1.0, 0.0)
    assert trial.p_model == pytest.approx(np.exp(safety.wary(x)[0]))
    assert trial.p_safe == pytest.approx(expit(slope * logit(trial.p_model) + shift))


@pytest.mark.parametrize("origin", ["told", "confirm"])
def test_other_trials_have_the_same_p_safe(origin):
    optimizer = searched()
    expected = optimizer.p_safe(EDGE)
    if origin == "confirm":
        optimizer.confirm(1, EDGE)
    trial = optimizer.ask() if origin == "confirm" else optimizer.tell(EDGE, **telling(EDGE))
    assert trial.origin == origin
    assert trial.p_safe == pytest.approx(expected, abs=1e-12)
    assert trial.p_model is None


@pytest.mark.parametrize("origin", ["start", "design"])
def test_trials_that_no_search_chose_have_it_too_once_there_are_models(origin):
    optimizer = searched(8)
    text = crashbo.optimizer.saving.loads(optimizer.to_json())
    if origin == "start":
        text["state"]["queue"] = [["start", EDGE, None]]
    else:
        text["state"]["design"]["size"] = 99
    resumed = crashbo.Optimizer.from_json(crashbo.optimizer.saving.dumps(text))
    trial = resumed.ask()
    assert trial.origin == origin
    assert resumed.p_safe(trial.params) == pytest.approx(trial.p_safe, abs=1e-12)


@pytest.mark.parametrize("strategy", ["random", "sobol", "ei-ac", "pibu", "eic-classifier"])
def test_a_strategy_with_other_models_reports_no_p_safe_rather_than_another(strategy):
    optimizer = searched(6, strategy=strategy)
    trial = optimizer.ask()
    assert (trial.p_safe, trial.p_model) == (None, None)
    assert 0.0 <= optimizer.p_safe(trial.params) <= 1.0


def test_every_door_of_a_study_has_the_same_number():
    optimizer = searched()
    expected = optimizer.p_safe(POINTS)
    safety = optimizer.view.safety
    X = np.array([optimizer.space.encode(p) for p in POINTS])
    assert safety.calibration.shift != 0.0
    np.testing.assert_array_equal(np.exp(safety.corrected(X)), expected)
    np.testing.assert_array_equal(optimizer.view.p_safe(POINTS), expected)
    np.testing.assert_array_equal(optimizer.predict(POINTS).p_safe, expected)
    np.testing.assert_allclose(1.0 - optimizer.p_violated(POINTS)["load"], expected, atol=1e-9)
    for again in (crashbo.Optimizer.from_json(optimizer.to_json()), pickle.loads(pickle.dumps(optimizer))):
        np.testing.assert_allclose(again.p_safe(POINTS), expected, atol=1e-9)
    np.testing.assert_allclose(View.of(optimizer.study, optimizer.trials).p_safe(POINTS), expected, atol=0.02)
    for delta in (0.05, 0.3):
        found = optimizer.recommend(delta)
        assert found.p_safe == pytest.approx(optimizer.p_safe(found.params), abs=1e-6)
        assert found.p_safe >= 1.0 - delta - 1e-3


def test_the_result_of_minimize_has_the_same_number():
    result = crashbo.minimize(press, SPACE, constraints=["load"], trials=10, progress=False)
    np.testing.assert_array_equal(result.p_safe(POINTS), result.optimizer.p_safe(POINTS))
    assert result.thresholds["load"].value == result.optimizer.thresholds["load"].value


def test_crashes_of_proposals_that_were_thought_safe_lower_it_wherever_the_model_thinks_so():
    optimizer = searched()
    models = optimizer.view.models

    def faring(state):
        """The same models, had every proposal fared so at a P(safe) of 0.9."""
        trials = [replace(t, state=state, p_model=0.9) for t in optimizer.trials if t.origin == "search"]
        return View(optimizer.study, tuple(trials), models)

    low, high = faring("crash"), faring("success")
    X = np.random.default_rng(1).random((200, 2))
    X = X[np.abs(np.exp(low.safety.wary(X)) - 0.75) < 0.2]
    points = [optimizer.space.decode(x) for x in X]
    assert len(points) > 3
    assert np.all(high.p_safe(points) - low.p_safe(points) > 0.2)
    assert low.gain_left() < high.gain_left()
    assert low.recommend(0.05).cost > high.recommend(0.05).cost


@pytest.mark.parametrize("crash", [False, True])
def test_the_threshold_is_the_one_that_the_search_goes_by_and_lies_in_its_interval(crash):
    optimizer = crashbo.Optimizer(SPACE, [crashbo.Constraint("load", side="above")])
    for x, y in np.random.default_rng(0).random((14, 2)):
        params = {"x": x, "y": y} if crash else {"x": 0.5 * x, "y": 0.5 * y}
        optimizer.tell(params, **telling(params))
    assert any(t.state == "crash" for t in optimizer.trials) == crash
    view = optimizer.view
    threshold = view.thresholds["load"]
    assert threshold.value == view.models.ensemble.levels(0)[0]
    low, high = threshold.interval
    assert low < threshold.value < high


def test_a_table_of_trials_costs_one_fit(monkeypatch):
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, ["load"], seed=0)
    for _ in range(6):
        trial = optimizer.ask()
        optimizer.tell(trial, cost=trial.params["x"], measured={"load": trial.params["x"]})
    fits, fit = [], view.fit_surrogates
    for module in (view, base):
        monkeypatch.setattr(module, "fit_surrogates", lambda *args, **more: fits.append(1) or fit(*args, **more))
    rows = [optimizer.tell({"x": x}, cost=x, measured={"load": x}) for x in np.linspace(0.1, 0.9, 20).tolist()]
    assert len(fits) == 1
    assert all(0.0 < row.p_safe <= 1.0 for row in rows)
    optimizer.ask()
    assert len(fits) == 2
