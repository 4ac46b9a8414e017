"""One lengthscale for several coordinates: a fit moves it as one, counts it once, and knows its slope."""

import numpy as np
import pytest

from crashbo.models import hyperpriors, latent
from crashbo.models.fit import fit, log_posterior
from crashbo.models.parametrisation import parametrise
from crashbo.models.regression import measured_data

TIED = (0, 1, 1, 1, 2, 2)  # a number, a choice of three and one of two


@pytest.fixture
def problem():
    """Costs over two choices and a number, and the fit's parametrisation."""
    rng = np.random.default_rng(0)
    n = 25
    X = np.column_stack([rng.random(n), np.eye(3)[rng.integers(0, 3, n)], np.eye(2)[rng.integers(0, 2, n)]])
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] - 0.5 * X[:, 3] + 0.3 * X[:, 4] + 0.05 * rng.standard_normal(n)
    data, prior = measured_data(X, y), hyperpriors.of_cost(6, TIED)
    return data, parametrise(data.Y[0], data.sign[0], prior, dimension=6, labelled=False)


def test_the_coordinates_of_a_choice_come_out_with_one_lengthscale(problem):
    data, p = problem
    scales = fit(data, (p,)).posterior.hypers[0].lengthscales
    assert scales[1] == scales[2] == scales[3]
    assert scales[4] == scales[5]
    assert len(np.unique(scales)) == 3


def test_its_slope_is_the_difference_quotient(problem):
    data, p = problem
    theta = p.pack(p.start) + 0.1 * np.arange(len(p.pack(p.start)))

    def value(theta):
        return log_posterior(latent.condition(data, (p.outside(p.unpack(theta)),)), (p,))

    h = p.unpack(theta)
    post = latent.condition(data, (p.outside(h),))
    slopes = p.chain(h, post.gradient(0).in_units(p.scale).plus(p.log_prior(h)[1]))
    steps = 1e-5 * np.eye(len(theta))
    quotients = [(value(theta + step) - value(theta - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slopes, quotients, rtol=1e-4, atol=1e-4)
    assert len(theta) == 3 + 3  # lengthscales; outputscale, mean, noise


def test_the_prior_counts_it_once_and_by_the_number_of_parameters():
    prior, separate = hyperpriors.of_cost(6, TIED), hyperpriors.of_cost(3)
    assert prior.lengthscales == separate.lengthscales
    scales = np.array([0.3, 0.7, 1.9])
    h = [latent.Hyperparameters(s, 1.0) for s in (scales[list(TIED)], scales)]
    logs = [a.log_density(b, ("lengthscales",), 0.0)[0] for a, b in zip((prior, separate), h, strict=True)]
    assert logs[0] == pytest.approx(logs[1])
    np.testing.assert_array_equal(prior.log_of_lengthscales(h[0].lengthscales), separate.lengthscales.log(scales)[0])


def test_an_earlier_fit_with_a_lengthscale_per_coordinate_is_a_start(problem):
    _, p = problem
    earlier = latent.Hyperparameters(np.array([0.2, 1.0, 2.0, 4.0, 0.5, 0.5]), 1.0, 0.0, 0.1)
    started = p.started_from(earlier).start.lengthscales
    np.testing.assert_allclose(started, [0.2, 2.0, 2.0, 2.0, 0.5, 0.5])  # the geometric mean
