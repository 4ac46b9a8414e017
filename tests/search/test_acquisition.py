"""log EI and log Gamma: the formulas, their gradients, and what imagined crashes do."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from crashbo.models.crash import CrashModel
from crashbo.models.ensemble import Ensemble
from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Hyperparameters, condition
from crashbo.numerics.kernels import squared_distances
from crashbo.search.acquisition import LogEI, LogGamma

D = 3


def cost_posterior(seed=0, n=12, noise=0.05):
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 + 5.0
    h = Hyperparameters(np.array([0.4, 0.7, 2.0]), 1.3, mean=4.8, noise_std=noise)
    return condition(HybridData(X, y[None, :], np.zeros((1, n)), np.zeros(n, dtype=bool)), (h,))


def exact_covariance(post, X):
    """The posterior covariance of a cost at X, by the textbook."""
    h, tried = post.hypers[0], post.data.X
    own, across, among = (
        h.outputscale * post.kernel.profile(squared_distances(A / h.lengthscales, B / h.lengthscales))[0]
        for A, B in ((X, X), (X, tried), (tried, tried))
    )
    return own - across @ np.linalg.solve(among + h.noise_std**2 * np.eye(len(tried)), across.T)


def parts(G):
    """Hyperparameters of up to three constraints, of different kinds."""
    return [
        {"lengthscales": [0.5, 0.6, 1.0], "outputscale": 1.0, "threshold": 0.6, "noise_std": 0.05, "mean": 0.1},
        {
            "lengthscales": [0.9, 0.3, 0.8],
            "outputscale": 40.0,
            "threshold": 12.0,
            "noise_std": 0.3,
            "crash_noise_std": 0.5,
            "mean": 8.0,
        },
        {"lengthscales": [1.0, 1.0, 0.4], "outputscale": 1.0, "threshold": 0.0, "noise_std": 0.01, "mean": -1.0},
    ][:G]


def trials(G, seed=0, n=14):
    """Successes with measurements and crashes without; the last constraint of three is measured nowhere."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    Y = np.stack([X[:, 0] + 0.1 * X[:, 2], 5.0 + 9.0 * X[:, 1], np.full(n, np.nan)], axis=1)[:, :G]
    crashed = X[:, 0] + X[:, 1] > 1.1
    return X, np.where(crashed[:, None], np.nan, Y), crashed


def log_gamma(G, widen=None, *, wary=False):
    return LogGamma(Ensemble.of(CrashModel.condition(*trials(G), parts=parts(G)).posterior, widen), wary)


def finite_differences(function, X, h=1e-5):
    slopes = np.empty_like(X)
    for d in range(X.shape[1]):
        step = np.zeros(X.shape[1])
        step[d] = h
        slopes[:, d] = (function(X + step) - function(X - step)) / (2.0 * h)
    return slopes


def points(m=9, seed=5):
    return np.random.default_rng(seed).random((m, D))


def test_log_ei_is_the_textbook_s_formula():
    post = cost_posterior()
    mean, var = post.predict(0, points())
    std, eta = np.sqrt(var), 5.2
    z = (eta - mean) / std
    direct = std * (z * norm.cdf(z) + norm.pdf(z))
    np.testing.assert_allclose(np.exp(LogEI(post, eta)(points())), direct, rtol=1e-9)


def test_with_noise_ei_is_what_the_posterior_mean_may_gain_by_one_more_trial():
    post, x, noise, eta = cost_posterior(), points(1), 0.4, 5.2
    mean, var = (float(moment[0]) for moment in post.predict(0, x))
    readings = norm.ppf((np.arange(4000) + 0.5) / 4000, mean, np.sqrt(var + noise**2))
    means = mean + var / (var + noise**2) * (readings - mean)
    np.testing.assert_allclose(np.exp(LogEI(post, eta, noise)(x)), np.mean(np.maximum(eta - means, 0.0)), rtol=1e-3)


