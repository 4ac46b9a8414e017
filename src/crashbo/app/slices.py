"""The paper's two-dimensional slice through both models of a jumping study. May import every other layer.

Gathers what `jump_plots` draws; draws nothing itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.app.demo import Story
from crashbo.models import GP, GPCR

Array = NDArray[np.float64]

_POINTS = 61  # of the grid along an axis


@dataclass(frozen=True)
class Slice:
    """Both models over the P gains, the D gains held; rows go with p_hip, columns with p_knee."""

    grid: Array  # (n,), of either axis
    held: tuple[float, float]  # d_knee, d_hip
    height: Array  # (n, n), mean of the cost's GP, as a height
    current: Array  # (n, n), mean of GPCR
    p_safe: Array  # (n, n), of tripping alone
    threshold: float | None
    successes: Array  # (k, 4)
    tripped: Array  # (l, 4)
    fallen: Array  # (m, 4)
    best: Array  # (4,)


def gather(story: Story) -> Slice:
    """Fit both models to a study's trials, and look at them through the best setting's D gains.

    Falls are left out of the current's model: the current is not their cause.
    """
    X = np.array([list(t.params.values()) for t in story.trials])
    crashed = np.array([t.state == "crash" for t in story.trials])
    fell = np.array([t.reason.startswith("fell") for t in story.trials])
    costs = np.array([np.nan if t.cost is None else t.cost for t in story.trials])
    currents = np.array([t.measured.get("current", np.nan) for t in story.trials])
    again = story.confirmed
    best = np.array(list(again.params.values())) if again is not None else X[np.nanargmin(costs)]
    cost_model = GP.fit(X[~crashed], costs[~crashed])
    crash_model = GPCR.fit(X[~fell], currents[~fell], crashed[~fell])
    grid = np.linspace(0.0, 1.0, _POINTS)
    knee, hip = np.meshgrid(grid, grid)
    at = np.column_stack([knee.ravel(), hip.ravel(), np.tile(best[2:], (knee.size, 1))])
    shape = (_POINTS, _POINTS)
    return Slice(
        grid=grid,
        held=(float(best[2]), float(best[3])),
        height=-cost_model.predict(at)[0].reshape(shape),
        current=crash_model.predict(at)[0].reshape(shape),
        p_safe=crash_model.p_safe(at).reshape(shape),
        threshold=crash_model.threshold,
        successes=X[~crashed],
        tripped=X[crashed & ~fell],
        fallen=X[fell],
        best=best,
    )
