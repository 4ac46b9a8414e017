"""Expectation propagation: the Gaussian posterior of latent functions under a step likelihood.

May import numerics only.

Notation, for G latent functions and n trials:
    K         prior covariances, one (n, n) a latent function, unit variance
    p, py     precision and shift of the Gaussian observations, (G, n); zero where nothing was measured
    tau, nu   precision and shift of the step's sites, (G, n)
    _cav      the cavity: the posterior less the step's own site

All sites are updated at once from one posterior (a sweep), and the sequence of sweeps is accelerated by
Anderson's method, which turns several hundred sweeps on clustered data into about twenty. Where the
accelerated step is not admissible, a damped one is taken.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models.steps import Steps, Tilted
from crashbo.numerics import linalg
from crashbo.numerics.linalg import SitePosterior

Array = NDArray[np.float64]

TOLERANCE = 1e-10  # of the tilted moments against the posterior's, in posterior standard deviations
_ROUNDING = 1e-6  # a residual that no longer falls is rounding, if it is below this
_PATIENCE = 12  # sweeps without progress before rounding is accepted
_MEMORY = 6  # past sweeps that Anderson's step combines
_MAX_SWEEPS = 200
_LEAST_DAMPING = 0.05
_MOST_PRECISION = 1e10  # of a site, relative to the prior and the observation
_LEAST_VARIANCE = 1e-300
_REACH = 1e3  # of a mean, relative to the measurements and thresholds there are
_LEAST_SHARE = 1e-10  # of the variance: below it, rounding decides where the cavity lies
_RIDGE = 1e-10  # relative, of Anderson's least squares


class Sites(NamedTuple):
    """Natural parameters of the step's Gaussian sites, (G, n)."""

    tau: Array
    nu: Array


@dataclass(frozen=True)
class EPResult:
    """The fixed point, or the best sweep if none was reached."""

    sites: Sites
    posteriors: tuple[SitePosterior, ...]
    cavities: tuple[Array, Array]
    tilted: Tilted
    residual: float
    converged: bool
    sweeps: int


@dataclass(frozen=True)
class _Sweep:
    sites: Sites
    posteriors: tuple[SitePosterior, ...]
    cavities: tuple[Array, Array]
    tilted: Tilted
    proposal: Sites
    std: Array
    residual: float

    @cached_property
    def flat(self) -> tuple[Array, Array]:
        """Sites and proposal as one vector each."""
        return np.concatenate(self.sites, axis=None), np.concatenate(self.proposal, axis=None)


def propagate(
    K: tuple[Array, ...],
    p: Array,
    py: Array,
    steps: Steps,
    *,
    start: Sites | None = None,
    tolerance: float = TOLERANCE,
    max_sweeps: int = _MAX_SWEEPS,
) -> EPResult:
    """Run EP to its fixed point. Never raises on numerical trouble: `converged` tells."""
    sites = start if start is not None else Sites(np.zeros_like(p), np.zeros_like(p))
    # Labels that contradict each other at one x drive the sites of a hard step apart without end.
    y = np.divide(py, p, out=np.zeros_like(p), where=p > 0.0)
    reach = _REACH * (1.0 + float(np.max(np.abs(y))) + float(np.max(np.abs(steps.thresholds))))
    best: _Sweep | None = None
    history: list[_Sweep] = []
    damping, since_best, sweeps = 1.0, 0, 0
    while sweeps < max_sweeps:
        sweeps += 1
        sweep = _sweep(K, p, py, steps, sites, reach)
        if sweep is None:  # the sites are too strong for the prior, or run away: go half-way back
            if not history and not np.any(sites):
                reach = np.inf  # without any site there is nothing to go back to: the measurements are that far
            sites = _mix(history[-1].sites, sites, 0.5) if history else Sites(0.0 * p, 0.0 * p)
            history.clear()
            continue
        if best is None or sweep.residual < best.residual:
            best, since_best = sweep, 0
        else:
            since_best += 1
        if best.residual < tolerance or (since_best >= _PATIENCE and best.residual < _ROUNDING):
            break
        if history and sweep.residual > 2.0 * history[-1].residual:
            damping = max(0.6 * damping, _LEAST_DAMPING)
            history.clear()
        history = [*history[-_MEMORY + 1 :], sweep]
        sites = _accelerate(history) or _mix(sweep.sites, sweep.proposal, damping)
    assert best is not None
    converged = best.residual < tolerance or (since_best >= _PATIENCE and best.residual < _ROUNDING)
    return EPResult(best.sites, best.posteriors, best.cavities, best.tilted, best.residual, converged, sweeps)


