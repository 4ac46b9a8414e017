"""The likelihood of comparisons: which of two values of a hidden function a judge finds better, or about the same.

May import numerics only.

Notation, for m rows, arrays (1, m):
    d        the difference of two values, the left one's less the right one's
    side     +1: the left was found better, that is lower; -1: the right; 0: about the same
    t, s     the least difference that a judge sees, and the scatter of the judgement (a standard deviation)
    mu, v    mean and variance of the cavity of d
    S        sqrt(v + s^2), the spread of what the judge sees

A judge sees d with scatter. The left is better with probability Phi((-t - d) / s), the right with Phi((d - t) / s), and
both are about the same with what is left. Of a tie both ends are taken from the side on which d lies, where their
difference loses no digits.

Now and then a judge slips: each of the k possible verdicts has at least the probability `lapse`, and P becomes
    lapse + (1 - k lapse) P.
Without that a single slip would make a bad trial the winner, whatever had been said before. With w the probability that
a verdict was none, the moments follow from those of P: slope w g, curvature w g' + w (1 - w) g^2.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from crashbo.models.likelihood import Tilted
from crashbo.numerics.gaussians import LOG_SQRT_2PI, tail

Array = NDArray[np.float64]

_CERTAIN = 40.0  # derived: a z at which a step changes nothing, since phi(39) underflows
_LEAST_RATIO = 1e-12  # judgement: of variances; rounding must not make a tilted one negative
LAPSE = 0.05  # judgement: one verdict in twenty has nothing to do with what was seen


@dataclass(frozen=True)
class ComparisonLikelihood:
    """One judgement per row; rows that are not `judged` say nothing."""

    side: Array  # (1, m)
    judged: NDArray[np.bool_]  # (1, m)
    tie: float  # t
    noise_std: float  # s
    lapse: float = 0.0

    @property
    def thresholds(self) -> Array:
        """How far from zero a difference may lie and still be told from zero."""
        return np.array([[self.tie + self.noise_std]])

    @cached_property
    def _same(self) -> NDArray[np.bool_]:
        return np.asarray(self.judged & (self.side == 0.0))

    def tilted(self, mu: Array, v: Array) -> Tilted:
        """Moments of N(mu, v) times the likelihood, row by row."""
        s2 = self.noise_std**2
        total = v + s2
        std = np.sqrt(total)
        z = np.where(self.judged, (-self.tie - self.side * mu) / std, _CERTAIN)
        cut = tail(z)
        hazard = cut.hazard / std
        result = Tilted(
            log_mass=cut.log_mass[0],
            slope=-self.side * hazard,
            ratio=(s2 + v * cut.ratio) / total,
            in_threshold=-hazard,
            in_crash_noise=-hazard * z * self.noise_std / std,
        )
        if self._same.any():
            for into, values in zip(result, self._about_the_same(mu[self._same], v[self._same]), strict=True):
                into[self._same[0] if into.ndim == 1 else self._same] = values
        return self._with_lapses(result, v) if self.lapse > 0.0 else result

    def _with_lapses(self, seen: Tilted, v: Array) -> Tilted:
        """The same where each verdict may be a slip."""
        verdicts = 3 if self.tie > 0.0 else 2  # derived: better, worse and, where the judge says so, about the same
        log_seen = np.log1p(-verdicts * self.lapse) + seen.log_mass
        log_mass = np.where(self.judged[0], np.logaddexp(log_seen, np.log(self.lapse)), 0.0)
        w = np.where(self.judged[0], np.exp(log_seen - log_mass), 0.0)
        ratio = 1.0 + w * (seen.ratio - 1.0) + v * w * (1.0 - w) * seen.slope**2
        return Tilted(
            log_mass=log_mass,
            slope=w * seen.slope,
            ratio=np.maximum(ratio, _LEAST_RATIO),
            in_threshold=w * seen.in_threshold,
            in_crash_noise=w * seen.in_crash_noise,
        )

    def _about_the_same(self, mu: Array, v: Array) -> Tilted:
        """Of ties only; arrays (k,)."""
        total = v + self.noise_std**2
        std = np.sqrt(total)
        far = np.abs(mu)
        a, b = (self.tie - far) / std, (-self.tie - far) / std
        log_a = log_ndtr(a)
        log_mass = log_a + np.log(-np.expm1(log_ndtr(b) - log_a))
        at_a, at_b = (np.exp(-0.5 * z**2 - LOG_SQRT_2PI - log_mass) for z in (a, b))
        pull, turn = at_a - at_b, a * at_a - b * at_b
        ratio = 1.0 - v * (turn + pull**2) / total
        return Tilted(
            log_mass=log_mass,
            slope=-np.sign(mu) * pull / std,
            ratio=np.clip(ratio, _LEAST_RATIO, 1.0),
            in_threshold=(at_a + at_b) / std,
            in_crash_noise=-turn * self.noise_std / total,
        )
