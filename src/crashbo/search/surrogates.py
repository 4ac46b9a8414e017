"""The two models of a study, fitted to its trials: a GP of the cost, and the crash model.

May import models and below.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models import hyperpriors, latent, thresholds
from crashbo.models.crash import Blame, CrashModel, hybrid_data, parametrise_all
from crashbo.models.ensemble import Ensemble, EnsembleHyperparameters, gather
from crashbo.models.ep import Sites
from crashbo.models.fit import FINAL_TOLERANCE, Fit, fit
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Posterior, Warm
from crashbo.models.parametrisation import Parametrisation
from crashbo.models.regression import measured_data
from crashbo.search.acquisition import LogEI
from crashbo.search.calibration import Calibration
from crashbo.search.costs import ENOUGH, Costs
from crashbo.search.safety import Safety

Array = NDArray[np.float64]
GivenThreshold = float | tuple[float, float] | None
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
# judgement: share of the cost's spread that a gain must have to mean anything, at least and most. With risk's third of
# it, a gain of a hundredth is always worth a trial: on michalewicz10d ruggedness was fitted as a noise of 0.2
_FINEST, _COARSEST = 1e-3, 0.03


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

    @property
    def costed(self) -> NDArray[np.bool_]:
        """Which trials have a cost."""
        return ~np.isnan(self.cost)

    def digest(self, numbers: tuple[int, ...]) -> str:
        """A digest of the data of the trials of these numbers: a correction of any of them changes it."""
        known = set(numbers)
        rows = np.array([number in known for number in self.numbers], dtype=bool)
        told = hashlib.blake2b(digest_size=16)
        for values in (self.X, self.cost, self.Y, self.crashed, self.censored):
            told.update(b"" if values is None else np.ascontiguousarray(values[rows]).tobytes())
        told.update(repr(self.blame and [self.blame[i] for i in np.flatnonzero(rows).tolist()]).encode())
        return told.hexdigest()

    def labels_only(self) -> "Observations":
        """The same trials without measurements: one unmeasured constraint, informed by labels alone."""
        nothing = np.full((len(self.numbers), 1), np.nan)
        return replace(self, Y=nothing, blame=None, censored=None, noise_std=(None,), thresholds=(None,))


@dataclass(frozen=True)
class Memory:
    """The warm start of the next fit. It is part of a study's saved state."""

    numbers: tuple[int, ...]
    cost: Warm | None
    crash: Warm | None
    fitted_at: int = 0  # number of trials when hyperparameters were last fitted
    ensemble: EnsembleHyperparameters | None = None  # of the crash model, from that fit
    told: str = ""  # digest of the data of these trials


@dataclass(frozen=True)
class Surrogates:
    """Both models, fitted."""

    cost: Posterior | None  # None before the first success
    ensemble: Ensemble  # of crash posteriors: the first at the most probable hyperparameters and the median thresholds
    parametrisations: tuple[Parametrisation, ...]  # of the crash model
    fitted: Fit | None  # of the crash model; None where hyperparameters are held
    memory: Memory
    successes: int  # rows of the cost's data that were measured: pending ones come after them

    @property
    def crash(self) -> Posterior:
        """The crash posterior of the ensemble's first member."""
        return self.ensemble.members[0]

    @cached_property
    def crash_model(self) -> CrashModel:
        """The crash model at the most probable hyperparameters; where they are held, computed on demand."""
        if self.fitted is not None:
            return CrashModel(self.fitted.posterior, self.fitted)
        warm = self.memory.crash
        assert warm is not None
        mode = latent.condition(self.crash.data, warm.hypers, start=warm.sites, tolerance=_HELD_TOLERANCE)
        return CrashModel(mode, Fit(mode, self.parametrisations, np.nan, 1, mode.ep.sweeps, mode.ep.converged))

    @property
    def converged(self) -> bool:
        """Whether EP reached its fixed point and, where hyperparameters were fitted, BFGS its end."""
        return self.crash.ep.converged if self.fitted is None else self.fitted.converged

    def threshold(self, j: int) -> float | None:
        """The threshold of constraint j: known, or the median of its posterior; None before a success was measured."""
        return self.crash.hypers[j].threshold if thresholds.has_meaning(self.parametrisations[j]) else None

    def safety(self, calibration: Calibration) -> Safety:
        """log P(safe), corrected as the study's own proposals demand."""
        return Safety(self.ensemble, calibration)

    @cached_property
    def eta(self) -> float:
        """The incumbent's cost: the best posterior mean at a success or a pending trial.

        Without the latter, a promising place would promise the same to the next who asks.
        """
        assert self.cost is not None
        return float(self.cost.mean_at_trials(0).min())

    @property
    def improvement(self) -> LogEI:
        """What a trial may be expected to gain if it does not crash."""
        assert self.cost is not None
        return LogEI(self.cost, self.eta, self.cost_noise_std)

    @property
    def cost_noise_std(self) -> float:
        """The cost's noise, given or learnt."""
        assert self.cost is not None
        return float(np.mean(self.cost.hypers[0].noise_std))

    @property
    def resolution(self) -> float:
        """The least gain in cost that means anything: its noise, within bounds.

        No less than a thousandth of its spread; and no more than a few hundredths, since what is taken for noise may be
        a rugged cost, and then there is much to gain.
        """
        assert self.cost is not None
        spread = float(np.sqrt(self.cost.hypers[0].outputscale))
        return float(np.clip(self.cost_noise_std, _FINEST * spread, _COARSEST * spread))

    def at_pending(self, pending: Array) -> "Surrogates":
        """The same fit with other pending trials: nothing is learnt from those."""
        if self.cost is None:
            return self
        measured, n = self.cost.data, self.successes
        alone = latent.condition(measured_data(measured.X[:n], measured.Y[0, :n]), self.cost.hypers)
        return replace(self, cost=with_pending(alone, pending))


