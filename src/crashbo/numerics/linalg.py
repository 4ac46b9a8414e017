"""The posterior of a Gaussian prior under independent sites, without ever inverting the prior.

May import numpy and scipy only.

Notation, for a prior N(0, K) and sites exp(-1/2 S_i g_i^2 + N_i g_i):
    S, N   site precisions and shifts, (n,); S may be zero (no information) or negative
    B      I + S^1/2 K S^1/2 = L L' (GPML Alg. 3.5), always well conditioned from below
    b      K^-1 (posterior mean)
    F      L^-1 S^1/2
    W      (K + S^-1)^-1 = F'F - R'R, so that the posterior covariance is K - K W K

Sites with negative precision are added in a second step: with Sigma_+ the posterior under the others and
D = -S on the negative ones, M = I - D^1/2 Sigma_+ D^1/2 must be positive definite; R belongs to it.

Products go through SciPy's BLAS throughout, like the factorisations: NumPy and SciPy ship one thread pool
each, and on a machine with few cores the two compete, which costs a factor of three.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dgemv, dger, dsymm, dtrmm, dtrmv
from scipy.linalg.lapack import dlauum, dpotrf, dtrtri

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(float).eps)
# The GNU C library gives the memory of large arrays back to the system as soon as they are deleted, and asks for it
# again in the next product: up to a tenth of the time goes into new pages. It learns from the largest block that was
# ever deleted, up to 32 MB, to keep so much. So one is made, which costs nothing while nobody writes to it.
np.empty(2**22 - 2**10)
# A site with S k(x, x) above this has its moments from B^-1, which loses no digits however small they are.
_INFORMED = 1e-4


@dataclass(frozen=True)
class SitePosterior:
    """The posterior under given sites, and the Gaussian part of the evidence.

    `log_integral` is log of the integral of N(g; 0, K) prod exp(-1/2 S g^2 + N g) less sum_{S>0} N^2/(2S):
    that sum cancels against the observations' own constants, so the caller adds the rest in closed form.
    """

    b: Array
    root: Array  # S^1/2, zero where S is not positive
    L_inv: Array
    R: Array | None
    mean: Array
    var: Array
    log_integral: float

    def W_less_bb(self) -> Array:
        """W - b b', of which only the lower triangle is valid."""
        W, _ = dlauum(self.L_inv, lower=1)  # B^-1
        W *= self.root
        W *= self.root[:, None]
        if self.R is not None:
            W -= product(self.R.T, self.R)
        return np.asarray(dger(-1.0, self.b, self.b, a=W, overwrite_a=1))

    def trace_WK(self, K: Array) -> float:
        """tr(W K): that of B^-1 (B - I), less the share of the negative precisions."""
        trace = len(K) - float(np.vdot(self.L_inv.T, self.L_inv.T))  # transposed it needs no copy
        return trace if self.R is None else trace - float(np.vdot(self.R, product(self.R, K)))

    def variance(self, k: Array, k_self: float = 1.0) -> Array:
        """Posterior variance at points with covariances k, (n, m), to the data; within (0, k_self]."""
        reduction = _column_squares(self.F_times(k))
        if self.R is not None:
            reduction = reduction - _column_squares(product(self.R, k))
        return within(k_self - reduction, k_self)

    def variance_and_W_times(self, k: Array, k_self: float = 1.0) -> tuple[Array, Array]:
        """`variance` and W k, for k of shape (n, m)."""
        Fk = self.F_times(k)
        reduction = _column_squares(Fk)
        Wk: Array = dtrmm(1.0, self.L_inv, Fk, lower=1, trans_a=1, overwrite_b=1)
        Wk *= self.root[:, None]
        if self.R is not None:
            Rk = product(self.R, k)
            reduction -= _column_squares(Rk)
            Wk -= product(self.R.T, Rk)
        return within(k_self - reduction, k_self), Wk

    def F_times(self, k: Array) -> Array:
        """F k, for k of shape (n, m)."""
        return _scaled_product(self.L_inv, self.root, k)


