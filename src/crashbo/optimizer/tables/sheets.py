"""Tables as they come: the text of a CSV file, a data frame, a list of dicts; and their columns, named as ours.

May import cells and columns. No library of data frames is imported: what they have is asked for by name.
"""

import csv
import difflib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from crashbo.optimizer.tables.cells import is_empty, plain
from crashbo.optimizer.tables.columns import MORE

_DELIMITERS = (",", ";", "\t")
_NAMELESS = re.compile(r"(Unnamed: \d+)?")  # the rows' count, as pandas writes it and as it reads it back
_KINDS = "a data frame, the path of a CSV file, or a list of dicts"


@dataclass(frozen=True)
class TableSheet:
    """The cells of a table, by column."""

    what: str  # it is
    header: tuple[str, ...]
    rows: tuple[tuple[int, dict[Any, Any]], ...]  # each with its line or number; cells beyond the header under None
    labels: Mapping[int, Any] | None = None  # of rows, in a data frame
    hint: str = ""  # where a column may be that is missing

    def place(self, line: int) -> str:
        """Where a row is, in words."""
        if self.what == "CSV":
            return f"line {line} of the CSV"
        return f"row {line if self.labels is None else self.labels[line]} of the table"


def sheet_of(table: Any, known: Sequence[str], renamed: Mapping[str, Any] | None = None) -> TableSheet:
    """The cells of whatever a user calls a table; `known` and `renamed` are columns by which a CSV is recognised."""
    if isinstance(table, str | PathLike):
        return csv_sheet(_text_of(Path(table)), {*known, *(renamed or ())})
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return _frame_sheet(table)
    if isinstance(table, Iterable) and not isinstance(table, Mapping):
        rows = list(table)
        if all(isinstance(row, Mapping) for row in rows):
            return _made("table", _texts(dict.fromkeys(key for row in rows for key in row)), rows)
    raise ValueError(f"table must be {_KINDS}; got {type(table).__name__}. Make it one of these.")


def csv_sheet(text: str, known: Iterable[str]) -> TableSheet:
    """The cells of a CSV, whichever of comma, semicolon and tab stands between them."""
    lines = text.removeprefix("\ufeff")
    try:
        header, reader = max((_split(lines, d) for d in _DELIMITERS), key=lambda found: _recognised(found[0], known))
        rows = []
        for cells in reader:
            row: dict[Any, Any] = {name: plain(cell) for name, cell in zip(header, cells, strict=False)}
            more = [cell for cell in cells[len(header) :] if cell.strip()]
            if any(not is_empty(cell) for cell in row.values()) or more:
                rows.append((reader.line_num, {**row, None: more} if more else row))
    except csv.Error as error:
        raise ValueError(f"CSV must be one that can be read; {error}. Save it anew.") from None
    if not header:
        raise ValueError("CSV must have names of columns in its first line; it is empty. Name another file.")
    return TableSheet("CSV", tuple(header), tuple(rows))


def _split(text: str, delimiter: str) -> tuple[list[str], Any]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    return [str(plain(name)) for name in next(reader, [])], reader


def _recognised(header: Sequence[str], known: Iterable[str]) -> tuple[int, int]:
    return len({*header} & {*known}), len(header)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"table must be a text file in UTF-8; got {str(path)!r}. Save it as CSV, in UTF-8.") from None
    except OSError as error:
        raise ValueError(
            f"table must be {_KINDS}; {str(path)!r} cannot be read ({error.strerror}). Check it."
        ) from None


def _frame_sheet(frame: Any) -> TableSheet:
    names = _texts(frame.columns)
    if len(set(names)) < len(names):
        raise ValueError(f"table must have different columns; got {names}. Rename one.")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(_values(frame[name]) for name in names), strict=True)]
    index = getattr(frame, "index", None)
    made = _made("table", names, rows)
    if index is None:
        return made
    held = [name for name in getattr(index, "names", ()) if name is not None]
    hint = f" {', '.join(map(repr, held))} is its index: pass table.reset_index()." if held else ""
    return replace(made, labels=dict(enumerate(index)), hint=hint)


def _values(column: Any) -> list[Any]:
    return list(column.to_list() if hasattr(column, "to_list") else column)


