"""Fronts, hypervolumes and cells against brute force: sampling, inclusion and exclusion, and each other."""

from itertools import combinations

import mpmath as mp
import numpy as np
import pytest

from crashbo.numerics.gaussians import log_bands
from crashbo.numerics.hypervolume import cells, hypervolume, on_front


def points(n, M, seed, coarse=False):
    """Points of which some lie beyond the reference point of ones, and, if coarse, many tie."""
    Y = np.random.default_rng(seed).random((n, M)) ** 0.5 * 1.2
    return np.round(4.0 * Y) / 4.0 if coarse else Y


def by_inclusion_and_exclusion(Y, reference):
    total = 0.0
    for k in range(1, len(Y) + 1):
        for some in combinations(Y, k):
            total -= (-1) ** k * np.prod(np.maximum(reference - np.max(some, axis=0), 0.0))
    return total


@pytest.mark.parametrize("M", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [0, 1, 4, 9])
@pytest.mark.parametrize("coarse", [False, True])
def test_a_hypervolume_is_that_of_a_union_of_boxes(M, n, coarse):
    Y = points(n, M, seed=n, coarse=coarse)
    assert hypervolume(Y, np.ones(M)) == pytest.approx(by_inclusion_and_exclusion(Y, np.ones(M)), abs=1e-12)


def test_a_hypervolume_loses_no_digits_to_its_units():
    Y = points(20, 3, seed=1)
    units = np.array([1e-12, 1e9, 3.0])
    assert hypervolume(units * Y + 5.0 * units, 6.0 * units) == pytest.approx(
        hypervolume(Y, np.ones(3)) * np.prod(units)
    )


@pytest.mark.parametrize("coarse", [False, True])
def test_the_front_is_what_no_other_beats(coarse):
    Y = points(40, 3, seed=2, coarse=coarse)
    beaten = [any(np.all(z <= y) and np.any(z < y) for z in Y) for y in Y]
    assert on_front(Y).tolist() == [not b for b in beaten]


@pytest.mark.parametrize("M", [2, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 30])
@pytest.mark.parametrize("coarse", [False, True])
def test_every_place_that_nothing_beats_lies_in_exactly_one_cell(M, n, coarse):
    for seed in range(5):
        Y, rng = points(n, M, seed=100 * n + seed, coarse=coarse), np.random.default_rng(seed)
        low, high = cells(Y, np.ones(M))
        places = 1.4 * rng.random((2000, M)) - 0.2  # some beyond the reference point, and better than all
        inside = np.sum(np.all((places[:, None] >= low) & (places[:, None] < high), axis=2), axis=1)
        beaten = np.any(np.all(places[:, None] >= Y[None], axis=2), axis=1) | np.any(places >= 1.0, axis=1)
        np.testing.assert_array_equal(inside, ~beaten)
        assert len(low) <= 2 * n + 1


@pytest.mark.parametrize("M", [2, 3])
def test_cells_and_hypervolume_fill_the_box(M):
    Y = points(25, M, seed=3) * 0.8
    low, high = cells(Y, np.ones(M))
    rest = np.prod(high - np.maximum(low, 0.0), axis=1).sum()
    assert rest + hypervolume(Y, np.ones(M)) == pytest.approx(1.0, abs=1e-12)


def exact_band(low, high):
    """Log height of the band, and its derivatives in mean and standard deviation, with digits to spare."""
    with mp.workdps(80):
        low, high = (mp.mpf(float(z)) for z in (low, high))
        Phi = lambda z: mp.erfc(-z / mp.sqrt(2)) / 2 if z > -mp.inf else mp.mpf(0)  # noqa: E731
        phi = lambda z: mp.npdf(z) if z > -mp.inf else mp.mpf(0)  # noqa: E731
        h = lambda z: phi(z) + z * Phi(z) if z > -mp.inf else mp.mpf(0)  # noqa: E731
        height = h(high) - h(low)
        values = mp.log(height), (Phi(high) - Phi(low)) / height, (phi(high) - phi(low)) / height
        return [float(v) for v in values]


@pytest.mark.parametrize("high", [-50.0, -20.0, -6.0, -1.0, 0.3, 3.0, 12.0])
@pytest.mark.parametrize("width", [1e-10, 1e-5, 1e-3, 0.1, 4.0, 60.0, np.inf])
def test_a_band_keeps_its_digits_however_thin_or_far(high, width):
    band = log_bands(np.array([[high - width, high]]), np.array([0]), np.array([1]))
    log_height, by_mean, by_std = exact_band(high - width, high)
    assert band.log_height[0, 0] == pytest.approx(log_height, abs=1e-9, rel=1e-11)
    assert band.by_mean[0, 0] == pytest.approx(by_mean, rel=1e-9, abs=1e-12)
    assert band.by_std[0, 0] == pytest.approx(by_std, rel=1e-9, abs=1e-12)


def test_a_band_a_million_deviations_away_still_has_a_slope():
    band = log_bands(np.array([[-np.inf, -1e6]]), np.array([0]), np.array([1]))
    assert band.log_height[0, 0] == pytest.approx(-5e11, rel=1e-6)
    assert band.by_mean[0, 0] == pytest.approx(1e6, rel=1e-6)
