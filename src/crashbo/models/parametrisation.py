"""The parametrisation of one latent function in a fit: units, coordinates, bounds and start.

May import numerics only.

The coordinates theta: log lengthscales, log outputscale, mean, log noise, the threshold's t and log crash
noise, of which only the learnt ones enter. The threshold is
    c = reference + width sinh(t),
linear within `width` of the highest success, where the likelihood is a wall as steep as the noise is
small, and logarithmic beyond: one step length then suits both.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.models.hyperpriors import Density, Hyperprior
from crashbo.models.latent import Gradient, Hyperparameters

Array = NDArray[np.float64]

_LOGS = ("lengthscales", "outputscale", "noise_std", "crash_noise_std")
_SAME = 1e-13  # judgement: measurements that spread by less than this share of their size are all the same
_WIDTH = 0.05  # judgement: where the threshold's coordinate turns from linear to logarithmic
_TOP = 6  # judgement: highest successes, whose spacing sets the distance of the initial threshold above them
_NEAR = 0.25  # judgement: of that spacing, since noise has lifted the highest
_OUT_OF_REACH = 1e3  # judgement: prior standard deviations
_EVEN_STD = 12.0**-0.5  # derived: standard deviation of a value that lies evenly between two ends, over their distance
_PRIOR_INFORMATION = 0.7  # derived: of a coordinate; that of our own priors, 1 / spread^2, is 0.4 to 1


@dataclass(frozen=True)
class Parametrisation:
    """One latent function in a fit. Its hyperparameters are in units of its own: y = shift + scale u."""

    start: Hyperparameters
    prior: Hyperprior
    learnt: tuple[str, ...]  # names of Hyperparameters' fields
    reference: float = 0.0
    threshold_bounds: tuple[float, float] = (-np.inf, np.inf)
    shift: float = 0.0
    scale: float = 1.0
    known_threshold: float | None = None  # as the user gave it
    success_measured: bool = True  # without one, a learnt threshold has no lower end
    held: tuple[str, ...] = ()  # learnt ones that are held for now: their prior counts, but they do not move

    @property
    def is_given(self) -> bool:
        """Whether the user knows the threshold, or an interval for it."""
        return self.known_threshold is not None or bool(np.isfinite(self.threshold_bounds).all())

    def given_level(self, h: Hyperparameters) -> tuple[float, float]:
        """The threshold by the user's word and its standard deviation; where there is none, a level out of reach."""
        if self.known_threshold is not None:
            return self.known_threshold, 0.0
        if not self.is_given:
            return h.mean + _OUT_OF_REACH * math.sqrt(h.outputscale), 0.0
        low, high = (self.shift + self.scale * end for end in self.threshold_bounds)
        return 0.5 * (low + high), _EVEN_STD * (high - low)

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the hyperparameters in theta."""
        return tuple(name for name in self.learnt if name not in self.held)

    def outside(self, h: Hyperparameters) -> Hyperparameters:
        """Hyperparameters in the user's units."""
        h = h.in_units(self.shift, self.scale)
        return h if self.known_threshold is None else replace(h, threshold=self.known_threshold)

    def inside(self, h: Hyperparameters) -> Hyperparameters:
        """Hyperparameters in the parametrisation's own units."""
        return h.in_units(-self.shift / self.scale, 1.0 / self.scale)

    def started_from(self, h: Hyperparameters) -> "Parametrisation":
        """The parametrisation with its learnt hyperparameters starting at those of an earlier fit (user's units)."""
        earlier = {name: getattr(self.inside(h), name) for name in self.free}
        usable = {name: value for name, value in earlier.items() if self._can_start(name, value)}
        return replace(self, start=self.unpack(self.pack(replace(self.start, **usable))))

    def log_prior(self, h: Hyperparameters) -> tuple[float, Gradient]:
        """Log prior of the learnt hyperparameters, with its gradient; flat within an interval the user gave."""
        confined = np.isfinite(self.threshold_bounds[0])
        names = tuple(name for name in self.learnt if name != "threshold" or not confined)
        return self.prior.log_density(h, names, self.reference)

    def pack(self, h: Hyperparameters) -> Array:
        """Coordinates of h, moved to within the bounds."""
        pieces = [np.atleast_1d(self._coordinate(name, getattr(h, name))) for name in self.free]
        theta: Array = np.clip(np.concatenate(pieces), *self.bounds())
        return theta

    def unpack(self, theta: Array) -> Hyperparameters:
        """Hyperparameters at theta; those that are not free keep their start values."""
        values: dict[str, Any] = {}
        at = 0
        for name in self.free:
            if name == "lengthscales":
                values[name] = np.exp(theta[at : at + self._size(name)])[self._tied]
            elif name == "threshold":
                values[name] = self.reference + _WIDTH * math.sinh(theta[at])
            else:
                values[name] = math.exp(theta[at]) if name in _LOGS else float(theta[at])
            at += self._size(name)
        return replace(self.start, **values)

    def chain(self, h: Hyperparameters, gradient: Gradient) -> Array:
        """Gradient in theta from that in natural units."""
        pieces = []
        for name in self.free:
            rate = getattr(h, name) if name in _LOGS else self.rate(name, h)
            piece = np.atleast_1d(getattr(gradient, name) * rate)
            pieces.append(np.bincount(self._tied, piece) if name == "lengthscales" else piece)
        return np.concatenate(pieces)

    def metric(self, h: Hyperparameters, information: Array) -> Array:
        """A guess of the inverse Hessian in theta, from models.information's matrix."""
        unit = math.sqrt(h.outputscale)
        rates: list[float] = []
        rows: list[int] = []
        places: list[int] = []  # in theta
        at = 0
        for name in Gradient._fields:
            size = len(self._tied) if name == "lengthscales" else 1
            if name in self.free:
                first = max(places, default=-1) + 1
                rows += range(at, at + size)
                places += (first + self._tied).tolist() if name == "lengthscales" else [first]
                rates += [1.0 if name in _LOGS else self.rate(name, h) / unit] * size
            at += size
        jacobian = np.zeros((len(rows), max(places, default=-1) + 1))
        jacobian[np.arange(len(rows)), places] = rates
        total = jacobian.T @ information[np.ix_(rows, rows)] @ jacobian
        return np.asarray(np.linalg.inv(total + _PRIOR_INFORMATION * np.eye(len(total))))

    def bounds(self) -> tuple[Array, Array]:
        """Least and largest theta."""
        low, high = [], []
        for name in self.free:
            ends = self._bounds(name)
            low += [float(self._coordinate(name, ends[0]))] * self._size(name)
            high += [float(self._coordinate(name, ends[1]))] * self._size(name)
        return np.array(low), np.array(high)

    def _bounds(self, name: str) -> tuple[float, float]:
        if name != "threshold":
            density: Density = getattr(self.prior, name)
            return density.bounds
        low, high = (self.reference + excess for excess in self.prior.excess.bounds)
        least, most = self.threshold_bounds
        return (least, most) if np.isfinite(least) else (low, high)

    def _coordinate(self, name: str, value: Array | float) -> Array | float:
        if name == "lengthscales" and np.ndim(value):
            return np.bincount(self._tied, np.log(value)) / np.bincount(self._tied)
        if name in _LOGS:
            return np.log(value)
        return np.arcsinh((value - self.reference) / _WIDTH) if name == "threshold" else value

    def _can_start(self, name: str, value: Array | float) -> bool:
        """Not a zero where a logarithm is learnt, one noise per trial, or lengthscales of another space."""
        return np.size(value) == np.size(getattr(self.start, name)) and (
            name not in _LOGS or bool(np.all(np.asarray(value) > 0.0))
        )

    def rate(self, name: str, h: Hyperparameters) -> float:
        """Derivative of the mean or the threshold in its coordinate."""
        return math.hypot(_WIDTH, h.threshold - self.reference) if name == "threshold" else 1.0

    @property
    def _tied(self) -> NDArray[np.intp]:
        """For each coordinate the number of its lengthscale."""
        return np.array(self.prior.tied or range(len(self.start.lengthscales)), dtype=np.intp)

    def _size(self, name: str) -> int:
        return int(self._tied.max(initial=-1)) + 1 if name == "lengthscales" else 1


