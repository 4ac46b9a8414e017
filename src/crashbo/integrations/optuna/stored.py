"""Reads the trials in Optuna's storage as crashbo's records.

May import optimizer and below, and Optuna. The package's docstring says what is stored where.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from optuna import Study as OptunaStudy
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna import comparing
from crashbo.integrations.optuna.corrections import Version
from crashbo.integrations.optuna.deaths import Deaths, death, params_of
from crashbo.integrations.optuna.keys import (
    BLAME,
    CENSORED,
    CORRECTED,
    MEASURED,
    PROPOSAL,
    RAN,
    REACHED,
    REASON,
    RISES,
    STATE,
    UNMEASURED,
)
from crashbo.integrations.optuna.memo import Memo, memo_of
from crashbo.integrations.optuna.settings import Settings, declared_in, user_attrs
from crashbo.integrations.optuna.spaces import Structure, common
from crashbo.integrations.optuna.studies import direction_of, goals_of
from crashbo.optimizer.objectives import Direction
from crashbo.optimizer.records import Comparison, Constraint, Fault, State, Trial
from crashbo.optimizer.told import Told
from crashbo.search.space import is_number


def records(
    study: OptunaStudy,
    *,
    on_fail: Fault | None = None,
    on_death: Fault | None = None,
    lease: float | None = None,
    names: Sequence[str] | None = None,
) -> list[Trial]:
    """Every trial of a study as a crashbo record, in order. Params are those of Optuna.

    What is not given is taken from the study's sampler if that is a CrashSampler, then from what was declared.

    Args:
        study: any study.
        on_fail: how a FAIL counts of which no more is known; by default "crash".
        on_death: how the second death of a worker at one setting counts; by default "crash".
        lease: seconds after which the worker of a running trial is taken to be dead, unless it has its own lease.
        names: of constraints; a user attribute of this name counts as its measurement, too.
    """
    reading = Reading.of(study)
    said = Settings.of(on_fail=on_fail, on_death=on_death, lease=lease, constraints=names)
    given = getattr(study.sampler, "given", None)  # of a CrashSampler, which stands above this module
    return reading.records((said.over(given) if isinstance(given, Settings) else said).over(reading.declared))


@dataclass(frozen=True)
class Reading:
    """The content of a study's storage at one moment."""

    trials: Sequence[FrozenTrial]
    attrs: Mapping[str, Any]
    direction: Direction | None  # None of a study with several goals
    goals: Mapping[str, Direction] = field(default_factory=dict)
    at: float = field(default_factory=time.time)  # seconds since 1970
    memo: Memo = field(default_factory=Memo, compare=False)  # of earlier readings

    @staticmethod
    def of(study: OptunaStudy) -> "Reading":
        """The current content."""
        goals = goals_of(study)
        direction = None if goals else direction_of(study.direction)
        trials, attrs = study.get_trials(deepcopy=False), user_attrs(study)
        return Reading(trials, attrs, direction, goals, memo=memo_of(study))

    @cached_property
    def declared(self) -> Settings:
        """The settings declared for all workers; the goals are Optuna's."""
        return declared_in(self.attrs).with_goals(self.goals)

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The parameters: declared, or shared by all trials."""
        return dict(self.declared.space or common(self.trials))

    @property
    def structure(self) -> Structure:
        """What the distributions do not say of them."""
        return self.declared.structure

    def records(self, settings: Settings) -> list[Trial]:
        """Every trial as a record, according to these settings."""
        repeated = self.deaths(settings).repeated
        read = _Reader(settings, self.at, repeated)
        kept = self.memo["record", read.on_fail, read.on_death, read.lease, read.names]
        found = (
            kept.of(t.number, t, read) if t.state.is_finished() and t.number not in repeated else read(t)
            for t in self.trials
        )
        return [_corrected(t, self.attrs) for t in found]

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The comparisons of trials that stand, in the order in which they were told."""
        return [said.comparison for said in comparing.said_in(self.attrs) if not said.undone]

    def deaths(self, settings: Settings) -> Deaths:
        """The trials whose workers died."""
        return Deaths.among(self.trials, self.attrs, settings.lease, self.at)


def single(trial: FrozenTrial, attrs: Mapping[str, Any], settings: Settings) -> Trial | None:
    """One trial's record, from itself and its study's attributes; None if it died, as then others matter, too."""
    return None if died(trial, attrs, settings) else _corrected(_Reader(settings, time.time())(trial), attrs)


def died(trial: FrozenTrial, attrs: Mapping[str, Any], settings: Settings) -> bool:
    """Whether a trial ended with its worker, and was not corrected since."""
    return f"{CORRECTED}{trial.number}" not in attrs and death(trial, settings.lease, time.time()) is not None


