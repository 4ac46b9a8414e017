"""The two models of a study, fitted to its trials: a GP of the cost, and the crash model.

May import models and below. It is long because what is observed, remembered and fitted are parts of each other: fits of
few and of many trials hold, compare and remember in the same way.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models import ep, hyperpriors, latent, thresholds
from crashbo.models.bystander import fit_bystander, without_labels, without_measurements
from crashbo.models.crash import Blame, CrashModel, hybrid_data, parametrise_all
from crashbo.models.ensemble import Ensemble, EnsembleHyperparameters, gather
from crashbo.models.ep import Sites
from crashbo.models.fit import FINAL_TOLERANCE, Fit, fit
from crashbo.models.hidden_cost import ComparedPosterior, Comparisons
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Hyperparameters, Posterior, Warm
from crashbo.models.parametrisation import Parametrisation
from crashbo.numerics.kernels import MATERN52, Kernel
from crashbo.search import selection
from crashbo.search.acquisition import LogGamma
from crashbo.search.aims import Aim, Best
from crashbo.search.calibration import Calibration
from crashbo.search.costs import ENOUGH, CostFit, Costs
from crashbo.search.front import Front, standing
from crashbo.search.goals import GoalCosts, stacked_data
from crashbo.search.preferences import Compared, Winner
from crashbo.search.safety import Safety
from crashbo.search.trip_levels import Tilt

Array = NDArray[np.float64]
GivenThreshold = float | tuple[float, float] | None
AnyCosts = Costs | GoalCosts | Compared
PosteriorOver = Literal[
    "map", "marginal"
]  # of hyperparameters: the most probable ones, or an average over plausible ones

# judgement: what time allows, by benchmarks/ask.py; fits only at every fifth trial cost regret in ten dimensions
_REFIT_EACH = 30  # trials up to which hyperparameters are refitted at every trial
_REFIT_GROWTH = 1.05  # past that, when the number of trials has grown by this factor
_REFIT_SURPRISED = 1.03  # or by this one, when a trial since then was a surprise
_SURPRISE = 3.0  # standard deviations of a measurement from its prediction that make it one
_LOG_UNEXPECTED = float(np.log(0.2))  # of the probability of an outcome, likewise
_UNSURE = 200  # trials past which the uncertainty of the hyperparameters is neglected
_HELD_TOLERANCE = 1e-3  # of EP at hyperparameters that are held
_LEAST_CRASH = 1e-12  # of P(crash): a sum of floats knows no less
_REFINED = 0.05  # nats: gain of a step with many trials below which it was the last
_FEW_SWEEPS = 20  # of EP with many trials, at most
_STEPS = 10  # evaluations of the evidence with many trials, at most: what three seconds for a first ask allow
# fitted: on eight families of crashbo.problems in 2 to 6 dimensions, seeds 0 to 4, after 10 to 50 trials. A measured
# cause was taken for a bystander in one of 340 cases, after ten trials; a bystander was found out in 31 of 41
_LEAD = 2.5  # nats by which the bystander's hypothesis must lead
_FEW_CRASHES = 2  # judgement: one crash says little of its cause
# judgement: what time allows; share by which trials must grow, per nat that it lies behind, before it is fitted again
_PATIENCE = 0.1


@dataclass(frozen=True)
class Observations:
    """The data of n trials, and where m more are pending; constraints crash above their threshold."""

    numbers: tuple[int, ...]  # of the trials, ascending
    X: Array  # (n, D)
    succeeded: NDArray[np.bool_]
    crashed: NDArray[np.bool_]
    cost: Array  # (n,), to be minimised; NaN where none is known
    Y: Array  # (n, G); NaN where nothing was measured
    blame: Blame
    pending: Array  # (m, D)
    cost_noise_std: float | None
    noise_std: tuple[float | None, ...]
    thresholds: tuple[GivenThreshold, ...]
    censored: NDArray[np.bool_] | None = None  # (n, G), where Y is only a lower bound
    reached: Array | None = None  # (n, G), the last readings before a crash; NaN where they are not known
    rises: Array | None = None  # (n, G), of these, the largest from one reading to the next; NaN where it is not known
    kernel: Kernel = MATERN52  # of both models
    tilts: tuple[Tilt, ...] = ()  # of the only threshold, along contexts
    stops_at: float = 0.5  # probability of a crash at which a guard stops a trial; derived: likelier than not
    total: int | None = None  # trials that there are, where these are only some of them
    goals: Array | None = None  # (n, M), of a study with several, all minimised; NaN where not known. It has no `cost`
    goal_noise_std: tuple[float | None, ...] = ()
    reference: Array | None = None  # (M,), of such a study, where the user gives it
    comparisons: Comparisons | None = None  # of trials, by their rows; None where there are none

    @property
    def count(self) -> int:
        """How many trials there are, these and those that were left out."""
        return len(self.numbers) if self.total is None else self.total

    def only(self, rows: NDArray[np.intp]) -> "Observations":
        """Some of the trials, in order."""
        return replace(
            self,
            numbers=tuple(self.numbers[i] for i in rows.tolist()),
            X=self.X[rows],
            succeeded=self.succeeded[rows],
            crashed=self.crashed[rows],
            cost=self.cost[rows],
            goals=None if self.goals is None else self.goals[rows],
            Y=self.Y[rows],
            blame=None if self.blame is None else [self.blame[i] for i in rows.tolist()],
            censored=None if self.censored is None else self.censored[rows],
            reached=None if self.reached is None else self.reached[rows],
            rises=None if self.rises is None else self.rises[rows],
            comparisons=None if self.comparisons is None else self.comparisons.among(rows),
            total=self.count,
        )

    @property
    def stopped(self) -> NDArray[np.bool_]:
        """Which trials were stopped before they could crash: they have neither label nor cost."""
        return ~(self.succeeded | self.crashed)

    def risen(self, X: Array) -> Array:
        """By how much readings, and the threshold, lie higher at X than Y and the models have them, (m, 1)."""
        total = np.zeros((len(X), 1))
        for tilt in self.tilts:
            total += tilt.slope * X[:, tilt.at : tilt.at + 1]
        return total

    @property
    def watched(self) -> tuple[Array | None, Array | None]:
        """The last readings before crashes, and how far the next might have come: one rise more."""
        return self.reached, None if self.reached is None or self.rises is None else self.reached + self.rises

    @property
    def costed(self) -> NDArray[np.bool_]:
        """Which trials have a cost, or any of several."""
        return np.asarray(~np.isnan(self.cost) if self.goals is None else ~np.isnan(self.goals).all(axis=1))

    @property
    def ranked(self) -> "Observations":
        """The same, with one number per trial as its cost, also where there are several goals: the best lowest."""
        return self if self.goals is None else replace(self, cost=standing(self.goals))

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which trials have a cost, or were compared with another."""
        judged = self.costed
        if self.comparisons is not None:
            judged[self.comparisons.pairs.ravel()] = True
        return judged

    @property
    def unjudged(self) -> Array:
        """Where trials succeeded of whose cost nobody has said anything, (k, D)."""
        return self.X[self.succeeded & ~self.judged]

    def digest(self, numbers: tuple[int, ...]) -> str:
        """A digest of the data of the trials of these numbers: a correction of any of them changes it."""
        known = set(numbers)
        rows = np.array([number in known for number in self.numbers], dtype=bool)
        told = hashlib.blake2b(digest_size=16)
        stopped = self.stopped if self.stopped.any() else None  # studies without one keep the digests that they had
        readings = self.reached, self.rises
        for values in (self.X, self.cost, self.Y, self.crashed, self.censored, stopped, *readings, self.goals):
            told.update(b"" if values is None else np.ascontiguousarray(values[rows]).tobytes())
        if self.comparisons is not None:
            among = rows[self.comparisons.pairs].all(axis=1)
            told.update(np.asarray(self.numbers)[self.comparisons.pairs[among]].tobytes())
            told.update(self.comparisons.tie[among].tobytes())
        told.update(repr(self.blame and [self.blame[i] for i in np.flatnonzero(rows).tolist()]).encode())
        return told.hexdigest()

    def labels_only(self) -> "Observations":
        """The same trials without measurements: one unmeasured constraint, informed by labels alone."""
        nothing = np.full((len(self.numbers), 1), np.nan)
        bare = replace(self, censored=None, reached=None, rises=None)
        return replace(bare, Y=nothing, blame=None, noise_std=(None,), thresholds=(None,))


