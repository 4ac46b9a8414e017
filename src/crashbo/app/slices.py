"""The paper's two-dimensional slice through both models of a jumping study. May import every other layer.

Gathers the data that `jump_plots` draws.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.app.demo import Story

Array = NDArray[np.float64]

_POINTS = 61  # of the grid along an axis


@dataclass(frozen=True)
class JumpSlice:
    """Both models over the P gains with the D gains fixed; rows are p_hip, columns p_knee."""

    grid: Array  # (n,), of both axes
    held: tuple[float, float]  # d_knee, d_hip
    height: Array  # (n, n), mean of the cost model, as a height
    current: Array  # (n, n), mean of the current's model
    threshold: float | None  # as the study learnt it
    successes: Array  # (k, 4)
    tripped: Array  # (l, 4)
    fallen: Array  # (m, 4)
    stopped: Array  # (s, 4)
    best: Array  # (4,)


def gather(story: Story) -> JumpSlice:
    """Evaluate the optimiser's models at the D gains of the best setting; needs at least one success."""
    X = np.array([list(t.params.values()) for t in story.trials])
    crashed = np.array([t.state == "crash" for t in story.trials])
    fell = np.array([t.reason.startswith("fell") for t in story.trials])
    costs = np.array([np.nan if t.cost is None else t.cost for t in story.trials])
    again = story.confirmed
    best = np.array(list(again.params.values())) if again is not None else X[np.nanargmin(costs)]
    grid = np.linspace(0.0, 1.0, _POINTS)
    knee, hip = np.meshgrid(grid, grid)
    at = np.column_stack([knee.ravel(), hip.ravel(), np.tile(best[2:], (knee.size, 1))])
    expected = story.optimizer.predict([dict(zip(story.trials[0].params, map(float, x), strict=True)) for x in at])
    assert expected is not None
    assert expected.cost is not None
    shape = (_POINTS, _POINTS)
    return JumpSlice(
        grid=grid,
        held=(float(best[2]), float(best[3])),
        height=-expected.cost[0].reshape(shape),
        current=expected.measured["current"][0].reshape(shape),
        threshold=story.optimizer.thresholds["current"].value,
        successes=X[[t.state == "success" for t in story.trials]],
        tripped=X[crashed & ~fell],
        fallen=X[fell],
        stopped=X[[t.state == "stopped" for t in story.trials]],
        best=best,
    )
