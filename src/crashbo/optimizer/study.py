"""A study: everything that defines it, in one frozen record that is checked here, and saved and loaded here.

May import strategies and below.

Every door takes what defines a study as the same keywords: `Optimizer`, `minimize`, `CrashSampler`, `declare`, and a
bench's TOML file. They hand them on as they are, so that a new option is a key of `Options`, a field of `Study` and an
entry of `OPTIONS`, all here, and whatever uses it. None always stands for "not said": then the default holds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Never, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from crashbo import strategies
from crashbo.numerics.kernels import KERNELS, MATERN52, Kernel
from crashbo.optimizer import saving
from crashbo.optimizer.keywords import spelled_out
from crashbo.optimizer.objectives import Direction, check_reference, objectives_of, reference_of
from crashbo.optimizer.records import AnyConstraint, Constraint, Trial, constraints_of
from crashbo.search import own
from crashbo.search.fitting import PosteriorOver
from crashbo.search.risk import Risk, risk_of
from crashbo.search.rules import Rule, rules_of, rules_out
from crashbo.search.space import Space, is_number
from crashbo.strategies.base import Strategy

Constraints = Sequence[str | AnyConstraint] | str | AnyConstraint
Noise = float | Mapping[str, float]
T = TypeVar("T")

_MORE_LIKELY_THAN_NOT = 0.5


class Options(TypedDict, total=False):
    """What may be said of a study beside its space and its constraints, as users write it."""

    strategy: str | Strategy | None
    risk: Risk | str | Mapping[str, Any] | None
    noise: Noise | None
    direction: Direction | None
    posterior: PosteriorOver | None
    units: Mapping[str, str] | None
    guard: float | None
    objectives: Mapping[str, Direction] | None
    reference: Mapping[str, float] | None
    rules: Sequence[str | Callable[[Mapping[str, Any]], Any]] | str | None
    kernel: Kernel | str | None
    cost: Literal["compared"] | None


@dataclass(frozen=True)
class Option:
    """What one of them means, and how it is checked, saved and loaded."""

    words: str
    check: Callable[[Any], Any]  # from what users write, None included, to what a study holds
    out: Callable[[Any], Any] = lambda value: value  # as plain values
    back: Callable[[Any], Any] = lambda saved: saved


def _one_of(name: str, *words: str) -> Callable[[Any], str]:
    """A check for one of a few words, of which the first is the default."""

    def check(said: Any) -> str:
        if said is not None and said not in words:
            known = " or ".join(map(repr, words))
            raise ValueError(f"{name} must be {known}; got {said!r}. {words[0]!r} is the default.")
        return said or words[0]

    return check


def _noise(said: Any) -> dict[str, float]:
    """Standard deviations by name; a number alone is the cost's."""
    noise = dict(said) if isinstance(said, Mapping) else {} if said is None else {"cost": said}
    for std in noise.values():
        if std is not None and not (is_number(std) and std >= 0):
            raise ValueError(f"noise must be a standard deviation >= 0, or None; got {std!r}. None learns it.")
    return {name: float(std) for name, std in noise.items() if std is not None}


def _units(said: Any) -> dict[str, str]:
    """Units by name, for people."""
    if said is not None and not (isinstance(said, Mapping) and all(isinstance(unit, str) for unit in said.values())):
        raise ValueError(f"units must map names to text; got {said!r}. Write {{'cost': 'm', 'current': 'A'}}.")
    return dict(said or {})


def _guard(said: Any) -> float:
    """A probability; by default a guard stops what will more likely crash than not."""
    if said is not None and not (is_number(said) and 0.0 < said < 1.0):
        raise ValueError(f"guard must be a probability between 0 and 1; got {said!r}. 0.5 is the default.")
    return _MORE_LIKELY_THAN_NOT if said is None else float(said)


def _kernel(said: Any) -> Kernel:
    """One of ours by its name, or a user's own, if its profile can be one."""
    if own.is_named(said):
        raise own.refusal("kernel", said)
    if said is None or (isinstance(said, str) and said in KERNELS):
        return KERNELS[said or MATERN52.name]
    if not isinstance(said, Kernel):
        raise ValueError(f"kernel must be {', '.join(map(repr, KERNELS))} or a Kernel; got {said!r}. Choose one.")
    if said not in KERNELS.values() and (why := said.fault()):
        raise ValueError(f"kernel must {why}; got {said.name!r}. Mend its profile.")
    return said


