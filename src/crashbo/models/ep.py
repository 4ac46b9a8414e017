"""Expectation propagation: the Gaussian posterior of latent functions under a step likelihood, or one like it.

May import numerics only.

Notation, for G latent functions and n trials:
    K         prior covariances, one (n, n) per latent function, unit variance
    p, y      precision and value of the Gaussian observations, (G, n); both zero where nothing was measured
    tau, nu   precision and shift of the step likelihood's sites, (G, n)
    _cav      the cavity: the posterior without the step's own site

All sites are updated at once from one posterior (a sweep), and the sequence of sweeps is accelerated by
Anderson's method, which turns several hundred sweeps on clustered data into about twenty. Where the
accelerated step is not admissible, a damped one is taken.
"""

from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from crashbo.models.likelihood import Tilted
from crashbo.numerics import linalg
from crashbo.numerics.linalg import SitePosterior

Array = NDArray[np.float64]

# judgement: what brings EP to its fixed point on clustered and contradictory data; none was finely tuned
TOLERANCE = 1e-10  # of the tilted moments against the posterior's, in posterior standard deviations
MAX_SWEEPS = 200
_ROUNDING = 1e-6  # a residual that no longer falls is rounding, if it is below this
_PATIENCE = 12  # sweeps without progress before rounding is accepted
_MEMORY = 6  # past sweeps that Anderson's step combines
_WORSE = 2.0  # growth of the residual at which the memory is cleared and the damping strengthened
_DAMPED, _LEAST_DAMPING = 0.6, 0.05  # by how much at a time, and how far
_MOST_PRECISION = 1e10  # of a site, relative to the prior and the observation
_REACH = 1e3  # of a mean, relative to the measurements and thresholds there are
_LEAST_SHARE = 1e-10  # of the variance: below it, rounding decides where the cavity lies
_RIDGE = 1e-10  # relative, of Anderson's least squares
_LEAST_VARIANCE = 1e-300  # derived: so that nothing is divided by zero; doubles end at 2e-308


class Likelihood(Protocol):
    """A likelihood of one site per trial and latent function, such as StepLikelihood."""

    @property
    def thresholds(self) -> Array:
        """Levels that the values are compared with."""

    def tilted(self, mu: Array, v: Array, /) -> Tilted:
        """Moments of N(mu, v) times the likelihood."""


class Sites(NamedTuple):
    """Natural parameters of the step's Gaussian sites, (G, n)."""

    tau: Array
    nu: Array


@dataclass(frozen=True)
class EPResult:
    """The fixed point, or the best sweep if none was reached."""

    sites: Sites
    onward: Sites  # where the next sweep would begin: a better start of another run than `sites`
    posteriors: tuple[SitePosterior, ...]
    cavities: tuple[Array, Array]
    tilted: Tilted
    residual: float
    converged: bool
    sweeps: int


class _Sweep(NamedTuple):
    sites: Array  # (2, G, n): tau and nu
    posteriors: tuple[SitePosterior, ...]
    cavities: tuple[Array, Array]
    tilted: Tilted
    proposal: Array  # (2, G, n)
    std: Array
    residual: float


def propagate(
    K: tuple[Array, ...],
    p: Array,
    y: Array,
    likelihood: Likelihood,
    *,
    start: Sites | None = None,
    first: NDArray[np.intp] | None = None,
    tolerance: float = TOLERANCE,
    max_sweeps: int = MAX_SWEEPS,
) -> EPResult:
    """Run EP to its fixed point. Never raises on numerical trouble: `converged` tells.

    `first` is that of linalg.condition, for trials at the same x.
    """
    sites = np.array(start) if start is not None else np.zeros((2, *p.shape))
    # Contradictory labels at one x drive the sites of a hard step apart without end.
    reach = _REACH * (1.0 + float(np.abs(y).max()) + float(np.abs(likelihood.thresholds).max()))
    observed = np.array([p, p * y])
    best: _Sweep | None = None
    history: list[_Sweep] = []
    damping, since_best, sweeps = 1.0, 0, 0
    while sweeps < max_sweeps:
        sweeps += 1
        sweep = _sweep(K, first, observed, likelihood, sites, reach)
        if sweep is None:  # the sites are too strong for the prior, or diverge: go half-way back
            if not history and not np.any(sites):
                reach = np.inf  # there are no sites to go back from: the measurements lie that far out
            sites = 0.5 * (history[-1].sites + sites) if history else np.zeros_like(sites)
            history.clear()
            continue
        if best is None or sweep.residual < best.residual:
            best, since_best = sweep, 0
        else:
            since_best += 1
        if best.residual < tolerance or (since_best >= _PATIENCE and best.residual < _ROUNDING):
            break
        if history and sweep.residual > _WORSE * history[-1].residual:
            damping = max(_DAMPED * damping, _LEAST_DAMPING)
            history.clear()
        history = [*history[-_MEMORY + 1 :], sweep]
        faster = _accelerate(history)
        sites = faster if faster is not None else sweep.sites + damping * (sweep.proposal - sweep.sites)
    assert best is not None
    converged = best.residual < tolerance or (since_best >= _PATIENCE and best.residual < _ROUNDING)
    return EPResult(
        Sites(*best.sites),
        Sites(*(best.proposal if converged else best.sites)),
        best.posteriors,
        best.cavities,
        best.tilted,
        best.residual,
        converged,
        sweeps,
    )


