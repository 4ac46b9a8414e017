"""What the models say about a study: thresholds, P(safe), blame and recommendation.

May import optimizer and below, and Optuna.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from optuna import Study as OptunaStudy

from crashbo.integrations.optuna.sampler import CrashSampler
from crashbo.integrations.optuna.settings import Settings
from crashbo.integrations.optuna.snapshot import Snapshot
from crashbo.integrations.optuna.spaces import Axes, branches, common, company, singles
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer.checks.everything import check
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.guard import Guard
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import AnyConstraint, Fault, Trial
from crashbo.optimizer.study import Constraints, Noise, best_of
from crashbo.optimizer.threshold import Threshold
from crashbo.optimizer.view import Recommendation, View
from crashbo.search.space import Space

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Insight:
    """What crashbo's models say about a study at one moment. Params are those of Optuna."""

    snapshot: Snapshot
    fixed: Mapping[str, Any]  # parameters that have a single value

    @cached_property
    def view(self) -> View:
        """The models' view, in the params of `snapshot.axes`; fitted on first access."""
        return self.snapshot.view()

    @property
    def learnt(self) -> tuple[Trial, ...]:
        """The trials of the models, in the params of `snapshot.axes`."""
        return self.snapshot.trials

    @property
    def space(self) -> Space:
        """The models'."""
        return self.snapshot.axes.space

    def told(self, count: int | None = None) -> Self:
        """The same of the told trials alone; with `count`, the first so many of them."""
        return replace(self, snapshot=self.snapshot.told(count))

    @cached_property
    def optimizer(self) -> Optimizer:
        """An Optimizer that goes on from here, in the params of `snapshot.axes`."""
        return Optimizer.restored(self.snapshot.study, self.snapshot.trials, {}, self.snapshot.comparisons)

    @property
    def constraints(self) -> tuple[AnyConstraint, ...]:
        """The constraints, given or inferred from the trials."""
        return self.snapshot.study.constraints

    @property
    def params(self) -> list[str]:
        """The parameters of the models."""
        return self.snapshot.axes.names

    @cached_property
    def trials(self) -> list[Trial]:
        """The trials of the models, in order."""
        return [
            replace(t, params=self.outward(t.params), as_run=self.outward(t.as_run) if t.as_run else {})
            for t in self.snapshot.trials
        ]

    @property
    def best(self) -> Trial | None:
        """The success with the best observed cost; where trials were compared, the one of best expected worth."""
        if self.snapshot.study.compared or self.snapshot.comparisons:
            found = self.view.best
            return None if found is None else replace(found, params=self.outward(found.params))
        return best_of(self.trials, self.snapshot.study.the_direction)

    @property
    def front(self) -> list[Trial]:
        """Of several goals, the trials that no other beats in all of them, in order."""
        return [replace(t, params=self.outward(t.params)) for t in self.view.front]

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """Of several goals, the volume of what the front beats, up to a reference point."""
        return self.view.hypervolume(reference)

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The crash threshold of every measured constraint: `.value`, `.interval` (90 %), `.learned`."""
        return self.view.thresholds

    def recommend(
        self,
        delta: float = 0.1,
        weights: Mapping[str, float] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
    ) -> Recommendation | None:
        """The point of minimum expected cost with P(safe) >= 1 - delta; None before a success.

        Of several goals it is a compromise by their `weights`, as of `Optimizer.recommend`.
        """
        found = self.view.at(context).recommend(delta, weights)
        return None if found is None else replace(found, params=self.outward(found.params))

    def p_safe(
        self,
        params: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Probability that a trial at params succeeds; a list gives an array."""
        if isinstance(params, Mapping):
            return float(self.p_safe([params], context=context)[0])
        view, space = self.view.at(context), self.snapshot.space
        met = {name: view.space.fixed[name] for name in space.contexts if name in view.space.fixed}
        inward = [{**met, **self.snapshot.axes.inward(p)} for p in params]
        for p, values in zip(params, inward, strict=True):
            missing = space.conditions.lacking(values)
            if missing:
                raise ValueError(f"params must name each of {self.params}; got {dict(p)!r}. Add {missing}.")
        return view.p_safe(inward)

    def guard(self, p: float | None = None, params: Mapping[str, Any] | None = None) -> Guard:
        """What stops a trial, at params or any, while it runs, before it crashes, as `Optimizer.guard`."""
        return self.view.guard(p, None if params is None else self.snapshot.axes.inward(params))

    def blame(self, number: int) -> dict[str, float]:
        """Probability that each constraint was violated in a trial that crashed; they need not sum to one."""
        return self.view.blame(number)

    def check(self) -> list[Finding]:
        """What in the trials speaks against the model, in words, with a remedy: the strongest first; then advice."""
        if not (self.snapshot.trials or self.snapshot.known):
            return []
        trials = sorted((*self.snapshot.trials, *self.snapshot.known), key=lambda t: t.number)
        return check(replace(self.view, trials=tuple(trials)), self.outward)

    def inward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """From Optuna's params to the models'."""
        return self.snapshot.axes.inward(params)

    def value_inward(self, name: str, value: Any) -> Any:
        """From a value of Optuna's to the models'."""
        return self.snapshot.axes.axis(name).inward(value)

    def value_outward(self, name: str, value: Any) -> Any:
        """From a value of the models' to Optuna's."""
        return self.snapshot.axes.axis(name).outward(value)

    def outward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """From the models' params to Optuna's."""
        return {**self.fixed, **self.snapshot.axes.outward(params)}


def insight(
    study: OptunaStudy,
    *,
    constraints: Constraints | None = None,
    noise: Noise | None = None,
    on_fail: Fault | None = None,
    on_death: Fault | None = None,
    lease: float | None = None,
) -> Insight:
    """What crashbo's models say about a study, whichever sampler was used.

    What is not given is taken from the study's sampler if that is a CrashSampler, then from what was declared. If not
    all trials have the same parameters, some of them exist beside values of others, as the trials show; where they show
    nothing of the kind, it covers those that all share, or else those of the latest trial.
    """
    reading = Reading.of(study)
    settings = Settings.of(constraints=constraints, noise=noise, on_fail=on_fail, on_death=on_death, lease=lease)
    if isinstance(study.sampler, CrashSampler):
        settings = settings.over(study.sampler.given)
    settings = settings.over(reading.declared)
    found, structure = settings.space, settings.structure
    if found is None and (inferred := branches(reading.trials)) is not None:
        found, structure = inferred
    space = dict(found or common(reading.trials) or company(reading.trials, ()))
    axes = Axes(space, structure, settings.rules or ())
    if not len(axes):
        raise ValueError("study must have a trial with a parameter to look at; it has none. Run one first.")
    return Insight(Snapshot.of(reading, axes, settings), singles(space))
