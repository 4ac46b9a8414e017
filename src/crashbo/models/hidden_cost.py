"""The posterior of a hidden cost, given which of two trials was better, and numbers where there are some.

May import numerics only.

A comparison is a step, a tie an interval, on a difference of two values of the hidden cost; a number is a Gaussian
observation of one. So all of them live on linear functionals of its values, and EP runs on those.

Notation, for n trials, r rows (comparisons first, then numbers) and u different functionals among the rows:
    f         the hidden cost at the trials; its prior is N(mean, outputscale K)
    A         functionals, (u, n): +1 and -1 in the row of a pair, +1 in the row of a number
    K_A       A K A', their prior covariance
    b, W      of numerics.linalg; of f they are A' b and A' W A of the functionals
    t, s      of models.comparisons; kept as `threshold` and `crash_noise_std` of Hyperparameters

Rows with the same functional are merged before anything is factorised: thousands of comparisons of few trials cost no
more than one of each pair. Where there are no numbers the scale is a convention: mean 0 and outputscale 1.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from crashbo.models import checks, ep
from crashbo.models.comparisons import LAPSE, ComparisonLikelihood
from crashbo.models.ep import Sites
from crashbo.models.fit import FINAL_TOLERANCE
from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Gradient, Hyperparameters, Posterior, Warm, log_evidence_of, relative_noise_std
from crashbo.numerics.kernels import trace_gradient
from crashbo.numerics.linalg import SitePosterior, times, within

Array = NDArray[np.float64]
Pairs = NDArray[np.intp]
Bools = NDArray[np.bool_]

_MOST_LAPSES = 0.25  # derived: of each of three verdicts, so that what was seen counts at all
_APART = 1e-10  # judgement: variance by which two values differ in any case, of the prior's; far above rounding


@dataclass(frozen=True)
class Comparisons:
    """Which of two trials was better, m times; by their rows in X."""

    pairs: Pairs  # (m, 2): the better one first; of a tie in any order
    tie: Bools  # (m,)
    lapse: float = LAPSE  # least probability of each verdict

    @staticmethod
    def of(pairs: ArrayLike, tie: ArrayLike | None, n: int, lapse: float = LAPSE) -> "Comparisons":
        """Checked comparisons of n trials."""
        found = np.asarray(pairs)
        if not 0.0 <= checks.number("lapse", lapse) < _MOST_LAPSES:
            raise ValueError(f"lapse must be a probability below 0.25; got {lapse!r}. 0.05 is the default.")
        if found.size == 0:
            return Comparisons(np.zeros((0, 2), dtype=np.intp), np.zeros(0, dtype=bool), lapse)
        whole = found.ndim == 2 and found.shape[1] == 2 and np.issubdtype(found.dtype, np.integer)
        if not whole or found.min() < 0 or found.max() >= n or bool(np.any(found[:, 0] == found[:, 1])):
            raise ValueError(
                f"pairs must hold two different rows of X each, below {n}; got {found.tolist()!r}. The better first."
            )
        ties = np.zeros(len(found), dtype=bool) if tie is None else checks.labels(tie, len(found))
        return Comparisons(found.astype(np.intp), ties, lapse)

    def __len__(self) -> int:
        return len(self.tie)

    def among(self, rows: Pairs) -> "Comparisons | None":
        """Those of some trials with each other, by their places in `rows`; None where there are none."""
        at = np.full(max(self.pairs.max(initial=0), rows.max(initial=0)) + 1, -1, dtype=np.intp)
        at[rows] = np.arange(len(rows))
        pairs = at[self.pairs]
        kept = np.all(pairs >= 0, axis=1)
        return replace(self, pairs=pairs[kept], tie=self.tie[kept]) if kept.any() else None


@dataclass(frozen=True)
class Rows:
    """Comparisons and numbers as rows of EP."""

    A: Array  # (u, n)
    functional: NDArray[np.intp]  # (r,), of every row
    side: Array  # (1, r)
    judged: Bools  # (1, r)
    y: Array  # (1, r), the numbers; zeros in other rows

    @staticmethod
    def of(data: HybridData, comparisons: Comparisons) -> "Rows":
        """The rows of comparisons and of the numbers in data."""
        n, m = len(data.X), len(comparisons)
        place = np.arange(n) if data.first is None else data.first
        left, right = place[comparisons.pairs].T
        numbers = np.flatnonzero(data.measured[0])
        low, high = np.minimum(left, right), np.maximum(left, right)
        # Comparisons of trials at one place share a functional that is zero; a number's has no right side.
        low, high = np.where(low == high, n, low), np.where(low == high, n, high)
        keys = np.vstack([np.column_stack([low, high]), np.column_stack([place[numbers], np.full(len(numbers), -1)])])
        different, functional = np.unique(keys, axis=0, return_inverse=True)
        A = np.zeros((len(different), n + 1))
        pair = different[:, 1] >= 0
        A[pair, different[pair, 1]] = -1.0
        A[np.arange(len(different)), different[:, 0]] += 1.0
        judged = np.arange(len(keys)) < m
        side = np.zeros(len(keys))
        side[:m] = np.where(comparisons.tie, 0.0, np.where(left > right, -1.0, 1.0))
        y = np.append(np.zeros(m), data.Y[0, numbers])
        return Rows(np.ascontiguousarray(A[:, :n]), functional.ravel(), side[None], judged[None], y[None])

    @property
    def seen(self) -> Bools:
        """Which rows are numbers."""
        return ~self.judged

    @cached_property
    def apart(self) -> Array:
        """What is added to the prior variance of each functional, (u,): pairs differ in any case."""
        of_pairs = np.bincount(self.functional, self.judged[0], len(self.A)) > 0.0
        return np.where(of_pairs, _APART, 0.0)


@dataclass(frozen=True)
class ComparedPosterior(Posterior):
    """The posterior of a hidden cost. Everything that a measured one's offers, at the trials and anywhere else.

    `ep` is that of the rows, but for its posterior, which is that of f.
    """

    comparisons: Comparisons
    rows: Rows
    of_rows: SitePosterior

    @cached_property
    def log_evidence(self) -> float:
        """log Z_EP of verdicts and numbers."""
        total = log_evidence_of(replace(self.ep, posteriors=(self.of_rows,)), self.rows.seen, *self.observed)
        return total - 0.5 * float(self.rows.seen.sum() * np.log(self.hypers[0].outputscale))

    def gradient(self, j: int = 0) -> Gradient:
        """Exact gradient of the log evidence: at EP's fixed point the sites contribute nothing."""
        h, post, (K, slope) = self.hypers[0], self.ep.posteriors[0], self.grams[0]
        scale, sigma = math.sqrt(h.outputscale), relative_noise_std(h)
        W_less_bb = post.W_less_bb()
        gap = (self.rows.y[0] - h.mean) / scale - self.of_rows.mean
        gap2 = (gap**2 + self.of_rows.var)[self.rows.seen[0]]
        return Gradient(
            lengthscales=-trace_gradient(W_less_bb * slope, self.data.X, h.lengthscales) / h.lengthscales,
            outputscale=-0.5 * (2.0 * np.vdot(np.tril(W_less_bb, -1), K) + W_less_bb.trace()) / h.outputscale,
            mean=float(post.b.sum()) / scale,
            noise_std=float(((gap2 / sigma**2 - 1.0) / sigma).sum()) / scale,
            threshold=float(self.ep.tilted.in_threshold[self.rows.judged].sum()) / scale,
            crash_noise_std=float(self.ep.tilted.in_crash_noise[self.rows.judged].sum()) / scale,
        )

    def surprises(self, j: int = 0) -> Array:
        """How unlikely, in standard deviations, the least likely verdict on each trial was given the others."""
        found, unlikely = np.zeros(len(self.data.X)), np.sqrt(-2.0 * self.ep.tilted.log_mass[: len(self.comparisons)])
        for side in self.comparisons.pairs.T:
            np.maximum.at(found, side, unlikely)
        return found

    def at(self, hypers: tuple[Hyperparameters, ...]) -> "ComparedPosterior":
        """The same data at other hyperparameters."""
        return condition(self.data, self.comparisons, hypers, start=self.sites())

    def first(self, n: int) -> "ComparedPosterior":
        """The same without the trials from n on, which were not compared."""
        data = HybridData(self.data.X[:n], self.data.Y[:, :n], self.data.sign[:, :n], self.data.joint[:n])
        return condition(data, self.comparisons, self.hypers, start=self.sites())

    def imagined(self, X: Array) -> "ComparedPosterior":
        """With its own mean as numbers at more trials, X: the mean stays, the uncertainty there does not."""
        Y = np.append(self.data.Y, self.predict(0, X)[0][None], axis=1)
        data = numbered(np.vstack([self.data.X, X]), Y[0])
        return condition(data, self.comparisons, self.hypers, start=self.sites())

    def sites(self) -> Sites:
        """EP's sites of the comparisons, in units of sqrt(outputscale)."""
        m = len(self.comparisons)
        return Sites(self.ep.onward.tau[:, :m], self.ep.onward.nu[:, :m])

    def warm(self) -> Warm:
        """The warm start of another fit; marked, since the hyperparameters of a measured cost mean something else."""
        return Warm(self.hypers, (*self.data.kind, True))


