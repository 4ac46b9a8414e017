"""Fronts of several goals, all minimised: who is on them, the volume below them, and what is left beyond them.

May import numpy and scipy only.

Notation, for n points y in M goals and a reference point r, which is worse than all that counts:
    a point beats another   if it is no worse in any goal, and better in one
    front                   the points that no other beats
    hypervolume             volume of what the points beat, up to r
    cells                   disjoint boxes (low, high) that fill what no point beats, up to r; `low` may be -inf
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_AT_ONCE = 2**22  # comparisons that are made together, for memory


def on_front(Y: Array) -> NDArray[np.bool_]:
    """Which rows of Y, (n, M), no other beats; of equal ones, all."""
    width = max(_AT_ONCE // max(Y.size, 1), 1)
    parts = [_unbeaten(Y[at : at + width], Y) for at in range(0, len(Y), width)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _unbeaten(Y: Array, by: Array) -> NDArray[np.bool_]:
    no_worse = np.all(by[:, None, :] <= Y[None, :, :], axis=2)
    better = np.any(by[:, None, :] < Y[None, :, :], axis=2)
    return np.asarray(~np.any(no_worse & better, axis=0))


def hypervolume(Y: Array, reference: Array) -> float:
    """The volume of what the rows of Y, (n, M), beat, up to the reference point, (M,).

    A sum of slabs along the last goal: every term is positive, so nothing cancels.
    """
    Y = Y[np.all(reference > Y, axis=1)]
    if not len(Y):
        return 0.0
    if Y.shape[1] == 1:
        return float(reference[0] - Y.min())
    Y = Y[np.argsort(Y[:, -1], kind="stable")]
    if Y.shape[1] == 2:
        reach = reference[0] - np.minimum.accumulate(Y[:, 0])
        return float(reach @ np.diff(np.append(Y[:, 1], reference[1])))
    heights = np.diff(np.append(Y[:, -1], reference[-1]))
    slabs = [h * hypervolume(Y[: k + 1, :-1], reference[:-1]) for k, h in enumerate(heights.tolist()) if h]
    return float(np.sum(slabs))


def cells(Y: Array, reference: Array) -> tuple[Array, Array]:
    """The lower and upper corners, both (K, M), of the cells of two or three goals; at most 2 n + 1."""
    Y = Y[np.all(reference > Y, axis=1)]
    Y = np.unique(Y[on_front(Y)], axis=0)
    return _strips(Y, reference) if Y.shape[1] == 2 else _boxes(Y, reference)


def _strips(Y: Array, reference: Array) -> tuple[Array, Array]:
    """Cells of two goals, one between each two neighbours on the front; Y by its first goal."""
    first, second = np.append(Y[:, 0], reference[0]), np.append(reference[1], Y[:, 1])
    low = np.column_stack([np.append(-np.inf, Y[:, 0]), np.full(len(first), -np.inf)])
    return low, np.column_stack([first, second])


def _boxes(Y: Array, reference: Array) -> tuple[Array, Array]:
    """Cells of three goals: the strips of the first two, swept along the third.

    A point that the sweep meets cuts off what it beats: the strip in which it lies keeps its part before it, and what
    follows, up to the next point that it does not beat, becomes one lower strip. So a point ends some boxes and begins
    two.
    """
    strips = [(-np.inf, reference[0], reference[1], -np.inf)]  # first goal from and to, height, begun at
    found: list[tuple[float, float, float, float, float]] = []  # of those that ended, and where
    for y1, y2, y3 in Y[np.argsort(Y[:, 2], kind="stable")].tolist():
        cut = [s for s in strips if s[1] > y1 and s[2] > y2]
        if not cut:  # one as good in the first two goals was met before, at the same height
            continue
        found += [(*s, y3) for s in cut if s[3] < y3]
        before = [(cut[0][0], y1, cut[0][2], y3)] if cut[0][0] < y1 else []
        at = strips.index(cut[0])
        strips[at : at + len(cut)] = [*before, (y1, cut[-1][1], y2, y3)]
    found += [(*s, reference[2]) for s in strips]
    start, end, height, begun, ended = np.array(found).T
    low = np.column_stack([start, np.full(len(found), -np.inf), begun])
    return low, np.column_stack([end, height, ended])
