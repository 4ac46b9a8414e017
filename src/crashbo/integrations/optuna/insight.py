"""What the models know of a study: thresholds, P(safe), blame, and what they recommend.

May import optimizer and below, and Optuna.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna import Study

from crashbo.integrations.optuna.rebuild import Scene
from crashbo.integrations.optuna.sampler import CrashSampler
from crashbo.integrations.optuna.settings import Names, Noise, OnFail, Settings
from crashbo.integrations.optuna.spaces import Axes, common, company
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer.optimizer import Optimizer, Recommendation, Threshold
from crashbo.optimizer.records import AnyConstraint, Trial

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Insight:
    """A study as crashbo's models see it, at one moment. Params are those of Optuna."""

    scene: Scene
    fixed: Mapping[str, Any]  # parameters that have a single value

    @cached_property
    def optimizer(self) -> Optimizer:
        """The Optimizer behind it; its params are those of `scene.axes`."""
        return self.scene.optimizer()

    @property
    def constraints(self) -> tuple[AnyConstraint, ...]:
        """The reasons for a crash, given or found."""
        return self.scene.constraints

    @property
    def params(self) -> list[str]:
        """The parameters that the models see."""
        return self.scene.axes.names

    @cached_property
    def trials(self) -> list[Trial]:
        """The trials that the models see, in order."""
        return [self._outward(t) for t in self.scene.trials]

    @property
    def best(self) -> Trial | None:
        """The success with the best observed cost."""
        best = self.optimizer.best
        return None if best is None else self._outward(best)

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The crash threshold of every measured constraint: `.value`, `.interval` (90 %), `.learned`."""
        return self.optimizer.thresholds

    def recommend(self, delta: float = 0.1) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta; None before a success."""
        found = self.optimizer.recommend(delta)
        return None if found is None else replace(found, params={**self.fixed, **self.scene.axes.outward(found.params)})

    def p_safe(self, params: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Any:
        """Probability that a trial at params succeeds; a list gives an array."""
        if isinstance(params, Mapping):
            return float(self.p_safe([params])[0])
        for p in params:
            missing = [name for name in self.params if name not in p]
            if missing:
                raise ValueError(f"params must name each of {self.params}; got {dict(p)!r}. Add {missing}.")
        return self.optimizer.p_safe([self.scene.axes.inward(p) for p in params])

    def blame(self, number: int) -> dict[str, float]:
        """Probability that each constraint was violated in a trial that crashed; they need not sum to one."""
        return self.optimizer.blame(number)

    def _outward(self, trial: Trial) -> Trial:
        return replace(trial, params={**self.fixed, **self.scene.axes.outward(trial.params)})


def insight(
    study: Study,
    *,
    constraints: Names | None = None,
    noise: Noise | None = None,
    on_fail: OnFail | None = None,
    lease: float | None = None,
) -> Insight:
    """What crashbo makes of a study, whichever sampler filled it.

    What is not given is taken from the study's sampler if that is a CrashSampler, then from what was declared. Where
    not all trials have the same parameters, it covers those that they share, or else those of the latest trial.
    """
    reading = Reading.of(study)
    settings = Settings.of(constraints=constraints, noise=noise, on_fail=on_fail, lease=lease)
    if isinstance(study.sampler, CrashSampler):
        settings = settings.over(study.sampler.given)
    settings = settings.over(reading.declared)
    space = dict(settings.space or common(reading.trials) or company(reading.trials, ()))
    axes = Axes(space)
    if not len(axes):
        raise ValueError("study must have a trial with a parameter to look at; it has none. Run one first.")
    single = {name: _only(d) for name, d in space.items() if d.single()}
    return Insight(Scene.of(reading, axes, settings, study.direction), single)


def _only(distribution: Any) -> Any:
    choices = getattr(distribution, "choices", None)
    return distribution.low if choices is None else choices[0]
