"""The posterior under sites against dense algebra."""

import numpy as np
import pytest

from crashbo.numerics.kernels import MATERN52
from crashbo.numerics.linalg import (
    NotPositiveDefinite,
    cholesky,
    condition,
    product,
    times,
    triangular_inverse,
)

PATTERNS = {
    "all positive": lambda S: np.abs(S),
    "some zero": lambda S: np.where(np.arange(len(S)) % 3 == 0, 0.0, np.abs(S)),
    "all zero": lambda S: np.zeros_like(S),
    "some negative": lambda S: np.where(np.arange(len(S)) % 3 == 0, -0.04 * np.abs(S), np.abs(S)),
    "all negative": lambda S: -0.04 * np.abs(S),
    "all kinds": lambda S: np.choose(np.arange(len(S)) % 3, [-0.04 * np.abs(S), 0.0 * S, np.abs(S)]),
}
patterns = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())


def problem(pattern, seed, n=9):
    rng = np.random.default_rng(seed)
    X, Z = rng.random((n, 2)), rng.random((4, 2))
    K = MATERN52.gram(X, np.full(2, 0.3))[0]
    S = pattern(np.exp(rng.normal(0.0, 1.0, n)))
    N = np.where(S == 0.0, 0.0, rng.standard_normal(n))
    return K, MATERN52.matrix(X, Z, np.full(2, 0.3)), S, N


