"""Thresholds that move with the context."""

import numpy as np
import pytest

import crashbo
from crashbo.search.trip_levels import tilts

MACHINE = {"drive": (0.0, 1.0), "temperature": crashbo.Context(5.0, 40.0)}


def data(beta, n=40, seed=0):
    """Readings 2 x, a trip level that rises by beta over the context, and trials near it, as in a search."""
    rng = np.random.default_rng(seed)
    t = rng.random(n)
    level = 1.2 + beta * t
    g = np.clip(level + 0.3 * rng.standard_normal(n), 0.0, 2.0)
    X, crashed = np.column_stack([0.5 * g, t]), g > level
    return X, np.where(crashed, np.nan, g + 0.01 * rng.standard_normal(n)), crashed


@pytest.mark.parametrize("beta", [-0.8, 0.6])
def test_a_slope_is_found(beta):
    (found,) = tilts(*data(beta), (1,))
    assert found.slope == pytest.approx(beta, abs=0.3)
    assert 0.0 < found.std < 0.3


def test_far_from_the_trip_level_a_slope_errs_towards_none():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    g = 2.0 * X[:, 0]
    crashed = g > 1.2 - 0.8 * X[:, 1]
    (found,) = tilts(X, np.where(crashed, np.nan, g), crashed, (1,))
    assert -0.9 < found.slope < -0.2


@pytest.mark.parametrize("seed", range(5))
def test_where_there_is_none_none_is_found(seed):
    assert tilts(*data(0.0, seed=seed), (1,)) == ()


def test_few_trials_say_nothing():
    X, y, crashed = data(-0.8)
    assert tilts(X[:5], y[:5], crashed[:5], (1,)) == ()
    assert tilts(X, y, crashed, ()) == ()


def limit(temperature):
    return 1.8 - 1.2 * (temperature - 5.0) / 35.0


def test_thresholds_readings_and_guards_are_for_a_context():
    """A machine whose trip level falls as it gets warm."""
    optimizer, rng = crashbo.Optimizer(MACHINE, ["current"]), np.random.default_rng(1)
    for _ in range(45):
        params = {"drive": float(rng.random()), "temperature": float(rng.uniform(5.0, 40.0))}
        current = 2.0 * params["drive"]
        if current > limit(params["temperature"]):
            optimizer.tell(params, crash=True)
        else:
            optimizer.tell(params, cost=-current, measured={"current": current})
    for temperature in (8.0, 22.0, 37.0):
        view = optimizer.at({"temperature": temperature})
        found = view.thresholds["current"]
        assert found.value == pytest.approx(limit(temperature), abs=0.15)
        assert found.interval[0] - 0.05 <= limit(temperature) <= found.interval[1] + 0.05
        params = {"drive": 0.3, "temperature": temperature}
        assert optimizer.predict([params]).measured["current"][0][0] == pytest.approx(0.6, abs=0.05)
        assert view.limits()["current"] == pytest.approx(limit(temperature), abs=0.25)
        best = optimizer.recommend(context={"temperature": temperature}).params["drive"]
        assert 0.5 * limit(temperature) - 0.15 < best <= 0.5 * limit(temperature) + 0.02
    trial = optimizer.ask(context={"temperature": 37.0})
    assert optimizer.guard(trial).limits["current"] == pytest.approx(limit(37.0), abs=0.25)
