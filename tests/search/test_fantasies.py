"""Expected improvement at candidates while others are under way: against conditioning from scratch."""

import numpy as np
import pytest

from crashbo.models import hyperpriors
from crashbo.search.acquisition import LogEI
from crashbo.search.costs import fit_cost
from crashbo.search.fantasies import Fantasies
from crashbo.search.surrogates import with_pending


@pytest.fixture(scope="module")
def cost():
    rng = np.random.default_rng(0)
    X = rng.random((25, 2))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2 + 0.02 * rng.standard_normal(25)
    return fit_cost(X, y, None, hyperpriors.of_cost(2))


def improvement(posterior):
    mean = posterior.mean_at_trials(0)
    noise = float(np.mean(posterior.hypers[0].noise_std))
    return LogEI(posterior, float(mean.min()), noise, int(np.argmin(mean)))


def lowest(fantasies):
    return int(np.argmin(fantasies.mean))


@pytest.mark.parametrize("promising", [False, True])
def test_candidates_that_were_chosen_count_as_pending_trials_do(cost, promising):
    X = np.random.default_rng(1).random((60, 2))
    fantasies = Fantasies.of(improvement(cost), X)
    chosen = [3, 17, lowest(fantasies) if promising else 40, 41]
    for i in chosen:
        fantasies = fantasies.with_chosen(i)
    exact = improvement(with_pending(cost, X[chosen]))
    others = np.setdiff1d(np.arange(60), chosen)
    assert fantasies.eta == pytest.approx(exact.eta, abs=1e-6)
    np.testing.assert_allclose(fantasies.mean, exact.cost.predict(0, X)[0], atol=1e-5)
    np.testing.assert_allclose(fantasies.log_gain()[others], exact(X)[others], atol=1e-3)


def test_nothing_is_gained_twice_at_one_place(cost):
    X = np.random.default_rng(2).random((40, 2))
    before = Fantasies.of(improvement(cost), X)
    best = int(np.argmax(before.log_gain()))
    after = before.with_chosen(best)
    assert after.log_gain()[best] < before.log_gain()[best] - 1.0
    assert np.all(after.var <= before.var * (1.0 + 1e-9))