@dataclass(frozen=True)
class BystanderMemory:
    """What is kept of the hypothesis that what is measured is not the cause of the crashes."""

    measured: Warm
    labels: Warm
    lead: float  # nats over the crash model, when it was last fitted
    fitted_at: int  # number of trials then
    ensemble: EnsembleHyperparameters | None = None  # of the labels' function, where the hypothesis holds
    since: int = 0  # the first trial that was proposed under it


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
    parametrisations: tuple[Parametrisation, ...]  # of the crash model
    fitted: Fit | None  # of the crash model; None where hyperparameters are held
    memory: Memory
    successes: int  # rows of the cost's data that were measured: pending ones come after them
    known: Observations  # the trials that both models know: all, or those that matter most (see `selection`)
    bystanders: Ensemble | None = None  # of what is measured, where that is not the cause: `ensemble` is of labels then
    noise_is_open: bool = False  # whether much noise and little explain the costs about equally well
    reference: Array | None = None  # (M,), of several goals, where the user gives it
    unjudged: Array | None = None  # successes of whose cost nobody has said anything, (k, D): as pending ones
    context: tuple[tuple[int, float], ...] = ()  # coordinates that are met and not chosen, and where they are now

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
            told = _Prepared.of(self.boundary, hyperpriors.of_crash(data.X.shape[1]))
            data, parts, warm = told.data, told.parametrisations, replace(warm, sites=None)
        mode = latent.condition(data, warm.hypers, start=warm.sites, tolerance=_HELD_TOLERANCE)
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
            return Front(self.cost, self.successes, self.reference, self.context)
        return Best(self.cost, self.successes, self.context)

    def in_context(self, context: tuple[tuple[int, float], ...]) -> "Surrogates":
        """The same in another context."""
        return self if context == self.context else replace(self, context=context)

    def at_pending(self, pending: Array) -> "Surrogates":
        """The same fit with other pending trials: nothing is learnt from those."""
        if self.cost is None:
            return self
        n, alone = self.successes, self.cost
        if self.unjudged is not None:
            pending = np.vstack([self.unjudged, pending])
        if len(alone.data.X) > n:
            alone = without_pending(alone, n)
        other = replace(self, cost=with_pending(alone, pending))
        if "crash_model" in vars(self):  # with the densities of thresholds, of which ask and guard both ask
            vars(other)["crash_model"] = self.crash_model
        return other


