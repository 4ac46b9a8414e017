"""The two models of a study: costs that cannot blind them, pending trials, and warm starts."""

from dataclasses import replace

import numpy as np
import pytest

from crashbo.models import hyperpriors, latent
from crashbo.search.acquisition import LogEI
from crashbo.search.calibration import Calibration
from crashbo.search.costs import CostScale
from crashbo.search.fitting import fit_surrogates
from crashbo.search.observations import Observations

D = 2


def cost_of(X):
    return (X[:, 0] - 0.3) ** 2 + (X[:, 1] - 0.6) ** 2 + 1.0


def observations(n=16, seed=0, *, pending=()):
    """Trials that crash where x0 + x1 > 1.3."""
    X = np.random.default_rng(seed).random((n, D))
    g = X.sum(axis=1)
    crashed = g > 1.3
    return Observations(
        numbers=tuple(range(n)),
        X=X,
        succeeded=~crashed,
        cost=np.where(crashed, np.nan, cost_of(X)),
        Y=np.where(crashed, np.nan, g)[:, None],
        crashed=crashed,
        blame=[None] * n,
        pending=np.array(pending, dtype=float).reshape(-1, D),
        cost_noise_std=None,
        noise_std=(None,),
        thresholds=(None,),
    )


def first(seen, n):
    return replace(
        seen,
        numbers=seen.numbers[:n],
        X=seen.X[:n],
        succeeded=seen.succeeded[:n],
        cost=seen.cost[:n],
        Y=seen.Y[:n],
        crashed=seen.crashed[:n],
        blame=seen.blame[:n],
    )


def fit(seen, memory=None):
    return fit_surrogates(seen, memory, hyperpriors.of_cost(D), hyperpriors.weak(D))


def safety(models):
    """log P(safe), nothing being known of earlier proposals."""
    return models.safety(Calibration())


def grid():
    side = np.linspace(0.05, 0.95, 7)
    return np.array([[a, b] for a in side for b in side])


COSTS = [
    np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
    np.array([1.0, 1.1, 0.9, 1.05, 1e9]),
    np.array([-5.0, -1e-3, 4.0, 1e3, 1e6, 1e12]),
    np.array([3.0]),
    np.full(4, 7.0),
    np.concatenate([np.random.default_rng(0).standard_normal(50), [1e4, 1e5, 1e6]]),
    1e-9 * np.array([1.0, 2.0, 3.0, 4e5]),
]


def apart(n):
    """Points of which none is near another."""
    return np.arange(float(n))[:, None]


@pytest.mark.parametrize("cost", COSTS)
def test_the_cost_scale_keeps_the_order_of_costs(cost):
    seen = CostScale.of(apart(len(cost)), cost)(np.sort(cost))
    assert np.all(np.diff(seen)[np.diff(np.sort(cost)) > 0.0] > 0.0)
    assert np.all(np.isfinite(seen))


@pytest.mark.parametrize("cost", COSTS)
def test_the_cost_scale_leaves_the_better_half_as_it_is(cost):
    better = cost[cost <= np.median(cost)]
    np.testing.assert_array_equal(CostScale.of(apart(len(cost)), cost)(better), better)


def test_the_cost_scale_leaves_ordinary_costs_as_they_are():
    cost = np.random.default_rng(1).random(30)
    np.testing.assert_array_equal(CostScale.of(apart(len(cost)), cost)(cost), cost)


def test_the_cost_scale_draws_one_huge_cost_near_and_continues_without_a_jump():
    cost = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 1e9])
    scale = CostScale.of(apart(len(cost)), cost)
    assert scale(cost).max() < 1.0 + 30.0 * np.ptp(cost[:-1])
    edge = scale(scale.fence + scale.spread * np.array([-1e-6, 0.0, 1e-6]))
    np.testing.assert_allclose(np.diff(edge), scale.spread * 1e-6, rtol=1e-3)


def test_the_cost_scale_tells_worse_costs_apart_from_the_best_even_if_most_are_equal():
    seen = CostScale.of(apart(5), np.array([0.0, 0.0, 0.0, 5.0, 9.0]))(np.array([0.0, 5.0, 9.0]))
    assert seen[0] < seen[1] < seen[2]


