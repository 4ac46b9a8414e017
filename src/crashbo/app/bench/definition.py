"""A study as a user writes it: in TOML, or as flags.

May import every other layer.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from crashbo.app.subject import Goal, Titled
from crashbo.optimizer.records import AnyConstraint, Constraint, Fault, Unmeasured
from crashbo.optimizer.study import OPTIONS, Study, checked
from crashbo.processes import bytes_of
from crashbo.search.space import Choice, Context, Float, Int, Parameter, Space, is_number
from crashbo.workers import Limits

RESERVED = (
    *("number", "state", "cost", "reason", "blame", "censored", "p_safe", "p_model", "origin", "request"),
    *("id", "who", "told_at", "took", "ran", "against", "beat", "lost_to", "tied_with"),
)
LONGEST_NAME = 80
LARGEST = 1e30  # limit of all numbers, so that their squares stay finite
FAULTS = get_args(Fault)
WORDS = dict.fromkeys(("on_timeout", "on_death", "on_exit", "on_rubbish"), FAULTS) | {"on_nan": (*FAULTS, "raise")}


@dataclass(frozen=True)
class RunRules:
    """How the end of a command counts if it printed no result. Names, meanings and defaults are those of `minimize`."""

    timeout: float | None = None  # seconds
    on_timeout: Fault = "crash"
    memory: str | float | None = None  # of the command and all that it starts: "2GB", or bytes
    on_death: Fault = "crash"  # killed by a signal, or for its memory
    on_nan: Fault | Literal["raise"] = "raise"  # a cost that is no finite number
    on_exit: Fault = "void"  # an exit code other than 0
    exits: Mapping[str, Fault] = field(default_factory=dict)  # exceptions for single exit codes
    on_rubbish: Fault = "void"  # exit code 0, but no valid result

    def __post_init__(self) -> None:
        if self.timeout is not None and not (is_number(self.timeout) and self.timeout > 0):
            raise ValueError(
                f"run.timeout must be a positive number of seconds; got {self.timeout!r}. Or leave it out."
            )
        if self.memory is not None:
            bytes_of(self.memory)
        said = {name: getattr(self, name) for name in WORDS}
        if not isinstance(self.exits, Mapping):
            raise ValueError(f"run.exits must map exit codes to 'crash' or 'void'; got {self.exits!r}. Mend it.")
        for name, verdict in {**said, **{f"exits.{code}": v for code, v in self.exits.items()}}.items():
            words = WORDS.get(name, FAULTS)
            if verdict not in words:
                raise ValueError(f"run.{name} must be {' or '.join(map(repr, words))}; got {verdict!r}. Choose one.")
        for code in self.exits:
            if not str(code).isdecimal() or not 0 < int(code) < 256:
                raise ValueError(f"run.exits must name exit codes from 1 to 255; got {code!r}. Mend it.")

    @property
    def limits(self) -> Limits:
        """What a command may take."""
        return Limits(self.timeout, None if self.memory is None else bytes_of(self.memory))

    def of_exit(self, code: int) -> Fault:
        """How an exit code other than 0 counts."""
        return self.exits.get(str(code), self.on_exit)


@dataclass(frozen=True)
class Definition:
    """Everything that defines a study."""

    name: str
    space: Space
    options: Mapping[str, Any] = field(default_factory=dict)  # of the study, including constraints: only those given
    lease: float | None = None  # seconds after which a trial is given up
    start: tuple[Mapping[str, Any], ...] = ()
    label: str = "cost"  # name of the cost
    run: RunRules = RunRules()

    @staticmethod
    def from_toml(path: Path, **more: Any) -> "Definition":
        """The study of a TOML file; `more` are values from flags."""
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"file must be readable; got {str(path)!r} ({error.strerror}). Check it.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"file must be TOML; got {str(path)!r} ({error}). Mend it.") from None
        return Definition.of({"name": path.stem, **said, **more})

    @staticmethod
    def of(said: Mapping[str, Any]) -> "Definition":
        """The study from plain values, checked."""
        _only(said, {"name", "parameters", "cost", "compared", "lease", "start", "run", *OPTIONS}, "study")
        parameters, constraints = _tables(said)
        for name in said["objectives"] if isinstance(said.get("objectives"), Mapping) else ():
            _check_goal(name, parameters)
        cost = said.get("cost", {})
        _only(cost, {"label", "unit"}, "cost")
        rules = said.get("run", {})
        if isinstance(rules, Mapping) and "on_kill" in rules:
            raise ValueError(f"run.on_kill must be written on_death; got {rules['on_kill']!r}. Rename it.")
        _only(rules, {f.name for f in fields(RunRules)}, "run")
        tables = {**parameters, **constraints, "cost": cost}
        units = {name: table["unit"] for name, table in tables.items() if "unit" in table}
        for name, unit in checked({"units": said.get("units")})["units"].items():
            if units.setdefault(name, unit) != unit:
                raise ValueError(f"unit of {name} must be given once; got {unit!r} and {units[name]!r}. Leave one out.")
        for name, text in {**units, "cost.label": cost.get("label", "cost")}.items():
            check_text(text, f"unit or label of {name}")
        space = Space.of({name: _parameter(name, table) for name, table in parameters.items()})
        options = {name: said[name] for name in OPTIONS if name in said and name != "cost"}
        if not isinstance(said.get("compared", False), bool):
            raise ValueError(f"compared must be true or false; got {said['compared']!r}. True: trials have no cost.")
        if said.get("compared"):
            options["cost"] = "compared"
        options["constraints"] = [_constraint(name, table) for name, table in constraints.items()]
        options["units"] = units
        start, lease = said.get("start", []), said.get("lease")
        if not isinstance(start, list):
            raise ValueError(f"start must be a list of settings; got {start!r}. Write [{{knee = 0.2}}], for example.")
        if lease is not None and not (is_number(lease) and lease > 0):
            raise ValueError(f"lease must be a positive number of seconds; got {lease!r}. Or leave it out.")
        definition = Definition(
            name=checked_name(said.get("name"), "name"),
            space=space,
            options=checked(options),
            lease=lease,
            start=tuple(start),
            label=cost.get("label", "cost"),
            run=RunRules(**rules),
        )
        chosen = Study.of(space, **definition.options).space.without_contexts  # checks that the options are consistent
        return replace(definition, start=tuple(chosen.check_proposable("start", params) for params in start))

    @cached_property
    def study(self) -> Study:
        """The study, with defaults for what was not given."""
        return Study.stored(self.space, self.options)

    @cached_property
    def titled(self) -> Titled:
        """The study with its name and that of the cost."""
        return Titled(self.name, self.study, self.label)

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What is minimised or maximised, for people: the cost, or every one of several objectives."""
        return self.titled.goals

    def extras(self) -> str:
        """What Optuna's storage has no field for, as JSON."""
        labels = {"cost": self.label, "units": dict(self.study.units)}
        return json.dumps({"labels": labels, "run": asdict(self.run)})


