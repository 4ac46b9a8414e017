"""Nothing degenerate fails: no exception, no NaN, no warning (warnings are errors here)."""

import numpy as np
import pytest

from crashbo.models import GP, GPCR

KINDS = (
    "ordinary",
    "all crashed",
    "none crashed",
    "one trial",
    "all x equal",
    "all y equal",
    "contradictory",
    "nearly repeated",
    "no measurement",
    "crashes measured",
    "constant column",
    "outlier",
)
SCALES = (1.0, 1e-12, 1e12)


def degenerate(kind, rng, scale, dimension=None):
    """Trials of one kind; y is scaled, and sometimes lies far from zero."""
    n = int(rng.choice([1, 2, 3, 5, 8, 13, 25]))
    D = dimension or int(rng.integers(1, 5))
    X = rng.random((n, D))
    g = np.sin(3.0 * X.sum(axis=1)) + rng.choice([0.0, 1e-3, 0.1]) * rng.standard_normal(n)
    crashed = g > rng.normal(0.3, 0.5)
    if kind == "all crashed":
        crashed[:] = True
    elif kind == "none crashed":
        crashed[:] = False
    elif kind == "one trial":
        X, g, crashed = X[:1], g[:1], crashed[:1]
    elif kind == "all x equal":
        X[:] = X[0]
    elif kind == "all y equal":
        g[:] = rng.choice([0.0, 1.0, -5.0])
    elif kind == "contradictory":
        X, g = np.repeat(X, 2, axis=0), np.repeat(g, 2)
        crashed = np.arange(2 * n) % 2 == 0
    elif kind == "nearly repeated":
        X = np.repeat(X[: max(1, n // 3)], 4, axis=0)
        X += 1e-9 * rng.random(X.shape)
        g = np.sin(3.0 * X.sum(axis=1))
        crashed = g > np.median(g)
    elif kind == "constant column":
        X[:, 0] = 0.5
    elif kind == "outlier":
        g[0] = 1e9
    y = scale * (g + rng.choice([0.0, 0.0, 100.0]))
    if kind == "no measurement":
        y[:] = np.nan
    elif kind != "crashes measured":
        y[crashed] = np.nan
    return X, y, crashed


def assert_sound(model, X, rng):
    """Moments and P(safe) are numbers within their ranges, at the trials and elsewhere."""
    Z = np.vstack([X, rng.random((10, X.shape[1])), np.full((1, X.shape[1]), 50.0)])
    mean, var = model.predict(Z)
    outputscale = model.hyperparameters.outputscale
    assert np.all(np.isfinite(mean))
    assert np.all((var > 0.0) & (var <= outputscale))
    assert np.isfinite(model.log_evidence)
    if isinstance(model, GPCR):
        p = model.p_safe(Z)
        assert np.all((p >= 0.0) & (p <= 1.0))
    assert all(np.all(np.isfinite(slope)) for slope in model.log_evidence_gradient().values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_takes_whatever_comes(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for i in range(30):
        X, y, crashed = degenerate(kind, rng, SCALES[i % 3])
        noise = None if i % 2 else SCALES[i % 3] * 0.01
        model = GPCR.fit(X, y, crashed, noise_std=noise)
        assert_sound(model, X, rng)
        if np.isnan(y[~crashed]).all():
            assert model.threshold is None
        else:
            assert np.isfinite(model.threshold)


@pytest.mark.parametrize("kind", KINDS)
def test_condition_takes_whatever_comes(kind):
    rng = np.random.default_rng(100 + KINDS.index(kind))
    for i in range(20):
        scale = SCALES[i % 3]
        X, y, crashed = degenerate(kind, rng, scale)
        model = GPCR.condition(
            X,
            y,
            crashed,
            lengthscales=np.exp(rng.normal(-1.0, 1.0, X.shape[1])),
            outputscale=scale**2 * np.exp(rng.normal(0.0, 1.0)),
            threshold=scale * rng.normal(0.3, 1.0),
            noise_std=scale * rng.choice([0.0, 1e-9, 1e-6, 0.01, 0.3]),
            crash_noise_std=scale * rng.choice([0.0, 1e-6, 0.05]),
            mean=scale * rng.choice([0.0, 1.0]),
        )
        assert_sound(model, X, rng)


@pytest.mark.parametrize("kind", KINDS)
def test_threshold_intervals_take_whatever_comes(kind):
    rng = np.random.default_rng(200 + KINDS.index(kind))
    for i in range(2):
        X, y, crashed = degenerate(kind, rng, SCALES[i % 3])
        model = GPCR.fit(X, y, crashed)
        if model.threshold is None:
            assert model.threshold_interval is None
        else:
            low, high = model.threshold_interval
            assert np.isfinite([low, high]).all()
            assert low <= model.threshold <= high


@pytest.mark.parametrize("kind", KINDS)
def test_the_papers_prior_and_told_thresholds_take_whatever_comes(kind):
    rng = np.random.default_rng(300 + KINDS.index(kind))
    for i in range(4):
        X, y, crashed = degenerate(kind, rng, SCALES[i % 3])
        for told in ({"prior": "paper"}, {"threshold": 0.5 * SCALES[i % 3]}, {"threshold": (0.0, SCALES[i % 3])}):
            assert_sound(GPCR.fit(X, y, crashed, **told), X, rng)


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_takes_whatever_comes(kind):
    rng = np.random.default_rng(400 + KINDS.index(kind))
    earlier = None
    for _ in range(4):
        X, y, crashed = degenerate(kind, rng, 1.0, dimension=2)
        model = GPCR.fit(X, y, crashed, start=earlier)
        assert_sound(model, X, rng)
        earlier = model


@pytest.mark.parametrize("kind", KINDS)
def test_regression_takes_whatever_comes(kind):
    rng = np.random.default_rng(500 + KINDS.index(kind))
    for i in range(8):
        X, y, _ = degenerate(kind, rng, SCALES[i % 3])
        assert_sound(GP.fit(X, y), X, rng)


def test_a_hundred_and_fifty_trials_with_every_trouble_at_once():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((50, 3)), 3, axis=0)
    X[::3] += 1e-9
    crashed = rng.random(150) < 0.4
    y = np.where(crashed & (rng.random(150) < 0.8), np.nan, 1e12 * X[:, 0].round(1))
    model = GPCR.fit(X, y, crashed)
    assert_sound(model, X, rng)


def test_no_point_asked_is_no_answer():
    model = GPCR.fit([[0.1, 0.2], [0.8, 0.4]], [0.3, np.nan], [False, True])
    assert [a.shape for a in model.predict(np.empty((0, 2)))] == [(0,), (0,)]
    assert model.p_safe(np.empty((0, 2))).shape == (0,)


def test_an_interval_is_one_also_where_c_has_no_digits_left_for_it():
    model = GPCR.fit(np.full((3, 1), 0.5), [5e14, np.nan, 1e15], [False, True, False], prior="paper")
    low, high = model.threshold_interval
    assert 1e15 <= low <= high < 1.1e15
