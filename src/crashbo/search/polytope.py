"""Polytopes: what linear rules leave of a box; nearest points, points spread evenly, and the directions along a face.

May import models and below.

Notation, for n variables:
    A v <= b     inequalities, rows of unit length
    E v = f      equalities
    G v >= h     the inequalities, and the box 0 <= v <= 1
    N            an orthonormal basis of the directions that keep the equalities, (n, k)
    y0           the solution of the equalities nearest to the origin
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ROUNDING = 1e-12  # judgement: by which an equality may be missed
_SINGULAR = 1e-10  # judgement: relative, of the equalities' singular values: smaller ones are rounding
_STEPS = 10  # judgement: of a random walk, per dimension
_FEWEST = 20  # judgement: of a random walk
_FLAT = 1e-11  # judgement: radius of a polytope that has no inside


class Nearest(NamedTuple):
    """The point nearest to another, and how it moves with that."""

    y: Array  # (n,)
    slope: Array  # (n, n), of y in the other


@dataclass(frozen=True)
class Polytope:
    """The part of a unit box that keeps linear rules."""

    A: Array  # (p, n)
    b: Array
    E: Array  # (q, n)
    f: Array

    @cached_property
    def centre(self) -> Array | None:
        """The centre of the largest ball inside; None where there is no point at all."""
        from scipy.optimize import linprog  # only here: it is slow to import, and only rules need it

        if not self._consistent:
            return None
        G, h, N = self._G, self._h - self._G @ self._y0, self._N
        if not N.shape[1]:
            return self._y0 if np.all(h <= _ROUNDING) else None
        GN = G @ N
        rows = np.column_stack([-GN, np.linalg.norm(GN, axis=1)])
        bounds = [(None, None)] * N.shape[1] + [(None, 1.0)]
        found = linprog(np.append(np.zeros(N.shape[1]), -1.0), A_ub=rows, b_ub=-h, bounds=bounds)
        if found.status != 0 or found.x[-1] < -_ROUNDING:
            return None
        return np.asarray(np.clip(self._y0 + N @ found.x[:-1], 0.0, 1.0))

    @property
    def _consistent(self) -> bool:
        return bool(np.all(np.abs(self.E @ self._y0 - self.f) <= _ROUNDING * (1.0 + np.abs(self.f))))

    @property
    def is_empty(self) -> bool:
        """Whether there is no point, as far as the one nearest to the middle of the box tells."""
        y = self.project(np.full((1, self.A.shape[1]), 0.5))[0]
        return not bool(np.all(self.A @ y <= self.b + _ROUNDING) and np.isfinite(y).all())

    def project(self, V: Array) -> Array:
        """The nearest point to each row of V; NaN where there is none."""
        if not self._consistent:
            return np.full_like(V, np.nan)
        Y = self._on_equalities(V)
        outside = np.flatnonzero((self._h - _ROUNDING > Y @ self._G.T).any(axis=1))
        for i in outside:
            found = self._least_distance(Y[i])
            Y[i] = np.nan if found is None else found[0]
        return np.clip(Y, 0.0, 1.0)

    def nearest(self, v: Array) -> Nearest | None:
        """The nearest point to v, with its slope."""
        if not self._consistent:
            return None
        y, N = self._on_equalities(v[None])[0], self._N
        slope = N @ N.T
        if (self._G @ y < self._h).any():
            found = self._least_distance(y)
            if found is None:
                return None
            y, active = found
            M = self._G[active] @ N
            slope = N @ (np.eye(N.shape[1]) - np.linalg.pinv(M) @ M) @ N.T
        return Nearest(np.clip(y, 0.0, 1.0), slope)

    def walk(self, count: int, rng: np.random.Generator) -> Array | None:
        """Points spread evenly over it, at random (hit and run, from its centre); None where there is none."""
        centre, N = self.centre, self._N
        if centre is None:
            return None
        V = np.tile(centre, (count, 1))
        for _ in range(max(_FEWEST, _STEPS * N.shape[1]) if N.shape[1] else 0):
            d = rng.standard_normal((count, N.shape[1])) @ N.T
            d /= np.linalg.norm(d, axis=1)[:, None]
            room, rate = V @ self._G.T - self._h, d @ self._G.T
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ends = -np.maximum(room, 0.0) / rate
            low = np.max(np.where(rate > _FLAT, ends, -np.inf), axis=1)
            high = np.min(np.where(rate < -_FLAT, ends, np.inf), axis=1)
            t = low + (high - low) * rng.random(count)
            V += np.where(np.isfinite(t), t, 0.0)[:, None] * d
        return np.clip(self._on_equalities(V), 0.0, 1.0)

    def held(self, i: int, value: float) -> "Polytope":
        """What is left where variable i has a value."""
        A, E = np.delete(self.A, i, axis=1), np.delete(self.E, i, axis=1)
        return Polytope(A, self.b - value * self.A[:, i], E, self.f - value * self.E[:, i])

    def _on_equalities(self, V: Array) -> Array:
        """The nearest points that keep the equalities."""
        return np.asarray(self._y0 + (V - self._y0) @ self._N @ self._N.T)

    def _least_distance(self, y: Array) -> tuple[Array, NDArray[np.intp]] | None:
        """The nearest point to y, and the inequalities that keep it there (Lawson and Hanson, 1974, chapter 23)."""
        from scipy.optimize import nnls

        GN, h = self._G @ self._N, self._h - self._G @ y
        system = np.vstack([GN.T, h])
        target = np.append(np.zeros(len(GN.T)), 1.0)
        try:
            multipliers, _ = nnls(system, target)
        except RuntimeError:  # it cycles
            return None
        left = system @ multipliers - target
        if abs(left[-1]) <= _ROUNDING:
            return None
        return y - self._N @ (left[:-1] / left[-1]), np.flatnonzero(multipliers > 0.0)

    @cached_property
    def _G(self) -> Array:
        n = self.A.shape[1]
        return np.vstack([-self.A, np.eye(n), -np.eye(n)])

    @cached_property
    def _h(self) -> Array:
        n = self.A.shape[1]
        return np.concatenate([-self.b, np.zeros(n), -np.ones(n)])

    @cached_property
    def _svd(self) -> tuple[Array, Array]:
        """The basis N, and y0."""
        n = self.E.shape[1]
        if not len(self.E) or not n:
            return np.eye(n), np.zeros(n)
        U, s, Vt = np.linalg.svd(self.E, full_matrices=True)
        rank = int(np.sum(s > _SINGULAR * max(float(s[0]), math.ulp(1.0)))) if len(s) else 0
        y0 = Vt[:rank].T @ ((U[:, :rank].T @ self.f) / s[:rank])
        return Vt[rank:].T, y0

    @property
    def _N(self) -> Array:
        return self._svd[0]

    @property
    def _y0(self) -> Array:
        return self._svd[1]
