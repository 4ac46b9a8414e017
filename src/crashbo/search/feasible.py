"""Where a space's rules hold: the points nearest to others, points spread evenly, and the way along the rules' edges.

May import models and below. Longer than most files: one way to keep rules for points that are moved, drawn and climbed.

Linear rules make a polytope of the numbers that they name, on a linear scale from the low end of each to the high one;
points are moved into it, or drawn from it by a random walk. So a mixture is searched on its surface. Any other rule, a
product or a user's own function, is met by trying, from points that are known to keep it. Every point is decoded and
checked in the end, exactly, as Python would compare.

Notation: u are coordinates in the unit cube, v shares of a number's range, in the order of a polytope's variables.
"""

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crashbo.search.parameters import Choice, Float, Int, Parameter, listed
from crashbo.search.polytope import Polytope
from crashbo.search.rules import Rule, TextRule

Array = NDArray[np.float64]

_MARGIN = 1e-9  # judgement: of a range, inside an inequality, so that rounding cannot break it
_ULPS = 32.0 * float(np.finfo(float).eps)  # judgement: of a rule's terms, likewise
_END = 1e-14  # judgement: of a range, by which rounding may miss its ends
_ROUNDS = 40  # judgement: of draws, before rules count as kept by nothing
_DRAWN = 256  # judgement: points in a round
_KNOWN = 64  # judgement: points that are kept
_ROUNDINGS = 100  # judgement: of whole numbers and steps, before a point is given up
_BISECTIONS = 12  # judgement: from a known point to where the rules end
_SMALL = 4096  # judgement: points of a space of which every one is looked at


class RuledSpace(Protocol):
    """What of a space is needed here."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """By name."""

    @property
    def fixed(self) -> Mapping[str, Any]:
        """Values that are held."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """To be kept."""

    @property
    def size(self) -> float:
        """How many points there are without rules."""

    @property
    def dimension(self) -> int:
        """Coordinates."""

    @property
    def parents(self) -> frozenset[str]:
        """Parameters on which others depend."""

    def decode(self, u: Array) -> dict[str, Any]:
        """The params at a point."""

    def snapped(self, U: Array) -> Array:
        """The nearest points that params have without rules."""

    def evened(self, U: Array) -> Array:
        """Points spread evenly over the params without rules."""

    def every(self) -> Array:
        """All points without rules."""

    def at(self, name: str) -> slice:
        """Where a parameter's coordinates are."""


class _Linear(NamedTuple):
    """The linear rules among some numbers, the others being held."""

    names: tuple[str, ...]
    polytope: Polytope


