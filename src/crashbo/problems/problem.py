"""What a benchmark problem is: a simulated machine whose truth is known, and what an optimiser may see of it.

May import the public API, from the modules that define it.

A `Problem` knows everything. What an optimiser gets from it, `space`, `constraints` and the outcomes of `evaluate`,
does not reveal the thresholds, and a crash reveals only that it happened. `informed()` is the same machine with both
revealed, for methods that are privileged by definition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.optimizer.records import Constraint, Crash, Outcome, Unmeasured
from crashbo.optimizer.study import Study
from crashbo.problems.publication import Published
from crashbo.search.space import Choice, Float, Int, Space

Array = NDArray[np.float64]
# Noise-free cost and measurements at params: one run of the machine.
Simulation = Callable[[Mapping[str, Any]], tuple[float, Mapping[str, float]]]

_DRAWS = 1000  # points that `safe_start` draws at a time
_ROUNDS = 1000


class Episode(NamedTuple):
    """One experiment as the machine knows it: cost and measurements are present even if it crashed."""

    cost: float
    measured: dict[str, float]
    crash: str  # the reason; empty if it did not crash


class Truth(NamedTuple):
    """What happens at params without noise; cost and measurements are present even if it crashes."""

    cost: float
    measured: dict[str, float]
    crashed: bool


def vector(params: Mapping[str, Any]) -> Array:
    """The values of params, in their order."""
    return np.array(list(params.values()), dtype=float)


@dataclass(frozen=True)
class Limit:
    """A measured quantity, the threshold beyond which the machine crashes, and the noise of its measurement."""

    name: str
    threshold: float
    side: Literal["above", "below"] = "above"
    noise: float = 0.0

    def violated(self, value: float) -> bool:
        """Whether the machine crashes at this (noise-free) value: beyond the threshold, or NaN."""
        return not (value <= self.threshold if self.side == "above" else value >= self.threshold)


def _check(rng: np.random.Generator | None) -> None:
    """Refuse a seed in place of a generator: it would give the same noise every time."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        seed = rng if isinstance(rng, int) and not isinstance(rng, bool) and rng >= 0 else 0
        raise ValueError(
            f"rng must be a numpy Generator, or None for no noise; got {rng!r}. Pass np.random.default_rng({seed})."
        )


def noisy_readings(problem: "Problem", params: Mapping[str, Any], rng: np.random.Generator | None) -> Episode:
    """A deterministic machine with noisy instruments: noise never decides whether it crashes."""
    cost, measured = problem.simulate(params)
    values = {k.name: float(measured[k.name]) for k in problem.limits}
    crashed = any(k.violated(values[k.name]) for k in problem.limits)
    stds = np.array(list(problem.noise.values()))
    # Drawn for a crash too, so that plain and informed runs with the same rng stay in step.
    noise = np.zeros(len(stds)) if rng is None else stds * rng.standard_normal(len(stds))
    read = {name: value + float(e) for (name, value), e in zip(values.items(), noise[1:], strict=True)}
    return Episode(float(cost) + float(noise[0]), read, "crashed" if crashed else "")


@dataclass(frozen=True)
class Problem:
    """A machine that is to be tuned and may crash.

    Attributes:
        name: as `get` knows it.
        space: parameters by name, as Optimizer and minimize take it.
        simulate: noise-free cost and measurements at params.
        limits: the measured quantities with their true thresholds.
        cost_noise: standard deviation of the noise on the cost.
        source: the reference, and where our values differ from those printed there.
        minimum: lowest cost in the space, ignoring crashes (the paper's regret is measured from it).
        constrained_minimum: lowest cost without a crash, if known.
        optimum: params that reach it without crashing, if known (up to rounding, on a crash boundary).
        is_informed: whether thresholds are known and crashes carry their measurements.
        machine: runs one experiment, with noise if there is an rng; by default only the readings are noisy.
        unmeasured: causes of crashes that nobody measures.
        start: safe params where studies begin; None for random ones.
        median_safe_cost: of params drawn uniformly that do not crash, if known.
        rules: between parameters, known beforehand, as Optimizer and minimize take them.
        published: how it is judged where it was published, and what others reached there.
    """

    name: str
    space: Mapping[str, Float | Int | Choice]
    simulate: Simulation
    limits: tuple[Limit, ...]
    cost_noise: float
    source: str
    minimum: float
    constrained_minimum: float | None = None
    optimum: Mapping[str, Any] | None = None
    is_informed: bool = False
    machine: Callable[["Problem", Mapping[str, Any], np.random.Generator | None], Episode] = noisy_readings
    unmeasured: tuple[str, ...] = ()
    start: Mapping[str, Any] | None = None
    median_safe_cost: float | None = None
    rules: tuple[str, ...] = ()
    published: Published | None = None

    @property
    def constraints(self) -> list[Constraint | Unmeasured]:
        """The constraints as an optimiser sees them: thresholds are None unless the problem is informed."""
        measured = [Constraint(k.name, k.threshold if self.is_informed else None, k.side) for k in self.limits]
        return [*measured, *map(Unmeasured, self.unmeasured)]

    @property
    def noise(self) -> dict[str, float]:
        """Standard deviations of the noise, in the form that Optimizer and minimize take."""
        return {"cost": self.cost_noise, **{k.name: k.noise for k in self.limits}}

    def truth(self, params: Mapping[str, Any]) -> Truth:
        """What happens at params without noise."""
        episode = self.machine(self, Space.of(self.space).check(params), None)
        return Truth(episode.cost, episode.measured, bool(episode.crash))

    def evaluate(self, params: Mapping[str, Any], rng: np.random.Generator | None = None) -> Outcome:
        """One experiment; with noise if there is an rng.

        Raises:
            Crash: with only a reason; if the problem is informed, with the measurements too.
        """
        _check(rng)
        episode = self.machine(self, Space.of(self.space).check(params), rng)
        if episode.crash:
            raise Crash(episode.crash, measured=episode.measured if self.is_informed else None)
        return Outcome(episode.cost, episode.measured)

    def safe_start(self, rng: np.random.Generator) -> dict[str, Any]:
        """Params that do not crash, drawn uniformly from all that do not."""
        space = Study.of(self.space, rules=self.rules).space
        for _ in range(_ROUNDS):
            for u in space.uniform(rng.random((_DRAWS, space.dimension))):
                params = space.decode(u)
                if not self.truth(params).crashed:
                    return params
        raise RuntimeError(f"{self.name} has no safe params among {_DRAWS * _ROUNDS} draws. Name one by hand.")

    def informed(self) -> "Problem":
        """The privileged view: known thresholds, and crashes that carry their measurements."""
        return replace(self, is_informed=True)
