"""Rows of a table, read as trials that were made before: their params and what came of them.

May import strategies and below. Every door for tables goes through here: CSV files on the command line, over HTTP and
on the page, and `Optimizer.tell_table`.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crashbo.optimizer.records import Trial
from crashbo.optimizer.study import Study
from crashbo.optimizer.tables import cells
from crashbo.optimizer.tables.cells import Dialect, is_empty
from crashbo.optimizer.tables.columns import COMPARED, COST, MORE, TALE, columns
from crashbo.optimizer.tables.sheets import TableSheet
from crashbo.optimizer.told import Told, judge
from crashbo.search.space import Choice, Context

_USUAL = Dialect()
_STATES = f"{', '.join(cells.STATES[:-1])} or {cells.STATES[-1]}"


@dataclass(frozen=True)
class Row:
    """A row of a table, read and checked."""

    line: int
    params: dict[str, Any]
    told: Told
    id: str = ""  # of the trial, if the table has one
    number: str = ""  # of the trial in the table, if it has one
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # numbers in the table, by column
    notes: tuple[str, ...] = ()  # what was left out, or understood beyond what stands there


def headers_known(study: Study) -> list[str]:
    """The names that columns may have."""
    own = [column.header for column in columns(study)]
    goals = [name for name in study.objectives if name not in own]
    others = [name for name in TALE if name != "cost" or not study.objectives]
    return list(dict.fromkeys([*own, *goals, *others, *MORE, *COMPARED, "crash"]))


def headers_needed(study: Study) -> list[str]:
    """Those without which a table says nothing: of all parameters that always exist."""
    optional = study.space.conditions.conditional
    return [c.header for c in columns(study) if c.kind == "params" and c.name not in optional]


def headers_unused(study: Study) -> set[str]:
    """Those that an Optimizer makes itself, or has no place for, unless a parameter or a constraint is called so."""
    own = {column.header for column in columns(study) if column.kind}
    return {*MORE, "p_safe", "p_model", "origin"} - own


def read(study: Study, sheet: TableSheet, dialect: Dialect = _USUAL) -> tuple[list[Row], dict[int, str]]:
    """The trials in the rows, without those that were pending; and what is wrong with the others, by their lines."""
    found, wrong = [], {}
    headers = {(column.kind, column.name): column.header for column in columns(study)}
    for line, row in sheet.rows:
        if dialect.state_of(row.get("state")) == "pending":  # when the table was written
            continue
        try:
            found.append(_row(study, dialect, line, row, headers))
        except ValueError as error:
            words = str(error).removesuffix(".")
            remedy = "" if re.search(r"\. [A-Z]", words) else " Mend it."
            wrong[line] = f"{sheet.place(line)} must be a trial: {words}.{remedy}"
    return found, wrong


def _row(
    study: Study, dialect: Dialect, line: int, row: Mapping[Any, Any], headers: Mapping[tuple[str, str], str]
) -> Row:
    if None in row:
        raise ValueError("it has more cells than the first line names")
    params = _params(study, dialect, {n: row.get(headers["params", n]) for n in study.space.parameters})
    readings = {c.name: row.get(headers["measured", c.name]) for c in study.measured}
    measured = {n: v for n, cell in readings.items() if (v := dialect.finite(cell, n)) is not None}
    named = {header for (kind, _), header in headers.items() if kind in ("params", "measured")}
    own = {header: cell for header, cell in row.items() if header not in named}
    said, notes = _told(study, dialect, own, measured)
    told = judge(replace(said, as_run=cells.by_name(own.get("ran"), "ran") or {}), study.constraints, study.objectives)
    pairs = {column: tuple(cells.names(own[column])) for column in COMPARED if not is_empty(own.get(column))}
    name, number = cells.text(own.get("id")), cells.text(own.get("number"))
    return Row(line, params, told.settled(params, study.space), name, number, pairs, notes)


def _params(study: Study, dialect: Dialect, row: Mapping[str, Any]) -> dict[str, Any]:
    parameters, conditions = study.space.parameters, study.space.conditions
    params = {}
    for name, parameter in parameters.items():
        found = dialect.param(parameter, row[name], name)
        if found is not None or (isinstance(parameter, Choice) and None in parameter.options):
            params[name] = found
        elif name not in conditions.conditional:
            raise ValueError(f"{name} must have a value; the cell is empty. Fill it in, or leave out the row")
    return params


def _told(
    study: Study, dialect: Dialect, row: Mapping[str, Any], measured: dict[str, float]
) -> tuple[Told, tuple[str, ...]]:
    """What came of a trial, and what is to be said of how that was understood."""
    costs = _costs(study, row)
    known, words = _numbers(dialect, costs, coded="state" in row)
    state, notes = _state(dialect, row, words), []
    if state is None and known:
        state = "success"
    if state is None:
        state = dialect.on_nan if any(header in row for header in _cost_headers(study)) else "raise"
        if state == "raise" or study.compared:
            remedy = dialect.remedy("Fill it in, or pass on_nan='crash' or on_nan='void' for all such rows")
            rule = f"state must be {_STATES} where {' and '.join(costs)} is no number"
            raise ValueError(f"{rule}; the cell is empty{'' if study.compared else remedy}")
        notes.append(f"without a cost, taken for a {state}")
    for word in words.values():
        notes.append(f"{word!r} taken for a {dialect.state_of(word)}")
    if (word := cells.text(row.get("state"))) and word.casefold() != state:
        notes.append(f"{word!r} taken for a {state}")
    if known and state != "success":
        numbers = ", ".join(f"{value:g}" for value in known.values())
        notes.append(f"a {state} with a cost, {numbers}, which is left out: it has none")
    if not known and state == "success" and not study.compared:
        notes.append("a success without a cost")
    cost = known if study.objectives else known.get("cost")
    return _said(state, cost if state == "success" else None, row, measured), tuple(dict.fromkeys(notes))


def _cost_headers(study: Study) -> list[str]:
    return [header for name in study.objectives for header in (COST + name, name)] or ["cost"]


def _costs(study: Study, row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of the cost, or of every goal."""
    if not study.objectives:
        return {"cost": row.get("cost")}
    return {name: row.get(name) if is_empty(row.get(COST + name)) else row[COST + name] for name in study.objectives}


