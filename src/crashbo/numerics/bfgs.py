"""Quasi-Newton descent within a box, from several starts at once, each with its own model and step length.

May import numpy and scipy only.

Notation, for m starts in D dimensions:
    x, f, g   points, values and gradients, (m, D), (m,), (m, D)
    H         the BFGS model of the inverse Hessian, (m, D, D)
    d, t      direction and step length; a trial point is x + t d, moved to within the box

One call of the objective evaluates one trial point of every active start. The line search backtracks (Armijo), for
each start on its own: those that descend move on, the others shorten their step, and none waits for another.
Coordinates at a bound that the gradient pushes outwards stay there. (SciPy's L-BFGS-B takes one start at a time, with
several times the overhead for functions that take a millisecond, and importing it takes longer than all else here.)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]

_ARMIJO = 1e-4
_CURVED = 1e-10  # relative: a step along which the slope grows by less says nothing about the curvature
_STRETCH = 4.0  # growth of a model that met no curvature
_BEGUN = 5  # evaluations before which no start is judged hopeless
_IDLE = 2  # steps in a row that gained too little, after which a start ends
_SHORTEST = 1e-10  # step length at which a start is abandoned


@dataclass(frozen=True)
class Descent:
    """Where each start led."""

    x: Array
    value: Array
    evaluations: int


def minimise(
    objective: Objective,
    starts: Array,
    low: Array,
    high: Array,
    *,
    evaluations: int,
    enough: float,
    reach: float,
    metric: Callable[[], Array] | None = None,
    renewed: float = np.inf,
    hopeless: float = np.inf,
) -> Descent:
    """Descend from every start until two steps in a row gain less than `enough`, or one that predicted as little.

    Args:
        objective: values (k,) and gradients (k, D) at k points, given with the indices of the starts they belong to.
            Where they are not finite a start backtracks, or ends if it is at its first point.
        starts: (m, D), within the box.
        low: least coordinates, (D,), or of each start, (m, D).
        high: largest coordinates, likewise.
        evaluations: at most this many.
        enough: the gain below which going on does not pay.
        reach: no step moves a coordinate by more; the first does by as much, if nothing is known of the curvature.
        metric: an initial H, called once the starts have been evaluated.
        renewed: after a step that gained more, H is taken from `metric` again: it came from far away.
        hopeless: where only the best end counts: a start ends that would stay behind the best of all if it gained this
            many times the predicted gain.
    """
    ends, rows = np.array(starts), np.arange(len(starts))
    low, high = np.broadcast_to(low, ends.shape), np.broadcast_to(high, ends.shape)
    x, (values, g) = ends.copy(), objective(ends, rows)
    values, used, lowest = np.array(values), 1, float(np.fmin.reduce(values))
    H = np.tile(np.eye(x.shape[1]), (len(x), 1, 1)) if metric is None else metric()
    finite = np.isfinite(values) & np.isfinite(g).all(axis=1)
    active = [_Start(f, metric is None, ok) for f, ok in zip(values.tolist(), finite.tolist(), strict=True)]
    d = np.zeros_like(x)
    while True:
        if turned := [i for i, start in enumerate(active) if start.turned]:
            d_new, slopes, lengths = _direction(x, g, H, low, high)
            d[_index(turned, len(d))] = d_new[_index(turned, len(d))]
            for i in turned:
                start, slope, most = active[i], slopes[i], reach / max(lengths[i], 1e-300)
                start.t = most if start.fresh else min(most, 1.0)
                start.alive &= slope < 0.0 and (slope <= -2.0 * enough or start.idle == 0)
                if used >= _BEGUN and hopeless < np.inf:
                    start.alive &= start.f + 0.5 * hopeless * slope <= lowest
        alive = [i for i, start in enumerate(active) if start.alive]
        if len(alive) < len(active):  # those that ended leave the batch
            ends[rows], values[rows] = x, [start.f for start in active]
            rows = rows[alive]
            x, g, H, d, low, high = (a[alive] for a in (x, g, H, d, low, high))
            active = [active[i] for i in alive]
        if used >= evaluations or not active:
            ends[rows], values[rows] = x, [start.f for start in active]
            return Descent(ends, values, used)
        t = np.array([start.t for start in active])
        x_new = np.minimum(np.maximum(x + t[:, None] * d, low), high)
        f_new, g_new = objective(x_new, rows)
        used += 1
        step = _Step.of(x_new - x, g_new - g, g)
        finite = np.isfinite(f_new) & np.isfinite(g_new).all(axis=1)
        on, taught, far = [], [], []
        for i, (start, f, usable, slope, sy) in enumerate(
            zip(active, f_new.tolist(), finite.tolist(), step.slope, step.sy, strict=True)
        ):
            if usable and f <= start.f + _ARMIJO * slope:
                on.append(i)
                taught.append(i)
                if start.f - f > renewed:
                    far.append(i)
                start.moved(f, enough)
                lowest = min(lowest, f)
                continue
            start.t *= _shrinkage((f if usable else np.inf) - start.f, slope)
            start.alive, start.turned = start.t >= _SHORTEST, False
            if metric is not None:
                # A model that began with a scale learns from a failed step, once per point, and takes a new direction.
                if usable and not start.failed and sy > 0.0:
                    taught.append(i)
                    start.turned = start.alive
                start.failed = True
        if taught:
            _teach(H, step, taught, [start.fresh for start in active])
        if metric is not None and far:
            H[far] = metric()[rows[far]]
        if on:
            moved = _index(on, len(active))
            x[moved], g[moved] = x_new[moved], g_new[moved]
            for i in on:
                active[i].fresh = False


@dataclass(slots=True)
class _Start:
    """What one start on its way knows beside its point, direction and model."""

    f: float
    fresh: bool  # nothing is known of the curvature yet
    alive: bool
    turned: bool = True  # a new direction is needed
    t: float = 1.0
    idle: int = 0  # steps in a row that gained too little
    failed: bool = False  # a step from the present point did

    def moved(self, f: float, enough: float) -> None:
        """It has descended."""
        self.idle = self.idle + 1 if self.f - f < enough else 0
        self.f, self.failed = f, False
        self.alive = self.turned = self.idle < _IDLE


class _Step(NamedTuple):
    """Steps s that changed the gradients by y, and their products row by row, as numbers."""

    s: Array
    y: Array
    slope: list[float]  # g's before the step
    sy: list[float]
    yy: list[float]
    ss: list[float]

    @staticmethod
    def of(s: Array, y: Array, g: Array) -> "_Step":
        rows = np.stack((g, s, y), axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # where a gradient is not finite, or huge
            products = np.matmul(rows, rows.swapaxes(1, 2))
        return _Step(s, y, *(products[:, i, j].tolist() for i, j in ((0, 1), (1, 2), (2, 2), (1, 1))))


def _index(rows: list[int], of: int) -> Any:
    """An index of these rows; a slice, which copies nothing, where they are all."""
    return slice(None) if len(rows) == of else rows


def _dots(a: Array, b: Array) -> Array:
    """Row by row."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _direction(x: Array, g: Array, H: Array, low: Array, high: Array) -> tuple[Array, list[float], list[float]]:
    """Descent directions that leave coordinates at their bounds alone, the slopes along them, their largest parts."""
    lowest, highest = x <= low, x >= high
    bounded = (lowest | highest).any()
    if bounded:
        held = (lowest & (g > 0.0)) | (highest & (g < 0.0))
        g = np.where(held, 0.0, g)
    d = -np.matmul(H, g[:, :, None])[:, :, 0]
    if bounded:
        # A model that mixes coordinates may push others out of the box: those are held as well.
        d[held | (lowest & (d < 0.0)) | (highest & (d > 0.0))] = 0.0
    slopes = _dots(g, d).tolist()
    lost = [i for i, slope in enumerate(slopes) if not -np.inf < slope < 0.0]  # the model may overflow
    if lost:
        d[lost] = -g[lost]
        slopes = _dots(g, d).tolist()
    return d, slopes, np.maximum.reduce(np.abs(d), axis=1).tolist()


