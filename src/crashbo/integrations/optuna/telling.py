"""Ask for a trial of an Optuna study and tell its outcome, from any worker.

May import optimizer and below, and Optuna.
"""

import time
import uuid
from collections.abc import Mapping
from typing import Any, Unpack

import optuna
from optuna import Study as OptunaStudy
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna import writing
from crashbo.integrations.optuna.clock import lease_of
from crashbo.integrations.optuna.comparing import SaidOfTwo
from crashbo.integrations.optuna.corrections import Correction, Version
from crashbo.integrations.optuna.deaths import EXPIRED, expired
from crashbo.integrations.optuna.keys import CONTEXT, DEATH, MEASURED
from crashbo.integrations.optuna.sampler import CrashSampler
from crashbo.integrations.optuna.settings import Settings, declared
from crashbo.integrations.optuna.spaces import holds, space_of
from crashbo.integrations.optuna.stored import Reading, died, first_told, records
from crashbo.integrations.optuna.writing import End
from crashbo.optimizer.comparing import compared
from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.told import Said, Told, judge, takes_said
from crashbo.search.space import is_number


def measure(trial: optuna.Trial, /, **values: float) -> None:
    """Report measurements of a running trial: `measure(trial, current=104.2)`. The last value counts.

    They are stored whether the trial succeeds or crashes.
    """
    for name, value in values.items():
        if not is_number(value):
            raise ValueError(f"{name} must be a finite number; got {value!r}. Leave it out if unknown.")
    for name, value in values.items():
        trial.set_user_attr(MEASURED + name, float(value))


def ask(study: OptunaStudy, context: Mapping[str, Any] | None = None) -> optuna.Trial:
    """The next trial, with all its parameters, of a study whose space was declared.

    Args:
        study: whose space was declared.
        context: what is met now, a value for each Context of the space.
    """
    settings = declared(study)
    if settings.space is None:
        raise ValueError(
            "study must have a declared space to be asked; it has none. Call declare(study, space=...), or study.ask()."
        )
    if not settings.structure.when and not settings.structure.contexts and context is None:
        return study.ask(fixed_distributions=dict(settings.space))
    space = space_of(settings.space, settings.structure)
    here = space.in_context(context)
    met = {name: here.fixed[name] for name in here.contexts}
    if met and not isinstance(study.sampler, CrashSampler):
        got = type(study.sampler).__name__
        raise ValueError(f"study must have a CrashSampler to heed a context; got {got}. Pass sampler=CrashSampler().")
    for name, value in met.items():
        if not holds(settings.space[name], value):
            raise ValueError(f"{name} must lie within its range for Optuna; got {value!r}. Widen it in declare.")
    if met:  # or no params were found to keep the rules here: then no trial begins
        here.with_rules(settings.rules or ()).check_rules()
    trial = study.ask()
    if met:
        study._storage.set_trial_system_attr(trial._trial_id, CONTEXT, met)
    names = [name for name in space.parameters if name not in space.conditions.conditional]
    for name in (*names, *space.conditions.conditional):
        if name in names or name in space.conditions.lacking(trial.params):
            trial._suggest(name, settings.space[name])
    return trial


@takes_said
def tell(study: OptunaStudy, trial: optuna.Trial | int, *, replace: bool = False, **said: Unpack[Said]) -> Trial:
    """Tell the outcome of a trial, as `Optimizer.tell` does; `replace=True` corrects one that was told.

    Optuna's own record of a finished trial cannot be changed: a correction is stored next to it, with the full history,
    and crashbo reads both.

    Args:
        study: any study.
        trial: as asked, or its number.
        replace: correct a trial that was told before.
    """
    number = trial if isinstance(trial, int) else trial.number
    reading = Reading.of(study)
    found = _frozen(reading, number)
    if found.state != TrialState.RUNNING and not (found.state.is_finished() and replace):
        remedy = "Pass replace=True to correct it." if found.state.is_finished() else "Ask for it first."
        raise ValueError(f"trial {number} must be running to be told; it is {found.state.name}. {remedy}")
    settings = reading.declared
    told = judge(Told.of(**said), settings.constraints, reading.goals)
    told = told.settled(found.params, space_of(reading.distributions, reading.structure)) if told.as_run else told
    if found.state.is_finished():
        before = reading.records(settings)[number]
        Correction.of(reading.attrs, before, first_told(found, settings)).changed(Version(told), "tell").write(study)
    else:
        writing.note(study, found._trial_id, told)
        if told.cost is not None:
            study.tell(number, writing.values_of(told, study))
        else:
            study.tell(number, state=TrialState.FAIL)
    return records(study)[number]


def prefer(study: OptunaStudy, better: int, worse: int, tie: bool = False) -> Comparison:
    """Say which of two successes, by their numbers, was better, as `Optimizer.prefer` does; stored for all workers.

    Args:
        study: any study.
        better: number of a trial.
        worse: number of another.
        tie: both were about the same.
    """
    trials = {trial.number: trial for trial in records(study)}
    said = SaidOfTwo(uuid.uuid4().hex, compared(trials, better, worse, tie), time.time())
    said.write(study)
    return said.comparison


def renew(trial: optuna.Trial, seconds: float) -> None:
    """Extend a running trial's lease to this many seconds from now."""
    for key, value in lease_of(seconds).items():
        trial.storage.set_trial_system_attr(trial._trial_id, key, value)


def void_expired(study: OptunaStudy, *, lease: float | None = None) -> list[int]:
    """Mark trials whose lease has run out as failed, so that dashboards no longer show them as running.

    Returns their numbers. They count as before: the first death at a setting as void, the next as `on_death` says. A
    worker that turns out to be alive cannot `study.tell` such a trial any more, but `tell(study, number, ...,
    replace=True)` still works.
    """
    reading = Reading.of(study)
    settings = Settings.of(lease=lease).over(reading.declared)
    late = [t for t in reading.trials if t.state == TrialState.RUNNING and expired(t, settings.lease, reading.at)]
    ends = [End(t._trial_id, first_told(t, settings), _notes(t, reading, settings)) for t in late]
    return [t.number for t, was_open in zip(late, writing.write(study, ends), strict=True) if was_open]


def _notes(trial: FrozenTrial, reading: Reading, settings: Settings) -> dict[str, str]:
    """Of a trial that died, that it did: its death is to count even though it is void."""
    return {DEATH: EXPIRED} if died(trial, reading.attrs, settings) else {}


def _frozen(reading: Reading, number: int) -> FrozenTrial:
    trials = reading.trials
    if not 0 <= number < len(trials):
        raise ValueError(f"trial must be one of this study's {len(trials)}; got number {number}. See records(study).")
    return trials[number]
