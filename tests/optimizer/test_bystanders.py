"""What is measured need not be the cause of the crashes: then P(safe) goes by labels, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

from crashbo import Constraint, Optimizer, Unmeasured
from crashbo.optimizer.observed import observations
from crashbo.optimizer.view import View
from crashbo.search.calibration import Calibration
from crashbo.search.fitting import fit_surrogates

POINTS = [{"x": x, "y": y} for x in (0.1, 0.5, 0.9) for y in (0.2, 0.8)]
NAMES = ("load", "other")


def machine(x, y, cause):
    """As arguments of tell: it crashes in a disc, and `load` is what makes it crash, or a wave."""
    away = float(np.hypot(x - 0.7, y - 0.4))
    measured = {"load": -away if cause else float(np.sin(7.0 * x) + y), "other": float(np.cos(5.0 * y))}
    return {"crash": True} if away < 0.3 else {"cost": (x - 0.6) ** 2 + (y - 0.5) ** 2, "measured": measured}


def tell(optimizer, trial, *, cause=False, blame=None):
    """Tell a trial, or params, what the machine does."""
    said = machine(**(trial if isinstance(trial, dict) else trial.params), cause=cause)
    said["measured"] = {name: y for name, y in said.get("measured", {}).items() if name in optimizer.study.names}
    optimizer.tell(trial, **said, blame=blame if "crash" in said else None)


def told(n, *, cause=False, names=NAMES[:1], blame=None, **options):
    """A study of random trials."""
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, list(names), seed=0, **options)
    for x, y in np.random.default_rng(1).random((n, 2)).tolist():
        tell(optimizer, {"x": x, "y": y}, cause=cause, blame=blame)
    return optimizer


def go_on(optimizer, n):
    for _ in range(n):
        tell(optimizer, optimizer.ask())
    return optimizer


def is_bystander(optimizer):
    return optimizer.view.models.bystanders is not None


@pytest.mark.parametrize("names", [NAMES[:1], NAMES])
def test_a_bystander_is_found_out_and_the_labels_decide(names):
    optimizer = told(25, names=names)
    assert is_bystander(optimizer)
    alone = fit_surrogates(observations(optimizer.study, optimizer.trials).labels_only()).safety(Calibration())
    expected = np.exp(alone(np.array([[p["x"], p["y"]] for p in POINTS])))
    np.testing.assert_allclose(optimizer.p_safe(POINTS), expected, atol=1e-6)


@pytest.mark.parametrize("n", [12, 25, 40])
def test_a_cause_is_not_taken_for_a_bystander(n):
    assert not is_bystander(told(n, cause=True))


@pytest.mark.parametrize(
    "options",
    [{"blame": "load"}, {"risk": "paper"}, {"names": ("load", Unmeasured("heat"))}],
    ids=["blame", "paper", "other"],
)
def test_who_says_what_the_cause_is_or_names_another_is_believed(options):
    assert is_bystander(told(25))
    assert not is_bystander(told(25, **options))


def test_blame_that_is_told_later_is_believed_at_once():
    optimizer = told(40)
    optimizer.ask()
    assert is_bystander(optimizer)
    optimizer.tell({"x": 0.7, "y": 0.41}, crash=True, blame="load")
    assert not is_bystander(optimizer)


@pytest.mark.parametrize("names", [NAMES[:1], NAMES])
def test_all_that_one_may_ask_is_still_answered(names):
    optimizer = told(25, names=names)
    assert all(np.isfinite(optimizer.thresholds[name].value) for name in names)
    low, high = optimizer.thresholds["load"].interval
    assert low <= optimizer.thresholds["load"].value <= high
    found = optimizer.predict(POINTS)
    assert set(found.measured) == set(names)
    truth = np.array([np.sin(7.0 * p["x"]) + p["y"] for p in POINTS])
    assert np.median(np.abs(found.measured["load"][0] - truth)) < 0.3
    violated = np.array(list(optimizer.p_violated(POINTS).values()))
    assert violated.shape == (len(names), len(POINTS))
    assert np.all(violated.sum(axis=0) >= 1.0 - found.p_safe - 1e-9)
    crashes = [t.number for t in optimizer.trials if t.state == "crash"]
    assert set(optimizer.blames()) == set(crashes)


@pytest.mark.parametrize("n", [20, 40])
def test_a_saved_study_goes_on_with_the_same_proposals(n):
    optimizer = go_on(told(n), 3)
    assert is_bystander(optimizer)
    again = Optimizer.from_json(optimizer.to_json())
    for _ in range(3):
        a, b = optimizer.ask(), again.ask()
        assert (a.params, a.p_safe) == (b.params, b.p_safe)
        for study in (optimizer, again):
            tell(study, a)


def test_past_a_few_trials_the_verdict_is_held():
    optimizer = told(60)
    optimizer.ask()
    tell(optimizer, {"x": 0.2, "y": 0.9})
    optimizer.ask()
    memory = optimizer.state()["memory"]
    assert memory["fitted_at"] == memory["bystander"]["fitted_at"] == 60
    assert is_bystander(optimizer)
    fresh = View.of(optimizer.study, optimizer.trials)
    np.testing.assert_allclose(optimizer.p_safe(POINTS), fresh.p_safe(POINTS), atol=0.03)


def test_predictions_of_the_other_hypothesis_do_not_correct_this_ones():
    optimizer = go_on(told(20), 2)
    models, trials = optimizer.view.models, optimizer.trials
    assert models.since == 0  # it held from the first fit on
    kept = replace(models.memory.bystander, since=len(trials))
    later = replace(models, memory=replace(models.memory, bystander=kept))
    assert View(optimizer.study, tuple(trials), later).safety.calibration == Calibration()
    assert optimizer.view.safety.calibration != Calibration()


def test_a_risk_that_is_changed_to_the_papers_goes_back_to_what_is_measured():
    optimizer = told(40)
    optimizer.ask()
    assert not is_bystander(Optimizer.from_json(optimizer.to_json(), risk="paper"))


GIVEN = [Constraint("load", threshold=1.0), Constraint("load", threshold=(0.5, 1.5))]  # it crashes from -0.3 on


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("n", [25, 60])
def test_a_threshold_that_is_jumped_over_costs_nothing_of_what_is_measured(given, n):
    optimizer, without = told(n, cause=True, names=[given]), told(n, cause=True)
    assert optimizer.view.models.memory.bystander.lower is not None
    np.testing.assert_allclose(optimizer.p_safe(POINTS), without.p_safe(POINTS), atol=0.05)
    low, high = optimizer.thresholds["load"].interval
    assert low >= 0.5
    assert high <= 1.5
    assert all(0.0 <= b["load"] <= 1.0 for b in optimizer.blames().values())


@pytest.mark.parametrize("n", [25, 60])
def test_so_it_does_in_a_saved_study_and_between_fits(n):
    optimizer = told(n, cause=True, names=GIVEN[:1])
    before = optimizer.p_safe(POINTS)
    restored = Optimizer.from_json(optimizer.to_json())
    np.testing.assert_allclose(restored.p_safe(POINTS), before, rtol=1e-6)
    for study in (optimizer, restored):
        tell(study, study.ask(), cause=True)
    assert restored.trials == optimizer.trials
    np.testing.assert_allclose(restored.p_safe(POINTS), optimizer.p_safe(POINTS), rtol=1e-4)
    assert restored.view.models.memory.bystander.lower is not None


def test_a_given_threshold_that_explains_the_crashes_is_kept():
    optimizer = told(40, cause=True, names=[Constraint("load", threshold=-0.3)])
    assert not is_bystander(optimizer)


def test_a_given_threshold_before_which_it_crashes_is_a_finding():
    optimizer = told(40, cause=True, names=GIVEN[:1])
    (finding,) = optimizer.check()
    assert finding.kind == "cause"
    assert finding.words.startswith(
        "Crashes begin before load reaches its threshold as given: from about -0.2"
    )  # -0.3 is true
    assert "let it be learnt" in finding.remedy
