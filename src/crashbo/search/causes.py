"""What made the crashes, and what they say of the thresholds.

May import models and below.

Hypotheses are compared by their evidence: every crash was a measured constraint's (the crash model); none was,
and the labels follow a function of their own (`models.bystander`); or some were, and a rare function that nobody
measures made the others. The blame of a crash is of their mixture. So is a threshold's interval, and of a mixture over
the scales on which the readings may be smooth (`models.warps`). And a machine may have jumped over a threshold
(`models.jumps`): that leaves the blame as it is, but nothing bounds the threshold from above.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from crashbo.models import jumps, latent, thresholds
from crashbo.models.bystander import beside_data, fit_beside, fit_bystander
from crashbo.models.crash import CrashModel, hybrid_data, parametrise_all
from crashbo.models.fit import fit
from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Posterior, Warm
from crashbo.models.parametrisation import Parametrisation
from crashbo.models.thresholds import Profile
from crashbo.models.warps import Warp, warps
from crashbo.search.costs import ENOUGH
from crashbo.search.observations import Observations
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# fitted: benchmarks/thresholds.py, on other seeds: prior odds, against the crash model, that crashes had another cause,
# all of them or some
RIVAL, _BESIDE = 0.25, 0.25
# fitted: the same, with carts that balance a pole: odds that a machine jumps over a threshold, and the correlation of
# what it does with the readings. One of 0.8 with smaller odds was no better, and of 0 it was worse after 20 trials.
_JUMPS, _ALONG = 0.1, 0.5
_LOT_TOLERANCE = 1e-3  # judgement: of EP, where only blame is read off
_BEHIND = 6.0  # judgement: nats by which a scale is too unlikely to matter


@dataclass(frozen=True)
class Scale:
    """A constraint on one scale of its readings."""

    posterior: Posterior  # of its function alone
    parametrisation: Parametrisation
    warp: Warp | None
    log_weight: float  # log posterior of readings and labels at the most probable hyperparameters, and log prior

    @staticmethod
    def of(posterior: Posterior, p: Parametrisation, warp: Warp | None, log_prior: float, y: Array) -> "Scale":
        """The scale of a fit to warped readings; y are the readings."""
        slopes = 0.0 if warp is None else float(np.sum(np.log(warp.rate(y[~np.isnan(y)]))))
        return Scale(posterior, p, warp, _log_posterior(posterior, p) + slopes + log_prior)

    @cached_property
    def profile(self) -> Profile:
        """The density of its threshold."""
        found = thresholds.profile(self.posterior, (self.parametrisation,), 0, self.warp)
        assert found is not None
        return found

    @property
    def log_evidence(self) -> float:
        """The same as log_weight, with the threshold integrated over."""
        return self.log_weight + self.profile.log_width

    @cached_property
    def log_odds_of_jump(self) -> float:
        """Log odds that the machine jumps over its threshold, against the crash model."""
        of, p = self.posterior, self.parametrisation
        crossed = _log_posterior(of, p) + self.profile.log_width
        return math.log(_JUMPS) + jumps.log_posterior(of, p, _ALONG) - crossed


@dataclass(frozen=True)
class Causes:
    """What the constraints had to do with the crashes."""

    model: CrashModel  # of the hypothesis that every crash was a constraint's
    innocent: Array  # (G,), probability that no crash was of this constraint's making
    jumped: Array  # (G,), else, that it jumped over its threshold
    hypotheses: tuple["Hypothesis", ...]  # whose mixture says what was violated in a crash
    densities: tuple[tuple[tuple[Profile, float], ...], ...]  # of every threshold, with weights; none if not learnt
    numbers: tuple[int, ...]  # of the trials that were compared

    @property
    def silent(self) -> Array:
        """(G,), probability that the crashes do not bound a constraint's threshold."""
        return np.asarray(1.0 - (1.0 - self.innocent) * (1.0 - self.jumped))

    def interval(self, j: int) -> tuple[float, float] | None:
        """The 90 % interval of constraint j's threshold; open above where the crashes do not bound it."""
        if not self.densities[j]:
            return self.model.threshold_interval(j)
        return thresholds.interval_of(self.densities[j], float(self.silent[j]))

    @cached_property
    def blame(self) -> Array:
        """Of the crashes that were compared, (crashes, G), the probability that each was violated in each."""
        return np.asarray(sum(h.weight * h.blame() for h in self.hypotheses))

    def blame_in(self, seen: Observations) -> Array:
        """The same of all crashes of a study, also of those that were left out of the comparison."""
        compared = np.isin(seen.numbers, self.numbers)
        if compared.all():
            return self.blame
        own, others = np.flatnonzero(compared), np.flatnonzero(seen.crashed & ~compared)
        blame = np.empty((len(compared), self.blame.shape[1]))
        blame[compared & seen.crashed] = self.blame
        if len(others):
            blame[others] = sum(h.weight * h.blame_in(seen, own, others) for h in self.hypotheses)
        return blame[seen.crashed]


