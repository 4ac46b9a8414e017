"""The hypothesis that what is measured has nothing to do with the crashes, to be compared with the crash model's.

May import numerics only.

The crash model explains every crash by a measured function above its threshold: p(Y, labels). Here the measurements
are plain regressions and the labels those of a function that nobody measures: p(Y) p(labels). Both are densities of the
same data in the same units, so their log posteriors at the most probable hyperparameters can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crashbo.models.crash import parametrise_all
from crashbo.models.fit import Fit, fit
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Warm
from crashbo.models.parametrisation import parametrise

Array = NDArray[np.float64]


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
        parametrise(y, sign, prior, dimension=data.X.shape[1], labelled=False, noise_std=std)
        for y, sign, std in zip(alone.Y, alone.sign, noise_std, strict=True)
    )
    bare = without_measurements(data)
    classifier = parametrise_all(bare, prior, noise_std=(None,), thresholds=(None,))
    return Bystander(fit(alone, regressions, start=measured), fit(bare, classifier, start=labels, enough=enough))


def without_labels(data: HybridData) -> HybridData:
    """The measurements alone, censored ones too."""
    none = np.zeros(len(data.X), dtype=bool)
    alone = replace(data, sign=np.where(data.bounded, data.sign, 0.0), joint=none, survived=None, last=None)
    if data.lower is not None:
        return alone
    rows = data.measured.any(axis=0)  # a trial without measurements says nothing, but takes time
    return HybridData(data.X[rows], data.Y[:, rows], alone.sign[:, rows], none[rows])


def without_measurements(data: HybridData) -> HybridData:
    """The labels alone, as those of one function that nobody measures."""
    rows = ~data.bounded
    crashed = (data.joint | np.any(data.sign < 0.0, axis=0))[rows]
    succeeded = np.any(data.sign > 0.0, axis=0)[rows]
    nothing = np.full((1, len(crashed)), np.nan)
    sign = np.where(crashed, -1.0, np.where(succeeded, 1.0, 0.0))[None]
    return HybridData(data.X[rows], nothing, sign, np.zeros(len(crashed), dtype=bool))
