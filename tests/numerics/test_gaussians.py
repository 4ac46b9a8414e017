"""Gaussian tails against mpmath: in the far tails, doubles cannot check themselves."""

import mpmath as mp
import numpy as np
import pytest

from crashbo.numerics.gaussians import (
    log_expected_improvement,
    log_unit_improvement,
    tail,
    truncated_moments,
)

NEAR = np.concatenate([np.linspace(-30.0, 30.0, 121), [-6.0, -5.999999, -6.000001, 1e-9, -1e-9]])
FAR = np.concatenate([np.linspace(-200.0, -30.5, 35), np.linspace(30.5, 200.0, 35)])
LEAST = mp.mpf("1e-300")  # smaller numbers are at the end of the doubles


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(80):
        yield


def exact_moments(mean, var, bound, side):
    """Log mass, mean and variance by the textbook's formulas, with digits to spare."""
    mean, var, bound = mp.mpf(mean), mp.mpf(var), mp.mpf(bound)
    sign = 1 if side == "below" else -1
    std = mp.sqrt(var)
    z = sign * (bound - mean) / std
    above = mp.erfc(z / mp.sqrt(2)) / 2  # 1 - Phi(z), to full relative precision
    log_mass = mp.log1p(-above) if z > 0 else mp.log(mp.erfc(-z / mp.sqrt(2)) / 2)
    h = mp.npdf(z) / mp.exp(log_mass)
    return log_mass, mean - sign * std * h, var * (1 - h * (h + z))


def exact_log_improvement(mean, var, best):
    std = mp.sqrt(mp.mpf(var))
    z = (mp.mpf(best) - mp.mpf(mean)) / std
    return mp.log(std) + mp.log(mp.npdf(z) + z * mp.erfc(-z / mp.sqrt(2)) / 2)


def relative_error(value, exact):
    return float(abs(mp.mpf(float(value)) - exact) / max(abs(exact), LEAST))


@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize("zs", [NEAR, FAR], ids=["to 30", "to 200"])
def test_moments_of_a_cut_unit_gaussian_keep_their_digits_in_both_tails(zs, side):
    found = truncated_moments(0.0, 1.0, zs, side)
    for i, z in enumerate(zs):
        for name, value, exact in zip(found._fields, (f[i] for f in found), exact_moments(0, 1, z, side), strict=True):
            assert relative_error(value, exact) < 1e-12, (name, z, value, exact)


@pytest.mark.parametrize("side", ["above", "below"])
def test_moments_of_any_gaussian_are_those_of_the_unit_one_moved_and_stretched(side):
    rng = np.random.default_rng(0)
    mean = rng.normal(0.0, 10.0, 150)
    var = np.exp(rng.normal(0.0, 3.0, 150))
    bound = mean + rng.uniform(-200.0, 200.0, 150) * np.sqrt(var)
    found = truncated_moments(mean, var, bound, side)
    for i in range(len(mean)):
        log_mass, exact_mean, exact_var = exact_moments(mean[i], var[i], bound[i], side)
        assert relative_error(found.log_mass[i], log_mass) < 1e-8 or abs(log_mass) < 1e-12
        assert relative_error(found.var[i], exact_var) < 1e-8
        # A mean may lie anywhere beside zero: its own scale is that of the numbers it came from.
        assert abs(found.mean[i] - float(exact_mean)) < 1e-12 * (abs(mean[i]) + abs(bound[i]))


def test_moments_stay_finite_and_in_order_far_beyond_what_mpmath_was_asked():
    z = np.array([-1e150, -1e8, -1e4, 1e4, 1e8, 1e150])
    for side, sign in (("below", 1.0), ("above", -1.0)):
        found = truncated_moments(0.0, 1.0, sign * z, side)
        assert np.all(np.isfinite(found.log_mass) | (np.abs(z) > 1e100))
        assert np.all((found.var > 0.0) | (np.abs(z) > 1e100))
        assert np.all(found.var <= 1.0)
        assert np.all(sign * found.mean <= sign * sign * z)
        np.testing.assert_allclose(found.var[1:3], z[1:3] ** -2, rtol=1e-7)


