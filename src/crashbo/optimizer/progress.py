"""What a person sees while a study runs.

May import strategies and below.
"""

import sys
from typing import Protocol, TextIO

from crashbo.optimizer.optimizer import Optimizer
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
        line = summary(optimizer, total)
        self.stream.write("\r" + line.ljust(self._width))
        self.stream.flush()
        self._width = len(line)

    def close(self) -> None:
        """End the line."""
        if self._width:
            self.stream.write("\n")


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
    """None shows a line on a terminal and nothing elsewhere; True always shows it, False never."""
    if progress is None:
        return TerminalProgress() if sys.stderr.isatty() else None
    if progress is True:
        return TerminalProgress()
    return None if progress is False else progress
