"""What the models say about a study, gathered for pages, reports and terminals.

May import optimizer and below: where the study is kept, in a store or in a program, is the business of its `Sight`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from crashbo.app.sight import Sight
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.comparing import Ranked
from crashbo.optimizer.records import Trial
from crashbo.optimizer.view import Prediction, View
from crashbo.search.risk import WORTHWHILE
from crashbo.search.space import Choice, Parameter

Array = NDArray[np.float64]

GRID = 41  # points along an axis of a slice
_PAIRS = 512  # points for estimating a parameter's influence
_DENSE = 4  # told trials up to which every one is a point of the thresholds' history
_DELTA = 0.1


@dataclass(frozen=True)
class Level:
    """A crash threshold after a number of told trials."""

    told: int
    number: int  # of the last of them
    value: float | None
    interval: tuple[float | None, float | None] | None  # 90 %; None for an open end
    learned: bool
    proven: float | None  # the farthest that a success was measured, less its noise
    words: str
    limit: float | None = None  # the reading at which a guard stops a trial


@dataclass(frozen=True)
class Expectation:
    """Predictions at one point, with 90 % intervals."""

    cost: Any  # mean, low, high; of several goals, by name; None before a success
    measured: dict[str, tuple[float, float, float]]
    p_safe: float


@dataclass(frozen=True)
class Slice:
    """Cost and P(safe) over one or two parameters, with the others fixed."""

    axes: tuple[str, ...]
    grid: tuple[tuple[Any, ...], ...]  # values along each axis
    at: dict[str, Any]
    cost: Any  # expected; shaped like the grid, last axis first; of several goals, by name; None before a success
    cost_std: Any
    p_safe: Array
    forbidden: Array | None = None  # 1 where a rule forbids it, shaped like the grid; None where there are no rules


S = TypeVar("S", bound=Sight)


class Overview(Generic[S]):
    """What the models say about a study; pending trials are left out."""

    def __init__(self, sight: S) -> None:
        self.sight = sight.told()

    @property
    def view(self) -> View:
        """The models' view, fitted when first needed."""
        return self.sight.view

    @property
    def told(self) -> tuple[Trial, ...]:
        """The trials that the models learn from."""
        return self.sight.learnt

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters that the models see."""
        return self.sight.space.parameters

    def outward_last(self) -> dict[str, Any]:
        """The params of the last told trial."""
        return self.sight.outward(self.told[-1].params)

    def limits(self, params: Mapping[str, Any] | None = None) -> dict[str, float | None]:
        """The readings at which a guard stops a trial, at params or any, by constraint; None where none is known."""
        inward = None if params is None else self.sight.inward(params)
        at = inward if inward is not None and self.sight.space.accepts(inward) else None
        return {name: _end(limit) for name, limit in self.view.limits(params=at).items()}

    def levels(self, *, limits: bool = True) -> dict[str, Level]:
        """The thresholds, with a guard's limits if those are wanted."""
        number, ends = self.told[-1].number if self.told else -1, self.limits() if limits else {}
        return {
            name: Level(
                len(self.told), number, c.value, _plain(c.interval), c.learned, c.proven, c.words, ends.get(name)
            )
            for name, c in self.view.thresholds.items()
        }

    def before(self, count: int) -> "Overview[S]":
        """The study after its first `count` told trials."""
        return Overview(self.sight.told(count))

    def expect(self, params: Sequence[Mapping[str, Any]]) -> list[Expectation]:
        """Predictions at points."""
        inward = [self.sight.inward(p) for p in params]
        found = self.view.predict(inward) if params else None
        return [] if found is None else [_expectation(found, i) for i in range(len(params))]

    def recommended(self) -> dict[str, Any] | None:
        """The point of minimum expected cost with P(safe) of at least 0.9; None before a success.

        Of several goals, a compromise in which each counts as much.
        """
        found = self.sight.recommend(_DELTA) if self.told else None
        if found is None:
            return None
        return {"params": found.params, "cost": self.expect([found.params])[0].cost, "p_safe": found.p_safe}

    def front(self) -> dict[str, Any] | None:
        """Of several goals: the numbers of the trials on the front, its hypervolume, and up to which point that is."""
        if not self.told or not self.view.study.objectives:
            return None
        trials, reference = [t.number for t in self.view.front], self.view.reference
        return {"trials": trials, "hypervolume": self.view.hypervolume(), "reference": reference}

    def exhausted(self) -> bool:
        """Whether no trial is worth its while any more."""
        gain = self.view.gain_left() if self.told else None
        return gain is not None and gain < WORTHWHILE

    def check(self) -> list[Finding]:
        """What in the trials speaks against the models, and advice."""
        return self.sight.check()

    def blame(self) -> dict[int, dict[str, float]]:
        """For every crash, the probability that each constraint was violated."""
        return self.view.blames()

    def ranking(self) -> list[Ranked]:
        """The trials that were compared or have a cost, the best first; empty where none were compared."""
        return self.view.ranking() if self.view.comparisons else []

    def influence(self) -> dict[str, dict[str, float]]:
        """The fraction of the variance of the expected cost, and of P(safe), that involves each parameter.

        Total-effect indices (Jansen's estimator) over the whole space; they may sum to more than one.
        """
        rng = np.random.default_rng(0)
        names = list(self.parameters)
        A, B = (_random_points(self.parameters, rng) for _ in range(2))
        mixed = [[{**a, name: b[name]} for a, b in zip(A, B, strict=True)] for name in names]
        found = self.view.predict([self._existing(p) for p in (*A, *B, *(p for points in mixed for p in points))])
        if found is None:
            return {}
        quantities = {"safety": found.p_safe, **{name: mean for name, (mean, _) in _by_goal(found.cost).items()}}
        return {what: dict(zip(names, _total_effects(y, len(names)), strict=True)) for what, y in quantities.items()}

    def slice(self, axes: Sequence[str], at: Mapping[str, Any], size: int = GRID) -> Slice:
        """Cost and P(safe) over one or two parameters; `at` fixes the others, which make room where a sum is given."""
        names, sight = list(self.parameters), self.sight
        for name in axes:
            if name not in names:
                raise ValueError(f"axis must be one of {', '.join(names)}; got {name!r}. Choose one.")
        if not 1 <= len(axes) <= 2 or len(set(axes)) < len(axes):
            raise ValueError(f"axes must be one or two different parameters; got {list(axes)}. Choose them.")
        inner = {name: sight.value_inward(name, value) for name, value in at.items() if name in names}
        conditional = self.view.space.conditions.conditional
        inner |= {name: grid_values(self.parameters[name], 3)[1] for name in conditional if name not in inner}
        missing = [name for name in self.parameters if name not in inner and name not in axes]
        if missing:
            raise ValueError(f"at must give a value to {', '.join(missing)}; it does not. Add it.")
        values = [grid_values(self.parameters[name], size) for name in axes]
        points = [{**inner, **dict(zip(axes, v, strict=True))} for v in _product(values)]
        shape = tuple(len(v) for v in reversed(values))
        space = self.view.space
        points = [space.made_whole(self._existing(p), axes) for p in points]
        found = self.view.predict(points)
        forbidden = None
        if space.rules:
            forbidden = np.array([float(space.broken(p) is not None) for p in points]).reshape(shape)
        outward = tuple(
            tuple(sight.value_outward(name, v) for v in row) for name, row in zip(axes, values, strict=True)
        )
        if found is None:
            return Slice(tuple(axes), outward, dict(at), None, None, np.full(shape, np.nan), forbidden)
        fields = {name: [c.reshape(shape) for c in pair] for name, pair in _by_goal(found.cost).items()}
        cost, std = ({name: pair[i] for name, pair in fields.items()} or None for i in range(2))
        if not isinstance(found.cost, Mapping):
            cost, std = (of and of["cost"] for of in (cost, std))
        return Slice(tuple(axes), outward, dict(at), cost, std, found.p_safe.reshape(shape), forbidden)

    def _existing(self, params: dict[str, Any]) -> dict[str, Any]:
        """Params without those that do not exist beside the others."""
        return {name: params[name] for name in self.view.space.existing(params)}


