"""Trials as CSV, for export and import, and as a table for terminals.

May import every other layer.
"""

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from crashbo.app.bench.bench import Bench
from crashbo.app.bench.checks import beyond_bounds, check_new
from crashbo.app.bench.definition import Definition, check_text
from crashbo.app.text import value_text
from crashbo.integrations.optuna.ledger import Entry
from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.told import Told, judge
from crashbo.search.space import Choice, Int

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run text that begins with one of these as a formula
_TALE = ("cost", "state", "reason", "blame", "censored", "reached", "rises", "ran", "p_safe", "p_model", "origin")
_WATCHED = ("reached", "rises")
_SELDOM = {"reached": "reached", "rises": "rises", "ran": "as_run"}  # left out where no trial has them: their fields
_MORE = ("id", "who", "told_at", "took")
COST = "cost:"  # before the name of a goal, where there are several
_COMPARED = ("beat", "lost_to", "tied_with")  # numbers of rows that a trial was compared with, once per verdict
_ID = "id:"  # before a row's id, in the request of the trial that it became


def columns(definition: Definition, trials: Sequence[Trial]) -> list[tuple[str, str]]:
    """The columns of a table of trials: kind and name."""
    params = [("params", name) for name in definition.space.parameters]
    names = dict.fromkeys([c.name for c in definition.study.measured] + sorted({m for t in trials for m in t.measured}))
    return [
        ("", "number"),
        *params,
        *(("cost", COST + g.name) if definition.study.objectives else ("", "cost") for g in definition.goals),
        *(("measured", name) for name in names),
        *(("", n) for n in _TALE[1:] if n not in _SELDOM or any(getattr(t, _SELDOM[n]) for t in trials)),
    ]


def cell(trial: Trial, column: tuple[str, str]) -> Any:
    """A trial's value in a column, or None."""
    kind, name = column
    if kind == "cost":
        return (trial.cost or {}).get(name.removeprefix(COST))
    if kind:
        return getattr(trial, kind).get(name)
    value = getattr(trial, _SELDOM.get(name, name))
    if isinstance(value, dict):
        return json.dumps(value) if value else None
    return " ".join(value) if isinstance(value, tuple) else value


