"""Hypotheses to be compared with the crash model's: what is measured made none of the crashes, or not all of them.

May import numerics only.

The crash model explains every crash by a measured function above its threshold: p(Y, labels). Here the measurements
are plain regressions and the labels those of a function that nobody measures: p(Y) p(labels). Both are densities of the
same data in the same units, so their log posteriors at the most probable hyperparameters can be compared.

In between, a rare function that nobody measures stands beside the measured ones: a crash says that one of them lay
above its threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crashbo.models.crash import Blame, CrashModel, hybrid_data, parametrise_all
from crashbo.models.fit import Fit, fit
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Warm
from crashbo.models.parametrisation import parametrise

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Bystander:
    """Both parts of the hypothesis, fitted."""

    measured: Fit  # of the measurements, without labels
    labels: Fit  # of the labels, without measurements

    @property
    def log_posterior(self) -> float:
        """Of all data together, comparable with that of a crash model's fit."""
        return self.measured.log_posterior + self.labels.log_posterior


def fit_bystander(
    data: HybridData,
    prior: Hyperprior,
    *,
    noise_std: Sequence[float | Array | None],
    measured: Warm | None = None,
    labels: Warm | None = None,
    enough: float,
) -> Bystander:
    """Fit both parts to the data of a crash model, from warm starts where there are any."""
    alone = without_labels(data)
    regressions = tuple(
        parametrise(y, sign, prior, dimension=data.X.shape[1], labelled=False, noise_std=_kept(std, data))
        for y, sign, std in zip(alone.Y, alone.sign, noise_std, strict=True)
    )
    bare = without_measurements(data)
    classifier = parametrise_all(bare, prior, noise_std=(None,), thresholds=(None,))
    return Bystander(fit(alone, regressions, start=measured), fit(bare, classifier, start=labels, enough=enough))


def fit_beside(
    X: Array,
    Y: Array,
    crashed: Bools,
    prior: Hyperprior,
    *,
    noise_std: Sequence[float | Array | None],
    thresholds: Sequence[float | tuple[float, float] | None],
    blame: Blame = None,
    censored: Bools | None = None,
    stopped: Bools | None = None,
    last: Array | None = None,
    ahead: Array | None = None,
) -> CrashModel:
    """A crash model of the constraints and, as the last, a rare one that nobody measures."""
    data = beside_data(X, Y, crashed, blame, censored, stopped, last, ahead)
    per_row = (None if std is None else data.per_row(std) for std in noise_std)
    parts = parametrise_all(data, prior, noise_std=(*per_row, None), thresholds=(*thresholds, None))
    found = fit(data, parts)
    return CrashModel(found.posterior, found)


def beside_data(
    X: Array,
    Y: Array,
    crashed: Bools,
    blame: Blame,
    censored: Bools | None,
    stopped: Bools | None,
    last: Array | None,
    ahead: Array | None,
) -> HybridData:
    """The data of constraints with one more, as the last, that nobody measures."""
    nothing = np.full((len(X), 1), np.nan)
    cut = None if censored is None else np.hstack([censored, np.zeros((len(X), 1), dtype=bool)])
    before, after = (None if rows is None else np.hstack([rows, nothing]) for rows in (last, ahead))
    return hybrid_data(X, np.hstack([Y, nothing]), crashed, blame, cut, stopped, before, after, whole=True)


def without_labels(data: HybridData) -> HybridData:
    """The measurements alone, censored ones too."""
    none = np.zeros(len(data.X), dtype=bool)
    alone = replace(data, sign=np.where(data.bounded, data.sign, 0.0), joint=none, survived=None, last=None, ahead=None)
    if data.lower is not None:
        return alone
    rows = _informative(data)
    return HybridData(data.X[rows], data.Y[:, rows], alone.sign[:, rows], none[rows])


def _kept(noise_std: float | Array | None, data: HybridData) -> float | Array | None:
    """A noise, or one per trial, as one per row of `without_labels`."""
    if noise_std is None or np.ndim(noise_std) == 0:
        return noise_std
    rows = data.per_row(noise_std)
    return rows if data.lower is not None else np.asarray(rows)[_informative(data)]


def _informative(data: HybridData) -> Bools:
    """Trials with a measurement: others say nothing without their labels, but take time."""
    return np.asarray(data.measured.any(axis=0))


def without_measurements(data: HybridData) -> HybridData:
    """The labels alone, as those of one function that nobody measures."""
    rows = ~data.bounded
    crashed = (data.joint | np.any(data.sign < 0.0, axis=0))[rows]
    succeeded = np.any(data.sign > 0.0, axis=0)[rows]
    nothing = np.full((1, len(crashed)), np.nan)
    sign = np.where(crashed, -1.0, np.where(succeeded, 1.0, 0.0))[None]
    return HybridData(data.X[rows], nothing, sign, np.zeros(len(crashed), dtype=bool))
