"""Trials as they stand in Optuna's storage, read as crashbo's records and written from what users tell.

May import optimizer and below, and Optuna. The package's docstring says what is stored where.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import optuna
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna.settings import OnFail, Settings, declared, declared_in, user_attrs
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Censored, Constraint, Crash, State, Trial, is_number

MEASURED = "measured:"
STATE, REASON, BLAME = "crashbo:state", "crashbo:reason", "crashbo:blame"
CENSORED, P_SAFE = "crashbo:censored", "crashbo:p_safe"
PROPOSAL, LEASE = "crashbo:proposal", "crashbo:lease"
CORRECTED = "crashbo:corrected:"
EXPIRED = "lease ran out"
_LONGEST = 2000  # characters of a reason


def measure(trial: optuna.Trial, /, **values: float) -> None:
    """Report measurements of a running trial: `measure(trial, current=104.2)`. The last word counts.

    They are kept whether the trial then succeeds or crashes.
    """
    for name, value in values.items():
        if not is_number(value):
            raise ValueError(f"{name} must be a finite number; got {value!r}. Leave it out if unknown.")
    for name, value in values.items():
        trial.set_user_attr(MEASURED + name, float(value))


def ask(study: Study) -> optuna.Trial:
    """The next trial of a study whose space was declared, with all its parameters."""
    space = declared(study).space
    if space is None:
        raise ValueError(
            "study must have a declared space to be asked; it has none. Call declare(study, space=...), or study.ask()."
        )
    return study.ask(fixed_distributions=dict(space))


def tell(
    study: Study,
    trial: optuna.Trial | int,
    *,
    cost: float | None = None,
    measured: Mapping[str, float] | None = None,
    crash: bool | str | Crash | None = None,
    blame: str | Sequence[str] | None = None,
    censored: Censored = None,
    void: bool | str | None = None,
    replace: bool = False,
) -> Trial:
    """Say what came of a trial, as `Optimizer.tell` does; `replace=True` corrects one that was told.

    Optuna's own record of a finished trial cannot be changed: a correction stands beside it, and crashbo reads both.
    """
    number = trial if isinstance(trial, int) else trial.number
    found = _frozen(study, number)
    if found.state != TrialState.RUNNING and not (found.state.is_finished() and replace):
        remedy = "Pass replace=True to correct it." if found.state.is_finished() else "Ask for it first."
        raise ValueError(f"trial {number} must be running to be told; it is {found.state.name}. {remedy}")
    told = _judged(study, cost=cost, measured=measured, crash=crash, blame=blame, censored=censored, void=void)
    if found.state.is_finished():
        words = {"state": told.state, "cost": told.cost, "reason": told.reason, "measured": told.measured}
        names = {"blame": list(told.blame), "censored": list(told.censored)}
        study.set_user_attr(f"{CORRECTED}{number}", {**words, **names})
        return record(study, number)
    mark(study, found, told)
    if told.state == "success":
        study.tell(number, told.cost)
    else:
        study.tell(number, state=TrialState.FAIL)
    return record(study, number)


def renew(trial: optuna.Trial, seconds: float) -> None:
    """Let a running trial's lease end so many seconds from now."""
    trial.storage.set_trial_system_attr(trial._trial_id, LEASE, time.time() + seconds)


def void_expired(study: Study, *, lease: float | None = None) -> list[int]:
    """Store trials whose lease has run out as failed, so that dashboards no longer show them running; their numbers.

    The models leave them out in any case. A worker that turns out to live cannot `study.tell` such a trial any more,
    but `tell(study, number, ..., replace=True)` still can.
    """
    lease = lease or declared(study).lease
    closed = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if not _expired(trial, lease, time.time()):
            continue
        try:
            _note(study, trial, {STATE: "void", REASON: EXPIRED})
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            closed.append(trial.number)
        except optuna.exceptions.UpdateFinishedTrialError:
            continue  # its worker, or another caller, was faster
    return closed


def records(
    study: Study,
    *,
    on_fail: OnFail | None = None,
    lease: float | None = None,
    names: Sequence[str] | None = None,
) -> list[Trial]:
    """Every trial of a study, in order, as crashbo sees it. Params are those of Optuna.

    Args:
        study: any study.
        on_fail: what a FAIL counts as that is not known to be a crash; by default as declared, then "void".
        lease: seconds after which a running trial is void, unless it holds a lease of its own.
        names: of constraints; a user attribute of such a name is taken for its measurement, too.
    """
    reading = Reading.of(study)
    said = Settings.of(on_fail=on_fail, lease=lease, constraints=names)
    return reading.records(said.over(reading.declared))


@dataclass(frozen=True)
class Reading:
    """What a study's storage holds at one moment."""

    trials: Sequence[FrozenTrial]
    attrs: Mapping[str, Any]

    @staticmethod
    def of(study: Study) -> "Reading":
        """What it holds now."""
        return Reading(study.get_trials(deepcopy=False), user_attrs(study))

    @cached_property
    def declared(self) -> Settings:
        """What was declared for all workers."""
        return declared_in(self.attrs)

    def records(self, settings: Settings) -> list[Trial]:
        """Every trial, as these settings have it."""
        found = {t.number: t for t in map(_reader(settings), self.trials)}
        for key, said in self.attrs.items():
            if key.startswith(CORRECTED) and (number := int(key.removeprefix(CORRECTED))) in found:
                found[number] = _corrected(found[number], said)
        return list(found.values())


