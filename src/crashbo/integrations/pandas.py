"""Trials as a pandas data frame: the one door to pandas. May import optimizer and below.

Reading a data frame needs no door: `optimizer.tables.sheets` asks it for its columns by name.
"""

from collections.abc import Sequence
from typing import Any

from crashbo.extras import Absent
from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.study import Study
from crashbo.optimizer.tables.columns import COMPARED, TableColumn, cell, columns, compared_with
from crashbo.search.space import Choice, Int

try:
    import pandas
except ModuleNotFoundError as error:
    raise Absent("a data frame", error.name, "notebook") from error

_NUMBERS = ("cost", "p_safe", "p_model")


def frame_of(study: Study, trials: Sequence[Trial], comparisons: Sequence[Comparison] = ()) -> pandas.DataFrame:
    """One row per trial, with the columns of the CSV."""
    found = {}
    for column in columns(study, trials):
        values = [cell(t, column) for t in trials]
        found[column.header] = pandas.Series(values, dtype=_dtype(study, column, values))
    if comparisons:
        of_trials = [compared_with(t.number, comparisons) for t in trials]
        found |= {name: pandas.Series([of[name] for of in of_trials], dtype=object) for name in COMPARED}
    return pandas.DataFrame(found)


def _dtype(study: Study, column: TableColumn, values: Sequence[Any]) -> str:
    """Numbers are numbers, also where none is known; whole ones with gaps stay whole."""
    parameter = study.space.parameters.get(column.name) if column.kind == "params" else None
    if column == ("", "number", "number"):
        return "int64"
    if isinstance(parameter, Int) and all(v is None or isinstance(v, int) for v in values):
        return "Int64" if None in values else "int64"
    if isinstance(parameter, Choice):
        whole = bool(values) and all(isinstance(v, bool) for v in values)
        return "bool" if whole else "object"
    numbers = column.kind != "" or column.name in _NUMBERS
    return "float64" if numbers else "object"