def at_rest(posteriors: tuple[SitePosterior, ...], likelihood: Likelihood) -> EPResult:
    """The fixed point under a likelihood that says nothing, given the posteriors under the observations alone."""
    mu, v = (np.array([getattr(post, name) for post in posteriors]) for name in ("mean", "var"))
    nothing = Sites(np.zeros_like(mu), np.zeros_like(mu))
    return EPResult(nothing, nothing, posteriors, (mu, v), likelihood.tilted(mu, v), 0.0, True, 0)


def _sweep(
    K: tuple[Array, ...],
    first: NDArray[np.intp] | None,
    observed: Array,
    likelihood: Likelihood,
    sites: Array,
    reach: float,
) -> _Sweep | None:
    """One sweep over all sites; None where their posterior does not exist or lies out of reach."""
    try:
        posteriors = tuple(map(linalg.condition, K, *(observed + sites), repeat(first)))
    except linalg.NotPositiveDefinite:
        return None
    mu = np.array([post.mean for post in posteriors])
    v = np.array([post.var for post in posteriors])
    if not np.abs(mu).max() < reach:
        return None
    tau, nu = sites
    share = 1.0 - tau * v  # of the variance that the cavity keeps
    usable = share > _LEAST_SHARE
    if not share.min() > _LEAST_SHARE:
        share = np.where(usable, share, 1.0)
    v_cav, mu_cav = v / share, (mu - nu * v) / share
    usable &= np.abs(mu_cav) < reach
    all_usable = bool(usable.all())
    if not all_usable:
        mu_cav, v_cav = np.where(usable, mu_cav, mu), np.where(usable, v_cav, v)
    tilted = likelihood.tilted(mu_cav, v_cav)
    mu_hat, v_hat = mu_cav + v_cav * tilted.slope, v_cav * tilted.ratio
    proposal = np.empty_like(sites)
    # Contradictory labels at one x drive the sites of a hard step to infinity: cap them.
    most = _MOST_PRECISION * (1.0 + observed[0])
    np.minimum((1.0 - tilted.ratio) / np.maximum(v_hat, _LEAST_VARIANCE), most, out=proposal[0])
    proposal[1] = proposal[0] * mu_hat + tilted.slope
    std = np.sqrt(v)
    gap = np.maximum(np.abs(mu_hat - mu) / std, np.abs(v_hat / v - 1.0))
    if not all_usable:
        proposal, gap = np.where(usable, proposal, sites), np.where(usable, gap, 1.0)
    return _Sweep(sites, posteriors, (mu_cav, v_cav), tilted, proposal, std, float(gap.max()))


def _accelerate(history: list[_Sweep]) -> Array | None:
    """Anderson's step: the combination of past proposals whose linearised residual is least."""
    if len(history) < 2:
        return None
    std, proposal = history[-1].std, history[-1].proposal
    scale = np.array([std * std, std])
    proposals = np.array([sweep.proposal for sweep in history])
    gaps = ((proposals - np.array([sweep.sites for sweep in history])) * scale).reshape(len(history), -1)
    steps = gaps[1:] - gaps[:-1]
    normal = steps @ steps.T
    np.einsum("ii->i", normal)[:] *= 1.0 + _RIDGE
    _, weights, info = dposv(normal, steps @ gaps[-1])
    if info != 0:
        return None
    sites = proposal - np.tensordot(weights, proposals[1:] - proposals[:-1], 1)
    # A step that would make a site negative where EP asks for a positive one is refused.
    return sites if ((sites[0] >= 0.0) | (proposal[0] < 0.0)).all() else None