def condition(K: Array, S: Array, N: Array, first: Indices | None = None) -> SitePosterior:
    """Posterior of N(0, K) under sites (S, N).

    Args:
        K: prior covariance, (n, n).
        S: precisions, (n,).
        N: shifts, (n,).
        first: where rows of K repeat, the first row that each is equal to, (n,). The sites of equal rows are then
            merged: apart, precise ones would leave B no digits. K may have the different rows alone: then there are
            more sites than rows, and `first` says which row each belongs to.

    Raises:
        NotPositiveDefinite: negative precisions are too strong for the prior. Damp the sites.
    """
    if first is not None:
        post = condition(K, _sums(S, first, len(K)), _sums(N, first, len(K)))
        log_integral = post.log_integral + _apart(S, N, first, len(K))
        return replace(post, mean=post.mean[first], var=post.var[first], log_integral=log_integral)
    root = np.sqrt(np.maximum(S, 0.0))
    L = cholesky(plus_identity(K, root))
    half_log_det = float(np.log(L.diagonal()).sum())
    L_inv = triangular_inverse(L)
    prior = K.diagonal()
    informed = S * prior > _INFORMED
    all_informed = informed.all()
    # S^-1/2 N; the fast path is the common one
    w = N / root if all_informed else np.divide(N, root, out=np.zeros_like(N), where=root > 0.0)
    a = dtrmv(L_inv, w, lower=1)
    b = root * dtrmv(L_inv, a, lower=1, trans=1)
    if all_informed:
        mean, var = (N - b) / S, np.minimum(_kept(L_inv) / S, prior)
    else:
        mean = np.divide(N - b, S, out=times(K, b), where=informed)
        var = _site_variances(K, S, root, L_inv, informed)
    post = SitePosterior(b, root, L_inv, None, mean, var, -half_log_det - 0.5 * float(a @ a))
    return post if all_informed or S.min() >= 0.0 else _add_negative(post, K, S, N)


def _apart(S: Array, N: Array, first: Indices, size: int) -> float:
    """Sum of N^2/(2S) over the positive sites of merged rows, less that over all rows, without cancellation."""
    positive = S > 0.0
    m = np.divide(N, S, out=np.zeros_like(N), where=positive)
    S_pos, N_pos, S_all, N_all = (
        _sums(a, first, size) for a in (np.where(positive, S, 0.0), np.where(positive, N, 0.0), S, N)
    )
    centre = np.divide(N_pos, S_pos, out=np.zeros(size), where=S_pos > 0.0)
    within = float(np.sum(S[positive] * (m - centre[first])[positive] ** 2))
    if positive.all():
        return -0.5 * within
    together = np.divide(N_all**2, S_all, out=np.zeros(size), where=S_all > 0.0)
    return 0.5 * float(np.sum(together - centre * N_pos)) - 0.5 * within


def _sums(a: Array, first: Indices, size: int) -> Array:
    """Sums over equal rows, each at the first of them; zeros at the others."""
    return np.asarray(np.bincount(first, a, size), dtype=float)


def plus_identity(K: Array, root: Array) -> Array:
    """B of the notation block."""
    B = K * root
    B *= root[:, None]
    np.einsum("ii->i", B)[:] += 1.0  # a view of the diagonal
    return np.asarray(B)


def _kept(L_inv: Array) -> Array:
    """Diagonal of I - B^-1: S times the posterior variance."""
    return np.asarray(np.maximum(1.0 - _column_squares(L_inv), _EPS))


def _site_variances(K: Array, S: Array, root: Array, L_inv: Array, informed: NDArray[np.bool_]) -> Array:
    """Diagonal of K - K W K, from B^-1 where the site is informed and from K itself elsewhere."""
    prior = K.diagonal()
    var = np.divide(_kept(L_inv), S, out=np.array(prior), where=informed)
    var[~informed] -= _column_squares(_scaled_product(L_inv, root, K[:, ~informed]))
    return np.minimum(np.maximum(var, np.where(informed, 0.0, _EPS * prior)), prior)


def _add_negative(post: SitePosterior, K: Array, S: Array, N: Array) -> SitePosterior:
    """The posterior with the sites of negative precision added to one without them."""
    negative = S < 0.0
    D_root = np.sqrt(-S[negative])
    n = N[negative]
    FK = post.F_times(K[:, negative])
    # Rows of I - K W+ at the negative sites.
    left = -product(FK.T, post.L_inv) * post.root
    left[:, negative] += np.eye(len(n))
    Sigma_plus = K[np.ix_(negative, negative)] - product(FK.T, FK)
    M = np.eye(len(n)) - D_root[:, None] * Sigma_plus * D_root
    L = cholesky(M, jitter=False)
    half_log_det = float(np.sum(np.log(L.diagonal())))
    M_root = triangular_inverse(L)
    mu = post.mean[negative]
    q = n - S[negative] * mu
    t = M_root @ (D_root * (Sigma_plus @ q))
    gain = n @ mu - 0.5 * S[negative] @ mu**2 + 0.5 * q @ Sigma_plus @ q + 0.5 * t @ t
    R = product(M_root * D_root, left)
    b = post.b + left.T @ q + R.T @ t
    return replace(
        post,
        b=b,
        R=R,
        mean=times(K, b),
        var=post.var + _column_squares(product(R, K)),
        log_integral=post.log_integral - half_log_det + float(gain),
    )


