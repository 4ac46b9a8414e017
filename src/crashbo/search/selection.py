"""Which trials the models are given, where there are too many for all.

May import numerics only.

Exact models take time with the cube of the number of trials. Past `EXACT` trials they know only some of them, chosen so
that what is left out would have told them next to nothing:
- what lies where the search looks, which is about the best trials: half of them;
- what the space is like elsewhere: one after the other the trial that is farthest from all that were chosen before, in
  units of the lengthscales. The denser the trials, the fewer of them are needed: they would tell the same.
They are chosen by where they are, never by what was read there: the highest of many readings are those that noise has
lifted, and a model of those alone would put a threshold too high. Each is known exactly, and nothing is forgotten: the
next choice is made from all trials again.

Hyperparameters are few, and a few hundred trials, chosen likewise, say almost all there is to say of them: a cold fit
begins with those (`FEW`), and goes on from there with all that the models know. What takes many fits, such as the
interval of a threshold, is left to the trials that matter for it (`BOUNDARY`): those about the boundary.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crashbo.numerics.kernels import squared_distances

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# judgement: what 0.2 s per ask allow, by benchmarks/ask.py
EXACT = 1000  # trials up to which the models know all
KNOWN = 850  # trials that they know of more; all that come until the next choice are added
SMALL = 400  # judgement: trials up to which every fit is of all of them; half a second
FEW = 250  # judgement: with which a fit of more begins; its last steps are made with all that the models know
BOUNDARY = 120  # judgement: of which thresholds and causes are learnt; what a second allows
_NEAR = 0.5  # judgement: share that lies about the best trials
_UNCERTAIN = 0.8  # judgement: of `BOUNDARY`, the share that lies about the boundary
_BEST = 8  # judgement: best trials about which the search looks; it has candidates around four
_SOME = 6  # judgement: latest trials of every kind that are kept in any case
_AT_ONCE = 2**20  # judgement: distances that are computed at a time, for memory


class Trials(Protocol):
    """What decides: `search.observations.Observations` is one."""

    @property
    def X(self) -> Array:
        """Points, (n, D)."""

    @property
    def cost(self) -> Array:
        """NaN where none is known, (n,)."""

    @property
    def Y(self) -> Array:
        """Readings, NaN where there is none, (n, G)."""

    @property
    def crashed(self) -> NDArray[np.bool_]:
        """Which crashed, (n,)."""


class Points(NamedTuple):
    """The least that it takes."""

    X: Array
    cost: Array
    Y: Array
    crashed: NDArray[np.bool_]


def about_the_best(seen: Trials, size: int, lengthscales: Array) -> Rows:
    """Rows for models that a search goes by: dense about the best trials, sparse elsewhere."""
    cost = np.where(np.isnan(seen.cost), np.inf, seen.cost)
    best = np.argsort(cost, kind="stable")[: min(_BEST, int(np.isfinite(cost).sum()))]
    U = seen.X / lengthscales
    kept = np.concatenate([_latest(seen), best])
    return _filled(U, size, kept, _gaps(U, U[best]) if len(best) else None)


def about_the_boundary(seen: Trials, size: int, lengthscales: Array, log_odds: Array) -> Rows:
    """Rows for what is learnt of thresholds and causes: where P(safe) is the least certain, and some elsewhere.

    `log_odds` are of P(safe) by all other trials, (n,): of what was read there they know nothing.
    """
    uncertain = np.argsort(np.abs(log_odds), kind="stable")[: int(_UNCERTAIN * size)]
    return _filled(seen.X / lengthscales, size, np.concatenate([_latest(seen), uncertain]), None)


def _latest(seen: Trials) -> Rows:
    """A few of every kind, so that none is missing: of each label, and with a reading of each constraint."""
    kinds = [seen.crashed, ~seen.crashed, *~np.isnan(seen.Y).T]
    return np.unique(np.concatenate([np.flatnonzero(kind)[-_SOME:] for kind in kinds]))


def _filled(U: Array, size: int, kept: Rows, gaps: Array | None) -> Rows:
    """The rows kept, the nearest by `gaps` until the share of those is reached, and the others spread; ascending."""
    kept = np.unique(kept)
    if gaps is not None:
        near = np.argsort(gaps, kind="stable")[: int(_NEAR * size)]
        kept = np.unique(np.concatenate([kept, near]))
    more = _spread(U, size - len(kept), kept)
    return np.unique(np.concatenate([kept, more]))


def _spread(U: Array, size: int, kept: Rows) -> Rows:
    """Rows of U, one after the other: each the farthest from all before it and from those kept."""
    gaps = _gaps(U, U[kept]) if len(kept) else np.full(len(U), np.inf)
    gaps[kept] = -1.0
    chosen = []
    for _ in range(min(size, len(U) - len(np.unique(kept)))):
        i = int(np.argmax(gaps))
        chosen.append(i)
        away = U - U[i]
        np.minimum(gaps, np.einsum("ij,ij->i", away, away), out=gaps)
        gaps[i] = -1.0
    return np.array(chosen, dtype=np.intp)


def _gaps(U: Array, centres: Array) -> Array:
    """The squared distance of each row from the nearest centre."""
    width = max(_AT_ONCE // max(len(centres), 1), 1)
    parts = [squared_distances(U[i : i + width], centres).min(axis=1) for i in range(0, len(U), width)]
    return np.concatenate(parts)
