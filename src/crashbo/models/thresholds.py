"""The learnt threshold's posterior: an interval for the level at which the machine crashes.

May import numerics only.

The density of c is exp(log Z_EP) times the priors, with all other hyperparameters re-optimised along c, on
a grid in the fit's own coordinate t (see `parametrisation`), which resolves both the wall at the highest success and
the long tail above it. Holding the others makes the interval much too short. A profile is not an integral,
so it is still a little short; a higher nominal level makes up for that.

A study is in doubt of its model: other causes than this function may have made the crashes, and the threshold may have
drifted. Of a drift the most probable threshold and the evidence are computed, and the density is moved by as much.

With several latent functions, each is treated alone while the posterior of the others is held: only crashes
that were not blamed couple them, and the cost stays that of one at a time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crashbo.models import course, latent
from crashbo.models.fit import fit
from crashbo.models.information import information
from crashbo.models.latent import Posterior
from crashbo.models.parametrisation import Parametrisation
from crashbo.models.warps import Warp

Array = NDArray[np.float64]

_NOMINAL = 0.94  # fitted: benchmarks/coverage.py, data drawn from the model; covers 90 % in practice
# The probability that a threshold drifts. fitted: benchmarks/thresholds.py, seeds 1000 to 1029 after 40 trials: with
# 0.2, 21 of 30 drifting ones were covered, with 0.4 24, and intervals of steady ones were wider by a twentieth.
_P_DRIFT = 0.4
_DRIFTS = (0.1, 0.2, 0.4, 0.8, 1.6)  # judgement: over all trials, in standard deviations of the measurements
# Of twice the drift half the probability. fitted: benchmarks/thresholds.py, drifting, seeds 500 to 513: as many covered
# as with equal ones; but these allow for large drifts where nothing has crashed for long, as in guarded studies.
_LESS_LIKELY = 1.0
_DRIFT_EVALUATIONS = 20  # judgement: of the evidence, for each
_NEGLIGIBLE = 0.01  # judgement: weight of a density that is left out
_TAIL = 0.05  # derived: of a 90 % interval
_HIGHEST = 0.999  # judgement: quantile, near the end of the grid
_ONE_STD = (0.16, 0.5, 0.84)  # derived: Phi(-1), Phi(0) and Phi(1)

# judgement: fine enough for quantiles, as coarse as is quick; a coarser grid missed cliffs
_DROP = 5.0  # nats below the highest density at which the grid ends
_STEP = 0.75  # of the grid in t
_FINER = 16  # points of the integral per point of the grid
_MAX_STEPS = 40
_DROP_HELD, _STEP_HELD = 3.0, 1.0  # for a search, which needs only median and spread, at every trial
# judgement: past so many trials the density may be much narrower than a step. It is shortened then, until the density
_SHARP = 300
_TOO_FAR = 3.0  # falls by less than so many times the drop at one step; where it hardly falls, it is doubled
_SHORTEST = 1e-3  # of the usual step
_EP_TOLERANCE = 1e-2
_MAX_SWEEPS = 20
_MAX_EVALUATIONS = 6  # per grid point, from its neighbour's optimum

_LEAST_SCATTER = 1e-6  # judgement: of the spread of the measurements; a machine without any scatter
_FAR_OUT = 10.0  # derived: standard deviations beyond which a normal distribution has nothing
_ABOUT_TO = 0.2  # judgement: of p, the probability of having tripped at which a trial is about to
_LEVELS = 100  # judgement: readings at which it is asked whether a trial is doomed
_BISECTIONS = 30  # derived: to a millionth of the spread of the measurements


def has_meaning(p: Parametrisation) -> bool:
    """Whether the threshold means anything: it is known, or learnt from a measured success."""
    return p.known_threshold is not None or ("threshold" in p.learnt and p.success_measured)


@dataclass(frozen=True)
class Profile:
    """The density of one learnt threshold on a fine grid, all other hyperparameters re-optimised."""

    posterior: Posterior  # of this function alone, at the most probable threshold
    parametrisation: Parametrisation
    c: Array  # thresholds, in the parametrisation's units
    log_density: Array
    warp: Warp | None = None  # of the readings, where they are warped

    @property
    def log_width(self) -> float:
        """log of the density's integral over its value at the most probable threshold: how far evidence falls short.

        A fit's log posterior has the density of a threshold at its best, which knows no price of having been chosen.
        """
        p = self.parametrisation
        best = float(np.interp(p.inside(self.posterior.hypers[0]).threshold, self.c, self.log_density))
        if len(self.c) < 2:
            return 0.0
        area = float(np.trapezoid(np.exp(self.log_density - self.log_density.max()), self.c))
        return float(self.log_density.max() - best) + (math.log(area) if area > 0.0 else 0.0)

    def outside(self, c: Array) -> Array:
        """Thresholds in the user's units."""
        z = self.parametrisation.shift + self.parametrisation.scale * c
        return z if self.warp is None else self.warp.inverse(z)

    @cached_property
    def best(self) -> float:
        """The most probable threshold, in the user's units."""
        c = np.array([self.posterior.hypers[0].threshold])
        return float((c if self.warp is None else self.warp.inverse(c))[0])

    @cached_property
    def steady(self) -> tuple[Array, Array]:
        """Thresholds in the user's units and their distribution function."""
        return self.outside(self.c), _mass(self.c, self.log_density)

    @property
    def masses(self) -> tuple[Array, Array]:
        """Thresholds in the user's units and the probability of each."""
        c, mass = self.steady
        return c, np.diff(mass, prepend=0.0)

    @cached_property
    def drifted(self) -> tuple[Array, Array]:
        """The same of the last trial's threshold, if it may have drifted; the trials are in order then."""
        data = self.posterior.data
        if not np.any(data.sign < 0.0) and not data.joint.any():
            return self.steady
        at, mass = _moved(self.c, self.log_density, *_drifts(self.posterior, self.parametrisation))
        return self.outside(at), mass


