"""The two models of a study, fitted: a GP of the cost, and the crash model; and what is remembered of them.

May import models and below. `fitting` makes them.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.models import latent, thresholds
from crashbo.models.bystander import without_labels
from crashbo.models.crash import CrashModel, hybrid_data, parametrise_all
from crashbo.models.ensemble import Ensemble, EnsembleHyperparameters
from crashbo.models.fit import Fit
from crashbo.models.hidden_cost import ComparedPosterior
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Posterior, Warm
from crashbo.models.parametrisation import Parametrisation
from crashbo.search import selection
from crashbo.search.acquisition import LogGamma
from crashbo.search.aims import Aim, Best
from crashbo.search.calibration import Calibration
from crashbo.search.costs import Costs
from crashbo.search.front import Front
from crashbo.search.goals import GoalCosts, stacked_data
from crashbo.search.observations import Observations
from crashbo.search.preferences import Compared, Winner
from crashbo.search.safety import Safety

Array = NDArray[np.float64]
AnyCosts = Costs | GoalCosts | Compared

_LEAST_CRASH = 1e-12  # judgement: of P(crash): a sum of floats knows no less
HELD_TOLERANCE = 1e-3  # judgement: of EP at hyperparameters that are held


@dataclass(frozen=True)
class Prepared:
    """Trials, and what the models make of them."""

    seen: Observations
    data: HybridData
    costs: AnyCosts | None  # None before a success; of several goals, before each was measured
    prior: Hyperprior  # of the crash model

    @staticmethod
    def of(seen: Observations, prior: Hyperprior) -> "Prepared":
        """Of these trials."""
        data = hybrid_data(
            seen.X, seen.Y, seen.crashed, seen.blame, seen.censored, seen.stopped, *seen.watched, whole=True
        )
        return Prepared(seen, data, _costs(seen), prior)

    @cached_property
    def parametrisations(self) -> tuple[Parametrisation, ...]:
        """Of the crash model's latent functions, in a fit."""
        seen = self.seen
        return parametrise_all(self.data, self.prior, noise_std=seen.noise_std, thresholds=seen.thresholds)


def _costs(seen: Observations) -> AnyCosts | None:
    """What is known of the cost, or of every goal."""
    X = seen.X[seen.costed]
    if seen.comparisons:
        return Compared.of(seen.X, seen.cost, seen.comparisons)
    if seen.goals is None:
        return Costs.of(X, seen.cost[seen.costed]) if len(X) else None
    goals = seen.goals[seen.costed]
    return GoalCosts.of(X, goals) if (~np.isnan(goals)).any(axis=0).all() else None


@dataclass(frozen=True)
class BystanderMemory:
    """What is kept of the hypothesis that what is measured is not the cause of the crashes.

    Where thresholds were given there is another: it crashes before they are reached, from lower ones that are learnt.
    """

    measured: Warm
    labels: Warm
    lead: float  # nats over the crash model, of the likelier, when they were last fitted
    fitted_at: int  # number of trials then
    ensemble: EnsembleHyperparameters | None = None  # of the labels' function or of `lower`, whichever holds
    since: int = 0  # the first trial that was proposed under it
    lower: Warm | None = None  # of the crash model with lower thresholds, where that holds

    def without_sites(self) -> "BystanderMemory":
        """The same without EP's sites."""
        lower = None if self.lower is None else replace(self.lower, sites=None)
        return replace(self, labels=replace(self.labels, sites=None), lower=lower)


@dataclass(frozen=True)
class Memory:
    """The warm start of the next fit. It is part of a study's saved state."""

    numbers: tuple[int, ...]
    cost: Warm | None
    crash: Warm | None
    fitted_at: int = 0  # number of trials when hyperparameters were last fitted
    ensemble: EnsembleHyperparameters | None = None  # of the crash model, from that fit
    told: str = ""  # digest of the data of these trials, and of those that were left out
    bystander: BystanderMemory | None = None
    left_out: tuple[int, ...] = ()  # trials that were known then, but that the models do not know


