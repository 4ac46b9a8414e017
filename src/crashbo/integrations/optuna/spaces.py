"""Optuna's distributions as a crashbo space, and the distributions that a study's trials share.

May import optimizer and below, and Optuna.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.optimizer.records import Trial
from crashbo.search.rules import OwnRule, Rule
from crashbo.search.space import Choice, Context, Float, Int, Parameter, Space, is_number

Distributions = Mapping[str, BaseDistribution]

_WHOLE = (TrialState.COMPLETE, TrialState.PRUNED)
_FEW = 20  # different values of a parameter on which others may depend


@dataclass(frozen=True)
class Structure:
    """What distributions do not say of a space."""

    when: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)  # of parameters that exist only then
    ordered: Sequence[str] = ()  # choices whose order means something
    contexts: Sequence[str] = ()  # parameters that are met and not chosen

    def __post_init__(self) -> None:  # JSON makes lists of tuples
        when = {name: {q: tuple(values) for q, values in of.items()} for name, of in self.when.items()}
        object.__setattr__(self, "when", when)
        object.__setattr__(self, "ordered", tuple(self.ordered))
        object.__setattr__(self, "contexts", tuple(self.contexts))

    @staticmethod
    def of(space: Space) -> "Structure":
        """Of a crashbo space."""
        ps = space.parameters
        when = {name: {parent: list(values) for parent, values in p.when.items()} for name, p in ps.items() if p.when}
        ordered = [name for name, p in ps.items() if isinstance(p, Choice) and p.ordered]
        return Structure(when, ordered, list(space.contexts))

    @staticmethod
    def back(saved: Mapping[str, Any] | None) -> "Structure":
        """From the plain values of `out`."""
        return Structure(**(saved or {}))

    def out(self) -> dict[str, Any] | None:
        """As plain values; None where there is nothing to say."""
        return {name: value for name, value in vars(self).items() if value} or None  # tuples are lists in JSON


NO_STRUCTURE = Structure()


@dataclass(frozen=True)
class Axis:
    """One distribution and its parameter in the models' space.

    A stepped range becomes the number of steps, a categorical the index of the choice; but where it is `literal`, since
    rules name it, values stay what they are.
    """

    distribution: BaseDistribution
    literal: bool = False
    ordered: bool = False
    context: bool = False

    @cached_property
    def parameter(self) -> Parameter:
        """The parameter in the models' space."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return Choice(d.choices if self.literal else range(len(d.choices)), ordered=self.ordered)
        assert isinstance(d, FloatDistribution | IntDistribution)
        if self.context:
            return Context(d.low, d.high, log=d.log)
        if self._step is not None:
            return Int(0, round((d.high - d.low) / self._step))
        if isinstance(d, FloatDistribution) and d.step is not None:
            return Float(d.low, d.high, step=d.step)
        if isinstance(d, IntDistribution) and d.step > 1:
            return Choice(range(d.low, d.high + 1, d.step), ordered=True)
        kind = Float if isinstance(d, FloatDistribution) else Int
        return kind(d.low, d.high, log=d.log)  # type: ignore[arg-type]

    @property
    def _step(self) -> float | None:
        d = self.distribution
        if self.literal or (isinstance(d, IntDistribution) and d.step == 1):
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
            return value if self.literal else int(d.to_internal_repr(value))
        if self._step is None:
            return value
        steps = (value - d.low) / self._step  # type: ignore[attr-defined]
        return round(steps) if abs(steps - round(steps)) < 1e-6 else steps

    def outward(self, value: Any) -> Any:
        """From a value of the parameter to one of the distribution."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return value if self.literal else d.choices[int(value)]
        assert isinstance(d, FloatDistribution | IntDistribution)
        if self._step is not None:
            value = min(d.low + value * self._step, d.high)
        return float(value) if isinstance(d, FloatDistribution) else int(value)


class Axes:
    """Several distributions as one space. Those with a single value are left out, unless rules name them."""

    def __init__(
        self, distributions: Distributions, structure: Structure = NO_STRUCTURE, rules: Sequence[Rule] = ()
    ) -> None:
        literal = {name for rule in rules for name in rule.names}
        if any(isinstance(rule, OwnRule) for rule in rules):
            literal = set(distributions)
        alone = {name: v for name, v in singles(distributions).items() if name in literal and is_number(v)}
        conditions = _conditions(distributions, structure)
        self._axes = {
            name: Axis(d, name in literal, name in structure.ordered, name in structure.contexts)
            for name, d in distributions.items()
            if (not d.single() or name in alone) and conditions.get(name, {}) is not None
        }
        parameters = {name: axis.parameter for name, axis in self._axes.items()}
        for name, when in conditions.items():
            if when and name in parameters:
                told = {q: tuple(self._axes[q].inward(v) for v in values) for q, values in when.items()}
                parameters[name] = replace(parameters[name], when=told)  # type: ignore[arg-type]
        self.space = Space(parameters, alone)

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
        """Whether params fit into the space: a readable value for every parameter that exists."""
        if any(name in params and not axis.reads(params[name]) for name, axis in self._axes.items()):
            return False
        return not self.space.conditions.lacking(self.inward(params))

    def placed(self, trial: Trial) -> Trial | None:
        """A trial with the space's params; None if it does not fit."""
        if not self.place(trial.params):
            return None
        ran = self.inward(trial.as_run) if trial.as_run and self.place(trial.as_run) else {}
        return replace(trial, params=self.inward(trial.params), as_run=ran)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal axes."""
        whens = ((name, repr(p.when)) for name, p in self.space.parameters.items())
        return (*((name, repr(axis)) for name, axis in self._axes.items()), *whens)

    def inward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """From a trial's params, which may have more names, to those of the space."""
        values = {name: axis.inward(params[name]) for name, axis in self._axes.items() if name in params}
        return {name: values[name] for name in self.space.existing(values)} if self.space.parents else values

    def outward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """From the space's params to those of a trial."""
        return {name: axis.outward(params[name]) for name, axis in self._axes.items() if name in params}


