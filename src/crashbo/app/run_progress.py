"""Progress of a campaign, run by run. May import every other layer."""

import sys
import time
from collections.abc import Callable
from typing import Any


class RunProgress:
    """On a terminal one line that is rewritten, elsewhere a line per percent or ten.

    Args:
        left: seconds that are left, given the run that was finished; by default as fast as so far.
        lines: lines in all where there is no terminal.
    """

    def __init__(self, left: Callable[[Any], float] | None = None, lines: int = 10) -> None:
        self._since = time.monotonic()
        self._left, self._lines, self._line = left, lines, 0
        self._rewriting = sys.stderr.isatty()

    def __call__(self, run: Any, done: int, total: int) -> None:
        """After a run."""
        passed = time.monotonic() - self._since
        left = passed / done * (total - done) if self._left is None else self._left(run)
        line = f"run {done}/{total} · {span(passed)}, about {span(left)} to go · {run.spec}"
        if self._rewriting:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        elif self._lines * done // total > self._line:
            self._line = self._lines * done // total
            print(line, file=sys.stderr, flush=True)

    def __enter__(self) -> "RunProgress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._rewriting:
            sys.stderr.write("\n")


def span(seconds: float) -> str:
    """A time in words."""
    return f"{seconds / 3600.0:.1f} h" if seconds >= 5400.0 else f"{seconds / 60.0:.1f} min"
