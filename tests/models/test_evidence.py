"""The evidence: its gradient against differences, its digits against mpmath, and its identities."""

import mpmath as mp
import numpy as np
import pytest
from draws import draw

from crashbo.models import GP, GPCR
from crashbo.numerics.kernels import MATERN52

NAMES = ("outputscale", "mean", "noise_std", "threshold", "crash_noise_std")


def log_evidence(trials, **changed):
    return GPCR.condition(*trials.data, **(trials.hypers | changed)).log_evidence


def quotient(trials, name, step):
    """Central difference in a hyperparameter; `step` has its shape. By Richardson's rule, to fourth order."""
    at = trials.hypers[name]
    size = np.max(np.abs(step))

    def centred(k):
        return log_evidence(trials, **{name: at + k * step}) - log_evidence(trials, **{name: at - k * step})

    return (8.0 * centred(0.5) - centred(1.0)) / (6.0 * size)


def test_the_gradient_in_every_hyperparameter_is_its_difference_quotient():
    errors = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, D = int(rng.integers(4, 61)), int(rng.integers(1, 4))
        trials = draw(rng, n, D, crash_noise_std=(0.0, 0.05, 0.3)[seed % 3], unmeasured=0.2)
        model = GPCR.condition(*trials.data, **trials.hypers)
        assert model.converged
        gradient = model.log_evidence_gradient()
        unit = np.sqrt(trials.hypers["outputscale"])
        steps = {"outputscale": 1e-3 * unit**2, "mean": 1e-3 * unit, "threshold": 1e-3 * trials.hypers["noise_std"]}
        steps |= {name: 1e-3 * trials.hypers[name] for name in ("noise_std", "crash_noise_std")}
        pairs = [(gradient[name], quotient(trials, name, steps[name]), steps[name]) for name in NAMES if steps[name]]
        pairs += [
            (gradient["lengthscales"][d], quotient(trials, "lengthscales", 1e-3 * at * np.eye(D)[d]), 1e-3 * at)
            for d, at in enumerate(trials.hypers["lengthscales"])
        ]
        # What is nearly flat in its own unit (1e-3 nats) has no relative error to speak of.
        errors += [abs(found - exact) / max(abs(exact), 1e-6 / step) for found, exact, step in pairs]
    assert len(errors) > 180
    assert max(errors) < 1e-3


def test_the_gradient_holds_at_repeats_and_contradictions():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((5, 2)), 4, axis=0)
    X[::4] += 1e-9
    crashed = rng.random(20) < 0.4
    y = np.where(crashed, np.nan, X.sum(axis=1) + 0.1 * rng.standard_normal(20))
    hypers = {"lengthscales": np.full(2, 0.5), "outputscale": 1.0, "noise_std": 0.1}
    trials = type(draw(rng, 3))(X, y, crashed, hypers | {"mean": 0.5, "threshold": 1.2, "crash_noise_std": 0.3})
    gradient = GPCR.condition(*trials.data, **trials.hypers).log_evidence_gradient()
    for name in NAMES:
        assert gradient[name] == pytest.approx(quotient(trials, name, 1e-3), rel=1e-4)


