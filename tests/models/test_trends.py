"""Drift and growing noise: Bayes factors against dense algebra, against their null, and on what they are for."""

import math

import numpy as np
import pytest

from crashbo.models import trends
from crashbo.numerics.kernels import MATERN52

LENGTHSCALES = np.array([0.4, 0.6])


def drawn(seed, n=30, drift=0.0, noise=0.02, growth=1.0):
    """A function drawn from a GP at places chosen at random, over time."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    L = np.linalg.cholesky(MATERN52.gram(X, LENGTHSCALES)[0] + 1e-10 * np.eye(n))
    t = np.linspace(0.0, 1.0, n)
    return X, 5.0 + 3.0 * (L @ rng.standard_normal(n) + drift * t + noise * growth**t * rng.standard_normal(n))


def dense(C, y):
    """log p(y) with m flat and v flat in its logarithm, up to a constant, by quadrature over m and closed form in v."""
    n, inverse = len(y), np.linalg.inv(C)
    m = np.linspace(y.mean() - 60.0, y.mean() + 60.0, 240_001)
    squares = y @ inverse @ y - 2.0 * m * (inverse @ y).sum() + m**2 * inverse.sum()
    log = -0.5 * np.linalg.slogdet(C)[1] - 0.5 * n * np.log(squares)
    return float(np.log(np.sum(np.exp(log - log.max()))) + log.max())


def test_the_density_is_that_of_dense_algebra():
    X, y = drawn(0, n=6)
    w = np.exp(np.linspace(-1.0, 1.0, 6))
    grams = [MATERN52.gram(X, s * LENGTHSCALES)[0] for s in (1.0, 0.5)]
    (a, b), (i, j) = (trends.Spectrum.of(K, w).log_density(y[:, None])[:, 0] for K in grams), (-1, -3)
    one, other = (dense(K + trends._NOISES[k] * np.diag(w), y) for K, k in zip(grams, (i, j), strict=True))
    assert a[i] - b[j] == pytest.approx(one - other, abs=1e-3)


def test_a_drift_adds_its_covariance():
    X, y = drawn(1, n=8)
    K, d = MATERN52.gram(X, LENGTHSCALES)[0], np.linspace(0.0, 1.0, 8)
    values, sizes = trends.Spectrum.of(K, np.ones(8)).moved(y, d, 0.7)
    moved = K + 0.49 * np.outer(d, d)
    assert values == pytest.approx(trends.Spectrum.of(moved, np.ones(8)).log_density(y[:, None])[:, 0], abs=1e-8)
    inverse = np.linalg.inv(moved + trends._NOISES[-1] * np.eye(8))
    mean = (inverse @ y).sum() / inverse.sum()
    assert sizes[-1] == pytest.approx(0.49 * d @ inverse @ (y - mean), rel=1e-9)


def test_where_nothing_drifts_a_bayes_factor_is_one_at_most_in_the_mean():
    factors = [math.exp(trends.drift(*drawn(seed), LENGTHSCALES).log_factor) for seed in range(60)]
    assert np.mean(factors) < 1.5
    assert max(factors) < math.exp(5.0)


def test_where_the_noise_stays_a_bayes_factor_is_one_at_most_in_the_mean():
    factors = [math.exp(trends.growth(*drawn(seed, n=20, noise=0.1), LENGTHSCALES).log_factor) for seed in range(25)]
    assert np.mean(factors) < 1.5


def test_a_drift_is_found_with_its_size():
    X, y = drawn(3, drift=1.0)
    found = trends.drift(X, y, LENGTHSCALES)
    assert found.log_factor > 5.0
    assert found.size == pytest.approx(3.0, rel=0.25)


def test_a_change_at_once_is_found_with_its_time():
    X, y = drawn(4, n=40)
    y[20:] += 2.0
    found = trends.drift(X, y, LENGTHSCALES)
    assert found.log_factor > 5.0
    assert found.turn == 20


def test_growing_noise_is_found_and_shrinking_noise_is_not():
    X, y = drawn(5, n=50, noise=0.01, growth=50.0)
    assert trends.growth(X, y, LENGTHSCALES).log_factor > 5.0
    assert trends.growth(X[::-1], y[::-1], LENGTHSCALES).log_factor < 0.0


def test_units_do_not_matter():
    X, y = drawn(6, drift=0.7)
    for scale in (1e-12, 1e12):
        found = (
            trends.drift(X, 7.0 + scale * y, LENGTHSCALES) if scale > 1.0 else trends.drift(X, scale * y, LENGTHSCALES)
        )
        assert found.log_factor == pytest.approx(trends.drift(X, y, LENGTHSCALES).log_factor, rel=1e-3)


@pytest.mark.parametrize("y", [np.zeros(0), np.ones(3), np.full(20, 2.0)])
def test_little_or_constant_values_say_nothing(y):
    X = np.random.default_rng(0).random((len(y), 2))
    assert trends.drift(X, y, LENGTHSCALES) == trends.NONE
    assert trends.growth(X, y, LENGTHSCALES) == trends.NONE


def test_normal_scores_keep_the_order_and_share_ranks():
    scores = trends.normal_scores(np.array([3.0, 1.0, 2.0, 2.0, 1e9]))
    assert scores[2] == scores[3]
    assert scores[1] < scores[2] < scores[0] < scores[4] < 2.0
