"""x_best (eq. 3): the least expected cost among points that are safe enough."""

import numpy as np
import pytest

import crashbo
from crashbo.search.recommend import best_point

THRESHOLD = 0.6


def ramp(n=24, seed=0):
    """The lower x the dearer, and a crash above 0.6: the best safe point lies at the boundary."""
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, ["g"])
    rng = np.random.default_rng(seed)
    for x, y in rng.random((n, 2)):
        g = x + 0.01 * rng.standard_normal()
        if x > THRESHOLD:
            optimizer.tell({"x": x, "y": y}, crash=True)
        else:
            optimizer.tell({"x": x, "y": y}, cost=-x + 0.1 * (y - 0.5) ** 2, measured={"g": g})
    return optimizer


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_what_is_recommended_is_as_safe_as_was_asked_for(delta):
    optimizer = ramp()
    found = optimizer.recommend(delta)
    assert found.p_safe >= 1.0 - delta - 1e-3
    assert optimizer.p_safe(found.params) == pytest.approx(found.p_safe, abs=1e-6)


def test_the_safer_the_dearer():
    optimizer = ramp()
    costs = [optimizer.recommend(delta).cost for delta in (0.5, 0.1, 0.01, 0.001)]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_what_is_recommended_is_near_the_best_safe_point():
    found = ramp(40).recommend(0.1)
    assert 0.5 < found.params["x"] <= THRESHOLD + 0.02
    assert found.cost == pytest.approx(-found.params["x"] + 0.1 * (found.params["y"] - 0.5) ** 2, abs=0.02)


def test_with_any_risk_allowed_the_least_expected_cost_is_recommended():
    optimizer = ramp()
    everything = [{"x": x, "y": y} for x in np.linspace(0, 1, 21) for y in np.linspace(0, 1, 5)]
    models = optimizer.view.models
    mean, _ = models.cost.predict(0, np.array([optimizer.space.encode(p) for p in everything]))
    _, cost, _ = best_point(models, optimizer.view.safety, optimizer.space, 1.0, np.random.default_rng(0))
    assert cost <= mean.min() + 1e-3


def test_where_nothing_is_safe_enough_the_safest_is_recommended():
    optimizer = ramp(6)
    found = optimizer.recommend(1e-9)
    tried = max(optimizer.p_safe(t.params) for t in optimizer.trials)
    assert found.p_safe < 1.0 - 1e-9
    assert found.p_safe >= tried - 0.02


def test_a_recommendation_is_the_same_twice_and_changes_nothing():
    optimizer = ramp(8)
    before = optimizer.to_json()
    assert optimizer.recommend() == optimizer.recommend()
    assert optimizer.to_json() == before


def test_only_settings_of_the_space_are_recommended():
    optimizer = crashbo.Optimizer({"n": crashbo.Int(1, 9), "mode": crashbo.Choice(["a", "b"])})
    for n in (1, 3, 5, 7, 9):
        for mode in "ab":
            optimizer.tell({"n": n, "mode": mode}, cost=abs(n - 6) + (mode == "a"))
    found = optimizer.recommend()
    assert found.params["mode"] == "b"
    assert found.params["n"] in (5, 6, 7)
    assert type(found.params["n"]) is int