def _by_goal(cost: Any) -> dict[str, Any]:
    """Pairs of mean and standard deviation by goal; the only one is the cost."""
    return {} if cost is None else dict(cost) if isinstance(cost, Mapping) else {"cost": cost}


def _plain(interval: tuple[float, float] | None) -> tuple[float | None, float | None] | None:
    """An interval with None for an open end, as JSON has it."""
    if interval is None:
        return None
    return _end(interval[0]), _end(interval[1])


def _end(level: float) -> float | None:
    return level if math.isfinite(level) else None


def history_points(told: int, per_doubling: int = 2) -> list[int]:
    """The numbers of told trials at which to show the thresholds: first all, then so many per doubling, and the last.

    They do not move as trials are told, so that each has to be learnt only once; and what is learnt changes less and
    less.
    """
    doublings = np.arange(0.0, np.log2(max(told, 1)), 1.0 / per_doubling)
    spread = {round(k) for k in 2.0**doublings}
    return sorted({k for k in range(1, _DENSE + 1) if k <= told} | {k for k in spread if k <= told} | {told} - {0})


def history_of(told: Sequence[Trial], per_doubling: int = 2) -> list[int]:
    """The same for these trials, without points amid a table that was imported: its order says nothing."""
    imported = [t.origin == "told" for t in told]
    return [k for k in history_points(len(told), per_doubling) if not all(imported[k - 1 : k + 1]) or k == len(told)]