def _numbers(dialect: Dialect, costs: Mapping[str, Any], *, coded: bool) -> tuple[dict[str, float], dict[str, Any]]:
    """The goals that have a number, and the words that stand in place of one."""
    known, words = {}, {}
    for name, cell in costs.items():
        if _is_word(dialect, cell, coded=coded):
            words[name] = cell
            continue
        try:
            found = dialect.finite(cell, name) if dialect.on_nan == "raise" else dialect.number(cell, name)
        except ValueError as error:
            if not isinstance(cell, str) or ". " in str(error) or any(c.isdigit() for c in cell):
                raise
            remedy = dialect.remedy(f"Pass words={{{cell!r}: 'crash'}} if that is what it says of a trial")
            raise ValueError(f"{error}{remedy}") from None
        if found is not None and math.isfinite(found):
            known[name] = found
    return known, words


def _is_word(dialect: Dialect, cell: Any, *, coded: bool) -> bool:
    """Whether a cell of a cost says what came of the trial.

    A penalty may, if it says anything but success; not where there is a column of states: numbers are its codes then.
    """
    state = None if is_empty(cell) else dialect.state_of(cell)
    return state in cells.STATES and not (cells.is_numeric(cell) and (coded or state == "success"))


def _state(dialect: Dialect, row: Mapping[str, Any], words: Mapping[str, Any]) -> Any:
    """The state of which all cells that name one agree; None if none does."""
    said = {}
    if not is_empty(word := row.get("state")):
        said["state"] = dialect.state_of(word)
        if said["state"] is None:
            remedy = dialect.remedy(f"Pass words={{{word!r}: 'crash'}}, or another of these, to say what it means")
            raise ValueError(f"state must be {_STATES}; got {word!r}{remedy}")
    if cells.yes(row.get("crash"), "crash"):
        said["crash"] = "crash"
    said |= {name: dialect.state_of(word) for name, word in words.items()}
    if len(set(said.values())) > 1:
        raise ValueError(f"its cells must agree on what came of it; got {said}")
    return next(iter(said.values()), None)


def _said(state: Any, cost: Any, row: Mapping[str, Any], measured: dict[str, float]) -> Told:
    reason = cells.text(row.get("reason"))
    if state == "success":
        said: dict[str, Any] = {"cost": cost} if cost not in (None, {}) else {"success": True}
        return Told.of(**said, measured=measured, censored=cells.names(row.get("censored")), note=reason)
    if state == "crash":
        blame, censored = cells.names(row.get("blame")), cells.names(row.get("censored"))
        watched = {name: cells.by_name(row.get(name), name) for name in ("reached", "rises")}
        return Told.of(crash=reason or True, measured=measured, blame=blame, censored=censored, **watched)
    return Told.of(stopped=measured, note=reason) if state == "stopped" else Told.of(void=reason or True)


def pairs_in(rows: Sequence[Row], sheet: TableSheet) -> tuple[tuple[str, str, bool], ...]:
    """The comparisons in a table: better, worse, and whether it was a tie. Each once: it stands in both rows."""
    often = Counter(row.number for row in rows)
    successes = {row.number for row in rows if row.told.state == "success" and often[row.number] == 1}
    said: Counter[tuple[str, str, bool]] = Counter()
    for row in rows:
        own: Counter[tuple[str, str, bool]] = Counter()
        for column, others in row.compared.items():
            for other in others:
                if not row.number or other not in successes or row.number not in successes or other == row.number:
                    raise ValueError(
                        f"{sheet.place(row.line)} must compare a success with another row that is one, by its "
                        f"number; got {column} {other!r}. Mend it."
                    )
                pair = (other, row.number) if column == "lost_to" else (row.number, other)
                own[(*sorted(pair), True) if column == "tied_with" else (*pair, False)] += 1  # type: ignore[index]
        said |= own
    return tuple(said.elements())


def everything(params: Mapping[str, Any], told: Told | Trial) -> str:
    """All that makes a trial what it is, to recognise it by."""
    cost = tuple(sorted(told.cost.items())) if isinstance(told.cost, Mapping) else told.cost
    ran, measured = told.as_run or params, told.measured
    names = tuple(sorted(told.blame)), tuple(sorted(told.censored))
    by_name = [sorted(of.items()) for of in (params, measured, told.reached, told.rises, ran)]
    return repr((by_name, told.state, cost, told.reason, *names))


def beyond(study: Study, params: Mapping[str, Any]) -> str:
    """Which values lie beyond their bounds, in words; empty if none does."""
    outside = []
    for name, value in params.items():
        p = study.space.parameters[name]
        if not isinstance(p, Choice | Context) and not p.low <= value <= p.high and not p.spans(value):
            outside.append(f"{name} {value:g} ({p.low:g} to {p.high:g})")
    return ", ".join(outside)
