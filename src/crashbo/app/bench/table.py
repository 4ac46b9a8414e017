"""Trials as CSV, for export and import, and as a table for terminals.

May import every other layer.
"""

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crashbo.app.bench.bench import Bench, check_new
from crashbo.app.bench.definition import Definition
from crashbo.app.text import value_text
from crashbo.optimizer.records import Trial
from crashbo.optimizer.told import Told, judge
from crashbo.search.space import Choice, Int

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run text that begins with one of these as a formula
_TALE = ("cost", "state", "reason", "blame", "censored", "p_safe", "p_model", "origin")


def columns(definition: Definition, trials: Sequence[Trial]) -> list[tuple[str, str]]:
    """The columns of a table of trials: kind and name."""
    params = [("params", name) for name in definition.space.parameters]
    names = dict.fromkeys([c.name for c in definition.study.measured] + sorted({m for t in trials for m in t.measured}))
    return [
        ("", "number"),
        *params,
        ("", "cost"),
        *(("measured", name) for name in names),
        *(("", n) for n in _TALE[1:]),
    ]


def cell(trial: Trial, column: tuple[str, str]) -> Any:
    """A trial's value in a column, or None."""
    kind, name = column
    if kind:
        return getattr(trial, kind).get(name)
    value = getattr(trial, name)
    return " ".join(value) if isinstance(value, tuple) else value


def to_csv(definition: Definition, trials: Sequence[Trial]) -> str:
    """One row per trial; floats in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    shown = columns(definition, trials)
    writer.writerow([_safe(name) for _, name in shown])
    writer.writerows([[_safe(cell(t, column)) for column in shown] for t in trials])
    return out.getvalue()


@dataclass(frozen=True)
class Row:
    """A row of a file, read and checked."""

    line: int
    params: dict[str, Any]
    told: Told


def from_csv(definition: Definition, text: str) -> list[Row]:
    """The trials of a CSV, all checked: a column per parameter, the cost, and any other columns of `to_csv`.

    `state` is success, crash or void. It may be left out for rows with a cost, which are successes.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    header = [_read(name) for name in reader.fieldnames or ()]
    known = {*definition.space.parameters, *definition.study.names, "number", *_TALE}
    missing = [name for name in definition.space.parameters if name not in header]
    unknown = [name for name in header if name not in known]
    if missing or unknown or len(set(header)) < len(header):
        found = f"it lacks {missing}" if missing else f"it has {unknown}" if unknown else "one stands there twice"
        raise ValueError(f"CSV must have a column for each parameter and none unknown; {found}. Mend its first line.")
    reader.fieldnames = header
    rows = [(reader.line_num, {k: _read(v) for k, v in row.items()}) for row in reader if any(row.values())]
    # Trials that were pending when the file was written are skipped.
    return [_row(definition, line, row) for line, row in rows if row.get("state") != "pending"]


def load(bench: Bench, text: str) -> tuple[int, int]:
    """Add the trials of a CSV to a study; returns how many were added, and how many were known from this file."""
    rows = from_csv(bench.definition, text)
    reading = bench.ledger.read()
    for row in rows:
        try:
            check_new(row.params, row.told, reading)
        except ValueError as error:
            raise ValueError(f"line {row.line} of the CSV: {error}") from None
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    count = len(reading.trials)
    numbers = bench.add_all([(row.params, row.told, f"csv-{digest}-{row.line}") for row in rows])
    added = sum(number >= count for number in numbers)
    return added, len(rows) - added


def _row(definition: Definition, line: int, row: dict[str, Any]) -> Row:
    try:
        if None in row:
            raise ValueError("it has more cells than the first line names")
        params = {name: _value(definition, name, row[name]) for name in definition.space.parameters}
        measured = {c.name: _number(row[c.name], c.name) for c in definition.study.measured if row.get(c.name)}
        return Row(line, params, judge(_told(row, measured), definition.study.constraints))
    except ValueError as error:
        words = str(error).removesuffix(".")
        raise ValueError(f"line {line} of the CSV must be a trial: {words}. Mend it.") from None


def _told(row: dict[str, Any], measured: dict[str, float]) -> Told:
    state, reason = row.get("state") or "", row.get("reason") or ""
    if not state and row.get("cost"):
        state = "success"
    if state == "success":
        return Told.of(cost=_number(row.get("cost"), "cost"), measured=measured, censored=_names(row, "censored"))
    if state == "crash":
        blame, censored = _names(row, "blame"), _names(row, "censored")
        return Told.of(crash=reason or True, measured=measured, blame=blame, censored=censored)
    if state == "void":
        return Told.of(void=reason or True)
    raise ValueError(f"state must be success, crash or void where there is no cost; got {state!r}")


def _names(row: dict[str, Any], column: str) -> list[str]:
    return (row.get(column) or "").split()


def _value(definition: Definition, name: str, text: str | None) -> Any:
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
