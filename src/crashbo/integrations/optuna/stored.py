"""Reads the trials in Optuna's storage as crashbo's records.

May import optimizer and below, and Optuna. The package's docstring says what is stored where.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from optuna import Study as OptunaStudy
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna.keys import BLAME, CENSORED, CORRECTED, LEASE, MEASURED, PROPOSAL, REASON, STATE
from crashbo.integrations.optuna.settings import Settings, declared_in, user_attrs
from crashbo.integrations.optuna.spaces import common
from crashbo.optimizer.records import Constraint, Fault, State, Trial
from crashbo.optimizer.told import Told
from crashbo.search.space import is_number

EXPIRED = "lease ran out"


def records(
    study: OptunaStudy,
    *,
    on_fail: Fault | None = None,
    lease: float | None = None,
    names: Sequence[str] | None = None,
) -> list[Trial]:
    """Every trial of a study as a crashbo record, in order. Params are those of Optuna.

    Args:
        study: any study.
        on_fail: how a FAIL counts that is not known to be a crash; by default as declared, then "void".
        lease: seconds after which a running trial is void, unless it has its own lease.
        names: of constraints; a user attribute of this name counts as its measurement, too.
    """
    reading = Reading.of(study)
    said = Settings.of(on_fail=on_fail, lease=lease, constraints=names)
    return reading.records(said.over(reading.declared))


@dataclass(frozen=True)
class Reading:
    """The content of a study's storage at one moment."""

    trials: Sequence[FrozenTrial]
    attrs: Mapping[str, Any]

    @staticmethod
    def of(study: OptunaStudy) -> "Reading":
        """The current content."""
        return Reading(study.get_trials(deepcopy=False), user_attrs(study))

    @cached_property
    def declared(self) -> Settings:
        """The settings declared for all workers."""
        return declared_in(self.attrs)

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The parameters: declared, or shared by all trials."""
        return dict(self.declared.space or common(self.trials))

    def records(self, settings: Settings) -> list[Trial]:
        """Every trial as a record, according to these settings."""
        return [_corrected(t, self.attrs) for t in map(_reader(settings), self.trials)]


def single(trial: FrozenTrial, attrs: Mapping[str, Any], settings: Settings) -> Trial:
    """One trial's record, from itself and its study's attributes."""
    return _corrected(_reader(settings)(trial), attrs)


def first_told(trial: FrozenTrial, settings: Settings) -> Told:
    """What Optuna's own record says of a trial, whatever corrected it."""
    return Told.of_trial(_reader(settings)(trial))


def pending(study: OptunaStudy, settings: Settings) -> list[Trial]:
    """The pending trials, read without the others."""
    return under_way(study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING)), settings)


def under_way(trials: Sequence[FrozenTrial], settings: Settings) -> list[Trial]:
    """The pending ones of some trials."""
    return [t for t in map(_reader(settings), trials) if t.state == "pending"]


def _corrected(trial: Trial, attrs: Mapping[str, Any]) -> Trial:
    said = attrs.get(f"{CORRECTED}{trial.number}")
    return trial if said is None else Told.back(said).on(trial)


class _Reader:
    """Converts Optuna's trials to records."""

    def __init__(self, fail_is_crash: bool, lease: float | None, now: float, names: tuple[str, ...]) -> None:
        self.fail_is_crash, self.lease, self.now, self.names = fail_is_crash, lease, now, names

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
            params=_params(trial, proposal),
            state=state,
            p_safe=proposal.get("p_safe"),
            cost=trial.values[0] if state == "success" else None,
            measured=measured,
            reason=reason,
            blame=tuple(attrs.get(BLAME, ())) if state == "crash" else (),
            censored=tuple(name for name in attrs.get(CENSORED, ()) if name in measured),
            origin=proposal.get("origin", "start" if "fixed_params" in trial.system_attrs else "told"),
            admissible=proposal.get("admissible", True),
            p_model=proposal.get("p_model"),
        )

    def _state(self, trial: FrozenTrial, attrs: Mapping[str, Any]) -> tuple[State, str]:
        other: State = "crash" if self.fail_is_crash else "void"
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
            if not trial.values:
                return "void", "pruned without a value"
            if math.isfinite(trial.values[0]):
                return "success", ""
            return other, f"its cost is {trial.values[0]}"
        said, reason = attrs.get(STATE), str(attrs.get(REASON, ""))
        if said in ("crash", "void"):  # written before Optuna stores the end: valid even if the worker died in between
            return said, reason
        if trial.state == TrialState.FAIL:
            return other, reason
        if trial.state == TrialState.RUNNING and expired(trial, self.lease, self.now):
            return "void", EXPIRED
        return "pending", ""


def measured_in(attrs: Mapping[str, Any]) -> dict[str, float]:
    """The measurements in a trial's attributes."""
    return {key[len(MEASURED) :]: v for key, v in attrs.items() if key.startswith(MEASURED) and is_number(v)}


def _reader(settings: Settings) -> _Reader:
    names = [c.name for c in settings.constraints or () if isinstance(c, Constraint)]
    return _Reader(settings.on_fail == "crash", settings.lease, time.time(), tuple(names))


def _params(trial: FrozenTrial, proposal: Mapping[str, Any]) -> dict[str, Any]:
    """The trial's params; until it is complete, also those that were proposed but not yet asked for."""
    if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
        return trial.params
    return {**proposal.get("params", {}), **trial.system_attrs.get("fixed_params", {}), **trial.params}


def expired(trial: FrozenTrial, lease: float | None, now: float) -> bool:
    """Whether the lease of a running trial has run out."""
    until = trial.system_attrs.get(LEASE)
    if until is not None:
        return bool(now > until)
    if lease is None or trial.datetime_start is None:
        return False
    return (datetime.now() - trial.datetime_start).total_seconds() > lease