@dataclass(frozen=True)
class Feasible:
    """The rules of a space at work."""

    space: RuledSpace
    _known: dict[Any, _Linear] = field(default_factory=dict)

    def holds(self, U: Array) -> NDArray[np.bool_]:
        """Which rows keep all rules."""
        return np.array([self._keeps(self.space.decode(u)) for u in U], dtype=bool)

    def _keeps(self, params: Mapping[str, Any]) -> bool:
        return all(rule.holds(params) for rule in self.space.rules)

    def nearest(self, U: Array) -> Array:
        """The rows of U, which are snapped; those that break a rule moved to near points that break none."""
        broken = np.flatnonzero(~self.holds(U))
        if not len(broken):
            return U
        out = U.copy()
        if self.space.size <= _SMALL:
            apart = np.linalg.norm(U[broken][:, None, :] - self.known[None, :, :], axis=2)
            out[broken] = self.known[np.argmin(apart, axis=1)]
            return out
        out[broken] = self._moved(U[broken])
        for i in broken[~self.holds(out[broken])]:
            rounded = self._rounded(U[i])
            out[i] = self._towards(U[i]) if rounded is None else rounded
        return out

    def spread(self, U: Array) -> Array:
        """The rows of U, which are spread evenly; in place of those that break a rule, points spread over the rest."""
        broken = np.flatnonzero(~self.holds(U))
        if not len(broken):
            return U
        rng = np.random.default_rng(
            zlib.crc32(np.ascontiguousarray(U).tobytes())
        )  # the same points draw the same others
        out = U.copy()
        for turn in range(_ROUNDS if self.space.size > _SMALL else 0):
            drawn = U[broken] if turn == 0 else self.space.evened(rng.random((len(broken), U.shape[1])))
            out[broken] = self._drawn(drawn, rng)
            broken = broken[~self.holds(out[broken])]
            if not len(broken):
                return out
        out[broken] = self.known[rng.integers(len(self.known), size=len(broken))]
        return out

    @cached_property
    def known(self) -> Array:
        """Some points that keep all rules."""
        found = np.zeros((0, self.space.dimension))
        if self.space.size <= _SMALL:
            every = self.space.every()
            found = every[self.holds(every)]
        else:
            rng = np.random.default_rng(0)
            for _ in range(_ROUNDS):
                drawn = self._drawn(self.space.evened(rng.random((_DRAWN, self.space.dimension))), rng)
                found = np.vstack([found, drawn[self.holds(drawn)]])
                if len(found) >= _KNOWN:
                    break
        if not len(found):
            held = f" where {listed_params(self.space.fixed)}" if self.space.fixed else ""
            rules = listed(rule.words for rule in self.space.rules)
            raise ValueError(
                f"rules must be kept by some params; got {rules}, which none was found to keep{held}. Loosen one; an "
                "equality of other than sums of parameters cannot be searched."
            )
        return found

    def onto(self, X: Array) -> tuple[Array, Array]:
        """The nearest points to X that keep the linear rules, whole numbers held, and their slopes in X, (m, D, D)."""
        D = X.shape[1]
        Y, slopes = X.copy(), np.tile(np.eye(D), (len(X), 1, 1))
        for i, x in enumerate(X):
            linear = self._linear(self.space.decode(x), continuous=True)
            if not linear.names:
                continue
            found = linear.polytope.nearest(self._shares(x, linear.names))
            if found is None:
                continue
            Y[i] = self._with_shares(x, linear.names, found.y)
            at = [self.space.at(name).start for name in linear.names]
            before, after = self._rates(X[i], linear.names), self._rates(Y[i], linear.names)
            slopes[i][np.ix_(at, at)] = found.slope * before[None, :] / after[:, None]
        return Y, slopes

    def on_sums(self, u: Array) -> Array:
        """The nearest point that keeps the linear rules, if there is one."""
        found: Array = self.nearest_whole(self._moved(self.space.snapped(u[None])))[0]
        return found

    def _moved(self, U: Array) -> Array:
        """The nearest points that keep the linear rules, but for rounding to whole numbers and steps."""
        out = U.copy()
        for linear, rows in self._groups(U):
            Y = linear.polytope.project(np.array([self._shares(u, linear.names) for u in U[rows]]))
            for i, y in zip(rows, Y, strict=True):
                if np.isfinite(y).all():
                    out[i] = self._with_shares(U[i], linear.names, y)
        return self.space.snapped(out)

    def _drawn(self, U: Array, rng: np.random.Generator) -> Array:
        """The rows of U; the numbers in linear rules drawn evenly from where those hold."""
        out = U.copy()
        for linear, rows in self._groups(U):
            V = linear.polytope.walk(len(rows), rng) if linear.names else None
            if V is not None:
                for i, v in zip(rows, V, strict=True):
                    out[i] = self._with_shares(U[i], linear.names, v)
        return self.nearest_whole(out)

    def nearest_whole(self, U: Array) -> Array:
        """Snapped; where whole numbers or steps break linear rules by that, rounded otherwise."""
        out = self.space.snapped(U)
        for i in np.flatnonzero(~self.holds(out)):
            rounded = self._rounded(U[i])
            out[i] = out[i] if rounded is None else rounded
        return out

    def _rounded(self, u: Array) -> Array | None:
        """A near point that keeps the rules, the whole numbers and steps of the linear ones rounded one by one.

        None where none is found, or there are no such numbers.
        """
        linear = self._linear(self.space.decode(u))
        if all(self.space.parameters[name].continuous for name in linear.names) or linear.polytope.centre is None:
            return None
        return self._search(linear.polytope, list(linear.names), self._shares(u, linear.names), u, [_ROUNDINGS])

    def _search(self, left: Polytope, names: list[str], v: Array, u: Array, budget: list[int]) -> Array | None:
        """Depth first: the next whole number at its nearest value, then at others, until all fit."""
        budget[0] -= 1
        if budget[0] < 0:
            return None
        if not names:
            return u if self.holds(u[None])[0] else None
        y = left.project(v[None])[0]
        if not np.isfinite(y).all():
            return None
        i = next((i for i, name in enumerate(names) if not self.space.parameters[name].continuous), None)
        if i is None:
            x = self.space.snapped(self._with_shares(u, names, y)[None])[0]
            return x if self.holds(x[None])[0] else None
        p = self.space.parameters[names[i]]
        for value in _about(p, _number(p, float(y[i]))):
            at = u.copy()
            at[self.space.at(names[i])] = p.encode(value)
            rest, others = left.held(i, _share(p, value)), names[:i] + names[i + 1 :]
            found = self._search(rest, others, np.delete(y, i), at, budget)
            if found is not None:
                return found
        return None

    def _towards(self, u: Array) -> Array:
        """The last point, on the line from a known one to u, at which the rules hold."""
        known = self.known
        best: Array = known[int(np.argmin(np.sum((known - u) ** 2, axis=1)))]
        inner = best
        outer = u
        for _ in range(_BISECTIONS):
            middle = 0.5 * (inner + outer)
            x = self._moved(self.space.snapped(middle[None]))
            if self.holds(x)[0]:
                best, inner = x[0], middle
            else:
                outer = middle
        return best

    def _groups(self, U: Array) -> "Iterator[tuple[_Linear, NDArray[np.intp]]]":
        """Rows that share a polytope."""
        rows: dict[int, tuple[_Linear, list[int]]] = {}
        for i, u in enumerate(U):
            linear = self._linear(self.space.decode(u))
            if linear.names:
                rows.setdefault(id(linear), (linear, []))[1].append(i)
        return ((linear, np.array(several)) for linear, several in rows.values())

    def _linear(self, params: Mapping[str, Any], *, continuous: bool = False) -> _Linear:
        """The linear rules where these params exist: of what may move, the others held."""
        rules = [r for r in self._linear_rules if r.names <= params.keys()]
        named = sorted({name for rule in rules for name in rule.names})
        names = tuple(name for name in named if self._moves(name, continuous=continuous))
        key = names, tuple(r.text for r in rules), tuple((n, params[n]) for n in named if n not in names)
        if key not in self._known:
            self._known[key] = _Linear(names, self._reachable(rules, names, params))
        return self._known[key]

    @cached_property
    def _linear_rules(self) -> list[TextRule]:
        return [r for r in self.space.rules if isinstance(r, TextRule) and r.linear is not None]

    def _moves(self, name: str, *, continuous: bool) -> bool:
        p, space = self.space.parameters[name], self.space
        free = isinstance(p, Float | Int) and name not in space.fixed and name not in space.parents
        return free and (p.continuous or not continuous)

    def _reachable(self, rules: Sequence[TextRule], names: Sequence[str], params: Mapping[str, Any]) -> Polytope:
        """With margins, unless nothing is left then: rules may allow the end of a range alone."""
        safe = self._polytope(rules, names, params, 1.0)
        return self._polytope(rules, names, params, 0.0) if names and safe.is_empty else safe

    def _polytope(
        self, rules: Sequence[TextRule], names: Sequence[str], params: Mapping[str, Any], share: float
    ) -> Polytope:
        """Of the rules on shares of the ranges, rows of unit length, with a share of the margins."""
        A: list[Array] = []
        b: list[float] = []
        E: list[Array] = []
        f: list[float] = []
        ps = {name: self.space.parameters[name] for name in names}
        for rule in rules:
            linear = rule.linear
            assert linear is not None
            held = {name: float(params[name]) for name in rule.names if name not in ps}
            low = {name: float(p.low) for name, p in ps.items()}  # type: ignore[union-attr]
            constant = linear.constant + sum(factor * {**low, **held}[n] for n, factor in linear.factors.items())
            row = np.array([linear.factors.get(n, 0.0) * (p.high - p.low) for n, p in ps.items()])  # type: ignore[union-attr]
            length = math.hypot(*row)  # without overflow
            if not (
                0.0 < length < math.inf and math.isfinite(float(constant) / length)
            ):  # nothing to move, or beyond all numbers
                continue
            if rule.sign == "==":
                E.append(row / length)
                f.append(-constant / length)
                continue
            sign = -1.0 if rule.sign in (">", ">=") else 1.0
            real = any(r != 0.0 and p.continuous for r, p in zip(row, ps.values(), strict=True))
            terms = (x / length * _largest(n, ps, held) for n, x in linear.factors.items())
            size = abs(linear.constant / length) + sum(map(abs, terms))
            margin = share * (_MARGIN + _ULPS * size) if real or rule.sign in "<>" else 0.0
            A.append(sign * row / length)
            b.append(-sign * constant / length - margin)
        A_, E_ = (np.array(rows).reshape(len(rows), len(names)) for rows in (A, E))
        return Polytope(A_, np.array(b), E_, np.array(f))

    def _shares(self, u: Array, names: Sequence[str]) -> Array:
        pairs = [(self.space.parameters[name], u[self.space.at(name)]) for name in names]
        return np.array([_share(p, p.decode(x)) for p, x in pairs])

    def _with_shares(self, u: Array, names: Sequence[str], v: Array) -> Array:
        out = u.copy()
        for name, share in zip(names, v, strict=True):
            p = self.space.parameters[name]
            out[self.space.at(name)] = p.encode(_number(p, float(share)))
        return out

    def _rates(self, u: Array, names: Sequence[str]) -> Array:
        """By how much the shares grow with the coordinates; on a linear scale they are the same."""
        return np.array([_rate(self.space.parameters[name], float(u[self.space.at(name)][0])) for name in names])