def grid_values(parameter: Parameter, size: int) -> list[Any]:
    """Values along an axis, evenly spread in the models' unit cube."""
    if isinstance(parameter, Choice):
        return list(parameter.options)
    values = [parameter.decode(np.array([u])) for u in np.linspace(0.0, 1.0, size)]
    return values if parameter.continuous else list(dict.fromkeys(values))


def _product(values: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """All combinations; the first axis runs fastest."""
    if len(values) == 1:
        return [(v,) for v in values[0]]
    return [(a, b) for b in values[1] for a in values[0]]


def _random_points(parameters: Mapping[str, Parameter], rng: np.random.Generator) -> list[dict[str, Any]]:
    columns = {name: _random_values(p, rng) for name, p in parameters.items()}
    return [{name: column[i] for name, column in columns.items()} for i in range(_PAIRS)]


def _random_values(parameter: Parameter, rng: np.random.Generator) -> list[Any]:
    if not isinstance(parameter, Choice):
        return [parameter.decode(np.array([u])) for u in rng.random(_PAIRS)]
    return [parameter.options[i] for i in rng.integers(len(parameter.options), size=_PAIRS)]


def _total_effects(y: Array, dimension: int) -> list[float]:
    """Jansen's estimator, from values at A, B, and A with each column in turn from B."""
    f_A, f_B, *mixed = np.split(y, dimension + 2)
    var = float(np.var(np.concatenate([f_A, f_B])))
    if var < 1e-12 * (1.0 + float(np.max(np.abs(y))) ** 2):
        return [0.0] * dimension
    return [min(float(np.mean((f_A - f) ** 2)) / (2.0 * var), 1.0) for f in mixed]


def _expectation(found: Prediction, i: int) -> Expectation:
    def ends(pair: tuple[Array, Array]) -> tuple[float, float, float]:
        mean, std = float(pair[0][i]), float(pair[1][i])
        return mean, mean - 1.645 * std, mean + 1.645 * std

    cost: Any = None if found.cost is None else {name: ends(pair) for name, pair in _by_goal(found.cost).items()}
    if cost is not None and not isinstance(found.cost, Mapping):
        cost = cost["cost"]
    return Expectation(cost, {name: ends(pair) for name, pair in found.measured.items()}, float(found.p_safe[i]))
