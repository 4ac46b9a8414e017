"""Expectation propagation against brute force: the same posterior by weighted sampling."""

import numpy as np
import pytest
from draws import draw
from sampling import gaussian_part
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from crashbo.models import GPCR
from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Hyperparameters, condition
from crashbo.models.likelihood import StepLikelihood

SAMPLES = 100_000


def brute_force(X, y, crashed, hypers, rng):
    """Mean and variance of g at X, and log Z, by sequential importance sampling of what the labels leave.

    Coordinates of h = g + crash noise are drawn one after the other, each cut at the threshold given those
    before it; the product of the masses so kept is the weight (Geweke, Hajivassiliou and Keane).
    """
    m, V, log_measured = gaussian_part(X, y, hypers)
    C = V + (hypers["crash_noise_std"] ** 2 + 1e-12 * hypers["outputscale"]) * np.eye(len(m))
    L = np.linalg.cholesky(C)
    sign = np.where(crashed, -1.0, 1.0)
    u = np.zeros((SAMPLES, len(m)))
    log_weight = np.zeros(SAMPLES)
    for i in range(len(m)):
        z = sign[i] * (hypers["threshold"] - m[i] - u[:, :i] @ L[i, :i]) / L[i, i]
        log_weight += log_ndtr(z)
        drawn = ndtri(ndtr(z) * rng.random(SAMPLES))
        u[:, i] = sign[i] * np.where(np.isfinite(drawn), drawn, z)  # at the bound, where the doubles end
    h = m + u @ L.T
    w = np.exp(log_weight - logsumexp(log_weight))
    mean_h = w @ h
    cov_h = (h - mean_h).T * w @ (h - mean_h)
    back = np.linalg.solve(C, V).T  # of g on h
    mean = m + back @ (mean_h - m)
    var = np.diag(V - back @ V + back @ cov_h @ back.T)
    assert 1.0 / np.sum(w**2) > 2_000.0, "too few effective samples to judge by"
    return mean, var, log_measured + logsumexp(log_weight) - np.log(SAMPLES)


def textbook_ep(X, y, crashed, hypers, sweeps=300):
    """Moments and log Z by sequential EP on dense matrices in the prior's own units (GPML, section 3.6)."""
    m, V, log_measured = gaussian_part(X, y, hypers)
    sign, s2 = np.where(crashed, -1.0, 1.0), hypers["crash_noise_std"] ** 2
    tau, nu = np.zeros(len(m)), np.zeros(len(m))
    precision = np.linalg.inv(V)
    for _ in range(sweeps):
        log_site = np.zeros(len(m))
        for i in range(len(m)):
            Sigma = np.linalg.inv(precision + np.diag(tau))
            mu = Sigma @ (precision @ m + nu)
            v_cav = 1.0 / (1.0 / Sigma[i, i] - tau[i])
            mu_cav = v_cav * (mu[i] / Sigma[i, i] - nu[i])
            z = sign[i] * (hypers["threshold"] - mu_cav) / np.sqrt(v_cav + s2)
            h = np.exp(-0.5 * z**2 - log_ndtr(z)) / np.sqrt(2.0 * np.pi)
            mu_hat = mu_cav - sign[i] * v_cav * h / np.sqrt(v_cav + s2)
            v_hat = v_cav - v_cav**2 * h * (h + z) / (v_cav + s2)
            tau[i], nu[i] = 1.0 / v_hat - 1.0 / v_cav, mu_hat / v_hat - mu_cav / v_cav
            log_site[i] = log_ndtr(z) + 0.5 * np.log(v_cav / v_hat) + 0.5 * (mu_cav**2 / v_cav - mu_hat**2 / v_hat)
    Sigma = np.linalg.inv(precision + np.diag(tau))
    r = precision @ m + nu
    log_gauss = 0.5 * (np.linalg.slogdet(Sigma @ precision)[1] + r @ Sigma @ r - m @ precision @ m)
    return Sigma @ r, np.diag(Sigma), log_measured + log_site.sum() + log_gauss


