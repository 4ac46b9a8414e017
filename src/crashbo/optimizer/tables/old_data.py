"""Trials that were made before, from a table: what of it was understood, and what is wrong with it, before any is told.

May import strategies and below.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.study import Study
from crashbo.optimizer.tables import rows, sheets
from crashbo.optimizer.tables.cells import Dialect
from crashbo.optimizer.tables.rows import Row
from crashbo.optimizer.tables.sheets import TableSheet
from crashbo.search.space import Choice, Context, Int

_LINES = 20  # of notes, and of problems, that are printed
_SHOWN = 5  # rows of which a sentence names the places

Extra = Literal["refuse", "ignore"]


@dataclass(frozen=True)
class TableReading:
    """What was understood of a table; printed, it says so.

    Attributes:
        columns: what each column of the table was taken for; None for one that is left out.
        new: rows that are, or would be, told.
        known: rows that say in everything the same as a trial that was there already: they are left out.
        notes: what was understood that does not stand there literally, in words.
        problems: what must be mended before anything is told, in words. None of it is, where there is one.
        trials: that were told; none after a dry run.
        comparisons: likewise.
    """

    columns: Mapping[str, str | None]
    new: tuple[Row, ...]
    known: tuple[Row, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    trials: tuple[Trial, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    pairs: tuple[tuple[str, str, bool], ...] = ()  # in the table's own numbers: better, worse, and whether it was a tie
    at: tuple[tuple[str, int], ...] = ()  # those numbers of known rows, and of the trials that they are

    def refuse(self) -> None:
        """Raise the first problem, if there is one."""
        if self.problems:
            more = len(self.problems) - 1
            others = f" ({more} more like this: see .problems of a dry_run=True.)" if more else ""
            raise ValueError(self.problems[0] + others)

    def __str__(self) -> str:
        states = Counter(row.told.state for row in self.new)
        counts = ", ".join(f"{count} {state}" for state, count in states.items())
        new = f"{len(self.new)} new trial{'s' * (len(self.new) != 1)}" + (f" ({counts})" if counts else "")
        lines = [f"{new}, {len(self.known)} known already"]
        renamed = [f"{name!r} as {ours}" for name, ours in self.columns.items() if ours not in (None, name)]
        left_out = [repr(name) for name, ours in self.columns.items() if ours is None]
        lines += [f"columns: {', '.join(renamed)}"] * bool(renamed)
        lines += [f"columns left out: {', '.join(left_out)}"] * bool(left_out)
        lines += _listed("note", self.notes) + _listed("problem", self.problems)
        return "\n".join(lines)

    __repr__ = __str__


def _listed(kind: str, words: Sequence[str]) -> list[str]:
    """One line each, but no more than anybody reads."""
    more = len(words) - _LINES
    return [f"{kind}: {each}" for each in words[:_LINES]] + [f"and {more} more, see .{kind}s"] * (more > 0)


def read_table(
    study: Study,
    trials: Sequence[Trial],
    table: Any,
    *,
    columns: Mapping[str, str | None] | None,
    extra: Extra,
    dialect: Dialect,
    beyond: bool,
) -> TableReading:
    """What a table says of a study that has these trials; see `Optimizer.tell_table`."""
    if columns is not None and not isinstance(columns, Mapping):
        raise ValueError(f"columns must map the table's names to ours; got {columns!r}. Write {{'K_p': 'gain'}}.")
    if extra not in ("refuse", "ignore"):
        raise ValueError(f"extra must be 'refuse' or 'ignore'; got {extra!r}. Choose one.")
    known = rows.headers_known(study)
    sheet, taken = sheets.named(
        sheets.sheet_of(table, known, columns),
        known,
        rows.headers_needed(study),
        columns,
        extra,
        "Pass columns={'theirs': 'ours'} for one that is named otherwise, columns={'theirs': None} to leave one out, "
        "or extra='ignore' to leave out all that are unknown.",
    )
    found, faults = rows.read(study, sheet, dialect)
    fit = [(row, _misfit(study, row, beyond=beyond)) for row in found]
    faults |= {row.line: f"{sheet.place(row.line)} must be a trial: {words}" for row, words in fit if words}
    wrong = [faults[line] for line in sorted(faults)]
    read = {row.line for row in found} | set(faults)
    waiting = [line for line, _ in sheet.rows if line not in read]
    pairs: tuple[tuple[str, str, bool], ...] = ()
    try:
        pairs = rows.pairs_in(found, sheet)
    except ValueError as error:
        wrong.append(str(error))
    new, old, at = _sorted_out([row for row, words in fit if not words], trials)
    used = {name: None if ours in rows.headers_unused(study) else ours for name, ours in taken.items()}
    notes = _notes(study, new, sheet, [t for t in trials if t.state == "pending"])
    notes += (f"{_places(sheet, waiting)}: pending, left out",) if waiting else ()
    return TableReading(used, new, old, notes, tuple(wrong), pairs=pairs, at=at)


def _misfit(study: Study, row: Row, *, beyond: bool) -> str:
    """Why the space cannot take a row, in a sentence; empty if it can."""
    space, params = study.space, row.params
    for name, value in params.items():
        p = space.parameters[name]
        whole = not isinstance(p, Int) or isinstance(value, int)
        if not p.reads(value) or not whole:
            rule = "be a whole number" if not whole else "be a number above zero"
            return f"{name} must {rule if not isinstance(p, Choice | Context) else p.rule()}; got {value!r}. Mend it."
    if lacking := space.conditions.lacking(params):
        return f"{', '.join(lacking)} must have a value, which exists beside these; the cell is empty. Fill it in."
    for name in params:
        if name not in space.existing(params):
            words = space.conditions.words(name)
            return (
                f"{name} must be left empty, since it exists only when {words}; got {params[name]!r}. Empty the cell."
            )
    outside = rows.beyond(study, params)
    if outside and not beyond:
        return f"params must lie within the bounds; got {outside}. Pass beyond=True if it really ran there."
    return ""


def _sorted_out(
    found: Sequence[Row], trials: Sequence[Trial]
) -> tuple[tuple[Row, ...], tuple[Row, ...], tuple[tuple[str, int], ...]]:
    """The rows that are new, those that are known, and which trials the latter are, by the table's own numbers."""
    there = defaultdict(list)
    for t in trials:
        if t.state != "pending":
            there[rows.everything(t.params, t)].append(t.number)
    new, known, at = [], [], []
    for row in found:
        numbers = there[rows.everything(row.params, row.told)]
        if numbers:
            known.append(row)
            at.append((row.number, numbers.pop(0)))
        else:
            new.append(row)
    return tuple(new), tuple(known), tuple(at)