def single(trial: FrozenTrial, attrs: Mapping[str, Any], settings: Settings) -> Trial:
    """One trial's record, from itself and its study's attributes."""
    said = attrs.get(f"{CORRECTED}{trial.number}")
    found = _reader(settings)(trial)
    return found if said is None else _corrected(found, said)


def pending(study: Study, settings: Settings) -> list[Trial]:
    """The trials under way, read without the others."""
    return under_way(study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING)), settings)


def under_way(trials: Sequence[FrozenTrial], settings: Settings) -> list[Trial]:
    """Those of some trials that are pending."""
    return [t for t in map(_reader(settings), trials) if t.state == "pending"]


def record(study: Study, number: int) -> Trial:
    """One trial of a study."""
    return records(study)[number]


def mark(study: Study, trial: FrozenTrial, told: Trial) -> None:
    """Write what Optuna has no room for, before the trial's end is stored."""
    notes: dict[str, Any] = {MEASURED + name: float(v) for name, v in told.measured.items() if is_number(v)}
    if told.state != "success":
        notes |= {STATE: told.state, REASON: told.reason[:_LONGEST]}
    for key, names in ((BLAME, told.blame), (CENSORED, told.censored)):
        if names:
            notes[key] = list(names)
    _note(study, trial, notes)


def crashed(trial: FrozenTrial, crash: Crash) -> Trial:
    """What a raised crash says of a trial, together with what was measured before."""
    before = {key.removeprefix(MEASURED): value for key, value in trial.user_attrs.items() if key.startswith(MEASURED)}
    measured = {**before, **crash.measured}
    cut = crash.censored
    names = (cut,) if isinstance(cut, str) else (tuple(measured) if cut else ()) if isinstance(cut, bool) else cut or ()
    return Trial(
        trial.number,
        {},
        "crash",
        measured=measured,
        reason=crash.reason,
        blame=crash.blame,
        censored=tuple(name for name in names if name in measured),
    )


def mark_error(study: Study, trial: FrozenTrial, reason: str) -> None:
    """Say why a trial failed that neither crashed nor was void."""
    _note(study, trial, {STATE: "error", REASON: reason[:_LONGEST]})


class _Reader:
    """From Optuna's trials to records."""

    def __init__(self, fail_is_crash: bool, lease: float | None, now: float, names: tuple[str, ...]) -> None:
        self.fail_is_crash, self.lease, self.now, self.names = fail_is_crash, lease, now, names

    def __call__(self, trial: FrozenTrial) -> Trial:
        attrs = trial.user_attrs
        proposal = trial.system_attrs.get(PROPOSAL) or {}
        state, reason = self._state(trial, attrs)
        measured = {key[len(MEASURED) :]: v for key, v in attrs.items() if key.startswith(MEASURED) and is_number(v)}
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
        if said in ("crash", "void"):  # written before the end is stored: it holds even if the worker died between
            return said, reason
        if trial.state == TrialState.FAIL:
            return other, reason
        if trial.state == TrialState.RUNNING and _expired(trial, self.lease, self.now):
            return "void", EXPIRED
        return "pending", ""


def _reader(settings: Settings) -> _Reader:
    names = [c.name for c in settings.constraints or () if isinstance(c, Constraint)]
    return _Reader(settings.on_fail == "crash", settings.lease, time.time(), tuple(names))


def _params(trial: FrozenTrial, proposal: Mapping[str, Any]) -> dict[str, Any]:
    """What the trial runs with, and, until it ran to its end, what it was going to ask for."""
    if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
        return trial.params
    return {**proposal.get("params", {}), **trial.system_attrs.get("fixed_params", {}), **trial.params}


def _expired(trial: FrozenTrial, lease: float | None, now: float) -> bool:
    until = trial.system_attrs.get(LEASE)
    if until is not None:
        return bool(now > until)
    if lease is None or trial.datetime_start is None:
        return False
    return (datetime.now() - trial.datetime_start).total_seconds() > lease


def _corrected(trial: Trial, said: Mapping[str, Any]) -> Trial:
    """The trial as corrected: what the correction leaves out was not so, as with `Optimizer.tell(replace=True)`."""
    return replace(
        trial,
        state=said["state"],
        cost=said["cost"],
        reason=said["reason"],
        blame=tuple(said["blame"]),
        measured=dict(said["measured"]),
        censored=tuple(said["censored"]),
    )


def _judged(study: Study, **told: Any) -> Trial:
    """What was told, checked and in order, by the rules of `Optimizer.tell`."""
    constraints = declared(study).constraints
    if constraints is None:
        crash, blame = told["crash"], told["blame"]
        more = crash if isinstance(crash, Crash) else Crash()
        names = [blame] if isinstance(blame, str) else list(blame or ())
        constraints = tuple(map(Constraint, {**(told["measured"] or {}), **more.measured, **dict.fromkeys(names)}))
        constraints += tuple(Constraint(name) for name in more.blame if name not in {c.name for c in constraints})
    return Optimizer({"x": (0.0, 1.0)}, constraints).tell({"x": 0.0}, **told)


def _note(study: Study, trial: FrozenTrial, notes: Mapping[str, Any]) -> None:
    for key, value in notes.items():
        study._storage.set_trial_user_attr(trial._trial_id, key, value)


def _frozen(study: Study, number: int) -> FrozenTrial:
    trials = study.get_trials(deepcopy=False)
    if not 0 <= number < len(trials):
        raise ValueError(f"trial must be one of this study's {len(trials)}; got number {number}. See records(study).")
    return trials[number]
