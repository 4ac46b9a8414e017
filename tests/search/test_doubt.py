"""What a study may still try when its model of the cost sees nothing left to gain."""

import numpy as np
import pytest

from crashbo.models import hyperpriors
from crashbo.search import doubt
from crashbo.search.candidates import Box, Screen
from crashbo.search.fitting import fit_surrogates
from crashbo.search.observations import Observations

NOISE = 0.01


def studied(cost_of, X):
    """Both models of a study at X that never crashed."""
    n, D = X.shape
    rng = np.random.default_rng(1)
    seen = Observations(
        numbers=tuple(range(n)),
        X=X,
        cost=cost_of(X) + NOISE * rng.standard_normal(n),
        Y=X[:, :1],
        succeeded=np.ones(n, dtype=bool),
        crashed=np.zeros(n, dtype=bool),
        blame=[None] * n,
        pending=np.zeros((0, D)),
        cost_noise_std=NOISE,
        noise_std=(None,),
        thresholds=(None,),
    )
    return fit_surrogates(seen, None, hyperpriors.of_cost(D), hyperpriors.of_crash(D))


def screen_of(X):
    return Screen(X, np.zeros(len(X)), np.full(X.shape[1], 0.1), Box(np.zeros(X.shape[1]), np.ones(X.shape[1])))


def two_wells(X):
    """A deep well at 0.2, one of half its depth at 0.8."""
    return -np.exp(-(((X[:, 0] - 0.2) / 0.08) ** 2)) - 0.5 * np.exp(-(((X[:, 0] - 0.8) / 0.08) ** 2))


def test_a_deep_well_is_filled_to_the_level_of_the_best_trial_away_from_it():
    X = np.concatenate([np.linspace(0.1, 0.3, 21), np.linspace(0.35, 0.65, 9), [0.0, 0.05, 0.74, 0.95, 1.0]])[:, None]
    models = studied(two_wells, X)
    grid = screen_of(np.linspace(0.0, 1.0, 101)[:, None])
    found, worth = doubt.improvement(models, grid, 0.5, float(np.log(NOISE)))
    assert worth.max() > np.log(NOISE)
    best_away = two_wells(X)[X[:, 0] > 0.4].min()
    assert found.eta == pytest.approx(best_away, abs=0.05)
    assert abs(grid.X[np.argmax(worth), 0] - 0.8) < 0.1  # and not in the deep one, which is known
