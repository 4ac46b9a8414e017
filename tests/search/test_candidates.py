"""The candidates of a search: where a study looks."""

import numpy as np

from crashbo.search.acquisition import Flat
from crashbo.search.candidates import Apart, Box
from crashbo.search.space import Float, Int, Space

SPACE = Space({"gain": Float(0.0, 1.0), "legs": Int(2, 6)})


def test_near_the_successes_is_a_little_beyond_them_in_what_is_continuous():
    box = Box.near(SPACE, np.array([[0.5, 0.5], [0.05, 0.75]]))
    np.testing.assert_allclose(box.low, [0.0, 0.0])
    np.testing.assert_allclose(box.high, [0.6, 1.0])


def test_a_utility_falls_to_nothing_where_trials_are_under_way_and_is_itself_far_away():
    apart = Apart(Flat(), np.array([[0.2, 0.2], [0.6, 0.3]]), np.array([0.02, 0.05]))
    here, beside, far = apart(np.array([[0.2, 0.2], [0.21, 0.2], [0.9, 0.9]]))
    assert here < -15.0
    assert here < beside < -1.0
    np.testing.assert_allclose(far, 0.0, atol=1e-12)


def test_the_gradient_of_a_utility_apart_is_its_slope():
    apart = Apart(Flat(), np.array([[0.2, 0.2], [0.6, 0.3]]), np.array([0.1, 0.2]))
    X, h = np.random.default_rng(0).random((7, 2)), 1e-6
    value, gradient = apart.with_gradient(X)
    np.testing.assert_allclose(value, apart(X))
    steps = [(apart(X + h * e) - apart(X - h * e)) / (2.0 * h) for e in np.eye(2)]
    np.testing.assert_allclose(gradient, np.stack(steps, axis=1), rtol=1e-5, atol=1e-7)