def test_brute_force_itself_agrees_with_a_plain_rejection_sampler():
    rng = np.random.default_rng(0)
    trials = draw(rng, 5, successes=(3, 3), crash_noise_std=0.3)
    mean, var, log_Z = brute_force(*trials.data, trials.hypers, rng)
    m, V, log_measured = gaussian_part(trials.X, trials.y, trials.hypers)
    g = rng.multivariate_normal(m, V, 400_000)
    trips = g + trials.hypers["crash_noise_std"] * rng.standard_normal(g.shape) > trials.hypers["threshold"]
    kept = g[np.all(trips == trials.crashed, axis=1)]
    assert len(kept) > 5_000
    assert log_Z == pytest.approx(log_measured + np.log(len(kept) / len(g)), abs=0.05)
    np.testing.assert_allclose(mean, kept.mean(axis=0), atol=0.03 * np.sqrt(trials.hypers["outputscale"]))
    np.testing.assert_allclose(var, kept.var(axis=0), rtol=0.1)


@pytest.mark.parametrize(("crash_noise_std", "share"), [(0.0, 0.85), (0.2, 1.0)])
def test_posterior_and_evidence_are_those_of_brute_force(crash_noise_std, share):
    # The hard step has no prior noise to soften it: where several crashes crowd within a lengthscale, EP's
    # own error passes 0.1 nats of log Z in one problem of twenty or so. What misses must be EP's to the last digit.
    within = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 9))
        trials = draw(rng, n, 1 + seed % 3, successes=(3, 6), crash_noise_std=crash_noise_std, unmeasured=0.1)
        model = GPCR.condition(*trials.data, **trials.hypers)
        mean, var, log_Z = brute_force(*trials.data, trials.hypers, rng)
        prior_std = np.sqrt(trials.hypers["outputscale"])
        found_mean, found_var = model.predict(trials.X)
        in_mean = np.max(np.abs(found_mean - mean)) / prior_std
        in_var = np.max(np.abs(found_var - var)) / prior_std**2
        in_log_Z = abs(model.log_evidence - log_Z)
        assert model.converged
        assert max(in_mean / 0.1, in_var / 0.15, in_log_Z / 0.3) < 1.0, seed
        within.append(in_mean < 0.05 and in_var < 0.1 and in_log_Z < 0.1)
        if not within[-1]:
            assert model.log_evidence == pytest.approx(textbook_ep(*trials.data, trials.hypers)[2], abs=1e-6)
    assert np.mean(within) >= share


@pytest.mark.parametrize("seed", range(8))
def test_the_fixed_point_is_that_of_the_textbook(seed):
    rng = np.random.default_rng(100 + seed)
    trials = draw(rng, 8, 2, successes=(3, 6), crash_noise_std=0.1 * (seed % 2), unmeasured=0.2)
    model = GPCR.condition(*trials.data, **trials.hypers)
    mean, var, log_Z = textbook_ep(*trials.data, trials.hypers)
    found_mean, found_var = model.predict(trials.X)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found_var, var, rtol=1e-6)
    assert model.log_evidence == pytest.approx(log_Z, abs=1e-6)


def test_one_label_alone_is_exact():
    hypers = {"lengthscales": 0.3, "outputscale": 2.0, "threshold": 0.5, "mean": 0.1, "noise_std": 0.1}
    model = GPCR.condition([[0.5]], [np.nan], [True], **hypers, crash_noise_std=0.4)
    # g + e > c, where e is the crash noise: one Gaussian cut once.
    total = 2.0 + 0.4**2
    z = (0.1 - 0.5) / np.sqrt(total)
    h = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) / ndtr(z)
    mean, var = model.predict([[0.5]])
    assert model.log_evidence == pytest.approx(log_ndtr(z), rel=1e-9)
    assert mean[0] == pytest.approx(0.1 + 2.0 * h / np.sqrt(total), rel=1e-9)
    assert var[0] == pytest.approx(2.0 - 4.0 / total * h * (h + z), rel=1e-9)