def test_without_a_crash_and_with_a_far_threshold_it_is_exact_regression():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n, D = int(rng.integers(1, 40)), 1 + seed % 3
        X, Z = rng.random((n, D)), rng.random((7, D))
        y = np.sin(4.0 * X.sum(axis=1)) + 0.1 * rng.standard_normal(n)
        shared = {"lengthscales": np.full(D, 0.4), "outputscale": 1.7, "noise_std": 0.1, "mean": 0.3}
        model = GPCR.condition(X, y, np.zeros(n, dtype=bool), threshold=100.0, **shared)
        A = 1.7 * MATERN52.gram(X, shared["lengthscales"])[0] + 0.01 * np.eye(n)
        k = 1.7 * MATERN52.matrix(X, Z, shared["lengthscales"])
        r = y - 0.3
        mean, var = model.predict(Z)
        np.testing.assert_allclose(mean, 0.3 + k.T @ np.linalg.solve(A, r), rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(var, 1.7 - np.sum(k * np.linalg.solve(A, k), axis=0), rtol=1e-9)
        exact = -0.5 * (r @ np.linalg.solve(A, r) + np.linalg.slogdet(2.0 * np.pi * A)[1])
        assert model.log_evidence == pytest.approx(exact, rel=1e-10)
        regression = GP.condition(X, y, **shared)
        assert regression.log_evidence == pytest.approx(exact, rel=1e-10)
        np.testing.assert_allclose(regression.predict(Z), (mean, var), rtol=1e-9)


def exact_log_marginal_likelihood(X, y, lengthscale, noise_std):
    """Of a GP of unit outputscale at 60 digits, through mpmath's Cholesky factor."""
    with mp.workdps(60):
        n = len(y)
        A = mp.zeros(n)
        for i in range(n):
            for j in range(n):
                squares = [(mp.mpf(float(a)) - mp.mpf(float(b))) ** 2 for a, b in zip(X[i], X[j], strict=True)]
                s = mp.sqrt(5 * mp.fsum(squares)) / mp.mpf(lengthscale)
                A[i, j] = (1 + s + s**2 / 3) * mp.exp(-s) + (mp.mpf(noise_std) ** 2 if i == j else 0)
        L = mp.cholesky(A)
        half = []
        for i in range(n):  # forward substitution
            half.append((mp.mpf(float(y[i])) - mp.fsum(L[i, j] * half[j] for j in range(i))) / L[i, i])
        log_det = 2 * mp.fsum(mp.log(L[i, i]) for i in range(n))
        return float(-(mp.fsum(a**2 for a in half) + log_det + n * mp.log(2 * mp.pi)) / 2)


@pytest.mark.parametrize("noise_std", [1e-2, 1e-4, 1e-6])
def test_a_small_noise_costs_no_digits_of_the_evidence(noise_std):
    rng = np.random.default_rng(0)
    X = rng.random((12, 2))
    K = MATERN52.gram(X, np.full(2, 0.25))[0]
    y = np.linalg.cholesky(K) @ rng.standard_normal(12) + noise_std * rng.standard_normal(12)
    model = GPCR.condition(
        X, y, np.zeros(12, dtype=bool), lengthscales=0.25, outputscale=1.0, threshold=1e3, noise_std=noise_std
    )
    exact = exact_log_marginal_likelihood(X, y, 0.25, noise_std)
    assert model.log_evidence == pytest.approx(exact, abs=1e-9)


def test_a_small_noise_costs_no_digits_where_repeats_make_the_kernel_singular():
    rng = np.random.default_rng(1)
    X = np.repeat(rng.random((5, 2)), 3, axis=0)
    y = np.repeat(rng.standard_normal(5), 3) + 1e-6 * rng.standard_normal(15)
    model = GPCR.condition(
        X, y, np.zeros(15, dtype=bool), lengthscales=0.25, outputscale=1.0, threshold=1e3, noise_std=1e-6
    )
    assert model.log_evidence == pytest.approx(exact_log_marginal_likelihood(X, y, 0.25, 1e-6), abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_trials_at_one_x_are_worth_the_same_as_trials_next_to_it(seed):
    rng = np.random.default_rng(seed)
    trials = draw(rng, 12, 2, crash_noise_std=0.1, unmeasured=0.2)
    rows = np.concatenate([np.arange(12), rng.integers(0, 12, 8)])
    X, crashed = trials.X[rows], trials.crashed[rows]
    y = trials.y[rows] + 0.1 * rng.standard_normal(20)
    crashed[15:] = rng.random(5) < 0.5
    apart = X + np.arange(20)[:, None] * 1e-11  # told apart by their bits, not by the kernel
    here, there = (GPCR.condition(at, y, crashed, **trials.hypers) for at in (X, apart))
    assert here.converged
    assert here.log_evidence == pytest.approx(there.log_evidence, abs=1e-6)
    Z = rng.random((10, 2))
    np.testing.assert_allclose(here.predict(Z), there.predict(Z), rtol=1e-6, atol=1e-7)
    for name, slope in here.log_evidence_gradient().items():
        np.testing.assert_allclose(slope, there.log_evidence_gradient()[name], rtol=1e-5, atol=1e-5)


def test_a_small_noise_costs_no_digits_beside_crashes_either():
    trials = draw(np.random.default_rng(3), 12, successes=(6, 8))
    far = np.full((1, 2), 50.0)
    # Far away, a precise measurement is independent of the rest: its own term is known in closed form.
    hypers = trials.hypers | {"noise_std": np.append(np.full(12, trials.hypers["noise_std"]), 1e-6)}
    model = GPCR.condition(
        np.vstack([trials.X, far]), np.append(trials.y, hypers["threshold"] - 3.0), [*trials.crashed, False], **hypers
    )
    total = hypers["outputscale"] + 1e-12
    own = -0.5 * (hypers["threshold"] - 3.0 - hypers["mean"]) ** 2 / total - 0.5 * np.log(2.0 * np.pi * total)
    assert model.log_evidence - own == pytest.approx(log_evidence(trials), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_the_trials_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    trials = draw(rng, 40, 2, crash_noise_std=0.1 * (seed % 2), unmeasured=0.1)
    noise = trials.hypers["noise_std"] * np.exp(rng.normal(0.0, 0.3, 40))
    Z = rng.random((20, 2))
    order = rng.permutation(40)
    model = GPCR.condition(*trials.data, **(trials.hypers | {"noise_std": noise}))
    other = GPCR.condition(*(a[order] for a in trials.data), **(trials.hypers | {"noise_std": noise[order]}))
    assert other.log_evidence == pytest.approx(model.log_evidence, abs=1e-8)
    np.testing.assert_allclose(other.predict(Z), model.predict(Z), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.p_safe(Z), model.p_safe(Z), atol=1e-8)
    for name, slope in model.log_evidence_gradient().items():
        np.testing.assert_allclose(other.log_evidence_gradient()[name], slope, rtol=1e-6, atol=1e-6)


def test_a_distant_crash_leaves_the_posterior_alone():
    rng = np.random.default_rng(0)
    trials = draw(rng, 12, 2, successes=(5, 9))
    h = trials.hypers
    Z = rng.random((10, 2))
    model = GPCR.condition(*trials.data, **h)
    far = 1.0 + 20.0 * h["lengthscales"]
    further = GPCR.condition(
        np.vstack([trials.X, far]), np.append(trials.y, np.nan), np.append(trials.crashed, True), **h
    )
    np.testing.assert_allclose(further.predict(Z), model.predict(Z), rtol=1e-9, atol=1e-9)
    # It costs what one crash costs under the prior.
    alone = GPCR.condition(far[None, :], [np.nan], [True], **h)
    assert further.log_evidence == pytest.approx(model.log_evidence + alone.log_evidence, abs=1e-9)


def test_noise_can_be_told_trial_by_trial():
    trials = draw(np.random.default_rng(0), 15, 2, successes=(8, 12))
    noise = trials.hypers["noise_std"]
    same = GPCR.condition(*trials.data, **(trials.hypers | {"noise_std": np.full(15, noise)}))
    assert same.log_evidence == pytest.approx(log_evidence(trials), abs=1e-10)
    # A measurement so noisy that it says nothing is worth its label alone.
    i = int(np.flatnonzero(~np.isnan(trials.y))[0])
    vague = np.full(15, noise)
    vague[i] = 1e6
    y = np.where(np.arange(15) == i, np.nan, trials.y)
    Z = np.random.default_rng(1).random((10, 2))
    np.testing.assert_allclose(
        GPCR.condition(*trials.data, **(trials.hypers | {"noise_std": vague})).predict(Z),
        GPCR.condition(trials.X, y, trials.crashed, **trials.hypers).predict(Z),
        rtol=1e-5,
        atol=1e-6,
    )


def test_the_noise_of_an_unmeasured_trial_does_not_matter():
    trials = draw(np.random.default_rng(0), 15, 2, successes=(8, 12))
    noise = np.where(np.isnan(trials.y), 77.0, trials.hypers["noise_std"])
    model = GPCR.condition(*trials.data, **(trials.hypers | {"noise_std": noise}))
    assert model.log_evidence == pytest.approx(log_evidence(trials), abs=1e-10)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e-12), (0.0, 1e12), (1e3, 1.0), (-7.0, 1e-3)])
