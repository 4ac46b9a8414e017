"""Priors over hyperparameters: our own weak ones, and the paper's.

May import numerics only.

A density gives its logarithm and the derivative of that. Our own positive parameters are
log-normal, as densities of the logarithm (the coordinate in which the fit runs), in standardised units:
measurements have a spread of one, inputs lie in the unit cube. The paper's are densities of the parameter
itself, in the units given (PAPER: "f and g not standardised"), each cut to [0.05, 75 % quantile].
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaincinv

from crashbo.models.latent import Gradient, Hyperparameters
from crashbo.numerics.kernels import MATERN52, Kernel

Array = NDArray[np.float64]

_FAR = 500.0  # derived: scales below its mode where a Gumbel density no longer steepens; exp(709) overflows
_LEAST_EXCESS = 1e-6  # judgement: rounding of huge measurements may swallow a small excess
_PAPER_LEAST, _PAPER_QUANTILE = 0.05, 0.75  # derived: where the paper's code cuts its priors


class Density(Protocol):
    """A prior of one parameter, and the interval to which the fit keeps it."""

    @property
    def start(self) -> float:
        """Where a cold fit begins."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest value."""

    def log(self, x: Any) -> tuple[Any, Any]:
        """Log density at x, a number or an array, and its derivative."""


@dataclass(frozen=True)
class LogNormal:
    """log x is normal about log(median) with standard deviation `spread`; a density of log x."""

    median: float
    spread: float
    bounds: tuple[float, float]

    @property
    def start(self) -> float:
        return self.median

    def log(self, x: Any) -> tuple[Any, Any]:
        z = np.log(x / self.median) / self.spread
        return -0.5 * z**2, -z / (self.spread * x)


@dataclass(frozen=True)
class Normal:
    """Normal about `start`."""

    std: float
    start: float = 0.0
    bounds: tuple[float, float] = (-10.0, 10.0)  # judgement: of a mean, in spreads of the measurements

    def log(self, x: Any) -> tuple[Any, Any]:
        z = (x - self.start) / self.std
        return -0.5 * z**2, -z / self.std


@dataclass(frozen=True)
class Gumbel:
    """Largest-value distribution: a soft wall to the left of its mode, an exponential tail to the right."""

    mode: float
    scale: float
    bounds: tuple[float, float]

    @property
    def start(self) -> float:
        return self.mode

    def log(self, x: Any) -> tuple[Any, Any]:
        u = (x - self.mode) / self.scale
        decay = np.exp(np.minimum(-u, _FAR))
        return -u - decay - np.log(self.scale), (decay - 1.0) / self.scale


@dataclass(frozen=True)
class Gamma:
    """Gamma(2, scale), cut to [0.05 scale, 75 % quantile]."""

    scale: float

    @property
    def bounds(self) -> tuple[float, float]:
        return _PAPER_LEAST * self.scale, self.scale * float(gammaincinv(2.0, _PAPER_QUANTILE))

    @property
    def start(self) -> float:
        return self.scale

    def log(self, x: Any) -> tuple[Any, Any]:
        x = np.maximum(x, _LEAST_EXCESS * self.scale)
        return np.log(x / self.scale**2) - x / self.scale, 1.0 / x - 1.0 / self.scale


@dataclass(frozen=True)
class Beta:
    """Beta(a, b), cut to [0.05, 75 % quantile]."""

    a: float
    b: float

    @property
    def bounds(self) -> tuple[float, float]:
        return _PAPER_LEAST, float(betaincinv(self.a, self.b, _PAPER_QUANTILE))

    @property
    def start(self) -> float:
        return float(np.mean(self.bounds))

    def log(self, x: Any) -> tuple[Any, Any]:
        value = (self.a - 1.0) * np.log(x) + (self.b - 1.0) * np.log1p(-x)
        return value, (self.a - 1.0) / x - (self.b - 1.0) / (1.0 - x)


# judgement: weak priors of ours, in standardised units, as (median, spread, bounds) or (mode, scale, bounds)
_LENGTHSCALE, _LENGTHSCALE_SPREAD, _LENGTHSCALES = 0.4, 1.0, (0.02, 30.0)  # the median is of one dimension
_OUTPUTSCALE = LogNormal(2.0, 1.0, (1e-2, 1e3))
_MEAN = Normal(1.5)
_NOISE = LogNormal(0.06, 1.2, (1e-4, 1.0))
_CRASH_NOISE = LogNormal(0.02, 1.2, (1e-3, 1.0))
_EXCESS = Gumbel(0.3, 0.8, (-5.0, 100.0))
_COST_OUTPUTSCALE = replace(_OUTPUTSCALE, median=1.0)
_COST_NOISE = LogNormal(0.01, 1.0, _NOISE.bounds)
_CRASH_LENGTHSCALE, _CRASH_LENGTHSCALE_SPREAD = 0.25, 0.7
_RARE = Normal(0.75, -2.5)  # one place in 160 lies above zero, Phi(-2.5), until crashes say otherwise
# derived: the paper's code
_PAPER_LENGTHSCALES, _PAPER_NOISE = Beta(1.5, 15.0), 0.01