def to_csv(
    definition: Definition,
    trials: Sequence[Trial],
    more: Sequence[Mapping[str, Any]] = (),
    comparisons: Sequence[Comparison] = (),
) -> str:
    """One row per trial, with more columns if there are any; floats in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    shown = columns(definition, trials)
    extra = [name for name in _MORE if more and ("params", name) not in shown and ("measured", name) not in shown]
    if comparisons:
        of_trials = [_compared(t.number, comparisons) for t in trials]
        more = [{**of, **pairs} for of, pairs in zip(more or [{}] * len(trials), of_trials, strict=True)]
        extra += _COMPARED
    rows = [[cell(t, column) for column in shown] for t in trials]
    rows = [[*row, *(of.get(name) for name in extra)] for row, of in zip(rows, more or [{}] * len(rows), strict=True)]
    writer.writerow([_safe(name) for name in [*(name for _, name in shown), *extra]])
    writer.writerows([[_safe(value) for value in row] for row in rows])
    return out.getvalue()


def export(bench: Bench) -> str:
    """All trials of a study as CSV, with their ids, who told them, when, and how many seconds they took."""
    entries, study = bench.entries(), bench.id
    comparisons = [said.comparison for said in bench.comparisons() if not said.undone]
    return to_csv(bench.definition, [e.trial for e in entries], [more_of(e, study) for e in entries], comparisons)


def _compared(number: int, comparisons: Sequence[Comparison]) -> dict[str, str]:
    """What a trial was compared with, by column."""
    found: dict[str, list[str]] = {name: [] for name in _COMPARED}
    for c in comparisons:
        if number in (c.better, c.worse):
            column = "tied_with" if c.tie else "beat" if c.better == number else "lost_to"
            found[column].append(str(c.worse if c.better == number else c.better))
    return {column: " ".join(others) for column, others in found.items()}


@dataclass(frozen=True)
class Row:
    """A row of a file, read and checked."""

    line: int
    params: dict[str, Any]
    told: Told
    id: str = ""  # of the trial, if the file has one
    number: str = ""  # of the trial in the file, if it has one
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # numbers in the file, by column


@dataclass(frozen=True)
class ImportPlan:
    """What an import does: adds the new rows, and leaves out those that are known."""

    new: tuple[Row, ...]
    known: tuple[Row, ...]
    changed: tuple[tuple[Row, int], ...]  # known by their id, but with other values than the trial of this number
    beyond: tuple[tuple[Row, str], ...]  # those of the new ones that lie beyond the bounds, and how
    at: Mapping[str, int] = field(default_factory=dict)  # numbers in the file to those of known trials
    pairs: tuple[tuple[str, str, bool], ...] = ()  # comparisons in the file: better, worse, and whether it was a tie


def from_csv(definition: Definition, text: str) -> list[Row]:
    """The trials of a CSV, all checked: a column per parameter, the cost, and any other columns of `to_csv`.

    Of several goals each has a column, `cost:NAME`, or just its name where nothing that is measured has that.

    `state` is success, crash, stopped or void. It may be left out for rows with a cost, which are successes.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    header = [_read(name) for name in reader.fieldnames or ()]
    goals = {COST + name for name in definition.study.objectives} | set(definition.study.objectives)
    known = {*definition.space.parameters, *definition.study.names, "number", *_TALE, *_MORE, *goals, *_COMPARED}
    missing = [name for name in definition.space.parameters if name not in header]
    unknown = [name for name in header if name not in known]
    if missing or unknown or len(set(header)) < len(header):
        found = f"it lacks {missing}" if missing else f"it has {unknown}" if unknown else "one stands there twice"
        raise ValueError(f"CSV must have a column for each parameter and none unknown; {found}. Mend its first line.")
    reader.fieldnames = header
    rows = [(reader.line_num, {k: _read(v) for k, v in row.items()}) for row in reader if any(row.values())]
    # Trials that were pending when the file was written are skipped.
    return [_row(definition, line, row) for line, row in rows if row.get("state") != "pending"]


def plan(bench: Bench, text: str) -> ImportPlan:
    """What `load` would do. A row is known by its id or, without one, by all its values."""
    rows = from_csv(bench.definition, text)
    reading = bench.ledger.read()
    for row in rows:
        try:
            check_new(row.params, row.told, reading)
        except ValueError as error:
            raise ValueError(f"line {row.line} of the CSV: {error}") from None
    study, entries = bench.id, bench.entries()
    named = {name: e for e in entries for name in (e.request, _ID + _id_of(e, study)) if name}
    values = Counter(_values(e.trial.params, e.trial) for e in entries)
    new, known, changed = [], [], []
    at: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: not row.id):  # ids first: values that they account for count no more
        found, value = named.get(_request(row, text)), _values(row.params, row.told)
        if found is None and not row.id and values[value] > 0:
            found = next(e for e in entries if _values(e.trial.params, e.trial) == value)
        if found is not None:
            at[row.number] = found.trial.number
        if found is not None and _values(found.trial.params, found.trial) != value:
            changed.append((row, found.trial.number))
        elif found is not None or (not row.id and values[value] > 0):
            known.append(row)
            values[value] -= 1
        else:
            new.append(row)
    new.sort(key=lambda row: row.line)
    beyond = [(row, beyond_bounds(row.params, reading.distributions)) for row in new]
    outside = tuple((row, words) for row, words in beyond if words)
    return ImportPlan(tuple(new), tuple(known), tuple(changed), outside, at, _pairs_in(rows))