@dataclass(frozen=True)
class Hypothesis:
    """A crash model of some trials, and its probability."""

    posterior: Posterior
    weight: float
    by: tuple[Warp | None, ...]  # by which the readings were warped
    beside: bool = False  # whether another cause, that nobody measures, stands beside the constraints

    def blame(self) -> Array:
        """(crashes, G), the probability that each constraint was violated in each."""
        return CrashModel(self.posterior).blame()[:, : len(self.by)]

    def blame_in(self, seen: Observations, own: Rows, others: Rows) -> Array:
        """The same of `others` that crashed, given its `own` trials and them: as many at a time as it has itself."""
        lots = [others[i : i + len(own)] for i in range(0, len(others), len(own))]
        return np.concatenate([self._with(seen, own, lot) for lot in lots])

    def _with(self, seen: Observations, own: Rows, lot: Rows) -> Array:
        rows = np.sort(np.concatenate([own, lot]))
        some = _warped(seen.only(rows), list(self.by))
        data = _data(some, self.beside)
        hypers = tuple(
            h if std is None or np.ndim(h.noise_std) == 0 else replace(h, noise_std=data.per_row(std))
            for h, std in zip(self.posterior.hypers, (*some.noise_std, None), strict=False)
        )
        found = CrashModel(latent.condition(data, hypers, tolerance=_LOT_TOLERANCE)).blame()
        return np.asarray(found[np.isin(rows[some.crashed], lot), : len(self.by)])


def causes(models: Surrogates) -> Causes:
    """Compare the hypotheses on a study's trials; on those about the boundary, where there are many."""
    seen, alone, middle = models.boundary, _fitted(models), _middle(models)
    blame = CrashModel(middle).blame()
    G = blame.shape[1]
    unwarped = (None,) * G
    only = (Hypothesis(middle, 1.0, unwarped),)
    if not seen.crashed.any():
        densities = tuple(map(_only, map(alone.threshold_profile, range(G))))
        return Causes(alone, np.ones(G), np.zeros(G), only, densities, seen.numbers)
    scales = [_scales(seen, alone, j) for j in range(G)]
    mixed, jumped = tuple(map(_weighted, scales)), np.array(list(map(_jumped, scales)))
    if not all(alone.posterior.data.kind):  # what nobody measures is among them already
        return Causes(alone, _innocent(blame), jumped, only, mixed, seen.numbers)
    best = [max(of, key=lambda scale: scale.log_evidence).warp if of else None for of in scales]
    if any(best):
        seen = _warped(seen, best)
        alone = _alone(seen)
        middle = alone.posterior
        blame = alone.blame()
    beside = _beside(seen)
    p_alone, p_beside, p_rival = _probabilities(seen, alone, beside)
    shared = beside.blame()[:, :G]
    innocent = p_rival + (1.0 - p_rival) * _innocent(shared if p_beside > p_alone else blame)
    if p_beside > p_alone:
        found = (beside.threshold_profile(j) for j in range(G))
        mixed = tuple(_only(p and replace(p, warp=warp)) for p, warp in zip(found, best, strict=True))
    share = p_alone / max(p_alone + p_beside, np.finfo(float).tiny)
    both = (
        Hypothesis(middle, (1.0 - p_rival) * share, tuple(best)),  # all is theirs where it was told
        Hypothesis(beside.posterior, (1.0 - p_rival) * (1.0 - share), tuple(best), beside=True),
    )
    return Causes(alone, innocent, jumped, both, mixed, seen.numbers)


def _log_posterior(posterior: Posterior, p: Parametrisation) -> float:
    """Of one function's data and hyperparameters."""
    return posterior.log_evidence + p.log_prior(p.inside(posterior.hypers[0]))[0]


def _only(profile: Profile | None) -> tuple[tuple[Profile, float], ...]:
    return () if profile is None else ((profile, 1.0),)


def _weighted(scales: tuple[Scale, ...]) -> tuple[tuple[Profile, float], ...]:
    """The densities on all scales, with their probabilities."""
    weights = softmax([scale.log_evidence for scale in scales]).tolist() if scales else []
    return tuple((scale.profile, weight) for scale, weight in zip(scales, weights, strict=True))


def _jumped(scales: tuple[Scale, ...]) -> float:
    """The probability that the machine jumps over a constraint's threshold, on the likeliest of its scales."""
    return float(expit(max(scales, key=lambda scale: scale.log_evidence).log_odds_of_jump)) if scales else 0.0


def _innocent(blame: Array) -> Array:
    """The probability that no crash was of a constraint's making, from what each has of each."""
    return np.asarray(np.prod(1.0 - blame, axis=0))


def _fitted(models: Surrogates) -> CrashModel:
    """The crash model at the most probable hyperparameters, also where the search holds older ones."""
    whole = models.boundary is models.known
    if whole and models.fitted is not None:
        return models.crash_model
    of = models.crash_model.fitted
    assert of is not None
    start = models.memory.crash if whole else of.posterior.warm()
    found = fit(of.posterior.data, of.parametrisations, start=start, enough=ENOUGH)
    return CrashModel(found.posterior, found)


