"""Priors over hyperparameters: our own weak ones, and the paper's.

May import numerics only.

A density gives its logarithm and the derivative of that in its argument. Our own positive parameters are
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

Array = NDArray[np.float64]

_FAR = 500.0  # scales below its mode beyond which a Gumbel density no longer steepens


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
    bounds: tuple[float, float] = (-10.0, 10.0)

    def log(self, x: Any) -> tuple[Any, Any]:
        z = (x - self.start) / self.std
        return -0.5 * z**2, -z / self.std


_RARE = Normal(0.75, -2.5)  # one place in 160 lies above zero, until crashes say otherwise


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
        return 0.05 * self.scale, self.scale * float(gammaincinv(2.0, 0.75))

    @property
    def start(self) -> float:
        return self.scale

    def log(self, x: Any) -> tuple[Any, Any]:
        x = np.maximum(x, 1e-6 * self.scale)  # rounding of huge measurements may swallow a small excess
        return np.log(x / self.scale**2) - x / self.scale, 1.0 / x - 1.0 / self.scale


@dataclass(frozen=True)
class Beta:
    """Beta(a, b), cut to [0.05, 75 % quantile]."""

    a: float
    b: float

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.05, float(betaincinv(self.a, self.b, 0.75))

    @property
    def start(self) -> float:
        return float(np.mean(self.bounds))

    def log(self, x: Any) -> tuple[Any, Any]:
        value = (self.a - 1.0) * np.log(x) + (self.b - 1.0) * np.log1p(-x)
        return value, (self.a - 1.0) / x - (self.b - 1.0) / (1.0 - x)


@dataclass(frozen=True)
class Hyperprior:
    """Priors of one latent function's hyperparameters; a number fixes a parameter.

    `excess` is the prior of the threshold's distance from a reference, the highest measured success:
    in units of sqrt(outputscale) if `relative`, else in the units of the measurements.
    """

    lengthscales: Density
    outputscale: Density | float
    mean: Density | float
    noise_std: Density | float
    crash_noise_std: Density | float
    excess: Density
    relative: bool = True
    standardise: bool = True

    def rare(self) -> "Hyperprior":
        """The same for a cause that is seldom to blame: most of the space lies well below its threshold, 0."""
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
                value += float(np.sum(log)) if name == "lengthscales" else float(log)
                slopes[name] = slope
        if "threshold" in learnt:
            unit = float(np.sqrt(h.outputscale)) if self.relative else 1.0
            e = (h.threshold - reference) / unit
            log, slope = self.excess.log(e)
            value += float(log) - np.log(unit)
            slopes["threshold"] = float(slope) / unit
            if self.relative:  # the unit, and with it the density of c itself, moves with the outputscale
                slopes["outputscale"] -= 0.5 * (1.0 + e * float(slope)) / h.outputscale
        return value, Gradient(**slopes)  # type: ignore[arg-type]


def weak(dimension: int) -> Hyperprior:
    """Our own: lengthscales that grow with the square root of the dimension, everything else wide."""
    return Hyperprior(
        lengthscales=LogNormal(0.4 * np.sqrt(dimension), 1.0, (0.02, 30.0)),
        outputscale=LogNormal(2.0, 1.0, (1e-2, 1e3)),
        mean=Normal(1.5),
        noise_std=LogNormal(0.06, 1.2, (1e-4, 1.0)),
        crash_noise_std=LogNormal(0.02, 1.2, (1e-3, 1.0)),
        excess=Gumbel(0.3, 0.8, (-5.0, 100.0)),
    )


def of_cost(dimension: int) -> Hyperprior:
    """Our own for the cost: a noise that is learnt too freely would swallow a rugged cost."""
    return replace(
        weak(dimension), noise_std=LogNormal(0.01, 1.0, (1e-4, 1.0)), outputscale=LogNormal(1.0, 1.0, (1e-2, 1e3))
    )


def of_crash(dimension: int) -> Hyperprior:
    """Our own for a search's constraints: shorter lengthscales, since one taken too long makes P(safe) too sure."""
    return replace(weak(dimension), lengthscales=LogNormal(0.25 * np.sqrt(dimension), 0.7, (0.02, 30.0)))


def paper() -> Hyperprior:
    """The paper's, as its code has them; noise is given there, 0.01 on the benchmarks."""
    return Hyperprior(
        lengthscales=Beta(1.5, 15.0),
        outputscale=Gamma(1.0),
        mean=0.0,
        noise_std=0.01,
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