def parametrise(
    y: Array,
    sign: Array,
    prior: Hyperprior,
    *,
    dimension: int,
    labelled: bool = True,
    noise_std: float | Array | None = None,
    threshold: float | tuple[float, float] | None = None,
    survived: Array | None = None,
) -> Parametrisation:
    """The parametrisation for a fit to measurements y and labels `sign`, all arguments in the user's units.

    Without labels (`labelled` False) there is no step, hence neither threshold nor crash noise. `survived` are the
    readings of trials that were stopped, of HybridData.
    """
    seen = ~np.isnan(y)
    shift, scale = _units(y[seen], threshold) if prior.standardise else (0.0, 1.0)
    u = (y - shift) / scale
    learnt = list(prior.learnt())
    if noise_std is not None or not seen.any():
        _drop(learnt, "noise_std")
    if not seen.any():  # labels do not inform the scale
        _drop(learnt, "outputscale")
    if isinstance(threshold, float) or not seen.any() or not labelled:
        _drop(learnt, "threshold")
    if not labelled:
        _drop(learnt, "crash_noise_std")
    reference = _reference(u, sign)
    if survived is not None and not np.isnan(survived).all():
        reference = max(reference, float(np.nanmax(survived) - shift) / scale)
    bounds = (-np.inf, np.inf)
    c = reference + min(prior.excess.start, _NEAR * _spacing(u, sign))
    if isinstance(threshold, float):
        c = (threshold - shift) / scale
    elif isinstance(threshold, tuple):
        bounds = ((threshold[0] - shift) / scale, (threshold[1] - shift) / scale)
        c = float(np.clip(c, *bounds))
    elif not seen.any():
        c = 0.0
    start = Hyperparameters(
        lengthscales=np.full(dimension, prior.lengthscales.start),
        outputscale=_start(prior.outputscale) if seen.any() else 1.0,
        mean=_start(prior.mean),
        noise_std=_start(prior.noise_std) if noise_std is None else noise_std / scale,
        threshold=c,
        crash_noise_std=_start(prior.crash_noise_std),
        kernel=prior.kernel,
    )
    known = threshold if isinstance(threshold, float) else None
    measured = bool(np.any(seen & (sign > 0.0)))
    return Parametrisation(start, prior, tuple(learnt), reference, bounds, shift, scale, known, measured)