def _pairs_in(rows: Sequence[Row]) -> tuple[tuple[str, str, bool], ...]:
    """The comparisons in a file, each once: it stands in the rows of both trials."""
    successes = {row.number for row in rows if row.told.state == "success"}
    said: Counter[tuple[str, str, bool]] = Counter()
    for row in rows:
        own: Counter[tuple[str, str, bool]] = Counter()
        for column, others in row.compared.items():
            for other in others:
                if not row.number or other not in successes or row.number not in successes or other == row.number:
                    raise ValueError(
                        f"line {row.line} of the CSV must compare a success with another row that is one, by its "
                        f"number; got {column} {other!r}. Mend it."
                    )
                pair = (other, row.number) if column == "lost_to" else (row.number, other)
                own[(*sorted(pair), True) if column == "tied_with" else (*pair, False)] += 1  # type: ignore[index]
        said |= own
    return tuple(said.elements())


def load(bench: Bench, text: str, *, beyond: bool = False, who: str = "") -> ImportPlan:
    """Add the new trials of a CSV to a study, all or none; returns what was done.

    Args:
        bench: of the study.
        text: the CSV.
        beyond: that rows beyond the bounds really ran there.
        who: name of whoever imports it.
    """
    found = plan(bench, text)
    numbers = bench.add_all([(row.params, row.told, _request(row, text)) for row in found.new], beyond=beyond, who=who)
    at = {**found.at, **{row.number: number for row, number in zip(found.new, numbers, strict=True)}}
    known = Counter(_plain_pair(said.comparison) for said in bench.comparisons() if not said.undone)
    wanted = Counter(_plain_pair(Comparison(at[better], at[worse], tie)) for better, worse, tie in found.pairs)
    bench.prefer_all([*(wanted - known).elements()], who=who)
    return found


def _plain_pair(c: Comparison) -> tuple[int, int, bool]:
    """Of a tie the lower number first."""
    return (min(c.better, c.worse), max(c.better, c.worse), True) if c.tie else (c.better, c.worse, False)


def _request(row: Row, text: str) -> str:
    """The request id under which a row is added: the same file, or the same id, counts once."""
    if row.id:
        return _ID + row.id
    return f"csv-{hashlib.sha256(text.encode()).hexdigest()[:32]}-{row.line}"


def _values(params: Mapping[str, Any], told: Told | Trial) -> tuple[Any, ...]:
    """Everything that makes a trial what it is, to compare it with others."""
    measured = tuple(sorted(told.measured.items()))
    names = tuple(sorted(told.blame)), tuple(sorted(told.censored))
    watched = tuple(sorted(told.reached.items())), tuple(sorted(told.rises.items()))
    ran = tuple(sorted((told.as_run or params).items()))
    cost = tuple(sorted(told.cost.items())) if isinstance(told.cost, Mapping) else told.cost
    return tuple(sorted(params.items())), told.state, cost, measured, told.reason, *names, *watched, ran


def _id_of(entry: Entry, study: str) -> str:
    """A trial's id: that of the row that it came from, or the study's with its number."""
    known = entry.request or ""
    return known.removeprefix(_ID) if known.startswith(_ID) else f"{study}-{entry.trial.number}"