def _notes(study: Study, new: Sequence[Row], sheet: TableSheet, pending: Sequence[Trial]) -> tuple[str, ...]:
    """What is to be said of rows, each once, with the places."""
    said = defaultdict(list)
    waiting = {repr(sorted(t.params.items())): t.number for t in pending}
    same = Counter(rows.everything(row.params, row.told) for row in new)
    for row in new:
        words = list(row.notes)
        if outside := rows.beyond(study, row.params):
            words.append(f"beyond the bounds: {outside}")
        if (rule := study.space.broken(row.params)) is not None:
            words.append(f"breaks the rule {rule.words!r}; it is learnt from all the same")
        if same[rows.everything(row.params, row.told)] > 1:
            words.append("the same as another row in everything: each counts as a trial of its own")
        if (number := waiting.get(repr(sorted(row.params.items())))) is not None:
            words.append(f"the params of trial {number}, which is pending and stays so: tell that to settle it")
        for each in words:
            said[each].append(row.line)
    return tuple(f"{_places(sheet, lines)}: {words}" for words, lines in said.items())


def _places(sheet: TableSheet, lines: Sequence[int]) -> str:
    shown = ", ".join(sheet.place(line).split(" of the ")[0] for line in lines[:_SHOWN])
    return shown + (f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else "")


def compared_in(reading: TableReading, told: Sequence[Trial], known: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons in a table that are not known yet, once its new rows are these trials."""
    at = dict(reading.at) | {row.number: t.number for row, t in zip(reading.new, told, strict=True)}
    wanted = Counter(plain_pair(Comparison(at[better], at[worse], tie)) for better, worse, tie in reading.pairs)
    missing = wanted - Counter(map(plain_pair, known))
    return [Comparison(*pair) for pair in missing.elements()]


def plain_pair(c: Comparison) -> tuple[int, int, bool]:
    """A comparison as plain values; of a tie the lower number first."""
    return (min(c.better, c.worse), max(c.better, c.worse), True) if c.tie else (c.better, c.worse, False)


def finished(reading: TableReading, told: Sequence[Trial], comparisons: Sequence[Comparison]) -> TableReading:
    """The same after it was told."""
    return replace(reading, trials=tuple(told), comparisons=tuple(comparisons))
