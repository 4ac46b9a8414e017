"""Maximising an acquisition over the unit cube: points to screen, and local ascents in one batch.

May import models and below.

All ascents are evaluated through the same vectorised posterior, so six cost little more than one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from crashbo.numerics import bfgs

Array = NDArray[np.float64]
WithGradient = Callable[[Array], tuple[Array, Array]]

# judgement: what an ascent may cost while trials are few
EVALUATIONS, ENOUGH = 35, 1e-3  # at most; gain of a step, in log acquisition, below which it ends
_FEW = 3  # dimensions that a Kronecker sequence fills well
_ITERATIONS = 64  # of a fixed point that converges in a dozen
_REACH = 0.1  # of one step of an ascent, in any coordinate
_DECADES = 2.5  # over which the sizes of perturbations spread
_MOVED = 0.3  # share of the coordinates that half of the perturbations move
# An ascent ends that would stay below the best if it gained this many times the predicted gain: along a floor an
# ascent predicts little and gains much.
# fitted: benchmarks/quality.py --problems eggcrate2d-corner --seeds 40: with 5, 11 ended above 0.05; with 30 three, as
# without
HOPELESS = 30.0


def spread_points(n: int, dimension: int, *, rng: np.random.Generator) -> Array:
    """n points spread evenly over the unit cube.

    In few dimensions a Kronecker sequence with a random shift, which fills every cell; in many, where it leaves
    holes along single axes, a Latin hypercube, with one point in each of n slices of every axis.
    """
    if dimension <= _FEW:
        sequence: Array = (rng.random(dimension) + np.outer(np.arange(n), kronecker(dimension))) % 1.0
        return sequence
    slices = rng.permuted(np.tile(np.arange(n), (dimension, 1)), axis=1).T
    points: Array = (slices + rng.random((n, dimension))) / n
    return points


def kronecker(dimension: int) -> Array:
    """The step of a low-discrepancy sequence: powers of the root of phi^(D+1) = phi + 1."""
    phi = 2.0
    for _ in range(_ITERATIONS):
        phi = (1.0 + phi) ** (1.0 / (dimension + 1))
    step: Array = phi ** -np.arange(1.0, dimension + 1.0)
    return step


def perturbations(centres: Array, n: int, scales: Array, *, rng: np.random.Generator) -> Array:
    """n points around each centre at random fractions of `scales`; half of them move a few coordinates only."""
    m, D = centres.shape
    steps = rng.standard_normal((m, n, D)) * scales * 10.0 ** rng.uniform(-_DECADES, 0.0, (m, n, 1))
    moving = rng.random((m, n, D)) < rng.choice([1.0, _MOVED], size=(m, n, 1))
    points: Array = np.clip(centres[:, None, :] + steps * moving, 0.0, 1.0).reshape(-1, D)
    return points


def ascend(
    objective: WithGradient,
    starts: Array,
    free: NDArray[np.bool_],
    low: Array | None = None,
    high: Array | None = None,
    *,
    widths: Array | None = None,
    evaluations: int = EVALUATIONS,
    enough: float = ENOUGH,
    hopeless: float = HOPELESS,
    around: Array | None = None,
) -> tuple[Array, Array | None]:
    """Where quasi-Newton ascent leads from each start, moving only the `free` coordinates between low and high.

    And how high; None where nothing was evaluated.

    `widths` are the relative length scales of the coordinates: the first steps are longer along wide ones. A start is
    `hopeless` that would stay below the best if it gained so many times what it predicts. With `around` each start
    keeps all coordinates within so much of where it began, and none ends because another is ahead.
    """
    if len(starts) == 0 or not free.any():
        return starts, None
    unit = np.ones(int(free.sum())) if widths is None else np.sqrt(widths[free] / widths[free].max())

    def negative(moved: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        X = moved * unit
        if not all_free:
            X, some = starts[rows], X
            X[:, free] = some
        value, gradient = objective(X)
        return -value, (gradient if all_free else gradient[:, free]) * -unit

    all_free = bool(free.all())

    low, high = np.zeros(len(free)) if low is None else low, np.ones(len(free)) if high is None else high
    if around is not None:
        low, high = np.maximum(low, starts - around[:, None]), np.minimum(high, starts + around[:, None])
    ends_at = (end[..., free] / unit for end in (low, high))
    found = bfgs.minimise(
        negative,
        starts[:, free] / unit,
        *ends_at,
        evaluations=evaluations,
        enough=enough,
        reach=_REACH,
        hopeless=hopeless if around is None else np.inf,
    )
    ends = starts.copy()
    ends[:, free] = np.clip(found.x * unit, low[..., free], high[..., free])
    return ends, -found.value


def diverse_best(X: Array, value: Array, n: int, apart: Array) -> NDArray[np.intp]:
    """Indices of up to n of the best points, no two closer than one in units of `apart`."""
    chosen: list[int] = []
    order = np.argsort(-value, kind="stable")
    while len(order) and len(chosen) < n:
        chosen.append(int(order[0]))
        gaps = (X[order] - X[order[0]]) / apart
        order = order[np.einsum("ij,ij->i", gaps, gaps) > 1.0]
    return np.array(chosen, dtype=np.intp)