def _middle(models: Surrogates) -> Posterior:
    """The crash posterior at the medians of the thresholds, of the trials that are compared."""
    if models.boundary is models.known:
        return models.crash
    start = models.crash_model.posterior
    return latent.condition(start.data, models.crash.hypers, start=start.sites(), tolerance=_LOT_TOLERANCE)


def _data(seen: Observations, beside: bool) -> HybridData:
    if beside:
        return beside_data(seen.X, seen.Y, seen.crashed, seen.blame, seen.censored, seen.stopped, *seen.watched)
    return hybrid_data(seen.X, seen.Y, seen.crashed, seen.blame, seen.censored, seen.stopped, *seen.watched, whole=True)


def _scales(seen: Observations, model: CrashModel, j: int) -> tuple[Scale, ...]:
    """The likelier scales of constraint j's readings, while the other constraints are held."""
    assert model.fitted is not None
    p = model.fitted.parametrisations[j]
    if "threshold" not in p.learnt or not thresholds.has_meaning(p):
        return ()
    plain = model.posterior.alone(j)
    data, y = plain.data, plain.data.Y[0]
    none, *others = warps(y, p.scale)
    found = [Scale.of(plain, p, None, math.log(none.prior), y)]
    for warp in others if not p.is_given else ():
        warped = data.with_readings(warp)
        noise = _warped_noise(seen.noise_std[j], warp, _readings(seen)[:, j])
        noise = None if noise is None else data.per_row(noise)
        parts = parametrise_all(warped, seen.crash_prior, noise_std=(noise,), thresholds=(None,))
        start = replace(parts[0].outside(parts[0].start), lengthscales=plain.hypers[0].lengthscales)
        posterior = fit(warped, parts, start=Warm((start,), warped.kind), enough=ENOUGH).posterior
        found.append(Scale.of(posterior, parts[0], warp, math.log(warp.prior), y))
    best = max(scale.log_weight for scale in found)
    return tuple(scale for scale in found if scale.log_weight > best - _BEHIND)


def _warped_noise(noise: float | Array | None, warp: Warp, y: Array) -> float | Array | None:
    """A noise that is given, on the warped scale, one per trial."""
    return noise if noise is None or not np.any(noise) else np.asarray(noise * warp.rate(y))


def _readings(seen: Observations) -> Array:
    """What was read in each trial, (n, G): of a crash that was watched, the last before it; NaN where nothing was."""
    return seen.Y if seen.reached is None else np.where(np.isnan(seen.Y), seen.reached, seen.Y)


def _warped(seen: Observations, by: list[Warp | None]) -> Observations:
    """The same trials with warped readings; thresholds that are given come with a scale that is not."""
    Y, reached = (_moved(rows, by) for rows in (seen.Y, seen.reached))
    noise = tuple(
        std if warp is None else _warped_noise(std, warp, y)
        for std, warp, y in zip(seen.noise_std, by, _readings(seen).T, strict=True)
    )
    rises = None if seen.rises is None else _moved(seen.watched[1], by) - reached  # type: ignore[operator]
    return replace(seen, Y=Y, reached=reached, rises=rises, noise_std=noise)  # type: ignore[arg-type]


def _moved(rows: Array | None, by: list[Warp | None]) -> Array | None:
    """Readings, (n, G), each column by its warp."""
    if rows is None:
        return None
    return np.stack([y if warp is None else warp(y) for y, warp in zip(rows.T, by, strict=True)], axis=1)


def _alone(seen: Observations) -> CrashModel:
    """The crash model of these trials."""
    return CrashModel.fit(
        seen.X,
        seen.Y,
        seen.crashed,
        blame=seen.blame,
        censored=seen.censored,
        stopped=seen.stopped,
        last=seen.watched[0],
        ahead=seen.watched[1],
        noise_std=list(seen.noise_std),
        threshold=list(seen.thresholds),
        prior=seen.crash_prior,
    )


def _beside(seen: Observations) -> CrashModel:
    """The crash model with a rare cause that nobody measures beside the constraints."""
    return fit_beside(
        seen.X,
        seen.Y,
        seen.crashed,
        seen.crash_prior,
        noise_std=seen.noise_std,
        thresholds=seen.thresholds,
        blame=seen.blame,
        censored=seen.censored,
        stopped=seen.stopped,
        last=seen.watched[0],
        ahead=seen.watched[1],
    )


def _probabilities(seen: Observations, alone: CrashModel, beside: CrashModel) -> Array:
    """Of the crash model, the one with a rival beside, and the rival alone, (3,)."""
    prior = seen.crash_prior
    rival = fit_bystander(alone.posterior.data, prior, noise_std=seen.noise_std, enough=ENOUGH)
    told = -np.inf if any(seen.blame or ()) else 0.0  # who gives a crash's cause says that it is measured
    logs = np.array([_log_evidence(alone), _log_evidence(beside), rival.log_posterior + told])
    return np.asarray(softmax(logs + np.log([1.0, _BESIDE, RIVAL])))


def _log_evidence(model: CrashModel) -> float:
    """Of a fit, its thresholds integrated over."""
    assert model.fitted is not None
    found = map(model.threshold_profile, range(len(model.posterior.hypers)))
    return model.fitted.log_posterior + sum(profile.log_width for profile in found if profile is not None)
