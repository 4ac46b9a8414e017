"""GP regression against scikit-learn's at fixed hyperparameters, and its fits against the truth."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from crashbo.models import GP, latent
from crashbo.numerics.kernels import MATERN52
from crashbo.search.goals import stacked_data


def drawn(seed, n, dimension, noise_std, lengthscale=0.3):
    rng = np.random.default_rng(seed)
    X = rng.random((n, dimension))
    K = MATERN52.gram(X, np.full(dimension, lengthscale))[0]
    return X, np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.standard_normal(n) + noise_std * rng.standard_normal(n)


@pytest.mark.parametrize("dimension", [1, 3])
def test_at_given_hyperparameters_it_is_scikit_learns(dimension):
    X, y = drawn(dimension, 25, dimension, 0.1)
    Z = np.random.default_rng(9).random((11, dimension))
    lengthscales = np.linspace(0.2, 0.5, dimension)
    rival = GaussianProcessRegressor(ConstantKernel(1.3) * Matern(lengthscales, nu=2.5), alpha=0.01, optimizer=None)
    rival.fit(X, y)
    model = GP.condition(X, y, lengthscales=lengthscales, outputscale=1.3, noise_std=0.1)
    mean, std = rival.predict(Z, return_std=True)
    np.testing.assert_allclose(model.predict(Z)[0], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.predict(Z)[1], std**2, rtol=1e-7)
    value, slopes = rival.log_marginal_likelihood(rival.kernel_.theta, eval_gradient=True)
    assert model.log_evidence == pytest.approx(value, rel=1e-9)
    gradient = model.log_evidence_gradient()
    ours = np.append(1.3 * gradient["outputscale"], lengthscales * gradient["lengthscales"])
    np.testing.assert_allclose(ours, slopes, rtol=1e-6, atol=1e-8)


def test_noise_told_trial_by_trial_is_scikit_learns_alpha():
    X, y = drawn(0, 20, 2, 0.1)
    noise = np.linspace(0.05, 0.5, 20)
    rival = GaussianProcessRegressor(Matern([0.3, 0.3], nu=2.5), alpha=noise**2, optimizer=None).fit(X, y)
    model = GP.condition(X, y, lengthscales=0.3, outputscale=1.0, noise_std=noise)
    np.testing.assert_allclose(model.predict(X)[0], rival.predict(X), rtol=1e-8, atol=1e-10)
    assert model.log_evidence == pytest.approx(rival.log_marginal_likelihood_value_, rel=1e-9)


def test_gradients_in_mean_and_noise_are_difference_quotients():
    X, y = drawn(1, 25, 2, 0.1)
    hypers = {"lengthscales": 0.3, "outputscale": 1.2, "noise_std": 0.15, "mean": 0.4}
    gradient = GP.condition(X, y, **hypers).log_evidence_gradient()
    for name in ("mean", "noise_std"):
        up, down = (GP.condition(X, y, **(hypers | {name: hypers[name] + s})).log_evidence for s in (1e-5, -1e-5))
        assert gradient[name] == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_a_missing_measurement_is_as_if_the_trial_had_not_been():
    X, y = drawn(2, 20, 2, 0.1)
    y[::4] = np.nan
    seen = ~np.isnan(y)
    hypers = {"lengthscales": 0.3, "outputscale": 1.2, "noise_std": 0.15, "mean": 0.4}
    model, without = GP.condition(X, y, **hypers), GP.condition(X[seen], y[seen], **hypers)
    np.testing.assert_allclose(model.predict(X), without.predict(X), rtol=1e-9, atol=1e-12)
    assert model.log_evidence == pytest.approx(without.log_evidence, rel=1e-10)
    np.testing.assert_allclose(GP.fit(X, y).predict(X), GP.fit(X[seen], y[seen]).predict(X), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("noise_std", [0.03, 0.1, 0.4])
def test_a_fit_recovers_the_noise_roughly(noise_std):
    learnt = [GP.fit(*drawn(seed, 80, 1, noise_std)).hyperparameters.noise_std for seed in range(4)]
    assert noise_std / 1.5 < np.median(learnt) < 1.5 * noise_std


def test_a_fit_recovers_which_dimension_matters():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    model = GP.fit(X, np.sin(8.0 * X[:, 1]) + 0.05 * rng.standard_normal(60))
    short, *longer = model.hyperparameters.lengthscales[[1, 0, 2]]
    assert min(longer) > 3.0 * short
    assert model.converged is True
    assert 3 < model.evaluations < 150


def test_a_fit_predicts_unseen_values_with_honest_variance():
    X, y = drawn(3, 120, 2, 0.05)
    model = GP.fit(X[:60], y[:60])
    mean, var = model.predict(X[60:])
    z = (y[60:] - mean) / np.sqrt(var + 0.05**2)
    assert np.mean((y[60:] - mean) ** 2) < 0.1 * np.var(y)
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.6


def test_a_warm_start_reaches_what_a_cold_one_does():
    X, y = drawn(4, 50, 2, 0.1)
    cold = GP.fit(X, y)
    warm = GP.fit(X, y, start=GP.fit(X[:45], y[:45]))
    assert warm.evaluations <= cold.evaluations
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=0.3)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e-12), (0.0, 1e12), (1e6, 1e3)])
def test_the_units_of_the_measurements_do_not_matter(shift, scale):
    X, y = drawn(5, 30, 2, 0.1)
    mean, var = GP.fit(X, y).predict(X)
    other_mean, other_var = GP.fit(X, shift + scale * y).predict(X)
    np.testing.assert_allclose((other_mean - shift) / scale, mean, atol=5e-3)
    np.testing.assert_allclose(other_var / scale**2, var, rtol=0.05)


@pytest.mark.parametrize("G", [1, 2])
@pytest.mark.parametrize("again", [False, True])
def test_what_is_imagined_is_what_a_regression_of_it_says(G, again):
    rng = np.random.default_rng(3)
    X, Y, Z = rng.random((40, 3)), rng.standard_normal((G, 40)), rng.random((6, 3))
    if again:  # at the same x as a trial
        Z[2] = X[5]
    hypers = tuple(latent.Hyperparameters(np.array([0.4, 0.9, 0.6]), 2.0 + j, 0.3, 0.05) for j in range(G))
    told = latent.condition(stacked_data(X, Y), hypers)
    means = np.stack([told.predict(j, Z)[0] for j in range(G)])
    found = latent.imagined(told, Z, means)
    exact = latent.condition(stacked_data(np.vstack([X, Z]), np.hstack([Y, means])), hypers)
    points = rng.random((30, 3))
    for j in range(G):
        np.testing.assert_allclose(found.predict(j, points), exact.predict(j, points), rtol=1e-9)
        np.testing.assert_allclose(found.predict(j, points)[0], told.predict(j, points)[0], rtol=1e-9)
        np.testing.assert_allclose(found.mean_at_trials(j), exact.mean_at_trials(j), rtol=1e-9)
        np.testing.assert_allclose(found.ep.posteriors[j].var, exact.ep.posteriors[j].var, rtol=1e-9)
        np.testing.assert_allclose(found.gradient(j)[0], exact.gradient(j)[0], rtol=1e-6, atol=1e-8)
    assert found.log_evidence == pytest.approx(exact.log_evidence, rel=1e-9)