def _cost(said: Any) -> str:
    """Whether trials have a cost, or are compared with each other."""
    if said not in (None, "measured", "compared"):
        raise ValueError(f"cost must be None or 'compared'; got {said!r}. None says that every success has a number.")
    return said or "measured"


def _noise_of(constraints: Iterable[AnyConstraint]) -> dict[str, float]:
    """The noise that constraints bring along."""
    return {c.name: c.noise for c in constraints if c.noise is not None and c.name != "cost"}


def _only(rule: str, said: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = sorted(set(said) - set(known), key=str)
    if unknown:
        raise ValueError(f"{rule}; got {unknown}. Mend the name.")


@dataclass(frozen=True)
class Study:
    """What defines a study. Made by `Study.of` from what users write."""

    space: Space
    constraints: tuple[AnyConstraint, ...]
    strategy: Strategy
    risk: Risk
    noise: Mapping[str, float]
    direction: Direction
    posterior: PosteriorOver
    units: Mapping[str, str]
    guard: float
    objectives: Mapping[str, Direction]  # none of a study with one cost
    reference: Mapping[str, float]  # none where it is found from the trials
    rules: tuple[Rule, ...] = ()  # those of its space
    kernel: Kernel = MATERN52
    cost: Literal["measured", "compared"] = "measured"

    @staticmethod
    def of(
        space: "Study | Space | Mapping[str, Any]", constraints: Constraints | None = None, **options: Unpack[Options]
    ) -> "Study":
        """The study of what a user writes, checked; a study is taken as it is."""
        given: dict[str, Any] = {"constraints": constraints, **options}
        if isinstance(space, Study):
            more = [name for name, value in given.items() if value is not None]
            if more:
                raise ValueError(f"{more[0]} must be part of the study that is given; got it beside one. Say it there.")
            return space
        study = Study._made(Space.of(space), given)
        study._refuse_direction(given)
        return study._checked(vars(study))

    @staticmethod
    def stored(space: Space, options: Mapping[str, Any]) -> "Study":
        """The study of options that were checked before they were stored; it may need more before it can be run."""
        return Study._made(space, options)._completed()

    @staticmethod
    def _made(space: Space, options: Mapping[str, Any]) -> "Study":
        """All noise stands in one place, also what the constraints bring along."""
        said = checked(options, everything=True)
        return Study(space, **{**said, "noise": {**_noise_of(said["constraints"]), **said["noise"]}})

    def changed(
        self,
        space: Space | Mapping[str, Any] | None = None,
        constraints: Constraints | None = None,
        **options: Unpack[Options],
    ) -> "Study":
        """The same study with some of it said anew; what is None stays."""
        said: dict[str, Any] = {"constraints": constraints, **options}
        self._refuse_direction(said)
        new = checked({name: value for name, value in said.items() if value is not None})
        if set(new.get("objectives", self.objectives)) != set(self.objectives):
            raise ValueError(
                f"objectives must keep their names ({', '.join(self.objectives) or 'one cost'}) in a study that has "
                f"begun; got {list(new['objectives'])}. Begin another study."
            )
        noise = {**self.noise, **_noise_of(new.get("constraints", ())), **new.get("noise", {})}
        if isinstance(said.get("noise"), Mapping):  # None there learns it again
            noise = {name: std for name, std in noise.items() if said["noise"].get(name, std) is not None}
        there = self.space if space is None else Space.of(space)
        return replace(self, space=there, **{**new, "noise": noise})._checked(new)

    def out(self) -> dict[str, Any]:
        """As plain values."""
        plain = {name: option.out(getattr(self, name)) for name, option in OPTIONS.items() if name != "noise"}
        if not self.rules:  # as studies were saved that knew of none
            del plain["rules"]
        plain = {name: value for name, value in plain.items() if value or name not in _OF_SEVERAL}
        if self.objectives:
            plain["goal_noise"] = {name: self.noise[name] for name in self.objectives if name in self.noise}
        return {"space": saving.space_out(self.space), **plain, "cost_noise": self.noise.get("cost")}

    @staticmethod
    def back(saved: Mapping[str, Any], **parts: Unpack[Options]) -> "Study":
        """The study of plain values; `parts` replace some of it, such as those that only their author has."""
        known: dict[str, Any] = {name: OPTIONS[name].back(saved[name]) for name in OPTIONS if name in saved}
        known["noise"] = {"cost": saved["cost_noise"], **saved.get("goal_noise", {})}  # constraints have theirs
        known |= {name: part for name, part in parts.items() if part is not None and _is_named(known.get(name))}
        return Study.stored(saving.space_in(saved["space"]), known).changed(**parts)

    @property
    def sign(self) -> float:
        """Inside, every cost is minimised: one that users maximise is turned over."""
        return 1.0 if self.direction == "minimize" else -1.0

    @property
    def signs(self) -> NDArray[np.float64]:
        """The same of every goal, (M,)."""
        return np.array([1.0 if direction == "minimize" else -1.0 for direction in self.objectives.values()])

    @property
    def the_direction(self) -> Direction:
        """That of the one cost; refused where there are several goals."""
        if self.objectives:
            raise ValueError("direction must be asked of a study with one goal; this has several. See `objectives`.")
        return self.direction

    def _refuse_direction(self, said: Mapping[str, Any]) -> None:
        if said.get("direction") is not None and (self.objectives or said.get("objectives")):
            raise ValueError(
                f"direction must be left out where there are objectives; got {said['direction']!r}. "
                "Every goal has its own there: {'name': 'maximize', ...}."
            )

    @property
    def compared(self) -> bool:
        """Whether trials are compared with each other, for want of a cost."""
        return self.cost == "compared"

    @property
    def names(self) -> list[str]:
        """The constraints' names."""
        return [c.name for c in self.constraints]

    @property
    def causes(self) -> str:
        """What may make it crash, in words; empty where nobody named anything."""
        named = self.constraints != constraints_of(None)
        return f"crashes by {', '.join(self.names)}" if named else ""

    @property
    def purpose(self) -> str:
        """What is tuned, for what, in words."""
        goals = " and ".join(f"{direction} {name}" for name, direction in self.objectives.items())
        sought = "by comparisons" if self.compared else f"to {goals or f'{self.the_direction} cost'}"
        return "; ".join(filter(None, [f"{', '.join(self.space.parameters)} {sought}", self.causes]))

    @property
    def measured(self) -> list[Constraint]:
        """The constraints that are measured."""
        return [c for c in self.constraints if isinstance(c, Constraint)]

    def _completed(self) -> "Study":
        """With the noise of every constraint, and the rules in its space."""
        noisy = tuple(
            replace(c, noise=self.noise.get(c.name)) if isinstance(c, Constraint) and c.name != "cost" else c
            for c in self.constraints
        )
        return replace(self, constraints=noisy, space=self.space.with_rules(self.rules))

    def _checked(self, new: Mapping[str, Any]) -> "Study":
        """Completed, if what is new in it names what there is, and its strategy can run it."""
        costs, kind = (list(self.objectives), "goals") if self.objectives else (["cost"], "'cost'")
        known = [*costs, *self.names]
        _only(f"noise must name {kind} or constraints", new.get("noise", {}), known)
        _only(
            f"units must name {kind}, constraints or parameters", new.get("units", {}), [*known, *self.space.parameters]
        )
        if self.reference:
            check_reference(self.reference, self.objectives)
        study = self._completed()
        if study.rules and (study.space != self.space or "rules" in new):
            study.space.check_rules()
        given = tuple(c.given for c in study.constraints)
        strategies.check(study.strategy, study.space, given, study.risk, goals=max(len(self.objectives), 1))
        if self.compared:
            study._check_compared()
        return study

    def _check_compared(self) -> None:
        """Refuse what trials that are compared cannot have."""
        if self.objectives:
            goals = [*self.objectives]
            raise ValueError(
                f"cost must be left out where there are objectives; got 'compared' and {goals}. Choose one."
            )
        if self.space.contexts:
            raise ValueError(
                f"cost must be a number where there is a context; got 'compared' and {[*self.space.contexts]}. "
                "Trials in different contexts cannot be compared."
            )
        if not strategies.takes_comparisons(self.strategy):
            raise ValueError(
                f"strategy must be 'eicc', 'random', 'sobol' or your own where trials are compared; "
                f"got {strategies.plain(self.strategy)!r}. The others need costs."
            )


OPTIONS: dict[str, Option] = {
    "constraints": Option(
        "the measured reasons for a crash: names, Constraint or Unmeasured.",
        constraints_of,
        saving.constraints_out,
        saving.constraints_in,
    ),
    "strategy": Option(
        "how the next trial is chosen: a name, see `crashbo.strategies.names()`, a record, or your own function.",
        lambda said: strategies.get("eicc" if said is None else said),
        strategies.plain,
    ),
    "risk": Option(
        'None (ours), "paper", Price, Budget, MinSafe, or your own record.',
        risk_of,
        saving.risk_out,
        saving.risk_in,
    ),
    "noise": Option(
        'standard deviation of the cost where known, or a mapping with "cost" and constraints.',
        _noise,
        dict,
    ),
    "direction": Option(
        '"minimize" or "maximize" the cost.',
        _one_of("direction", "minimize", "maximize"),
    ),
    "posterior": Option(
        '"marginal" averages P(safe) over plausible hyperparameters; "map" takes the most probable ones.',
        _one_of("posterior", "marginal", "map"),
    ),
    "units": Option(
        'what "cost", constraints and parameters are measured in, for people.',
        _units,
        dict,
    ),
    "guard": Option(
        "a guard stops a trial at the reading before which it crashes with this probability; 0.5 by default.",
        _guard,
    ),
    "objectives": Option(
        'two or three goals in place of the cost: {"time": "minimize", "accuracy": "maximize"}.',
        objectives_of,
        dict,
    ),
    "reference": Option(
        "of several goals, the worst values that count; None finds them from the trials.",
        reference_of,
        dict,
    ),
    "rules": Option(
        "known beforehand to hold between parameters: texts such as 'a + b <= 1', or functions of params.",
        rules_of,
        rules_out,
    ),
    "kernel": Option(
        'of both models: "matern52", the default, "squared_exponential", or a `crashbo.models.Kernel` of your own.',
        _kernel,
        lambda kernel: kernel.name if kernel in KERNELS.values() else own.name_of(kernel.profile),
    ),
    "cost": Option(
        '"compared" where nobody can write it down: then say which of two trials was better, by `prefer`.',
        _cost,
    ),
}
_OF_SEVERAL = ("objectives", "reference")  # a study with one cost is saved without them


def _is_named(saved: Any) -> bool:
    """Whether this, or a part of it, was saved by its name alone."""
    return any(map(own.is_named, saved)) if isinstance(saved, list) else own.is_named(saved)


class Shown(Generic[T]):
    """A part of its study that an object shows as its own. It is read there, and cannot be set."""

    def __init__(self, part: Callable[[Study], T]) -> None:
        self._part = part

    def __get__(self, holder: Any, owner: Any = None) -> T:
        return self._part(holder.study)

    def __set__(self, holder: Any, value: Never) -> None:
        raise AttributeError("a study cannot be changed in place. Make another with `changed`.")


def best_of(trials: Iterable[Trial], direction: Direction) -> Trial | None:
    """The success with the best observed cost; None before the first."""
    successes = [t for t in trials if t.state == "success" and t.cost is not None]
    best = min if direction == "minimize" else max
    return best(successes, key=number_of, default=None)


def number_of(trial: Trial) -> float:
    """The cost of a success of a study with one."""
    return float(trial.cost)


def checked(said: Mapping[str, Any], *, everything: bool = False) -> dict[str, Any]:
    """What was said, as a study holds it; with `everything`, the defaults of what was not."""
    unknown = sorted(set(said) - set(OPTIONS))
    if unknown:
        raise TypeError(f"study must have only the options {', '.join(OPTIONS)}; got {unknown[0]!r}. Mend the name.")
    names = OPTIONS if everything else said
    return {name: OPTIONS[name].check(said.get(name)) for name in names}


_WORDS = {name: option.words for name, option in OPTIONS.items()}
takes_options = spelled_out(Options, _WORDS)
takes_options_of_optuna = spelled_out(
    Options, _WORDS, without=("direction", "objectives")
)  # which Optuna's own study has
