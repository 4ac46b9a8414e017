"""Latent functions given their hyperparameters: posterior, evidence and its exact gradient.

May import numerics only. It is long because all that is done with a posterior shares its units.

Notation, for latent function j of G:
    X         inputs, (n, D), in the unit cube
    Y         measurements, (G, n), NaN where there is none
    K         unit-variance prior covariance, (n, n); the prior of g is N(mean, outputscale K)
    b, W      K^-1 (posterior mean) and (K + S^-1)^-1, of numerics.linalg
    tau, nu   precision and shift of EP's sites

Everything runs in units of sqrt(outputscale) about the mean, so that values of 1e-12 or 1e12 are ordinary.
The evidence is written so that a small noise loses no digits: the textbook's 1/2 N'mu - 1/2 y'y/noise cancels.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from crashbo.models import course, ep
from crashbo.models.ep import Sites
from crashbo.models.hybrid import HybridData
from crashbo.models.likelihood import StepLikelihood
from crashbo.models.moments import Covariance, Moments
from crashbo.numerics import linalg
from crashbo.numerics.gaussians import LOG_SQRT_2PI
from crashbo.numerics.kernels import MATERN52, Kernel, squared_distances, trace_gradient
from crashbo.numerics.linalg import times

Array = NDArray[np.float64]
PullbackOfTwo = Callable[[Array, Array], Array]  # of models.moments, under one posterior

# derived: a noise below this share of sqrt(outputscale) is taken as this; its square is 45 epsilons beside K's one
_LEAST_NOISE = 1e-7
_LEAST_SHARE = 1e-12  # judgement: of the variance that a trial's own measurement leaves; less is rounding
_LOUDEST = 50.0  # derived: a larger noise, in units of sqrt(outputscale), is next to no measurement to numerics.linalg
_ALONE_TOLERANCE = 1e-3  # judgement: of a posterior that begins at its fixed point


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of one latent function, in the units of its measurements."""

    lengthscales: Array
    outputscale: float  # a variance
    mean: float = 0.0
    noise_std: float | Array = 0.0
    threshold: float = 0.0
    crash_noise_std: float = 0.0
    kernel: Kernel = MATERN52

    def in_units(self, shift: float, scale: float) -> "Hyperparameters":
        """The same function when its values y are written as shift + scale y."""
        return replace(
            self,
            outputscale=self.outputscale * scale**2,
            mean=shift + scale * self.mean,
            noise_std=self.noise_std * scale,
            threshold=shift + scale * self.threshold,
            crash_noise_std=self.crash_noise_std * scale,
        )


class Gradient(NamedTuple):
    """Derivatives of the log evidence in one latent function's hyperparameters, in natural units."""

    lengthscales: Array
    outputscale: float
    mean: float
    noise_std: float  # of a noise common to all trials
    threshold: float
    crash_noise_std: float

    def in_units(self, scale: float) -> "Gradient":
        """The same where values are measured in units of `scale`."""
        lengthscales, outputscale, *rest = self
        return Gradient(lengthscales, outputscale * scale**2, *(scale * slope for slope in rest))

    def plus(self, other: "Gradient") -> "Gradient":
        """The gradient of a sum."""
        sums: list[Any] = [a + b for a, b in zip(tuple[Any, ...](self), tuple[Any, ...](other), strict=True)]
        return Gradient(*sums)


@dataclass(frozen=True)
class Warm:
    """A warm start of another fit: hyperparameters, and sites in the units of the measurements."""

    hypers: tuple[Hyperparameters, ...]
    measured: tuple[bool, ...]  # which latent functions had measurements: of the others no scale is known
    sites: Sites | None = None


