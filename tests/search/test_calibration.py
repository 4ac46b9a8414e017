"""What a study's own proposals say of its P(safe)."""

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from crashbo.search.calibration import Calibration


def fared(n=30, seed=0, slope=1.0, shift=0.0):
    """P(safe) as predicted, and which trials crashed, where the truth has these log odds."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.3, 0.99, n)
    truth = 1.0 / (1.0 + (p / (1.0 - p)) ** -slope * np.exp(-shift))
    return p, rng.random(n) >= truth


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_most_probable_correction(seed):
    p, crashed = fared(seed=seed, slope=0.5, shift=-0.5)

    def negative(ab):
        z = ab[0] * np.log(p / (1.0 - p)) + ab[1]
        likelihood = np.sum(np.where(crashed, -np.logaddexp(0.0, z), -np.logaddexp(0.0, -z)))
        return -likelihood + 0.5 * ((ab[0] - 1.0) / 0.3) ** 2 + 0.5 * (ab[1] / 0.7) ** 2

    best = minimize(negative, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}).x
    found = Calibration.of(p, crashed)
    np.testing.assert_allclose([found.slope, found.shift], best, atol=1e-5)


def test_before_anything_was_told_the_model_is_believed():
    none = np.zeros(0)
    assert (
        Calibration.of(none, none.astype(bool))
        == Calibration.of(np.full(3, np.nan), np.ones(3, dtype=bool))
        == Calibration()
    )
    assert Calibration().corrected(0.9) == pytest.approx(0.9)


@pytest.mark.parametrize("calibration", [Calibration(), Calibration(0.2, 2.0), Calibration(1.4, -1.5)])
@pytest.mark.parametrize("p", [1e-300, 1e-9, 0.2, 0.5, 0.97, 1.0 - 1e-9])
def test_log_odds_get_a_slope_and_a_shift_however_sure_the_model_is(calibration, p):
    with mpmath.workdps(40):
        odds = (mpmath.mpf(p) / (1 - mpmath.mpf(p))) ** calibration.slope * mpmath.exp(calibration.shift)
        exact = float(mpmath.log(odds / (1 + odds)))
    value, slope = calibration.log_corrected(np.log([p]))
    assert value[0] == pytest.approx(exact, rel=1e-6)
    h = 1e-6 * min(1.0, 1.0 - p)
    beside, _ = calibration.log_corrected(np.log([p]) + np.array([-h, h]))
    assert slope[0] == pytest.approx((beside[1] - beside[0]) / (2.0 * h), rel=1e-4)


def test_a_higher_p_is_never_corrected_to_a_lower_one_and_certainty_stays_finite():
    log_p = np.concatenate([-np.logspace(6, -20, 400), [0.0]])
    for calibration in (Calibration(), Calibration(0.2, 2.0), Calibration(1.4, -1.5)):
        value, slope = calibration.log_corrected(log_p)
        assert np.all(np.diff(value) >= 0.0)
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(slope))


def test_crashes_that_were_not_expected_lower_it_and_luck_raises_it():
    p = np.full(12, 0.9)
    lucky, unlucky = Calibration.of(p, np.zeros(12, dtype=bool)), Calibration.of(p, np.arange(12) % 2 == 0)
    assert lucky.corrected(0.9) > 0.9 > unlucky.corrected(0.9)


def test_a_model_that_is_too_sure_both_ways_is_believed_less_both_ways():
    p = np.tile([0.2, 0.97], 15)
    calibration = Calibration.of(p, np.arange(30) % 4 == 1)  # the daring ones never crash, half of the others do
    assert calibration.slope < 0.7
    assert calibration.corrected(0.2) > 0.2
    assert calibration.corrected(0.97) < 0.97


def test_it_looks_at_the_last_thirty_proposals_only():
    p, crashed = fared(30)
    before = np.concatenate([np.full(20, 0.99), [np.nan], p]), np.concatenate([np.ones(21, dtype=bool), crashed])
    assert Calibration.of(*before) == Calibration.of(p, crashed)


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("crashed", [False, True])
def test_a_model_that_is_sure_is_no_harm(p, crashed):
    calibration = Calibration.of(np.full(40, p), np.full(40, crashed))
    assert 0.0 <= calibration.corrected(p) <= 1.0
