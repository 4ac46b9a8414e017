"""What made the crashes: what is measured, something that nobody measures, or both.

May import models and below.

Three hypotheses are compared by their evidence: every crash was a measured constraint's (the crash model); none was,
and the labels follow a function of their own (`models.bystander`); or some were, and a rare function that nobody
measures made the others. A threshold's interval, and the blame of a crash, are of their mixture.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from crashbo.models import hyperpriors
from crashbo.models.bystander import fit_beside, fit_bystander
from crashbo.models.crash import CrashModel
from crashbo.models.fit import fit
from crashbo.search.costs import ENOUGH
from crashbo.search.surrogates import Observations, Surrogates

Array = NDArray[np.float64]

# fitted: benchmarks/thresholds.py, on other seeds: prior odds, against the crash model, that crashes had another cause,
# all of them or some
_RIVAL, _BESIDE = 0.25, 0.25


class Causes(NamedTuple):
    """What the constraints had to do with the crashes."""

    model: CrashModel  # the likelier of those under which some crash was a measured constraint's
    innocent: Array  # (G,), probability that no crash was of this constraint's making
    blame: Array  # (crashes, G), probability that each was violated in each

    def interval(self, j: int) -> tuple[float, float] | None:
        """The 90 % interval of constraint j's threshold; open above where the crashes do not bound it."""
        return self.model.threshold_interval(j, float(self.innocent[j]))


def causes(seen: Observations, models: Surrogates) -> Causes:
    """Compare the hypotheses on a study's trials."""
    alone, blame = models.crash_model, CrashModel(models.crash).blame()
    G = blame.shape[1]
    if not seen.crashed.any():
        return Causes(alone, np.ones(G), blame)
    if not all(alone.posterior.data.kind):  # what nobody measures is among them already
        return Causes(alone, _innocent(blame), blame)
    beside = _beside(seen)
    p_alone, p_beside, p_rival = _probabilities(seen, models, beside)
    shared = beside.blame()[:, :G]
    likelier, of_likelier = (beside, shared) if p_beside > p_alone else (alone, blame)
    innocent = p_rival + (1.0 - p_rival) * _innocent(of_likelier)
    return Causes(likelier, innocent, p_alone * blame + p_beside * shared)


def _innocent(blame: Array) -> Array:
    """The probability that no crash was of a constraint's making, from what each has of each."""
    return np.asarray(np.prod(1.0 - blame, axis=0))


def _beside(seen: Observations) -> CrashModel:
    """The crash model with a rare cause that nobody measures beside the constraints."""
    return fit_beside(
        seen.X,
        seen.Y,
        seen.crashed,
        hyperpriors.of_crash(seen.X.shape[1]),
        noise_std=seen.noise_std,
        thresholds=seen.thresholds,
        blame=seen.blame,
        censored=seen.censored,
    )


def _probabilities(seen: Observations, models: Surrogates, beside: CrashModel) -> Array:
    """Of the crash model, the one with a rival beside, and the rival alone, (3,)."""
    data, kept = models.crash.data, models.memory.bystander
    starts = {} if kept is None else {"measured": kept.measured, "labels": replace(kept.labels, sites=None)}
    prior = hyperpriors.of_crash(seen.X.shape[1])
    rival = fit_bystander(data, prior, noise_std=seen.noise_std, enough=ENOUGH, **starts)
    fitted = models.fitted or fit(data, models.parametrisations, start=models.memory.crash, enough=ENOUGH)
    alone = fitted.log_posterior + _log_widths(models.crash_model)
    assert beside.fitted is not None
    both = beside.fitted.log_posterior + _log_widths(beside)
    told = -np.inf if any(seen.blame or ()) else 0.0  # who gives a crash's cause says that it is measured
    logs = np.array([alone, both, rival.log_posterior + told]) + np.log([1.0, _BESIDE, _RIVAL])
    return np.asarray(softmax(logs))


def _log_widths(model: CrashModel) -> float:
    """What the evidence falls short of the most probable thresholds' density by."""
    found = map(model.threshold_profile, range(len(model.posterior.hypers)))
    return sum(profile.log_width for profile in found if profile is not None)