def _teach(H: Array, step: _Step, rows: list[int], fresh: list[bool]) -> None:
    """BFGS: the models of these rows after their steps."""
    curved = [step.yy[i] > 0.0 and step.sy[i] > _CURVED * math.sqrt(step.ss[i] * step.yy[i]) for i in rows]
    rho = np.array([1.0 / step.sy[i] if bends else 0.0 for i, bends in zip(rows, curved, strict=True)])
    some = _index(rows, len(H))
    old, s, y = H[some], step.s[some], step.y[some]
    if not all(curved) or any(fresh[i] for i in rows):
        # The first update scales a model by the curvature along the step; without curvature it is stretched.
        scale = [
            (step.sy[i] / step.yy[i] if fresh[i] else 1.0) if bends else _STRETCH
            for i, bends in zip(rows, curved, strict=True)
        ]
        old, y = old * np.array(scale)[:, None, None], np.where(np.array(curved)[:, None], y, 0.0)
    Hy = np.matmul(old, y[:, :, None])[:, :, 0]
    # Both rank-one updates, and their transposes, at once.
    v = (0.5 + 0.5 * rho * _dots(y, Hy))[:, None] * s - Hy
    across = v[:, :, None] * (rho[:, None] * s)[:, None, :]
    H[some] = old + across + across.swapaxes(1, 2)


def _shrinkage(rise: float, slope: float) -> float:
    """By how much to shorten a step that changed the value by `rise`: about to the minimum of a parabola."""
    bend = rise - slope
    return min(max(-0.5 * slope / bend, 0.1), 0.5) if 0.0 < bend < np.inf else 0.1
