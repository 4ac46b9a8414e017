"""Optuna's distributions as a crashbo space, and the distributions that a study's trials share.

May import optimizer and below, and Optuna.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.optimizer.records import Trial
from crashbo.search.space import Choice, Float, Int, Parameter, Space, is_number

Distributions = Mapping[str, BaseDistribution]

_WHOLE = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class Axis:
    """One distribution and its parameter in the models' space.

    A stepped range becomes the number of steps, a categorical the index of the choice.
    """

    distribution: BaseDistribution

    @cached_property
    def parameter(self) -> Parameter:
        """The parameter in the models' space."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return Choice(range(len(d.choices)))
        assert isinstance(d, FloatDistribution | IntDistribution)
        if self._step is not None:
            return Int(0, round((d.high - d.low) / self._step))
        kind = Float if isinstance(d, FloatDistribution) else Int
        return kind(d.low, d.high, log=d.log)  # type: ignore[arg-type]

    @property
    def _step(self) -> float | None:
        d = self.distribution
        if isinstance(d, IntDistribution) and d.step == 1:
            return None
        return getattr(d, "step", None)

    def reads(self, value: Any) -> bool:
        """Whether a stored value can be read, even if it lies outside the present range."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return any(value is choice or value == choice for choice in d.choices)
        return is_number(value) and (value > 0 or not getattr(d, "log", False))

    def inward(self, value: Any) -> Any:
        """From a value of the distribution to one of the parameter."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return int(d.to_internal_repr(value))
        if self._step is None:
            return value
        steps = (value - d.low) / self._step  # type: ignore[attr-defined]
        return round(steps) if abs(steps - round(steps)) < 1e-6 else steps

    def outward(self, value: Any) -> Any:
        """From a value of the parameter to one of the distribution."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return d.choices[int(value)]
        assert isinstance(d, FloatDistribution | IntDistribution)
        if self._step is not None:
            value = min(d.low + value * self._step, d.high)
        return float(value) if isinstance(d, FloatDistribution) else int(value)


class Axes:
    """Several distributions as one space. Those with a single value are left out."""

    def __init__(self, distributions: Distributions) -> None:
        self._axes = {name: Axis(d) for name, d in distributions.items() if not d.single()}
        self.space = Space({name: axis.parameter for name, axis in self._axes.items()})

    def __len__(self) -> int:
        return len(self._axes)

    @property
    def names(self) -> list[str]:
        """The parameters, in order."""
        return list(self._axes)

    def axis(self, name: str) -> Axis:
        """The axis of a parameter."""
        return self._axes[name]

    def place(self, params: Mapping[str, Any]) -> bool:
        """Whether params fit into the space: a readable value for every parameter."""
        return all(name in params and axis.reads(params[name]) for name, axis in self._axes.items())

    def placed(self, trial: Trial) -> Trial | None:
        """A trial with the space's params; None if it does not fit."""
        return replace(trial, params=self.inward(trial.params)) if self.place(trial.params) else None

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal axes."""
        return tuple((name, repr(axis.distribution)) for name, axis in self._axes.items())

    def inward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """From a trial's params, which may have more names, to those of the space."""
        return {name: axis.inward(params[name]) for name, axis in self._axes.items() if name in params}

    def outward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """From the space's params to those of a trial."""
        return {name: axis.outward(params[name]) for name, axis in self._axes.items()}


def common(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that all trials share.

    Finished trials decide. If there are none, the failed ones with the most parameters do (a trial may have crashed
    before it asked for all), then the running ones.
    """
    for states in (_WHOLE, (TrialState.FAIL,), (TrialState.RUNNING,)):
        found = [t.distributions for t in trials if t.state in states and t.distributions]
        if found:
            most = 1 if states is _WHOLE else max(map(len, found))
            return _shared([d for d in found if len(d) >= most])
    return {}


def company(trials: Iterable[FrozenTrial], known: Iterable[str]) -> dict[str, BaseDistribution]:
    """All parameters of the latest finished trial that has the known parameters."""
    wanted = set(known)
    fitting = (t.distributions for t in trials if t.state.is_finished() and wanted <= t.distributions.keys())
    latest: dict[str, BaseDistribution] = {}
    for latest in fitting:  # noqa: B007 (the last one is wanted)
        pass
    return dict(latest)


def fits(params: Mapping[str, Any], distributions: Distributions) -> bool:
    """Whether params give every parameter, and nothing else, a readable value, in or out of bounds."""
    if set(params) != set(distributions) or not Axes(distributions).place(params):
        return False
    return all(holds(widened(d, params[name]), params[name]) for name, d in distributions.items())


def widened(d: BaseDistribution, value: Any) -> BaseDistribution:
    """The distribution, extended to contain a value: old data may lie outside the present bounds."""
    if isinstance(d, FloatDistribution) and not d.low <= value <= d.high:
        return FloatDistribution(min(d.low, value), max(d.high, value), log=d.log)
    if isinstance(d, IntDistribution) and not d.low <= value <= d.high:
        return IntDistribution(min(d.low, int(value)), max(d.high, int(value)), log=d.log)
    return d


def settled(trial: FrozenTrial) -> dict[str, BaseDistribution]:
    """The parameters that a trial has by now, as far as models can take them.

    A value that was enqueued may lie outside its distribution, which is then extended.
    """
    found = {name: d for name, d in trial.distributions.items() if not d.single() and Axis(d).reads(trial.params[name])}
    return {name: widened(d, trial.params[name]) for name, d in found.items()}


def singles(distributions: Distributions) -> dict[str, Any]:
    """The parameters that have a single value, with that value."""
    # Optuna's internal value is the lower end of a range, and the index of a choice.
    return {name: d.to_external_repr(getattr(d, "low", 0)) for name, d in distributions.items() if d.single()}


def enqueued(trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """The parameters that `enqueue_trial` fixed for this trial, if they lie within the distributions."""
    fixed = trial.system_attrs.get("fixed_params", {})
    return {
        name: fixed[name]
        for name, d in distributions.items()
        if name in fixed and not d.single() and holds(d, fixed[name])
    }


def holds(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a value lies within a distribution."""
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except (ValueError, TypeError):
        return False


def distributions_of(space: Space | Mapping[str, Any]) -> dict[str, BaseDistribution]:
    """Optuna's distributions for a crashbo space."""
    return {name: _distribution(p) for name, p in Space.of(space).parameters.items()}


def _distribution(p: Parameter) -> BaseDistribution:
    if isinstance(p, Choice):
        return CategoricalDistribution(p.options)
    return (FloatDistribution if isinstance(p, Float) else IntDistribution)(p.low, p.high, log=p.log)  # type: ignore[arg-type]


def _shared(found: Sequence[Distributions]) -> dict[str, BaseDistribution]:
    first, *others = reversed(found)
    shared = dict(first)
    for other in others:
        if other is first:
            continue
        shared = {name: d for name, d in shared.items() if other.get(name) == d}
    return dict(sorted(shared.items()))
