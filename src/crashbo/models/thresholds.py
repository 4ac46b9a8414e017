"""The learnt threshold's posterior: an interval for the level at which the machine crashes.

May import numerics only.

The density of c is exp(log Z_EP) times the priors, with all other hyperparameters re-optimised along c, on
a grid in the fit's own coordinate t (see `parametrisation`), which resolves both the wall at the highest success and
the long tail above it. Holding the others makes the interval much too short. A profile is not an integral,
so it is still a little short; a higher nominal level makes up for that.

With several latent functions, each is treated alone while the posterior of the others is held: only crashes
that were not blamed couple them, and the cost stays that of one at a time.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crashbo.models import latent
from crashbo.models.fit import fit
from crashbo.models.latent import Posterior
from crashbo.models.parametrisation import Parametrisation

Array = NDArray[np.float64]

_NOMINAL = 0.94  # fitted: benchmarks/coverage.py, data drawn from the model; covers 90 % in practice
_TAIL = 0.05  # derived: of a 90 % interval
_HIGHEST = 0.999  # judgement: quantile, near the end of the grid
_ONE_STD = (0.16, 0.5, 0.84)  # derived: Phi(-1), Phi(0) and Phi(1)

# judgement: fine enough for quantiles, as coarse as is quick; a coarser grid missed cliffs
_DROP = 5.0  # nats below the highest density at which the grid ends
_STEP = 0.75  # of the grid in t
_FINER = 16  # points of the integral per point of the grid
_MAX_STEPS = 40
_DROP_HELD, _STEP_HELD = 3.0, 1.0  # for a search, which needs only median and spread, at every trial
_EP_TOLERANCE = 1e-2
_MAX_SWEEPS = 20
_MAX_EVALUATIONS = 6  # per grid point, from its neighbour's optimum


def has_meaning(p: Parametrisation) -> bool:
    """Whether the threshold means anything: it is known, or learnt from a measured success."""
    return p.known_threshold is not None or ("threshold" in p.learnt and p.success_measured)


def interval(
    posterior: Posterior, parametrisations: tuple[Parametrisation, ...], j: int = 0, doubt: float = 0.0
) -> tuple[float, float] | None:
    """The 90 % interval of latent function j's threshold, equal-tailed, in the user's units.

    `doubt` is the probability that no crash was of this function's making. Then the trials say nothing of how high its
    threshold is: with more doubt than a tail has, the interval is open above.
    """
    p = parametrisations[j]
    if not has_meaning(p):
        return None
    c_map = posterior.hypers[j].threshold
    if p.known_threshold is not None:
        return c_map, c_map
    c, log_density = _profile(posterior.alone(j), p)
    tail = (1.0 - _NOMINAL) / 2.0
    low, high = _quantiles(c, log_density, (tail, min((1.0 - tail) / max(1.0 - doubt, 0.5), _HIGHEST)))
    highest = np.inf if doubt > _TAIL else max(p.shift + p.scale * high, c_map)
    return min(p.shift + p.scale * low, c_map), highest


def centre_and_spread(posterior: Posterior, p: Parametrisation, j: int) -> tuple[float, float]:
    """Median and standard deviation of a learnt threshold given all other hyperparameters, in the user's units.

    The most probable threshold lies at the wall just above the highest success, at the lower end of what is
    plausible; a search that relies on it creeps along the boundary. The median does not.
    """
    if "threshold" not in p.learnt:
        return posterior.hypers[j].threshold, 0.0
    below, median, above = _quantiles(*_conditional(posterior.alone(j), p), _ONE_STD)
    return p.shift + p.scale * median, p.scale * 0.5 * (above - below)


def _profile(posterior: Posterior, p: Parametrisation) -> tuple[Array, Array]:
    """Thresholds in the parametrisation's units and their log density, all else re-optimised."""

    def at(c: float, neighbour: Posterior) -> tuple[float, Posterior]:
        moved = replace(neighbour.hypers[0], threshold=c)
        held = replace(p, start=p.inside(moved), held=("threshold",))
        warm = replace(neighbour.warm(), hypers=(moved,))
        found = fit(posterior.data, (held,), start=warm, max_evaluations=_MAX_EVALUATIONS, tolerance=_EP_TOLERANCE)
        return found.log_posterior, found.posterior

    return _along(at, posterior, p, _DROP, _STEP)


