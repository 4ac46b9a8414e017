"""Past a few trials hyperparameters are learnt when trials have grown by a share, or one was not as expected."""

import numpy as np
import pytest

import crashbo
from crashbo import Optimizer


def _study(n: int) -> Optimizer:
    rng = np.random.default_rng(3)
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, ["load"], seed=0)
    for _ in range(n):
        _tell(optimizer, dict(zip("xy", rng.random(2).tolist(), strict=True)))
    return optimizer


def _tell(optimizer: Optimizer, trial: crashbo.Trial | dict[str, float]) -> None:
    params = trial.params if isinstance(trial, crashbo.Trial) else trial
    x, y = params["x"], params["y"]
    load = x + 0.5 * y
    if load > 1.1:
        optimizer.tell(trial, crash=True)
    else:
        optimizer.tell(trial, cost=(x - 0.6) ** 2 + np.sin(6.0 * y), measured={"load": load})


def _learnt_at(optimizer: Optimizer) -> int:
    optimizer.ask()
    memory = optimizer.state()["memory"]
    return int(memory["fitted_at"])


def test_few_trials_are_learnt_from_each_time() -> None:
    optimizer = _study(20)
    for n in (20, 21):
        assert _learnt_at(optimizer) == n
        _tell(optimizer, {"x": 0.3, "y": 0.01 * n})


def test_an_expected_trial_is_conditioned_on_and_a_surprise_is_learnt_from() -> None:
    optimizer = _study(60)
    assert _learnt_at(optimizer) == 60
    _tell(optimizer, {"x": 0.41, "y": 0.37})
    assert _learnt_at(optimizer) == 60
    before = optimizer.p_safe({"x": 0.1, "y": 0.1})
    optimizer.tell({"x": 0.1, "y": 0.1}, crash=True)
    assert _learnt_at(optimizer) == 62
    assert optimizer.p_safe({"x": 0.1, "y": 0.1}) < before
    optimizer = _study(60)
    optimizer.ask()
    optimizer.tell({"x": 0.41, "y": 0.37}, cost=5.0, measured={"load": 0.595})
    assert _learnt_at(optimizer) == 60  # not at every one
    _tell(optimizer, {"x": 0.3, "y": 0.4})
    assert _learnt_at(optimizer) == 62


def test_growth_is_learnt_from() -> None:
    optimizer = _study(40)
    assert _learnt_at(optimizer) == 40
    for i in range(3):
        _tell(optimizer, {"x": 0.3 + 0.1 * i, "y": 0.4})
    assert _learnt_at(optimizer) == 43


def test_a_study_that_holds_goes_on_the_same_when_it_is_resumed() -> None:
    optimizer = _study(60)
    trial = optimizer.ask()
    _tell(optimizer, trial)
    resumed = Optimizer.from_json(optimizer.to_json())
    for _ in range(3):
        here, there = optimizer.ask(), resumed.ask()
        assert there.params == pytest.approx(here.params, abs=1e-6)
        assert there.p_safe == pytest.approx(here.p_safe, abs=1e-6)
        _tell(optimizer, here)
        _tell(resumed, there)


def test_a_memory_without_views_is_read() -> None:
    optimizer = _study(60)
    optimizer.ask()
    state = optimizer.state()
    del state["memory"]["views"]
    resumed = Optimizer.restored(optimizer.study, optimizer.trials, state)
    assert 0.0 <= resumed.p_safe({"x": 0.5, "y": 0.5}) <= 1.0


def test_a_corrected_reading_is_learnt_from_at_once():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, ["load"], seed=1)
    for x, y in np.random.default_rng(3).random((60, 2)):
        told = {"crash": True} if x + y > 1.3 else {"cost": -x, "measured": {"load": x + y}}
        optimizer.tell({"x": x, "y": y}, **told)
    right = next(t for t in optimizer.trials if t.state == "success")
    optimizer.tell(right.number, cost=right.cost, measured={"load": 1e4}, replace=True)
    optimizer.tell(optimizer.ask(), void=True)
    assert optimizer.thresholds["load"].value > 10.0
    optimizer.tell(right.number, cost=right.cost, measured=right.measured, replace=True)
    optimizer.ask()
    assert optimizer.thresholds["load"].value == pytest.approx(1.3, abs=0.1)