@dataclass(frozen=True)
class Posterior:
    """The posterior of G latent functions at given hyperparameters."""

    data: HybridData
    hypers: tuple[Hyperparameters, ...]
    kernel: Kernel
    grams: tuple[tuple[Array, Array], ...]
    ep: ep.EPResult
    observed: tuple[Array, Array]  # measurements, and the variances of their noise, in units of the prior

    @cached_property
    def log_evidence(self) -> float:
        """log Z_EP of measurements and labels."""
        seen, scale = self.data.measured, _scales(self.hypers)[0]
        total = log_evidence_of(self.ep, seen, *self.observed) - float(seen.sum(axis=1) @ np.log(scale[:, 0]))
        return total + sum(one.log_mass for one in self.courses)

    @cached_property
    def courses(self) -> tuple[course.Evidence, ...]:
        """What trials that were watched say of the threshold of each latent function."""
        return tuple(_course(self.data, j, h) for j, h in enumerate(self.hypers))

    def predict(self, j: int, X: Array) -> tuple[Array, Array]:
        """Mean and variance of latent function j at X (eq. 8)."""
        mean, var = self.moments[j].at(X)
        return mean[0], var[0]

    def predict_with_pullback(self, j: int, X: Array) -> tuple[Array, Array, PullbackOfTwo]:
        """Mean and variance of latent function j at X, (m,), and what turns slopes in them into gradients in X."""
        mean, var, pullback = self.moments[j].with_pullback(X)
        return mean[0], var[0], lambda in_mean, in_var: pullback(in_mean[None], in_var[None])

    def covariance_with(self, j: int, i: int) -> Covariance:
        """Covariance of latent function j with its value at trial i."""
        return self.moments[j].covariance_with(i)

    def at(self, hypers: tuple[Hyperparameters, ...]) -> "Posterior":
        """The same data at other hyperparameters."""
        return condition(self.data, hypers, kernel=self.kernel)

    def mean_at_trials(self, j: int) -> Array:
        """Mean of latent function j at the trials, (n,)."""
        h = self.hypers[j]
        return np.asarray(h.mean + math.sqrt(h.outputscale) * self.ep.posteriors[j].mean)

    @cached_property
    def moments(self) -> tuple[Moments, ...]:
        """Predictive moments of each latent function."""
        return tuple(moments_of((self,), j) for j in range(len(self.hypers)))

    def gradient(self, j: int) -> Gradient:
        """Exact gradient of the log evidence: at EP's fixed point the sites contribute nothing."""
        h, post, (K, slope) = self.hypers[j], self.ep.posteriors[j], self.grams[j]
        scale = math.sqrt(h.outputscale)
        sigma = relative_noise_std(h)
        gap2 = ((self.data.filled[j] - h.mean) / scale - post.mean) ** 2 + post.var
        in_noise = float(((gap2 / sigma**2 - 1.0) / sigma * self.data.measured[j]).sum())
        in_crash_noise = self.ep.tilted.in_crash_noise[j]
        if self.data.lower is not None:
            in_noise += float(in_crash_noise[self.data.bounded].sum())
            in_crash_noise = in_crash_noise[~self.data.bounded]
        course_of = self.courses[j]
        return Gradient(
            lengthscales=-trace_gradient(post.W_less_bb() * slope, self.data.X, h.lengthscales) / h.lengthscales,
            outputscale=0.5 * (float(post.b @ times(K, post.b)) - post.trace_WK(K)) / h.outputscale,
            mean=float(post.b.sum()) / scale,
            noise_std=in_noise / scale + course_of.in_noise_std,
            threshold=self.in_threshold(j),
            crash_noise_std=float(in_crash_noise.sum()) / scale + course_of.in_crash_noise_std,
        )

    def in_threshold(self, j: int) -> float:
        """Derivative of the log evidence in the threshold of latent function j."""
        slopes = self.ep.tilted.in_threshold[j]
        if self.data.lower is not None:
            slopes = slopes[~self.data.bounded]
        return float(slopes.sum()) / math.sqrt(self.hypers[j].outputscale) + self.courses[j].in_threshold

    def surprises(self, j: int) -> Array:
        """Standardised leave-one-out residual of each measurement, in standard deviations; 0 without one."""
        h, noise2 = self.hypers[j], relative_noise_std(self.hypers[j]) ** 2
        y = (self.data.filled[j] - h.mean) / math.sqrt(h.outputscale)
        mean, var = self._by_the_others(j)
        return np.where(self.data.measured[j], (y - mean) / np.sqrt(var + noise2), 0.0)

    def log_p_safe_by_the_others(self) -> Array:
        """log P(safe) of each trial, (n,), by all others: without its own label and measurements."""
        scale, mean = _scales(self.hypers)
        c, s = (np.array([[getattr(h, name)] for h in self.hypers]) for name in ("threshold", "crash_noise_std"))
        mu, v = (np.stack(rows) for rows in zip(*map(self._by_the_others, range(len(self.hypers))), strict=True))
        return np.asarray(log_ndtr(((c - mean) / scale - mu) / np.sqrt(v + (s / scale) ** 2)).sum(axis=0))

    def _by_the_others(self, j: int) -> tuple[Array, Array]:
        """Mean and variance of latent function j at each trial, given all others, in units of its own, (n,)."""
        h, post = self.hypers[j], self.ep.posteriors[j]
        noise2 = relative_noise_std(h) ** 2
        y = (self.data.filled[j] - h.mean) / math.sqrt(h.outputscale)
        (tau, nu), seen = self.ep.sites, self.data.measured[j]
        S, N = tau[j] + seen / noise2, nu[j] + seen * y / noise2
        share = np.maximum(1.0 - S * post.var, _LEAST_SHARE)
        return (post.mean - N * post.var) / share, post.var / share

    def alone(self, j: int) -> "Posterior":
        """The posterior of latent function j while the others are held: the same, and cheap to update along j."""
        if len(self.hypers) == 1:
            return self
        tau, nu = self.sites()
        return condition(
            self.data.alone(j, self.z()),
            self.hypers[j : j + 1],
            kernel=self.kernel,
            start=Sites(tau[j : j + 1], nu[j : j + 1]),
            grams=self.grams[j : j + 1],
            tolerance=_ALONE_TOLERANCE,
        )

    def with_crashes(self, X: Array) -> "Posterior":
        """The posterior at the same hyperparameters as if trials at X had crashed as well."""
        sites = Sites(*(np.pad(site, ((0, 0), (0, len(X)))) for site in self.sites()))
        return condition(self.data.with_crashes(X), self.hypers, kernel=self.kernel, start=sites)

    def z(self) -> Array:
        """Distances of the cavities from their thresholds, (G, n), in their own spread: z of StepLikelihood."""
        scale, mean = _scales(self.hypers)
        c, s = (np.array([[getattr(h, name)] for h in self.hypers]) for name in ("threshold", "crash_noise_std"))
        if self.data.offset is not None:
            c = c + self.data.offset
        mu_cav, v_cav = self.ep.cavities
        z: Array = ((c - mean) / scale - mu_cav) / np.sqrt(v_cav + (s / scale) ** 2)
        return z

    def warm(self) -> Warm:
        """The warm start of another fit."""
        return Warm(self.hypers, self.data.kind, self.sites())

    def sites(self) -> Sites:
        """EP's sites in the units of the measurements, to start another posterior from."""
        scale, mean = _scales(self.hypers)
        tau = self.ep.onward.tau / scale**2
        return Sites(tau, self.ep.onward.nu / scale + tau * mean)