@patterns
@pytest.mark.parametrize("seed", range(4))
def test_moments_under_sites_are_those_of_dense_algebra(pattern, seed):
    K, k, S, N = problem(pattern, seed)
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(S))
    mean = Sigma @ N
    post = condition(K, S, N)
    np.testing.assert_allclose(post.mean, mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(post.var, np.diag(Sigma), rtol=1e-9)
    np.testing.assert_allclose(K @ post.b, mean, rtol=1e-8, atol=1e-10)
    W = np.linalg.solve(np.eye(len(S)) + S[:, None] * K, np.diag(S))
    np.testing.assert_allclose(np.tril(post.W_less_bb()), np.tril(W - np.outer(post.b, post.b)), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(post.trace_WK(K), np.trace(W @ K), rtol=1e-8, atol=1e-10)
    dense = 1.0 - np.einsum("im,ij,jm->m", k, W, k)
    np.testing.assert_allclose(post.variance(k), np.minimum(dense, 1.0), rtol=1e-8)  # at most the prior's


@patterns
@pytest.mark.parametrize("seed", range(4))
def test_the_evidence_under_sites_is_the_gaussian_integral(pattern, seed):
    K, _, S, N = problem(pattern, seed)
    _, log_det = np.linalg.slogdet(np.eye(len(S)) + K * S)
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(S))
    left_out = np.sum(N[S > 0.0] ** 2 / (2.0 * S[S > 0.0]))
    expected = -0.5 * log_det + 0.5 * N @ Sigma @ N - left_out
    assert condition(K, S, N).log_integral == pytest.approx(expected, rel=1e-9, abs=1e-10)


def test_a_negative_site_that_undoes_a_positive_one_leaves_the_prior():
    K, k, _, _ = problem(np.abs, 0)
    # The same point twice: one site adds what the other takes away.
    double = np.block([[K, K], [K, K]])
    S = np.concatenate([np.full(9, 0.3), np.full(9, -0.3)])
    N = np.concatenate([np.full(9, 0.7), np.full(9, -0.7)])
    post = condition(double, S, N)
    np.testing.assert_allclose(post.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(post.var, 1.0, rtol=1e-12)
    np.testing.assert_allclose(post.variance(np.vstack([k, k])), 1.0, rtol=1e-12)
    assert post.log_integral + 9 * 0.7**2 / (2 * 0.3) == pytest.approx(0.0, abs=1e-12)


def test_a_singular_prior_is_no_obstacle():
    n = 6
    post = condition(np.ones((n, n)), np.full(n, 4.0), np.full(n, 2.0))
    # n measurements of one number, each 0.5 with precision 4.
    np.testing.assert_allclose(post.mean, 2.0 * n / (1.0 + 4.0 * n), rtol=1e-13)
    np.testing.assert_allclose(post.var, 1.0 / (1.0 + 4.0 * n), rtol=1e-13)


def test_a_precise_site_keeps_the_digits_of_its_small_variance():
    S = np.array([1e14, 1e-8, 1.0])
    post = condition(np.eye(3), S, S * 0.5)
    np.testing.assert_allclose(post.var, 1.0 / (1.0 + S), rtol=1e-9)
    np.testing.assert_allclose(post.mean, 0.5 * S / (1.0 + S), rtol=1e-12)


def test_variance_stays_within_zero_and_the_prior_whatever_rounding_does():
    K = np.ones((3, 3))
    post = condition(K, np.full(3, 1e16), np.zeros(3))
    variance = post.variance(np.ones((3, 2)))
    assert np.all((variance > 0.0) & (variance <= 1.0))


def test_negative_precision_too_strong_for_the_prior_is_told():
    with pytest.raises(NotPositiveDefinite):
        condition(np.eye(3), np.array([1.0, -1.5, 0.0]), np.zeros(3))
    with pytest.raises(NotPositiveDefinite):  # each alone would do, together they do not
        condition(np.full((2, 2), 0.999) + 0.001 * np.eye(2), np.array([-0.6, -0.6]), np.zeros(2))


def test_a_cholesky_factor_multiplies_back_to_its_matrix():
    A = MATERN52.gram(np.random.default_rng(0).random((20, 3)), np.ones(3))[0]
    L = cholesky(A)
    np.testing.assert_array_equal(L, np.tril(L))
    np.testing.assert_allclose(L @ L.T, A, rtol=1e-12, atol=1e-14)


def test_rounding_is_met_with_jitter_and_a_truly_indefinite_matrix_is_refused():
    rounded = np.ones((5, 5)) - 1e-15 * np.eye(5)
    L = cholesky(rounded)
    np.testing.assert_allclose(L @ L.T, rounded, atol=1e-8)
    with pytest.raises(NotPositiveDefinite):
        cholesky(rounded, jitter=False)
    with pytest.raises(NotPositiveDefinite):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(NotPositiveDefinite):
        cholesky(np.array([[np.nan, 0.0], [0.0, 1.0]]))


def test_a_cholesky_leaves_its_matrix_as_it_was():
    A = np.array([[4.0, 1.0], [1.0, 3.0]])
    cholesky(A)
    np.testing.assert_array_equal(A, [[4.0, 1.0], [1.0, 3.0]])


def test_a_triangular_inverse_multiplies_to_the_identity():
    L = cholesky(MATERN52.gram(np.random.default_rng(1).random((10, 2)), np.full(2, 0.2))[0])
    np.testing.assert_allclose(triangular_inverse(L.copy(order="F")) @ L, np.eye(10), atol=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_take_any_memory_order(order):
    rng = np.random.default_rng(2)
    A, B = np.array(rng.standard_normal((4, 6)), order=order), rng.standard_normal((6, 3))
    wide = rng.standard_normal((8, 12))[::2, ::2]  # neither
    np.testing.assert_allclose(product(A, B), A @ B, rtol=1e-13)
    np.testing.assert_allclose(product(wide, B), wide @ B, rtol=1e-13)
    np.testing.assert_allclose(product(B.T, A.T), B.T @ A.T, rtol=1e-13)
    np.testing.assert_allclose(times(A, B[:, 0]), A @ B[:, 0], rtol=1e-13)
    np.testing.assert_allclose(times(wide, B[:, 0]), wide @ B[:, 0], rtol=1e-13)


@pytest.mark.parametrize("least", [0.1, -0.3], ids=["positive", "some negative"])
def test_sites_of_equal_rows_taken_as_one_are_what_they_are_apart(least):
    rng = np.random.default_rng(0)
    first = np.array([0, 1, 0, 3, 1, 0, 6])
    X = rng.random((7, 2))[first]
    K, _ = MATERN52.gram(X, np.full(2, 0.4))
    S, N = rng.uniform(least, 2.0, 7), rng.standard_normal(7)
    together, apart = condition(K, S, N, first), condition(K, S, N)
    np.testing.assert_allclose(together.mean, apart.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(together.var, apart.var, rtol=1e-9)
    assert together.log_integral == pytest.approx(apart.log_integral, abs=1e-9)
    np.testing.assert_allclose(K @ together.b, apart.mean, rtol=1e-9, atol=1e-12)
    k = MATERN52.matrix(X, rng.random((5, 2)), np.full(2, 0.4))
    np.testing.assert_allclose(together.variance(k), apart.variance(k), rtol=1e-9)
    assert together.trace_WK(K) == pytest.approx(apart.trace_WK(K), abs=1e-9)
