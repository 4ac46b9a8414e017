"""The step likelihood: on which side of its threshold each latent function lies, trial by trial.

May import numerics only.

Notation, for G latent functions and n trials, arrays (G, n):
    sign   +1: g lies below its threshold (a success), -1: above (a crash), 0: nothing is said of it
    c, s   thresholds and crash noises (standard deviations), (G, 1)
    mu, v  mean and variance of the cavity
    z      sign (c - mu) / sqrt(v + s^2); a trial's mass is prod_j Phi(z_j)      (eq. 5, 9)

A crash that is not blamed on any latent function couples them: at least one lies above its threshold. Its
mass 1 - prod_j Phi(z_j) is summed as sum_j Phi(-z_j) prod_{k<j} Phi(z_k), which never cancels, and its
moments follow from the derivatives of the log mass in each cavity mean. EP needs nothing but `tilted`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from crashbo.numerics.gaussians import LOG_SQRT_2PI, tail

Array = NDArray[np.float64]

_CERTAIN = 40.0  # a z at which a step changes nothing
_LEAST_RATIO = 1e-12  # of variances: rounding must not make a tilted one negative


class Tilted(NamedTuple):
    """Mass and moments of cavity times step; derivatives are those of the log mass, per trial and latent."""

    log_mass: Array  # (n,), of all latent functions together
    slope: Array  # (G, n), in the cavity mean
    ratio: Array  # (G, n), tilted over cavity variance
    in_threshold: Array  # (G, n)
    in_crash_noise: Array  # (G, n)


@dataclass(frozen=True)
class Steps:
    """One step a trial and latent function."""

    sign: Array
    joint: NDArray[np.bool_]  # (n,), crashes not blamed on any latent function; their sign is 0
    thresholds: Array
    crash_noise_std: Array

    def tilted(self, mu: Array, v: Array) -> Tilted:
        """Moments of N(mu, v) times the likelihood, for every trial and latent function."""
        result = self._separate(mu, v)
        if self.joint.any():
            coupled = self._coupled(mu[:, self.joint], v[:, self.joint])
            for into, values in zip(result, coupled, strict=True):
                into[..., self.joint] = values
        return result

    def _separate(self, mu: Array, v: Array) -> Tilted:
        c, s2 = self.thresholds[:, None], self.crash_noise_std[:, None] ** 2
        total = v + s2
        std = np.sqrt(total)
        cut = tail(np.where(self.sign == 0.0, _CERTAIN, self.sign * (c - mu) / std))
        hazard = cut.hazard / std
        z = cut.shift - cut.hazard
        return Tilted(
            log_mass=cut.log_mass.sum(axis=0),
            slope=-self.sign * hazard,
            ratio=(s2 + v * cut.ratio) / total,
            in_threshold=self.sign * hazard,
            in_crash_noise=-hazard * z * self.crash_noise_std[:, None] / std,
        )

    def _coupled(self, mu: Array, v: Array) -> Tilted:
        """At least one latent function lies above its threshold; arrays over the joint trials only."""
        c, s = self.thresholds[:, None], self.crash_noise_std[:, None]
        std = np.sqrt(v + s**2)
        z = (c - mu) / std
        log_below = log_ndtr(z)
        total_below = log_below.sum(axis=0)
        log_mass = logsumexp(log_ndtr(-z) + np.cumsum(log_below, axis=0) - log_below, axis=0)
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
