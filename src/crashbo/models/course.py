"""What the course of a trial says of a threshold: how far it had come when it was stopped, or when it crashed.

May import numerics only.

Notation, for one latent function:
    c, s    threshold, crash noise
    r       the farthest reading that came before the end
    sigma   sqrt(noise^2 + s^2)
    w       how far the readings rise from one to the next, about
    a       how far the reading after r might have come: by the largest rise before it

A trial that was stopped at r had survived it: P = Phi((c - r) / sigma). A machine that crashed had survived r, too, and
would have survived no reading much higher: r = c - u + sigma e, where e is normal and u >= 0 half-normal with scale w,
so that d = c - r is skew-normal. Where the largest rise is known, w is a share of it, one of a few, the same in all
crashes; or all of them jumped over their threshold, of which their last readings say no more than that it lies above.
Where it is not known, w is one of a few scales, the same in all crashes. The density is divided by a normal one about
all measurements, which is that of a machine whose readings before a crash say nothing: hypotheses with and without a
threshold can be compared.

The latent function at the trial's x has no part in either, so they are no sites of EP but factors of the evidence.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr, owens_t

from crashbo.numerics.gaussians import tail

Array = NDArray[np.float64]

_LOG_2 = float(np.log(2.0))  # derived: of a skew-normal density
# judgement: from a quantity that is read often to one that is read now and then, in spreads of the measurements. The
# weights are derived: that of readings within a spread any number from 1 to 256 is as likely as any other
_RISES = 2.0 ** np.arange(-8.0, 1.0)
_LOG_WEIGHTS = -np.log(_RISES) - logsumexp(-np.log(_RISES))
# judgement: shares of the largest rise. An overshoot is uniform within a rise, of root mean square 0.58 times it; the
# last rise before a crash is mostly smaller than the largest, as readings settle or scatter, and seldom twice as large
_SHARES = 2.0 ** np.arange(-4.0, 2.0)
_LOG_SHARES = -0.5 * (np.log2(_SHARES) + 1.25) ** 2
_LOG_SHARES -= logsumexp(_LOG_SHARES)
_LEAST = 1e-6  # derived: of the spread, so that no division fails; readings that rise by less say nothing of the next
_P_JUMP = 0.02  # judgement: that a machine jumps, of which readings before a crash follow closely and say nothing


class Evidence(NamedTuple):
    """Log probability of what was read, and its derivatives."""

    log_mass: float
    in_threshold: float
    in_noise_std: float
    in_crash_noise_std: float

    def plus(self, other: "Evidence") -> "Evidence":
        """Of both."""
        return Evidence(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Evidence(0.0, 0.0, 0.0, 0.0)  # derived: of no reading at all


class Extent(NamedTuple):
    """Where measurements lie, and how far they spread."""

    centre: float
    spread: float


def extent_of(y: Array) -> Extent:
    """Of measurements, NaN where there is none."""
    seen = y[~np.isnan(y)]
    if not len(seen):
        return Extent(0.0, 1.0)
    centre, spread = float(np.median(seen)), float(np.std(seen))
    return Extent(centre, spread or abs(centre) or 1.0)


def survived(readings: Array, threshold: float | Array, noise_std: float | Array, crash_noise_std: float) -> Evidence:
    """Of trials that were stopped at these readings, (n,); NaN where there is none."""
    seen = ~np.isnan(readings)
    if not seen.any():
        return NOTHING
    r, c, noise = (np.broadcast_to(values, readings.shape)[seen] for values in (readings, threshold, noise_std))
    sigma = np.hypot(noise, crash_noise_std)
    z = (c - r) / sigma
    cut = tail(z)
    in_sigma = -cut.hazard * z / sigma
    return Evidence(
        log_mass=float(cut.log_mass.sum()),
        in_threshold=float((cut.hazard / sigma).sum()),
        in_noise_std=float((in_sigma * noise / sigma).sum()),
        in_crash_noise_std=float((in_sigma * crash_noise_std / sigma).sum()),
    )


def crashed(
    readings: Array,
    threshold: float | Array,
    noise_std: float | Array,
    crash_noise_std: float,
    scale: Extent,
    ahead: Array | None = None,
) -> Evidence:
    """Of machines that crashed after these readings, (n,), and before those ahead; NaN where there is none."""
    rises = np.full(readings.shape, np.nan) if ahead is None else ahead - readings
    known = rises > _LEAST * scale.spread
    found = NOTHING
    for rows, is_known in ((known, True), (~known & ~np.isnan(readings), False)):
        if rows.any():
            r, c, noise = (np.broadcast_to(of, readings.shape)[rows] for of in (readings, threshold, noise_std))
            last = _Last(r, rises[rows] if is_known else None, scale)
            found = found.plus(last.evidence(c, noise, crash_noise_std))
    return found


class _Last(NamedTuple):
    """Last readings before crashes, their rises where these are known, and where all measurements lie."""

    r: Array  # (n,)
    rises: Array | None  # (n,)
    scale: Extent

    @property
    def scales(self) -> tuple[Array, Array]:
        """Of the overshoots, one row per hypothesis, and their log probabilities."""
        if self.rises is None:
            return self.scale.spread * _RISES[:, None], _LOG_WEIGHTS
        return _SHARES[:, None] * self.rises, _LOG_SHARES + np.log1p(-_P_JUMP)

    @property
    def at_random(self) -> Array:
        """Log density where they say nothing, (n,), without a constant."""
        return np.asarray(-0.5 * ((self.r - self.scale.centre) / self.scale.spread) ** 2 - np.log(self.scale.spread))

    def evidence(self, c: Array, noise: Array, crash_noise_std: float) -> Evidence:
        """Of thresholds, one per reading."""
        w, log_weights = self.scales
        sigma = np.hypot(noise, crash_noise_std)
        log_density, in_gap, in_sigma = _overshoots(c - self.r, sigma, w)
        log_density = log_density - self.at_random
        if self.rises is not None:  # or they jumped: then they had survived their last readings
            z = (c - self.r) / sigma
            cut = tail(z)
            log_density = np.vstack([log_density, cut.log_mass])
            in_gap = np.vstack([in_gap, cut.hazard / sigma])
            in_sigma = np.vstack([in_sigma, -cut.hazard * z / sigma])
            log_weights = np.append(log_weights, np.log(_P_JUMP))
        each = log_density.sum(axis=1) + log_weights
        total = float(logsumexp(each))
        share = np.exp(each - total)[:, None]
        return Evidence(
            log_mass=total,
            in_threshold=float((share * in_gap).sum()),
            in_noise_std=float((share * in_sigma * noise / sigma).sum()),
            in_crash_noise_std=float((share * in_sigma * crash_noise_std / sigma).sum()),
        )


@dataclass(frozen=True)
class Trips:
    """Where a machine that runs trips, by what is known of its threshold and of earlier crashes."""

    c: Array  # (m,), thresholds
    mass: Array  # (m, W), their probabilities, with each of the rises
    sigma: float
    rises: Array  # (W,)

    @staticmethod
    def of(c: Array, mass: Array, sigma: float, last: Array, scale: Extent, ahead: Array | None = None) -> "Trips":
        """From thresholds c with probabilities `mass`, (m,), and the last readings before crashes, and those ahead.

        Without such readings, a machine is taken to be followed closely. Where it may jump, less than all of `mass` is
        left: no limit helps then.
        """
        rises = np.full(last.shape, np.nan) if ahead is None else ahead - last
        known = rises > _LEAST * scale.spread
        if not len(last):
            return Trips(c, mass[:, None], sigma, np.zeros(1))
        found = _Last(last[known], rises[known], scale) if known.any() else _Last(last, None, scale)
        w, log_weights = found.scales
        gaps = c[:, None] - found.r
        each = np.stack([_overshoots(gaps, sigma, of)[0] for of in w]) - found.at_random  # (W, m, n)
        logs = each.sum(axis=2).T + log_weights
        total = logsumexp(logs, axis=1)
        if found.rises is not None:
            total = np.logaddexp(total, log_ndtr(gaps / sigma).sum(axis=1) + np.log(_P_JUMP))
        return Trips(c, mass[:, None] * np.exp(logs - total[:, None]), sigma, np.median(w, axis=1))

    def before(self, levels: Array) -> Array:
        """The probability that it trips before a reading above each of these levels, (R,)."""
        omega = np.hypot(self.rises, self.sigma)
        z = (self.c[:, None] - levels[:, None, None]) / omega
        above = ndtr(z) - 2.0 * owens_t(z, self.rises / self.sigma)  # that the last reading lies above the level
        tripped: Array = np.sum(self.mass * (1.0 - above), axis=(1, 2))
        return tripped

    def doomed(self, levels: Array, mean: float, std: float) -> Array:
        """The probability that a trial crashes which has come to each of these ascending levels, (R,), and goes on.

        Its highest reading is normal: it lies above the level, and so does the one at which it would trip.
        """
        tripped = self.before(levels)
        middles = 0.5 * (levels[1:] + levels[:-1])
        onward = log_ndtr((mean - middles) / std) - log_ndtr((mean - levels[:-1, None]) / std)
        # The probability of coming from a level to each middle above it.
        shares = np.exp(np.where(middles > levels[:-1, None], onward, -np.inf))
        crashes = np.sum(shares * np.diff(tripped), axis=1)
        return np.append(crashes, 0.0) / np.maximum(1.0 - tripped, np.finfo(float).tiny)


def _overshoots(d: Array, sigma: float | Array, w: Array) -> tuple[Array, Array, Array]:
    """Log density of gaps d for each of the rises w, (W, n), without a constant; its slopes in d and in sigma."""
    omega2 = w**2 + np.square(sigma)
    omega = np.sqrt(omega2)
    q = d * w / (sigma * omega)
    cut = tail(q)
    log_density = _LOG_2 - np.log(omega) - 0.5 * d**2 / omega2 + cut.log_mass
    in_gap = -d / omega2 + cut.hazard * w / (sigma * omega)
    in_sigma = (d**2 / omega2 - 1.0) * sigma / omega2 - cut.hazard * q * (1.0 / sigma + sigma / omega2)
    return log_density, in_gap, in_sigma