def fit_surrogates(
    seen: Observations,
    memory: Memory | None = None,
    cost_prior: Hyperprior | None = None,
    crash_prior: Hyperprior | None = None,
    posterior: PosteriorOver = "marginal",
    doubtful: bool = True,
) -> Surrogates:
    """Fit both models, from a warm start where memory allows; past the first trials not at every trial.

    Where `doubtful`, P(safe) goes by labels alone once the data say that what is measured is not the cause.
    """
    D, kernel = seen.X.shape[1], seen.kernel
    cost_prior = cost_prior or replace(hyperpriors.of_cost(D), kernel=kernel)
    priors = cost_prior, crash_prior or replace(hyperpriors.of_crash(D), kernel=kernel)
    if seen.count > selection.SMALL and not seen.comparisons:
        return _of_many(seen, memory, *priors, posterior, doubtful)
    return _of_all(seen, memory, *priors, posterior, doubtful)


def _of_all(
    seen: Observations,
    memory: Memory | None,
    cost_prior: Hyperprior,
    crash_prior: Hyperprior,
    posterior: PosteriorOver,
    doubtful: bool,
) -> Surrogates:
    """Both models of all these trials."""
    told = _Prepared.of(seen, crash_prior)
    doubtful = doubtful and _is_doubtful(seen, told.data)
    memory, start = _started(memory, told, doubtful)
    found = _held(told, memory, start) if memory is not None and start is not None else None
    if found is None:
        fitted = fit(told.data, told.parametrisations, start=start, enough=ENOUGH)
        unsure = posterior == "marginal" and seen.count <= _UNSURE
        compared = _compared(seen, memory, told.data, fitted, crash_prior, unsure) if doubtful else (None, None)
        ensemble = _about(fitted, unsure and compared[1] is None)
        cost_start = memory.cost if memory is not None else None
        cost, noise_is_open = (None, False)
        if told.costs is not None:
            cost, noise_is_open = _fit_costs(told.costs, seen, cost_prior, cost_start)
        found = _Found(fitted, fitted.posterior.warm(), ensemble, cost, seen.count, *compared, noise_is_open)
    return _assembled(told, found, _remembered(seen, found, memory))