def listed_params(params: Mapping[str, Any]) -> str:
    """Params in words."""
    return ", ".join(f"{name} is {value!r}" for name, value in params.items())


def is_numeric(p: Parameter) -> bool:
    """Whether all values of a parameter are numbers."""
    return not isinstance(p, Choice) or all(isinstance(o, int | float) and not isinstance(o, bool) for o in p.options)


def _largest(name: str, ps: Mapping[str, Parameter], held: Mapping[str, float]) -> float:
    if name in held:
        return held[name]
    p = ps[name]
    return float(max(abs(p.low), abs(p.high)))  # type: ignore[union-attr]


def _share(p: Parameter, value: float) -> float:
    return float((value - p.low) / (p.high - p.low))  # type: ignore[union-attr]


def _number(p: Parameter, share: float) -> float:
    """The number at a share of the range, within it; an end, but for rounding, is that end."""
    ends: Any = p
    if share < _END:
        return float(ends.low)
    return float(ends.low + share * (ends.high - ends.low)) if share < 1.0 - _END else float(ends.high)


def _rate(p: Parameter, u: float) -> float:
    if not getattr(p, "log", False):
        return 1.0
    value = float(p.decode(np.array([u])))
    ends: Any = p
    return float(value * np.log(ends.high / ends.low) / (ends.high - ends.low))


def _about(p: Parameter, number: float) -> list[Any]:
    """The value nearest to a number, and its neighbours, two on each side; the nearest first."""
    near = p.decode(np.array(p.encode(number)))
    found = [near]
    for _ in range(2):
        found += [v for value in list(found) for v in p.neighbours(value) if v not in found]  # type: ignore[arg-type]
    return sorted(found, key=lambda value: abs(value - number))
