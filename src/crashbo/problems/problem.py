"""What a benchmark problem is: a simulated machine whose truth is known, and the views of it that are handed out.

May import the public API: optimizer, search and models.

A `Problem` knows everything. What an optimiser gets from it, `space`, `constraints` and outcomes of `evaluate`,
says nothing of the thresholds, and a crash says nothing but that it happened. `informed()` is the same machine
with both laid open, for methods that are privileged by definition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.optimizer.records import Constraint, Crash, Outcome, Side
from crashbo.search.space import Parameter, Params, Space

Array = NDArray[np.float64]
# Noise-free cost and measurements at params: one run of the machine.
Simulation = Callable[[Mapping[str, Any]], tuple[float, Mapping[str, float]]]

_DRAWS = 1000  # points that `safe_start` looks at in one go
_ROUNDS = 1000


class Truth(NamedTuple):
    """What happens at params, free of noise; cost and measurements are there even where it crashes."""

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
    side: Side = "above"
    noise: float = 0.0

    def violated(self, value: float) -> bool:
        """Whether the machine crashes at this (noise-free) value: beyond the threshold, or not a number."""
        return not (value <= self.threshold if self.side == "above" else value >= self.threshold)


@dataclass(frozen=True)
class Problem:
    """A machine to be tuned that may crash.

    Attributes:
        name: as `get` knows it.
        space: parameters by name, as Optimizer and minimize take it.
        simulate: noise-free cost and measurements at params.
        limits: the measured quantities with their true thresholds.
        cost_noise: standard deviation of the noise on the cost.
        source: where it is from, and where our values differ from those printed there.
        minimum: lowest cost in the space, crashes disregarded (the paper's regret is measured from it).
        constrained_minimum: lowest cost without a crash, where known.
        optimum: params that reach it without crashing, where known (up to rounding, on a crash boundary).
        is_informed: whether thresholds are known and crashes carry their measurements.
    """

    name: str
    space: Mapping[str, Parameter]
    simulate: Simulation
    limits: tuple[Limit, ...]
    cost_noise: float
    source: str
    minimum: float
    constrained_minimum: float | None = None
    optimum: Mapping[str, Any] | None = None
    is_informed: bool = False

    @property
    def constraints(self) -> list[Constraint]:
        """The constraints as an optimiser may know them: thresholds are None unless the problem is informed."""
        return [Constraint(k.name, k.threshold if self.is_informed else None, k.side) for k in self.limits]

    @property
    def noise(self) -> dict[str, float]:
        """Standard deviations of the noise, as Optimizer and minimize take them."""
        return {"cost": self.cost_noise, **{k.name: k.noise for k in self.limits}}

    def truth(self, params: Mapping[str, Any]) -> Truth:
        """What happens at params, free of noise."""
        cost, measured = self.simulate(Space.of(self.space).check(params))
        values = {k.name: float(measured[k.name]) for k in self.limits}
        return Truth(float(cost), values, any(k.violated(values[k.name]) for k in self.limits))

    def evaluate(self, params: Mapping[str, Any], rng: np.random.Generator | None = None) -> Outcome:
        """One experiment; with noise if there is an rng. Noise never decides whether it crashes.

        Raises:
            Crash: where a quantity passes its threshold; it carries the measurements if the problem is informed.
        """
        truth = self.truth(params)
        stds = np.array(list(self.noise.values()))
        # Drawn for a crash too: plain and informed runs with the same rng stay in step.
        noise = np.zeros(len(stds)) if rng is None else stds * rng.standard_normal(len(stds))
        measured = {name: value + float(e) for (name, value), e in zip(truth.measured.items(), noise[1:], strict=True)}
        if truth.crashed:
            raise Crash("crashed", measured=measured if self.is_informed else None)
        return Outcome(truth.cost + float(noise[0]), measured)

    def safe_start(self, rng: np.random.Generator) -> Params:
        """Params that do not crash, uniformly at random among those."""
        space = Space.of(self.space)
        for _ in range(_ROUNDS):
            for u in space.uniform(rng.random((_DRAWS, space.dimension))):
                params = space.decode(u)
                if not self.truth(params).crashed:
                    return params
        raise RuntimeError(f"{self.name} has no safe params among {_DRAWS * _ROUNDS} draws. Name one by hand.")

    def informed(self) -> "Problem":
        """The privileged view: known thresholds, and crashes that carry their measurements."""
        return replace(self, is_informed=True)
