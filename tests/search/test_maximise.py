"""Maximising over the unit cube: points that fill it, and climbs that reach the top."""

import numpy as np
import pytest

from crashbo.search.maximise import ascend, diverse_best, perturbations, spread_points


@pytest.mark.parametrize("dimension", range(1, 11))
def test_spread_points_leave_no_gap_along_any_axis(dimension):
    n = 512
    points = spread_points(n, dimension, rng=np.random.default_rng(0))
    assert points.shape == (n, dimension)
    assert np.all((points >= 0.0) & (points < 1.0))
    gaps = np.diff(np.sort(points, axis=0), axis=0)
    # Random points leave gaps of 9/n or so along the worst of ten axes.
    assert n * gaps.max() < 12.0


@pytest.mark.parametrize("seed", range(3))
def test_spread_points_give_every_cell_of_a_grid_its_share(seed):
    n = 512
    points = spread_points(n, 2, rng=np.random.default_rng(seed))
    cells = np.zeros((4, 4))
    np.add.at(cells, tuple((points * 4).astype(int).T), 1)
    # Thirty-two each: random points scatter by 5.5, so that some cell would be off by ten or more.
    assert np.abs(cells - n / 16).max() <= 4


def test_the_shift_of_spread_points_is_random():
    a, b = (spread_points(8, 2, rng=np.random.default_rng(seed)) for seed in (0, 1))
    again = spread_points(8, 2, rng=np.random.default_rng(0))
    assert not np.allclose(a, b)
    np.testing.assert_array_equal(a, again)


def test_perturbations_stay_in_the_cube_about_their_centres():
    centres = np.array([[0.5, 0.5, 0.5, 0.5], [0.0, 1.0, 0.2, 0.8]])
    points = perturbations(centres, 400, np.full(4, 0.1), rng=np.random.default_rng(0))
    assert points.shape == (800, 4)
    assert np.all((points >= 0.0) & (points <= 1.0))
    steps = points.reshape(2, 400, 4) - centres[:, None, :]
    assert np.abs(steps).max() < 0.6
    assert np.median(np.abs(steps[0][steps[0] != 0.0])) < 0.1
    moved = np.sum(steps[0] != 0.0, axis=1)
    assert np.mean(moved == 4) > 0.3
    assert np.mean((moved > 0) & (moved < 4)) > 0.2


PEAK = np.array([0.3, 0.8, 1.4])  # the last lies outside: its best reachable value is 1


def bowl(X):
    return -np.sum((X - PEAK) ** 2, axis=1), -2.0 * (X - PEAK)


def test_a_climb_reaches_the_top_from_everywhere_and_stays_in_the_cube():
    starts = np.random.default_rng(0).random((6, 3))
    ends, heights = ascend(bowl, starts, np.ones(3, dtype=bool))
    np.testing.assert_allclose(ends, np.tile([0.3, 0.8, 1.0], (6, 1)), atol=1e-4)
    np.testing.assert_array_equal(heights, bowl(ends)[0])


def test_a_climb_moves_only_what_is_free():
    starts = np.random.default_rng(0).random((6, 3))
    before = starts.copy()
    free = np.array([True, False, True])
    ends = np.vstack([ascend(bowl, start, free)[0] for start in starts[:, None, :]])
    np.testing.assert_array_equal(ends[:, 1], starts[:, 1])
    np.testing.assert_allclose(ends[:, [0, 2]], np.tile([0.3, 1.0], (6, 1)), atol=1e-4)
    np.testing.assert_array_equal(starts, before)


def test_with_nothing_free_a_climb_stays_where_it_is():
    starts = np.random.default_rng(0).random((2, 3))
    np.testing.assert_array_equal(ascend(bowl, starts, np.zeros(3, dtype=bool))[0], starts)
    ends, heights = ascend(bowl, np.zeros((0, 3)), np.ones(3, dtype=bool))
    assert ends.shape == (0, 3)
    assert heights is None


def test_every_start_climbs_its_own_hill():
    def hills(X):
        """One hill about 0.2 and one about 0.8, in one dimension."""
        left = X[:, 0] < 0.5
        top = np.where(left, 0.2, 0.8)
        return -((X[:, 0] - top) ** 2), (-2.0 * (X[:, 0] - top))[:, None]

    ends, _ = ascend(hills, np.array([[0.3], [0.7], [0.05], [0.99]]), np.ones(1, dtype=bool))
    np.testing.assert_allclose(ends[:, 0], [0.2, 0.8, 0.2, 0.8], atol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, -np.inf, -1e300])
def test_one_dead_start_does_not_keep_the_others_from_the_top(bad):
    def broken(X):
        value, gradient = bowl(X)
        dead = X[:, 0] > 0.9
        return np.where(dead, bad, value), np.where(dead[:, None], np.nan, gradient)

    starts = np.array([[0.95, 0.5, 0.5], [0.5, 0.1, 0.1]])
    ends, _ = ascend(broken, starts, np.ones(3, dtype=bool))
    np.testing.assert_allclose(ends[1], [0.3, 0.8, 1.0], atol=1e-4)
    np.testing.assert_allclose(ends[0], starts[0], atol=1e-12)


def test_the_diverse_best_begin_with_the_best_and_keep_apart():
    rng = np.random.default_rng(0)
    X, value = rng.random((300, 2)), rng.random(300)
    apart = np.array([0.2, 0.3])
    chosen = diverse_best(X, value, 8, apart)
    assert len(chosen) == 8
    assert chosen[0] == np.argmax(value)
    assert np.all(np.diff(value[chosen]) <= 0.0)
    gaps = np.linalg.norm((X[chosen][:, None] - X[chosen][None]) / apart, axis=2)
    assert np.all(gaps[~np.eye(8, dtype=bool)] > 1.0)


def test_fewer_are_chosen_where_no_more_are_apart():
    assert len(diverse_best(np.full((20, 2), 0.4), np.arange(20.0), 5, np.ones(2))) == 1
