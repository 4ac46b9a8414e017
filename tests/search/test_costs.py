"""What the cost's model is told of huge costs, and what it takes for noise."""

from dataclasses import replace

import numpy as np
import pytest

from crashbo.models import hyperpriors
from crashbo.search.costs import Costs, fit_cost

PRIOR = hyperpriors.of_cost(2)


def bowl(X):
    return 1.0 + np.sum((X - [0.3, 0.6]) ** 2, axis=1)


def spoiled(where, n=16, huge=1e9):
    """Trials at random places, the first of them at `where` with a huge cost."""
    X = np.vstack([where, np.random.default_rng(3).random((n, 2))])
    return X, np.where(np.arange(len(X)) < len(where), huge, bowl(X))


def test_hyperparameters_are_learnt_without_a_huge_cost():
    X, cost = spoiled([[0.5, 0.5]])
    with_it, without = Costs.of(X, cost).fit(None, PRIOR).posterior, fit_cost(X[1:], cost[1:], None, PRIOR)
    np.testing.assert_array_equal(with_it.hypers[0].lengthscales, without.hypers[0].lengthscales)
    assert with_it.hypers[0].outputscale == without.hypers[0].outputscale


def test_one_huge_cost_amid_good_trials_changes_next_to_nothing():
    X, cost = spoiled([[0.5, 0.5]])
    Z = np.random.default_rng(0).random((50, 2))
    with_it, without = Costs.of(X, cost).fit(None, PRIOR).posterior, fit_cost(X[1:], cost[1:], None, PRIOR)
    np.testing.assert_allclose(with_it.predict(0, Z)[0], without.predict(0, Z)[0], atol=0.03)


def test_a_huge_cost_where_nobody_else_was_keeps_the_search_away():
    rng = np.random.default_rng(3)
    X = np.vstack([[[0.95, 0.95]], 0.3 * rng.random((12, 2))])
    cost = np.append(1e9, bowl(X[1:]))
    plain, told = fit_cost(X[1:], cost[1:], None, PRIOR), Costs.of(X, cost).fit(None, PRIOR).posterior
    (before,), (var,) = plain.predict(0, X[:1])
    (after,), (left,) = told.predict(0, X[:1])
    assert after > before + 1.5 * np.sqrt(var)
    assert left < 0.01 * var  # to try there once more is worth nothing


def test_a_huge_cost_is_never_told_to_be_higher_than_it_was_compressed_to():
    X, cost = spoiled([[0.5, 0.5], [0.9, 0.1]])
    costs = Costs.of(X, cost)
    told = costs.fit(None, PRIOR).posterior.data.Y[0]
    assert costs.huge.tolist() == [True, True] + [False] * 16
    assert np.all(told <= costs.compressed)
    np.testing.assert_array_equal(told[2:], cost[2:])


def test_hyperparameters_that_are_held_give_the_posterior_of_the_fit():
    X, cost = spoiled([[0.5, 0.5]])
    costs = Costs.of(X, cost)
    fitted = costs.fit(None, PRIOR).posterior
    np.testing.assert_allclose(costs.given(fitted.hypers).data.Y, fitted.data.Y, rtol=1e-9)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_many_huge_costs_are_no_accidents(share):
    n = 30
    X, cost = spoiled(np.random.default_rng(1).random((round(share * n), 2)), round((1.0 - share) * n))
    assert not Costs.of(X, cost).huge.any()


def test_a_cost_among_three_others_is_not_called_huge():
    X, cost = spoiled([[0.5, 0.5]], n=3)
    assert not Costs.of(X, cost).huge.any()


def test_ordinary_costs_are_told_as_they_are():
    X, cost = spoiled([[0.5, 0.5]], huge=1.2)
    costs = Costs.of(X, cost)
    np.testing.assert_array_equal(costs.fit(None, PRIOR).posterior.data.Y[0], cost)


def test_no_success_is_no_trouble():
    assert len(Costs.of(np.zeros((0, 2)), np.zeros(0)).compressed) == 0


@pytest.mark.parametrize("seed", range(4))
def test_noise_does_not_pass_for_a_cost_that_varies_over_short_distances(seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.random((8, 2)), [0.7, 0.7] + 0.03 * rng.standard_normal((22, 2))])
    noisy = bowl(X) + 0.1 * rng.standard_normal(len(X))
    stuck = replace(fit_cost(X[:8], noisy[:8], 1e-3, PRIOR).warm(), sites=None)
    found = fit_cost(X, noisy, None, PRIOR, stuck).hypers[0]
    assert 0.05 < float(np.mean(found.noise_std)) < 0.2
    assert np.all(found.lengthscales > 0.1)


def waves(X):
    """Rugged, and exact."""
    return np.sum(np.sin(40.0 * X + 1.0), axis=1)


def test_a_fit_that_took_a_cost_for_noise_can_find_out():
    X = np.random.default_rng(0).random((40, 2))
    loud = replace(fit_cost(X[:8], waves(X[:8]), 0.7, PRIOR).warm(), sites=None)
    exact = bowl(X)
    assert float(np.mean(fit_cost(X, exact, None, PRIOR, loud).hypers[0].noise_std)) < 0.02


def test_noise_is_open_where_a_rugged_cost_would_explain_the_same():
    X = np.random.default_rng(1).random((16, 2))
    assert Costs.of(X, waves(X)).fit(None, PRIOR).noise_is_open
    assert not Costs.of(X, bowl(X)).fit(None, PRIOR).noise_is_open
    assert not Costs.of(X, waves(X)).fit(0.01, PRIOR).noise_is_open  # given


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_repeats_tell_noise_from_a_rugged_cost(noise):
    rng = np.random.default_rng(2)
    X = rng.random((16, 2))
    X = np.vstack([X, X[:1], X[:1]])
    told = (waves(X) if noise < 0.1 else bowl(X)) + noise * rng.standard_normal(len(X))
    found = float(np.mean(fit_cost(X, told, None, PRIOR).hypers[0].noise_std))
    assert 0.2 * noise < found < 5.0 * noise
