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
    x = np.array(starts)
    m, D = x.shape
    low, high = np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape)
    everyone = np.arange(m)
    f, g = objective(x, everyone)
    used = 1
    H = np.tile(np.eye(D), (m, 1, 1)) if metric is None else metric()
    fresh = np.full(m, metric is None)  # starts with no knowledge of the curvature yet
    idle = np.zeros(m, dtype=int)
    alive = np.isfinite(f) & np.all(np.isfinite(g), axis=1)
    d = np.zeros_like(x)
    t = np.ones(m)
    failed = np.zeros(m, dtype=bool)  # starts of which a step from the present point failed
    turned = alive.copy()  # starts that need a new direction
    while True:
        if turned.any():
            i = _which(turned)
            d[i], slope = _direction(x[i], g[i], H[i], low[i], high[i])
            most = reach / np.maximum(np.abs(d[i]).max(axis=1), 1e-300)
            t[i] = np.where(fresh[i], most, np.minimum(most, 1.0))
            alive[i] = (slope < 0.0) & ((-0.5 * slope >= enough) | (idle[i] == 0))
            if used >= _BEGUN and hopeless < np.inf:
                alive[i] &= f[i] + 0.5 * hopeless * slope <= np.fmin.reduce(f)
            turned[:] = False
        if used >= evaluations or not alive.any():
            return Descent(x, f, used)
        i = _which(alive)
        x_new = np.minimum(np.maximum(x[i] + t[i, None] * d[i], low[i]), high[i])
        f_new, g_new = objective(x_new, everyone[i])
        used += 1
        s = x_new - x[i]
        slope = _dots(g[i], s)
        usable = np.isfinite(f_new) & np.isfinite(g_new).all(axis=1)
        better = usable & (f_new <= f[i] + _ARMIJO * slope)
        if not better.all():
            back, at = everyone[i][~better], _which(~better)
            t[back] *= _shrinkage(np.where(usable, f_new, np.inf)[~better] - f[back], slope[~better])
            alive[back[t[back] < _SHORTEST]] = False
            if metric is not None:
                # A model that began with a scale learns from a failed step, once per point, and takes a new direction.
                k = usable[at] & ~failed[back] & (_dots(s[at], g_new[at] - g[back]) > 0.0)
                H[back[k]] = _updated(H[back[k]], s[at][k], (g_new[at] - g[back])[k], fresh[back[k]])
                turned[back[k]] = alive[back[k]]
                failed[back] = True
        if better.any():
            on, new = everyone[i][better], _which(better)
            H[on] = _updated(H[on], s[new], g_new[new] - g[on], fresh[on])
            fresh[on] = False
            gain = f[on] - f_new[new]
            if metric is not None and (gain > renewed).any():
                far = on[gain > renewed]
                H[far] = metric()[far]
            idle[on] = np.where(gain < enough, idle[on] + 1, 0)
            x[on], f[on], g[on] = x_new[new], f_new[new], g_new[new]
            alive[on] = turned[on] = idle[on] < 2
            failed[on] = False


def _which(mask: NDArray[np.bool_]) -> Any:
    """An index of the true rows; a slice, which copies nothing, where all are true."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def _dots(a: Array, b: Array) -> Array:
    """Row by row."""
    dots: Array = np.einsum("ij,ij->i", a, b)
    return dots


def _direction(x: Array, g: Array, H: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Descent directions that leave coordinates at their bounds alone, and the slopes along them."""
    held = ((x <= low) & (g > 0.0)) | ((x >= high) & (g < 0.0))
    g = np.where(held, 0.0, g)
    d = -np.matmul(H, g[:, :, None])[:, :, 0]
    # A model that mixes coordinates may push others out of the box: those are held as well.
    d[held | ((x <= low) & (d < 0.0)) | ((x >= high) & (d > 0.0))] = 0.0
    slope = _dots(g, d)
    lost = ~(slope < 0.0) | ~np.isfinite(d).all(axis=1)  # the model may overflow
    if lost.any():
        d[lost] = -g[lost]
        slope[lost] = -_dots(g[lost], g[lost])
    return d, slope


def _updated(H: Array, s: Array, y: Array, fresh: NDArray[np.bool_]) -> Array:
    """BFGS: the models after steps s that changed the gradients by y."""
    sy, yy, ss = _dots(s, y), _dots(y, y), _dots(s, s)
    curved = sy > _CURVED * np.sqrt(ss * yy)
    rho = np.where(curved, 1.0 / np.where(curved, sy, 1.0), 0.0)
    # The first update scales a model by the curvature along the step; without curvature it is stretched.
    scale = np.where(curved, np.where(fresh, sy / np.where(curved, yy, 1.0), 1.0), _STRETCH)
    H = H * scale[:, None, None]
    Hy = np.matmul(H, y[:, :, None])[:, :, 0]
    u = rho[:, None] * s
    across = Hy[:, :, None] * u[:, None, :]
    grown = (1.0 + rho * _dots(y, Hy))[:, None, None] * (s[:, :, None] * u[:, None, :])
    return np.asarray(H - across - across.swapaxes(1, 2) + grown)


def _shrinkage(rise: Array, slope: Array) -> Array:
    """By how much to shorten a step that changed the value by `rise`: about to the minimum of a parabola."""
    with np.errstate(invalid="ignore", divide="ignore"):
        parabola = -0.5 * slope / (rise - slope)
    return np.asarray(np.clip(np.where(np.isfinite(parabola), parabola, 0.1), 0.1, 0.5))
