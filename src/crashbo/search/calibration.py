"""Calibration of P(safe) by the outcomes of a study's own proposals.

May import numerics only.

A search prefers x whose P(safe) is over-estimated, and a model may be over- or underconfident about one machine. So
the log odds of the model's P(safe) are corrected by a slope a and a shift b (Platt scaling), the most probable ones
given the outcomes of the last proposals:
    prod_i p_i'^success_i (1 - p_i')^failure_i N(a; 1, _SLOPE_SPREAD^2) N(b; 0, _SHIFT_SPREAD^2),
    logit p_i' = a logit p_i + b.
A trial that was stopped before it could crash did not succeed, and would more likely have crashed. It is the last stage
of a study's P(safe) (see `safety`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

Array = NDArray[np.float64]

# judgement: made after looking at crashes on the paper's benchmarks; benchmarks/calibration.py shows the outcome
_LATELY = 30  # last proposals that count: a model changes as it learns
_SLOPE_SPREAD = 0.3
_SHIFT_SPREAD = 0.7
_LEAST_SLOPE = 0.2
_MOST = 0.999  # predictions are clipped to this
_STEPS = 20  # of Newton's method, damped; the log posterior is concave
_TOLERANCE = 1e-10
_LEAST = 1e-12  # of P(crash): a sum of floats knows no less, and log odds stay finite
_LOG_MOST = float(np.log1p(-_LEAST))  # derived: of P(safe)


@dataclass(frozen=True)
class Calibration:
    """The correction of a study's P(safe)."""

    slope: float = 1.0
    shift: float = 0.0

    @staticmethod
    def of(predicted: Array, failed: NDArray[np.bool_]) -> "Calibration":
        """From the trials in order, with the P(safe) that the model predicted; NaN where the search did not propose."""
        proposed = np.flatnonzero(~np.isnan(predicted))[-_LATELY:]
        z = logit(np.clip(predicted[proposed], 1.0 - _MOST, _MOST))
        inputs = np.stack([z, np.ones_like(z)])
        spreads, usual = np.array([_SLOPE_SPREAD, _SHIFT_SPREAD]), np.array([1.0, 0.0])
        found, precision = usual.copy(), np.diag(spreads**-2.0)
        for _ in range(_STEPS):
            p = expit(found @ inputs)
            slope = inputs @ (~failed[proposed] - p) - (found - usual) / spreads**2
            (a, b), (_, c) = (inputs * (p * (1.0 - p))) @ inputs.T + precision
            step = np.array([c * slope[0] - b * slope[1], a * slope[1] - b * slope[0]]) / (a * c - b * b)
            found += np.clip(step, -1.0, 1.0)
            if np.abs(step).max() < _TOLERANCE:
                break
        return Calibration(max(float(found[0]), _LEAST_SLOPE), float(found[1]))

    def corrected(self, p: float) -> float:
        """The corrected P(safe), given the model's."""
        with np.errstate(divide="ignore"):
            return float(np.exp(self.log_corrected(np.log(np.array([p])))[0][0]))

    def log_corrected(self, log_p: Array) -> tuple[Array, Array]:
        """log p' given log p, and its slope in log p."""
        # In logarithms p may be as small as it likes: there log p' = a log p + b. A p of all but 1 is cut.
        bounded = np.minimum(log_p, _LOG_MOST)
        crash = -np.expm1(bounded)
        z = self.slope * (bounded - np.log(crash)) + self.shift
        slope = np.where(log_p < _LOG_MOST, self.slope * expit(-z) / crash, 0.0)
        return np.asarray(log_expit(z)), slope
