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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    ends, values = np.array(starts), np.empty(len(starts))
    rows, low, high = np.arange(len(ends)), np.broadcast_to(low, ends.shape), np.broadcast_to(high, ends.shape)
    x, (values[:], g) = ends.copy(), objective(ends, rows)
    f, used, lowest = values.copy(), 1, float(np.fmin.reduce(values))
    H = np.tile(np.eye(x.shape[1]), (len(x), 1, 1)) if metric is None else metric()
    fresh = np.full(len(x), metric is None)  # starts with no knowledge of the curvature yet
    idle = np.zeros(len(x), dtype=int)
    d, t = np.zeros_like(x), np.ones(len(x))
    failed = np.zeros(len(x), dtype=bool)  # starts of which a step from the present point failed
    alive = np.isfinite(f) & np.isfinite(g).all(axis=1)
    turned = alive  # starts that need a new direction
    while True:
        if turned.any():
            d_new, slope = _direction(x, g, H, low, high)
            most = reach / np.maximum(np.abs(d_new).max(axis=1), 1e-300)
            t_new = np.where(fresh, most, np.minimum(most, 1.0))
            going = (slope < 0.0) & ((slope <= -2.0 * enough) | (idle == 0))
            if used >= _BEGUN and hopeless < np.inf:
                going &= f + 0.5 * hopeless * slope <= lowest
            if turned.all():
                d, t, alive = d_new, t_new, alive & going
            else:
                d, t = np.where(turned[:, None], d_new, d), np.where(turned, t_new, t)
                alive = np.where(turned, alive & going, alive)
        if not alive.all():  # those that ended leave the batch
            at = rows[~alive]
            ends[at], values[at] = x[~alive], f[~alive]
            kept: list[Any] = [a[alive] for a in (rows, x, f, g, H, d, t, low, high, idle, fresh, failed)]
            rows, x, f, g, H, d, t, low, high, idle, fresh, failed = kept
        if used >= evaluations or not len(rows):
            ends[rows], values[rows] = x, f
            return Descent(ends, values, used)
        x_new = np.minimum(np.maximum(x + t[:, None] * d, low), high)
        f_new, g_new = objective(x_new, rows)
        used += 1
        s, y = x_new - x, g_new - g
        slope = _dots(g, s)
        usable = np.isfinite(f_new) & np.isfinite(g_new).all(axis=1)
        better = usable & (f_new <= f + _ARMIJO * slope)
        alive = turned = np.ones(len(rows), dtype=bool)
        if not better.all():
            back = np.flatnonzero(~better)
            t[back] *= _shrinkage(np.where(usable[back], f_new[back], np.inf) - f[back], slope[back])
            alive, turned = better | (t >= _SHORTEST), better.copy()
            if metric is not None:
                # A model that began with a scale learns from a failed step, once per point, and takes a new direction.
                back = back[usable[back] & ~failed[back] & (_dots(s[back], y[back]) > 0.0)]
                H[back] = _updated(H[back], s[back], y[back], fresh[back])
                turned[back] = alive[back]
                failed |= ~better
        if better.any():
            on: Any = _which(better)
            H[on] = _updated(H[on], s[on], y[on], fresh[on])
            gain = f - f_new
            if metric is not None and (far := better & (gain > renewed)).any():
                H[far] = metric()[rows[far]]
            idle = np.where(better, np.where(gain < enough, idle + 1, 0), idle)
            x[on], f[on], g[on] = x_new[on], f_new[on], g_new[on]
            lowest = min(lowest, float(f.min()))
            fresh &= ~better
            failed &= ~better
            idled = better & (idle >= _IDLE)
            alive, turned = alive & ~idled, turned & ~idled


def _which(mask: NDArray[np.bool_]) -> Any:
    """An index of the true rows; a slice, which copies nothing, where all are true."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def _dots(a: Array, b: Array) -> Array:
    """Row by row."""
    return np.asarray(np.add.reduce(a * b, axis=1))


def _direction(x: Array, g: Array, H: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Descent directions that leave coordinates at their bounds alone, and the slopes along them."""
    lowest, highest = x <= low, x >= high
    bounded = (lowest | highest).any()
    if bounded:
        held = (lowest & (g > 0.0)) | (highest & (g < 0.0))
        g = np.where(held, 0.0, g)
    d = -np.matmul(H, g[:, :, None])[:, :, 0]
    if bounded:
        # A model that mixes coordinates may push others out of the box: those are held as well.
        d[held | (lowest & (d < 0.0)) | (highest & (d > 0.0))] = 0.0
    slope = _dots(g, d)
    lost = ~((slope < 0.0) & (slope > -np.inf))  # the model may overflow
    if lost.any():
        d[lost] = -g[lost]
        slope[lost] = -_dots(g[lost], g[lost])
    return d, slope


def _updated(H: Array, s: Array, y: Array, fresh: NDArray[np.bool_]) -> Array:
    """BFGS: the models after steps s that changed the gradients by y."""
    sy, yy, ss = _dots(s, y), _dots(y, y), _dots(s, s)
    curved = sy > _CURVED * np.sqrt(ss * yy)
    all_curved = curved.all()
    if fresh.any() or not all_curved:
        # The first update scales a model by the curvature along the step; without curvature it is stretched.
        scale = np.where(curved, np.where(fresh, sy / np.where(curved, yy, 1.0), 1.0), _STRETCH)
        H = H * scale[:, None, None]
    rho = 1.0 / sy if all_curved else np.where(curved, 1.0 / np.where(curved, sy, 1.0), 0.0)
    Hy = np.matmul(H, y[:, :, None])[:, :, 0]
    # Both rank-one updates, and their transposes, at once.
    v = (0.5 + 0.5 * rho * _dots(y, Hy))[:, None] * s - Hy
    across = v[:, :, None] * (rho[:, None] * s)[:, None, :]
    return np.asarray(H + across + across.swapaxes(1, 2))


def _shrinkage(rise: Array, slope: Array) -> Array:
    """By how much to shorten a step that changed the value by `rise`: about to the minimum of a parabola."""
    with np.errstate(invalid="ignore", divide="ignore"):
        parabola = -0.5 * slope / (rise - slope)
    return np.asarray(np.clip(np.where(np.isfinite(parabola), parabola, 0.1), 0.1, 0.5))
