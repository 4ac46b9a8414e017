"""A hidden cost from comparisons: against quadrature, sampling, finite differences and the plain GP."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from crashbo.models import GP, ComparedGP
from crashbo.models.comparisons import ComparisonLikelihood
from crashbo.numerics.kernels import MATERN52

PAIRS = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (3, 5), (3, 5)]
TIE = [False, False, False, False, True, False, True]
GIVEN: dict[str, Any] = {
    "lengthscales": [0.5, 0.8],
    "judge_noise_std": 0.3,
    "tie_width": 0.2,
    "outputscale": 1.7,
    "mean": 3.2,
    "noise_std": 0.1,
}


@pytest.fixture(scope="module")
def X() -> Any:
    return np.random.default_rng(0).random((6, 2))


@pytest.fixture(scope="module")
def y() -> Any:
    return np.array([np.nan, 3.0, np.nan, np.nan, 4.0, np.nan])


def mass(d: Any, side: float, t: float, s: float, lapse: float = 0.0) -> Any:
    seen = ndtr((t - d) / s) - ndtr((-t - d) / s) if side == 0.0 else ndtr((-t - side * d) / s)
    return lapse + (1.0 - (3 if t > 0.0 else 2) * lapse) * seen


@pytest.mark.parametrize("lapse", [0.0, 0.05])
@pytest.mark.parametrize("side", [1.0, -1.0, 0.0])
@pytest.mark.parametrize(("mu", "v", "t", "s"), [(0.3, 0.5, 0.2, 0.1), (-1.5, 0.2, 0.05, 0.4), (0.0, 2.0, 0.3, 0.05)])
def test_tilted_moments_are_those_of_quadrature(
    side: float, mu: float, v: float, t: float, s: float, lapse: float
) -> None:
    def integral(power: int, t: float = t, s: float = s, mu: float = mu) -> float:
        def f(d: float) -> float:
            return float(d**power * mass(d, side, t, s, lapse) * norm.pdf(d, mu, v**0.5))

        ends = mu - 12 * v**0.5, mu + 12 * v**0.5
        return float(quad(f, *ends, points=[-t, 0.0, t], limit=400, epsabs=1e-13)[0])

    likelihood = ComparisonLikelihood(np.array([[side]]), np.array([[True]]), t, s, lapse)
    found = likelihood.tilted(np.array([[mu]]), np.array([[v]]))
    Z = integral(0)
    mean = integral(1) / Z
    assert np.isclose(found.log_mass[0], np.log(Z), atol=1e-8)
    assert np.isclose(mu + v * found.slope[0, 0], mean, atol=1e-7)
    assert np.isclose(v * found.ratio[0, 0], integral(2) / Z - mean**2, atol=1e-7)
    e = 1e-5
    in_t = (np.log(integral(0, t=t + e)) - np.log(integral(0, t=t - e))) / (2 * e)
    in_s = (np.log(integral(0, s=s + e)) - np.log(integral(0, s=s - e))) / (2 * e)
    assert np.isclose(found.in_threshold[0, 0], in_t, atol=1e-5)
    assert np.isclose(found.in_crash_noise[0, 0], in_s, atol=1e-5)


def test_a_verdict_that_is_all_but_impossible_keeps_its_digits() -> None:
    for side in (1.0, 0.0):
        likelihood = ComparisonLikelihood(np.array([[side]]), np.array([[True]]), 0.1, 0.01)
        found = likelihood.tilted(np.array([[50.0]]), np.array([[0.25]]))
        moved = 50.0 + 0.25 * found.slope[0, 0]
        assert np.isfinite(found.log_mass).all()
        assert 0.0 < found.ratio[0, 0] < 0.01
        assert abs(moved) < 0.3


# Where every verdict may be a slip, a cycle has several explanations: then a Gaussian is not all of the posterior.
@pytest.mark.parametrize(("lapse", "nats", "error"), [(0.0, 0.04, 0.01), (0.05, 0.1, 0.12)])
def test_posterior_and_evidence_are_those_of_sampling(X: Any, y: Any, lapse: float, nats: float, error: float) -> None:
    model = ComparedGP.condition(X, PAIRS, tie=TIE, y=y, lapse=lapse, **GIVEN)
    K = 1.7 * MATERN52.gram(X, np.array([0.5, 0.8]))[0]
    seen = np.flatnonzero(~np.isnan(y))
    S = K[np.ix_(seen, seen)] + 0.01 * np.eye(len(seen))
    gain = K[:, seen] @ np.linalg.inv(S)
    left = y[seen] - 3.2
    of_numbers = -0.5 * left @ np.linalg.solve(S, left) - 0.5 * np.linalg.slogdet(2 * np.pi * S)[1]
    draws = np.random.default_rng(1).multivariate_normal(3.2 + gain @ left, K - gain @ K[seen], 400_000)
    w = np.ones(len(draws))
    for (i, j), tie in zip(PAIRS, TIE, strict=True):
        w *= mass(draws[:, i] - draws[:, j], 0.0 if tie else 1.0, 0.2, 0.3, lapse)
    mean = w @ draws / w.sum()
    var = w @ draws**2 / w.sum() - mean**2
    assert model.converged
    assert abs(model.log_evidence - of_numbers - np.log(w.mean())) < nats
    assert np.allclose(model.posterior.mean_at_trials(0), mean, atol=error)
    found = model.predict(X)
    assert np.allclose(found[0], mean, atol=error)
    assert np.allclose(found[1], var, atol=0.7 * error)


@pytest.mark.parametrize("lapse", [0.0, 0.05])
@pytest.mark.parametrize("name", list(GIVEN))
def test_the_evidence_has_an_exact_gradient(X: Any, y: Any, name: str, lapse: float) -> None:
    key = {"judge_noise_std": "crash_noise_std", "tie_width": "threshold"}.get(name, name)
    gradient = np.ravel(ComparedGP.condition(X, PAIRS, tie=TIE, y=y, lapse=lapse, **GIVEN).log_evidence_gradient()[key])
    at = np.atleast_1d(np.asarray(GIVEN[name], dtype=float))
    for k in range(len(at)):
        ends = []
        for e in (1e-5, -1e-5):
            moved = at.copy()
            moved[k] += e
            value = moved if isinstance(GIVEN[name], list) else float(moved[0])
            said = {**GIVEN, name: value, "lapse": lapse}
            ends.append(ComparedGP.condition(X, PAIRS, tie=TIE, y=y, **said).log_evidence)
        assert np.isclose((ends[0] - ends[1]) / 2e-5, gradient[k], rtol=1e-5, atol=1e-6)


def test_the_posterior_anywhere_has_an_exact_gradient_and_covariance(X: Any, y: Any) -> None:
    post = ComparedGP.condition(X, PAIRS, tie=TIE, y=y, **GIVEN).posterior
    z, e = np.array([[0.3, 0.6]]), 1e-6
    mean, var, pullback = post.predict_with_pullback(0, z)
    in_mean, in_var = pullback(np.ones(1), np.zeros(1)), pullback(np.zeros(1), np.ones(1))
    for d in range(2):
        up, down = z.copy(), z.copy()
        up[0, d] += e
        down[0, d] -= e
        (m1, v1), (m0, v0) = post.predict(0, up), post.predict(0, down)
        assert np.isclose(in_mean[0, d], (m1 - m0)[0] / (2 * e), atol=1e-6)
        assert np.isclose(in_var[0, d], (v1 - v0)[0] / (2 * e), atol=1e-6)
    assert np.isclose(post.covariance_with(0, 2).at(X[2:3])[0], post.predict(0, X[2:3])[1][0])
    assert mean.shape == var.shape == (1,)


def test_numbers_alone_are_plain_regression(X: Any) -> None:
    y = np.sin(5.0 * X[:, 0]) + X[:, 1]
    given = {"lengthscales": [0.4, 0.9], "outputscale": 1.3, "mean": 0.4, "noise_std": 0.05}
    plain = GP.condition(X, y, **given)
    ours = ComparedGP.condition(X, [], y=y, judge_noise_std=0.1, **given)
    Z = np.random.default_rng(2).random((9, 2))
    assert np.isclose(ours.log_evidence, plain.log_evidence)
    assert np.allclose(ours.predict(Z), plain.predict(Z))


def test_repeats_of_a_comparison_are_as_if_each_had_its_own_row() -> None:
    X = np.array([[0.2], [0.7], [0.9]])
    given = {"lengthscales": 0.4, "judge_noise_std": 0.5}
    many = ComparedGP.condition(X, [(0, 1)] * 4 + [(1, 0)] * 2 + [(2, 0)], **given)
    K = MATERN52.gram(X, np.array([0.4]))[0]
    draws = np.random.default_rng(3).multivariate_normal(np.zeros(3), K, 1_000_000)
    d = draws[:, 0] - draws[:, 1]
    w = mass(d, 1.0, 0.0, 0.5) ** 4 * mass(d, -1.0, 0.0, 0.5) ** 2 * mass(draws[:, 0] - draws[:, 2], -1.0, 0.0, 0.5)
    assert abs(many.log_evidence - np.log(w.mean())) < 0.02
    assert np.allclose(many.predict(X)[0], w @ draws / w.sum(), atol=0.02)


def test_the_units_of_numbers_do_not_matter(X: Any) -> None:
    y = np.array([1.0, 2.0, np.nan, np.nan, 4.0, np.nan])
    one, other = (ComparedGP.fit(X, PAIRS, tie=TIE, y=a + b * y) for a, b in ((0.0, 1.0), (-7.0, 1e6)))
    (m1, v1), (m2, v2) = one.predict(X), other.predict(X)
    assert np.allclose(m2, -7.0 + 1e6 * m1, rtol=1e-3)
    assert np.allclose(v2, 1e12 * v1, rtol=1e-2)


def test_the_better_lies_lower() -> None:
    X = np.linspace(0.0, 1.0, 6)[:, None]
    model = ComparedGP.fit(X, [(i + 1, i) for i in range(5)])
    assert np.all(np.diff(model.predict(X)[0]) < 0.0)


def test_one_slip_does_not_make_a_bad_trial_the_winner() -> None:
    X = np.linspace(0.0, 1.0, 8)[:, None]
    pairs = [(3, i) for i in (0, 1, 2, 4, 5, 6, 7)] + [
        (4, 0),
        (4, 7),
        (2, 7),
        (5, 7),
        (3, 7),
        (7, 3),
    ]  # the last: a slip
    careful, credulous = (ComparedGP.fit(X, pairs, lapse=lapse).predict(X)[0] for lapse in (0.05, 0.0))
    assert np.argmin(careful) == 3
    assert careful[7] - careful[3] > credulous[7] - credulous[3]


def test_ties_draw_together_and_their_width_is_learnt_from_them() -> None:
    X = np.linspace(0.0, 1.0, 7)[:, None]
    steps = [(i + 1, i) for i in range(6)]
    apart, near = ComparedGP.fit(X, steps), ComparedGP.fit(X, steps, tie=[False] * 3 + [True] * 3)
    gaps = [model.predict(X)[0][3] - model.predict(X)[0][6] for model in (apart, near)]
    assert abs(gaps[1]) < 0.5 * gaps[0]
    assert apart.hyperparameters.threshold == 0.0
    assert near.hyperparameters.threshold > 0.0


ROUND = np.random.default_rng(4).random((10, 2)).round(1)
HARD: dict[str, tuple[Any, list[tuple[int, int]], list[bool] | None, Any]] = {
    "a single comparison": (ROUND[:2], [(0, 1)], None, None),
    "a cycle": (ROUND[:3], [(0, 1), (1, 2), (2, 0)], None, None),
    "a cycle, a thousand times": (ROUND[:3], [(0, 1), (1, 2), (2, 0)] * 1000, None, None),
    "thousands of repeats": (ROUND[:2], [(0, 1)] * 4000, None, None),
    "thousands that contradict each other": (ROUND[:2], [(0, 1), (1, 0)] * 2000, None, None),
    "nothing but ties": (ROUND, [(i, i + 1) for i in range(9)], [True] * 9, None),
    "thousands of ties": (ROUND[:2], [(0, 1)] * 2000, [True] * 2000, None),
    "trials at one place": (np.full((3, 2), 0.4), [(0, 1), (1, 0), (0, 2)], [False, False, True], None),
    "trials next to each other": (np.array([[0.4], [0.4 + 1e-9]]), [(0, 1)] * 30, None, None),
    "one huge number": (ROUND, [(0, 1), (2, 1)], None, [1e12, *[np.nan] * 9]),
    "numbers that are all equal": (ROUND, [(5, 1), (2, 6)], None, [7.0] * 5 + [np.nan] * 5),
    "numbers that contradict": (ROUND[:3], [(0, 1)] * 200, None, [5.0, 1.0, 2.0]),
}


@pytest.mark.parametrize("case", list(HARD))
def test_no_set_of_comparisons_fails(case: str) -> None:
    X, pairs, tie, y = HARD[case]
    model = ComparedGP.fit(X, pairs, tie=tie, y=y)
    mean, var = model.predict(np.vstack([X, np.full((1, X.shape[1]), 0.77)]))
    assert np.isfinite(mean).all()
    assert np.all(var > 0.0)
    assert np.isfinite(model.log_evidence)
    assert model.converged


def test_random_sets_reach_the_fixed_point() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        n, D, m = (int(k) for k in rng.integers((2, 1, 1), (9, 5, 30)))
        X = rng.random((n, D)).round(1)
        pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
        tie = rng.random(m) < rng.choice([0.0, 0.3, 1.0])
        y = np.where(rng.random(n) < 0.3, rng.normal(size=n) * 10.0 ** rng.integers(-3, 4), np.nan)
        assert ComparedGP.fit(X, pairs, tie=tie, y=y).converged


def test_what_is_imagined_leaves_the_mean_and_lowers_the_variance(X: Any) -> None:
    post = ComparedGP.fit(X, PAIRS).posterior
    z = np.array([[0.5, 0.5]])
    more = post.imagined(z)
    assert np.allclose(more.predict(0, X)[0], post.predict(0, X)[0], atol=0.05)
    assert more.predict(0, z)[1][0] < 0.2 * post.predict(0, z)[1][0]
    assert np.allclose(more.first(6).predict(0, X)[0], post.predict(0, X)[0], atol=1e-3)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"pairs": [(0, 0)]}, "two different rows"),
        ({"pairs": [(0, 9)]}, "two different rows"),
        ({"pairs": []}, "comparison where there are no numbers"),
        ({"judge_noise_std": 0.0}, "judge_noise_std"),
        ({"lapse": 0.3}, "lapse must be a probability below 0.25"),
        ({"tie": [True]}, "tie_width must be positive"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(X: Any, said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ComparedGP.condition(X, **{"pairs": [(0, 1)], "lengthscales": 0.5, "judge_noise_std": 0.1, **said})
