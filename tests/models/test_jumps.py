"""The hypothesis that a machine jumps over its threshold: its evidence by brute force, and what it tells apart."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from crashbo.models import jumps, latent, thresholds
from crashbo.models.crash import hybrid_data, parametrise_all
from crashbo.models.fit import fit
from crashbo.models.hyperpriors import of_crash
from crashbo.models.latent import Hyperparameters
from crashbo.numerics.kernels import MATERN52

X = np.array([[0.1], [0.35], [0.5], [0.8]])
H = Hyperparameters(
    np.array([0.4]), outputscale=1.5, mean=0.2, noise_std=0.1, threshold=0.9, crash_noise_std=0.15, kernel=MATERN52
)
Y = np.array([0.0, 0.4, 0.7, np.nan])
CRASHED = np.array([False, False, False, True])


def parts(data):
    return parametrise_all(data, of_crash(data.X.shape[1]), noise_std=(None,), thresholds=(None,))


def orthant(mean, cov):
    """The probability that a normal vector is negative, by quadrature."""
    return multivariate_normal(mean, cov, allow_singular=True).cdf(np.zeros(len(mean)), rng=np.random.default_rng(0))


def by_hand(rho, levels, others=None):
    """Log evidence, the level integrated over, from the joint normal distribution of readings and labels."""
    seen = ~np.isnan(Y)
    K = H.outputscale * MATERN52.matrix(X, X, H.lengthscales)
    of_y = K[np.ix_(seen, seen)] + H.noise_std**2 * np.eye(seen.sum())
    gain = np.linalg.solve(of_y, rho * K[seen]).T
    mean = H.mean + gain @ (Y[seen] - H.mean)
    cov = K - gain @ (rho * K[seen]) + H.crash_noise_std**2 * np.eye(len(X))

    def of_labels(level):
        sign = np.where(CRASHED, -1.0, 1.0)
        if others is None:
            return orthant(sign * (mean - level), cov * np.outer(sign, sign))
        kept = ~CRASHED  # at least one of several lay above: all lie below with probability `others` times P(below)
        without = orthant((mean - level)[kept], cov[np.ix_(kept, kept)])
        return without - others * orthant(mean - level, cov)

    readings = multivariate_normal(np.full(seen.sum(), H.mean), of_y).logpdf(Y[seen])
    return readings + logsumexp([np.log(of_labels(level)) for level in levels]) - np.log(len(levels))


def log_prior(p):
    names = [name for name in p.learnt if name != "threshold"]
    return p.prior.log_density(p.inside(H), tuple(names), p.reference)[0]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_evidence_is_that_of_brute_force(rho):
    data = hybrid_data(X, Y[:, None], CRASHED)
    (p,) = parts(data)
    found = jumps.log_posterior(latent.condition(data, (H,)), p, rho)
    assert found == pytest.approx(by_hand(rho, jumps._levels(data)) + log_prior(p), abs=0.05)


def test_so_is_that_of_a_crash_that_others_may_have_made():
    data = hybrid_data(X, Y[:, None], CRASHED)
    (p,), share = parts(data), 0.7  # P(all others lie below)
    logs = np.log([[share], [1.0 - share]]) * np.ones(len(X))
    data = replace(data, sign=np.where(CRASHED, 0.0, data.sign), joint=CRASHED, others=logs)
    found = jumps.log_posterior(latent.condition(data, (H,)), p, 0.5)
    assert found == pytest.approx(by_hand(0.5, jumps._levels(data), share) + log_prior(p), abs=0.05)


def test_a_bound_of_a_reading_counts_as_a_reading():
    """A crash that was read as 0.6 or more."""
    Z = np.where(CRASHED, 0.6, Y)[:, None]
    data = hybrid_data(X, Z, CRASHED, censored=CRASHED[:, None])
    (p,) = parts(data)
    with_bound, without = (
        jumps.log_posterior(latent.condition(of, (H,)), p, 0.0) for of in (data, hybrid_data(X, Y[:, None], CRASHED))
    )
    seen = ~CRASHED  # of functions that have nothing to do with each other, the bound is a factor of its own
    K = H.outputscale * MATERN52.matrix(X, X, H.lengthscales)
    gain = np.linalg.solve(K[np.ix_(seen, seen)] + H.noise_std**2 * np.eye(3), K[seen][:, 3])
    mean, var = H.mean + gain @ (Y[seen] - H.mean), K[3, 3] - gain @ K[seen][:, 3]
    expected = norm.logcdf((mean - 0.6) / np.sqrt(var + H.noise_std**2))
    assert with_bound - without == pytest.approx(expected, abs=0.05)


def lead(load, crashed):
    """Of the hypothesis over the crash model, both at the crash model's hyperparameters."""
    U = np.random.default_rng(0).random((40, 2))
    down = crashed(*U.T)
    data = hybrid_data(U, np.where(down, np.nan, load(*U.T))[:, None], down)
    found, (p,) = fit(data, parts(data)).posterior, parts(data)
    crossed = found.log_evidence + p.log_prior(p.inside(found.hypers[0]))[0] + thresholds.profile(found, (p,)).log_width
    return jumps.log_posterior(found, p, 0.5) - crossed


def test_it_leads_where_crashes_begin_before_the_load_is_high():
    load = lambda x, y: 3.0 * x + 2.0 * y**2  # noqa: E731
    crossed = lead(load, lambda x, y: load(x, y) > 3.0)
    jumped = lead(load, lambda x, y: x + 0.1 * y > 0.75)
    assert crossed < 0.0 < jumped