def _of_many(
    seen: Observations,
    memory: Memory | None,
    cost_prior: Hyperprior,
    crash_prior: Hyperprior,
    posterior: PosteriorOver,
    doubtful: bool,
) -> Surrogates:
    """Both models of those among many trials that matter most.

    Until the next fit they know the trials that they knew at the last one, and all that came since. What is kept in
    memory does not change in between, so that a study need not be saved as a whole after each of many trials.
    """
    if memory is not None and memory.told == seen.digest((*memory.numbers, *memory.left_out)):
        left_out = set(memory.left_out)
        rows = np.array([i for i, number in enumerate(seen.numbers) if number not in left_out], dtype=np.intp)
        told = _Prepared.of(seen.only(rows), crash_prior)
        memory, start = _started(memory, told, doubtful and _is_doubtful(told.seen, told.data))
        found = None if memory is None or start is None else _held(told, memory, start)
        if memory is not None and found is not None:
            light = start is not None and start.sites is None  # as it came from a storage
            return _assembled(told, found, _remembered(told.seen, found, memory, seen) if light else memory)
    few = seen.only(selection.about_the_best(seen.ranked, selection.FEW, np.ones(seen.X.shape[1])))
    first = _of_all(few, _to_be_fitted(memory), cost_prior, crash_prior, posterior, doubtful)
    told = _Prepared.of(_chosen(seen, first), crash_prior)
    found = _refined(told, first, cost_prior)
    return _assembled(told, found, _remembered(told.seen, found, first.memory, seen))


class _Prepared(NamedTuple):
    """Trials, and what the models make of them."""

    seen: Observations
    data: HybridData
    parametrisations: tuple[Parametrisation, ...]
    costs: AnyCosts | None  # None before a success; of several goals, before each was measured

    @staticmethod
    def of(seen: Observations, prior: Hyperprior) -> "_Prepared":
        data = hybrid_data(
            seen.X, seen.Y, seen.crashed, seen.blame, seen.censored, seen.stopped, *seen.watched, whole=True
        )
        parametrisations = parametrise_all(data, prior, noise_std=seen.noise_std, thresholds=seen.thresholds)
        return _Prepared(seen, data, parametrisations, _costs(seen))


def _costs(seen: Observations) -> AnyCosts | None:
    """What is known of the cost, or of every goal."""
    X = seen.X[seen.costed]
    if seen.comparisons:
        return Compared.of(seen.X, seen.cost, seen.comparisons)
    if seen.goals is None:
        return Costs.of(X, seen.cost[seen.costed]) if len(X) else None
    goals = seen.goals[seen.costed]
    return GoalCosts.of(X, goals) if (~np.isnan(goals)).any(axis=0).all() else None


def _fit_costs(
    costs: Costs | GoalCosts | Compared, seen: Observations, prior: Hyperprior, start: Warm | None
) -> CostFit:
    """The posterior of the cost, or of every goal, its hyperparameters learnt."""
    if isinstance(costs, GoalCosts):
        return costs.fit(seen.goal_noise_std, prior, start)
    return costs.fit(seen.cost_noise_std, prior, start)


def _refine_costs(
    costs: Costs | GoalCosts | Compared, seen: Observations, prior: Hyperprior, start: Warm | None
) -> Posterior:
    """The same by a few more steps from the fit of fewer trials."""
    if isinstance(costs, GoalCosts):
        return costs.refined(seen.goal_noise_std, prior, start, _REFINED, _STEPS)
    assert isinstance(costs, Costs)  # where trials are compared, all are known
    return costs.refined(seen.cost_noise_std, prior, start, _REFINED, _STEPS)