def _units(y: Array, threshold: float | tuple[float, float] | None) -> tuple[float, float]:
    """Shift and scale that standardise y, which may be empty or constant."""
    if y.size == 0:
        shift = float(np.mean(threshold)) if threshold is not None else 0.0
        return shift, abs(shift) or 1.0
    shift, spread, size = float(np.median(y)), float(np.std(y)), float(np.max(np.abs(y)))
    return shift, spread if spread > _SAME * size else size or 1.0


def _reference(u: Array, sign: Array) -> float:
    """The level just above which a learnt threshold is expected: the highest success, else well below the crashes."""
    successes, crashes = u[~np.isnan(u) & (sign > 0)], u[~np.isnan(u) & (sign < 0)]
    if successes.size:
        return float(successes.max())
    return float(crashes.min()) - 1.0 if crashes.size else 0.0


def _spacing(u: Array, sign: Array) -> float:
    """Mean spacing of the highest successes; infinite if there are not two, or no crash is blamed on it."""
    top = np.sort(u[~np.isnan(u) & (sign > 0)])[-_TOP:]
    return float(top[-1] - top[0]) / (len(top) - 1) if len(top) > 1 and np.any(sign < 0) else np.inf


def _start(prior: Density | float) -> float:
    return float(prior) if isinstance(prior, int | float) else prior.start


def _drop(names: list[str], name: str) -> None:
    if name in names:
        names.remove(name)