def test_the_two_sides_of_a_bound_are_mirror_images_and_make_up_the_whole():
    z = np.linspace(-6.0, 6.0, 49)
    below, above = truncated_moments(0.5, 2.0, z, "below"), truncated_moments(0.5, 2.0, z, "above")
    mirrored = truncated_moments(-0.5, 2.0, -z, "below")
    np.testing.assert_array_equal(above.log_mass, mirrored.log_mass)
    np.testing.assert_array_equal(above.mean, -mirrored.mean)
    mass = np.exp([below.log_mass, above.log_mass])
    means, variances = np.array([below.mean, above.mean]), np.array([below.var, above.var])
    np.testing.assert_allclose(mass.sum(axis=0), 1.0, rtol=1e-14)
    np.testing.assert_allclose((mass * means).sum(axis=0), 0.5, rtol=1e-13)
    np.testing.assert_allclose((mass * (variances + (means - 0.5) ** 2)).sum(axis=0), 2.0, rtol=1e-13)


def test_moments_broadcast_and_take_plain_numbers():
    found = truncated_moments([[0.0], [1.0]], 1.0, [0.0, 1.0, -50.0], "below")
    assert all(field.shape == (2, 3) for field in found)
    single = truncated_moments(1.0, 1.0, -50.0, "below")
    assert [float(field) for field in single] == [float(field[1, 2]) for field in found]


def test_a_side_that_is_none_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^side must be 'above' or 'below'; got 'left'\. "):
        truncated_moments(0.0, 1.0, 0.0, "left")


def test_a_cut_far_above_leaves_the_gaussian_whole():
    cut = tail(np.array([40.0, 1e300]))
    np.testing.assert_array_equal([cut.log_mass, cut.hazard, cut.ratio], [[0.0] * 2, [0.0] * 2, [1.0] * 2])


def test_at_the_end_of_the_doubles_and_beyond_are_the_right_limits():
    z = np.array([-np.inf, -1e300, 1e300, np.inf])
    cut = tail(z)
    np.testing.assert_array_equal(cut.log_mass, [-np.inf, -np.inf, 0.0, 0.0])
    np.testing.assert_array_equal(cut.hazard, [np.inf, 1e300, 0.0, 0.0])
    np.testing.assert_array_equal(cut.ratio, [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(truncated_moments(0.0, 1.0, z, "below").mean, [-np.inf, -1e300, 0.0, 0.0])
    np.testing.assert_array_equal(truncated_moments(0.0, 1.0, z, "above").mean, [0.0, 0.0, 1e300, np.inf])
    value, slope = log_unit_improvement(z)
    np.testing.assert_allclose(value, [-np.inf, -np.inf, np.log(1e300), np.inf])
    np.testing.assert_allclose(slope, [np.inf, 1e300, 1e-300, 0.0])
    np.testing.assert_array_equal(log_expected_improvement(0.0, 1.0, z), value)


@pytest.mark.parametrize("z", [40.0, 5.0, 0.5, 1e-8, 0.0, -1e-8, -0.5, -5.99, -6.01, -30.0, -200.0, -1e4, -1e6])
def test_log_expected_improvement_keeps_its_digits_down_to_minus_a_million(z):
    mean, var = 2.0, 0.25
    best = mean + z * np.sqrt(var)
    with mp.workdps(80):
        exact = exact_log_improvement(mean, var, best)
    assert relative_error(log_expected_improvement(mean, var, best), exact) < 1e-13


@pytest.mark.parametrize("z", [10.0, 0.9, 0.0, -0.5, -5.999, -6.001, -30.0, -200.0, -1e4, -1e6])
def test_the_slope_of_log_improvement_is_its_difference_quotient(z):
    step = mp.mpf("1e-20")
    with mp.workdps(120):
        difference = exact_log_improvement(0, 1, mp.mpf(z) + step) - exact_log_improvement(0, 1, mp.mpf(z) - step)
        quotient = difference / (2 * step)
    assert relative_error(log_unit_improvement(z)[1], quotient) < 1e-10


def test_log_improvement_and_its_slope_run_smoothly_through_the_seams_of_their_branches():
    for seam in (0.0, -6.0):
        z = seam + np.linspace(-1e-3, 1e-3, 2001)
        value, slope = log_unit_improvement(z)
        np.testing.assert_allclose(np.diff(value) / np.diff(z), 0.5 * (slope[1:] + slope[:-1]), rtol=1e-7)
        assert np.all(np.diff(slope) < 0.0)  # log EI is concave
