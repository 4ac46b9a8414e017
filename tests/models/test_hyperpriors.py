"""Hyperpriors: derivatives against differences, and the paper's against scipy.stats."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crashbo.models import hyperpriors
from crashbo.models.hyperpriors import Beta, Gamma, Gumbel, LogNormal, Normal
from crashbo.models.latent import Hyperparameters

SOFT_WALL = Gumbel(0.3, 0.8, (-5.0, 20.0))
DENSITIES = [LogNormal(0.4, 1.0, (0.02, 30.0)), Normal(1.5), SOFT_WALL, Gamma(1.3), Beta(1.5, 15.0)]
H = Hyperparameters(np.array([0.1, 0.12]), 1.7, mean=0.3, noise_std=0.08, threshold=2.1, crash_noise_std=0.03)


@pytest.mark.parametrize("density", DENSITIES, ids=lambda density: type(density).__name__)
def test_a_densitys_derivative_is_its_difference_quotient(density):
    low, high = density.bounds
    x = np.linspace(low + 1e-3 * (high - low), high - 1e-3 * (high - low), 41)
    step = 1e-6 * (high - low)
    quotient = (density.log(x + step)[0] - density.log(x - step)[0]) / (2.0 * step)
    np.testing.assert_allclose(density.log(x)[1], quotient, rtol=1e-4, atol=1e-5)
    assert low <= density.start <= high


def test_the_papers_densities_are_the_papers():
    gamma, beta = Gamma(1.0), Beta(1.5, 15.0)
    assert gamma.bounds == pytest.approx((0.05, stats.gamma(2.0).ppf(0.75)))
    assert beta.bounds == pytest.approx((0.05, stats.beta(1.5, 15.0).ppf(0.75)))
    assert beta.bounds[1] == pytest.approx(0.13, abs=0.005)  # "cap lengthscales at 0.13"
    for density, reference, x in ((gamma, stats.gamma(2.0), [0.2, 2.0]), (beta, stats.beta(1.5, 15.0), [0.06, 0.12])):
        np.testing.assert_allclose(np.diff(density.log(np.array(x))[0]), np.diff(reference.logpdf(x)), rtol=1e-10)
    np.testing.assert_allclose(SOFT_WALL.log(np.array([0.0, 3.0]))[0], stats.gumbel_r(0.3, 0.8).logpdf([0.0, 3.0]))


@pytest.mark.parametrize("prior", [hyperpriors.weak(2), hyperpriors.paper()], ids=["weak", "paper"])
def test_the_gradient_of_a_hyperprior_is_its_difference_quotient(prior):
    learnt = prior.learnt()
    _, gradient = prior.log_density(H, learnt, 1.5)
    for name in ("outputscale", "mean", "noise_std", "threshold", "crash_noise_std"):
        step = 1e-6
        up, down = (replace(H, **{name: getattr(H, name) + sign * step}) for sign in (1.0, -1.0))
        quotient = (prior.log_density(up, learnt, 1.5)[0] - prior.log_density(down, learnt, 1.5)[0]) / (2.0 * step)
        assert getattr(gradient, name) == pytest.approx(quotient, rel=1e-5, abs=1e-6), name


def test_weak_lengthscales_grow_with_the_square_root_of_the_dimension():
    assert hyperpriors.weak(16).lengthscales.start == pytest.approx(4.0 * hyperpriors.weak(1).lengthscales.start)
