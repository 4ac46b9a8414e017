"""The settings of a study: given to a sampler, or declared in the storage for all workers.

May import optimizer and below, and Optuna.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

from optuna import Study as OptunaStudy
from optuna.distributions import BaseDistribution, distribution_to_json, json_to_distribution

from crashbo.integrations.optuna.keys import SETTINGS
from crashbo.integrations.optuna.spaces import NO_STRUCTURE, Structure, distributions_of, space_of
from crashbo.integrations.optuna.studies import goals_of
from crashbo.optimizer import saving
from crashbo.optimizer.objectives import Direction, check_reference
from crashbo.optimizer.records import AnyConstraint, Constraint, Fault, Trial, Unmeasured, constraints_of
from crashbo.optimizer.study import OPTIONS, Constraints, Options, Study, checked, takes_options_of_optuna
from crashbo.search import own
from crashbo.search.rules import OwnRule
from crashbo.search.space import Space, is_number


@dataclass(frozen=True)
class Settings:
    """Everything is optional: what is left out is as declared, then the default."""

    space: Mapping[str, BaseDistribution] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # of the study, including constraints: only those given
    on_fail: Fault | None = None
    on_death: Fault | None = None
    lease: float | None = None
    structure: Structure = NO_STRUCTURE  # of the space

    @staticmethod
    def of(
        *,
        space: Any = None,
        constraints: Constraints | None = None,
        on_fail: Fault | None = None,
        on_death: Fault | None = None,
        lease: float | None = None,
        **options: Unpack[Options],
    ) -> "Settings":
        """Settings from user input, checked."""
        for name, word in {"on_fail": on_fail, "on_death": on_death}.items():
            if word not in (None, "void", "crash"):
                raise ValueError(f"{name} must be 'crash' or 'void'; got {word!r}. 'void' learns nothing from it.")
        if lease is not None and not (is_number(lease) and lease > 0):
            raise ValueError(f"lease must be a positive number of seconds, or None; got {lease!r}. None waits.")
        for name, there in {"direction": "direction", "objectives": "directions"}.items():
            if options.get(name) is not None:
                raise ValueError(
                    f"{name} must be given to Optuna's create_study as {there}; got {options[name]!r} here. "  # type: ignore[literal-required]
                    "Leave it out."
                )
        said = {name: v for name, v in {"constraints": constraints, **options}.items() if v is not None}
        found, structure, taken = _distributions(space), _structure(space), checked(said)
        if found is not None:
            space_of(found, structure).with_rules(taken.get("rules", ())).check_rules()
        return Settings(found, taken, on_fail, on_death, lease, structure)

    def over(self, others: "Settings") -> "Settings":
        """These settings, completed by others."""
        return Settings(
            others.space if self.space is None else self.space,
            {**others.options, **self.options},
            self.on_fail or others.on_fail,
            self.on_death or others.on_death,
            others.lease if self.lease is None else self.lease,
            others.structure if self.space is None else self.structure,
        )

    def with_goals(self, goals: Mapping[str, Direction]) -> "Settings":
        """These settings, of a study with these goals; none for one cost."""
        return replace(self, options={**self.options, "objectives": dict(goals)}) if goals else self

    def __getattr__(self, name: str) -> Any:
        """An option of the study, such as `settings.risk`; None if it was not given."""
        if name in OPTIONS:
            return self.options.get(name)
        raise AttributeError(f"settings have no {name!r}")

    def constraints_for(self, told: Sequence[Trial]) -> tuple[AnyConstraint, ...]:
        """The constraints, if given; else everything that the trials measured or blame."""
        if self.constraints is not None:
            return constraints_of(self.constraints)
        named = [name for name in self.noise or () if name not in {"cost", *(self.objectives or ())}]
        measured = dict.fromkeys(named + sorted({name for t in told for name in t.measured}))
        blamed = sorted({name for t in told for name in t.blame} - set(measured))
        return constraints_of([*map(Constraint, measured), *map(Unmeasured, blamed)])

    def study(self, space: Space, direction: Direction | None, told: Sequence[Trial]) -> Study:
        """The study with these settings, in a space, given its trials; one with several goals has no direction."""
        constraints = self.constraints_for(told)
        said = {**self.options, "constraints": constraints, "direction": direction}
        costs = self.objectives or ("cost",)
        here = {*costs, *space.parameters, *(c.name for c in constraints)}  # of all that was ever declared
        for name in ("noise", "units"):
            said[name] = {key: value for key, value in (self.options.get(name) or {}).items() if key in here}
        # What a rule names and no trial here has does not exist: then it holds.
        kept = [rule for rule in self.rules or () if rule.names <= set(space.parameters)]
        said["rules"] = [replace(rule, lenient=True) if isinstance(rule, OwnRule) else rule for rule in kept]
        return Study.of(space, **said)

    def to_json(self) -> str:
        """As JSON for the storage."""
        out: dict[str, Any] = {
            "space": self.space and {name: distribution_to_json(d) for name, d in self.space.items()},
            **{name: OPTIONS[name].out(value) for name, value in self.options.items()},
            "on_fail": self.on_fail,
            "on_death": self.on_death,
            "lease": self.lease,
            "structure": self.structure.out(),
        }
        return json.dumps({name: value for name, value in out.items() if value is not None}, default=saving.plain)

    @staticmethod
    def from_json(text: str) -> "Settings":
        """Settings from JSON."""
        saved = json.loads(text)
        space = {name: json_to_distribution(d) for name, d in saved["space"].items()} if "space" in saved else None
        options = checked({name: OPTIONS[name].back(saved[name]) for name in OPTIONS if name in saved})
        structure = Structure.back(saved.get("structure"))
        return Settings(space, options, saved.get("on_fail"), saved.get("on_death"), saved.get("lease"), structure)


@takes_options_of_optuna
def declare(
    study: OptunaStudy,
    *,
    space: Any = None,
    constraints: Constraints | None = None,
    on_fail: Fault | None = None,
    on_death: Fault | None = None,
    lease: float | None = None,
    **options: Unpack[Options],
) -> Settings:
    """Store settings in the study's storage, where every `CrashSampler()` finds them. What is left out is unchanged.

    Args:
        study: any study, new or old.
        space: a crashbo space, or a dict of Optuna distributions; then the first trial, too, has all parameters.
        constraints: the possible reasons for a crash.
        on_fail: how an exception that was caught counts, or a cost that is no number: "crash" (the default) or "void".
        on_death: how the second death of a worker at one setting counts: "crash" (the default) or "void".
        lease: seconds after which the worker of a running trial is taken to be dead.
    """
    said = Settings.of(space=space, constraints=constraints, on_fail=on_fail, on_death=on_death, lease=lease, **options)
    for name, value in said.options.items():
        plain = OPTIONS[name].out(value)
        if own.is_named(plain) or (name == "rules" and any(map(own.is_named, plain))):
            raise ValueError(
                f"{name} must be one of crashbo's to be declared, since a storage cannot hold your own; got {value!r}. "
                f"Pass it to every worker: CrashSampler({name}=...)."
            )
    if said.reference is not None:
        check_reference(said.reference, goals_of(study))
    settings = said.over(declared_in(user_attrs(study)))
    study.set_user_attr(SETTINGS, settings.to_json())
    return settings


def declared(study: OptunaStudy) -> Settings:
    """The settings declared in a study's storage; the goals of one with several are Optuna's."""
    return declared_in(user_attrs(study)).with_goals(goals_of(study))


def user_attrs(study: OptunaStudy) -> dict[str, Any]:
    """A study's user attributes, read from the storage, since a study that a pruner has filtered shows none."""
    return dict(study._storage.get_study_user_attrs(study._study_id))


def declared_in(attrs: Mapping[str, Any]) -> Settings:
    """The settings declared in a study's user attributes."""
    return Settings() if SETTINGS not in attrs else Settings.from_json(attrs[SETTINGS])


def _structure(space: Any) -> Structure:
    """What the distributions of a space do not say; of Optuna's own there is nothing more."""
    if space is None or (isinstance(space, Mapping) and all(isinstance(d, BaseDistribution) for d in space.values())):
        return NO_STRUCTURE
    return Structure.of(Space.of(space))


def _distributions(space: Any) -> dict[str, BaseDistribution] | None:
    if space is None:
        return None
    if isinstance(space, Mapping) and space and all(isinstance(d, BaseDistribution) for d in space.values()):
        return dict(space)
    return distributions_of(space)
