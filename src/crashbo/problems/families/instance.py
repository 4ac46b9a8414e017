"""One member of a family: a landscape with units, levels, noise and a start, as a machine that can be run.

May import the public API, from the modules that define it, and `problem`.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from crashbo.problems.families.landscape import MIDDLE, Array, Dial, Family, Function, Half, Kind, Landscape
from crashbo.problems.problem import Episode, Limit, Problem, noisy_readings
from crashbo.search.space import Choice, Float, Int

_DRAWS = 16_384  # that levels, medians and shares are taken from
_ODD = 0.15  # share of the floats that are on a logarithmic scale
_BELOW = 0.2  # share of the gauges that fall towards a crash
_EXACT = 0.3  # share of the machines without noise
_SMALL = (0.002, 0.02)  # noise of the others, of the spread
_LETTERS = 26
_TIE = 1e-9  # loads this close are those of the same options


class Column(NamedTuple):
    """A parameter, and the coordinates that it can have; None for all of [0, 1]."""

    parameter: Float | Int | Choice
    levels: Array | None

    def coordinate(self, value: Any) -> float:
        """Where a value stands."""
        if isinstance(self.parameter, Choice):
            assert self.levels is not None
            return float(self.levels[self.parameter.options.index(value)])
        return self.parameter.encode(value)[0]

    def exists(self, values: Mapping[str, Any]) -> bool:
        """Whether it does beside these values of others."""
        return all(values[name] in allowed for name, allowed in (self.parameter.when or {}).items())

    def value(self, u: float) -> Any:
        """The value at a coordinate."""
        if isinstance(self.parameter, Choice):
            assert self.levels is not None
            return self.parameter.options[int(np.argmin(np.abs(self.levels - u)))]
        return self.parameter.decode(np.array([u]))


class Gauged(NamedTuple):
    """A quantity that is measured, in its own unit."""

    name: str
    quantity: Function  # before it is given a unit
    unit: float
    zero: float
    threshold: float  # infinite if it has nothing to do with a crash
    side: Literal["above", "below"]
    noise: float

    def read(self, U: Array) -> Array:
        """What a gauge without noise shows."""
        sign = 1.0 if self.side == "above" else -1.0
        return sign * self.unit * self.quantity(U) + self.zero

    @property
    def limit(self) -> Limit:
        """As a problem has it."""
        sign = 1.0 if self.side == "above" else -1.0
        return Limit(self.name, sign * self.unit * self.threshold + self.zero, self.side, self.noise)


class Lowest(NamedTuple):
    """The optima of a machine."""

    safe: float  # lowest cost without a crash
    overall: float  # lowest cost, crash or not
    point: Array  # of the former, in the unit cube


@dataclass(frozen=True)
class Margin:
    """How far a load is beyond its level, in standard deviations: it crashes above zero."""

    load: Function
    level: float
    spread: float

    def __call__(self, U: Array) -> Array:
        """At the points U."""
        return (self.load(U) - self.level) / self.spread


@dataclass(frozen=True)
class Dialled:
    """What a dial makes of a margin."""

    margin: Margin
    dial: Dial

    def __call__(self, U: Array) -> Array:
        """At the points U."""
        return self.dial.gauge(self.margin(U))


@dataclass(frozen=True)
class Instance:
    """A machine that was drawn from a family. Points are rows of the unit cube, one coordinate per parameter."""

    family: Family
    dimension: int
    seed: int
    landscape: Landscape
    columns: tuple[Column, ...]
    margins: tuple[Margin, ...]
    hidden: tuple[Margin, ...]  # those that nobody measures
    gauges: tuple[Gauged, ...]
    unit: float  # of the cost
    zero: float
    noise: float  # of the cost, in its unit
    median: float  # of the costs that are safe
    share: float  # that crashes
    begin: Array | None  # a safe start

    @property
    def name(self) -> str:
        """As its problem is called."""
        return f"{self.family.name}-{self.dimension}d-{self.seed}"

    def cost(self, U: Array) -> Array:
        """Cost without noise, (m,)."""
        return self.unit * self.landscape.cost(U) + self.zero

    def excess(self, U: Array) -> Array:
        """Margins of all causes, (m, G): it crashes where one is above zero; then those of all rules, likewise."""
        return np.stack([margin(U) for margin in self.margins] + self._broken(U), axis=1)

    def forbidden(self, U: Array) -> Array:
        """Margins of the rules alone, (m, R); -1 where there is none."""
        return np.stack(self._broken(U) or [np.full(len(U), -1.0)], axis=1)

    def _broken(self, U: Array) -> list[Array]:
        return [rule.excess(U) for rule in self.landscape.rules]

    def uniform(self, count: int, rng: np.random.Generator) -> Array:
        """Points all over the space, (count, D)."""
        return self.landscape.existing(_uniform(self.columns, count, rng, self.landscape.rules))

    def params(self, u: Array) -> dict[str, Any]:
        """The params at a point."""
        values = {name: column.value(x) for (name, column), x in zip(self._named.items(), u, strict=True)}
        return {name: value for name, value in values.items() if self._named[name].exists(values)}

    def point(self, params: Mapping[str, Any]) -> Array:
        """The point of some params, (1, D); what does not exist makes no difference."""
        pairs = self._named.items()
        return np.array([[column.coordinate(params[name]) if name in params else MIDDLE for name, column in pairs]])

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules in words, of the params."""
        return tuple(self._words(rule) for rule in self.landscape.rules)

    def _words(self, rule: Half) -> str:
        terms = []
        for (name, column), factor in zip(self._named.items(), rule.factors, strict=True):
            p = column.parameter
            if factor and isinstance(p, Float):
                terms.append(f"{factor!r} * ({name} - {p.low!r}) / {p.high - p.low!r}".replace("- -", "+ "))
        return f"{' + '.join(terms)} <= {rule.level!r}"

    def __call__(self, params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
        """Noise-free cost and measurements at params: one run of the machine."""
        U = self.point(params)
        return float(self.cost(U)[0]), {gauge.name: float(gauge.read(U)[0]) for gauge in self.gauges}

    def fails(self, params: Mapping[str, Any]) -> bool:
        """Whether one of the causes that nobody measures makes it crash."""
        U = self.point(params)
        return any(margin(U)[0] > 0.0 for margin in self.hidden)

    @cached_property
    def _named(self) -> dict[str, Column]:
        return {f"x{d + 1}": column for d, column in enumerate(self.columns)}

    def problem(self, lowest: Lowest) -> Problem:
        """The machine as a problem, once its optima are known."""
        return Problem(
            name=self.name,
            space={name: column.parameter for name, column in self._named.items()},
            simulate=self,
            limits=tuple(gauge.limit for gauge in self.gauges),
            cost_noise=self.noise,
            source=f"crashbo.problems.families, {self.family.name}: {self.family.what}. {100.0 * self.share:.0f} % of "
            "the space crash. Optima were found by brute force.",
            minimum=min(lowest.overall, lowest.safe),
            constrained_minimum=lowest.safe,
            optimum=self.params(lowest.point),
            machine=run_machine,
            start=None if self.begin is None else self.params(self.begin),
            median_safe_cost=self.median,
            rules=self.rules,
        )


def run_machine(problem: Problem, params: Mapping[str, Any], rng: np.random.Generator | None) -> Episode:
    """A deterministic machine with noisy instruments, which may crash of what nobody measures."""
    episode = noisy_readings(problem, params, rng)
    assert isinstance(problem.simulate, Instance)
    return episode._replace(crash="crashed") if problem.simulate.fails(params) else episode


def draw(family: Family, dimension: int, seed: int) -> Instance:
    """The member of a family with this seed."""
    rng = np.random.default_rng([zlib.crc32(family.name.encode()), dimension, seed])
    landscape = family.draw(dimension, rng)
    kinds = landscape.kinds or _floats(dimension, rng)
    counts = landscape.counts or (None,) * dimension
    columns = tuple(_column(kind, count, rng) for kind, count in zip(kinds, counts, strict=True))
    columns = tuple(_beside(column, d, columns[0], landscape.beside) for d, column in enumerate(columns))
    U = landscape.existing(_uniform(columns, _DRAWS, rng, landscape.rules))
    margins = _margins(landscape, float(rng.uniform(*landscape.shares)), U)
    crashed = np.any([margin(U) > 0.0 for margin in margins], axis=0)
    costs, safe = landscape.cost(U), U[~crashed]
    unit = float(10.0 ** rng.uniform(-2.0, 3.0))
    # A cost that is never negative keeps its zero: some methods take its logarithm.
    zero = unit * float(3.0 * rng.standard_normal()) if costs.min() < 0.0 else 0.0
    exact = landscape.noise is None and rng.random() < _EXACT
    noise = 0.0 if exact else float(np.exp(rng.uniform(*np.log(landscape.noise or _SMALL))))
    median = float(np.median(costs[~crashed]))
    return Instance(
        family=family,
        dimension=dimension,
        seed=seed,
        landscape=landscape,
        columns=columns,
        margins=margins,
        hidden=tuple(m for m, cause in zip(margins, landscape.causes, strict=True) if cause.dial is None),
        gauges=_gauges(landscape, margins, safe, noise, rng),
        unit=unit,
        zero=zero,
        noise=unit * noise * (median - float(costs[~crashed].min())),
        median=unit * median + zero,
        share=float(crashed.mean()),
        begin=_start(landscape, safe, costs[~crashed], rng),
    )


def _floats(dimension: int, rng: np.random.Generator) -> list[Kind]:
    return ["log" if odd else "float" for odd in rng.random(dimension) < _ODD]


def _column(kind: Kind, count: int | None, rng: np.random.Generator) -> Column:
    """A parameter of some kind, with bounds or options of its own; as many options as are asked for."""
    if kind == "choice":
        count = count or int(rng.integers(2, 6))
        return Column(Choice(_options(count)), rng.permutation(np.linspace(0.0, 1.0, count)))
    if kind == "int":
        low, count = int(rng.integers(0, 5)), int(rng.integers(3, 13))
        return Column(Int(low, low + count - 1), np.linspace(0.0, 1.0, count))
    if kind == "log":
        least = 10.0 ** int(rng.integers(-4, 1))
        return Column(Float(least, least * 10.0 ** int(rng.integers(2, 5)), log=True), None)
    least = round(float(rng.uniform(-10.0, 10.0)), 1)
    return Column(Float(least, round(least + float(f"{10.0 ** rng.uniform(-1.0, 2.0):.1g}"), 1)), None)


def _options(count: int) -> list[str]:
    """Letters, as long as there are enough."""
    return [chr(ord("A") + i) if count <= _LETTERS else f"o{i + 1}" for i in range(count)]


def _beside(column: Column, d: int, first: Column, beside: Mapping[int, bool]) -> Column:
    """A column, which may exist only beside some options of the first."""
    if d not in beside:
        return column
    assert isinstance(first.parameter, Choice)
    assert first.levels is not None
    options = [
        o for o, level in zip(first.parameter.options, first.levels, strict=True) if (level > MIDDLE) == beside[d]
    ]
    return column._replace(parameter=replace(column.parameter, when={"x1": options}))


def _uniform(columns: tuple[Column, ...], count: int, rng: np.random.Generator, rules: tuple[Half, ...] = ()) -> Array:
    U = rng.random((count, len(columns)))
    for d, (_, levels) in enumerate(columns):
        if levels is not None:
            U[:, d] = levels[(U[:, d] * len(levels)).astype(int)]
    kept = U if not rules else U[np.all([rule.excess(U) <= 0.0 for rule in rules], axis=0)]
    return kept if len(kept) == count else np.vstack([kept, _uniform(columns, count - len(kept), rng, rules)])


def _margins(landscape: Landscape, share: float, U: Array) -> tuple[Margin, ...]:
    """Levels at which this share of the points crashes; every cause alone accounts for about as many."""
    loads = [cause.load(U) for cause in landscape.causes]
    ranks = np.stack([np.argsort(np.argsort(load)) for load in loads]).max(axis=0) / len(U)
    quantile = float(np.quantile(ranks, 1.0 - share))
    return tuple(
        Margin(cause.load, _level(load, quantile, few=landscape.counts is not None), float(np.std(load)) or 1.0)
        for cause, load in zip(landscape.causes, loads, strict=True)
    )


def _level(load: Array, quantile: float, *, few: bool) -> float:
    """The load that this share of the points does not exceed; of few points, halfway to the next one's."""
    level = float(np.quantile(load, quantile))
    return 0.5 * (level + float(load[load > level + _TIE].min())) if few else level


def _gauges(
    landscape: Landscape, margins: tuple[Margin, ...], safe: Array, noise: float, rng: np.random.Generator
) -> tuple[Gauged, ...]:
    """All that is measured: causes first, then what has nothing to do with a crash."""
    measured = [
        (Dialled(margin, cause.dial), cause.dial.threshold)
        for margin, cause in zip(margins, landscape.causes, strict=True)
        if cause.dial is not None
    ]
    rows = [("load", *pair) for pair in measured] + [("other", f, np.inf) for f in landscape.bystanders]
    gauges: list[Gauged] = []
    for kind, quantity, threshold in rows:
        number = sum(gauge.name.startswith(kind) for gauge in gauges) + 1
        unit = float(10.0 ** rng.uniform(-1.0, 2.0))
        zero = unit * float(rng.uniform(0.0, 10.0))
        side: Literal["above", "below"] = "below" if rng.random() < _BELOW and np.isfinite(threshold) else "above"
        spread = float(np.subtract(*np.quantile(quantity(safe), [0.75, 0.25])))
        name = kind if number == 1 else f"{kind}{number}"
        gauges.append(Gauged(name, quantity, unit, zero, threshold, side, unit * noise * spread))
    return tuple(gauges)


def _start(landscape: Landscape, safe: Array, costs: Array, rng: np.random.Generator) -> Array | None:
    """A safe point of the worse half, or the landscape's own; none in every second machine, unless it says."""
    given = rng.random() < 0.5 if landscape.has_start is None else landscape.has_start
    worse = safe[costs >= np.median(costs)]
    chosen: Array = worse[rng.integers(len(worse))]
    if not given:
        return None
    return chosen if landscape.start is None else landscape.start
