"""MAP of hyperparameters and thresholds together (eq. 10): BFGS with exact gradients and Fisher's information first.

May import numerics only.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crashbo.models import ep, latent
from crashbo.models.ep import Sites
from crashbo.models.hybrid import HybridData
from crashbo.models.information import information
from crashbo.models.initial_lengthscales import with_initial_lengthscales
from crashbo.models.latent import Hyperparameters, Posterior, Warm
from crashbo.models.parametrisation import Parametrisation
from crashbo.numerics import bfgs

Array = NDArray[np.float64]

# judgement: as loose as leaves a fit within half a nat of the best of ten starts, which benchmarks/fit.py measures
FINAL_TOLERANCE = 1e-4  # of the posterior that is returned, in its standard deviations
_EP_TOLERANCE = 0.2  # within the search: the evidence is stationary in the sites, so it errs by the square
_MAX_SWEEPS = 40
_MIN_SWEEPS = 5  # where EP keeps failing, as it must under contradictory labels and a hard step, it gets ever fewer
_MAX_EVALUATIONS = 150
_ENOUGH = 0.05  # nats
_REACH = 1.0  # of one step, in any coordinate
_RENEWED = 8.0  # nats; a step that gained more has left the region where Fisher's information holds
_PASSES = 3  # over coupled latent functions
_PASS_ENOUGH = _ENOUGH  # nats per function; a pass that is likely to gain less is not begun
_COARSE = _ENOUGH  # nats: what a pass may leave to the next one


@dataclass(frozen=True)
class Fit:
    """A posterior at the most probable hyperparameters, and how it was found."""

    posterior: Posterior
    parametrisations: tuple[Parametrisation, ...]
    log_posterior: float
    evaluations: int  # of the evidence
    sweeps: int  # of EP, in all
    converged: bool


def fit(
    data: HybridData,
    parametrisations: tuple[Parametrisation, ...],
    *,
    start: Warm | None = None,
    max_evaluations: int = _MAX_EVALUATIONS,
    tolerance: float = FINAL_TOLERANCE,
    enough: float = _ENOUGH,
    passes: int = _PASSES,
    max_sweeps: int = ep.MAX_SWEEPS,
) -> Fit:
    """Maximise log Z_EP plus log prior over the free hyperparameters.

    Args:
        data: in the user's units.
        parametrisations: one per latent function.
        start: an earlier fit to (some of) the same trials, to begin from.
        max_evaluations: of the evidence.
        tolerance: of EP in the posterior that is returned.
        enough: nats; two iterations in a row that gain less end the search.
        passes: over coupled latent functions, at most.
        max_sweeps: of EP in the posterior that is returned.
    """
    sites = None
    if start is not None and start.measured == data.kind:
        parametrisations = tuple(p.started_from(h) for p, h in zip(parametrisations, start.hypers, strict=True))
        sites = start.sites
    elif not data.joint.any():
        parametrisations = tuple(with_initial_lengthscales(p, data, j) for j, p in enumerate(parametrisations))
    search = _Search(max_evaluations, tolerance, enough, passes, max_sweeps)
    if len(parametrisations) == 1:
        return search.one(data, parametrisations[0], sites)
    return search.several(data, parametrisations, sites)


@dataclass(frozen=True)
class _Search:
    max_evaluations: int
    tolerance: float
    enough: float
    passes: int
    max_sweeps: int

    def one(self, data: HybridData, p: Parametrisation, sites: Sites | None) -> Fit:
        """The fit of one latent function."""
        objective = _Objective(data, p, sites)
        bfgs.minimise(
            objective,
            p.pack(p.start)[None, :],
            *p.bounds(),
            evaluations=self.max_evaluations,
            enough=self.enough,
            reach=_REACH,
            metric=objective.metric,
            renewed=_RENEWED,
        )
        best = objective.best
        assert best is not None  # a start has a posterior, however improbable
        posterior = self._final(data, best)
        converged = posterior.ep.converged and objective.evaluations < self.max_evaluations
        sweeps = objective.sweeps + posterior.ep.sweeps
        reached = log_posterior(posterior, (p,))
        return Fit(posterior, (p,), reached, objective.evaluations, sweeps, converged)

    def several(self, data: HybridData, parametrisations: tuple[Parametrisation, ...], sites: Sites | None) -> Fit:
        """The fit of several by coordinate ascent: each alone while the others are held, until that gains nothing.

        Only crashes that were not blamed couple them. Where no single fit gains, the gradient of the whole vanishes:
        the evidence is stationary in the sites, so those of the others do not matter. All begin from the same state,
        not one from the last one's: the order of the constraints must not matter.
        """
        posterior = latent.condition(
            data, _hypers(parametrisations), start=sites, tolerance=_EP_TOLERANCE, max_sweeps=_MAX_SWEEPS
        )
        reached = log_posterior(posterior, parametrisations)
        best = Fit(posterior, parametrisations, reached, 1, posterior.ep.sweeps, False)
        coupled, before = bool(data.joint.any()), 0.0
        for i in range(self.passes if coupled else 1):
            coarse = replace(self, enough=max(self.enough, _COARSE)) if coupled and i == 0 else self
            found = coarse._pass(best)
            if found.log_posterior > best.log_posterior:
                gain, best = found.log_posterior - best.log_posterior, found
            else:
                gain, best = 0.0, replace(found, posterior=best.posterior, log_posterior=best.log_posterior)
            likely = gain * min(gain / before, 1.0) if before else gain  # of the next one
            if likely < _PASS_ENOUGH * len(parametrisations):
                break
            before = gain
        posterior = best.posterior
        final = self._final(data, posterior)
        converged = final.ep.converged and best.converged
        return replace(best, posterior=final, sweeps=best.sweeps + final.ep.sweeps, converged=converged)

    def _final(self, data: HybridData, best: Posterior) -> Posterior:
        """The posterior that is returned, nearer to EP's fixed point than those of the search."""
        return latent.condition(
            data,
            best.hypers,
            start=best.sites(),
            grams=best.grams,
            tolerance=self.tolerance,
            max_sweeps=self.max_sweeps,
        )

    def _pass(self, before: Fit) -> Fit:
        """Every latent function fitted once, and the posterior of all together at the result."""
        data, (tau, nu), z = before.posterior.data, before.posterior.sites(), before.posterior.z()
        parametrisations = tuple(map(Parametrisation.started_from, before.parametrisations, before.posterior.hypers))
        alone = [
            self.one(data.alone(j, z), p, Sites(tau[j : j + 1], nu[j : j + 1])) for j, p in enumerate(parametrisations)
        ]
        sites = Sites(*(np.concatenate(rows) for rows in zip(*(fit.posterior.sites() for fit in alone), strict=True)))
        posterior = latent.condition(
            data,
            tuple(fit.posterior.hypers[0] for fit in alone),
            start=sites,
            grams=tuple(fit.posterior.grams[0] for fit in alone),
            tolerance=_EP_TOLERANCE,
            max_sweeps=_MAX_SWEEPS,
        )
        return Fit(
            posterior,
            parametrisations,
            log_posterior(posterior, parametrisations),
            before.evaluations + sum(fit.evaluations for fit in alone),
            before.sweeps + posterior.ep.sweeps + sum(fit.sweeps for fit in alone),
            all(fit.converged for fit in alone),
        )


