"""Dead ends: places where trial after trial was void, and where none is proposed while there is another place.

May import models and below.

A void says nothing of its parameters, so no model hears of it, and the search would propose the same point again. Once
that is right. But where two were void, the third will be as well, whatever the cause; unless the very same setting
succeeded or crashed, too: then it was not the setting.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.search.maximise import kronecker
from crashbo.search.space import SAME, Space, is_near

Array = NDArray[np.float64]

_REACH = 0.02  # judgement: of a dead end, in every coordinate of the unit cube
_BISECTIONS = 10  # judgement: to a thousandth of a line
_SPREAD = 256  # judgement: points all over the space that are looked at in search of another place
_SMALL = 4096  # judgement: points of a space of which every one is looked at
_BESIDE = (SAME, 0.0005)  # derived: past a dead end's rim, for reals; and for more than `_SMALL` whole numbers


@dataclass(frozen=True)
class DeadEnds:
    """Points whose surroundings are avoided, and some that lie elsewhere."""

    centres: Array  # (k, D)
    others: Array  # (m, D); at least one where there are centres

    @staticmethod
    def of(space: Space, voids: Array, settled: Array) -> "DeadEnds":
        """Every void that has another near by, unless its very setting is `settled`: it succeeded or crashed.

        None at all where they would leave nothing of the space.
        """
        unsettled = voids[~is_near(voids, settled, SAME)]
        again = [
            is_near(x[None], np.delete(unsettled, i, axis=0), 2.0 * _REACH + SAME) for i, x in enumerate(unsettled)
        ]
        if not np.any(again):
            return NOWHERE
        centres = unsettled[np.concatenate(again)]
        candidates = (_spread(space), _every(space) if space.size <= _SMALL else _beside(space, centres))
        clear = (X[~is_near(X, centres, _REACH + SAME)] for X in candidates)
        others = next((X for X in clear if len(X)), None)
        return NOWHERE if others is None else DeadEnds(centres, others)

    def hold(self, X: Array) -> NDArray[np.bool_]:
        """Which rows of X lie in one."""
        return is_near(X, self.centres, _REACH + SAME)

    def clear(self, X: Array) -> Array:
        """The rows of X that lie in none; where there is no such row, points elsewhere."""
        held = self.hold(X)
        return X if not held.any() else self.others if held.all() else X[~held]

    def withdrawn(self, ends: Array, starts: Array) -> Array:
        """The ends of ascents; one that lies in a dead end is moved back towards its start until it does not."""
        held = self.hold(ends)
        if not held.any():
            return ends
        outer, inner = starts[held], ends[held]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (outer + inner)
            inside = self.hold(middle)[:, None]
            outer, inner = np.where(inside, outer, middle), np.where(inside, middle, inner)
        out = ends.copy()
        out[held] = outer
        return out


NOWHERE = DeadEnds(np.zeros((0, 0)), np.zeros((0, 0)))  # derived: no points, of any dimension


def _spread(space: Space) -> Array:
    """Points all over a space, the same ones every time."""
    D = space.dimension
    return space.uniform((0.5 + np.outer(np.arange(_SPREAD), kronecker(D))) % 1.0)


def _every(space: Space) -> Array:
    """Every point of a finite space."""
    points = space.every()
    return points[space.feasible.holds(points)] if space.rules else points


def _beside(space: Space, centres: Array) -> Array:
    """Points just past the rims of dead ends, along every coordinate. On a line some are free if any are."""
    steps = [
        sign * (_REACH + SAME + past) * e for past in _BESIDE for sign in (-1.0, 1.0) for e in np.eye(len(centres.T))
    ]
    return space.snap(np.vstack([centres + step for step in steps]))