def _conditions(distributions: Distributions, structure: Structure) -> dict[str, dict[str, Sequence[Any]] | None]:
    """When parameters exist, by those that have more than one value; None for one that never does."""
    single, found = singles(distributions), {}
    for name, when in structure.when.items():
        never = any(q in single and single[q] not in values for q, values in when.items())
        found[name] = None if never else {q: v for q, v in when.items() if q in distributions and q not in single}
    return found


def branches(trials: Sequence[FrozenTrial]) -> tuple[dict[str, BaseDistribution], Structure] | None:
    """The parameters of a study in which some exist only beside values of others, as its complete trials show it.

    A parameter depends on another if no value of that goes with it in some trials and without it in others. None where
    all have the same, a parameter depends on nothing to be seen, or has had several distributions.
    """
    whole = [t for t in trials if t.state in _WHOLE and t.distributions]
    every = {name: d for t in whole for name, d in t.distributions.items()}
    partial = [name for name in every if any(name not in t.distributions for t in whole)]
    if not partial or any(t.distributions.get(name, d) != d for t in whole for name, d in every.items()):
        return None
    when: dict[str, dict[str, list[Any]]] = {}
    for name in partial:
        depends = next((q for q in every if _decides(q, name, whole, every[q], when)), None)
        if depends is None:
            return None
        when[name] = {depends: _seen(depends, [t for t in whole if name in t.distributions])}
    return dict(sorted(every.items())), Structure(when)


def _decides(
    q: str, name: str, whole: Sequence[FrozenTrial], d: BaseDistribution, when: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Whether the values of q tell the trials with a parameter from those without."""
    beside = [t for t in whole if name in t.distributions]
    others = [t for t in whole if name not in t.distributions and q in t.params]
    if q == name or not all(q in t.params for t in beside) or isinstance(d, FloatDistribution):
        return False
    if _depends(q, name, when):
        return False
    values, elsewhere = _seen(q, beside), _seen(q, others)
    # With no trial that has q and not the parameter, both exist beside the same of a third.
    return bool(others) and len(values) + len(elsewhere) <= _FEW and not any(v in elsewhere for v in values)


def _depends(q: str, name: str, when: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether q exists only beside a parameter, at once or by way of others."""
    return any(parent == name or _depends(parent, name, when) for parent in when.get(q, ()))


def _seen(q: str, trials: Sequence[FrozenTrial]) -> list[Any]:
    found: list[Any] = []
    for t in trials:
        if t.params[q] not in found:
            found.append(t.params[q])
    return found


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


def fits(params: Mapping[str, Any], distributions: Distributions, structure: Structure = NO_STRUCTURE) -> bool:
    """Whether params give every parameter that exists, and nothing else, a readable value, in or out of bounds."""
    axes = Axes(distributions, structure)
    there = {*axes.inward(params), *singles(distributions)} if set(params) <= set(distributions) else set()
    if set(params) != there or not axes.place(params):
        return False
    return all(holds(widened(distributions[name], value), value) for name, value in params.items())


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
    if isinstance(p, Float) and p.step is not None:
        return FloatDistribution(p.low, p.values()[-1], step=p.step)  # Optuna wants whole steps
    if isinstance(p, Context):
        return FloatDistribution(p.low, p.high, log=p.log)
    return (FloatDistribution if isinstance(p, Float) else IntDistribution)(p.low, p.high, log=p.log)  # type: ignore[arg-type]


def _shared(found: Sequence[Distributions]) -> dict[str, BaseDistribution]:
    first, *others = reversed(found)
    shared = dict(first)
    for other in others:
        if other is first:
            continue
        shared = {name: d for name, d in shared.items() if other.get(name) == d}
    return dict(sorted(shared.items()))


def space_of(distributions: Distributions, structure: Structure = NO_STRUCTURE) -> Space:
    """The parameters as a space, for users."""
    return Space({name: _parameter(d, name, structure) for name, d in distributions.items()})


def _parameter(d: BaseDistribution, name: str, structure: Structure) -> Parameter:
    """A distribution as a parameter, for users."""
    when = structure.when.get(name)
    if isinstance(d, CategoricalDistribution):
        return Choice(d.choices if len(d.choices) > 1 else (*d.choices, "—"), name in structure.ordered, when)
    assert isinstance(d, FloatDistribution | IntDistribution)
    high = d.high if d.high > d.low else d.low + 1
    if name in structure.contexts:
        return Context(d.low, high, log=d.log)
    if isinstance(d, FloatDistribution):
        return Float(d.low, high, log=d.log, step=d.step, when=when)
    return Int(d.low, int(high), log=d.log, when=when)