def interval_of(densities: Sequence[tuple[Profile, float]], doubt: float | None = None) -> tuple[float, float]:
    """The 90 % interval of a threshold, equal-tailed, in the user's units; of several densities, with their weights.

    Where the model is not taken for granted, `doubt` is the probability that no crash was of this function's making.
    Then the trials say nothing of how high its threshold is: with more doubt than a tail has, the interval is open
    above. And the threshold may have drifted: the interval is of the last trial's.
    """
    tail = 0.5 * (1.0 - _NOMINAL)
    levels = tail, min((1.0 - tail) / max(1.0 - (doubt or 0.0), 0.5), _HIGHEST)
    kept = [(profile, weight) for profile, weight in densities if weight > _NEGLIGIBLE]
    ends = [_mixture_quantiles([(profile.steady, w) for profile, w in kept], levels)]
    if doubt is not None:
        ends.append(_mixture_quantiles([(profile.drifted, w) for profile, w in kept], levels))
    best = max(kept, key=lambda pair: pair[1])[0].best
    highest = np.inf if doubt is not None and doubt > _TAIL else max(best, *(high for _, high in ends))
    return min(best, *(low for low, _ in ends)), highest


def profile(
    posterior: Posterior, parametrisations: tuple[Parametrisation, ...], j: int = 0, warp: Warp | None = None
) -> Profile | None:
    """The density of latent function j's threshold; None where it is not learnt, or nothing is known of it."""
    p = parametrisations[j]
    if not has_meaning(p) or p.known_threshold is not None:
        return None
    alone = posterior.alone(j)
    return Profile(alone, p, *_profile(alone, p), warp)


def interval(
    posterior: Posterior, parametrisations: tuple[Parametrisation, ...], j: int = 0
) -> tuple[float, float] | None:
    """The 90 % interval of latent function j's threshold, the model taken for granted."""
    if not has_meaning(parametrisations[j]):
        return None
    found = profile(posterior, parametrisations, j)
    c = posterior.hypers[j].threshold
    return (c, c) if found is None else interval_of([(found, 1.0)])


def trip_level(posterior: Posterior, c: Array, mass: Array, p: float, x: Array | None = None) -> float:
    """The reading at which to stop a trial that would else crash with probability p or more, in the user's units.

    Never later than at the reading before which any trial trips with that probability, and, for a trial at x that is
    likely to crash, never before it is about to: a stop that comes too early teaches nothing.

    Args:
        posterior: of one latent function.
        c: its threshold's possible values.
        mass: their probabilities; they may sum to less than one, where it trips for other reasons.
        p: less than that sum.
        x: of the trial, (D,); None for any.
    """
    data, h = posterior.data, posterior.hypers[0]
    extent = data.extents[0]
    sigma = max(math.hypot(float(np.mean(h.noise_std)), h.crash_noise_std), _LEAST_SCATTER * extent.spread)
    # A level that is known is not sought below itself: where readings jump over it, no limit would help.
    last = np.zeros(0) if data.last is None or len(c) == 1 else data.last[0]
    rows = ~np.isnan(last)
    ahead = None if data.ahead is None or not len(last) else data.ahead[0][rows]
    trips = course.Trips.of(c, mass, sigma, last[rows], extent, ahead)
    if trips.mass.sum() <= p:  # it jumps, as likely as not
        return np.inf
    ends = float(c.min()) - _FAR_OUT * extent.spread, float(c.max()) + _FAR_OUT * sigma
    latest = _crossed(trips, p, *ends)
    if x is None:
        return latest
    mean, var = posterior.predict(0, x[None])
    levels = np.linspace(_crossed(trips, _ABOUT_TO * p, *ends), ends[1], _LEVELS)
    doomed = trips.doomed(levels, float(mean[0]), math.hypot(math.sqrt(float(var[0])), sigma)) >= p
    return min(latest, float(levels[np.argmax(doomed)])) if doomed.any() else latest


def _crossed(trips: course.Trips, p: float, low: float, high: float) -> float:
    """The reading before which a machine trips with probability p."""
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if trips.before(np.array([middle]))[0] > p else (middle, high)
    return low