def extras_in(text: str | None) -> tuple[str, dict[str, str], RunRules]:
    """What `extras` wrote: the name of the cost, the units, and the rules of `run`."""
    saved = json.loads(text) if text else {}
    labels, rules = saved.get("labels", {}), saved.get("run", {})
    if "on_kill" in rules:  # of an edition for which NaN was rubbish
        rules |= {"on_death": rules.pop("on_kill"), "on_nan": rules.get("on_rubbish", "void")}
    return labels.get("cost", "cost"), labels.get("units", {}), RunRules(**rules)


def checked_name(name: Any, what: str) -> str:
    """A valid name of a study, parameter or constraint."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
        raise ValueError(f"{what} must be a text of 1 to {LONGEST_NAME} characters; got {name!r}. Choose another.")
    check_text(name, what)
    return name


def check_text(text: Any, what: str, longest: int = 500) -> None:
    """Refuse what is not text, is too long, or is not printable."""
    if not isinstance(text, str):
        raise ValueError(f"{what} must be text; got {text!r}. Write words.")
    if len(text) > longest:
        raise ValueError(f"{what} must have at most {longest} characters; got {len(text)}. Shorten it.")
    if any((ord(c) < 32 and c not in "\t\n") or ord(c) == 127 or 0xD800 <= ord(c) < 0xE000 for c in text):
        raise ValueError(f"{what} must be printable text; it has control characters. Remove them.")


def _check_goal(name: Any, parameters: Mapping[str, Any]) -> None:
    checked_name(name, "goal")
    if name in RESERVED or name in parameters:
        raise ValueError(f"goal must not be called as a parameter, nor {', '.join(RESERVED)}; got {name!r}. Rename it.")


def _tables(said: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Parameters and constraints as tables, with their names checked."""
    parameters, constraints = said.get("parameters"), said.get("constraints", {})
    if not isinstance(parameters, Mapping) or not parameters:
        raise ValueError(
            f"parameters must name at least one; got {parameters!r}. Write knee = [0.0, 1.0], for example."
        )
    if isinstance(constraints, Sequence) and not isinstance(constraints, str):
        constraints = {name: {} for name in constraints}
    if not isinstance(constraints, Mapping):
        raise ValueError(
            f"constraints must be names or tables; got {constraints!r}. Write current = {{}}, for example."
        )
    for name in [*parameters, *constraints]:
        checked_name(name, "parameter or constraint")
        if name in RESERVED:
            raise ValueError(
                f"parameter or constraint must not be called {name!r}: trials have that already. Rename it."
            )
    for name in constraints:
        if name in parameters:
            raise ValueError(f"constraint must not be called as a parameter; got {name!r}. Rename one.")
    return {n: _parameter_table(n, t) for n, t in parameters.items()}, {n: _table(n, t) for n, t in constraints.items()}


