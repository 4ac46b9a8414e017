"""Several constraints against brute force: crashes blamed on none, partial data, readings that were cut off."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from sampling import gaussian_part, sampled

from crashbo.models import GPCR, CrashModel
from crashbo.numerics.kernels import MATERN52

HYPERS = ("outputscale", "mean", "noise_std", "threshold", "crash_noise_std")


class Draw(NamedTuple):
    """Trials of several functions drawn from their GPs; Y holds every reading, of crashes too."""

    X: np.ndarray
    Y: np.ndarray
    crashed: np.ndarray
    violated: np.ndarray
    parts: list[dict[str, Any]]

    @property
    def sign(self):
        """Labels of crashes that are blamed on none."""
        return np.where(self.crashed[:, None], 0.0, 1.0) * np.ones_like(self.Y)

    @property
    def measured(self):
        """What successes deliver."""
        return np.where(self.crashed[:, None], np.nan, self.Y)

    @property
    def prior_std(self):
        return np.sqrt([part["outputscale"] for part in self.parts])


def draw(rng, n, G, dimension=2, *, crash_noise_std=0.0, crashes=2):
    """n trials with four or more successes and so many crashes or more."""
    while True:
        X, parts = rng.random((n, dimension)), []
        Y, violated = np.zeros((n, G)), np.zeros((n, G), dtype=bool)
        for j in range(G):
            std = float(np.exp(rng.normal(0.0, 0.35)))
            part = {
                "lengthscales": np.exp(rng.normal(np.log(0.4 * np.sqrt(dimension)), 0.4, dimension)),
                "outputscale": std**2,
                "mean": float(0.3 * rng.standard_normal()),
                "noise_std": std * float(np.exp(rng.uniform(np.log(0.02), np.log(0.3)))),
                "crash_noise_std": crash_noise_std * std,
            }
            part["threshold"] = part["mean"] + std * float(rng.normal(0.5, 0.5))
            K = std**2 * MATERN52.gram(X, part["lengthscales"])[0]
            g = part["mean"] + np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.standard_normal(n)
            violated[:, j] = g + part["crash_noise_std"] * rng.standard_normal(n) > part["threshold"]
            Y[:, j] = g + part["noise_std"] * rng.standard_normal(n)
            parts.append(part)
        crashed = violated.any(axis=1)
        if 4 <= np.sum(~crashed) <= n - crashes:
            return Draw(X, Y, crashed, violated, parts)


def random_draw(seed, G, crash_noise_std=0.0):
    rng = np.random.default_rng(seed)
    return draw(rng, int(rng.integers(7, 10)), G, 1 + seed % 3, crash_noise_std=crash_noise_std), rng


def within(errors, median, most):
    """Whether half of the errors lie within `median`, and 90 % of them within `most`."""
    return np.median(errors) <= median and np.quantile(errors, 0.9) <= most


@pytest.fixture(scope="module", params=[(2, 0.0), (3, 0.0), (2, 0.1)], ids=["two", "three", "two, soft"])
def compared(request):
    """Problems with crashes that are blamed on none: the draw, the model, and what sampling says."""
    G, crash_noise_std = request.param
    found = []
    for seed in range(30):
        trials, rng = random_draw(seed, G, crash_noise_std)
        model = CrashModel.condition(trials.X, trials.measured, trials.crashed, parts=trials.parts)
        exact = sampled(trials.X, trials.measured, trials.sign, trials.parts, rng, joint=trials.crashed, samples=30_000)
        if exact.effective > 300.0:  # else too few to judge by
            found.append((trials, model, exact))
    assert len(found) >= 22
    return found


def test_posterior_means_are_those_of_sampling(compared):
    errors = [np.max(np.abs(m.predict(t.X)[0] - exact.mean) / t.prior_std) for t, m, exact in compared]
    assert within(errors, 0.1, 0.3)
    assert all(model.converged for _, model, _ in compared)


def test_blame_is_that_of_sampling(compared):
    # Crashes that crowd together are counted more than once by EP, so that a problem's worst blame may be off by more.
    errors = np.concatenate([np.abs(m.blame() - exact.blame[t.crashed]).ravel() for t, m, exact in compared])
    assert within(errors, 0.06, 0.15)
    assert within([np.max(np.abs(m.blame() - exact.blame[t.crashed])) for t, m, exact in compared], 0.06, 0.25)


def test_variance_and_evidence_are_those_of_sampling(compared):
    in_var = [(np.abs(m.predict(t.X)[1] - exact.var) / t.prior_std**2).ravel() for t, m, exact in compared]
    in_log_Z = [abs(m.log_evidence - exact.log_evidence) for _, m, exact in compared]
    assert within(np.concatenate(in_var), 0.05, 0.2)
    assert within(in_log_Z, 0.15, 0.4)


def test_counting_an_unblamed_crash_against_all_constraints_or_against_none_is_worse(compared):
    ours, all_of_them, none_of_them = [], [], []
    for t, m, exact in compared:
        ours.append(np.max(np.abs(m.predict(t.X)[0] - exact.mean) / t.prior_std))
        for errors, kept in ((all_of_them, np.ones(len(t.X), dtype=bool)), (none_of_them, ~t.crashed)):
            alone = [
                GPCR.condition(t.X[kept], y[kept], t.crashed[kept], **part)
                for y, part in zip(t.measured.T, t.parts, strict=True)
            ]
            means = np.stack([model.predict(t.X)[0] for model in alone], axis=1)
            errors.append(np.max(np.abs(means - exact.mean) / t.prior_std))
    assert 3.0 * np.median(ours) < np.median(all_of_them)
    assert 3.0 * np.median(ours) < np.median(none_of_them)


def test_sampling_itself_agrees_with_plain_rejection():
    trials, rng = random_draw(3, 2, 0.2)
    exact = sampled(trials.X, trials.measured, trials.sign, trials.parts, rng, joint=trials.crashed)
    g, over = [], []
    for y, part in zip(trials.measured.T, trials.parts, strict=True):
        m, V, _ = gaussian_part(trials.X, y, part)
        g.append(rng.multivariate_normal(m, V, 300_000, method="eigh"))
        over.append(g[-1] + part["crash_noise_std"] * rng.standard_normal(g[-1].shape) > part["threshold"])
    kept = np.all(np.any(over, axis=0) == trials.crashed, axis=1)
    assert kept.sum() > 3_000
    mean = np.stack([values[kept].mean(axis=0) for values in g], axis=1)
    blame = np.stack([values[kept].mean(axis=0) for values in over], axis=1)
    np.testing.assert_allclose(exact.mean / trials.prior_std, mean / trials.prior_std, atol=0.05)
    np.testing.assert_allclose(exact.blame, blame, atol=0.03)


# What a crash may still deliver. Each gives blame, readings (n, G) and which of them were cut off.
def guilty(t, rng):
    """Blamed on one constraint alone, with its reading."""
    first = np.argmax(t.violated, axis=1)
    own = np.arange(t.Y.shape[1]) == first[:, None]
    return first, np.where(t.crashed[:, None] & ~own, np.nan, t.Y), np.zeros_like(own)


def innocent(t, rng):
    """Blamed on one constraint, with readings of the others."""
    first = np.argmax(t.violated, axis=1)
    own = np.arange(t.Y.shape[1]) == first[:, None]
    return first, np.where(t.crashed[:, None] & own, np.nan, t.Y), np.zeros_like(own)


def nobody(t, rng):
    """Blamed on none, with a reading of the first constraint; a success in three has lost one."""
    lost = rng.random(t.Y.shape) < 1.0 / 3.0
    readings = np.where(t.crashed[:, None] & (np.arange(t.Y.shape[1]) > 0), np.nan, t.Y)
    return None, np.where(~t.crashed[:, None] & lost, np.nan, readings), np.zeros_like(lost)


def cut_off(t, rng):
    """Blamed on one constraint alone, with a reading of it that stopped short."""
    first, readings, _ = guilty(t, rng)
    cut = t.crashed[:, None] & ~np.isnan(readings)
    return first, np.where(cut, readings - t.prior_std * rng.random(t.Y.shape), readings), cut


def cut_off_by_nobody(t, rng):
    """Blamed on none, with readings of all that stopped short; and a success whose sensor was saturated."""
    cut = np.repeat(t.crashed[:, None], t.Y.shape[1], axis=1)
    cut[np.flatnonzero(~t.crashed)[0], 0] = True
    return None, np.where(cut, t.Y - t.prior_std * rng.random(t.Y.shape), t.Y), cut


@pytest.mark.parametrize("deliver", [guilty, innocent, nobody, cut_off, cut_off_by_nobody], ids=lambda f: f.__name__)
def test_partial_data_are_taken_in_as_sampling_says(deliver):
    in_mean, in_log_Z, in_blame = [], [], []
    for seed in range(20):
        t, rng = random_draw(100 + seed, 2, 0.1 * (seed % 2))
        first, readings, cut = deliver(t, rng)
        sign = t.sign
        if first is not None:
            sign[t.crashed, first[t.crashed]] = -1.0
        blame = [[int(j)] if c else None for j, c in zip(first, t.crashed, strict=True)] if first is not None else None
        model = CrashModel.condition(t.X, readings, t.crashed, blame=blame, censored=cut, parts=t.parts)
        whole, lower = np.where(cut, np.nan, readings), np.where(cut, readings, np.nan)
        joint = t.crashed if first is None else None
        exact = sampled(t.X, whole, sign, t.parts, rng, joint=joint, lower=lower if cut.any() else None, samples=40_000)
        if exact.effective < 300.0:
            continue
        assert model.converged
        in_mean.append(np.max(np.abs(model.predict(t.X)[0] - exact.mean) / t.prior_std))
        in_log_Z.append(abs(model.log_evidence - exact.log_evidence))
        in_blame += np.abs(model.blame() - exact.blame[t.crashed]).ravel().tolist()
    assert len(in_mean) >= 12
    assert within(in_mean, 0.1, 0.3)
    assert within(in_log_Z, 0.15, 0.4)
    assert within(in_blame, 0.06, 0.15)


def difference_quotient(evidence, parts, j, name, step):
    """Central difference of the log evidence, to fourth order; `step` has the hyperparameter's shape."""

    def at(k):
        changed = [dict(part) for part in parts]
        changed[j][name] = changed[j][name] + k * step
        return evidence(changed)

    return (8.0 * (at(0.5) - at(-0.5)) - (at(1.0) - at(-1.0))) / (6.0 * np.max(np.abs(step)))