class _Found(NamedTuple):
    fitted: Fit | None  # of the crash model
    warm: Warm  # start of its next fit
    ensemble: Ensemble  # of what is measured
    cost: Posterior | None
    fitted_at: int
    bystander: BystanderMemory | None
    labels: Ensemble | None  # where what is measured is not the cause
    noise_is_open: bool = False


def _started(memory: Memory | None, told: _Prepared, doubtful: bool) -> tuple[Memory | None, Warm | None]:
    """The memory, without a hypothesis that nobody has any more, and where a fit of these trials begins."""
    if memory is None:
        return None, None
    if memory.bystander is not None and not doubtful:
        memory = replace(memory, ensemble=None, bystander=None)
    return memory, _aligned(memory.crash, memory, told.seen, len(told.data.X))


def _remembered(
    seen: Observations, found: _Found, memory: Memory | None, everything: Observations | None = None
) -> Memory:
    """What is kept of what was found, to begin the next fit of these trials with, chosen from `everything`."""
    cost = memory.cost if memory is not None else None
    if found.cost is not None:
        cost = replace(found.cost.warm(), sites=None)
    everything = everything or seen
    digest, known = everything.digest(everything.numbers), set(seen.numbers)
    left_out = tuple(number for number in everything.numbers if number not in known)
    hypers = found.ensemble.hyperparameters
    return Memory(seen.numbers, cost, found.warm, found.fitted_at, hypers, digest, found.bystander, left_out)


def _assembled(told: _Prepared, found: _Found, memory: Memory) -> Surrogates:
    """Both models, with what is pending."""
    unjudged = told.seen.unjudged if len(told.seen.unjudged) else None
    waiting = told.seen.pending if unjudged is None else np.vstack([unjudged, told.seen.pending])
    cost = None if found.cost is None else with_pending(found.cost, waiting)
    ensemble, bystanders = (found.ensemble, None) if found.labels is None else (found.labels, found.ensemble)
    return Surrogates(
        cost,
        ensemble,
        told.parametrisations,
        found.fitted,
        memory,
        0 if told.costs is None else len(told.costs.X),
        told.seen,
        bystanders,
        found.noise_is_open,
        told.seen.reference,
        unjudged,
    )


def _held(told: _Prepared, memory: Memory, start: Warm) -> _Found | None:
    """Both models at the hyperparameters in memory, or None where those are to be refitted.

    They are while trials are few, when their number has grown by a factor, and, when one of the new ones was a
    surprise, by a smaller factor: right after many trials that no search chose, most of its own are surprises.
    A trial that was corrected is learnt from at once.
    """
    seen, data, _, costs = told
    n, rows, ensemble = seen.count, len(seen.numbers), memory.ensemble
    if ensemble is None or start.measured != data.kind or (memory.cost is None) != (costs is None):
        return None
    if (
        costs is not None and memory.cost is not None and memory.cost.measured != costs.kind
    ):  # trials have been compared since, or no more
        return None
    if seen.total is None and memory.told != seen.digest(memory.numbers):
        return None
    if n <= _REFIT_EACH or not memory.fitted_at <= n < _REFIT_GROWTH * memory.fitted_at:
        return None
    bystander = _carried(seen, memory)
    of_labels = bystander.ensemble if bystander is not None else None
    if len((of_labels or ensemble).hypers) > 1 and n > _UNSURE:
        return None
    new = np.arange(rows) >= rows - (n - memory.fitted_at if n >= _REFIT_SURPRISED * memory.fitted_at else 0)
    middle = _conditioned(data, ensemble.hypers[0], start.sites)
    labels = None
    if bystander is not None and of_labels is not None:
        bare, sites = without_measurements(data), bystander.labels.sites
        unmeasured = _conditioned(bare, of_labels.hypers[0], sites)
        labels = of_labels.about(unmeasured)
        bystander = replace(bystander, labels=replace(bystander.labels, sites=unmeasured.sites()))
    # What is measured does not explain the crashes of a bystander's study: they would all be surprises.
    if _surprised(middle if labels is None else labels.members[0], np.flatnonzero(new)):
        return None
    cost = costs.given(memory.cost.hypers) if costs is not None and memory.cost is not None else None
    if cost is not None and _surprised(cost, np.flatnonzero(new[seen.judged])):
        return None
    warm = replace(start, sites=middle.sites())
    return _Found(None, warm, ensemble.about(middle), cost, memory.fitted_at, bystander, labels)