def test_measuring_again_what_is_known_gains_little():
    post = cost_posterior()
    eta, tried, noise = float(post.mean_at_trials(0).min()), post.data.X[[int(np.argmin(post.mean_at_trials(0)))]], 0.05
    assert LogEI(post, eta, noise)(tried)[0] < LogEI(post, eta)(tried)[0] - 0.3


def test_the_incumbent_s_own_move_is_counted():
    """Against brute force: the posterior after each of many readings, at points about the incumbent."""
    post, noise = cost_posterior(noise=0.4), 0.4
    best = int(np.argmin(post.mean_at_trials(0)))
    tried = post.data.X[best]
    utility = LogEI(post, float(post.mean_at_trials(0)[best]), noise, best)
    for x in tried + 0.3 * (points() - 0.5):
        joint = np.stack([x, tried])
        covariance, mean = exact_covariance(post, joint), post.predict(0, joint)[0]
        spread = np.sqrt(covariance[0, 0] + noise**2)
        readings = norm.ppf((np.arange(20000) + 0.5) / 20000, 0.0, spread)
        at_x, at_best = (mean[i] + covariance[0, i] / spread**2 * readings for i in range(2))
        np.testing.assert_allclose(
            np.exp(utility(x[None])), np.mean(np.maximum(at_best - at_x, 0.0)), rtol=1e-2, atol=1e-6
        )


def test_without_noise_the_incumbent_does_not_move():
    post = cost_posterior(noise=1e-6)
    best = int(np.argmin(post.mean_at_trials(0)))
    eta = float(post.mean_at_trials(0)[best])
    np.testing.assert_allclose(LogEI(post, eta, 1e-6, best)(points()), LogEI(post, eta)(points()), atol=1e-4)


def test_measuring_the_incumbent_again_gains_next_to_nothing():
    post = cost_posterior(noise=0.5)
    best = int(np.argmin(post.mean_at_trials(0)))
    again = LogEI(post, float(post.mean_at_trials(0)[best]), 0.5, best)
    assert again(post.data.X[[best]])[0] < np.max(again(points(200))) - 3.0


@pytest.mark.parametrize("eta", [5.5, 4.5, -20.0])
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("incumbent", [None, 3])
def test_the_gradient_of_log_ei_is_its_slope_near_and_far(eta, noise, incumbent):
    utility = LogEI(cost_posterior(), eta, noise, incumbent)
    value, gradient = utility.with_gradient(points())
    np.testing.assert_allclose(value, utility(points()), rtol=1e-10)
    np.testing.assert_allclose(gradient, finite_differences(utility, points()), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("incumbent", [None, 7])
def test_the_gradient_of_log_ei_after_many_trials_is_its_slope(incumbent):
    utility = LogEI(cost_posterior(n=230), 4.9, 0.1, incumbent)  # too many to be stacked
    value, gradient = utility.with_gradient(points())
    np.testing.assert_allclose(value, utility(points()), rtol=1e-10)
    np.testing.assert_allclose(gradient, finite_differences(utility, points()), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("n", [40, 230])
def test_the_gradient_of_log_gamma_of_an_ensemble_is_its_slope(n):
    crash = CrashModel.condition(*trials(2, n=n), parts=parts(2)).posterior
    wider = tuple(replace(h, lengthscales=1.3 * h.lengthscales) for h in crash.hypers)
    both = Ensemble((crash, crash.at(wider)), np.log([0.7, 0.3]), np.array([[0.1, 0.2], [0.3, 0.1]]))
    gamma = LogGamma(both, wary=True)
    value, gradient = gamma.with_gradient(points())
    np.testing.assert_allclose(value, gamma(points()), rtol=1e-9)
    np.testing.assert_allclose(gradient, finite_differences(gamma, points()), rtol=2e-5, atol=1e-5)


def test_mean_variance_and_covariance_with_a_trial_are_the_textbook_s():
    post = cost_posterior(noise=0.2)
    mean, var, cov = post.covariance_with(0, 3).with_moments(points())
    joint = exact_covariance(post, np.vstack([points(), post.data.X[3:4]]))
    np.testing.assert_allclose(cov, joint[:-1, -1], atol=1e-10)
    np.testing.assert_allclose((mean, var), post.predict(0, points()), rtol=1e-10)


def test_log_ei_stays_finite_where_improvement_is_hopeless():
    value, gradient = LogEI(cost_posterior(), -1e5).with_gradient(points())
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradient))
    assert np.all(value < -1e6)


