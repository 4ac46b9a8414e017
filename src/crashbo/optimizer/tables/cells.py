"""What stands in the cells of a table that somebody else made: numbers, options, names, words for what came of a trial.

May import strategies and below. Nothing is guessed: what can be read in two ways is refused, with what to say instead.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crashbo.optimizer.experiment import Word
from crashbo.optimizer.tables.columns import FORMULA
from crashbo.search.space import Choice, Int, Parameter, is_number

STATES = ("success", "crash", "stopped", "void")
WORDS = {state: state for state in (*STATES, "pending")} | {
    **dict.fromkeys(("ok", "succeeded"), "success"),
    **dict.fromkeys(("crashed", "fail", "failed", "failure"), "crash"),
}
_NOTHING = ("", "nan", "na", "n/a", "<na>", "none", "null", "nat", "-")  # where a number should stand
_YES, _NO = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0", "")
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """How a table says things.

    Attributes:
        words: of the state and the cost, beside those that are known: what each says of a trial.
        on_nan: what a trial without a cost is of which nothing else says what came of it.
        decimal: what stands before the fraction of a number.
        in_python: whether these can be said by who gives the table: then errors name them.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    on_nan: Word = "raise"
    decimal: str = "."
    in_python: bool = False

    def __post_init__(self) -> None:
        said = self.words if isinstance(self.words, Mapping) else {None: self.words}
        if not all(word is not None and state in (*STATES, "pending") for word, state in said.items()):
            raise ValueError(
                f"words must map what the table says to {', '.join(STATES)} or pending; got {self.words!r}. "
                "Write {'broke': 'crash'}, for example."
            )
        if self.on_nan not in ("raise", "crash", "void"):
            raise ValueError(f"on_nan must be 'raise', 'crash' or 'void'; got {self.on_nan!r}. Choose one.")
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal must be '.' or ','; got {self.decimal!r}. Choose one.")
        object.__setattr__(self, "words", {_word(word): state for word, state in said.items()})

    def state_of(self, cell: Any) -> str | None:
        """The state that a cell names; None if it names none."""
        return self.words.get(_word(cell)) or (WORDS.get(_word(cell)) if isinstance(cell, str) else None)

    def number(self, cell: Any, name: str) -> float | None:
        """The number in a cell, which may be infinite or NaN; None if the cell is empty."""
        if isinstance(cell, bool):
            raise ValueError(f"{name} must be a number; got {cell!r}")
        if not isinstance(cell, str):
            return None if cell is None else _float(cell, name)
        if cell.casefold() in _NOTHING:
            return None
        if self.decimal == "," and "." in cell:
            raise ValueError(f"{name} must be a number without a dot, as decimal is ','; got {cell!r}")
        text = cell.replace(",", ".") if self.decimal == "," else cell
        if "_" in text or (self.decimal == "." and _COMMA.fullmatch(text)):
            remedy = "" if "_" in text else self.remedy("Pass decimal=',' where a comma stands before the fraction")
            raise ValueError(f"{name} must be a number; got {cell!r}{remedy}")
        return _float(text, name, cell)

    def remedy(self, words: str) -> str:
        """What to say of a row that is wrong, where that can be said."""
        return f". {words}" if self.in_python else ""

    def finite(self, cell: Any, name: str) -> float | None:
        """A finite number, or None if there is none."""
        found = self.number(cell, name)
        if found is not None and math.isinf(found):
            raise ValueError(f"{name} must be a finite number; got {cell!r}")
        return None if found is None or math.isnan(found) else found

    def param(self, parameter: Parameter, cell: Any, name: str) -> Any:
        """A parameter's value; None if the cell is empty."""
        if isinstance(parameter, Choice):
            return None if is_empty(cell) and not _options(parameter, cell) else option(parameter, cell, name)
        found = self.finite(cell, name)
        if found is None or not isinstance(parameter, Int):
            return found
        return int(found) if found.is_integer() else found


def _word(cell: Any) -> str:
    """A cell as a word; 999, 999.0 and "999" are one."""
    word = text(cell).strip().casefold()
    number = math.nan if isinstance(cell, bool) else _float_or_nan(word)
    return word if math.isnan(number) else repr(number)


def plain(cell: Any) -> Any:
    """A cell as text without spaces around it, or as a plain value; None if it is empty."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, str):
        quoted = cell.startswith("'") and cell[1:].startswith(FORMULA)
        return cell[1:] if quoted else cell.strip()
    cell = cell.item() if hasattr(cell, "item") and getattr(cell, "ndim", 0) == 0 else cell
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def is_empty(cell: Any) -> bool:
    """Whether nothing stands there."""
    return cell is None or (isinstance(cell, str) and not cell)


def option(parameter: Choice, cell: Any, name: str) -> Any:
    """The option that stands in a cell."""
    found = _options(parameter, cell)
    if len(found) > 1:
        raise ValueError(f"{name} must be written so that one option is meant; got {cell!r}, which may be {found}")
    if not found:
        raise ValueError(f"{name} must {parameter.rule()}; got {cell!r}")
    return found[0]


def _options(parameter: Choice, cell: Any) -> list[Any]:
    """The options that a cell may mean: those that are it, else those that are equal, else those that read like it."""
    if is_empty(cell):
        return [o for o in parameter.options if is_empty(o)]
    if not isinstance(cell, str):
        same = [o for o in parameter.options if type(o) is type(cell) and o == cell]
        if same:
            return same
        equal = [o for o in parameter.options if is_number(o) and is_number(cell) and o == cell]
        if equal:
            return equal
    word = str(cell)
    found = [o for o in parameter.options if str(o) == word]
    found = found or [o for o in parameter.options if isinstance(o, bool) and str(o).casefold() == word.casefold()]
    return found or [o for o in parameter.options if is_number(o) and float(o) == _float_or_nan(word)]


def is_numeric(cell: Any) -> bool:
    """Whether a number stands there, be it as text."""
    return is_number(cell) or (isinstance(cell, str) and not math.isnan(_float_or_nan(cell)))


def _float_or_nan(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def yes(cell: Any, name: str) -> bool:
    """Whether a cell says yes."""
    word = "" if cell is None else str(cell).casefold()
    if word in (*_YES, *_NO):
        return word in _YES
    raise ValueError(f"{name} must be true or false; got {cell!r}. Words on it go into a column reason")


def names(cell: Any) -> list[str]:
    """Names in a cell: a list, text with spaces between them, or a number, which is one name."""
    if is_empty(cell):
        return []
    return [text(name) for name in cell] if isinstance(cell, list | tuple) else text(cell).split()


def by_name(cell: Any, name: str) -> dict[str, Any] | None:
    """Values by name in a cell: a mapping, or JSON of one; None if the cell is empty."""
    if is_empty(cell):
        return None
    try:
        found = json.loads(cell) if isinstance(cell, str) else cell
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} must be a JSON object of values by name; got {cell!r}")
    return dict(found)


def text(cell: Any) -> str:
    """Words in a cell; a column of whole numbers with gaps is one of floats."""
    return "" if cell is None else str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def _float(cell: Any, name: str, shown: Any = None) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number; got {cell if shown is None else shown!r}") from None