@pytest.mark.parametrize("seed", [1, 2])
def test_one_huge_cost_does_not_blind_the_model_elsewhere(seed):
    seen = observations(20, seed)
    i = int(np.flatnonzero(seen.succeeded & (seen.X[:, 0] > 0.7))[0])
    spoiled = fit(replace(seen, cost=np.where(np.arange(20) == i, 1e9, seen.cost)))
    X = grid()
    away = X[(np.linalg.norm(X - seen.X[i], axis=1) > 0.45) & (X.sum(axis=1) < 1.2)]
    assert np.corrcoef(spoiled.cost.predict(0, away)[0], cost_of(away))[0, 1] > 0.8


def test_a_cluster_of_trials_at_one_place_does_not_make_all_others_alike():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.random((12, 2)), 0.5 + 1e-3 * rng.standard_normal((90, 2))])
    cost = np.append(rng.uniform(1.0, 4.0, 12), 0.9 + 0.01 * rng.standard_normal(90))
    np.testing.assert_array_equal(CostScale.of(X, cost)(cost), cost)


def test_a_pending_trial_shrinks_expected_improvement_there_and_leaves_the_rest():
    seen = observations(10)
    free = fit(seen)
    X = grid()
    best = X[[int(np.argmax(LogEI(free.cost, free.aim.eta)(X)))]]
    waiting = fit(replace(seen, pending=best))
    assert LogEI(waiting.cost, waiting.aim.eta)(best)[0] < LogEI(free.cost, free.aim.eta)(best)[0] - 1.0
    np.testing.assert_allclose(waiting.cost.predict(0, X)[0], free.cost.predict(0, X)[0], atol=1e-6)
    assert np.all(waiting.cost.predict(0, X)[1] <= free.cost.predict(0, X)[1] + 1e-12)
    assert waiting.aim.eta == pytest.approx(min(free.aim.eta, free.cost.predict(0, best)[0][0]), abs=1e-6)


def test_a_pending_trial_says_nothing_about_crashes():
    seen = observations(10)
    waiting = fit(replace(seen, pending=np.array([[0.9, 0.9], [0.1, 0.1]])))
    np.testing.assert_allclose(safety(waiting)(grid()), safety(fit(seen))(grid()), atol=1e-9)
    assert waiting.memory.numbers == seen.numbers


@pytest.mark.parametrize("seed", range(3))
def test_a_warm_fit_agrees_with_a_cold_one(seed):
    seen = observations(18, seed)
    memory = None
    for n in range(12, 18):
        memory = fit(first(seen, n), memory).memory
    warm, cold = fit(seen, memory), fit(seen)
    np.testing.assert_allclose(np.exp(safety(warm)(grid())), np.exp(safety(cold)(grid())), atol=0.1)
    spread = np.std(cost_of(grid()))
    np.testing.assert_allclose(warm.cost.predict(0, seen.X)[0], cold.cost.predict(0, seen.X)[0], atol=0.05 * spread)
    np.testing.assert_allclose(warm.aim.eta, cold.aim.eta, atol=0.05 * spread)


def test_a_memory_of_other_trials_is_lined_up_by_their_numbers():
    seen = observations(16)
    memory = fit(seen).memory
    drop = np.array([i not in (3, 7) for i in range(16)])
    kept = replace(
        seen,
        numbers=tuple(i for i in range(16) if drop[i]),
        X=seen.X[drop],
        cost=seen.cost[drop],
        Y=seen.Y[drop],
        succeeded=seen.succeeded[drop],
        crashed=seen.crashed[drop],
        blame=[None] * int(drop.sum()),
    )
    warm, cold = fit(kept, memory), fit(kept)
    np.testing.assert_allclose(np.exp(safety(warm)(grid())), np.exp(safety(cold)(grid())), atol=0.1)


def test_before_the_first_success_there_is_a_crash_model_and_no_cost():
    seen = observations(6)
    crashed = np.ones(6, dtype=bool)
    models = fit(replace(seen, cost=np.full(6, np.nan), Y=np.full((6, 1), np.nan), crashed=crashed))
    assert models.cost is None
    assert np.all(np.exp(safety(models)(seen.X)) < 0.5)


