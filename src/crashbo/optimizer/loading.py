"""A study from its file, a journal or what `to_json` wrote; nothing is written to it.

May import strategies and below.
"""

from os import PathLike
from pathlib import Path
from typing import NoReturn, Unpack

from crashbo.lines import entries_of
from crashbo.optimizer.journal import VERSION, Replayed, begins_journal
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.study import Options, Study, takes_options
from crashbo.search import own

_STORE = b"SQLite format 3"


@takes_options
def load(path: str | PathLike[str], **parts: Unpack[Options]) -> Optimizer:
    """The study in a journal or in a file of `to_json`, also while somebody writes to it: it is only read.

    The study goes on with the same proposals. What is told to it is kept in memory; to go on with a journal on disk,
    open that: `crashbo.journaled(path, crashbo.load(path))`.

    Args:
        path: of the file. What of the study is your own, such as a strategy, must be passed again.
    """
    where = Path(path)
    try:
        found = where.read_bytes()
    except OSError as error:
        raise ValueError(
            f"path must be a text file that can be read; got {str(path)!r} ({error.strerror}). Check it."
        ) from None
    if found.startswith(_STORE):
        raise ValueError(
            f"path must be a journal, or a study saved by to_json; {str(path)!r} is a store of Optuna's. "
            "See crashbo.integrations.optuna.insight, or --store of the command line."
        )
    try:
        if begins_journal(found):
            return _replayed(found, parts)
        return Optimizer.from_json(found.decode("utf-8"), **parts)
    except own.Unsaved:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        rule = "path must be a journal of crashbo's, or a study saved by to_json"
        words = f"it has no {error}" if isinstance(error, KeyError) else str(error).removesuffix(".")
        raise ValueError(f"{rule}; {str(path)!r} is neither ({words}). Name another.") from None


def _replayed(journal: bytes, parts: Options) -> Optimizer:
    entries, _ = entries_of(journal, _refuse)
    header, *events = entries or _refuse(1)
    if header["crashbo_journal"] != VERSION:
        raise ValueError(f"its format is {header['crashbo_journal']!r}, not {VERSION}")
    found = Replayed.of(events, lambda i: _refuse(i + 2))
    study = Study.back(header["config"], **parts)
    return Optimizer.restored(study, found.trials.values(), found.state, found.comparisons)


def _refuse(line: int) -> NoReturn:
    raise ValueError(f"line {line} is no event of a study")
