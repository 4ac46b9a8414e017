"""The run log: every finished run on disk, so that a campaign that was killed can resume.

May import the public API and `problems`.

One file per method, one run per line. A run whose line is incomplete is run again, with the same result. To run a
method again, delete its file.
"""

from pathlib import Path

from crashbo.lines import Lines, Lock
from crashbo.paper.runs import Run, Spec, plain, revived


class RunLog:
    """The finished runs in a folder; one process at a time may add to it."""

    def __init__(self, folder: Path) -> None:
        self.runs: dict[Spec, Run] = {}
        self._folder, self._files = folder, dict[str, Lines]()
        folder.mkdir(parents=True, exist_ok=True)
        in_use = f"output must have one writer; {folder} is in use by another process. Wait for it, or name another."
        self._lock = Lock(folder / ".lock", in_use)
        try:
            for path in sorted(folder.glob("*.jsonl")):
                self._read(self._file(path.stem))
        except BaseException:
            self.close()
            raise

    def add(self, run: Run) -> None:
        """Log a run."""
        self._file(run.spec.method).append(plain(run))
        self.runs[run.spec] = run

    def close(self) -> None:
        """Close the files and release the lock."""
        for file in self._files.values():
            file.close()
        self._lock.close()

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _file(self, method: str) -> Lines:
        if method not in self._files:
            path = self._folder / f"{method}.jsonl"
            self._files[method] = Lines(path, "run log must hold a run in every line", "Delete it, or the file.")
        return self._files[method]

    def _read(self, file: Lines) -> None:
        for number, saved in enumerate(file.read(), start=1):
            try:
                run = revived(saved)
            except (ValueError, KeyError, TypeError):
                file.refuse(number)
            self.runs[run.spec] = run