def test_p_safe_falls_across_the_boundary_and_the_threshold_is_found():
    models = fit(observations(40))
    p = np.exp(safety(models)(np.array([[0.1, 0.2], [0.5, 0.5], [0.9, 0.8]])))
    assert p[0] > 0.95
    assert p[1] > 0.9
    assert p[2] < 0.1
    low, high = models.crash_model.threshold_intervals[0]
    assert low <= 1.3 <= high
    assert models.crash.hypers[0].threshold == pytest.approx(1.3, abs=0.1)


def test_successes_are_the_rows_of_the_cost_that_were_measured():
    seen = observations(16, pending=[[0.5, 0.5]])
    models = fit(seen)
    assert models.successes == int(seen.succeeded.sum())
    assert len(models.cost.data.X) == models.successes + 1


def test_a_fit_shared_by_a_batch_is_that_of_the_same_trials_with_others_pending():
    pending = np.array([[0.2, 0.9], [0.55, 0.3]])
    seen = observations()
    alone, busy = fit(seen), fit(replace(seen, pending=pending))
    for shared in (alone.at_pending(pending), fit(replace(seen, pending=pending[:1])).at_pending(pending)):
        for got, want in zip(shared.cost.predict(0, grid()), busy.cost.predict(0, grid()), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-10)
        assert shared.aim.eta == pytest.approx(busy.aim.eta, abs=1e-10)
        np.testing.assert_array_equal(safety(shared)(grid()), safety(alone)(grid()))


def test_while_nothing_has_crashed_the_threshold_is_the_prior_s_median_above_the_highest_success():
    rng = np.random.default_rng(4)
    X = rng.random((12, 2))
    y = X.sum(axis=1)
    seen = replace(
        observations(12),
        X=X,
        cost=cost_of(X),
        Y=y[:, None],
        crashed=np.zeros(12, dtype=bool),
        noise_std=(1e-4,),
    )
    models = fit(seen)
    unit = np.sqrt(models.crash.hypers[0].outputscale)
    draws = rng.gumbel(0.3, 0.8, 200_000)
    assert (models.threshold(0) - y.max()) / unit == pytest.approx(np.median(draws[draws > 0.0]), abs=0.05)


def median_by_quadrature(models):
    """Of the first threshold's posterior, all else held at the fit, by a fine grid and a sum."""
    mode, p = models.crash_model.posterior, models.parametrisations[0]
    inside = np.clip(p.reference + 0.05 * np.sinh(np.linspace(-4.0, 7.0, 400)), *p.threshold_bounds)
    levels = p.shift + p.scale * np.unique(inside)
    log_density = []
    for c in levels:
        moved = replace(mode.hypers[0], threshold=c)
        post = latent.condition(mode.data, (moved,), start=mode.sites(), grams=mode.grams)
        log_density.append(post.log_evidence + p.log_prior(p.inside(moved))[0])
    density = np.exp(np.array(log_density) - max(log_density))
    mass = np.cumsum(np.append(0.0, 0.5 * (density[1:] + density[:-1]) * np.diff(levels)))
    return float(np.interp(0.5, mass / mass[-1], levels)), levels[density > 1e-3]


@pytest.mark.parametrize("outcome", ["crashes", "no crash", "bounds"])
def test_the_threshold_is_the_median_of_its_posterior(outcome):
    seen = observations(10)
    if outcome != "crashes":
        bounds = (3.0, 5.0) if outcome == "bounds" else None
        Y = seen.X.sum(axis=1, keepdims=True)
        seen = replace(seen, Y=Y, crashed=np.zeros(10, dtype=bool), cost=cost_of(seen.X), thresholds=(bounds,))
    models = fit(seen)
    median, plausible = median_by_quadrature(models)
    assert models.threshold(0) == pytest.approx(median, abs=0.03 * np.ptp(plausible))
    low, high = models.crash_model.threshold_interval(0)
    assert low <= models.threshold(0) <= high


def test_a_threshold_that_is_known_is_reported_as_it_is_and_none_before_a_success_was_measured():
    assert fit(replace(observations(12), thresholds=(1.25,))).threshold(0) == 1.25
    seen = observations(12)
    assert fit(replace(seen, Y=np.full_like(seen.Y, np.nan))).threshold(0) is None
