"""The learnt threshold's posterior: an honest interval for the level at which the machine crashes.

May import numerics only.

The density of c is exp(log Z_EP) times the priors, with all other hyperparameters re-optimised along c, on
a grid in the fit's own coordinate t (see `parts`), which resolves both the wall at the highest success and
the long tail above it. Holding the others makes the interval too short (it covered 52 to 82 % of the truths
drawn from the model); re-optimised it covers 82 to 90 %, and what is still missing, since a profile is not
an integral, is made up by the nominal level. `benchmarks/coverage.py` measures it.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crashbo.models.fit import fit
from crashbo.models.latent import Posterior
from crashbo.models.parts import Part

Array = NDArray[np.float64]

_NOMINAL = 0.94  # covers 90 % in practice
_DROP = 5.0  # nats below the highest density at which the grid ends
_STEP = 0.6  # of the grid in t
_MAX_STEPS = 40
_MAX_EVALUATIONS = 6  # a grid point, from its neighbour's optimum


def has_meaning(part: Part) -> bool:
    """Whether the threshold is one in the user's units: labels alone have none."""
    return "threshold" in part.learnt or part.known_threshold is not None


def interval(posterior: Posterior, parts: tuple[Part, ...], j: int = 0) -> tuple[float, float] | None:
    """The 90 % interval of latent function j's threshold, equal-tailed, in the user's units."""
    part = parts[j]
    if not has_meaning(part):
        return None
    c_map = posterior.hypers[j].threshold
    if part.known_threshold is not None:
        return c_map, c_map
    c, log_density = _profile(posterior, parts, j)
    low, high = _quantiles(c, log_density, ((1.0 - _NOMINAL) / 2.0, (1.0 + _NOMINAL) / 2.0))
    return min(part.shift + part.scale * low, c_map), max(part.shift + part.scale * high, c_map)


def _profile(posterior: Posterior, parts: tuple[Part, ...], j: int) -> tuple[Array, Array]:
    """Thresholds in the part's units, and the log of their (unnormalised) density."""
    part = parts[j]
    line = replace(part, start=part.inside(posterior.hypers[j]), held=tuple(set(part.learnt) - {"threshold"}))
    t_map = float(line.pack(line.start)[0])
    low, high = (float(end[0]) for end in line.bounds())
    density: dict[float, float] = {}

    def at(t: float, neighbour: Posterior) -> Posterior:
        c = part.outside(line.unpack(np.array([t]))).threshold
        moved = replace(neighbour.hypers[j], threshold=c)
        held = replace(part, start=part.inside(moved), held=("threshold",))
        others = (*parts[:j], held, *parts[j + 1 :])
        warm = replace(neighbour.warm(), hypers=(*neighbour.hypers[:j], moved, *neighbour.hypers[j + 1 :]))
        found = fit(posterior.data, others, start=warm, max_evaluations=_MAX_EVALUATIONS)
        density[t] = found.log_posterior
        return found.posterior

    centre = at(t_map, posterior)
    for direction in (-1.0, 1.0):
        neighbour, t = centre, t_map
        for _ in range(_MAX_STEPS):
            t = float(np.clip(t + direction * _STEP, low, high))
            if t in density:
                break
            neighbour = at(t, neighbour)
            if density[t] < max(density.values()) - _DROP:
                break
    ts = sorted(density)
    c = np.array([line.unpack(np.array([t])).threshold for t in ts])
    return c, np.array([density[t] for t in ts])


def _quantiles(x: Array, log_density: Array, levels: tuple[float, float]) -> tuple[float, float]:
    """Quantiles of a density given on a grid, taken as log-linear in between."""
    if len(x) < 2:
        return float(x[0]), float(x[-1])
    fine = np.concatenate([np.linspace(a, b, 16, endpoint=False) for a, b in pairwise(x)])
    fine = np.append(fine, x[-1])
    density = np.exp(np.interp(fine, x, log_density) - log_density.max())
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(fine))])
    low, high = np.interp(levels, mass / mass[-1], fine)
    return float(low), float(high)
