"""Reliability: of trials with P(safe) near p, what share succeeds?

May import every other layer. Gathers the data that `plots` draws.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crashbo.optimizer.records import Trial

Array = NDArray[np.float64]

_BINS = 10


@dataclass(frozen=True)
class Reliability:
    """Predictions in bins of equal width, against outcomes; NaN in empty bins."""

    name: str
    edges: Array  # (bins + 1,)
    predicted: Array  # (bins,), mean prediction
    observed: Array  # (bins,), share that succeeded
    std: Array  # (bins,), of the observed share if the predictions are calibrated
    counts: NDArray[np.intp]

    @property
    def gaps(self) -> Array:
        """Predicted minus observed, per bin: positive if the model is overconfident."""
        return self.predicted - self.observed

    def worst(self, least: int = 100) -> float:
        """The largest absolute gap among bins with at least this many trials; 0 if there is none."""
        return float(np.max(np.abs(self.gaps), where=self.counts >= least, initial=0.0))


def gather(p_safe: ArrayLike, succeeded: ArrayLike, name: str = "trials", bins: int = _BINS) -> Reliability:
    """Predictions and outcomes, in bins of P(safe)."""
    p, s = np.asarray(p_safe, dtype=float), np.asarray(succeeded, dtype=bool)
    if p.shape != s.shape or p.ndim != 1 or not np.all((p >= 0.0) & (p <= 1.0)):
        raise ValueError(
            f"p_safe must be probabilities, one an outcome; got shape {p.shape} for {s.shape}. Leave out what has none."
        )
    edges = np.linspace(0.0, 1.0, bins + 1)
    own = np.clip(np.digitize(p, edges) - 1, 0, bins - 1)
    counts = np.bincount(own, minlength=bins)

    def mean(values: Array) -> Array:
        total = np.bincount(own, weights=values, minlength=bins)
        return np.asarray(np.divide(total, counts, out=np.full(bins, np.nan), where=counts > 0))

    spread = np.sqrt(mean(p * (1.0 - p)) / np.maximum(counts, 1))
    return Reliability(name, edges, mean(p), mean(s.astype(float)), spread, counts)


def of_trials(trials: Iterable[Trial], name: str = "proposed trials") -> Reliability:
    """The reliability of a study's own proposals, with P(safe) as reported."""
    told = [t for t in trials if t.origin == "search" and t.p_safe is not None and t.counts]
    p = np.array([t.p_safe for t in told], dtype=float)
    return gather(p, np.array([t.state == "success" for t in told], dtype=bool), name)


def table(found: Sequence[Reliability]) -> str:
    """Counts, predicted and observed shares as a text table."""
    lines = ["P(safe)     " + "".join(f"{r.name:>26s}" for r in found)]
    lines.append("            " + f"{'n  predicted  observed':>26s}" * len(found))
    for k in range(len(found[0].counts)):
        low, high = found[0].edges[k : k + 2]
        cells = [f"{r.counts[k]:>8d}{r.predicted[k]:9.2f}{r.observed[k]:9.2f}" if r.counts[k] else "0" for r in found]
        lines.append(f"{low:.1f} to {high:.1f}  " + "".join(f"{cell:>26s}" for cell in cells))
    return "\n".join(lines)
