"""The hypothesis that what is measured is not the cause: its evidence by brute force, and what it compares."""

import numpy as np
import pytest
from sampling import gaussian_part, sampled

from crashbo.models.bystander import fit_beside, fit_bystander, without_labels, without_measurements
from crashbo.models.crash import hybrid_data, parametrise_all
from crashbo.models.fit import fit
from crashbo.models.hyperpriors import of_crash

PRIOR = of_crash(1)
X = np.linspace(0.05, 0.95, 7)[:, None]
CRASHED = np.array([False, False, False, True, True, False, False])


def trials(g):
    return hybrid_data(X, np.where(CRASHED, np.nan, g)[:, None], CRASHED)


def both(data):
    """The crash model's fit, and that of the hypothesis."""
    parametrisations = parametrise_all(data, PRIOR, noise_std=(None,), thresholds=(None,))
    crash = fit(data, parametrisations, enough=1e-3)
    return crash, fit_bystander(data, PRIOR, noise_std=(None,), enough=1e-3)


def log_prior(fitted):
    """Of one function's hyperparameters, and of the units in which its measurements have a density."""
    (p,), (h,), seen = fitted.parametrisations, fitted.posterior.hypers, fitted.posterior.data.measured.sum()
    return p.log_prior(p.inside(h))[0] + seen * np.log(p.scale)


def sampled_evidence(data, fitted):
    part = vars(fitted.posterior.hypers[0])
    return sampled(data.X, data.Y.T, data.sign.T, [part], np.random.default_rng(0)).log_evidence


@pytest.mark.parametrize("g", [np.sin(6.0 * X[:, 0]), np.exp(-(((X[:, 0] - 0.55) / 0.2) ** 2))])
def test_the_lead_is_that_of_brute_force(g):
    data = trials(g)
    crash, bystander = both(data)
    measured, labels = bystander.measured, bystander.labels
    hypers = vars(measured.posterior.hypers[0])
    alone = gaussian_part(data.X, data.Y[0], hypers)[2] + log_prior(measured)
    bare = sampled_evidence(without_measurements(data), labels) + log_prior(labels)
    together = sampled_evidence(data, crash) + log_prior(crash)
    assert measured.log_posterior == pytest.approx(alone, abs=1e-3)
    assert labels.log_posterior == pytest.approx(bare, abs=0.05)
    assert bystander.log_posterior - crash.log_posterior == pytest.approx(alone + bare - together, abs=0.1)


@pytest.mark.parametrize("g", [np.sin(6.0 * X[:, 0]), np.exp(-(((X[:, 0] - 0.55) / 0.2) ** 2))])
def test_evidence_and_blame_beside_a_rare_cause_are_those_of_brute_force(g):
    Y = np.where(CRASHED, np.nan, g)[:, None]
    model = fit_beside(X, Y, CRASHED, PRIOR, noise_std=(None,), thresholds=(None,))
    data, parts = model.posterior.data, [vars(h) for h in model.posterior.hypers]
    expected = sampled(X, data.Y.T, data.sign.T, parts, np.random.default_rng(0), joint=data.joint)
    assert data.joint.tolist() == CRASHED.tolist()
    assert model.log_evidence == pytest.approx(expected.log_evidence, abs=0.15)
    np.testing.assert_allclose(model.blame(), expected.blame[CRASHED], atol=0.1)
    both = zip(model.fitted.parametrisations, model.posterior.hypers, strict=True)
    priors = [p.log_prior(p.inside(h))[0] for p, h in both]
    units = data.measured[0].sum() * np.log(model.fitted.parametrisations[0].scale)
    assert model.fitted.log_posterior == pytest.approx(model.log_evidence + sum(priors) + units, abs=1e-3)


def test_the_lead_tells_a_bystander_from_a_cause():
    cause, valley = np.exp(-(((X[:, 0] - 0.55) / 0.2) ** 2)), (X[:, 0] - 0.55) ** 2
    leads = [
        bystander.log_posterior - crash.log_posterior for crash, bystander in map(both, map(trials, (cause, valley)))
    ]
    assert leads[0] < 0.0 < leads[1]


def test_the_lead_does_not_depend_on_units():
    g = np.sin(6.0 * X[:, 0])
    leads = [
        bystander.log_posterior - crash.log_posterior
        for crash, bystander in (
            both(trials(shift + scale * g)) for shift, scale in ((0.0, 1.0), (-3e6, 1e5), (0.0, 1e-7))
        )
    ]
    assert np.ptp(leads) < 0.05


def test_each_part_has_its_share_of_the_data():
    Y = np.stack([X[:, 0], X[:, 0] ** 2], axis=1)
    censored = np.zeros((7, 2), dtype=bool)
    censored[3, 0] = True
    Y[CRASHED & ~censored.any(axis=1)] = np.nan
    data = hybrid_data(X, Y, CRASHED, censored=censored)
    alone, bare = without_labels(data), without_measurements(data)
    assert not alone.joint.any()
    assert np.count_nonzero(alone.sign) == 1  # the lower bound
    np.testing.assert_array_equal(alone.Y, data.Y)
    np.testing.assert_array_equal(bare.X, X)
    np.testing.assert_array_equal(bare.sign, np.where(CRASHED, -1.0, 1.0)[None])
    assert not bare.measured.any()
