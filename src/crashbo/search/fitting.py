"""Fits the two models of a study: to all of its trials, or to those among many that matter most.

May import models and below. It is long because fits of few and of many trials hold, compare and remember alike.
"""

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models import ep, latent, thresholds
from crashbo.models.bystander import fit_bystander, without_measurements
from crashbo.models.crash import parametrise_all
from crashbo.models.ensemble import Ensemble, EnsembleHyperparameters, gather
from crashbo.models.ep import Sites
from crashbo.models.fit import FINAL_TOLERANCE, Fit, fit
from crashbo.models.hidden_cost import ComparedPosterior
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Hyperparameters, Posterior, Warm
from crashbo.models.parametrisation import Parametrisation
from crashbo.search import selection
from crashbo.search.costs import ENOUGH, CostFit, Costs
from crashbo.search.goals import GoalCosts
from crashbo.search.observations import Observations
from crashbo.search.preferences import Compared
from crashbo.search.surrogates import (
    HELD_TOLERANCE,
    BystanderMemory,
    Memory,
    Prepared,
    Surrogates,
    waiting,
    with_pending,
)

Array = NDArray[np.float64]
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
_REFINED = 0.05  # nats: gain of a step with many trials below which it was the last
_FEW_SWEEPS = 20  # of EP with many trials, at most
_COARSE = 0.01  # judgement: its tolerance between two fits, in posterior standard deviations: P(safe) errs by 0.001
_NEARBY = 3  # sweeps of EP with many trials, past which its next run begins where this one ended
_STEPS = 10  # evaluations of the evidence with many trials, at most: what three seconds for a first ask allow
# fitted: on eight families of crashbo.problems in 2 to 6 dimensions, seeds 0 to 4, after 10 to 50 trials. A measured
# cause was taken for a bystander in one of 340 cases, after ten trials; a bystander was found out in 31 of 41
_LEAD = 2.5  # nats by which the bystander's hypothesis must lead
_FEW_CRASHES = 2  # judgement: one crash says little of its cause
# judgement: what time allows; share by which trials must grow, per nat that it lies behind, before it is fitted again
_PATIENCE = 0.1


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
    priors = cost_prior or seen.cost_prior, crash_prior or seen.crash_prior
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
    told = Prepared.of(seen, crash_prior)
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
    memory changes in between only when EP had come far from it, so that a study need not be saved as a whole after each
    of many trials.
    """
    if memory is not None and memory.told == seen.digest((*memory.numbers, *memory.left_out)):
        left_out = set(memory.left_out)
        rows = np.array([i for i, number in enumerate(seen.numbers) if number not in left_out], dtype=np.intp)
        told = Prepared.of(seen.only(rows), crash_prior)
        memory, start = _started(memory, told, doubtful and _is_doubtful(told.seen, told.data))
        found = None if memory is None or start is None else _held(told, memory, start)
        if memory is not None and found is not None:
            far = start is None or start.sites is None or found.sweeps > _NEARBY  # without sites it came from a storage
            return _assembled(told, found, _remembered(told.seen, found, memory, seen) if far else memory)
    few = seen.only(selection.about_the_best(seen.ranked, selection.FEW, np.ones(seen.X.shape[1])))
    first = _of_all(few, _to_be_fitted(memory), cost_prior, crash_prior, posterior, doubtful)
    told = Prepared.of(_chosen(seen, first), crash_prior)
    found = _refined(told, first, cost_prior)
    return _assembled(told, found, _remembered(told.seen, found, first.memory, seen))


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

    @property
    def sweeps(self) -> int:
        """Of EP, in the posterior that took the most."""
        both = (self.ensemble,) if self.labels is None else (self.ensemble, self.labels)
        return max(ensemble.members[0].ep.sweeps for ensemble in both)


def _started(memory: Memory | None, told: Prepared, doubtful: bool) -> tuple[Memory | None, Warm | None]:
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


def _assembled(told: Prepared, found: _Found, memory: Memory) -> Surrogates:
    """Both models, with what is pending."""
    cost = None if found.cost is None else with_pending(found.cost, waiting(told.seen, told.seen.pending))
    ensemble, bystanders = (found.ensemble, None) if found.labels is None else (found.labels, found.ensemble)
    return Surrogates(cost, ensemble, told, found.fitted, memory, bystanders, found.noise_is_open)


def _held(told: Prepared, memory: Memory, start: Warm) -> _Found | None:
    """Both models at the hyperparameters in memory, or None where those are to be refitted.

    They are while trials are few, when their number has grown by a factor, and, when one of the new ones was a
    surprise, by a smaller factor: right after many trials that no search chose, most of its own are surprises.
    A trial that was corrected is learnt from at once.
    """
    seen, data, costs = told.seen, told.data, told.costs
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
    bystander = _carried(seen, memory, data)
    of_labels = bystander.ensemble if bystander is not None else None
    if len((of_labels or ensemble).hypers) > 1 and n > _UNSURE:
        return None
    new = np.arange(rows) >= rows - (n - memory.fitted_at if n >= _REFIT_SURPRISED * memory.fitted_at else 0)
    middle = _conditioned(data, ensemble.hypers[0], start.sites)
    labels = None
    if bystander is not None and of_labels is not None:
        bystander, labels = _rival(bystander, of_labels, data)
    # What is measured does not explain the crashes of a bystander's study: they would all be surprises.
    if _surprised(middle if labels is None else labels.members[0], np.flatnonzero(new)):
        return None
    cost = costs.given(memory.cost.hypers) if costs is not None and memory.cost is not None else None
    if cost is not None and _surprised(cost, np.flatnonzero(new[seen.judged])):
        return None
    warm = replace(start, sites=middle.sites())
    return _Found(None, warm, ensemble.about(middle), cost, memory.fitted_at, bystander, labels)


def _rival(
    kept: BystanderMemory, ensemble: EnsembleHyperparameters, data: HybridData
) -> tuple[BystanderMemory, Ensemble]:
    """What is kept of the hypothesis that holds, with its sites, and its ensemble, by the crash model's data."""
    hypers = ensemble.hypers[0]
    if kept.lower is not None:
        found = _conditioned(data, hypers, kept.lower.sites)
        return replace(kept, lower=replace(kept.lower, sites=found.sites())), ensemble.about(found)
    found = _conditioned(without_measurements(data), hypers, kept.labels.sites)
    return replace(kept, labels=replace(kept.labels, sites=found.sites())), ensemble.about(found)


