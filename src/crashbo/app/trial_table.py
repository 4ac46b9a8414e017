"""Trials as a table for people: which columns are shown, and the whole as text for terminals.

May import optimizer and below.
"""

from collections.abc import Sequence

from crashbo.app.text import value_text
from crashbo.optimizer.records import Trial
from crashbo.optimizer.study import Study
from crashbo.optimizer.tables.columns import TableColumn, cell, columns

_WORDS = ("state", "reason", "blame", "censored")
_INNER = ("p_model", "origin")  # of interest to who looks into the search


def shown_columns(study: Study, trials: Sequence[Trial]) -> list[TableColumn]:
    """The columns that people want to see: words only where there are any."""
    found = [c for c in columns(study, trials) if c.kind or c.name not in _INNER]
    return [c for c in found if c.kind or c.name not in _WORDS[1:] or any(cell(t, c) for t in trials)]


def to_text(study: Study, trials: Sequence[Trial]) -> str:
    """A table for terminals."""
    shown = shown_columns(study, trials)
    rows = [["#" if c == ("", "number", "number") else c.header for c in shown]]
    rows += [[" ".join(value_text(cell(t, column)).split())[:40] for column in shown] for t in trials]
    widths = [max(len(row[i]) for row in rows) for i in range(len(shown))]
    texts = {i for i, c in enumerate(shown) if not c.kind and c.name in _WORDS}
    return "\n".join(
        "  ".join(
            c.ljust(w) if i in texts else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