def _drifts(posterior: Posterior, p: Parametrisation) -> tuple[Array, Array]:
    """How much higher a threshold that drifted lies at the last trial, for several drifts, and their probabilities."""
    data = posterior.data
    rows = np.arange(len(data.X)) if data.origin is None else data.origin
    elapsed = (rows - rows.max()) / (rows.max() + 1.0)
    moves, logs = [np.zeros(1)], [np.log([1.0 - _P_DRIFT])]
    base = fit(data, (p,), start=posterior.warm(), max_evaluations=_MAX_EVALUATIONS, tolerance=_EP_TOLERANCE)
    at = np.arange(1, _FINER * len(_DRIFTS) + 1) / _FINER  # between the drifts, too
    sizes = np.interp(at, np.arange(len(_DRIFTS) + 1), (0.0, *_DRIFTS))
    log_prior = -_LESS_LIKELY * np.log(sizes)
    log_prior += math.log(0.5 * _P_DRIFT) - logsumexp(log_prior)
    for way in (-1.0, 1.0):
        near, higher, gain = base.posterior, [0.0], [0.0]
        for share in _DRIFTS:
            offset = way * share * elapsed  # in units of p
            moved = replace(data, offset=p.scale * offset)
            u = (data.reached[0] - p.shift) / p.scale - offset
            reached = u[~np.isnan(u)]
            q = replace(p, reference=float(reached.max()) if len(reached) else p.reference)
            found = fit(moved, (q,), start=near.warm(), max_evaluations=_DRIFT_EVALUATIONS, tolerance=_EP_TOLERANCE)
            near = found.posterior
            higher.append((near.hypers[0].threshold - base.posterior.hypers[0].threshold) / p.scale)
            gain.append(found.log_posterior - base.log_posterior)
        moves.append(np.interp(at, np.arange(len(higher)), higher))
        logs.append(np.interp(at, np.arange(len(gain)), gain) + log_prior)
    weights = np.exp(np.concatenate(logs) - np.concatenate(logs).max())
    return np.concatenate(moves), weights / weights.sum()


def _moved(x: Array, log_density: Array, moves: Array, weights: Array) -> tuple[Array, Array]:
    """The distribution function of a mixture of one density, moved."""
    mass = _mass(x, log_density)
    if len(x) < 2:
        return x, mass
    at = np.sort((x[:, None] + moves).ravel())
    mixed = sum(w * np.interp(at - by, x, mass, left=0.0, right=1.0) for by, w in zip(moves, weights, strict=True))
    return at, np.asarray(mixed)


def _mixture_quantiles(
    parts: Sequence[tuple[tuple[Array, Array], float]], levels: tuple[float, float]
) -> tuple[float, float]:
    """Quantiles of a mixture of distribution functions, each given on a grid of its own."""
    at = np.sort(np.concatenate([x for (x, _), _ in parts]))
    total = sum(w for _, w in parts)
    mixed = sum(w / total * np.interp(at, x, mass, left=0.0, right=1.0) for (x, mass), w in parts)
    low, high = np.interp(levels, np.asarray(mixed), at)
    return float(low), float(high)


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
    sharp = len(posterior.data.X) > _SHARP
    stride = min(step, _stride(posterior, line, drop)) if sharp else step
    for direction in (-1.0, 1.0):
        neighbour, before = centre, middle
        for _ in range(_MAX_STEPS):
            t = float(np.clip(before + direction * stride, low, high))
            if t in density:
                break
            here = visit(t, neighbour)
            fall = max(value for value, _ in density.values()) - density[t][0]
            if sharp and fall > _TOO_FAR * drop and stride > _SHORTEST * step:
                del density[t]
                stride *= max(math.sqrt(drop / _TOO_FAR / fall), _SHORTEST)  # a parabola would fall by that
                continue
            neighbour, before = here, t
            if fall > drop:
                break
            if sharp and fall < drop / _TOO_FAR**2:
                stride = min(2.0 * stride, step)
    ts = sorted(density)
    fine, log_density = _between(np.array(ts), *np.array([density[t] for t in ts]).T)
    return np.array([line.unpack(np.array([t])).threshold for t in fine]), log_density


def _stride(posterior: Posterior, line: Parametrisation, drop: float) -> float:
    """A step in t over which the density falls by half of `drop`, by Fisher's information."""
    var = float(line.metric(line.start, information(posterior, 0))[0, 0])
    return math.sqrt(drop * var)


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
    return [float(q) for q in np.interp(levels, _mass(x, log_density), x)]


def _mass(x: Array, log_density: Array) -> Array:
    """The distribution function of a density given on a fine grid; a step where a peak is too sharp for the digits."""
    density = np.exp(log_density - log_density.max())
    mass: Array = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(x))])
    if not 0.0 < mass[-1] < np.inf:
        return np.asarray(np.arange(len(x)) >= np.argmax(log_density), dtype=float)
    mass /= mass[-1]
    return mass
