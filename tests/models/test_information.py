from dataclasses import replace

import numpy as np
import pytest

from crashbo.models import information as module
from crashbo.models.hybrid import HybridData
from crashbo.models.information import information
from crashbo.models.latent import Hyperparameters, condition
from crashbo.numerics.kernels import MATERN52


@pytest.fixture
def measured():
    """A regression: with no labels the evidence is a Gaussian's, whose information is known."""
    rng = np.random.default_rng(0)
    X = rng.random((12, 2))
    data = HybridData(X, rng.standard_normal((1, 12)), np.zeros((1, 12)), np.zeros(12, dtype=bool))
    return condition(data, (Hyperparameters(np.array([0.4, 0.9]), 1.7, 0.2, 0.3),))


def covariance(hypers, X):
    """Of the measurements, from log lengthscales, log outputscale and log noise."""
    K, _ = MATERN52.gram(X, hypers.lengthscales)
    return hypers.outputscale * K + hypers.noise_std**2 * np.eye(len(X))


def test_for_a_gaussian_it_is_the_textbooks(measured, monkeypatch):
    monkeypatch.setattr(module, "_PROBES", 40_000)  # so that the random signs average out
    h, X, step = measured.hypers[0], measured.data.X, 1e-6

    def moved(by):
        scales = np.exp(by)
        return covariance(
            replace(
                h,
                lengthscales=h.lengthscales * scales[:2],
                outputscale=h.outputscale * scales[2],
                noise_std=h.noise_std * scales[3],
            ),
            X,
        )

    C = np.linalg.inv(covariance(h, X))
    slopes = [C @ (moved(step * e) - moved(-step * e)) / (2.0 * step) for e in np.eye(4)]
    expected = np.array([[0.5 * np.trace(a @ b) for b in slopes] for a in slopes])
    found = information(measured, 0)
    rows = [0, 1, 2, 4]  # lengthscales, outputscale, noise
    np.testing.assert_allclose(found[np.ix_(rows, rows)], expected, rtol=0.03, atol=0.03)
    np.testing.assert_allclose(found[3, 3], h.outputscale * np.sum(C), rtol=1e-8)  # of the mean


def test_the_order_of_trials_does_not_matter(measured):
    order = np.random.default_rng(1).permutation(12)
    data = measured.data
    shuffled = HybridData(data.X[order], data.Y[:, order], data.sign, data.joint)
    np.testing.assert_allclose(
        information(condition(shuffled, measured.hypers), 0), information(measured, 0), rtol=1e-6, atol=1e-9
    )


def test_a_trial_about_which_nothing_is_known_yet_is_no_trouble():
    data = HybridData(np.array([[0.2], [0.7]]), np.array([[0.1, np.nan]]), np.array([[1.0, 0.0]]), np.zeros(2, bool))
    found = information(condition(data, (Hyperparameters(np.array([0.5]), 1.0, noise_std=0.1, threshold=1.0),)), 0)
    assert np.all(np.isfinite(found))
