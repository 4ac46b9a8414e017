"""The ledger: every finished run on disk, so that a campaign that was killed goes on where it stood.

May import the public API and `problems`.

One file a method, one JSON object a line, flushed and synced run by run. A line that a kill tore is cut off; its run is
made again and comes out the same. Deleting a method's file runs that method anew.
"""

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType

from crashbo.paper.runs import Run, Spec, plain, revived


class Ledger:
    """The finished runs in a folder, which one process at a time may add to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(folder / ".lock", "w")  # noqa: SIM115  # held as long as the ledger is
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise ValueError(
                f"output must have one writer; {folder} is in use by another process. Wait for it, or name another."
            ) from None
        try:
            runs = [run for path in sorted(folder.glob("*.jsonl")) for run in _read(path)]
        except BaseException:
            self._lock.close()
            raise
        self.runs: dict[Spec, Run] = {run.spec: run for run in runs}

    def add(self, run: Run) -> None:
        """Keep a run for good."""
        with open(self.folder / f"{run.spec.method}.jsonl", "ab") as file:
            file.write(json.dumps(plain(run)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.runs[run.spec] = run

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._lock.close()


def _read(path: Path) -> list[Run]:
    """The runs in a file; what a kill left of the last line is cut off."""
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(path, len(whole))
    runs = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            runs.append(revived(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"ledger must hold a run in every line; line {number} of {path} is none. Delete it, or the file."
            ) from None
    return runs
