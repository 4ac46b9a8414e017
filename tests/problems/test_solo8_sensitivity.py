"""The sensitivity command of Solo8: its estimator is right where the answer is known."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "solo8" / "sensitivity.py"


@pytest.fixture(scope="module")
def sensitivity():
    spec = importlib.util.spec_from_file_location("solo8_sensitivity", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_additive_function_has_its_variances_as_indices(sensitivity):
    weights = np.array([1.0, 2.0, 0.0, 0.5])
    X = sensitivity.design(1024, 0)
    first, total = sensitivity.indices(X @ weights)
    share = weights**2 / np.sum(weights**2)
    np.testing.assert_allclose(first, share, atol=0.02)
    np.testing.assert_allclose(total, share, atol=0.02)


def test_a_product_shows_in_the_totals_alone(sensitivity):
    X = sensitivity.design(4096, 1) - 0.5
    first, total = sensitivity.indices(X[..., 0] * X[..., 1])
    np.testing.assert_allclose(first, 0.0, atol=0.03)
    np.testing.assert_allclose(total, [1.0, 1.0, 0.0, 0.0], atol=0.05)


def test_the_interval_holds_the_estimate(sensitivity):
    heights = sensitivity.design(128, 2) @ np.array([1.0, 2.0, 0.0, 0.5])
    low, high = sensitivity.bootstrap(heights, rounds=100)
    found = sensitivity.indices(heights)
    assert np.all((low <= found) & (found <= high))