@dataclass(frozen=True)
class Surrogates:
    """Both models, fitted."""

    cost: Posterior | None  # of every goal, where there are several; None before the first success
    ensemble: Ensemble  # of crash posteriors: the first at the most probable hyperparameters and the median thresholds
    told: Prepared  # the trials that both models know: all, or those that matter most (see `selection`)
    fitted: Fit | None  # of the crash model; None where hyperparameters are held
    memory: Memory
    bystanders: Ensemble | None = None  # of what is measured, where that is not the cause: `ensemble` is of labels then
    noise_is_open: bool = False  # whether much noise and little explain the costs about equally well
    context: tuple[tuple[int, float], ...] = ()  # coordinates that are met and not chosen, and where they are now

    @property
    def known(self) -> Observations:
        """The trials that both models know."""
        return self.told.seen

    @property
    def successes(self) -> int:
        """Rows of the cost's data that were measured: pending ones come after them."""
        return 0 if self.told.costs is None else len(self.told.costs.X)

    @property
    def parametrisations(self) -> tuple[Parametrisation, ...]:
        """Of the crash model's latent functions."""
        return self.told.parametrisations

    @property
    def crash(self) -> Posterior:
        """The crash posterior of what is measured: of thresholds and blame."""
        return (self.ensemble if self.bystanders is None else self.bystanders).members[0]

    @cached_property
    def measured(self) -> Posterior:
        """The posterior of what is measured: where it is not the cause, crashes say nothing of it."""
        kept = self.memory.bystander
        if self.bystanders is None or kept is None:
            return self.crash
        return latent.condition(without_labels(self.crash.data), kept.measured.hypers)

    @cached_property
    def boundary(self) -> Observations:
        """The trials that say the most of thresholds and causes: all, or those about the boundary."""
        if len(self.known.numbers) <= selection.BOUNDARY:
            return self.known
        scales = np.min([h.lengthscales for h in self.crash.hypers], axis=0)
        log_odds = _log_odds(self.ensemble.members[0].log_p_safe_by_the_others()[: len(self.known.numbers)])
        return self.known.only(selection.about_the_boundary(self.known, selection.BOUNDARY, scales, log_odds))

    @cached_property
    def crash_model(self) -> CrashModel:
        """The crash model at the most probable hyperparameters; where they are held, computed on demand.

        Of many trials it is that of those about the boundary.
        """
        if self.fitted is not None and self.boundary is self.known:
            return CrashModel(self.fitted.posterior, self.fitted)
        warm, data, parts = self.memory.crash, self.crash.data, self.parametrisations
        assert warm is not None
        if self.boundary is not self.known:
            told = Prepared.of(self.boundary, self.boundary.crash_prior)
            data, parts, warm = told.data, told.parametrisations, replace(warm, sites=None)
        mode = latent.condition(data, warm.hypers, start=warm.sites, tolerance=HELD_TOLERANCE)
        return CrashModel(mode, Fit(mode, parts, np.nan, 1, mode.ep.sweeps, mode.ep.converged))

    @property
    def converged(self) -> bool:
        """Whether EP reached its fixed point and, where hyperparameters were fitted, BFGS its end."""
        if self.fitted is None or self.bystanders is not None:
            return self.ensemble.members[0].ep.converged
        return self.fitted.converged

    def threshold(self, j: int) -> float | None:
        """The threshold of constraint j: known, or the median of its posterior; None before a success was measured."""
        return self.crash.hypers[j].threshold if thresholds.has_meaning(self.parametrisations[j]) else None

    @property
    def since(self) -> int:
        """The first trial whose P(safe) was of the present hypothesis: others say nothing of its calibration."""
        kept = self.memory.bystander
        return kept.since if kept is not None and kept.ensemble is not None else 0

    def safety(self, calibration: Calibration, ceilings: Array | None = None) -> Safety:
        """log P(safe), corrected as the study's own proposals demand; a success keeps below `ceilings`, (G,)."""
        if self.bystanders is not None:
            return Safety(self.ensemble, calibration, self.bystanders, self._limits(ceilings))
        return Safety(replace(self.ensemble, ceilings=ceilings), calibration)

    def _limits(self, ceilings: Array | None) -> LogGamma | None:
        """log P that what is measured keeps within what stops a trial, where it is not the cause of crashes.

        These are thresholds that were given, and `ceilings`: a guard stops trials at them, whatever crashes others.
        """
        if not any(p.is_given for p in self.parametrisations) and (ceilings is None or not np.isfinite(ceilings).any()):
            return None
        pairs = [p.given_level(h) for p, h in zip(self.parametrisations, self.measured.hypers, strict=True)]
        hypers = tuple(
            replace(h, threshold=c, crash_noise_std=0.0) for h, (c, _) in zip(self.measured.hypers, pairs, strict=True)
        )
        kept = Ensemble.of(replace(self.measured, hypers=hypers), np.array([std for _, std in pairs]))
        return LogGamma(replace(kept, ceilings=ceilings))

    @cached_property
    def aim(self) -> Aim:
        """What is to be gained: less than the best cost, or several goals' front moved outwards."""
        assert self.cost is not None
        if isinstance(self.cost, ComparedPosterior):
            return Winner(Best(self.cost, self.successes, self.context), self.cost, self.known.judged)
        if len(self.cost.hypers) > 1:
            return Front(self.cost, self.successes, self.known.reference, self.context)
        return Best(self.cost, self.successes, self.context)

    def in_context(self, context: tuple[tuple[int, float], ...]) -> "Surrogates":
        """The same in another context."""
        return self if context == self.context else replace(self, context=context)

    def at_pending(self, pending: Array) -> "Surrogates":
        """The same fit with other pending trials: nothing is learnt from those."""
        if self.cost is None:
            return self
        n, alone = self.successes, self.cost
        if len(alone.data.X) > n:
            alone = without_pending(alone, n)
        other = replace(self, cost=with_pending(alone, waiting(self.known, pending)))
        if "crash_model" in vars(self):  # with the densities of thresholds, of which ask and guard both ask
            vars(other)["crash_model"] = self.crash_model
        return other


def _log_odds(log_p: Array) -> Array:
    """log p / (1 - p), finite."""
    p = np.exp(np.minimum(log_p, -_LEAST_CRASH))
    return np.asarray(log_p - np.log1p(-p))


def waiting(known: Observations, pending: Array) -> Array:
    """Where a cost is to come: the pending trials, and before them successes of whose cost nobody has said anything."""
    return np.vstack([known.unjudged, pending])


def with_pending(cost: Posterior, pending: Array) -> Posterior:
    """The cost's posterior with its own mean as data at pending trials, so that none is proposed twice."""
    if not len(pending):
        return cost
    if isinstance(cost, ComparedPosterior):
        return cost.imagined(pending)
    means = np.stack([cost.predict(j, pending)[0] for j in range(len(cost.hypers))])
    return latent.imagined(cost, pending, means)


def without_pending(cost: Posterior, n: int) -> Posterior:
    """The cost's posterior by its first n trials."""
    if isinstance(cost, ComparedPosterior):
        return cost.first(n)
    return latent.condition(stacked_data(cost.data.X[:n], cost.data.Y[:, :n]), cost.hypers)
