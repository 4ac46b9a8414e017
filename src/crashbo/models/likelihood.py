"""The step likelihood: on which side of its threshold each latent function lies, trial by trial.

May import numerics only.

Notation, for G latent functions and n trials, arrays (G, n):
    sign   +1: g lies below its threshold (a success), -1: above (a crash), 0: no information
    c, s   thresholds and crash noises (standard deviations), (G, 1), or (G, n) where they differ from trial to trial
    mu, v  mean and variance of the cavity
    z      sign (c - mu) / sqrt(v + s^2); a trial's mass is prod_j Phi(z_j)      (eq. 5, 9)

A crash that is not blamed on any latent function couples them: at least one lies above its threshold. Its
mass 1 - prod_j Phi(z_j) is summed as sum_j Phi(-z_j) prod_{k<j} Phi(z_k), which never cancels, and its
moments follow from the derivatives of the log mass in each cavity mean. EP needs nothing but `tilted`.

One latent function can be treated alone, while the posterior of the others is held: a crash that was
not blamed then has the mass 1 - A Phi(z), where A is the probability that all `others` lie below.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from crashbo.numerics.gaussians import LOG_SQRT_2PI, tail

Array = NDArray[np.float64]

_CERTAIN = 40.0  # derived: a z at which a step changes nothing, since phi(39) underflows
_LEAST_RATIO = 1e-12  # judgement: of variances; rounding must not make a tilted one negative


class Tilted(NamedTuple):
    """Mass and moments of cavity times step; derivatives are those of the log mass, per trial and latent."""

    log_mass: Array  # (n,), of all latent functions together
    slope: Array  # (G, n), in the cavity mean
    ratio: Array  # (G, n), tilted over cavity variance
    in_threshold: Array  # (G, n)
    in_crash_noise: Array  # (G, n)


@dataclass(frozen=True)
class StepLikelihood:
    """One step per trial and latent function."""

    sign: Array
    joint: NDArray[np.bool_]  # (n,), crashes not blamed on any latent function; their sign is 0
    thresholds: Array
    crash_noise_std: Array
    others: Array | None = None  # (2, n), log A and log(1 - A) of joint trials, where the others are held

    def tilted(self, mu: Array, v: Array) -> Tilted:
        """Moments of N(mu, v) times the likelihood, for every trial and latent function."""
        result = self._separate(mu, v)
        if self.any_joint:
            coupled = self._coupled(mu[:, self.joint], v[:, self.joint])
            for into, values in zip(result, coupled, strict=True):
                into[..., self.joint] = values
        return result

    def _separate(self, mu: Array, v: Array) -> Tilted:
        if self.says_nothing:  # as in a regression
            nothing = np.zeros(mu.shape)
            return Tilted(np.zeros(mu.shape[1]), nothing, np.ones(mu.shape), nothing, nothing)
        s = self.crash_noise_std
        s2 = s**2
        total = v + s2
        std = np.sqrt(total)
        z = self.sign * (self.thresholds - mu) / std
        cut = tail(np.where(self.silent, _CERTAIN, z) if self.any_silent else z)
        hazard = cut.hazard / std
        in_threshold = self.sign * hazard
        return Tilted(
            log_mass=cut.log_mass[0] if len(mu) == 1 else cut.log_mass.sum(axis=0),
            slope=-in_threshold,
            ratio=(s2 + v * cut.ratio) / total,
            in_threshold=in_threshold,
            in_crash_noise=-hazard * z * s / std,
        )

    @cached_property
    def silent(self) -> NDArray[np.bool_]:
        """Where there is no information."""
        return np.asarray(self.sign == 0.0)

    @cached_property
    def any_silent(self) -> bool:
        """Whether there is such a trial."""
        return bool(self.silent.any())

    @cached_property
    def says_nothing(self) -> bool:
        """Whether no trial has any information."""
        return bool(self.silent.all()) and not self.any_joint

    @cached_property
    def any_joint(self) -> bool:
        """Whether there is a crash that was not blamed."""
        return bool(self.joint.any())

    def _coupled(self, mu: Array, v: Array) -> Tilted:
        """At least one latent function lies above its threshold; arrays over the joint trials only."""
        c, s = (
            np.broadcast_to(level, self.sign.shape)[:, self.joint] for level in (self.thresholds, self.crash_noise_std)
        )
        std = np.sqrt(v + s**2)
        z = (c - mu) / std
        log_below = log_ndtr(z)
        total_below, log_mass = _all_below(z)
        if self.others is not None:
            all_others, some_other = self.others[:, self.joint]
            log_mass = np.logaddexp(log_mass, total_below + some_other)
            total_below = total_below + all_others
        log_density = -0.5 * z**2 - LOG_SQRT_2PI
        slope = np.exp(total_below - log_below + log_density - log_mass) / std
        curvature = slope * (z / std - slope)
        return Tilted(
            log_mass=log_mass,
            slope=slope,
            ratio=np.maximum(1.0 + v * curvature, _LEAST_RATIO),
            in_threshold=-slope,
            in_crash_noise=slope * z * s / std,
        )


def others_of(z: Array, j: int) -> Array:
    """`StepLikelihood.others` of latent function j, given the z of all of them, (G, n)."""
    return np.stack(_all_below(np.delete(z, j, axis=0)))


def _all_below(z: Array) -> tuple[Array, Array]:
    """Log probabilities that all latent functions lie below their thresholds, and that some one does not."""
    log_below = log_ndtr(z)
    some = logsumexp(log_ndtr(-z) + np.cumsum(log_below, axis=0) - log_below, axis=0)
    return log_below.sum(axis=0), some
