"""What the course of a trial says of a threshold, against quadrature, sampling and finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import halfnorm, norm

from crashbo.models import GPCR, CrashModel, course, latent
from crashbo.models.course import Extent, Trips

SCALE = Extent(centre=0.5, spread=0.8)


def test_a_reading_that_was_survived_lies_below_the_threshold_up_to_its_noise():
    readings = np.array([0.9, np.nan, 1.2])
    found = course.survived(readings, 1.1, 0.1, 0.05)
    sigma = np.hypot(0.1, 0.05)
    assert found.log_mass == pytest.approx(np.sum(norm.logcdf((1.1 - np.array([0.9, 1.2])) / sigma)))


def overshoot_density(d, sigma, w):
    """Of c - r = u - sigma e, with u half-normal: by quadrature."""
    return quad(lambda u: halfnorm.pdf(u, scale=w) * norm.pdf(d - u, scale=sigma), 0.0, 12.0 * w)[0]


@pytest.mark.parametrize("readings", [[1.0], [0.7, 1.05, 1.1]])
def test_the_last_readings_before_crashes_have_the_density_of_rises_and_noise(readings):
    sigma, c = 0.1, 1.15
    rises, weights = SCALE.spread * course._RISES, np.exp(course._LOG_WEIGHTS)
    each = [np.prod([overshoot_density(c - r, sigma, w) for r in readings]) for w in rises]
    at_random = np.prod(norm.pdf(readings, SCALE.centre, SCALE.spread))
    found = course.crashed(np.array([*readings, np.nan]), c, sigma, 0.0, SCALE)
    assert found.log_mass == pytest.approx(np.log(weights @ each / at_random), abs=1e-6)


@pytest.mark.parametrize("readings", [[1.0], [0.7, 1.05, 1.1]])
def test_where_the_largest_rise_is_known_the_overshoot_is_a_share_of_it_unless_all_jumped(readings):
    sigma, c, rise = 0.1, 1.15, 0.2
    weights = (1.0 - course._P_JUMP) * np.exp(course._LOG_SHARES)
    each = [np.prod([overshoot_density(c - r, sigma, share * rise) for r in readings]) for share in course._SHARES]
    at_random = np.prod(norm.pdf(readings, SCALE.centre, SCALE.spread))
    jumped = course._P_JUMP * np.prod(norm.cdf((c - np.array(readings)) / sigma))
    found = course.crashed(np.array(readings), c, sigma, 0.0, SCALE, np.array(readings) + rise)
    assert found.log_mass == pytest.approx(np.log(weights @ each / at_random + jumped), abs=1e-6)


def test_crashes_with_and_without_a_known_rise_count_each_by_what_is_known():
    r, ahead = np.array([0.9, 1.0, np.nan]), np.array([np.nan, 1.2, np.nan])
    both = course.crashed(r, 1.15, 0.1, 0.0, SCALE, ahead).log_mass
    apart = course.crashed(r[:1], 1.15, 0.1, 0.0, SCALE), course.crashed(r[1:], 1.15, 0.1, 0.0, SCALE, ahead[1:])
    assert both == pytest.approx(sum(one.log_mass for one in apart))


@pytest.mark.parametrize("kind", ["survived", "crashed", "risen"])
@pytest.mark.parametrize(("name", "at"), [("in_threshold", 1), ("in_noise_std", 2), ("in_crash_noise_std", 3)])
def test_derivatives_agree_with_finite_differences(kind, name, at):
    given = [np.array([0.9, 1.1, 1.3]), 1.2, 0.08, 0.05]
    more = {"survived": (), "crashed": (SCALE,), "risen": (SCALE, given[0] + np.array([0.3, 0.1, np.nan]))}[kind]
    kind = "survived" if kind == "survived" else "crashed"

    def value(step):
        moved = [*given]
        moved[at] = given[at] + step
        return getattr(course, kind)(*moved, *more).log_mass

    slope = (value(1e-6) - value(-1e-6)) / 2e-6
    assert getattr(getattr(course, kind)(*given, *more), name) == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_a_machine_whose_last_readings_lie_anywhere_jumps_and_no_limit_helps():
    c, mass, last = np.linspace(1.3, 1.4, 6), np.full(6, 1.0 / 6.0), np.array([-0.3, 0.4, 0.9, 0.1, 1.2])
    assert Trips.of(c, mass, 0.05, last, SCALE, last + 0.02).mass.sum() < 1e-3
    assert Trips.of(c, mass, 0.05, last, SCALE, last + 1.0).mass.sum() > 0.5


@pytest.mark.parametrize("rise", [np.nan, 0.2])
@pytest.mark.parametrize("last", [[], [1.0], [0.8, 1.0, 1.02]])
def test_where_a_machine_trips_agrees_with_sampling(last, rise):
    rng, n, sigma = np.random.default_rng(0), 400_000, 0.05
    c, mass, last = np.linspace(0.9, 1.4, 6), np.full(6, 1.0 / 6.0), np.array(last)
    scales, log_weights = (SCALE.spread * course._RISES, course._LOG_WEIGHTS)
    if rise > 0.0:
        scales, log_weights = rise * course._SHARES, course._LOG_SHARES + np.log1p(-course._P_JUMP)
    drawn = rng.choice(c, n, p=mass)
    w = np.zeros(n)
    if len(last):
        for level in c:
            each = [np.prod([overshoot_density(level - r, sigma, scale) for r in last]) for scale in scales]
            shares = np.exp(log_weights) * each / np.prod(norm.pdf(last, SCALE.centre, SCALE.spread))
            jumped = course._P_JUMP * np.prod(norm.cdf((level - last) / sigma)) if rise > 0.0 else 0.0
            some = drawn == level
            drawn_from = np.append(shares, jumped) / (shares.sum() + jumped)
            w[some] = rng.choice(np.append(scales, -np.inf), some.sum(), p=drawn_from)  # a jump trips at no reading
    reading = drawn - w * np.abs(rng.standard_normal(n)) + sigma * rng.standard_normal(n)
    trips = Trips.of(c, mass, sigma, last, SCALE, last + rise)
    levels = np.linspace(0.6, 1.8, 241)
    tripped = trips.before(levels)
    for level in (0.7, 0.9, 1.05, 1.3):
        assert np.interp(level, levels, tripped) == pytest.approx(np.mean(reading < level), abs=0.004)
    peak = 1.0 + 0.15 * rng.standard_normal(n)
    doomed = trips.doomed(levels, 1.0, 0.15)
    for level in (0.7, 0.9, 1.0, 1.1):
        on = (peak > level) & (reading > level)
        assert np.interp(level, levels, doomed) == pytest.approx(np.mean(peak[on] > reading[on]), abs=0.02)


X = np.array([[0.1, 0.2], [0.4, 0.9], [0.6, 0.3], [0.9, 0.8], [0.8, 0.5]])
Y = np.array([0.2, 0.5, 0.9, np.nan, 1.0])
CRASHED = np.array([False, False, False, True, False])
STOPPED = np.array([False, False, False, False, True])
LAST = np.array([np.nan, np.nan, np.nan, 1.1, np.nan])
HYPERS = {"lengthscales": [0.5, 0.5], "outputscale": 1.0, "threshold": 1.2, "noise_std": 0.1, "crash_noise_std": 0.1}


def test_a_stopped_trial_has_no_label_and_its_reading_is_a_lower_bound_of_function_and_threshold():
    """The same as a censored reading at a trial of which nothing else is known, and the factor of the threshold."""
    found = GPCR.condition(X, Y, CRASHED, stopped=STOPPED, **HYPERS)
    data = found.posterior.data
    assert data.sign[0].tolist() == [1.0, 1.0, 1.0, -1.0, 0.0, -1.0]  # the last row is the lower bound
    assert data.lower[0, 5] == 1.0
    unwatched = latent.condition(replace(data, survived=None), found.posterior.hypers)
    survived = norm.logcdf((1.2 - 1.0) / np.hypot(0.1, 0.1))
    assert found.log_evidence == pytest.approx(unwatched.log_evidence + survived, abs=1e-9)
    assert found.predict(X)[0] == pytest.approx(unwatched.predict(0, X)[0])
    free = GPCR.condition(X[:4], Y[:4], CRASHED[:4], **HYPERS)
    assert found.predict(X[4:])[0][0] > free.predict(X[4:])[0][0]


def test_the_gradient_of_the_evidence_with_stops_and_last_readings_is_exact():
    gradient = GPCR.condition(X, Y, CRASHED, stopped=STOPPED, last=LAST, **HYPERS).log_evidence_gradient()
    for name in ("threshold", "noise_std", "crash_noise_std", "outputscale"):
        ends = [
            GPCR.condition(
                X, Y, CRASHED, stopped=STOPPED, last=LAST, **{**HYPERS, name: HYPERS[name] + step}
            ).log_evidence
            for step in (1e-5, -1e-5)
        ]
        assert gradient[name] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-4)


def test_a_stop_lifts_the_lower_end_of_the_interval_and_a_last_reading_lowers_the_upper_one():
    free = GPCR.fit(X[:4], Y[:4], CRASHED[:4])
    stopped = GPCR.fit(X, Y, CRASHED, stopped=STOPPED)
    both = GPCR.fit(X, Y, CRASHED, stopped=STOPPED, last=LAST)
    assert stopped.threshold_interval[0] > free.threshold_interval[0]
    assert both.threshold_interval[1] < stopped.threshold_interval[1]
    assert both.threshold_interval[0] < 1.1 < both.threshold_interval[1]


def test_last_readings_count_only_for_the_constraint_that_is_blamed():
    Y2 = np.column_stack([Y, Y])
    last = np.column_stack([LAST, LAST])
    parts = [HYPERS, HYPERS]
    alone = CrashModel.condition(X, Y2, CRASHED, blame=[None, None, None, [0], None], last=last, parts=parts)
    assert np.isnan(alone.posterior.data.last[1]).all()
    assert alone.posterior.data.last[0, 3] == 1.1
    unknown = CrashModel.condition(X, Y2, CRASHED, last=last, parts=parts)
    assert np.isnan(unknown.posterior.data.last).all()


def test_what_is_both_stopped_and_a_crash_is_refused():
    with pytest.raises(ValueError, match=r"^stopped must not be a crash; got both in row 3\. "):
        GPCR.condition(X, Y, CRASHED, stopped=CRASHED, **HYPERS)
    with pytest.raises(ValueError, match=r"^last must be finite or NaN, of shape \(5,\); got shape \(2,\)\. "):
        GPCR.condition(X, Y, CRASHED, last=[1.0, 2.0], **HYPERS)