def numbered(X: Array, y: Array) -> HybridData:
    """Trials of which some have numbers, y, NaN for the others."""
    return HybridData(X, y[None, :], np.zeros((1, len(X))), np.zeros(len(X), dtype=bool))


def condition(
    data: HybridData,
    comparisons: Comparisons,
    hypers: tuple[Hyperparameters, ...],
    *,
    start: Sites | None = None,
    rows: Rows | None = None,
    tolerance: float = FINAL_TOLERANCE,
    max_sweeps: int = ep.MAX_SWEEPS,
) -> ComparedPosterior:
    """Posterior and evidence by EP. `start` are the sites of (the first of) the comparisons."""
    (h,) = hypers
    scale, rows = math.sqrt(h.outputscale), rows or Rows.of(data, comparisons)
    K, slope = h.kernel.gram(data.X, h.lengthscales)
    K_A = rows.A @ K @ rows.A.T
    K_A[np.diag_indices_from(K_A)] += rows.apart
    noise2 = np.full(rows.y.shape, float(relative_noise_std(h)) ** 2)
    y = (rows.y - h.mean) / scale * rows.seen
    likelihood = ComparisonLikelihood(
        rows.side, rows.judged, h.threshold / scale, h.crash_noise_std / scale, comparisons.lapse
    )
    if start is not None:
        size = rows.y.shape[1]
        kept = min(start.tau.shape[1], len(comparisons))
        start = Sites(*(np.pad(site[:, :kept], ((0, 0), (0, size - kept))) for site in start))
    result = ep.propagate(
        (K_A,),
        rows.seen / noise2,
        y,
        likelihood,
        start=start,
        first=rows.functional,
        tolerance=tolerance,
        max_sweeps=max_sweeps,
    )
    of_rows = result.posteriors[0]
    result = replace(result, posteriors=(_of_trials(of_rows, rows.A, K),))
    return ComparedPosterior(data, hypers, h.kernel, ((K, slope),), result, (y, noise2), comparisons, rows, of_rows)


def _of_trials(post: SitePosterior, A: Array, K: Array) -> SitePosterior:
    """The posterior of f from that of its functionals, with a triangular root of W, as the others have."""
    n = A.shape[1]
    F = (np.tril(post.L_inv) * post.root) @ A
    # F'F is what counts: of F with its columns in reverse, QR's factor is the root, in reverse as well.
    (upper,) = qr(F[:, ::-1], mode="r", check_finite=False)
    root = np.zeros((n, n), order="F")
    root[max(n - len(upper), 0) :] = upper[:n][::-1, ::-1]
    b = times(A.T, post.b)
    R = None if post.R is None else post.R @ A
    found = SitePosterior(b, np.ones(n), root, R, times(K, b), np.ones(n), post.log_integral)
    return replace(found, var=within(found.variance(K), 1.0))
