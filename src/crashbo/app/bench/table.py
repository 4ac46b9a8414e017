"""Trials of a bench as CSV, for export and import.

May import every other layer. The columns are those of `optimizer.tables`, which reads rows, too.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from crashbo.app.bench.bench import Bench
from crashbo.app.bench.checks import beyond_bounds, check_new
from crashbo.app.bench.definition import Definition, check_text
from crashbo.app.overview import Overview
from crashbo.app.subject import Subject
from crashbo.integrations.optuna.ledger import Entry
from crashbo.optimizer.records import Comparison
from crashbo.optimizer.tables import rows, sheets
from crashbo.optimizer.tables.old_data import plain_pair
from crashbo.optimizer.tables.rows import Row, everything
from crashbo.optimizer.tables.sheets import TableSheet

_ID = "id:"  # before a row's id, in the request of the trial that it became


def subject_of(bench: Bench) -> Subject:
    """The study of a bench, to be shown."""
    entries, study = bench.entries(), bench.id
    comparisons = [said.comparison for said in bench.comparisons() if not said.undone]
    more, trials = [more_of(e, study) for e in entries], [e.trial for e in entries]
    return Subject(bench.definition.titled, trials, lambda: Overview(bench.insight()), bench.best, more, comparisons)


def export(bench: Bench) -> str:
    """All trials of a study as CSV, with their ids, who told them, when, and how many seconds they took."""
    return subject_of(bench).csv


@dataclass(frozen=True)
class ImportPlan:
    """What an import does: adds the new rows, and leaves out those that are known."""

    new: tuple[Row, ...]
    known: tuple[Row, ...]
    changed: tuple[tuple[Row, int], ...]  # known by their id, but with other values than the trial of this number
    beyond: tuple[tuple[Row, str], ...]  # those of the new ones that lie beyond the bounds, and how
    at: Mapping[str, int] = field(default_factory=dict)  # numbers in the file to those of known trials
    pairs: tuple[tuple[str, str, bool], ...] = ()  # comparisons in the file: better, worse, and whether it was a tie

    @property
    def notes(self) -> list[tuple[int, str]]:
        """What was understood of new rows that does not stand there literally, with their lines."""
        return [(row.line, words) for row in self.new for words in row.notes]


def from_csv(definition: Definition, text: str) -> tuple[list[Row], TableSheet]:
    """The trials of a CSV, all checked, and its sheet: a column per parameter, the cost, and any others of `to_csv`.

    Of several goals each has a column, `cost:NAME`, or just its name where nothing that is measured has that.

    `state` is success, crash, stopped or void. It may be left out for rows with a cost, which are successes.
    """
    study = definition.study
    known = rows.headers_known(study)
    sheet, _ = sheets.named(sheets.csv_sheet(text, known), known, rows.headers_needed(study))
    found, wrong = rows.read(study, sheet)
    if wrong:
        raise ValueError(next(iter(wrong.values())))
    for row in found:
        check_text(row.id, f"id in {sheet.place(row.line)}", 90)
    return found, sheet


def plan(bench: Bench, text: str) -> ImportPlan:
    """What `load` would do. A row is known by its id or, without one, by all its values."""
    found_rows, sheet = from_csv(bench.definition, text)
    reading = bench.ledger.read()
    for row in found_rows:
        try:
            check_new(row.params, row.told, reading)
        except ValueError as error:
            raise ValueError(f"{sheet.place(row.line)}: {error}") from None
    study, entries = bench.id, bench.entries()
    named = {name: e for e in entries for name in (e.request, _ID + _id_of(e, study)) if name}
    values = Counter(everything(e.trial.params, e.trial) for e in entries)
    new, known, changed = [], [], []
    at: dict[str, int] = {}
    for row in sorted(found_rows, key=lambda row: not row.id):  # ids first: values that they account for count no more
        found, value = named.get(_request(row, text)), everything(row.params, row.told)
        if found is None and not row.id and values[value] > 0:
            found = next(e for e in entries if everything(e.trial.params, e.trial) == value)
        if found is not None:
            at[row.number] = found.trial.number
        if found is not None and everything(found.trial.params, found.trial) != value:
            changed.append((row, found.trial.number))
        elif found is not None or (not row.id and values[value] > 0):
            known.append(row)
            values[value] -= 1
        else:
            new.append(row)
    new.sort(key=lambda row: row.line)
    beyond = [(row, beyond_bounds(row.params, reading.distributions)) for row in new]
    outside = tuple((row, words) for row, words in beyond if words)
    return ImportPlan(tuple(new), tuple(known), tuple(changed), outside, at, rows.pairs_in(found_rows, sheet))


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
    known = Counter(plain_pair(said.comparison) for said in bench.comparisons() if not said.undone)
    wanted = Counter(plain_pair(Comparison(at[better], at[worse], tie)) for better, worse, tie in found.pairs)
    bench.prefer_all([*(wanted - known).elements()], who=who)
    return found


def _request(row: Row, text: str) -> str:
    """The request id under which a row is added: the same file, or the same id, counts once."""
    if row.id:
        return _ID + row.id
    return f"csv-{hashlib.sha256(text.encode()).hexdigest()[:32]}-{row.line}"


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
