"""Expected hypervolume improvement: against sampling and quadrature, its gradient, and far away."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import norm

from crashbo.models.latent import Hyperparameters, condition
from crashbo.numerics.hypervolume import cells, hypervolume
from crashbo.search.acquisition import LogEI
from crashbo.search.ehvi import LogEHVI
from crashbo.search.goals import stacked_data

D = 3


def posterior(M, seed=0, n=12, noise=0.05, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    goals = [np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2, (X[:, 0] - 1.0) ** 2 + X[:, 2], np.cos(3.0 * X[:, 1]) - X[:, 2]][:M]
    lengthscales = ([0.4, 0.7, 2.0], [0.6, 1.0, 0.5], [1.2, 0.3, 0.9])
    hypers = [Hyperparameters(np.array(ls), 1.3 * scale**2, 0.4 * scale, noise * scale) for ls in lengthscales[:M]]
    return condition(stacked_data(X, scale * np.array(goals)), tuple(hypers))


def front_of(post, M, scale=1.0):
    return np.column_stack([post.mean_at_trials(j) for j in range(M)]), scale * np.full(M, 1.5)


def acquisition(post, M, noise=0.0, scale=1.0):
    Y, reference = front_of(post, M, scale)
    return LogEHVI(post, *cells(Y, reference), np.full(M, noise), np.full(M, scale))


def draws(post, M, x, n, noise=0.0, seed=1):
    """Where one more trial at x may move the posterior means."""
    rng, found = np.random.default_rng(seed), []
    for j in range(M):
        mean, var = post.predict(j, x)
        found.append(mean[0] + var[0] / np.sqrt(var[0] + noise**2) * rng.standard_normal(n))
    return np.column_stack(found)


@pytest.mark.parametrize("M", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_it_is_the_mean_improvement_of_sampled_outcomes(M, noise):
    post = posterior(M)
    Y, reference = front_of(post, M)
    before, log_ehvi = hypervolume(Y, reference), acquisition(post, M, noise)
    X = np.random.default_rng(2).random((50, D))
    for x in X[np.argsort(-log_ehvi(X))[:2], None]:
        gains = [hypervolume(np.vstack([Y, y]), reference) - before for y in draws(post, M, x, 1500, noise)]
        error = np.std(gains) / np.sqrt(len(gains))
        assert np.exp(log_ehvi(x)[0]) == pytest.approx(np.mean(gains), abs=4.0 * error)


def test_it_is_the_integral_over_two_goals():
    post, x = posterior(2), np.array([[0.3, 0.9, 0.2]])
    Y, reference = front_of(post, 2)
    before = hypervolume(Y, reference)
    normals = [norm(mean[0], np.sqrt(var[0])) for mean, var in (post.predict(j, x) for j in range(2))]

    def density(b, a):
        gain = hypervolume(np.vstack([Y, [a, b]]), reference) - before
        return gain * normals[0].pdf(a) * normals[1].pdf(b)

    spans = [(n.mean() - 8.0 * n.std(), min(n.mean() + 8.0 * n.std(), 1.5)) for n in normals]
    exact = dblquad(density, *spans[0], *spans[1], epsabs=1e-7)[0]
    assert np.exp(acquisition(post, 2)(x)[0]) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("M", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_its_gradient_is_exact(M, noise):
    log_ehvi = acquisition(posterior(M), M, noise)
    X, step = np.random.default_rng(3).random((6, D)), 1e-6
    value, gradient = log_ehvi.with_gradient(X)
    np.testing.assert_allclose(value, log_ehvi(X), rtol=1e-12)
    for d in range(D):
        moved = np.eye(D)[d] * step
        finite = (log_ehvi(X + moved) - log_ehvi(X - moved)) / (2.0 * step)
        np.testing.assert_allclose(gradient[:, d], finite, rtol=1e-5, atol=1e-5)


def test_far_behind_the_front_it_still_has_a_slope():
    post = posterior(2, noise=1e-6)
    low, high = cells(np.array([[-80.0, -90.0], [-90.0, -80.0]]), np.array([-60.0, -60.0]))
    value, gradient = LogEHVI(post, low, high, np.zeros(2), np.ones(2)).with_gradient(post.data.X[:3] + 1e-4)
    assert np.all(np.isfinite(value))
    assert np.all(value < -1e4)
    assert np.all(np.isfinite(gradient))
    assert np.all(np.abs(gradient).max(axis=1) > 1.0)


def test_units_change_nothing():
    X = np.random.default_rng(4).random((5, D))
    plain = acquisition(posterior(3), 3).with_gradient(X)
    for scale in (1e-12, 1e12):
        for one, other in zip(
            plain, acquisition(posterior(3, scale=scale), 3, scale=scale).with_gradient(X), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_where_the_second_goal_is_certain_it_is_plain_expected_improvement():
    post, flat = posterior(1), Hyperparameters(np.full(D, 1e4), 1e-12, 0.0, 1e-9)
    both = condition(stacked_data(post.data.X, np.vstack([post.data.Y, np.zeros((1, 12))])), (post.hypers[0], flat))
    X = np.random.default_rng(5).random((5, D))
    ehvi = LogEHVI(both, *cells(np.array([[0.2, 0.0]]), np.array([9.0, 1.0])), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(ehvi(X), LogEI(post, 0.2)(X), atol=1e-4)
