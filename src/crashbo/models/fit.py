"""MAP of hyperparameters and thresholds together (eq. 10): BFGS with exact gradients, begun from Fisher's information.

May import numerics only.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from crashbo.models import latent
from crashbo.models.ep import Sites
from crashbo.models.information import information
from crashbo.models.latent import HybridData, Posterior, Warm
from crashbo.models.parts import Part
from crashbo.numerics import bfgs

Array = NDArray[np.float64]

_EP_TOLERANCE = 4e-2  # within the search: the evidence is stationary in the sites, so it errs by the square
_FINAL_TOLERANCE = 1e-6  # of the posterior that is returned
_MAX_SWEEPS = 40
_MAX_EVALUATIONS = 150
_ENOUGH = 0.02
_REACH = 1.0  # of one step, in any coordinate


@dataclass(frozen=True)
class Fit:
    """A posterior at the most probable hyperparameters, and how it was found."""

    posterior: Posterior
    parts: tuple[Part, ...]
    log_posterior: float
    evaluations: int  # of the evidence
    sweeps: int  # of EP, in all
    converged: bool


def fit(
    data: HybridData,
    parts: tuple[Part, ...],
    *,
    start: Warm | None = None,
    max_evaluations: int = _MAX_EVALUATIONS,
    tolerance: float = _FINAL_TOLERANCE,
    enough: float = _ENOUGH,
) -> Fit:
    """Maximise log Z_EP plus log prior over what the parts learn.

    Args:
        data: in the user's units.
        parts: one a latent function.
        start: an earlier fit to (some of) the same trials, to begin from.
        max_evaluations: of the evidence.
        tolerance: of EP in the posterior that is returned.
        enough: nats; two iterations in a row that gain less end the search.
    """
    sites = None
    if start is not None and start.measured == data.kind:
        parts = tuple(part.started_from(h) for part, h in zip(parts, start.hypers, strict=True))
        sites = start.sites
    objective = _Objective(data, parts, sites)
    low, high = (np.concatenate(ends) for ends in zip(*(part.bounds() for part in parts), strict=True))
    start_at = np.concatenate([part.pack(part.start) for part in parts])[None, :]
    bfgs.minimise(
        objective,
        start_at,
        low,
        high,
        evaluations=max_evaluations,
        enough=enough,
        reach=_REACH,
        metric=objective.metric,
    )
    best = objective.best
    assert best is not None  # a start has a posterior, however improbable
    posterior = latent.condition(data, best.hypers, start=best.sites(), grams=best.grams, tolerance=tolerance)
    converged = posterior.ep.converged and objective.evaluations < max_evaluations
    sweeps = objective.sweeps + posterior.ep.sweeps
    return Fit(posterior, parts, objective.best_value, objective.evaluations, sweeps, converged)


class _Objective:
    """The negative log posterior; it remembers the last sites and the best point."""

    def __init__(self, data: HybridData, parts: tuple[Part, ...], sites: Sites | None) -> None:
        self.data, self.parts, self.sites = data, parts, sites
        self.ends = np.cumsum([len(part.pack(part.start)) for part in parts])[:-1]
        # Densities are compared in the parts' own units, where they do not depend on the user's.
        self.units = float(sum(data.measured[j].sum() * np.log(part.scale) for j, part in enumerate(parts)))
        self.best: Posterior | None = None
        self.best_value = -np.inf
        self.evaluations = self.sweeps = 0

    def __call__(self, points: Array, _: NDArray[np.intp]) -> tuple[Array, Array]:
        (theta,) = points
        inner = [part.unpack(t) for part, t in zip(self.parts, np.split(theta, self.ends), strict=True)]
        hypers = tuple(part.outside(h) for part, h in zip(self.parts, inner, strict=True))
        post = latent.condition(self.data, hypers, start=self.sites, tolerance=_EP_TOLERANCE, max_sweeps=_MAX_SWEEPS)
        self.evaluations += 1
        self.sweeps += post.ep.sweeps
        value, slopes = post.log_evidence + self.units, []
        for j, (part, h) in enumerate(zip(self.parts, inner, strict=True)):
            log_prior, prior_slopes = part.log_prior(h)
            evidence_slopes = post.gradient(j).in_units(part.scale)
            value += log_prior
            slopes.append(part.chain(h, evidence_slopes.plus(prior_slopes)))
        if self.best is None or value > self.best_value:
            self.best, self.best_value = post, value
        if not np.isfinite(value):
            return np.array([np.inf]), np.zeros_like(points)
        self.sites = post.sites()
        return np.array([-value]), -np.concatenate(slopes)[None, :]

    def metric(self) -> Array:
        """A guess of the inverse Hessian at the best point: one block a latent function."""
        assert self.best is not None
        pieces = [
            part.metric(part.inside(h), information(self.best, j))
            for j, (part, h) in enumerate(zip(self.parts, self.best.hypers, strict=True))
        ]
        return np.asarray(block_diag(*pieces)[None])


def carry_over(earlier: Posterior, data: HybridData) -> Warm:
    """What to begin from when trials were added: earlier sites, if the earlier trials come first unchanged."""
    warm, n = earlier.warm(), len(earlier.data.X)
    new = len(data.X) - n
    same = new >= 0 and all(
        np.array_equal(old, now[..., :n])
        for old, now in (
            (earlier.data.X.T, data.X.T),
            (earlier.data.sign, data.sign),
            (earlier.data.joint, data.joint),
        )
    )
    assert warm.sites is not None
    sites = Sites(*(np.pad(site, ((0, 0), (0, new))) for site in warm.sites)) if same else None
    return replace(warm, sites=sites)