def more_of(entry: Entry, study: str) -> dict[str, Any]:
    """A trial's id, who told it, when (UTC), and how many seconds it took."""
    told = entry.ended if entry.trial.state != "pending" else None
    when = None if told is None else datetime.fromtimestamp(told, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    took = None if told is None or entry.began is None else round(told - entry.began, 1)
    return {"id": _id_of(entry, study), "who": entry.who, "told_at": when, "took": took}


def _row(definition: Definition, line: int, row: dict[str, Any]) -> Row:
    try:
        if None in row:
            raise ValueError("it has more cells than the first line names")
        conditional = definition.space.conditions.conditional
        named = [name for name in definition.space.parameters if row[name] or name not in conditional]
        params = {name: value_in(definition, name, row[name]) for name in named}
        measured = {c.name: _number(row[c.name], c.name) for c in definition.study.measured if row.get(c.name)}
        name = "" if "id" in params or "id" in measured else row.get("id") or ""
        check_text(name, "id", 90)
        study = definition.study
        cost = _goals(row, study.objectives, measured) if study.objectives else row.get("cost")
        said = replace(_told(row, cost, measured), as_run=_object(row, "ran") or {})
        told, taken = judge(said, study.constraints, study.objectives), {*params, *measured}
        pairs = {column: tuple(_names(row, column)) for column in _COMPARED if column not in taken and row.get(column)}
        return Row(line, params, told.settled(params, study.space), name, row.get("number") or "", pairs)
    except ValueError as error:
        words = str(error).removesuffix(".")
        raise ValueError(f"line {line} of the CSV must be a trial: {words}. Mend it.") from None


def _goals(row: dict[str, Any], goals: Iterable[str], measured: Mapping[str, float]) -> dict[str, float] | None:
    """Goals of a row, by name; None if it has none."""
    texts = {name: row.get(COST + name) or ("" if name in measured else row.get(name)) for name in goals}
    return {name: _number(text, COST + name) for name, text in texts.items() if text} or None


def _told(row: dict[str, Any], cost: Any, measured: dict[str, float]) -> Told:
    state, reason = row.get("state") or "", row.get("reason") or ""
    if not state and cost:
        state = "success"
    if state == "success":
        said: dict[str, Any] = {"success": True}
        if cost:
            said = {"cost": cost if isinstance(cost, Mapping) else _number(cost, "cost")}
        return Told.of(**said, measured=measured, censored=_names(row, "censored"), note=reason)
    if state == "crash":
        blame, censored = _names(row, "blame"), _names(row, "censored")
        watched = {column: _object(row, column) for column in _WATCHED}
        return Told.of(crash=reason or True, measured=measured, blame=blame, censored=censored, **watched)
    if state == "stopped":
        return Told.of(stopped=measured, note=reason)
    if state == "void":
        return Told.of(void=reason or True)
    raise ValueError(f"state must be success, crash, stopped or void where there is no cost; got {state!r}")


def _object(row: dict[str, Any], column: str) -> Any:
    text = row.get(column)
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{column} must be a JSON object of values by name; got {text!r}")
    return found


def _names(row: dict[str, Any], column: str) -> list[str]:
    return (row.get(column) or "").split()


def value_in(definition: Definition, name: str, text: str | None) -> Any:
    """A parameter's value as somebody wrote it."""
    parameter = definition.space.parameters[name]
    if isinstance(parameter, Choice):
        found = [option for option in parameter.options if str(option) == text]
        if not found:
            raise ValueError(f"{name} must {parameter.rule()}; got {text!r}")
        return found[0]
    value = _number(text, name)
    return int(value) if isinstance(parameter, Int) and value.is_integer() else value


def _number(text: str | None, name: str) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise ValueError(f"{name} must be a number; got {text!r}") from None


def _safe(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return repr(value) if isinstance(value, float) else value


def _read(text: Any) -> Any:
    quoted = isinstance(text, str) and text.startswith("'") and text[1:].startswith(_FORMULA)
    return text[1:] if quoted else text.strip() if isinstance(text, str) else text


def to_text(definition: Definition, trials: Sequence[Trial]) -> str:
    """A table for terminals."""
    shown = [c for c in columns(definition, trials) if c[1] not in ("p_model", "origin")]
    shown = [c for c in shown if c[1] not in ("reason", "blame", "censored") or any(cell(t, c) for t in trials)]
    rows = [["#" if name == "number" else name for _, name in shown]]
    rows += [[" ".join(value_text(cell(t, column)).split())[:40] for column in shown] for t in trials]
    widths = [max(len(row[i]) for row in rows) for i in range(len(shown))]
    texts = {i for i, (_, name) in enumerate(shown) if name in ("state", "reason", "blame", "censored")}
    return "\n".join(
        "  ".join(
            c.ljust(w) if i in texts else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