def moments_of(posteriors: Sequence[Posterior], j: int) -> Moments:
    """Predictive moments of latent function j under several posteriors of the same trials."""
    first, hypers = posteriors[0], [post.hypers[j] for post in posteriors]
    return Moments(
        first.data.X,
        first.kernel,
        tuple(post.ep.posteriors[j] for post in posteriors),
        np.stack([h.lengthscales for h in hypers]),
        np.array([h.outputscale for h in hypers]),
        np.array([h.mean for h in hypers]),
    )


def condition(
    data: HybridData,
    hypers: tuple[Hyperparameters, ...],
    *,
    kernel: Kernel | None = None,
    start: Sites | None = None,
    grams: tuple[tuple[Array, Array], ...] | None = None,
    tolerance: float = ep.TOLERANCE,
    max_sweeps: int = ep.MAX_SWEEPS,
) -> Posterior:
    """Posterior and evidence by EP, with the hyperparameters' kernel or another. `start` are sites in user's units."""
    kernel = kernel or hypers[0].kernel
    scale, mean = _scales(hypers)
    y, noise2 = _observed(data, hypers)
    p = data.measured / noise2
    likelihood = _likelihood(data, hypers, noise2)
    grams = grams or tuple(kernel.gram(data.X, h.lengthscales) for h in hypers)
    if start is not None:
        start = Sites(start.tau * scale**2, (start.nu - start.tau * mean) * scale)
    result = ep.propagate(
        tuple(K for K, _ in grams),
        p,
        y,
        likelihood,
        start=start,
        first=data.first,
        tolerance=tolerance,
        max_sweeps=max_sweeps,
    )
    return Posterior(data, hypers, kernel, grams, result, (y, noise2))


def imagined(posterior: Posterior, X: Array, means: Array) -> Posterior:
    """The posterior of regressions as if they had been measured at X, too, and had given their means there, (G, m).

    It is that of `condition`, after many trials in a fraction of the time.
    """
    data, hypers, kernel = posterior.data, posterior.hypers, posterior.kernel
    sign, joint = np.zeros((len(hypers), len(data.X) + len(X))), np.zeros(len(data.X) + len(X), dtype=bool)
    more = HybridData(np.vstack([data.X, X]), np.hstack([data.Y, means]), sign, joint)
    told, noises = posterior.ep.posteriors, [relative_noise_std(h) for h in hypers]
    plain = more.measured.all() and all(post.R is None for post in told) and all(s.ndim == 0 for s in noises)
    if not plain or more.first is not None or max(noises) > _LOUDEST:
        return condition(more, hypers, kernel=kernel)
    grams, posteriors = [], []
    for post, whole, h, noise in zip(told, posterior.grams, hypers, noises, strict=True):
        U, V = data.X / h.lengthscales, X / h.lengthscales
        across, among = (kernel.profile(squared_distances(A, V)) for A in (U, V))
        grams.append((_bordered(whole[0], across[0], among[0]), _bordered(whole[1], across[1], among[1])))
        posteriors.append(linalg.imagined(post, across[0], among[0], float(noise) ** 2))
    y, noise2 = _observed(more, hypers)
    result = ep.at_rest(tuple(posteriors), _likelihood(more, hypers, noise2))
    return Posterior(more, hypers, kernel, tuple(grams), result, (y, noise2))


