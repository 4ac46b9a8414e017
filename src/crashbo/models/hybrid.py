"""Hybrid data: measurements and labels of trials, for one latent function or several (eq. 4).

May import numerics only.

A censored measurement says only that g lay at it or above: P = Phi((g - measurement) / noise), a step like a label's
with a threshold of its own. It gets a row of its own below the trials, at the same x: EP needs no other case.

A trial that was stopped before it could crash has no label. Its readings are censored; and of the thresholds they say
that these lie above, as the last readings before a crash say where they lie (`course`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.models.course import Extent, extent_of
from crashbo.models.likelihood import others_of

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class HybridData:
    """Measurements and labels in n rows, for G latent functions. The first rows are the trials."""

    X: Array
    Y: Array  # (G, n), NaN where there is no measurement
    sign: Array  # (G, n), of StepLikelihood
    joint: Bools  # (n,), of StepLikelihood
    lower: Array | None = None  # (G, n), censored measurements, in rows of their own; NaN elsewhere
    origin: NDArray[np.intp] | None = None  # (n,), the trial that a row belongs to, where there are other rows
    others: Array | None = None  # (2, n), of StepLikelihood
    offset: Array | None = None  # (n,), by which thresholds lay higher at the time of a row
    survived: Array | None = None  # (G, n), readings at which trials were stopped; NaN elsewhere
    last: Array | None = None  # (G, n), last readings before a crash, where it is blamed on this function; else NaN
    ahead: Array | None = None  # (G, n), of these, how far the next might have come; NaN where that is not known

    @staticmethod
    def of(
        X: Array,
        Y: Array,
        sign: Array,
        joint: Bools,
        censored: Bools,
        *,
        stopped: Bools | None = None,
        last: Array | None = None,
        ahead: Array | None = None,
        whole: bool = False,
    ) -> "HybridData":
        """Data in which the `censored` ones, (G, n), of the measurements Y are only lower bounds.

        Those of `stopped` trials, (n,), are, and they have no label. `last`, (G, n), are the last readings before a
        crash, and `ahead` how far the next might have come. With `whole` all these are left out of a function that has
        no other measurements: nothing sets their scale.
        """
        if last is not None:
            last = np.where((sign < 0.0) & ~(whole & _scaleless(Y, censored)), last, np.nan)
        if stopped is not None and stopped.any():
            sign, censored = np.where(stopped, 0.0, sign), censored | stopped
        if whole:
            Y = np.where(censored & _scaleless(Y, censored), np.nan, Y)
        j, i = np.nonzero(censored & ~np.isnan(Y))
        if not len(j):
            return HybridData(X, Y, sign, joint, last=last, ahead=ahead)
        survived = None if stopped is None or not stopped.any() else np.where(stopped, Y, np.nan)
        (G, n), m = Y.shape, len(j)
        lower, more_sign = np.full((G, n + m), np.nan), np.zeros((G, m))
        lower[j, n + np.arange(m)] = Y[j, i]
        more_sign[j, np.arange(m)] = -1.0
        return HybridData(
            np.vstack([X, X[i]]),
            np.pad(np.where(censored, np.nan, Y), ((0, 0), (0, m)), constant_values=np.nan),
            np.hstack([sign, more_sign]),
            np.append(joint, np.zeros(m, dtype=bool)),
            lower,
            np.append(np.arange(n), i),
            survived=_padded(survived, m),
            last=_padded(last, m),
            ahead=_padded(ahead, m),
        )

    @cached_property
    def measured(self) -> Bools:
        """Where there is a measurement, (G, n)."""
        return ~np.isnan(self.Y)

    @cached_property
    def filled(self) -> Array:
        """Measurements with zeros where there is none, (G, n)."""
        return np.nan_to_num(self.Y)

    @cached_property
    def extents(self) -> tuple[Extent, ...]:
        """Where the measurements of each function lie."""
        return tuple(map(extent_of, self.Y))

    @cached_property
    def reached(self) -> Array:
        """Levels that were reached without a crash, (G, n): by successes, and by trials before they were stopped."""
        levels = np.where(self.sign > 0.0, self.Y, np.nan)
        return levels if self.survived is None else np.fmax(levels, self.survived)

    @cached_property
    def bounded(self) -> Bools:
        """Which rows are not trials but censored measurements, (n,)."""
        return np.zeros(len(self.X), dtype=bool) if self.lower is None else np.any(~np.isnan(self.lower), axis=0)

    @cached_property
    def first(self) -> NDArray[np.intp] | None:
        """For every row the first one at the same x, (n,); None where no x repeats."""
        if self.X.size and np.diff(np.sort(self.X[:, 0])).all():  # not even one coordinate repeats
            return None
        rows: dict[bytes, int] = {}
        X = self.X + 0.0  # no -0.0
        first = np.array([rows.setdefault(x.tobytes(), i) for i, x in enumerate(X)], dtype=np.intp)
        return first if len(rows) < len(X) else None

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """An order of the rows that depends on their values and not on their positions, (n,)."""
        return np.lexsort(self.X.T)

    @property
    def trials(self) -> int:
        """How many trials there are."""
        return int(np.sum(~self.bounded))

    @cached_property
    def kind(self) -> tuple[bool, ...]:
        """Which latent functions have any measurement."""
        return tuple(bool(row.any()) for row in self.measured)

    def per_row(self, value: float | Array) -> float | Array:
        """A value for all trials, or one per trial, as one per row."""
        return value if self.origin is None or np.ndim(value) == 0 else np.asarray(value)[self.origin]

    def alone(self, j: int, z: Array) -> "HybridData":
        """The data of latent function j while the others are held; z, (G, n), of the cavities."""
        own = slice(j, j + 1)
        lower, *watched = (
            None if rows is None else rows[own] for rows in (self.lower, self.survived, self.last, self.ahead)
        )
        others = others_of(z, j) if self.joint.any() else None
        return HybridData(
            self.X, self.Y[own], self.sign[own], self.joint, lower, self.origin, others, self.offset, *watched
        )

    def with_readings(self, warp: Callable[[Array], Array]) -> "HybridData":
        """The same with all readings on another scale."""
        lower, survived, last, ahead = (
            None if rows is None else warp(rows) for rows in (self.lower, self.survived, self.last, self.ahead)
        )
        return replace(self, Y=warp(self.Y), lower=lower, survived=survived, last=last, ahead=ahead)

    def with_crashes(self, X: Array) -> "HybridData":
        """The same with more trials at X that crashed from an unknown cause."""
        m, single = len(X), len(self.Y) == 1

        def more(rows: Array, value: float) -> Array:
            return np.pad(rows, ((0, 0), (0, m)), constant_values=value)

        return HybridData(
            np.vstack([self.X, X]),
            more(self.Y, np.nan),
            more(self.sign, -1.0 if single else 0.0),
            np.append(self.joint, np.full(m, not single)),
            None if self.lower is None else more(self.lower, np.nan),
            None if self.origin is None else np.append(self.origin, self.origin.max() + 1 + np.arange(m)),
            offset=None if self.offset is None else np.append(self.offset, np.zeros(m)),
            survived=_padded(self.survived, m),
            last=_padded(self.last, m),
            ahead=_padded(self.ahead, m),
        )


def _scaleless(Y: Array, censored: Bools) -> Bools:
    """Which functions have no measurement that is more than a bound, (G, 1)."""
    return np.asarray(~np.any(~censored & ~np.isnan(Y), axis=1, keepdims=True))


def _padded(rows: Array | None, m: int) -> Array | None:
    """With m more rows, of which nothing is known."""
    return None if rows is None else np.pad(rows, ((0, 0), (0, m)), constant_values=np.nan)