def _hypers(parametrisations: tuple[Parametrisation, ...]) -> tuple[Hyperparameters, ...]:
    return tuple(p.outside(p.start) for p in parametrisations)


def log_posterior(posterior: Posterior, parametrisations: tuple[Parametrisation, ...]) -> float:
    """Log evidence plus log prior; densities in units of their own, where they do not depend on the user's."""
    total = posterior.log_evidence
    for j, (p, h) in enumerate(zip(parametrisations, posterior.hypers, strict=True)):
        total += posterior.data.measured[j].sum() * np.log(p.scale) + p.log_prior(p.inside(h))[0]
    return float(total)


class _Objective:
    """The negative log posterior of one latent function; keeps the last sites and the best point."""

    def __init__(self, data: HybridData, p: Parametrisation, sites: Sites | None) -> None:
        self.data, self.p, self.sites = data, p, sites
        # Densities are compared in the parametrisation's own units, where they do not depend on the user's.
        self.units = float(data.measured.sum() * np.log(p.scale))
        self.best: Posterior | None = None
        self.best_value = -np.inf
        self.evaluations = self.sweeps = 0
        self.patience = _MAX_SWEEPS

    def __call__(self, points: Array, _: NDArray[np.intp]) -> tuple[Array, Array]:
        h = self.p.unpack(points[0])
        post = latent.condition(
            self.data,
            (self.p.outside(h),),
            start=self.sites,
            tolerance=_EP_TOLERANCE,
            max_sweeps=self.patience,
        )
        self.patience = _MAX_SWEEPS if post.ep.converged else max(self.patience // 2, _MIN_SWEEPS)
        self.evaluations += 1
        self.sweeps += post.ep.sweeps
        log_prior, prior_slopes = self.p.log_prior(h)
        value = post.log_evidence + self.units + log_prior
        if self.best is None or value > self.best_value:
            self.best, self.best_value = post, value
        if not np.isfinite(value):
            return np.array([np.inf]), np.zeros_like(points)
        self.sites = post.sites()
        slopes = post.gradient(0).in_units(self.p.scale).plus(prior_slopes)
        return np.array([-value]), -self.p.chain(h, slopes)[None, :]

    def metric(self) -> Array:
        """A guess of the inverse Hessian at the best point."""
        assert self.best is not None
        return self.p.metric(self.p.inside(self.best.hypers[0]), information(self.best, 0))[None]


def carry_over(earlier: Posterior, data: HybridData) -> Warm:
    """The warm start when trials were added: with the earlier sites, if the earlier trials come first, unchanged."""
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
