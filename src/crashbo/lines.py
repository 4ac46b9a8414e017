"""An append-only file of JSON objects, one per line, and the lock that guards it.

Belongs to all layers, so it needs the standard library only.

A line is flushed and synced before anything else happens: a process that is killed at any moment loses nothing that it
appended, and the next reader cuts off a line that was written only in part. Readers and writers hold a `Lock`, on the
file itself or on a lock file for a whole folder.
"""

import contextlib
import json
import os
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

_BEYOND = 1 << 40  # Windows locks bytes, and nobody may read those: one that no file has


class Lock:
    """An exclusive lock among all processes, held until it is closed.

    It is of an open file, so no other descriptor of that file matters; and a fork of this process lets go of its copy,
    so that the lock never outlives its holder.

    Args:
        path: the file to lock; created if it does not exist.
        refusal: message of the ValueError that a second holder gets.
    """

    def __init__(self, path: Path, refusal: str) -> None:
        self._file = open(path, "ab")  # noqa: SIM115  # held as long as the lock is
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            elif msvcrt is not None:
                self._file.seek(_BEYOND)
                msvcrt.locking(self._file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            self._file.close()
            raise ValueError(refusal) from None
        _held.add(self)

    def close(self) -> None:
        """Release it."""
        _held.discard(self)
        self._file.close()


_held: "weakref.WeakSet[Lock]" = weakref.WeakSet()


def _let_go() -> None:
    """In a fork: the lock is our parent's alone."""
    for lock in list(_held):
        with contextlib.suppress(OSError):
            lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def entries_of(text: bytes, refuse: Callable[[int], NoReturn]) -> tuple[list[dict[str, Any]], int]:
    """All complete lines of a file, and where they end; `refuse` raises for the number of a line that is not valid."""
    whole = text[: text.rfind(b"\n") + 1]
    entries = []
    for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
        try:
            entry = json.loads(line)
        except ValueError:
            refuse(number)
        if not isinstance(entry, dict):
            refuse(number)
        entries.append(entry)
    return entries, len(whole)


class Lines:
    """A file with one JSON object per line, held open.

    Args:
        path: the file; created if it does not exist.
        rule: what every line must be, for error messages.
        remedy: what to do about a line that is not, for error messages.
        plain: turns a value that JSON does not know into one that it does.
    """

    def __init__(self, path: Path, rule: str, remedy: str, plain: Callable[[Any], Any] | None = None) -> None:
        self.path = path
        self._rule, self._remedy, self._plain = rule, remedy, plain
        # Held open: a program that changes its directory would find another file at a relative path.
        self._file = open(path, "a+b")  # noqa: SIM115

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add a line; it is on disk when this returns."""
        self._file.write(json.dumps(entry, default=self._plain).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def begins(self, start: bytes) -> bool:
        """Whether the file begins with these bytes, or is the beginning of them."""
        self._file.seek(0)
        return start.startswith(self._file.read(len(start)))

    def read(self) -> list[dict[str, Any]]:
        """All complete lines; a last line that was written only in part is cut off."""
        self._file.seek(0)
        text = self._file.read()
        entries, whole = entries_of(text, self.refuse)
        if whole < len(text):
            self._file.truncate(whole)
        return entries

    def refuse(self, number: int) -> NoReturn:
        """Raise a ValueError that names the invalid line."""
        raise ValueError(f"{self._rule}; line {number} of {self.path} is none. {self._remedy}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
