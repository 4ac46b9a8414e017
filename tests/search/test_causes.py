"""What made the crashes: three hypotheses by their evidence, and the blame and intervals that follow."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from crashbo import Constraint, Optimizer
from crashbo.models.bystander import fit_bystander
from crashbo.models.crash import CrashModel
from crashbo.models.fit import fit
from crashbo.models.hyperpriors import of_crash
from crashbo.search import causes

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def told(crashes, trials=40, constraints=("load",), **said):
    """A study of random points whose load is 10 + 5 x."""
    rng = np.random.default_rng(0)
    optimizer = Optimizer(SQUARE, list(constraints), seed=0)
    for x, y in rng.random((trials, 2)).tolist():
        if crashes(x, y):
            optimizer.tell({"x": x, "y": y}, crash=True, **said)
        else:
            load = 10.0 + 5.0 * x + 0.02 * float(rng.standard_normal())
            measured = {"load": load, "heat": float(np.sin(4.0 * y))}
            named = {c if isinstance(c, str) else c.name for c in constraints}
            optimizer.tell({"x": x, "y": y}, cost=-x, measured={k: measured[k] for k in named})
    return optimizer


def blames(optimizer, where):
    return [
        optimizer.blame(t)["load"]
        for t in optimizer.trials
        if t.state == "crash" and where(t.params["x"], t.params["y"])
    ]


def everywhere(x, y):
    return True


def by_load(x, y):
    return x > 0.7


def elsewhere(x, y):
    return y > 0.6 + 0.3 * x


def beside(x, y):
    return x > 0.75 or np.hypot(x - 0.3, y - 0.3) < 0.25


@pytest.mark.parametrize("constraints", [("load",), ("load", "heat")])
def test_a_crash_that_nothing_measured_explains_is_blamed_on_nothing_measured(constraints):
    optimizer = told(elsewhere, constraints=constraints)
    assert max(max(of.values()) for of in optimizer.blames().values()) < 0.1
    assert all(np.isinf(level.interval[1]) for level in optimizer.thresholds.values())


def test_a_crash_that_the_load_explains_is_blamed_on_it():
    assert min(blames(told(by_load), everywhere)) > 0.95


def test_of_two_causes_each_has_its_crashes_and_the_threshold_both_ends():
    optimizer = told(beside, trials=60)
    assert min(blames(optimizer, lambda x, y: x > 0.8)) > 0.8
    assert max(blames(optimizer, lambda x, y: np.hypot(x - 0.3, y - 0.3) < 0.2)) < 0.2
    low, high = optimizer.thresholds["load"].interval
    assert low <= 13.75 <= high < 15.0


def test_blame_that_is_told_settles_the_cause():
    assert min(blames(told(elsewhere, blame="load"), everywhere)) == 1.0


def test_blame_that_is_told_of_some_crashes_leaves_the_others_open():
    optimizer = told(beside, trials=60)
    for t in [t for t in optimizer.trials if t.state == "crash" and t.params["x"] > 0.75]:
        optimizer.tell(t, crash=True, blame="load", replace=True)
    assert min(blames(optimizer, lambda x, y: x > 0.75)) == 1.0
    assert max(blames(optimizer, lambda x, y: np.hypot(x - 0.3, y - 0.3) < 0.2)) < 0.2


def test_a_given_threshold_is_jumped_over_and_not_blamed():
    assert max(blames(told(elsewhere, constraints=[Constraint("load", 60.0)]), everywhere)) < 0.1


@pytest.mark.parametrize("crashes", [by_load, elsewhere, beside])
def test_blame_is_the_mixture_over_the_hypotheses(crashes):
    optimizer = told(crashes, trials=25)
    seen, alone = optimizer.view.seen, optimizer.view.causes.model
    warp = max(causes._scales(seen, optimizer.view.models.crash_model, 0), key=lambda s: s.log_evidence).warp
    warped = seen if warp is None else causes._warped(seen, [warp])
    other = causes._beside(warped)
    p = causes._probabilities(warped, alone, other)
    assert p.sum() == pytest.approx(1.0)
    expected = p[0] * alone.blame() + p[1] * other.blame()[:, :1]
    np.testing.assert_allclose([[of["load"]] for of in optimizer.blames().values()], expected, atol=1e-6)


def test_the_evidence_of_a_learnt_threshold_is_its_integral():
    """By quadrature over thresholds that are held one by one, everything else fitted to the end."""
    optimizer = told(by_load, trials=14)
    model = optimizer.view.models.crash_model
    profile = model.threshold_profile(0)
    p, best = profile.parametrisation, model.posterior
    grid = np.linspace(profile.c[0], profile.c[-1], 50)
    logs = []
    for c in p.shift + p.scale * grid:
        moved = replace(best.hypers[0], threshold=float(c))
        held = replace(p, start=p.inside(moved), held=("threshold",))
        logs.append(fit(best.data, (held,), start=replace(best.warm(), hypers=(moved,))).log_posterior)
    area = np.trapezoid(np.exp(np.array(logs) - model.fitted.log_posterior), grid)
    assert profile.log_width == pytest.approx(np.log(area), abs=0.1)


def test_a_hypothesis_counts_by_its_evidence_and_its_prior():
    optimizer = told(beside, trials=14)
    seen, alone = optimizer.view.seen, optimizer.view.models.crash_model
    other = causes._beside(seen)
    rival = fit_bystander(alone.posterior.data, of_crash(2), noise_std=seen.noise_std, enough=1e-4)
    logs = [model.fitted.log_posterior + model.threshold_profile(0).log_width for model in (alone, other)]
    expected = softmax(np.array([*logs, rival.log_posterior]) + np.log([1.0, 0.25, 0.25]))
    np.testing.assert_allclose(causes._probabilities(seen, alone, other), expected, atol=0.05)


def measured(load, level, trials=30):
    """A study of random points whose load is any function of a slope; it crashes where that exceeds a level."""
    rng = np.random.default_rng(3)
    optimizer = Optimizer(SQUARE, ["load"], seed=0)
    for x, y in rng.random((trials, 2)).tolist():
        u = x + 0.5 * y
        said = (
            {"crash": True} if u > level else {"cost": -x, "measured": {"load": load(u) + 0.01 * rng.standard_normal()}}
        )
        optimizer.tell({"x": x, "y": y}, **said)
    return optimizer


@pytest.mark.parametrize(
    ("load", "likeliest"),
    [
        (lambda u: np.exp(3.0 * u), "_logarithm"),
        (lambda u: np.tanh(4.0 * (u - 0.6)), "_sine"),
        (lambda u: 2.0 * u, "even"),
    ],
    ids=["steep", "saturating", "even"],
)
def test_the_scale_on_which_a_load_is_smooth_is_found_and_its_threshold_covered(load, likeliest):
    optimizer = measured(load, 0.95)
    best = max(causes._scales(optimizer.view.seen, optimizer.view.models.crash_model, 0), key=lambda s: s.log_evidence)
    names = {None: "even"} if best.warp is None else {best.warp: best.warp.forth.__qualname__.split(".")[0]}
    assert names[best.warp] == likeliest
    low, high = optimizer.thresholds["load"].interval
    assert low <= load(0.95) <= high


def test_the_evidence_on_a_scale_is_that_of_the_readings():
    """Readings that are warped by hand, with the density of what was read, weigh as much."""
    optimizer = measured(lambda u: np.exp(3.0 * u), 0.95)
    seen, model = optimizer.view.seen, optimizer.view.models.crash_model
    scale = next(scale for scale in causes._scales(seen, model, 0) if scale.warp is not None)
    warp, y = scale.warp, seen.Y[:, 0]
    by_hand = CrashModel.fit(seen.X, warp(y)[:, None], seen.crashed, prior=of_crash(2))
    (p,), (h,) = by_hand.fitted.parametrisations, by_hand.posterior.hypers
    slopes = np.log(np.diff(warp(np.stack([y - 1e-5, y + 1e-5])), axis=0)[0] / 2e-5)
    expected = by_hand.log_evidence + p.log_prior(p.inside(h))[0] + by_hand.threshold_profile(0).log_width
    assert scale.log_evidence == pytest.approx(expected + np.nansum(slopes) + np.log(warp.prior), abs=0.1)


@pytest.mark.parametrize("noise", [0.0, 0.01, None])
def test_a_noise_that_is_given_is_warped_with_the_readings(noise):
    rng = np.random.default_rng(3)
    optimizer = Optimizer(SQUARE, [Constraint("load", noise=noise)], seed=0)
    for x, y in rng.random((30, 2)).tolist():
        load = float(np.exp(3.0 * x + 1.5 * y) + (noise or 0.0) * rng.standard_normal())
        optimizer.tell(
            {"x": x, "y": y}, **({"crash": True} if load > 17.0 else {"cost": -x, "measured": {"load": load}})
        )
    low, high = optimizer.thresholds["load"].interval
    assert low <= 17.0 <= high < 40.0