def imagined(post: SitePosterior, k: Array, k_self: Array, noise2: float) -> SitePosterior:
    """The posterior with m more observations of what it expects anyway: its mean stays, its variances shrink.

    Only without sites of negative precision, such as of a regression; priors of unit variance.

    Args:
        post: of n observations.
        k: covariances of these with the new ones, (n, m).
        k_self: covariances of the new ones, (m, m).
        noise2: variance of their noise.
    """
    assert post.R is None
    (n, m), root = k.shape, 1.0 / math.sqrt(noise2)
    A = root * post.F_times(k)
    M = cholesky(np.eye(m) + root**2 * k_self - product(A.T, A))
    half_log_det, M_inv = float(np.log(M.diagonal()).sum()), triangular_inverse(M)
    L_inv = np.zeros((n + m, n + m), order="F")
    L_inv[:n, :n] = post.L_inv
    L_inv[n:, :n] = -product(M_inv, product(A.T, post.L_inv))
    L_inv[n:, n:] = M_inv
    roots = np.append(post.root, np.full(m, root))
    return SitePosterior(
        np.append(post.b, np.zeros(m)),
        roots,
        L_inv,
        None,
        np.append(post.mean, times(k.T, post.b)),
        np.minimum(_kept(L_inv) / roots**2, 1.0),
        post.log_integral - half_log_det,
    )


class NotPositiveDefinite(ArithmeticError):
    """A matrix that must be positive definite is not, even with jitter."""


def cholesky(A: Array, *, jitter: bool = True) -> Array:
    """Lower Cholesky factor of a symmetric matrix, with the least jitter that makes up for rounding."""
    scale = 0.0
    for step in range(8 if jitter else 1):
        if step == 1:
            scale = float(np.max(A.diagonal(), initial=0.0)) * _EPS
        L, info = dpotrf(A + np.eye(len(A)) * (scale * 10.0**step) if scale else A, lower=1, clean=1)
        if info == 0 and math.isfinite(L[-1, -1]):
            return np.asarray(L)
    raise NotPositiveDefinite("matrix is not positive definite")


def triangular_inverse(L: Array) -> Array:
    """Inverse of a lower triangular matrix with positive diagonal; L itself is overwritten."""
    L_inv, _ = dtrtri(L, lower=1, overwrite_c=1)
    return np.asarray(L_inv)


def product(A: Array, B: Array) -> Array:
    """A @ B."""
    (a, ta), (b, tb) = _fortran(A), _fortran(B)
    return np.asarray(dgemm(1.0, a, b, trans_a=ta, trans_b=tb))


def symmetric_product(A: Array, B: Array) -> Array:
    """A @ B for a symmetric A of which only the lower triangle is read."""
    a, upper = _fortran(A)
    return np.asarray(dsymm(1.0, a, B, lower=1 - upper))


def times(A: Array, x: Array) -> Array:
    """A @ x."""
    if A.size == 0:  # BLAS takes no empty vector
        return np.zeros(len(A))
    a, trans = _fortran(A)
    return np.asarray(dgemv(1.0, a, x, trans=trans))


def _scaled_product(L_inv: Array, root: Array, k: Array) -> Array:
    """L^-1 diag(root) k."""
    Fk: Array = dtrmm(1.0, L_inv, np.asfortranarray(root[:, None] * k), lower=1, overwrite_b=1)
    return Fk


def _fortran(A: Array) -> tuple[Array, int]:
    """A in the order that BLAS takes without a copy, and whether that is its transpose."""
    return (A, 0) if A.flags.f_contiguous else (A.T, 1)


def within(var: Array, most: float) -> Array:
    """A variance that rounding may have carried out of (0, most]."""
    return np.minimum(np.maximum(var, _EPS * most), most)


def _column_squares(A: Array) -> Array:
    squares: Array = np.einsum("ij,ij->j", A, A)
    return squares
