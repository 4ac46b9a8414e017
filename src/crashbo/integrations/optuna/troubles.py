"""What keeps a store from being read or written, in one sentence each. Imports nothing of crashbo."""

import errno
import sqlite3
from dataclasses import dataclass
from typing import Literal

import sqlalchemy.exc
from optuna.exceptions import StorageInternalError

Kind = Literal["full", "locked", "read-only", "away"]


@dataclass(frozen=True)
class Trouble:
    """Why a store did not do what it was asked to."""

    kind: Kind
    words: str


_WORDS: dict[Kind, str] = {
    "full": "store must have room to be written to; its disk is full. Nothing was changed: make room, then send "
    "it again.",
    "locked": "store must be free to be written to; somebody else has locked it for too long. Nothing was changed: "
    "send it again.",
    "read-only": "store must be writable to be changed; it is read-only. Look at it, or open a copy that "
    "you may write to.",
    "away": "store must answer; it does not. Nothing is known to be changed: check it, then send it again.",
}
_SIGNS: dict[str, Kind] = {  # in the messages of SQLite
    "disk is full": "full",
    "disk i/o error": "full",
    "is locked": "locked",
    "readonly": "read-only",
    "unable to open": "away",
}
_ERRNOS: dict[int, Kind] = {errno.ENOSPC: "full", errno.EDQUOT: "full", errno.EROFS: "read-only"}


def trouble_of(error: BaseException) -> Trouble | None:
    """The trouble with a store behind an error; None if there is none."""
    kinds = [kind for cause in _causes(error) if (kind := _kind(cause)) is not None]
    named = next((kind for kind in kinds if kind != "away"), None)
    kind = named or (kinds[0] if kinds else None)
    return None if kind is None else Trouble(kind, _WORDS[kind])


def _kind(error: BaseException) -> Kind | None:
    if isinstance(error, sqlite3.OperationalError):
        text = str(error).lower()
        return next((kind for sign, kind in _SIGNS.items() if sign in text), None)
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return _ERRNOS[error.errno]
    away = isinstance(error, sqlalchemy.exc.OperationalError | sqlalchemy.exc.InterfaceError | StorageInternalError)
    return "away" if away else None


def _causes(error: BaseException) -> list[BaseException]:
    """An error and all that it came of."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [getattr(one, "orig", None), one.__cause__, one.__context__]
    return found
