"""What a trial may gain that is compared with the winner: against sampling and finite differences."""

import numpy as np
import pytest

from crashbo.models import ComparedGP
from crashbo.search.preferences import LogEubo

X = np.array([[0.2, 0.3], [0.8, 0.4], [0.5, 0.9], [0.1, 0.8]])
PAIRS = [[1, 0], [1, 2], [2, 3]]  # row 1 is the winner
WHERE = np.array([[0.75, 0.35], [0.1, 0.1], [0.9, 0.9], [0.5, 0.5]])


@pytest.fixture(scope="module")
def posterior():
    return ComparedGP.condition(X, PAIRS, lengthscales=0.4, judge_noise_std=0.1).posterior


def difference(posterior, x):
    """Mean and standard deviation of how much lower the cost is at x than at the winner."""
    mean, var = posterior.predict(0, x[None])
    (at_winner,), (var_winner,) = posterior.predict(0, X[1:2])
    cov = posterior.covariance_with(0, 1).at(x[None])
    return at_winner - mean[0], np.sqrt(var[0] + var_winner - 2.0 * cov[0])


@pytest.mark.parametrize("scatter", [0.0, 0.3])
@pytest.mark.parametrize("x", WHERE)
def test_the_gain_is_that_of_the_better_one_after_the_judge_has_seen_the_difference(posterior, x, scatter):
    mean, std = difference(posterior, x)
    rng = np.random.default_rng(0)
    true = mean + std * rng.standard_normal(400_000)
    seen = true + scatter * rng.standard_normal(true.size)
    expected = mean + std**2 / (std**2 + scatter**2) * (seen - mean)  # of the true difference, by what was seen
    gains = np.where(expected > 0.0, true, 0.0)  # the new one is kept if it is expected to be better
    value = np.exp(LogEubo(posterior, 1, scatter)(x[None])[0])
    assert value == pytest.approx(gains.mean(), abs=4.0 * gains.std() / len(gains) ** 0.5 + 2e-3 * std)


@pytest.mark.parametrize("scatter", [0.0, 0.3])
def test_its_gradient_is_exact(posterior, scatter):
    gain, step = LogEubo(posterior, 1, scatter), 1e-6
    value, gradient = gain.with_gradient(WHERE)
    assert value == pytest.approx(gain(WHERE))
    for d in range(2):
        moved = step * np.eye(2)[d]
        numeric = (gain(WHERE + moved) - gain(WHERE - moved)) / (2.0 * step)
        assert gradient[:, d] == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def test_what_the_judge_hardly_sees_promises_less_than_what_is_plain(posterior):
    beside, far = np.array([[0.8, 0.401]]), np.array([[0.5, 0.5]])
    for x, least, most in ((beside, 1.0, np.inf), (far, 0.0, 0.5)):
        lost = LogEubo(posterior, 1)(x) - LogEubo(posterior, 1, 0.1)(x)
        assert least < lost[0] < most