@pytest.mark.parametrize("G", [1, 2, 3])
def test_log_gamma_is_the_sum_of_the_constraints_log_probabilities(G):
    gamma = log_gamma(G)
    direct = np.zeros(len(points()))
    for j, part in enumerate(parts(G)):
        mean, var = gamma.ensemble.members[0].predict(j, points())
        direct += log_ndtr((part["threshold"] - mean) / np.sqrt(var + part.get("crash_noise_std", 0.0) ** 2))
    np.testing.assert_allclose(gamma(points()), direct, rtol=1e-10)


@pytest.mark.parametrize("G", [1, 2, 3])
def test_log_gamma_is_the_crash_model_s_p_safe(G):
    model = CrashModel.condition(*trials(G), parts=parts(G))
    np.testing.assert_allclose(np.exp(LogGamma.of(model.posterior)(points())), model.p_safe(points()), rtol=1e-10)


@pytest.mark.parametrize("G", [1, 2, 3])
@pytest.mark.parametrize("widened", [False, True])
@pytest.mark.parametrize("wary", [False, True])
def test_the_gradient_of_log_gamma_is_its_slope(G, widened, wary):
    gamma = log_gamma(G, np.array([0.4, 1.7, 0.3])[:G] if widened else None, wary=wary)
    value, gradient = gamma.with_gradient(points())
    np.testing.assert_allclose(value, gamma(points()), rtol=1e-10)
    np.testing.assert_allclose(gradient, finite_differences(gamma, points()), rtol=2e-5, atol=1e-5)


def test_an_uncertain_threshold_draws_p_safe_towards_one_half():
    sharp, wide = log_gamma(1)(points(200)), log_gamma(1, np.array([0.7]))(points(200))
    safe = sharp > np.log(0.5)
    assert safe.any()
    assert (~safe).any()
    assert np.all(wide[safe] < sharp[safe])
    assert np.all(wide[~safe] > sharp[~safe])


def test_who_is_wary_believes_the_model_at_the_trials_and_less_the_farther_from_them():
    bold, wary = log_gamma(1), log_gamma(1, wary=True)
    X, _, crashed = trials(1)
    np.testing.assert_allclose(np.exp(wary(X[~crashed])), np.exp(bold(X[~crashed])), atol=0.05)
    far = np.full((1, D), 50.0)
    z = norm.ppf(np.exp(bold(far)))
    np.testing.assert_allclose(np.exp(wary(far)), norm.cdf((z - 0.45) / np.sqrt(3.0)), rtol=1e-9)


@pytest.mark.parametrize("G", [1, 2])
def test_imagined_crashes_lower_p_safe_there_and_near(G):
    gamma = log_gamma(G)
    at = points(200)[np.argsort(-gamma(points(200)))[:2]]
    warned = gamma.with_crashes(at)
    assert np.all(warned(at) < gamma(at) - 0.05)
    assert np.all(warned(at + 0.01) < gamma(at + 0.01))


@pytest.mark.parametrize("G", [1, 2])
def test_imagined_crashes_are_what_real_ones_without_a_measurement_are(G):
    X, Y, crashed = trials(G)
    at = points(2, seed=8)
    Y_all = np.vstack([Y, np.full((2, G), np.nan)])
    real = CrashModel.condition(np.vstack([X, at]), Y_all, np.append(crashed, [True, True]), parts=parts(G))
    np.testing.assert_allclose(
        log_gamma(G).with_crashes(at)(points()), LogGamma.of(real.posterior)(points()), atol=1e-5
    )


def test_no_imagined_crash_changes_nothing():
    gamma = log_gamma(2)
    np.testing.assert_array_equal(gamma.with_crashes(np.zeros((0, D)))(points()), gamma(points()))
