"""MAP of hyperparameters and thresholds together (eq. 10): L-BFGS with exact gradients, warm starts.

May import numerics only.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from crashbo.models import latent
from crashbo.models.ep import Sites
from crashbo.models.latent import HybridData, Hyperparameters, Posterior, Warm
from crashbo.models.parts import Part

Array = NDArray[np.float64]

_EP_TOLERANCE = 2e-2  # within the search: the evidence is stationary in the sites, so it errs by the square
_FINAL_TOLERANCE = 1e-6  # of the posterior that is returned
_MAX_SWEEPS = 40
_MAX_EVALUATIONS = 150
_ENOUGH = 0.05


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
    objective = _Objective(data, parts, sites, enough)
    low, high = (np.concatenate(ends) for ends in zip(*(part.bounds() for part in parts), strict=True))
    minimize(
        objective,
        np.concatenate([part.pack(part.start) for part in parts]),
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([low, high], axis=1),
        options={"maxfun": max_evaluations, "ftol": 0.0, "gtol": 1e-2},
        callback=objective.enough,
    )
    best = objective.best
    posterior = latent.condition(data, best.hypers, start=best.sites, tolerance=tolerance)
    converged = posterior.ep.converged and objective.evaluations < max_evaluations
    sweeps = objective.sweeps + posterior.ep.sweeps
    return Fit(posterior, parts, best.value, objective.evaluations, sweeps, converged)


@dataclass(frozen=True)
class _Best:
    """The best point so far, in the user's units."""

    value: float
    hypers: tuple[Hyperparameters, ...]
    sites: Sites | None


class _Objective:
    """The negative log posterior; it remembers the last sites and the best point."""

    def __init__(self, data: HybridData, parts: tuple[Part, ...], sites: Sites | None, enough: float) -> None:
        self.data, self.parts, self.sites, self.least_gain = data, parts, sites, enough
        self.ends = np.cumsum([len(part.pack(part.start)) for part in parts])[:-1]
        # Densities are compared in the parts' own units, where they do not depend on the user's.
        self.units = float(sum(data.measured[j].sum() * np.log(part.scale) for j, part in enumerate(parts)))
        self.best = _Best(-np.inf, tuple(part.outside(part.start) for part in parts), sites)
        self.evaluations = self.sweeps = self.idle = 0
        self.value_before = -np.inf

    def __call__(self, theta: Array) -> tuple[float, Array]:
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
        if not np.isfinite(value):
            return 1e10, np.zeros_like(theta)
        self.sites = post.sites()
        if value > self.best.value:
            self.best = _Best(value, hypers, self.sites)
        return -value, -np.concatenate(slopes)

    def enough(self, intermediate_result: object) -> None:
        """Called after every iteration; ends the search when it no longer pays."""
        gain, self.value_before = self.best.value - self.value_before, self.best.value
        self.idle = self.idle + 1 if gain < self.least_gain else 0
        if self.idle >= 2:
            raise StopIteration


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