def fit_surrogates(
    seen: Observations,
    memory: Memory | None = None,
    cost_prior: Hyperprior | None = None,
    crash_prior: Hyperprior | None = None,
    posterior: PosteriorOver = "marginal",
) -> Surrogates:
    """Fit both models, from a warm start where memory allows; past the first trials not at every trial."""
    cost_prior = cost_prior or hyperpriors.of_cost(seen.X.shape[1])
    crash_prior = crash_prior or hyperpriors.of_crash(seen.X.shape[1])
    data = hybrid_data(seen.X, seen.Y, seen.crashed, seen.blame, seen.censored, whole=True)
    parametrisations = parametrise_all(data, crash_prior, noise_std=seen.noise_std, thresholds=seen.thresholds)
    costs = Costs.of(seen.X[seen.costed], seen.cost[seen.costed])
    start = _aligned(memory, seen.numbers, len(data.X)) if memory is not None else None
    found = _held(seen, memory, data, start, costs) if memory is not None and start is not None else None
    if found is None:
        fitted = fit(data, parametrisations, start=start, enough=ENOUGH)
        middle, spreads = _centred(fitted.posterior, parametrisations)
        unsure = posterior == "marginal" and len(seen.numbers) <= _UNSURE
        ensemble = gather(middle, parametrisations, spreads) if unsure else Ensemble.of(middle, spreads)
        cost_start = memory.cost if memory is not None else None
        cost = costs.fit(seen.cost_noise_std, cost_prior, cost_start) if len(costs.X) else None
        found = _Found(fitted, fitted.posterior.warm(), ensemble, cost, len(seen.numbers))
    cost_warm = memory.cost if memory is not None else None
    if found.cost is not None:
        cost_warm = replace(found.cost.warm(), sites=None)
    told = seen.digest(seen.numbers)
    kept = Memory(seen.numbers, cost_warm, found.warm, found.fitted_at, found.ensemble.hyperparameters, told)
    cost = None if found.cost is None else with_pending(found.cost, seen.pending)
    return Surrogates(cost, found.ensemble, parametrisations, found.fitted, kept, len(costs.X))


class _Found(NamedTuple):
    fitted: Fit | None  # of the crash model
    warm: Warm  # start of its next fit
    ensemble: Ensemble
    cost: Posterior | None
    fitted_at: int


def _held(
    seen: Observations,
    memory: Memory,
    data: HybridData,
    start: Warm,
    costs: Costs,
) -> _Found | None:
    """Both models at the hyperparameters in memory, or None where those are to be refitted.

    They are while trials are few, when their number has grown by a factor, and, when one of the new ones was a
    surprise, by a smaller factor: right after many trials that no search chose, most of its own are surprises.
    A trial that was corrected is learnt from at once.
    """
    n, ensemble = len(seen.numbers), memory.ensemble
    if ensemble is None or start.measured != data.kind or (memory.cost is None) != (len(costs.X) == 0):
        return None
    if memory.told != seen.digest(memory.numbers):
        return None
    if n <= _REFIT_EACH or not memory.fitted_at <= n < _REFIT_GROWTH * memory.fitted_at:
        return None
    if len(ensemble.hypers) > 1 and n > _UNSURE:
        return None
    new = np.arange(n) >= (memory.fitted_at if n >= _REFIT_SURPRISED * memory.fitted_at else n)
    middle = latent.condition(data, ensemble.hypers[0], start=start.sites, tolerance=_HELD_TOLERANCE)
    if _surprised(middle, np.flatnonzero(new)):
        return None
    cost = costs.given(memory.cost.hypers) if memory.cost is not None else None
    if cost is not None and _surprised(cost, np.flatnonzero(new[seen.costed])):
        return None
    return _Found(None, replace(start, sites=middle.sites()), ensemble.about(middle), cost, memory.fitted_at)


def _surprised(posterior: Posterior, rows: NDArray[np.intp]) -> bool:
    """Whether some of these trials were surprises given the others: by a measurement, or by a crash."""
    gaps = [posterior.surprises(j)[rows] for j in range(len(posterior.hypers))]
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
        posterior.data, hypers, start=posterior.sites(), grams=posterior.grams, tolerance=FINAL_TOLERANCE
    )
    return moved, spreads


def with_pending(cost: Posterior, pending: Array) -> Posterior:
    """The cost's posterior with its own mean as data at pending trials, so that none is proposed twice."""
    if not len(pending):
        return cost
    mean, _ = cost.predict(0, pending)
    data = measured_data(np.vstack([cost.data.X, pending]), np.append(cost.data.Y[0], mean))
    return latent.condition(data, cost.hypers)


def _aligned(memory: Memory, numbers: tuple[int, ...], rows: int) -> Warm | None:
    """The crash model's memory with one site per present trial: trials may have been added in between, or removed.

    Rows past the trials begin without a site.
    """
    warm = memory.crash
    if warm is None or warm.sites is None:
        return warm
    row = {number: i for i, number in enumerate(memory.numbers)}
    old = [row.get(number, -1) for number in numbers] + [-1] * (rows - len(numbers))
    padded = (np.pad(site, ((0, 0), (0, 1))) for site in warm.sites)
    return replace(warm, sites=Sites(*(site[:, old] for site in padded)))