def first_told(trial: FrozenTrial, settings: Settings) -> Told:
    """What Optuna's own record says of a trial, whatever corrected it."""
    return Told.of_trial(_Reader(settings, time.time())(trial))


def pending(study: OptunaStudy, settings: Settings) -> list[Trial]:
    """The pending trials, read without the others."""
    return under_way(study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING)), settings)


def under_way(trials: Sequence[FrozenTrial], settings: Settings) -> list[Trial]:
    """The pending ones of some trials."""
    return [t for t in map(_Reader(settings, time.time()), trials) if t.state == "pending"]


def _corrected(trial: Trial, attrs: Mapping[str, Any]) -> Trial:
    said = attrs.get(f"{CORRECTED}{trial.number}")
    return trial if said is None else Version.back(said).on(trial)


class _Reader:
    """Converts Optuna's trials to records."""

    def __init__(self, settings: Settings, now: float, repeated: Mapping[int, str] | None = None) -> None:
        self.on_fail: State = settings.on_fail or "crash"
        self.on_death: State = settings.on_death or "crash"
        self.lease, self.now = settings.lease, now
        self.repeated = repeated or {}  # deaths that were not the first at their settings
        self.names = tuple(c.name for c in settings.constraints or () if isinstance(c, Constraint))
        self.goals = tuple(settings.objectives or ())

    def __call__(self, trial: FrozenTrial) -> Trial:
        attrs = trial.user_attrs
        proposal = trial.system_attrs.get(PROPOSAL) or {}
        state, reason = self._state(trial, attrs)
        measured = measured_in(attrs)
        for name in self.names:
            if name not in measured and is_number(attrs.get(name)):
                measured[name] = float(attrs[name])
        return Trial(
            number=trial.number,
            params=params_of(trial),
            state=state,
            p_safe=proposal.get("p_safe"),
            cost=self._cost(trial) if state == "success" and trial.values else None,
            measured=measured,
            reason=reason,
            blame=tuple(attrs.get(BLAME, ())) if state == "crash" else (),
            censored=tuple(name for name in attrs.get(CENSORED, ()) if name in measured),
            origin=proposal.get("origin", "start" if "fixed_params" in trial.system_attrs else "told"),
            admissible=proposal.get("admissible", True),
            p_model=proposal.get("p_model"),
            against=proposal.get("against"),
            reached=_readings(attrs.get(REACHED)) if state == "crash" else {},
            rises=_readings(attrs.get(RISES)) if state == "crash" else {},
            as_run=dict(attrs.get(RAN) or {}) if state != "pending" else {},
        )

    def _cost(self, trial: FrozenTrial) -> Any:
        if len(trial.values) < 2:
            return trial.values[0]
        unmeasured = _unmeasured(trial.user_attrs)
        named = zip(self.goals, trial.values, strict=True)
        return {name: value for name, value in named if name not in unmeasured}

    def _state(self, trial: FrozenTrial, attrs: Mapping[str, Any]) -> tuple[State, str]:
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
            if not trial.values:
                return "void", "pruned without a value"
            values = [v for name, v in zip(self.goals, trial.values, strict=False) if name not in _unmeasured(attrs)]
            bad = [value for value in values or trial.values if not math.isfinite(value)]
            return (self.on_fail, f"its cost is {bad[0]}") if bad else ("success", str(attrs.get(REASON, "")))
        if trial.number in self.repeated:
            return self.on_death, f"its worker died here again: {self.repeated[trial.number]}"
        why = death(trial, self.lease, self.now)
        if why is not None:
            return "void", why
        said, reason = attrs.get(STATE), str(attrs.get(REASON, ""))
        if said in (
            "crash",
            "stopped",
            "success",
            "void",
        ):  # written before Optuna stores the end, which counts even if the worker died
            return said, reason
        if said is not None or trial.state == TrialState.FAIL:
            return self.on_fail, reason
        return "pending", ""


def _unmeasured(attrs: Mapping[str, Any]) -> Sequence[str]:
    return attrs.get(UNMEASURED) or ()


def _readings(said: Any) -> dict[str, float]:
    return {str(name): float(v) for name, v in said.items() if is_number(v)} if isinstance(said, Mapping) else {}


def measured_in(attrs: Mapping[str, Any]) -> dict[str, float]:
    """The measurements in a trial's attributes."""
    return {key[len(MEASURED) :]: v for key, v in attrs.items() if key.startswith(MEASURED) and is_number(v)}