def _sweep(K: tuple[Array, ...], p: Array, py: Array, steps: Steps, sites: Sites, reach: float) -> _Sweep | None:
    try:
        posteriors = tuple(map(linalg.condition, K, p + sites.tau, py + sites.nu))
    except linalg.NotPositiveDefinite:
        return None
    mu = np.array([post.mean for post in posteriors])
    v = np.array([post.var for post in posteriors])
    if not np.all(np.abs(mu) < reach):
        return None
    share = 1.0 - sites.tau * v  # of the variance that the cavity keeps
    usable = share > _LEAST_SHARE
    share = np.where(usable, share, 1.0)
    v_cav, mu_cav = v / share, (mu - sites.nu * v) / share
    usable &= np.abs(mu_cav) < reach
    all_usable = bool(usable.all())
    if not all_usable:
        mu_cav, v_cav = np.where(usable, mu_cav, mu), np.where(usable, v_cav, v)
    tilted = steps.tilted(mu_cav, v_cav)
    mu_hat, v_hat = mu_cav + v_cav * tilted.slope, v_cav * tilted.ratio
    # Labels that contradict each other at one x drive the sites of a hard step to infinity: stop them there.
    tau = np.minimum((1.0 - tilted.ratio) / np.maximum(v_hat, _LEAST_VARIANCE), _MOST_PRECISION * (1.0 + p))
    nu = tau * mu_hat + tilted.slope
    proposal = Sites(tau, nu)
    if not all_usable:
        proposal = Sites(np.where(usable, tau, sites.tau), np.where(usable, nu, sites.nu))
    std = np.sqrt(v)
    gap = np.maximum(np.abs(mu_hat - mu) / std, np.abs(v_hat / v - 1.0))
    residual = float(gap.max() if all_usable else np.where(usable, gap, 1.0).max())
    return _Sweep(sites, posteriors, (mu_cav, v_cav), tilted, proposal, std, residual)


def _mix(old: Sites, new: Sites, damping: float) -> Sites:
    return Sites(old.tau + damping * (new.tau - old.tau), old.nu + damping * (new.nu - old.nu))


def _accelerate(history: list[_Sweep]) -> Sites | None:
    """Anderson's step: the combination of past proposals whose linearised residual is least."""
    if len(history) < 2:
        return None
    last = history[-1]
    scale = np.concatenate([last.std.ravel() ** 2, last.std.ravel()])
    proposals = np.array([sweep.flat[1] for sweep in history]) * scale
    gaps = proposals - np.array([sweep.flat[0] for sweep in history]) * scale
    steps = gaps[1:] - gaps[:-1]
    normal = steps @ steps.T
    np.einsum("ii->i", normal)[:] *= 1.0 + _RIDGE
    try:
        weights = np.linalg.solve(normal, steps @ gaps[-1])
    except np.linalg.LinAlgError:
        return None
    flat = (proposals[-1] - weights @ (proposals[1:] - proposals[:-1])) / scale
    tau, nu = flat.reshape((2, *last.std.shape))
    # A step that would make a site negative where EP asks for a positive one is not to be trusted.
    return Sites(tau, nu) if np.all((tau >= 0.0) | (last.proposal.tau < 0.0)) else None