@pytest.mark.parametrize("G", [2, 3])
def test_gradients_with_unblamed_crashes_and_cut_off_readings_are_difference_quotients(G):
    errors = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        t = draw(rng, int(rng.integers(10, 20)), G, 2, crash_noise_std=(0.05, 0.2)[seed % 2], crashes=5)
        crashes = np.flatnonzero(t.crashed)
        blame = [None] * len(t.X)
        blame[crashes[0]] = [int(j) for j in np.flatnonzero(t.violated[crashes[0]])]
        readings, cut = t.measured, np.zeros(t.Y.shape, dtype=bool)
        readings[crashes[:3], 0] = t.Y[crashes[:3], 0]
        cut[crashes[1:3], 0] = True

        def evidence(parts, t=t, readings=readings, blame=blame, cut=cut):
            return CrashModel.condition(t.X, readings, t.crashed, blame=blame, censored=cut, parts=parts).log_evidence

        model = CrashModel.condition(t.X, readings, t.crashed, blame=blame, censored=cut, parts=t.parts)
        assert model.converged
        for j, gradient in enumerate(model.log_evidence_gradient()):
            std = t.prior_std[j]
            for name in HYPERS:
                step = 1e-3 * (std**2 if name == "outputscale" else std if name == "mean" else t.parts[j]["noise_std"])
                exact = difference_quotient(evidence, t.parts, j, name, step)
                errors.append(abs(gradient[name] - exact) / max(abs(exact), 1e-6 / step))
            for d, unit in enumerate(np.eye(2)):
                step = 1e-3 * t.parts[j]["lengthscales"][d]
                exact = difference_quotient(evidence, t.parts, j, "lengthscales", step * unit)
                errors.append(abs(gradient["lengthscales"][d] - exact) / max(abs(exact), 1e-6 / step))
    assert len(errors) == 2 * G * 7
    assert max(errors) < 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_constraints_and_trials_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    t = draw(rng, 20, 3, 2, crash_noise_std=0.1, crashes=5)
    order, columns = rng.permutation(20), [2, 0, 1]
    cut = t.crashed[:, None] & (np.arange(3) == 0) & (rng.random((20, 1)) < 0.5)
    readings = np.where(cut, t.Y - 0.1, t.measured)
    model = CrashModel.condition(t.X, readings, t.crashed, censored=cut, parts=t.parts)
    other = CrashModel.condition(
        t.X[order],
        readings[order][:, columns],
        t.crashed[order],
        censored=cut[order][:, columns],
        parts=[t.parts[j] for j in columns],
    )
    Z = rng.random((9, 2))
    assert other.log_evidence == pytest.approx(model.log_evidence, abs=1e-8)
    np.testing.assert_allclose(other.predict(Z)[0], model.predict(Z)[0][:, columns], atol=1e-7)
    ranks = np.argsort(np.argsort(order[t.crashed[order]]))
    np.testing.assert_allclose(other.blame(), model.blame()[ranks][:, columns], atol=1e-7)