def _texts(names: Iterable[Any]) -> list[str]:
    for name in names:
        if not isinstance(name, str):
            got = repr(name) if isinstance(name, int | float | tuple) else type(name).__name__
            raise ValueError(f"table must have columns whose names are text; got {got}. Name them.")
    return list(names)


def _made(what: str, names: Sequence[str], rows: Sequence[Mapping[Any, Any]]) -> TableSheet:
    some = tuple((i, {name: plain(row.get(name)) for name in names}) for i, row in enumerate(rows))
    return TableSheet(what, tuple(names), tuple((i, row) for i, row in some if not all(map(is_empty, row.values()))))


def named(
    sheet: TableSheet,
    known: Sequence[str],
    needed: Sequence[str],
    columns: Mapping[str, str | None] | None = None,
    extra: Literal["refuse", "ignore"] = "refuse",
    remedy: str = "Mend its first line.",
) -> tuple[TableSheet, dict[str, str | None]]:
    """The table with our names of columns, and what each of its own was taken for: None if it is left out.

    Args:
        sheet: the table.
        known: names of columns that we have.
        needed: those without which it says nothing.
        columns: what some are to be taken for, None to leave one out.
        extra: what to do with columns that are neither; one that is almost called as one of ours is always refused.
        remedy: what to do about columns that are missing or unknown.
    """
    given = dict(columns or {})
    for name, wanted in given.items():
        if name not in sheet.header:
            raise ValueError(
                f"columns must name columns of the table ({_listed(sheet.header)}); got {name!r}. Mend it."
            )
        if wanted is not None and wanted not in known:
            raise ValueError(f"columns must map to one of {_listed(known)}, or None; got {wanted!r}. Mend it.")
    taken = {name: given.get(name, name) for name in sheet.header}
    unknown = [name for name, called in taken.items() if called is not None and called not in known]
    nameless = [name for name in unknown if _NAMELESS.fullmatch(name)]
    alike = {_folded(name) for name in known if name not in MORE}
    left_out = nameless + [name for name in unknown if extra == "ignore" and _folded(name) not in alike]
    taken |= dict.fromkeys(left_out)
    ours = [name for name in taken.values() if name is not None]
    missing = [name for name in needed if name not in ours] if sheet.header else []
    unknown = [name for name in unknown if name not in left_out]
    twice = sorted({name for name in ours if ours.count(name) > 1} | _repeated(sheet.header))
    if missing or unknown or twice:
        found = f"it lacks {missing}" if missing else f"it has {unknown}" if unknown else f"{twice[0]!r} stands twice"
        close = _close(unknown, missing or known)
        remedy = "Rename one." if not (missing or unknown) else remedy
        raise ValueError(
            f"{sheet.what} must have a column for each parameter and none unknown; {found}{close}. "
            f"{remedy}{sheet.hint if missing else ''}"
        )
    rows = tuple((i, {_ours(taken, name): cell for name, cell in row.items()}) for i, row in sheet.rows)
    whole = tuple((i, {name: cell for name, cell in row.items() if name != ""}) for i, row in rows)
    return replace(sheet, rows=whole), taken


def _ours(taken: Mapping[str, str | None], name: str | None) -> str | None:
    """Our name of a column; empty for one that is left out, and None for what no column has."""
    return None if name is None else taken[name] or ""


def _repeated(header: Sequence[str]) -> set[str]:
    return {name for name in header if header.count(name) > 1 and not _NAMELESS.fullmatch(name)}


def _folded(name: str) -> str:
    """Two names that differ no more than by case, spaces, dashes and dots are meant to be one, most likely."""
    return re.sub(r"[\s_.-]", "", name.casefold())


def _close(unknown: Sequence[str], ours: Sequence[str]) -> str:
    """Which of our names may be meant."""
    by_case = {name.casefold(): name for name in ours}
    found = {name: difflib.get_close_matches(name.casefold(), by_case, n=1) for name in unknown}
    pairs = [f"{name!r} is {by_case[match[0]]!r}" for name, match in found.items() if match]
    return f"; perhaps {' and '.join(pairs)}" if pairs else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
