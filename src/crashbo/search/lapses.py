"""Crashes that have nothing to do with their parameters: found as those that the other trials leave unexplained.

May import models and below.

The crash model explains every crash by its place. Here a share of all trials crashes wherever it is, and only the other
crashes are the model's to explain. Which ones is found by turns: fit the others, and call a crash a lapse where that
fit thinks it less likely than a lapse. The share is integrated over its prior. Both hypotheses are densities of the
same data at their most probable hyperparameters, so they can be compared, as in `models.bystander`.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from crashbo.models.crash import CrashModel, hybrid_data, parametrise_all
from crashbo.models.fit import Fit, fit
from crashbo.search.costs import ENOUGH
from crashbo.search.observations import Observations
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LATEST = 300  # judgement: trials that are looked at, what time allows
_ROUNDS = 4  # judgement: by then it hardly changes
_RARE = 9.0  # judgement: one trial in ten crashes by chance, in the mean of the prior, Beta(1, 9)


class Lapses(NamedTuple):
    """Crashes that are better explained by chance than by their places."""

    evidence: float  # nats over the crash model, which explains them all
    rows: tuple[int, ...]  # among the trials that were told
    p_safe: Array  # of each of them, by all others


NO_LAPSES = Lapses(0.0, (), np.zeros(0))  # derived: nothing to find


def lapses(seen: Observations, models: Surrogates) -> Lapses:
    """The crashes that the others leave unexplained, and the evidence for it."""
    skipped = max(len(seen.numbers) - _LATEST, 0)
    seen = seen.only(np.arange(skipped, len(seen.numbers)))
    crashes, n = np.flatnonzero(seen.crashed & ~_blamed(seen)), len(seen.numbers)
    if len(crashes) < 2 or not seen.succeeded.any():
        return NO_LAPSES
    whole, best = _fitted(seen, models), NO_LAPSES
    for chance in (np.ones(len(crashes), dtype=bool), _unexplained(whole, crashes)):
        for _ in range(_ROUNDS):
            k = int(chance.sum())
            if not k:
                break
            rest = np.ones(n, dtype=bool)
            rest[crashes[chance]] = False
            fitted = _fitted(seen.only(np.flatnonzero(rest)), models)
            evidence = fitted.log_posterior + _log_share(k, n) - whole.log_posterior
            p = np.asarray(CrashModel(fitted.posterior).p_safe(seen.X[crashes]))
            if evidence > best.evidence:
                best = Lapses(evidence, tuple(int(i) for i in skipped + crashes[chance]), p[chance])
            before, chance = chance, (1.0 - p) * (n - k + _RARE) < k + 1.0
            if np.array_equal(before, chance):
                break
    return best


def _log_share(k: int, n: int) -> float:
    """Log probability that these k of n trials crash by chance, over the prior of the share."""
    return float(betaln(k + 1.0, n - k + _RARE) - betaln(1.0, _RARE))


def _unexplained(whole: Fit, crashes: NDArray[np.intp]) -> Bools:
    """Crashes that the crash model takes for successes, by the other trials."""
    return np.asarray(whole.posterior.ep.tilted.log_mass[crashes] < np.log(0.5))


def _fitted(seen: Observations, models: Surrogates) -> Fit:
    """The crash model of these trials."""
    data = hybrid_data(seen.X, seen.Y, seen.crashed, seen.blame, seen.censored, seen.stopped, *seen.watched, whole=True)
    parts = parametrise_all(data, seen.crash_prior, noise_std=seen.noise_std, thresholds=seen.thresholds)
    warm = models.memory.crash
    return fit(data, parts, start=None if warm is None else replace(warm, sites=None), enough=ENOUGH)


def _blamed(seen: Observations) -> Bools:
    return np.array([bool(b) for b in seen.blame or [None] * len(seen.numbers)], dtype=bool)