def _conditioned(data: HybridData, hypers: tuple[Hyperparameters, ...], start: Sites | None) -> Posterior:
    """The posterior at hyperparameters that are held."""
    return latent.condition(data, hypers, start=start, tolerance=_HELD_TOLERANCE, max_sweeps=_sweeps(data))


def _sweeps(data: HybridData) -> int:
    """Sweeps of EP, at most: contradictory labels may take all of them, and many trials a long time for each."""
    return ep.MAX_SWEEPS if len(data.X) <= selection.SMALL else _FEW_SWEEPS


def _log_odds(log_p: Array) -> Array:
    """log p / (1 - p), finite."""
    p = np.exp(np.minimum(log_p, -_LEAST_CRASH))
    return np.asarray(log_p - np.log1p(-p))


def _to_be_fitted(memory: Memory | None) -> Memory | None:
    """The memory as a start only: nothing is held."""
    return None if memory is None else replace(memory, ensemble=None)


def _chosen(seen: Observations, first: Surrogates) -> Observations:
    """The trials that the models are to know, by the hyperparameters of a first fit."""
    if len(seen.numbers) <= selection.EXACT:
        return seen.only(np.arange(len(seen.numbers)))
    scales = [h.lengthscales for h in first.ensemble.members[0].hypers]
    if first.cost is not None:
        scales += [h.lengthscales for h in first.cost.hypers]
    return seen.only(selection.about_the_best(seen.ranked, selection.KNOWN, np.min(scales, axis=0)))


def _refined(told: _Prepared, first: Surrogates, cost_prior: Hyperprior) -> _Found:
    """Both models of many trials, from a fit of a few of them, by the last steps of another fit."""
    memory, kept = first.memory, first.memory.bystander
    start = _aligned(memory.crash, memory, told.seen, len(told.data.X))
    fitted = fit(
        told.data,
        told.parametrisations,
        start=start,
        enough=_REFINED,
        max_evaluations=_STEPS // len(told.parametrisations),
        tolerance=_HELD_TOLERANCE,
        passes=1,
        max_sweeps=_sweeps(told.data),
    )
    labels = None
    if first.bystanders is not None and kept is not None and kept.ensemble is not None:
        bare = without_measurements(told.data)
        labels = kept.ensemble.about(_conditioned(bare, kept.ensemble.hypers[0], None))
    if kept is not None:
        sites = None if labels is None else labels.members[0].sites()
        kept = replace(kept, labels=replace(kept.labels, sites=sites))
    cost = None
    if told.costs is not None:
        cost = _refine_costs(told.costs, told.seen, cost_prior, memory.cost)
    ensemble = _about(fitted, False)
    fitted = replace(fitted, converged=ensemble.members[0].ep.converged)  # the next fit goes on where this one ended
    warm = replace(fitted.posterior.warm(), sites=ensemble.members[0].sites())  # at the medians, as they are held
    return _Found(fitted, warm, ensemble, cost, told.seen.count, kept, labels, first.noise_is_open)


def _is_doubtful(seen: Observations, data: HybridData) -> bool:
    """Whether there are crashes enough to ask if what is measured has nothing to do with them."""
    return int(seen.crashed.sum()) >= _FEW_CRASHES and _may_be_a_bystander(seen, data)


def _may_be_a_bystander(seen: Observations, data: HybridData) -> bool:
    """Whether what is measured may have nothing to do with the crashes: all is measured, and nobody says it does.

    Who gives a crash's cause says so. A threshold that is given may still be jumped over.
    """
    return all(data.kind) and not any(seen.blame or ())


