"""What is said of a trial: one frozen record, and one pure function that judges it against a study.

May import strategies and below.

Whoever hears something of a trial (`tell`, a CSV, HTTP, Optuna's workers, a journal, a correction) makes a `Told` of
it by `Told.of`, has it judged, and puts it on the trial.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypedDict

import numpy as np

from crashbo.optimizer.keywords import spelled_out
from crashbo.optimizer.records import (
    AnyConstraint,
    Censored,
    Constraint,
    Cost,
    Crash,
    Outcome,
    State,
    Stopped,
    Trial,
    Void,
)
from crashbo.search.space import Params, Space, is_number

_BY_CHANCE = 4.0  # standard deviations of its noise that may carry a reading past a limit; judgement: one in 30,000


class Said(TypedDict, total=False):
    """What may be said of a trial, as users write it: exactly one of cost, success, crash, stopped and void."""

    cost: Cost | None
    success: bool | None
    measured: Mapping[str, float] | None
    crash: bool | str | Crash | None
    blame: str | Sequence[str] | None
    censored: Censored
    reached: Mapping[str, float] | None
    rises: Mapping[str, float] | None
    stopped: Stopped | Mapping[str, float] | None
    void: bool | str | None
    note: str | None
    ran: Mapping[str, Any] | None
    context: Mapping[str, Any] | None


takes_said = spelled_out(
    Said,
    {
        "cost": "of a success; with several objectives, goal to value: one that was not measured is left out.",
        "success": "True for a success that has no cost, such as one that is compared with another.",
        "measured": "constraint name to value; of a crash, what the machine still delivered.",
        "crash": "True, a reason, or a Crash.",
        "blame": "names of the constraints that a crash violated, where known.",
        "censored": "names of the readings in `measured` that were cut off, True for all: the true value lies there or "
        "beyond, towards the crash.",
        "reached": "of a crash, constraint name to the farthest reading that came before it, such as a guard's.",
        "rises": "of what was reached, the largest rise from one reading to the next, such as a guard's.",
        "stopped": "a Stopped, or constraint name to the reading at which the trial was stopped before it could crash.",
        "void": "True or a reason, for a fault that says nothing of the params.",
        "note": "words to keep with it, such as what was seen; of a crash or a void, the same as its reason.",
        "ran": "parameter name to the value that was really run, where it differed: models learn from what ran.",
        "context": "the context as it was met, by name, where it differed from what was given with `ask`.",
    },
)


@dataclass(frozen=True)
class Told:
    """What was said of a trial, put in order. Its fields are those of `Trial` that a tell decides."""

    state: State = "pending"
    cost: Any = None  # a number, or goal to number
    measured: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    blame: tuple[str, ...] = ()
    censored: tuple[str, ...] = ()
    reached: dict[str, float] = field(default_factory=dict)
    rises: dict[str, float] = field(default_factory=dict)
    as_run: dict[str, Any] = field(default_factory=dict)  # until it is settled, only what differed

    @staticmethod
    def of(*, ran: Mapping[str, Any] | None = None, context: Mapping[str, Any] | None = None, **said: Any) -> "Told":
        """What a user says, or one sentence on why it cannot be."""
        crash = said.get("crash")
        if isinstance(crash, Crash):
            ran, context = ran or crash.ran, context or crash.context
        for name, values in (("ran", ran), ("context", context)):
            if values is not None and not (isinstance(values, Mapping) and all(map(_is_name, values))):
                raise ValueError(f"{name} must map parameters to values; got {values!r}. Write {{'name': value}}.")
        ran, context = ran or {}, context or {}
        for name in ran.keys() & context.keys():
            if ran[name] != context[name]:
                raise ValueError(
                    f"ran and context must agree; got {ran[name]!r} and {context[name]!r} for {name!r}. Give it in one."
                )
        return replace(Told._of(**said), as_run={**ran, **context})

    @staticmethod
    def _of(
        *,
        cost: Cost | None = None,
        success: bool | None = None,
        measured: Mapping[str, float] | None = None,
        crash: bool | str | Crash | None = None,
        blame: str | Sequence[str] | None = None,
        censored: Censored = None,
        reached: Mapping[str, float] | None = None,
        rises: Mapping[str, float] | None = None,
        stopped: Stopped | Mapping[str, float] | None = None,
        void: bool | str | None = None,
        note: str | None = None,
    ) -> "Told":
        """What came of a trial."""
        crash, void = _spoken("crash", crash, str | Crash), _spoken("void", void, str)
        success = _spoken("success", success, bool)
        noted = _noted(note, crash, void)
        if sum(x is not None for x in (cost, success, crash, stopped, void)) != 1:
            got = f"cost={cost!r}, success={success!r}, crash={crash!r}, stopped={stopped!r}, void={void!r}"
            raise ValueError(
                f"tell must get exactly one of cost, success, crash, stopped and void; got {got}. "
                "A crash has no cost, and success=True is for a success that has none."
            )
        if stopped is not None:
            if reached or rises:
                name, value = ("reached", reached) if reached else ("rises", rises)
                raise ValueError(f"{name} must belong to a crash; got {value!r} with stopped. `stopped` says it all.")
            return _stopped(stopped, measured, blame, noted)
        if isinstance(crash, Crash):
            reached, rises = {**crash.reached, **(reached or {})}, {**crash.rises, **(rises or {})}
            measured, blame = {**crash.measured, **(measured or {})}, _names("blame", blame) or crash.blame
            censored = crash.censored if censored is None else censored
            crash = crash.reason
        values, blamed, before = _measured(measured), _names("blame", blame), _measured(reached, "reached")
        cut = _names("censored", tuple(values) if _is_true(censored) else censored)
        for name in cut:
            if name not in values:
                raise ValueError(
                    f"censored must name what was measured ({', '.join(values) or 'nothing'}); got {name!r}. "
                    "Give the reading that was cut off in `measured`."
                )
        if cost is None and success is None:
            state: State = "void" if crash is None else "crash"
            why = void if crash is None else crash
            crashed, reason = state == "crash", (why if isinstance(why, str) else "") or noted
            watched = (before, _rises(rises, before)) if crashed else ({}, {})
            return Told(state, None, values, reason, blamed * crashed, cut, *watched)
        known = None if cost is None else _cost(cost)
        if before or rises:
            name, value = ("reached", reached) if before else ("rises", rises)
            raise ValueError(
                f"{name} must belong to a crash; got {value!r} with a success. Give what came as `measured`."
            )
        if blamed:
            raise ValueError(f"blame must belong to a crash; got {blame!r} with a success. Leave one of them out.")
        return Told("success", known, values, noted, censored=cut)

    @staticmethod
    def of_trial(trial: Trial) -> "Told":
        """What a trial says by now."""
        return Told(**{name: getattr(trial, name) for name in _FIELDS})

    @staticmethod
    def back(saved: Mapping[str, Any]) -> "Told":
        """What was said, from the plain values of `out`."""
        known: dict[str, Any] = {name: saved[name] for name in _FIELDS if name in saved}
        known |= {name: tuple(known[name]) for name in ("blame", "censored") if name in known}
        return Told(**known)

    def out(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def settled(self, params: Params, space: Space) -> "Told":
        """With all params that were run, if some of them differed from these; else with none."""
        if not self.as_run:
            return self
        ran = space.as_run(params, self.as_run)
        return replace(self, as_run={} if ran == dict(params) else ran)

    def on(self, trial: Trial) -> Trial:
        """The trial of which this is said; what was said of it before no longer holds."""
        return replace(trial, **vars(self))


_FIELDS = [f.name for f in fields(Told)]


def judge(told: Told, constraints: Sequence[AnyConstraint] | None, objectives: Collection[str] | None = None) -> Told:
    """What was told, if a study with these constraints and objectives can take it; None takes every name.

    Raises:
        ValueError: in one sentence that names the remedy.
    """
    if told.state == "pending" or (told.state != "success" and told.cost is not None):
        raise ValueError(f"told must be a success to have a cost, not pending; got {told!r}. Make it by Told.of.")
    if objectives is not None and told.cost is not None:
        _judge_cost(told.cost, objectives)
    if constraints is None:
        return told
    names = [c.name for c in constraints]
    measured = [c.name for c in constraints if isinstance(c, Constraint)]
    for said in ("measured", "reached"):
        for name in getattr(told, said):
            if name not in measured:
                known, said = ", ".join(measured) or "none", "stopped" if told.state == "stopped" else said
                raise ValueError(f"{said} must name constraints ({known}); got {name!r}. Add it.")
    for name in told.blame:
        if name not in names:
            raise ValueError(
                f"blame must name constraints ({', '.join(names)}); got {name!r}. Leave it out if unknown."
            )
    return told


def _judge_cost(cost: Cost, objectives: Collection[str]) -> None:
    goals = ", ".join(objectives)
    if not isinstance(cost, Mapping):
        if objectives:
            first = next(iter(objectives))
            raise ValueError(
                f"cost must map goals ({goals}) to numbers; got {cost!r}. Write {{{first!r}: value, ...}}."
            )
        return
    if not objectives:
        raise ValueError(
            f"cost must be a number in a study with one goal; got {dict(cost)}. "
            "Name the goals when the study begins: objectives={'name': 'minimize', ...}."
        )
    for name in cost:
        if name not in objectives:
            raise ValueError(f"cost must name goals ({goals}); got {name!r}. Mend the name.")


def said_by(outcome: Outcome | Crash | Stopped | Void) -> Said:
    """What an experiment says that returned or raised this."""
    if isinstance(outcome, Crash):
        return {"crash": outcome}
    if isinstance(outcome, Stopped):
        return {"stopped": outcome}
    if isinstance(outcome, Void):
        return {"void": outcome.reason or True}
    return {
        "cost": outcome.cost,
        "measured": outcome.measured,
        "censored": outcome.censored,
        "ran": outcome.ran or None,
        "context": outcome.context or None,
    }


def salvaged(crash: Crash, measured: Mapping[str, Any]) -> Told:
    """What can be kept of a crash that was raised where nobody can be asked any more, with what was measured before."""
    values = {name: float(v) for name, v in {**measured, **crash.measured}.items() if _is_name(name) and is_number(v)}
    cut: Any = tuple(values) if _is_true(crash.censored) else crash.censored
    names = (cut,) if isinstance(cut, str) else tuple(cut) if isinstance(cut, Iterable) else ()
    censored = tuple(name for name in names if _is_name(name) and name in values)
    reached = {name: float(v) for name, v in crash.reached.items() if _is_name(name) and is_number(v)}
    rises = {name: float(v) for name, v in crash.rises.items() if name in reached and is_number(v) and v >= 0.0}
    return Told("crash", None, values, crash.reason, tuple(filter(_is_name, crash.blame)), censored, reached, rises)


def halted(stopped: Stopped, measured: Mapping[str, Any]) -> Told:
    """What can be kept of a stop that was raised where nobody can be asked any more, with what was measured before."""
    values = {name: float(v) for name, v in {**measured, **stopped.measured}.items() if _is_name(name) and is_number(v)}
    if not values:
        return Told("void", reason=stopped.reason or "stopped, but nothing was measured")
    return Told("stopped", None, values, stopped.reason, censored=tuple(values))


def surprise(trial: Trial, constraints: Sequence[AnyConstraint]) -> dict[str, str]:
    """What of a told trial contradicts what is known of its study, in words by kind. It is taken all the same."""
    found = {}
    for c in constraints:
        value, limit = trial.measured.get(c.name), c.threshold
        if trial.state != "success" or value is None or limit is None or isinstance(limit, tuple):
            continue
        if c.sign * (value - limit) > _BY_CHANCE * (c.noise or 0.0):
            found[f"above {c.name}"] = (
                f"trial {trial.number} succeeded with {c.name} {value:g} beyond its known threshold {limit:g}. "
                "It is taken as it is; check the threshold."
            )
    return found


def _stopped(said: Any, measured: Mapping[str, float] | None, blame: Any, note: str) -> Told:
    """A trial that was stopped: all that it had measured by then is a lower bound."""
    if _names("blame", blame):
        raise ValueError(f"blame must belong to a crash; got {blame!r} with stopped. Leave one of them out.")
    reached, reason = (said.measured, said.reason) if isinstance(said, Stopped) else (said, "")
    if not isinstance(reached, Mapping) or not reached:
        raise ValueError(
            f"stopped must map constraints to the readings at which the trial was stopped; got {reached!r}. "
            "Write {'name': value}; tell void=True if nothing was measured."
        )
    values = _measured({**(measured or {}), **reached})
    return Told("stopped", None, values, reason or note, censored=tuple(values))


def _cost(said: Any) -> float | dict[str, float]:
    """A number, or one per goal; a goal that is None was not measured."""
    if not isinstance(said, Mapping):
        if not is_number(said):
            raise ValueError(
                f"cost must be a finite number; got {said!r}. If there is none, tell crash=True or void=True."
            )
        return float(said)
    known = {name: value for name, value in said.items() if value is not None}
    for name, value in known.items():
        if not _is_name(name):
            raise ValueError(f"cost must map names of goals to numbers; got {name!r}. Write {{'name': value}}.")
        if not is_number(value):
            raise ValueError(
                f"cost[{name!r}] must be a finite number; got {value!r}. Leave it out if it was not measured."
            )
    if not known:
        raise ValueError(
            f"cost must have a goal that was measured; got {dict(said)}. Else tell crash=True or void=True."
        )
    return {name: float(value) for name, value in known.items()}


def _spoken(name: str, said: Any, kinds: Any) -> Any:
    """What was said of a crash or a void; None for False."""
    if said is None or (isinstance(said, bool | np.bool_) and not said):
        return None
    if not isinstance(said, bool | np.bool_ | kinds):
        raise ValueError(f"{name} must be True, or say why in words; got {said!r}. Leave it out if there was none.")
    return said


def _noted(note: Any, crash: Any, void: Any) -> str:
    """The note, where nothing else says why."""
    if note is not None and not isinstance(note, str):
        raise ValueError(f"note must be text; got {note!r}. Leave it out if there is none.")
    why = crash.reason if isinstance(crash, Crash) else next((w for w in (crash, void) if isinstance(w, str)), "")
    if note and why and note != why:
        raise ValueError(f"note must be left out where a reason is given; got {note!r} and {why!r}. Join them.")
    return note or ""


def _measured(said: Any, what: str = "measured") -> dict[str, float]:
    if said is None:
        return {}
    if not isinstance(said, Mapping):
        raise ValueError(f"{what} must map constraints to values; got {said!r}. Write {{'name': value}}.")
    for name, value in said.items():
        if not _is_name(name):
            raise ValueError(f"{what} must name constraints; got {name!r}. Write {{'name': value}}.")
        if not is_number(value):
            raise ValueError(f"{what}[{name!r}] must be a finite number; got {value!r}. Leave it out if unknown.")
    return {name: float(value) for name, value in said.items()}


def _rises(said: Any, reached: Mapping[str, float]) -> dict[str, float]:
    """Of what was reached, how far it rose from one reading to the next."""
    found = _measured(said, "rises")
    for name, value in found.items():
        if name not in reached:
            raise ValueError(f"rises must be of what was reached; got {name!r}. Give its last reading in `reached`.")
        if value < 0.0:
            raise ValueError(f"rises[{name!r}] must not be negative; got {value!r}. Count it towards the crash.")
    return found


def _names(what: str, said: Any) -> tuple[str, ...]:
    none = said is None or (isinstance(said, bool | np.bool_) and not said)
    names = (
        () if none else (said,) if isinstance(said, str) else sorted(said, key=str) if isinstance(said, set) else said
    )
    listed = tuple(names) if isinstance(names, Iterable) else (None,)
    if not all(map(_is_name, listed)):
        raise ValueError(f"{what} must be names of constraints; got {said!r}. Or leave it out.")
    return listed


def _is_true(said: Any) -> bool:
    return isinstance(said, bool | np.bool_) and bool(said)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name != ""
