"""Several trials at once: they spread, keep to the study's risk, and cost little more than one."""

import numpy as np
import pytest

import crashbo
from crashbo.models import latent
from crashbo.search import candidates

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)}


def outcome(params):
    x, y, z = params.values()
    load = x + 0.5 * y
    return (
        {"crash": True}
        if load > 1.0
        else {"cost": (x - 0.8) ** 2 + (y - 0.3) ** 2 + 0.2 * z, "measured": {"load": load}}
    )


def told(risk=None, trials=24, seed=0):
    optimizer = crashbo.Optimizer(SPACE, ["load"], risk=risk, seed=seed)
    rng = np.random.default_rng(seed)
    for x in rng.random((trials, 3)):
        params = dict(zip(SPACE, map(float, x), strict=True))
        optimizer.tell(params, **outcome(params))
    return optimizer


def points(trials):
    return np.array([list(trial.params.values()) for trial in trials])


def nearest(X):
    gaps = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    return gaps.min(axis=1)


def test_the_first_of_a_batch_is_what_a_single_ask_gives():
    assert told().ask_batch(5)[0] == told().ask()


def test_a_batch_spreads():
    gaps = nearest(points(told().ask_batch(32)))
    assert gaps.min() > 0.01
    assert np.median(gaps) > 0.05


def test_a_batch_that_comes_in_parts_is_the_same_batch():
    parts = list(told().ask_stream(20))
    assert [len(part) for part in parts] == [1, 8, 8, 3]
    assert [trial for part in parts for trial in part] == told().ask_batch(20)


def test_what_a_batch_says_of_its_trials_is_what_the_study_says():
    optimizer = told()
    batch = optimizer.ask_batch(12)
    assert [trial.number for trial in batch] == list(range(24, 36))
    assert {trial.origin for trial in batch} == {"search"}
    np.testing.assert_allclose(
        [trial.p_safe for trial in batch], optimizer.p_safe([trial.params for trial in batch]), atol=1e-6
    )


def test_a_batch_is_screened_and_conditioned_rarely(monkeypatch):
    optimizer, screened, conditioned = told(trials=40), [], []
    optimizer.tell(optimizer.ask(), cost=0.5, measured={"load": 0.5})
    screen, condition = candidates.screen, latent.condition
    monkeypatch.setattr(candidates, "screen", lambda *args, **more: screened.append(1) or screen(*args, **more))
    monkeypatch.setattr(latent, "condition", lambda *args, **more: conditioned.append(1) or condition(*args, **more))
    assert len(optimizer.ask_batch(32)) == 32
    assert len(screened) <= 6
    assert len(conditioned) < 2 * 32


@pytest.mark.parametrize("risk", [crashbo.MinSafe(0.9), crashbo.MinSafe(0.99)])
def test_a_floor_holds_for_all_of_a_batch(risk):
    batch = told(risk).ask_batch(20)
    assert all(trial.p_safe >= risk.p - 0.011 for trial in batch if trial.admissible)
    assert sum(trial.admissible for trial in batch) >= 15


def test_a_batch_risks_no_more_crashes_than_a_budget_has_left():
    optimizer = told(crashbo.Budget(12, trials=80))
    crashes = sum(trial.state == "crash" for trial in optimizer.trials)
    batch = optimizer.ask_batch(16)
    risky = [trial for trial in batch if trial.p_safe < 0.9]
    assert len(risky) <= max(12 - crashes, 0)


def test_a_batch_of_whole_numbers_and_options_has_no_doubles_while_there_are_others():
    optimizer = crashbo.Optimizer({"n": crashbo.Int(0, 40), "mode": crashbo.Choice(["a", "b"])}, seed=0)
    for trial in optimizer.ask_batch(12):
        optimizer.tell(trial, cost=float((trial.params["n"] - 20) ** 2))
    batch = [tuple(trial.params.values()) for trial in optimizer.ask_batch(16)]
    assert len(set(batch)) == 16


def test_a_batch_of_more_than_a_small_space_has_is_given_all_the_same():
    optimizer = crashbo.Optimizer({"n": crashbo.Int(0, 4)}, seed=0)
    for trial in optimizer.ask_batch(3):
        optimizer.tell(trial, cost=float(trial.params["n"]))
    assert len(optimizer.ask_batch(9)) == 9


@pytest.mark.parametrize("crashes", [True, False])
def test_a_batch_without_any_success_or_any_crash_is_no_trouble(crashes):
    optimizer = crashbo.Optimizer(SPACE, seed=0)
    for trial in optimizer.ask_batch(8):
        optimizer.tell(trial, **({"crash": True} if crashes else {"cost": trial.params["x"]}))
    assert nearest(points(optimizer.ask_batch(10))).min() > 1e-6


def test_batches_find_what_a_worker_alone_finds():
    optimizer = crashbo.Optimizer(SPACE, ["load"], seed=0)
    for _ in range(4):
        for trial in optimizer.ask_batch(16):
            optimizer.tell(trial, **outcome(trial.params))
    assert optimizer.best.cost < 0.01