def _observed(data: HybridData, hypers: tuple[Hyperparameters, ...]) -> tuple[Array, Array]:
    """Measurements, zero where there is none, and the variances of their noise, both in units of the prior, (G, n)."""
    scale, mean = _scales(hypers)
    noises = [np.atleast_1d(relative_noise_std(h)) for h in hypers]
    noise2 = np.array(noises if len(noises) == 1 else np.broadcast_arrays(*noises)) ** 2
    return (data.filled - mean) / scale * data.measured, noise2


def _likelihood(data: HybridData, hypers: tuple[Hyperparameters, ...], noise2: Array) -> StepLikelihood:
    """Labels and bounds, in units of the prior."""
    scale, mean = _scales(hypers)
    levels = np.array([[h.threshold] for h in hypers])
    if data.offset is not None:
        levels = levels + data.offset
    scatter = np.array([[h.crash_noise_std] for h in hypers]) / scale
    if data.lower is not None:
        bounds = ~np.isnan(data.lower)
        levels = np.where(bounds, data.lower, levels)
        scatter = np.where(bounds, np.sqrt(noise2), scatter)
    return StepLikelihood(data.sign, data.joint, (levels - mean) / scale, scatter, data.others)


def log_evidence_of(result: ep.EPResult, seen: NDArray[np.bool_], y: Array, noise2: Array) -> float:
    """log Z_EP: Gaussian integral, observations and sites' normalisers, each in closed form."""
    (tau, nu), (mu_cav, v_cav) = result.sites, result.cavities
    gaussian = sum(post.log_integral for post in result.posteriors)
    observed = (_site_exponent(tau, nu, y, noise2) - LOG_SQRT_2PI - 0.5 * np.log(noise2)) * seen
    labelled = ~seen & (tau > 0.0)
    labels = 0.5 * nu**2 / np.where(labelled, tau, np.inf)
    normalisers = 0.5 * np.log1p(tau * v_cav) - _site_exponent(tau, nu, mu_cav, v_cav)
    return float(gaussian + (observed + labels + normalisers).sum() + result.tilted.log_mass.sum())


def _course(data: HybridData, j: int, h: Hyperparameters) -> course.Evidence:
    """What trials that were watched say of the threshold of latent function j."""
    if data.survived is None and data.last is None:
        return course.NOTHING
    level = h.threshold if data.offset is None else h.threshold + data.offset
    noise = relative_noise_std(h) * math.sqrt(h.outputscale)
    found = course.NOTHING
    if data.survived is not None:
        found = course.survived(data.survived[j], level, noise, h.crash_noise_std)
    if data.last is not None:
        ahead = None if data.ahead is None else data.ahead[j]
        found = found.plus(course.crashed(data.last[j], level, noise, h.crash_noise_std, data.extents[j], ahead))
    return found


def _site_exponent(tau: Array, nu: Array, m: Array, v: Array) -> Array:
    """Exponent of the integral of N(g; m, v) exp(-1/2 tau g^2 + nu g), without its determinant."""
    return 0.5 * (2.0 * m * nu - tau * m**2 + nu**2 * v) / (1.0 + tau * v)


def _bordered(A: Array, across: Array, among: Array) -> Array:
    """A symmetric matrix with more rows and columns."""
    n = len(A)
    whole = np.empty((n + len(among), n + len(among)), order="F")
    whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:] = A, across, across.T, among
    return whole


def _scales(hypers: tuple[Hyperparameters, ...]) -> tuple[Array, Array]:
    scale = np.sqrt(np.array([[h.outputscale] for h in hypers]))
    return scale, np.array([[h.mean] for h in hypers])


def relative_noise_std(h: Hyperparameters) -> Array:
    """Noise in units of sqrt(outputscale): one for all trials, or one per trial."""
    return np.asarray(np.maximum(h.noise_std / math.sqrt(h.outputscale), _LEAST_NOISE))
