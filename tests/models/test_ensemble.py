"""An ensemble against the integral over hyperparameters that it stands for, and against its own members."""

from dataclasses import replace

import numpy as np
import pytest

from crashbo.models import ensemble, hyperpriors, latent
from crashbo.models.crash import hybrid_data, parametrise_all
from crashbo.models.fit import fit
from crashbo.search.acquisition import LogGamma


def trials(seed, n=12, D=2, G=1):
    """Draws of a rugged load: successes with its measurement, crashes without."""
    rng = np.random.default_rng(seed)
    X, phase = rng.random((n, D)), rng.uniform(0.0, 6.0, (G, D))
    load = np.stack([np.sin(5.0 * X + phase[j]).sum(axis=1) for j in range(G)], axis=1)
    crashed = np.any(load > 0.7, axis=1)
    Y = np.where(crashed[:, None], np.nan, load + 0.02 * rng.standard_normal(load.shape))
    return X, Y, crashed


def gathered(seed=0, scale=1.0, order=None, **kwargs):
    X, Y, crashed = trials(seed, **kwargs)
    order = np.arange(len(X)) if order is None else order
    data = hybrid_data(X[order], scale * Y[order], crashed[order])
    parametrisations = parametrise_all(
        data, hyperpriors.weak(X.shape[1]), noise_std=[None] * len(data.Y), thresholds=[None] * len(data.Y)
    )
    fitted = fit(data, parametrisations)
    return ensemble.gather(fitted.posterior, parametrisations, np.full(len(parametrisations), 0.1 * scale)), fitted


def points(m=7, D=2):
    return np.random.default_rng(3).random((m, D))


@pytest.mark.parametrize("G", [1, 2])
def test_predictions_are_those_of_the_members(G):
    found, _ = gathered(G=G)
    X = np.vstack([points(), found.members[0].data.X[:2], found.members[0].data.X[2:3] + 1e-9])
    for j in range(G):
        mean, var, pullback = found.predict_with_pullback(j, X)
        np.testing.assert_allclose(found.predict(j, X)[0], mean, rtol=1e-12)
        slopes = np.random.default_rng(4).standard_normal((2, *mean.shape))
        total = np.zeros_like(X)
        for i, member in enumerate(found.members):
            *moments, alone = member.predict_with_pullback(j, X)
            np.testing.assert_allclose((mean[i], var[i]), moments, rtol=1e-7, atol=1e-7)
            total += alone(slopes[0, i], slopes[1, i])
        np.testing.assert_allclose(pullback(*slopes), total, rtol=1e-7, atol=1e-7)


def test_weights_sum_to_one_and_opposite_members_have_opposite_hyperparameters():
    found, fitted = gathered()
    assert np.exp(found.log_weights).sum() == pytest.approx(1.0)
    mode = np.log(fitted.posterior.hypers[0].lengthscales)
    first, second, opposite, _ = (np.log(m.hypers[0].lengthscales) - mode for m in found.members[1:])
    np.testing.assert_allclose(first, -opposite, atol=1e-9)
    assert np.linalg.norm(first - second) > 0.1


def test_after_many_trials_those_that_hardly_count_are_left_out_and_the_others_keep_their_proportions(monkeypatch):
    everybody, _ = gathered()
    monkeypatch.setattr(ensemble, "FEW_TRIALS", 0)
    found, _ = gathered()
    weights = np.exp(everybody.log_weights)
    heard = weights >= 0.05
    assert heard[0]
    assert 1 < heard.sum() < len(weights)
    np.testing.assert_allclose(np.exp(found.log_weights), weights[heard] / weights[heard].sum())
    kept = [m.hypers[0].outputscale for m in found.members]
    assert kept == [m.hypers[0].outputscale for m, h in zip(everybody.members, heard, strict=True) if h]


def test_units_do_not_matter():
    small, large = gathered(scale=1.0)[0], gathered(scale=1e6)[0]
    np.testing.assert_allclose(LogGamma(small)(points()), LogGamma(large)(points()), atol=1e-6)


def test_the_order_of_the_trials_does_not_matter():
    found, turned = gathered()[0], gathered(order=np.arange(12)[::-1])[0]
    np.testing.assert_allclose(LogGamma(found)(points()), LogGamma(turned)(points()), atol=1e-4)


def test_log_gamma_s_gradient_is_its_slope():
    gamma, X, h = LogGamma(gathered(G=2)[0]), points(), 1e-5
    value, gradient = gamma.with_gradient(X)
    np.testing.assert_allclose(value, gamma(X), rtol=1e-9)
    for d in range(2):
        step = h * np.eye(2)[d]
        np.testing.assert_allclose(
            gradient[:, d], (gamma(X + step) - gamma(X - step)) / (2.0 * h), rtol=1e-4, atol=1e-5
        )


def integrated(fitted, X, draws=700):
    """P(safe) averaged over the posterior of all hyperparameters but the threshold, by a random walk."""
    rng, start = np.random.default_rng(0), fitted.posterior
    parametrisation = fitted.parametrisations[0]
    parametrisation = replace(parametrisation, start=parametrisation.inside(start.hypers[0]), held=("threshold",))
    low, high = parametrisation.bounds()

    def at(theta):
        h = parametrisation.unpack(theta)
        post = latent.condition(start.data, (parametrisation.outside(h),), start=start.sites(), tolerance=1e-3)
        return post, post.log_evidence + parametrisation.log_prior(h)[0]

    theta = parametrisation.pack(parametrisation.start)
    post, value = at(theta)
    p = np.zeros(len(X))
    for _ in range(draws):
        moved = theta + 0.35 * rng.standard_normal(len(theta))
        if np.all((moved > low) & (moved < high)):
            there, new = at(moved)
            if np.log(rng.random()) < new - value:
                theta, post, value = moved, there, new
        p += np.exp(LogGamma.of(post)(X)) / draws
    return p


def test_an_ensemble_comes_closer_to_the_integral_over_hyperparameters_than_the_mode():
    X, errors = points(100), []
    for seed in range(6):
        found, fitted = gathered(seed, n=10)
        truth = integrated(fitted, X)
        certain = replace(found, spreads=np.zeros_like(found.spreads))
        guesses = LogGamma(certain), LogGamma.of(fitted.posterior)
        errors.append([np.abs(np.exp(guess(X)) - truth).mean() for guess in guesses])
    ensemble_s, mode_s = np.mean(errors, axis=0)
    assert ensemble_s < 0.9 * mode_s
