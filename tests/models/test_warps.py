"""Warps of readings: monotone, exactly undone, and with the slope that makes densities of them."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from crashbo.models.warps import warps

READINGS = np.array([3.0, 4.5, np.nan, 5.0, 9.0, 6.5, 7.0, 3.5])
WARPS = warps(READINGS, 2.0)
AROUND = np.linspace(2.5, 12.0, 50)


@pytest.mark.parametrize("warp", WARPS)
def test_a_warp_rises_and_is_undone(warp):
    z = warp(AROUND)
    assert np.all(np.diff(z) > 0.0)
    np.testing.assert_allclose(warp.inverse(z), AROUND)


@pytest.mark.parametrize("warp", WARPS)
def test_its_rate_is_its_slope(warp):
    slopes = (warp(AROUND + 1e-6) - warp(AROUND - 1e-6)) / 2e-6
    np.testing.assert_allclose(warp.rate(AROUND), slopes, rtol=1e-6)


@pytest.mark.parametrize("warp", WARPS)
def test_a_density_of_warped_readings_is_one_of_readings(warp):
    z = float(warp(np.array([5.0]))[0])
    total, _ = quad(lambda y: norm.pdf(warp(np.array(y)), z, 0.05) * warp.rate(np.array(y)), 3.0, 9.0, points=[5.0])
    assert total == pytest.approx(1.0, abs=1e-6)


def test_prior_probabilities_sum_to_one():
    assert sum(warp.prior for warp in WARPS) == pytest.approx(1.0)


@pytest.mark.parametrize("y", [np.full(9, 2.0), np.array([1.0, 2.0, np.nan]), np.full(9, np.nan)])
def test_readings_that_say_nothing_of_their_scale_are_not_warped(y):
    (none,) = warps(y, 1.0)
    assert none.prior == 1.0


def test_what_was_not_measured_stays_so():
    for warp in WARPS:
        assert np.isnan(warp(READINGS)[2])
        assert np.isfinite(warp.rate(READINGS)).all()