def _parameter_table(name: str, said: Any) -> dict[str, Any]:
    if isinstance(said, Sequence) and not isinstance(said, str):
        numbers = len(said) == 2 and all(map(is_number, said))
        return {"low": said[0], "high": said[1]} if numbers else {"options": list(said)}
    return _table(name, said)


def _table(name: str, said: Any) -> dict[str, Any]:
    if not isinstance(said, Mapping):
        raise ValueError(f"{name} must be a table; got {said!r}. Write {name} = {{}}, for example.")
    return dict(said)


def _parameter(name: str, table: Mapping[str, Any]) -> Parameter:
    if "options" in table:
        _only(table, {"options", "unit", "ordered", "when"}, name)
        return Choice(table["options"], table.get("ordered", False), table.get("when"))
    context = table.get("context", False) is True
    more = {"context"} if context else {"context", "int", "step", "when"}
    _only(table, {"low", "high", "log", "unit", *more}, name)
    low, high = table.get("low"), table.get("high")
    for end in (low, high):
        if not is_number(end) or abs(end) > LARGEST:  # type: ignore[arg-type]
            raise ValueError(f"{name} must have low and high, finite numbers; got {low!r} and {high!r}. Give both.")
    log, when = bool(table.get("log", False)), table.get("when")
    if context:
        return Context(low, high, log=log)  # type: ignore[arg-type]
    if not table.get("int", False):
        return Float(low, high, log=log, step=table.get("step"), when=when)  # type: ignore[arg-type]
    _only(table, {"low", "high", "log", "unit", "int", "context", "when"}, name)
    return Int(low, high, log=log, when=when)  # type: ignore[arg-type]


def _constraint(name: str, table: Mapping[str, Any]) -> AnyConstraint:
    if table.get("measured", True) is False:
        _only(table, {"measured"}, name)
        return Unmeasured(name)
    _only(table, {"measured", "threshold", "side", "noise", "censored", "unit"}, name)
    threshold = table.get("threshold")
    return Constraint(
        name,
        tuple(threshold) if isinstance(threshold, list) else threshold,
        side=table.get("side", "above"),
        noise=table.get("noise"),
        censored=bool(table.get("censored", False)),
    )


def _only(said: Any, known: set[str], what: str) -> None:
    if not isinstance(said, Mapping):
        raise ValueError(f"{what} must be a table; got {said!r}. Mend it.")
    unknown = sorted(set(said) - known)
    if unknown:
        raise ValueError(f"{what} must have only {', '.join(sorted(known))}; got {unknown[0]!r}. Mend the name.")