def test_one_constraint_is_gpcr():
    t, _ = random_draw(0, 1, 0.1)
    several = CrashModel.condition(t.X, t.measured, t.crashed, parts=t.parts)
    one = GPCR.condition(t.X, t.measured[:, 0], t.crashed, **t.parts[0])
    assert several.log_evidence == pytest.approx(one.log_evidence, abs=1e-10)
    np.testing.assert_allclose(several.p_safe(t.X), one.p_safe(t.X), atol=1e-10)
    np.testing.assert_array_equal(several.blame(), np.ones((t.crashed.sum(), 1)))


def test_a_function_moved_alone_begins_where_all_together_are():
    t, _ = random_draw(5, 3, 0.1)
    whole = CrashModel.condition(t.X, t.measured, t.crashed, parts=t.parts).posterior
    Z = np.random.default_rng(0).random((8, t.X.shape[1]))
    for j in range(3):
        np.testing.assert_allclose(whole.alone(j).predict(0, Z), whole.predict(j, Z), atol=1e-6)
        assert whole.alone(j).in_threshold(0) == pytest.approx(whole.in_threshold(j), abs=1e-6)


def test_a_reading_cut_off_far_below_says_nothing_and_one_at_its_height_nearly_what_a_whole_one_does():
    t, _ = random_draw(7, 1)
    crash = int(np.flatnonzero(t.crashed)[0])
    cut = np.arange(len(t.X)) == crash

    def with_reading(value, censored):
        y = np.where(cut, value, t.measured[:, 0])
        return GPCR.condition(t.X, y, t.crashed, censored=censored, **t.parts[0])

    plain = GPCR.condition(t.X, t.measured[:, 0], t.crashed, **t.parts[0])
    mean = plain.predict(t.X)[0][crash]
    far = with_reading(mean - 20.0 * t.prior_std[0], cut)
    np.testing.assert_allclose(far.predict(t.X), plain.predict(t.X), atol=1e-6)
    assert far.log_evidence == pytest.approx(plain.log_evidence, abs=1e-6)
    high = with_reading(mean + 2.0 * t.prior_std[0], cut)
    assert high.predict(t.X)[0][crash] > mean + 1.8 * t.prior_std[0]