def _conditional(posterior: Posterior, p: Parametrisation) -> tuple[Array, Array]:
    """Thresholds in the parametrisation's units and their log density, all else held."""

    def at(c: float, neighbour: Posterior) -> tuple[float, Posterior]:
        moved = replace(posterior.hypers[0], threshold=c)
        found = latent.condition(
            posterior.data,
            (moved,),
            start=neighbour.sites(),
            grams=posterior.grams,
            tolerance=_EP_TOLERANCE,
            max_sweeps=_MAX_SWEEPS,
        )
        return found.log_evidence + p.log_prior(p.inside(moved))[0], found

    return _along(at, posterior, p, _DROP_HELD, _STEP_HELD)


def _along(
    at: Callable[[float, Posterior], tuple[float, Posterior]],
    posterior: Posterior,
    p: Parametrisation,
    drop: float,
    step: float,
) -> tuple[Array, Array]:
    """The density both ways from the most probable threshold, until it has dropped by `drop` nats."""
    line = replace(p, start=p.inside(posterior.hypers[0]), held=tuple(set(p.learnt) - {"threshold"}))
    middle = float(line.pack(line.start)[0])
    low, high = (float(end[0]) for end in line.bounds())
    density: dict[float, tuple[float, float]] = {}  # logarithm, and its slope in t

    def visit(t: float, neighbour: Posterior) -> Posterior:
        h = line.unpack(np.array([t]))
        value, here = at(p.outside(h).threshold, neighbour)
        slope = p.scale * here.in_threshold(0) + p.log_prior(h)[1].threshold
        density[t] = value, slope * p.rate("threshold", h)
        return here

    centre = visit(middle, posterior)
    for direction in (-1.0, 1.0):
        neighbour, t = centre, middle
        for _ in range(_MAX_STEPS):
            t = float(np.clip(t + direction * step, low, high))
            if t in density:
                break
            neighbour = visit(t, neighbour)
            if density[t][0] < max(value for value, _ in density.values()) - drop:
                break
    ts = sorted(density)
    fine, log_density = _between(np.array(ts), *np.array([density[t] for t in ts]).T)
    return np.array([line.unpack(np.array([t])).threshold for t in fine]), log_density


def _between(t: Array, value: Array, slope: Array) -> tuple[Array, Array]:
    """A finer grid, with Hermite's cubic in between; a log density lies above its chord and below its tangents."""
    if len(t) < 2:
        return t, value
    width = np.diff(t)[:, None]
    u = np.linspace(0.0, 1.0, _FINER, endpoint=False)
    chord = value[:-1, None] + np.diff(value)[:, None] * u
    rise, fall = slope[:-1, None] * width, slope[1:, None] * width
    bend = (rise - np.diff(value)[:, None]) * (1.0 - u) - (fall - np.diff(value)[:, None]) * u
    tangents = np.minimum(value[:-1, None] + rise * u, value[1:, None] - fall * (1.0 - u))
    curve = np.clip(chord + u * (1.0 - u) * bend, chord, np.maximum(chord, tangents))
    return np.append(t[:-1, None] + u * width, t[-1]), np.append(curve, value[-1])


def _quantiles(x: Array, log_density: Array, levels: tuple[float, ...]) -> list[float]:
    """Quantiles of a density given on a fine grid."""
    if len(x) < 2:
        return [float(x[0])] * len(levels)
    density = np.exp(log_density - log_density.max())
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(x))])
    if not 0.0 < mass[-1] < np.inf:  # a peak too sharp for the digits of c
        return [float(x[np.argmax(log_density)])] * len(levels)
    return [float(q) for q in np.interp(levels, mass / mass[-1], x)]
