"""P(safe) of a study: every stage against its definition by hand, its gradient, and what follows from it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr

from crashbo.models import hyperpriors
from crashbo.models.crash import hybrid_data, parametrise_all
from crashbo.models.ensemble import gather
from crashbo.models.fit import fit
from crashbo.search.calibration import Calibration
from crashbo.search.safety import Safety

D = 2
NEARER, WIDER = 0.45, 2.0  # of who is wary
CALIBRATIONS = [Calibration(), Calibration(0.4, 0.8), Calibration(1.3, -1.1)]


def safety(calibration, G=2):
    """Of trials that crash where one of G rugged loads is high; successes are measured."""
    rng = np.random.default_rng(0)
    X, phase = rng.random((14, D)), rng.uniform(0.0, 6.0, (G, D))
    load = np.stack([np.sin(5.0 * X + phase[j]).sum(axis=1) for j in range(G)], axis=1)
    crashed = np.any(load > 0.7, axis=1)
    Y = np.where(crashed[:, None], np.nan, load)
    data = hybrid_data(X, Y, crashed)
    parametrisations = parametrise_all(data, hyperpriors.weak(D), noise_std=[None] * G, thresholds=[None] * G)
    ensemble = gather(fit(data, parametrisations).posterior, parametrisations, np.full(G, 0.1))
    assert ensemble.is_several
    return Safety(ensemble, calibration)


def points(m=40):
    """All over the space and beyond it, where P(safe) is the prior's."""
    return np.random.default_rng(3).random((m, D)) * 1.6 - 0.3


def by_hand(found, X, *, wary):
    """P(safe) of the model and P(violated), one member, constraint and point after the other."""
    p, violated = np.zeros(len(X)), np.zeros((len(X), len(found.ensemble.members[0].hypers)))
    for member, weight, spreads in zip(
        found.ensemble.members, np.exp(found.ensemble.log_weights), found.ensemble.spreads, strict=True
    ):
        alone = np.ones(len(X))
        for j, h in enumerate(member.hypers):
            mean, var = member.predict(j, X)
            z = (h.threshold - mean) / np.sqrt(var + h.crash_noise_std**2 + spreads[j] ** 2)
            left = var / h.outputscale if wary else 0.0
            z = (z - NEARER * left) / np.sqrt(1.0 + WIDER * left)
            alone *= ndtr(z)
            violated[:, j] += weight * ndtr(-z)
        p += weight * alone
    return p, violated


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_every_stage_is_what_it_says(calibration):
    found, X = safety(calibration), points()
    averaged, _ = by_hand(found, X, wary=False)
    wary, _ = by_hand(found, X, wary=True)
    np.testing.assert_allclose(np.exp(found.averaged(X)), averaged, rtol=1e-7)
    np.testing.assert_allclose(np.exp(found.wary(X)), wary, rtol=1e-7)
    corrected = expit(calibration.slope * logit(wary) + calibration.shift)
    np.testing.assert_allclose(np.exp(found.corrected(X)), corrected, rtol=1e-6)
    np.testing.assert_array_equal(found(X), found.corrected(X))


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("stage", ["averaged", "wary", "corrected"])
def test_the_gradient_of_every_stage_is_its_slope(stage, calibration):
    log_p, X, h = getattr(safety(calibration), stage), points(), 1e-5
    value, gradient = log_p.with_gradient(X)
    np.testing.assert_allclose(value, log_p(X), rtol=1e-10)
    for d in range(D):
        step = h * np.eye(D)[d]
        np.testing.assert_allclose(
            gradient[:, d], (log_p(X + step) - log_p(X - step)) / (2.0 * h), rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("threshold", [1e3, -1e3])
def test_where_the_model_is_certain_value_and_gradient_stay_finite(calibration, threshold):
    middle = safety(calibration).ensemble.middle
    first, *others = middle.members[0].hypers
    moved = replace(middle.members[0], hypers=(replace(first, threshold=threshold), *others))
    for found in Safety(replace(middle, members=(moved,)), calibration).with_gradient(points()):
        assert np.all(np.isfinite(found))


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_correction_leaves_it_to_the_model_what_would_be_violated_in_a_crash(calibration):
    found, X = safety(calibration), points()
    p, violated = by_hand(found, X, wary=True)
    expected = violated / (1.0 - p)[:, None] * -np.expm1(found(X))[:, None]
    np.testing.assert_allclose(found.violated(X), expected, rtol=1e-6, atol=1e-12)


def test_with_one_constraint_it_is_violated_where_the_trial_is_not_safe():
    found = safety(Calibration(0.6, -0.5), G=1)
    np.testing.assert_allclose(found.violated(points())[:, 0], -np.expm1(found(points())), rtol=1e-6, atol=1e-12)


def test_imagined_crashes_lower_it_and_the_correction_stays():
    found = safety(Calibration(0.6, 0.5))
    at = points()[np.argsort(-found(points()))[:2]]
    warned = found.with_crashes(at)
    assert np.all(warned(at) < found(at) - 0.05)
    assert warned.calibration == found.calibration


def test_it_can_be_pickled():
    found = safety(Calibration(0.6, 0.5))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found))(points()), found(points()))


def test_roughly_is_the_first_member_alone_below_the_same_ceilings():
    found = safety(CALIBRATIONS[1])
    low = np.array([h.threshold for h in found.ensemble.members[0].hypers]) - 0.5
    guarded = replace(found, ensemble=replace(found.ensemble, ceilings=low))
    alone = guarded.roughly
    assert not alone.ensemble.is_several
    assert alone.roughly.ensemble is alone.ensemble  # what it has prepared serves both
    np.testing.assert_array_equal(alone.roughly(points()), alone(points()))
    bare = replace(alone, ensemble=replace(alone.ensemble, ceilings=None))
    assert np.all(alone(points()) < bare(points()))
