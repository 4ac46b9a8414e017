"""Shared by the privileged strategies: known thresholds, and constraints that are measured in crashes, too.

May import search and below.

They see nothing that the study was not told: thresholds come from its constraints, measurements from its crashes,
and both are there only where the user, or `problem.informed()`, gives them.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crashbo.models.fit import fit
from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Posterior
from crashbo.models.parametrisation import parametrise
from crashbo.search.observations import GivenThreshold, Observations

Array = NDArray[np.float64]

_REMEDY = "A benchmark's informed() view has all that; 'eicc' needs none of it"


def check_thresholds(name: str, thresholds: tuple[GivenThreshold, ...]) -> None:
    """Refuse a study that has to learn a threshold."""
    unknown = [c for c in thresholds if not isinstance(c, float)]
    if unknown:
        raise ValueError(f"strategy {name!r} must be told every crash threshold; got {unknown[0]}. {_REMEDY}.")


def check_measurements(name: str, seen: Observations) -> None:
    """Refuse a crash that left anything unmeasured."""
    blind = seen.crashed & np.isnan(seen.Y).any(axis=1)
    if blind.any():
        number = seen.numbers[int(np.argmax(blind))]
        raise ValueError(
            f"strategy {name!r} must have every constraint measured in crashes, too; got trial {number} without. "
            f"{_REMEDY}."
        )


def measured_alone(seen: Observations) -> HybridData:
    """All measurements, those of crashes too, and no labels: data for plain regression."""
    return HybridData(seen.X, seen.Y.T, np.zeros_like(seen.Y.T), np.zeros(len(seen.X), dtype=bool))


def regressions(seen: Observations) -> Posterior:
    """One plain GP per constraint, with its known threshold."""
    data, D = measured_alone(seen), seen.X.shape[1]
    prior = replace(seen.crash_prior, crash_noise_std=0.0)
    parametrisations = tuple(
        parametrise(y, sign, prior, dimension=D, labelled=False, noise_std=noise_std, threshold=c)
        for y, sign, noise_std, c in zip(data.Y, data.sign, seen.noise_std, seen.thresholds, strict=True)
    )
    return fit(data, parametrisations).posterior