def test_the_units_of_the_measurements_move_the_evidence_by_their_jacobian_only(shift, scale):
    trials = draw(np.random.default_rng(2), 20, 2, crash_noise_std=0.1)
    h = trials.hypers
    moved = {
        "lengthscales": h["lengthscales"],
        "outputscale": h["outputscale"] * scale**2,
        "mean": shift + scale * h["mean"],
        "noise_std": h["noise_std"] * scale,
        "threshold": shift + scale * h["threshold"],
        "crash_noise_std": h["crash_noise_std"] * scale,
    }
    model = GPCR.condition(*trials.data, **h)
    other = GPCR.condition(trials.X, shift + scale * trials.y, trials.crashed, **moved)
    jacobian = np.sum(~np.isnan(trials.y)) * np.log(scale)
    assert other.log_evidence + jacobian == pytest.approx(model.log_evidence, abs=1e-7)
    np.testing.assert_allclose(other.p_safe(trials.X), model.p_safe(trials.X), atol=1e-8)
    mean, var = model.predict(trials.X)
    np.testing.assert_allclose(other.predict(trials.X)[0], shift + scale * mean, rtol=1e-8, atol=1e-8 * scale)
    np.testing.assert_allclose(other.predict(trials.X)[1], scale**2 * var, rtol=1e-7)
