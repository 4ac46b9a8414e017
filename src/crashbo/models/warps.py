"""Warps of readings: the scale on which a function is smooth need not be the one on which it is measured.

May import numerics only.

A quantity that rises ever more steeply is smooth in its logarithm, one that saturates at both ends in its hyperbolic
sine. Each warp is monotone, so that a threshold is one on either scale, and has a slope, so that the evidence of warped
readings is a density of the readings themselves.

Notation: u  a reading, from the least of them, in their spreads    z  the same, warped    R  the highest u
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# fitted: benchmarks/thresholds.py, on other seeds; prior probabilities of no warp, and of each of the others
_PLAIN, _OTHER = 0.5, 0.5 / 3.0
_STEEP = (0.7, 2.0)  # judgement: logarithms of 1 + this many u
_BOTH_ENDS = 2.0  # judgement: how many times the sine's own scale fits into half the range
_FEWEST = 6  # judgement: readings from which on a warp can be told
_LEAST = 1e-12  # derived: rounding, of the logarithm's argument


@dataclass(frozen=True)
class Warp:
    """z of readings; `least` and `unit` make u of them."""

    least: float
    unit: float
    prior: float
    forth: Callable[[Array], Array]
    back: Callable[[Array], Array]
    slope: Callable[[Array], Array]  # dz/du

    def __call__(self, y: Array) -> Array:
        """z of readings y; NaN stays NaN."""
        return self.forth((y - self.least) / self.unit)

    def inverse(self, z: Array) -> Array:
        """The readings of z."""
        return np.asarray(self.least + self.unit * self.back(z))

    def rate(self, y: Array) -> Array:
        """dz/dy; one over the unit where nothing was measured."""
        return np.where(np.isnan(y), 1.0, self.slope((np.nan_to_num(y) - self.least) / self.unit)) / self.unit


def warps(y: Array, unit: float) -> tuple[Warp, ...]:
    """The warps of readings y that are considered, the first of which is none; `unit` is their spread."""
    seen = y[~np.isnan(y)]
    if len(seen) < _FEWEST or not np.ptp(seen) > 0.0:
        return (_plain(0.0, 1.0, 1.0),)
    least, middle = float(seen.min()), 0.5 * float(np.ptp(seen)) / unit
    logs = (_logarithm(rate, least, unit) for rate in _STEEP)
    return _plain(least, unit, _PLAIN), *logs, _sine(_BOTH_ENDS / middle, middle, least, unit)


def _plain(least: float, unit: float, prior: float) -> Warp:
    return Warp(least, unit, prior, forth=np.asarray, back=np.asarray, slope=np.ones_like)


def _logarithm(rate: float, least: float, unit: float) -> Warp:
    return Warp(
        least,
        unit,
        _OTHER,
        forth=lambda u: np.log(np.maximum(1.0 + rate * u, _LEAST)) / rate,
        back=lambda z: np.expm1(rate * z) / rate,
        slope=lambda u: 1.0 / np.maximum(1.0 + rate * u, _LEAST),
    )


def _sine(rate: float, middle: float, least: float, unit: float) -> Warp:
    return Warp(
        least,
        unit,
        _OTHER,
        forth=lambda u: np.sinh(rate * (u - middle)) / rate,
        back=lambda z: middle + np.arcsinh(rate * z) / rate,
        slope=lambda u: np.cosh(rate * (u - middle)),
    )