def test_p_safe_is_the_probability_of_a_success_under_the_posterior():
    trials = draw(np.random.default_rng(1), 10, crash_noise_std=0.3)
    model = GPCR.condition(*trials.data, **trials.hypers)
    Z = np.random.default_rng(2).random((5, 2))
    mean, var = model.predict(Z)
    rng = np.random.default_rng(3)
    g = mean + np.sqrt(var) * rng.standard_normal((200_000, 5))
    trips = g + trials.hypers["crash_noise_std"] * rng.standard_normal(g.shape) > trials.hypers["threshold"]
    np.testing.assert_allclose(model.p_safe(Z), 1.0 - trips.mean(axis=0), atol=0.005)


@pytest.mark.parametrize("seed", range(5))
def test_the_fixed_point_is_reached_on_clustered_data(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([0.3 + 0.01 * rng.random((30, 2)), rng.random((30, 2))])
    crashed = X[:, 0] + 0.02 * rng.standard_normal(60) > 0.31
    y = np.where(crashed, np.nan, X[:, 0] + 0.001 * rng.standard_normal(60))
    model = GPCR.condition(
        X, y, crashed, lengthscales=0.5, outputscale=0.1, threshold=0.31, noise_std=0.001, crash_noise_std=0.02
    )
    assert model.converged
    assert 1 < model.sweeps < 200


def test_contradictory_labels_at_one_x_leave_p_safe_undecided():
    X = np.full((2, 1), 0.5)
    model = GPCR.condition(
        X,
        [np.nan, np.nan],
        [True, False],
        lengthscales=0.3,
        outputscale=1.0,
        threshold=0.0,
        noise_std=0.1,
        crash_noise_std=0.1,
    )
    assert model.p_safe([[0.5]])[0] == pytest.approx(0.5, abs=1e-6)
    assert np.isfinite(model.log_evidence)


def test_contradictory_labels_under_a_hard_step_are_owned_up_to_and_leave_the_rest_alone():
    X = np.array([[0.5], [0.5], [0.1], [0.9]])  # a success and a crash at one x: of probability zero
    y, crashed = np.array([0.4, np.nan, -0.5, 0.2]), np.array([False, True, False, False])
    settings = {"lengthscales": 0.3, "outputscale": 1.0, "threshold": 0.5, "noise_std": 0.05}
    hard = GPCR.condition(X, y, crashed, **settings)
    assert not hard.converged
    mean, var = hard.predict(X[2:])
    np.testing.assert_allclose(mean, y[2:], atol=0.02)
    assert np.all(var < 4 * 0.05**2)
    soft = GPCR.condition(X, y, crashed, crash_noise_std=0.1, **settings)
    assert soft.converged
    assert np.all((hard.p_safe(X[2:]) > 0.99) & (soft.p_safe(X[2:]) > 0.99))


def test_a_threshold_that_differs_from_trial_to_trial():
    """Trials so far apart that they are independent: EP is exact, and the evidence a product."""
    X, crashed = np.array([[0.0], [40.0], [80.0]]), np.array([False, True, True])
    offset = np.array([0.3, -0.7, 0.0])
    sign = np.where(crashed, -1.0, 1.0)
    data = HybridData(X, np.full((1, 3), np.nan), sign[None], np.zeros(3, dtype=bool), offset=offset)
    h = Hyperparameters(np.array([1.0]), 1.7, mean=0.2, noise_std=0.1, threshold=0.9, crash_noise_std=0.4)
    exact = log_ndtr(sign * (0.9 + offset - 0.2) / np.sqrt(1.7 + 0.4**2)).sum()
    np.testing.assert_allclose(condition(data, (h,)).log_evidence, exact, rtol=1e-8)


def test_without_labels_the_likelihood_changes_nothing_like_one_beside_a_label():
    mu, v = np.array([[0.3, -2.0, 5.0]]), np.array([[1.0, 0.2, 3.0]])
    levels, scatter, nobody = np.zeros((1, 1)), np.full((1, 1), 0.1), np.zeros(3, dtype=bool)
    silent = StepLikelihood(np.zeros((1, 3)), nobody, levels, scatter).tilted(mu, v)
    labelled = StepLikelihood(np.array([[0.0, 0.0, 1.0]]), nobody, levels, scatter).tilted(mu, v)
    for ours, theirs in zip(silent, labelled, strict=True):
        np.testing.assert_allclose(ours[..., :2], theirs[..., :2], atol=1e-15)