def _conditioned(data: HybridData, hypers: tuple[Hyperparameters, ...], start: Sites | None) -> Posterior:
    """The posterior at hyperparameters that are held."""
    tolerance = HELD_TOLERANCE if len(data.X) <= selection.SMALL else _COARSE
    return latent.condition(data, hypers, start=start, tolerance=tolerance, max_sweeps=_sweeps(data))


def _sweeps(data: HybridData) -> int:
    """Sweeps of EP, at most: contradictory labels may take all of them, and many trials a long time for each."""
    return ep.MAX_SWEEPS if len(data.X) <= selection.SMALL else _FEW_SWEEPS


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


def _refined(told: Prepared, first: Surrogates, cost_prior: Hyperprior) -> _Found:
    """Both models of many trials, from a fit of a few of them, by the last steps of another fit."""
    memory, kept = first.memory, first.memory.bystander
    start = _aligned(memory.crash, memory, told.seen, len(told.data.X))
    fitted = fit(
        told.data,
        told.parametrisations,
        start=start,
        enough=_REFINED,
        max_evaluations=_STEPS // len(told.parametrisations),
        tolerance=HELD_TOLERANCE,
        passes=1,
        max_sweeps=_sweeps(told.data),
    )
    labels = None
    if first.bystanders is not None and kept is not None and kept.ensemble is not None:
        kept, labels = _rival(kept.without_sites(), kept.ensemble, told.data)
    elif kept is not None:
        kept = kept.without_sites()
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
    earlier = _carried(seen, memory, data) if memory is not None else None
    n = seen.count
    if earlier is not None and earlier.fitted_at <= n < (1.0 - _PATIENCE * earlier.lead) * earlier.fitted_at:
        return earlier, None
    starts = {} if earlier is None else {"measured": earlier.measured, "labels": earlier.labels}
    found = fit_bystander(data, prior, noise_std=seen.noise_std, enough=ENOUGH, **starts)
    lower = _fit_lower(seen, data, prior, earlier)
    likelier = found.log_posterior if lower is None else max(found.log_posterior, lower.log_posterior)
    lead = likelier - fitted.log_posterior
    # Against labels alone, what is measured is judged as if no threshold had been given.
    is_lower = lower is not None and found.log_posterior - lower.log_posterior <= _LEAD
    rival = lower if lower is not None and is_lower else found.labels
    ensemble = _about(rival, unsure) if lead > _LEAD else None
    since = 0 if memory is None else max(seen.numbers) + 1  # without memory nobody knows, and late trials count most
    if earlier is not None and earlier.ensemble is not None:
        since = earlier.since
    kept = BystanderMemory(
        replace(found.measured.posterior.warm(), sites=None),
        found.labels.posterior.warm(),
        lead,
        n,
        ensemble.hyperparameters if ensemble is not None else None,
        since,
        rival.posterior.warm() if ensemble is not None and is_lower else None,
    )
    return kept, ensemble


def _fit_lower(seen: Observations, data: HybridData, prior: Hyperprior, earlier: BystanderMemory | None) -> Fit | None:
    """The crash model if no threshold had been given: it may crash before one is reached; None where none was."""
    if all(given is None for given in seen.thresholds):
        return None
    learnt = parametrise_all(data, prior, noise_std=seen.noise_std, thresholds=(None,) * len(seen.thresholds))
    return fit(data, learnt, start=None if earlier is None else earlier.lower, enough=ENOUGH)


def _carried(seen: Observations, memory: Memory, data: HybridData) -> BystanderMemory | None:
    """What is kept of the hypothesis, with one site per present trial."""
    kept = memory.bystander
    if kept is None:
        return None
    labels = _aligned(kept.labels, memory, seen, len(seen.numbers))
    assert labels is not None
    return replace(kept, labels=labels, lower=_aligned(kept.lower, memory, seen, len(data.X)))


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


def _aligned(warm: Warm | None, memory: Memory, seen: Observations, rows: int) -> Warm | None:
    """A model's memory with one site per present trial: trials may have been added in between, or removed.

    Rows past the trials begin without a site.
    """
    if warm is None or warm.sites is None:
        return warm
    row = {number: i for i, number in enumerate(memory.numbers)}
    old = [row.get(number, -1) for number in seen.numbers] + [-1] * (rows - len(seen.numbers))
    padded = np.zeros((2, len(warm.sites.tau), len(warm.sites.tau[0]) + 1))
    padded[:, :, :-1] = warm.sites
    return replace(warm, sites=Sites(*padded[:, :, old]))
