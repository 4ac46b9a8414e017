"""What trials that were stopped say of a threshold: their readings were survived.

May import numerics only.

A machine that reached the reading r without a crash has its threshold c above, up to the noise of the reading and the
scatter of the level at which it trips: P = Phi((c - r) / sqrt(noise^2 + crash_noise^2)). The latent function at that x
has no part in it, so this is no site of EP but a factor of the evidence, with a closed form.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.numerics.gaussians import tail

Array = NDArray[np.float64]


class Survival(NamedTuple):
    """Log probability of what was survived, and its derivatives."""

    log_mass: float
    in_threshold: float
    in_noise_std: float
    in_crash_noise_std: float


NOTHING = Survival(0.0, 0.0, 0.0, 0.0)  # derived: of no reading at all


def survival(readings: Array, threshold: float | Array, noise_std: float | Array, crash_noise_std: float) -> Survival:
    """Of readings (n,), NaN where there is none; threshold and noise are one for all, or one per reading."""
    seen = ~np.isnan(readings)
    if not seen.any():
        return NOTHING
    r, c, noise = (np.broadcast_to(values, readings.shape)[seen] for values in (readings, threshold, noise_std))
    total = noise**2 + crash_noise_std**2
    z = (c - r) / np.sqrt(total)
    cut = tail(z)
    in_spread = -cut.hazard * z / total
    return Survival(
        log_mass=float(cut.log_mass.sum()),
        in_threshold=float((cut.hazard / np.sqrt(total)).sum()),
        in_noise_std=float((in_spread * noise).sum()),
        in_crash_noise_std=float((in_spread * crash_noise_std).sum()),
    )
