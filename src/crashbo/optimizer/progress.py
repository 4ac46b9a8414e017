"""What a person sees while a study runs.

May import strategies and below.
"""

import shutil
import sys
from typing import Protocol, TextIO

from crashbo.lazy import above
from crashbo.optimizer.optimizer import Optimizer, came_of
from crashbo.optimizer.records import Trial
from crashbo.optimizer.study import number_of


class Progress(Protocol):
    """Anything that wants to hear of every told trial."""

    def __call__(self, optimizer: Optimizer, trial: Trial, total: int | None) -> None:
        """After a trial was told."""


class TerminalProgress:
    """One line that is rewritten: trial, best cost or hypervolume, crashes so far, learnt thresholds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self._width = 0

    def __call__(self, optimizer: Optimizer, trial: Trial, total: int | None) -> None:
        """Rewrite the line."""
        line = summary(optimizer, total)[: shutil.get_terminal_size().columns - 1]  # a line that wraps stays there
        self.stream.write("\r" + line.ljust(self._width))
        self.stream.flush()
        self._width = len(line)

    def close(self) -> None:
        """End the line."""
        if self._width:
            self.stream.write("\n")


class LineProgress:
    """A line per trial, for logs: what came of it, and the study so far."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    def __call__(self, optimizer: Optimizer, trial: Trial, total: int | None) -> None:
        """Add a line."""
        first, *rest = summary(optimizer, total).split(" · ")
        came = " ".join(came_of(trial).split())
        self.stream.write(" · ".join([first, came, *rest]) + "\n")
        self.stream.flush()


def summary(optimizer: Optimizer, total: int | None) -> str:
    """The study in one line."""
    trials = optimizer.trials
    told = sum(t.counts for t in trials)
    crashes = sum(t.state == "crash" for t in trials)
    units = optimizer.study.units
    words = [f"trial {told}" + (f"/{total}" if total is not None else "")]
    words.append(_reached(optimizer))
    words.append(f"crashes {crashes}")
    for name, threshold in optimizer.thresholds.items():
        if threshold.learned and threshold.value is not None:
            words.append(f"{name} crashes at {threshold.value:.4g} {units.get(name, '')}".rstrip())
    return " · ".join(words)


def _reached(optimizer: Optimizer) -> str:
    """The best cost so far; of several goals, the front's size and hypervolume."""
    if optimizer.objectives:
        return f"front {len(optimizer.front)}, hypervolume {optimizer.hypervolume():.4g}"
    best, unit = optimizer.best, optimizer.study.units.get("cost", "")
    if best is None:
        return "best none yet"
    return f"best trial {best.number}" if best.cost is None else f"best {number_of(best):.6g} {unit}".rstrip()


def progress_of(progress: "Progress | bool | None") -> Progress | None:
    """None shows it on a terminal and in a notebook, True elsewhere, too, a line per trial; False never."""
    if progress is False:
        return None
    if progress is not None and progress is not True:
        return progress
    if _in_notebook():
        found: Progress = above("progress")()
        return found
    if sys.stderr.isatty():
        return TerminalProgress()
    return LineProgress() if progress else None


def _in_notebook() -> bool:
    """Whether a kernel runs this, such as Jupyter's; without one nobody has imported IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
