"""Kernels against their formulas written out, and gradients against differences."""

import numpy as np
import pytest

from crashbo.numerics import kernels
from crashbo.numerics.kernels import MATERN52, SQUARED_EXPONENTIAL, Distances, squared_distances, trace_gradient


def matern52(r):
    return (1.0 + np.sqrt(5.0) * r + 5.0 / 3.0 * r**2) * np.exp(-np.sqrt(5.0) * r)


def squared_exponential(r):
    return np.exp(-0.5 * r**2)


KERNELS = [(MATERN52, matern52), (SQUARED_EXPONENTIAL, squared_exponential)]
both = pytest.mark.parametrize(("kernel", "formula"), KERNELS, ids=[kernel.name for kernel, _ in KERNELS])


def pairwise_distances(X, Z, lengthscales):
    return np.sqrt((((X[:, None, :] - Z[None, :, :]) / lengthscales) ** 2).sum(axis=2))


@both
@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_a_kernel_is_its_formula_written_out(kernel, formula, dimension):
    rng = np.random.default_rng(dimension)
    X, Z = rng.random((9, dimension)), rng.random((5, dimension))
    lengthscales = np.exp(rng.normal(-1.0, 1.0, dimension))
    expected = formula(pairwise_distances(X, Z, lengthscales))
    np.testing.assert_allclose(kernel.matrix(X, Z, lengthscales), expected, rtol=1e-12, atol=1e-15)
    gram, _ = kernel.gram(X, lengthscales)
    np.testing.assert_allclose(gram, formula(pairwise_distances(X, X, lengthscales)), rtol=1e-12, atol=1e-15)


@both
def test_a_gram_matrix_is_symmetric_with_ones_on_its_diagonal(kernel, formula):
    X = np.random.default_rng(1).random((40, 3))
    gram, slope = kernel.gram(X, np.array([0.1, 1.0, 5.0]))
    np.testing.assert_array_equal(np.diag(gram), 1.0)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-13)
    np.testing.assert_allclose(slope, slope.T, rtol=1e-13)


@both
def test_the_slope_of_a_profile_is_its_difference_quotient(kernel, formula):
    r2 = np.geomspace(1e-4, 50.0, 60)
    step = 1e-5 * r2
    quotient = (kernel.profile(r2 + step)[0] - kernel.profile(r2 - step)[0]) / (2.0 * step)
    np.testing.assert_allclose(kernel.profile(r2)[1], quotient, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(kernel.profile(r2)[0], formula(np.sqrt(r2)), rtol=1e-13)


@both
@pytest.mark.parametrize("dimension", [1, 3, 6])
def test_the_gradient_of_a_trace_in_the_lengthscales_is_its_difference_quotient(kernel, formula, dimension):
    rng = np.random.default_rng(dimension)
    X = rng.random((12, dimension)) + 3.0  # away from the origin: the gradient must not depend on where it is
    log_lengthscales = rng.normal(-0.5, 0.7, dimension)
    M = rng.standard_normal((12, 12))
    M += M.T

    def half_trace(t):
        return 0.5 * np.sum(M * formula(pairwise_distances(X, X, np.exp(t))))

    quotient = [
        (half_trace(log_lengthscales + step) - half_trace(log_lengthscales - step)) / 2e-5
        for step in 1e-5 * np.eye(dimension)
    ]
    _, slope = kernel.gram(X, np.exp(log_lengthscales))
    np.testing.assert_allclose(
        trace_gradient(M * slope, X, np.exp(log_lengthscales)), quotient, rtol=1e-6, atol=1e-8 * np.abs(quotient).max()
    )


@pytest.mark.parametrize("gap", [1e-12, 1e-9, 1e-6, 1e-3])
def test_distances_between_near_repeats_keep_the_digits_that_their_inputs_have(gap):
    rng = np.random.default_rng(2)
    U = rng.random((20, 4))
    V = U + gap * rng.uniform(0.5, 1.0, U.shape)
    exact = ((U - V) ** 2).sum(axis=1)
    # Centring costs one rounding of numbers of size one, beside differences of size `gap`.
    np.testing.assert_allclose(np.diag(squared_distances(U, V)), exact, rtol=2e-15 / gap + 1e-9)


def test_distances_between_exact_repeats_are_zero_and_none_is_negative():
    U = np.repeat(np.random.default_rng(3).random((10, 5)), 3, axis=0)
    r2 = squared_distances(U, U)
    assert np.all(r2 >= 0.0)
    np.testing.assert_array_equal(r2 == 0.0, np.kron(np.eye(10), np.ones((3, 3))) == 1.0)


def test_repeats_have_a_covariance_of_exactly_one():
    X = np.full((6, 3), 1.0 / 3.0)
    for kernel, _ in KERNELS:
        np.testing.assert_array_equal(kernel.gram(X, np.full(3, 0.02))[0], 1.0)


@pytest.mark.parametrize("sets", [1, 3])
def test_prepared_distances_are_those_written_out_under_every_set_of_lengthscales(sets):
    rng = np.random.default_rng(4)
    X, lengthscales = rng.random((30, 4)), np.exp(rng.normal(-1.0, 1.0, (sets, 4)))
    Z = np.vstack(
        [rng.random((5, 4)), X[3:5], X[7:9] + 1e-9, 3.0 + rng.random((2, 4))]
    )  # repeats, near, and far outside
    found = Distances.of(X, lengthscales).to(Z)
    exact = np.hstack([(((Z[:, None, :] - X[None, :, :]) / one) ** 2).sum(axis=2) for one in lengthscales])
    np.testing.assert_allclose(found, exact, rtol=1e-7, atol=1e-30)
    assert np.all(found >= 0.0)
    assert np.all(found[5, 3::30] == 0.0)


@pytest.mark.parametrize("layout", ["rows", "columns", "strided"])
def test_a_large_kernel_is_filled_in_parts_like_a_small_one(layout, monkeypatch):
    monkeypatch.setattr(kernels, "_AT_ONCE", 64)
    r2 = np.random.default_rng(5).random((23, 17)) * 9.0
    r2 = {"rows": r2, "columns": np.asfortranarray(r2), "strided": r2[::2, ::3]}[layout]
    for found, expected in zip(MATERN52.profile(r2), (matern52(np.sqrt(r2)), None), strict=True):
        assert found.shape == r2.shape
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-13)
    slopes = [[MATERN52.profile(np.array([[value]]))[1][0, 0] for value in row] for row in r2]
    np.testing.assert_array_equal(MATERN52.profile(r2)[1], slopes)
