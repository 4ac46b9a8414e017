"""P(safe) of a study: the one number that its users see and that its search keeps to.

May import models and below.

It has three stages, each made from the one before:
    averaged    the model's, over plausible hyperparameters and thresholds (see `models.ensemble`)
    wary        lower where nobody has been (see `acquisition`)
    corrected   by the outcomes of the study's own proposals (see `calibration`): this is P(safe)
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.models.ensemble import Ensemble
from crashbo.search.acquisition import LogGamma, ValueAndGradient
from crashbo.search.calibration import Calibration

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Safety:
    """log P(safe) of a study; `averaged` and `wary` are the stages before it, alike to call."""

    ensemble: Ensemble
    calibration: Calibration
    bystanders: Ensemble | None = None  # of what is measured, where that is not the cause
    limits: LogGamma | None = (
        None  # of what is measured then, where a threshold was given: it is to be kept all the same
    )

    @property
    def averaged(self) -> LogGamma:
        """The first stage: the model's own."""
        return LogGamma(self.ensemble)

    @cached_property
    def wary(self) -> LogGamma:
        """The second stage: what the correction is learnt from."""
        return LogGamma(self.ensemble, wary=True)

    @property
    def corrected(self) -> "Safety":
        """The last stage, which is this itself."""
        return self

    def __call__(self, X: Array) -> Array:
        """log P(safe) at X."""
        return self.stages(X)[1]

    def stages(self, X: Array) -> tuple[Array, Array]:
        """The wary stage and the last, both at X."""
        wary = self.wary(X)
        value = self.calibration.log_corrected(wary)[0]
        return wary, value if self.limits is None else value + self.limits(X)

    def with_gradient(self, X: Array) -> ValueAndGradient:
        """log P(safe) at X and its gradient."""
        log_p, in_log_p = self.wary.with_gradient(X)
        value, slope = self.calibration.log_corrected(log_p)
        gradient = slope[:, None] * in_log_p
        if self.limits is None:
            return value, gradient
        more, in_more = self.limits.with_gradient(X)
        return value + more, gradient + in_more

    @property
    def roughly(self) -> "Safety":
        """The same by the ensemble's first member alone, for many points."""
        return replace(self, ensemble=self.ensemble.middle)

    def violated(self, X: Array) -> Array:
        """Probability that each constraint is violated at X, (m, G).

        The correction says how likely a crash is; what would be violated in one is the model's to say.
        """
        model = self.wary if self.bystanders is None else LogGamma(self.bystanders, wary=True)
        before, after = -np.expm1(model(X)), -np.expm1(self(X))
        violated = model.violated(X)
        share = np.divide(violated, before[:, None], out=np.ones_like(violated), where=violated < before[:, None])
        return share * after[:, None]

    def with_crashes(self, X: Array) -> "Safety":
        """The same as if trials at X had crashed, at the same hyperparameters."""
        return replace(self, ensemble=self.ensemble.with_crashes(X))