@dataclass(frozen=True)
class Hyperprior:
    """Priors of one latent function's hyperparameters; a number fixes a parameter.

    `excess` is the prior of the threshold's distance from a reference, the highest measured success:
    in units of sqrt(outputscale) if `relative`, else in the units of the measurements. Where coordinates are `tied`,
    those of the same number have one lengthscale, which counts once; none are if that is empty.
    """

    lengthscales: Density
    outputscale: Density | float
    mean: Density | float
    noise_std: Density | float
    crash_noise_std: Density | float
    excess: Density
    relative: bool = True
    standardise: bool = True
    kernel: Kernel = MATERN52
    tied: tuple[int, ...] = ()  # for each coordinate the number of its lengthscale, from 0 on

    def rare(self) -> "Hyperprior":
        """The same for a rare cause of crashes: most of the space lies well below its threshold, 0."""
        return self if isinstance(self.mean, int | float) else replace(self, mean=_RARE)

    def learnt(self) -> tuple[str, ...]:
        """Names of the hyperparameters that have a density, in the order of Hyperparameters."""
        names = ("lengthscales", "outputscale", "mean", "noise_std", "threshold", "crash_noise_std")
        return tuple(n for n in names if n == "threshold" or not isinstance(getattr(self, n), int | float))

    def log_density(self, h: Hyperparameters, learnt: tuple[str, ...], reference: float) -> tuple[float, Gradient]:
        """Log density of the `learnt` hyperparameters, and its gradient in natural units."""
        value, slopes = 0.0, dict.fromkeys(Gradient._fields, 0.0)
        for name in learnt:
            if name != "threshold":
                log, slope = getattr(self, name).log(getattr(h, name))
                share = self._shares if name == "lengthscales" else 1.0
                value += float(np.sum(share * log))
                slopes[name] = share * slope
        if "threshold" in learnt:
            unit = float(np.sqrt(h.outputscale)) if self.relative else 1.0
            e = (h.threshold - reference) / unit
            log, slope = self.excess.log(e)
            value += float(log) - np.log(unit)
            slopes["threshold"] = float(slope) / unit
            if self.relative:  # the unit, and with it the density of c itself, moves with the outputscale
                slopes["outputscale"] -= 0.5 * (1.0 + e * float(slope)) / h.outputscale
        return value, Gradient(**slopes)  # type: ignore[arg-type]

    @property
    def _shares(self) -> Array | float:
        """Of each coordinate, its share of its lengthscale."""
        return 1.0 / np.bincount(self.tied)[list(self.tied)] if self.tied else 1.0

    def log_of_lengthscales(self, lengthscales: Array) -> Array:
        """Log density of every lengthscale, each once."""
        once = np.unique(self.tied, return_index=True)[1] if self.tied else slice(None)
        return np.asarray(self.lengthscales.log(lengthscales[once])[0])


def weak(dimension: int) -> Hyperprior:
    """Our own: lengthscales that grow with the square root of the dimension, everything else wide."""
    return Hyperprior(
        lengthscales=LogNormal(_LENGTHSCALE * np.sqrt(dimension), _LENGTHSCALE_SPREAD, _LENGTHSCALES),
        outputscale=_OUTPUTSCALE,
        mean=_MEAN,
        noise_std=_NOISE,
        crash_noise_std=_CRASH_NOISE,
        excess=_EXCESS,
    )


def of_cost(dimension: int, tied: tuple[int, ...] = ()) -> Hyperprior:
    """Our own for the cost: with a wide prior of the noise, a rugged cost would pass for noise.

    What is `tied` counts as one dimension.
    """
    prior = weak(len(set(tied)) or dimension)
    return replace(prior, noise_std=_COST_NOISE, outputscale=_COST_OUTPUTSCALE, tied=tied)


def of_crash(dimension: int, tied: tuple[int, ...] = ()) -> Hyperprior:
    """Our own for a search's constraints: shorter lengthscales, since too long ones make P(safe) overconfident."""
    dimension = len(set(tied)) or dimension
    median = _CRASH_LENGTHSCALE * np.sqrt(dimension)
    lengthscales = LogNormal(median, _CRASH_LENGTHSCALE_SPREAD, _LENGTHSCALES)
    return replace(weak(dimension), lengthscales=lengthscales, tied=tied)


def paper() -> Hyperprior:
    """The paper's, as its code has them; noise is given there, 0.01 on the benchmarks."""
    return Hyperprior(
        lengthscales=_PAPER_LENGTHSCALES,
        outputscale=Gamma(1.0),
        mean=0.0,
        noise_std=_PAPER_NOISE,
        crash_noise_std=0.0,
        excess=Gamma(1.0),
        relative=False,
        standardise=False,
    )


Prior = Literal["paper"] | Hyperprior | None


def resolve(prior: Prior, dimension: int) -> Hyperprior:
    """The hyperprior that a `prior` argument names."""
    if isinstance(prior, Hyperprior):
        return prior
    if prior is None:
        return weak(dimension)
    if prior == "paper":
        return paper()
    raise ValueError(f"prior must be None, 'paper' or a Hyperprior; got {prior!r}. None takes our weak priors.")
