"""What defines a crash study beside its trials: given to a sampler, or declared in the storage for all workers.

May import optimizer and below, and Optuna.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from optuna import Study
from optuna.distributions import BaseDistribution, distribution_to_json, json_to_distribution

from crashbo import strategies
from crashbo.integrations.optuna.spaces import distributions_of
from crashbo.optimizer import saving
from crashbo.optimizer.records import AnyConstraint, Constraint, Trial, Unmeasured, constraints_of, is_number
from crashbo.search.risk import Risk, risk_of
from crashbo.search.surrogates import PosteriorOver, check_posterior
from crashbo.strategies.base import Strategy

SETTINGS = "crashbo:settings"
OnFail = Literal["void", "crash"]
Names = Sequence[str | AnyConstraint] | str | AnyConstraint
Noise = float | Mapping[str, float]


@dataclass(frozen=True)
class Settings:
    """Everything may be None: then what was declared holds, then the default."""

    space: Mapping[str, BaseDistribution] | None = None
    constraints: tuple[AnyConstraint, ...] | None = None
    risk: Risk | None = None
    noise: Noise | None = None
    strategy: str | Strategy | None = None
    posterior: PosteriorOver | None = None
    on_fail: OnFail | None = None
    lease: float | None = None

    @staticmethod
    def of(
        *,
        space: Any = None,
        constraints: Names | None = None,
        risk: Risk | str | None = None,
        noise: Noise | None = None,
        strategy: str | Strategy | None = None,
        posterior: PosteriorOver | None = None,
        on_fail: OnFail | None = None,
        lease: float | None = None,
    ) -> "Settings":
        """Settings from what a user writes."""
        if on_fail not in (None, "void", "crash"):
            raise ValueError(f"on_fail must be 'void' or 'crash'; got {on_fail!r}. 'void' ignores what is no crash.")
        if posterior is not None:
            check_posterior(posterior)
        if lease is not None and not (is_number(lease) and lease > 0):
            raise ValueError(f"lease must be a positive number of seconds, or None; got {lease!r}. None waits.")
        return Settings(
            space=_distributions(space),
            constraints=None if constraints is None else constraints_of(constraints),
            risk=None if risk is None else risk_of(risk),
            noise=dict(noise) if isinstance(noise, Mapping) else noise,
            strategy=None if strategy is None else _strategy(strategy),
            posterior=posterior,
            on_fail=on_fail,
            lease=lease,
        )

    def over(self, others: "Settings") -> "Settings":
        """These settings, and the others' where these say nothing."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return replace(others, **said)

    def constraints_for(self, told: Sequence[Trial]) -> tuple[AnyConstraint, ...]:
        """The constraints, as given; without any, what the trials measured, and what else they blame."""
        if self.constraints is not None:
            return self.constraints
        named = [name for name in self.noise if name != "cost"] if isinstance(self.noise, Mapping) else []
        measured = dict.fromkeys(named + sorted({name for t in told for name in t.measured}))
        blamed = sorted({name for t in told for name in t.blame} - set(measured))
        return constraints_of([*map(Constraint, measured), *map(Unmeasured, blamed)])

    def to_json(self) -> str:
        """As text for the storage."""
        out: dict[str, Any] = {
            "space": self.space and {name: distribution_to_json(d) for name, d in self.space.items()},
            "constraints": None if self.constraints is None else saving.constraints_out(self.constraints),
            "risk": None if self.risk is None else saving.risk_out(self.risk),
            "strategy": None if self.strategy is None else strategies.plain(strategies.get(self.strategy)),
            **{name: getattr(self, name) for name in ("noise", "posterior", "on_fail", "lease")},
        }
        return json.dumps({name: value for name, value in out.items() if value is not None}, default=saving.plain)

    @staticmethod
    def from_json(text: str) -> "Settings":
        """The settings of a text."""
        saved = json.loads(text)
        if "space" in saved:
            saved["space"] = {name: json_to_distribution(d) for name, d in saved["space"].items()}
        if "constraints" in saved:
            saved["constraints"] = tuple(saving.constraints_in(saved["constraints"]))
        if "strategy" in saved:
            saved["strategy"] = _strategy(saved["strategy"])
        if "risk" in saved:
            saved["risk"] = saving.risk_in(saved["risk"])
        return Settings(**saved)


def declare(
    study: Study,
    *,
    space: Any = None,
    constraints: Names | None = None,
    risk: Risk | str | None = None,
    noise: Noise | None = None,
    strategy: str | Strategy | None = None,
    posterior: PosteriorOver | None = None,
    on_fail: OnFail | None = None,
    lease: float | None = None,
) -> Settings:
    """Keep settings in the study's storage, where every `CrashSampler()` finds them. What is left out stays.

    Args:
        study: any study, new or old.
        space: a crashbo space, or names to Optuna distributions; the first trial is then proposed as a whole.
        constraints: the measured reasons for a crash.
        risk: None (ours), "paper", Budget or MinSafe.
        noise: standard deviation of the cost where known, or a mapping with "cost" and constraints.
        strategy: how the next trial is chosen.
        posterior: "marginal" (the default) or "map", as for `Optimizer`.
        on_fail: what a FAIL counts as that is not known to be a crash.
        lease: seconds after which a running trial is given up.
    """
    said = Settings.of(
        space=space,
        constraints=constraints,
        risk=risk,
        noise=noise,
        strategy=strategy,
        posterior=posterior,
        on_fail=on_fail,
        lease=lease,
    )
    settings = said.over(declared(study))
    study.set_user_attr(SETTINGS, settings.to_json())
    return settings


def declared(study: Study) -> Settings:
    """What was declared in a study's storage."""
    return declared_in(user_attrs(study))


def user_attrs(study: Study) -> dict[str, Any]:
    """A study's own attributes; from the storage, since a study that a pruner has filtered shows none."""
    return dict(study._storage.get_study_user_attrs(study._study_id))


def declared_in(attrs: Mapping[str, Any]) -> Settings:
    """What was declared, in a study's user attributes."""
    return Settings() if SETTINGS not in attrs else Settings.from_json(attrs[SETTINGS])


def _strategy(strategy: Any) -> str | Strategy:
    """A strategy, by its name where it has no parameters of its own."""
    found = strategies.get(strategy)
    plain = strategies.plain(found)
    return plain if isinstance(plain, str) else found


def _distributions(space: Any) -> dict[str, BaseDistribution] | None:
    if space is None:
        return None
    if isinstance(space, Mapping) and space and all(isinstance(d, BaseDistribution) for d in space.values()):
        return dict(space)
    return distributions_of(space)