def _compared(
    seen: Observations, memory: Memory | None, data: HybridData, fitted: Fit, prior: Hyperprior, unsure: bool
) -> tuple[BystanderMemory | None, Ensemble | None]:
    """The hypothesis that what is measured is not the cause; and its ensemble, where it leads the crash model."""
    earlier = _carried(seen, memory) if memory is not None else None
    n = seen.count
    if earlier is not None and earlier.fitted_at <= n < (1.0 - _PATIENCE * earlier.lead) * earlier.fitted_at:
        return earlier, None
    starts = {} if earlier is None else {"measured": earlier.measured, "labels": earlier.labels}
    found = fit_bystander(data, prior, noise_std=seen.noise_std, enough=ENOUGH, **starts)
    lead = found.log_posterior - fitted.log_posterior
    labels = _about(found.labels, unsure) if lead > _LEAD else None
    measured, bare = found.measured.posterior.warm(), found.labels.posterior.warm()
    hypers = labels.hyperparameters if labels is not None else None
    since = 0 if memory is None else max(seen.numbers) + 1  # without memory nobody knows, and late trials count most
    if earlier is not None and earlier.ensemble is not None:
        since = earlier.since
    return BystanderMemory(replace(measured, sites=None), bare, lead, n, hypers, since), labels


def _carried(seen: Observations, memory: Memory) -> BystanderMemory | None:
    """What is kept of the hypothesis, with one site per present trial."""
    kept = memory.bystander
    if kept is None:
        return None
    labels = _aligned(kept.labels, memory, seen, len(seen.numbers))
    assert labels is not None
    return replace(kept, labels=labels)


def _about(fitted: Fit, unsure: bool) -> Ensemble:
    """The ensemble about a fit, or its posterior alone, at the medians of the thresholds."""
    middle, spreads = _centred(fitted.posterior, fitted.parametrisations)
    return gather(middle, fitted.parametrisations, spreads) if unsure else Ensemble.of(middle, spreads)


def _surprised(posterior: Posterior, rows: NDArray[np.intp]) -> bool:
    """Whether some of these trials were surprises given the others: by a measurement, or by a crash."""
    gaps = [posterior.surprises(j)[rows] for j in range(len(posterior.hypers))]
    if isinstance(posterior, ComparedPosterior):
        return bool(np.any(np.array(gaps) > _SURPRISE))
    unlikely = posterior.ep.tilted.log_mass[rows] < _LOG_UNEXPECTED
    return bool(unlikely.any() or np.any(np.abs(gaps) > _SURPRISE))


def _centred(posterior: Posterior, parametrisations: tuple[Parametrisation, ...]) -> tuple[Posterior, Array]:
    """The crash posterior at the median of each learnt threshold, and the thresholds' standard deviations."""
    pairs = [thresholds.centre_and_spread(posterior, p, j) for j, p in enumerate(parametrisations)]
    hypers = tuple(replace(h, threshold=c) for h, (c, _) in zip(posterior.hypers, pairs, strict=True))
    spreads = np.array([std for _, std in pairs])
    if not spreads.any():
        return posterior, spreads
    moved = latent.condition(
        posterior.data,
        hypers,
        start=posterior.sites(),
        grams=posterior.grams,
        tolerance=FINAL_TOLERANCE,
        max_sweeps=_sweeps(posterior.data),
    )
    return moved, spreads


def with_pending(cost: Posterior, pending: Array) -> Posterior:
    """The cost's posterior with its own mean as data at pending trials, so that none is proposed twice."""
    if not len(pending):
        return cost
    if isinstance(cost, ComparedPosterior):
        return cost.imagined(pending)
    means = np.stack([cost.predict(j, pending)[0] for j in range(len(cost.hypers))])
    data = stacked_data(np.vstack([cost.data.X, pending]), np.hstack([cost.data.Y, means]))
    return latent.condition(data, cost.hypers)


def without_pending(cost: Posterior, n: int) -> Posterior:
    """The cost's posterior by its first n trials."""
    if isinstance(cost, ComparedPosterior):
        return cost.first(n)
    return latent.condition(stacked_data(cost.data.X[:n], cost.data.Y[:, :n]), cost.hypers)


def _aligned(warm: Warm | None, memory: Memory, seen: Observations, rows: int) -> Warm | None:
    """A model's memory with one site per present trial: trials may have been added in between, or removed.

    Rows past the trials begin without a site.
    """
    if warm is None or warm.sites is None:
        return warm
    row = {number: i for i, number in enumerate(memory.numbers)}
    old = [row.get(number, -1) for number in seen.numbers] + [-1] * (rows - len(seen.numbers))
    padded = (np.pad(site, ((0, 0), (0, 1))) for site in warm.sites)
    return replace(warm, sites=Sites(*(site[:, old] for site in padded)))
