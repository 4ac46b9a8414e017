"""The run log: every finished run on disk, so that a campaign that was killed can resume.

Needs the standard library and what belongs to all.

One file per method, one run per line. A run whose line is incomplete is run again, with the same result. To run a
method again, delete its file.
"""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from crashbo.lines import Lines, Lock


class AnySpec(Hashable, Protocol):
    """What identifies a run."""

    @property
    def method(self) -> str:
        """Whose file it is kept in."""


class AnyRun(Protocol):
    """The record of a run."""

    @property
    def spec(self) -> Any:
        """What identifies it."""


S = TypeVar("S", bound=AnySpec)
R = TypeVar("R", bound=AnyRun)


class RunLog(Generic[S, R]):
    """The finished runs in a folder; one process at a time may add to it.

    Args:
        folder: created if it is not there.
        plain: a run as plain values.
        revived: a run from plain values.
    """

    def __init__(
        self, folder: Path, plain: Callable[[R], dict[str, Any]], revived: Callable[[dict[str, Any]], R]
    ) -> None:
        self.runs: dict[S, R] = {}
        self._folder, self._files = folder, dict[str, Lines]()
        self._plain, self._revived = plain, revived
        folder.mkdir(parents=True, exist_ok=True)
        in_use = f"output must have one writer; {folder} is in use by another process. Wait for it, or name another."
        self._lock = Lock(folder / ".lock", in_use)
        try:
            for path in sorted(folder.glob("*.jsonl")):
                self._read(self._file(path.stem))
        except BaseException:
            self.close()
            raise

    def add(self, run: R) -> None:
        """Log a run."""
        self._file(run.spec.method.replace(":", ".")).append(self._plain(run))
        self.runs[run.spec] = run

    def close(self) -> None:
        """Close the files and release the lock."""
        for file in self._files.values():
            file.close()
        self._lock.close()

    def __enter__(self) -> "RunLog[S, R]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _file(self, stem: str) -> Lines:
        if stem not in self._files:
            path = self._folder / f"{stem}.jsonl"
            self._files[stem] = Lines(path, "run log must hold a run in every line", "Delete it, or the file.")
        return self._files[stem]

    def _read(self, file: Lines) -> None:
        for number, saved in enumerate(file.read(), start=1):
            try:
                run = self._revived(saved)
            except (ValueError, KeyError, TypeError):
                file.refuse(number)
            self.runs[run.spec] = run
