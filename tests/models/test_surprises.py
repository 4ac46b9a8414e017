"""How far a measurement lies from what the other trials say of it, against leaving each out."""

import numpy as np

from crashbo.models import latent
from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Hyperparameters
from crashbo.models.regression import measured_data


def _hypers(D: int) -> Hyperparameters:
    return Hyperparameters(np.full(D, 0.4), 2.0, mean=0.3, noise_std=0.05, threshold=1.2, crash_noise_std=0.05)


def test_a_surprise_is_the_distance_from_the_prediction_without_the_trial() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((12, 2))
    X[5] = X[2]  # a repeat
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(12)
    h = _hypers(2)
    found = latent.condition(measured_data(X, y), (h,)).surprises(0)
    for i in range(12):
        rest = np.arange(12) != i
        mean, var = latent.condition(measured_data(X[rest], y[rest]), (h,)).predict(0, X[i : i + 1])
        np.testing.assert_allclose(found[i], (y[i] - mean[0]) / np.sqrt(var[0] + 0.05**2), rtol=1e-6)


def test_a_trial_without_a_measurement_surprises_nobody() -> None:
    X = np.array([[0.1], [0.5], [0.9]])
    data = HybridData(X, np.array([[0.2, 0.4, np.nan]]), np.array([[1.0, 1.0, -1.0]]), np.zeros(3, dtype=bool))
    found = latent.condition(data, (_hypers(1),)).surprises(0)
    assert found[2] == 0.0
    assert np.all(found[:2] != 0.0)
