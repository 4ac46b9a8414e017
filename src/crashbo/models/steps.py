"""The step likelihood: on which side of its threshold each latent function lies, trial by trial.

May import numerics only.

Notation, for G latent functions and n trials, arrays (G, n):
    sign   +1: g lies below its threshold (a success), -1: above (a crash), 0: nothing is said of it
    c, s   thresholds and crash noises (standard deviations), (G, 1)
    mu, v  mean and variance of the cavity
    z      sign (c - mu) / sqrt(v + s^2); a trial's mass is prod_j Phi(z_j)      (eq. 5, 9)

EP needs of a likelihood only `tilted`. A site that couples the latent functions (a crash that is not
blamed on any) enters as further rows of the same result.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.numerics.gaussians import tail

Array = NDArray[np.float64]


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
    thresholds: Array
    crash_noise_std: Array

    def tilted(self, mu: Array, v: Array) -> Tilted:
        """Moments of N(mu, v) times the step, for every trial and latent function."""
        c, s2 = self.thresholds[:, None], self.crash_noise_std[:, None] ** 2
        total = v + s2
        std = np.sqrt(total)
        cut = tail(np.where(self.sign == 0.0, np.inf, self.sign) * (c - mu) / std)
        hazard = cut.hazard / std
        z = cut.shift - cut.hazard
        return Tilted(
            log_mass=cut.log_mass.sum(axis=0),
            slope=-self.sign * hazard,
            ratio=(s2 + v * cut.ratio) / total,
            in_threshold=self.sign * hazard,
            in_crash_noise=-hazard * z * self.crash_noise_std[:, None] / std,
        )
