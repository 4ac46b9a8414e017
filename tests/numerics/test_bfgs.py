import numpy as np
import pytest
from scipy.optimize import minimize

from crashbo.numerics import bfgs

BOX = np.zeros(1), np.ones(1)


def rosenbrock(x):
    """Values and gradients at the rows of x."""
    a, b = 1.0 - x[:, :-1], x[:, 1:] - x[:, :-1] ** 2
    gradient = np.zeros_like(x)
    gradient[:, :-1] = -2.0 * a - 400.0 * x[:, :-1] * b
    gradient[:, 1:] += 200.0 * b
    return np.sum(a**2 + 100.0 * b**2, axis=1), gradient


def descend(function, starts, low, high, **options):
    settings = {"evaluations": 500, "enough": 1e-12, "reach": 0.5} | options
    return bfgs.minimise(lambda x, _: function(x), starts, low, high, **settings)


def test_every_start_reaches_the_bottom_of_a_curved_valley():
    starts = np.random.default_rng(0).uniform(-2.0, 2.0, (6, 2))
    found = descend(rosenbrock, starts, np.full(2, -5.0), np.full(2, 5.0))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)
    np.testing.assert_allclose(found.value, 0.0, atol=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_within_a_box_it_agrees_with_scipy(seed):
    rng = np.random.default_rng(seed)
    D = 5
    A = rng.standard_normal((D, D))
    A, centre = A @ A.T + 0.1 * np.eye(D), rng.uniform(-1.0, 2.0, D)

    def quadratic(x):
        gradient = (x - centre) @ A
        return 0.5 * np.sum(gradient * (x - centre), axis=1), gradient

    start = rng.random(D)
    theirs = minimize(lambda x: quadratic(x[None])[0][0], start, bounds=[(0.0, 1.0)] * D, options={"ftol": 1e-15})
    found = descend(quadratic, start[None], np.zeros(D), np.ones(D))
    assert np.all((found.x >= 0.0) & (found.x <= 1.0))
    assert found.value[0] <= theirs.fun + 1e-7 * max(1.0, abs(theirs.fun))


def test_a_start_ends_where_it_would_have_without_the_others():
    starts = np.array([[-1.5, 1.0], [0.3, 2.0], [1.8, -1.0]])
    low, high = np.full(2, -5.0), np.full(2, 5.0)
    together = descend(rosenbrock, starts, low, high)
    for start, end in zip(starts, together.x, strict=True):
        np.testing.assert_allclose(descend(rosenbrock, start[None], low, high).x[0], end, atol=1e-6)


def test_walls_of_infinity_turn_it_back_and_a_start_behind_one_stays_put():
    def walled(x):
        value, gradient = rosenbrock(x)
        beyond = x[:, 0] > 0.5
        return np.where(beyond, np.inf, value), np.where(beyond[:, None], np.nan, gradient)

    found = descend(walled, np.array([[-1.0, 1.0], [0.9, 0.9]]), np.full(2, -5.0), np.full(2, 5.0))
    assert found.value[0] < 0.3
    assert found.x[0, 0] <= 0.5
    np.testing.assert_array_equal(found.x[1], [0.9, 0.9])


def test_no_more_evaluations_than_allowed():
    calls = []

    def counted(x, _):
        calls.append(len(x))
        return rosenbrock(x)

    starts = np.array([[-1.5, 1.0], [0.3, 2.0]])
    found = bfgs.minimise(counted, starts, np.full(2, -5.0), np.full(2, 5.0), evaluations=7, enough=0.0, reach=0.5)
    assert found.evaluations == len(calls) == 7


def test_the_exact_metric_of_a_quadratic_takes_one_step():
    A = np.array([[50.0, 3.0], [3.0, 0.5]])
    found = descend(
        lambda x: (0.5 * np.einsum("ki,ij,kj->k", x, A, x), x @ A),
        np.array([[0.4, -0.7]]),
        np.full(2, -1.0),
        np.full(2, 1.0),
        reach=1.0,
        evaluations=2,
        metric=lambda: np.linalg.inv(A)[None],
    )
    np.testing.assert_allclose(found.x, 0.0, atol=1e-12)


def test_a_model_is_asked_for_anew_after_a_step_that_gained_much():
    asked = []

    def metric():
        asked.append(True)
        return np.eye(2)[None]

    def bowl(x):
        return 50.0 * np.sum(x**2, axis=1), 100.0 * x

    box = np.full(2, -5.0), np.full(2, 5.0)
    start = np.array([[3.0, 2.0]])
    found = descend(bowl, start, *box, metric=metric, renewed=20.0)
    np.testing.assert_allclose(found.x, 0.0, atol=1e-4)
    assert len(asked) > 1
    asked.clear()
    descend(bowl, start, *box, metric=metric)
    assert len(asked) == 1


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_metric_far_off_is_mended_by_steps_that_fail(seed, scale):
    rng = np.random.default_rng(seed)
    D = 4
    A = rng.standard_normal((D, D))
    A, centre = A @ A.T + 0.1 * np.eye(D), rng.uniform(-0.5, 1.5, D)

    def steep(x):  # convex; its curvature grows away from the centre
        gap = x - centre
        inner = gap @ A
        square = np.sum(inner * gap, axis=1)
        return 0.5 * square + 0.25 * square**2, inner * (1.0 + square)[:, None]

    start = rng.random(D)
    theirs = minimize(lambda x: steep(x[None])[0][0], start, bounds=[(0.0, 1.0)] * D, options={"ftol": 1e-15})
    found = descend(steep, start[None], np.zeros(D), np.ones(D), metric=lambda: scale * np.eye(D)[None])
    assert found.value[0] <= theirs.fun + 1e-6 * max(1.0, abs(theirs.fun))


def test_where_only_the_best_counts_those_behind_end_early_and_the_best_is_as_good():
    def wells(x):  # one well that is deep, one that is shallow, and curved so that neither is reached at once
        gap, deep = x**2 - 1.0, np.where(x[:, :1] > 0.0, 100.0, 0.0)
        return (np.sum(gap**2, axis=1) - deep[:, 0]), 4.0 * gap * x

    starts, low, high = np.array([[-0.2, 1.9], [0.2, 1.9], [1.9, -0.1]]), np.full(2, -2.0), np.full(2, 2.0)
    looked = []

    def counted(x, rows):
        looked.extend(rows.tolist())
        return wells(x)

    options = {"evaluations": 200, "enough": 1e-10, "reach": 0.1}
    found = bfgs.minimise(counted, starts, low, high, hopeless=5.0, **options)
    alone = descend(wells, starts, low, high, reach=0.1)
    assert found.value.min() == pytest.approx(alone.value.min(), abs=1e-6)
    assert looked.count(0) < 10 < looked.count(int(np.argmin(found.value)))


def test_slopes_whose_squares_vanish_or_overflow_are_slopes_all_the_same():
    tiny = 1e-161
    found = descend(lambda x: (tiny * x.sum(axis=1), tiny * (1.0 + 0.5 * x)), np.full((1, 1), 0.5), *BOX, enough=0.0)
    assert found.x < 0.5
    huge = 1e160
    found = descend(
        lambda x: (0.5 * huge * ((x - 0.3) ** 2).sum(axis=1), huge * (x - 0.3)), np.full((1, 1), 0.5), *BOX, reach=0.1
    )
    np.testing.assert_allclose(found.x, 0.3, atol=1e-6)


@pytest.mark.parametrize("beyond", [np.inf, -np.inf, np.nan])
def test_a_gradient_that_is_no_number_turns_it_back_without_a_warning(beyond):
    def broken(x):
        value, gradient = np.sum((x - 0.4) ** 2, axis=1), 2.0 * (x - 0.4)
        return value, np.where(x < 0.45, beyond, gradient)

    found = descend(broken, np.array([[0.9], [0.5]]), *BOX)
    assert np.all((found.x >= 0.45) & (found.x <= 0.9))
    assert np.all(found.value < [0.25, 0.01])
