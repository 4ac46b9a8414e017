"""The journal: every event of a study on disk before the next one begins.

May import strategies and below.

One JSON object a line. The first names the format and the study; then "ask" (a trial was handed out, with the
state the optimiser was left in), "tell" (what came of it), "table" (trials that were made before, told together, and
comparisons of them), "prefer" (which of two was better; `again` in place of what was said of them before) and
"unprefer" (a comparison was taken back). One writer at a time holds the file's lock.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from crashbo.lines import Lines, Lock
from crashbo.optimizer import saving
from crashbo.optimizer.comparing import of_pair
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Comparison, Trial
from crashbo.search import own

VERSION = 1
_START = b'{"crashbo_journal":'


def begins_journal(text: bytes) -> bool:
    """Whether this is the beginning of a journal."""
    return text.startswith(_START)


def compared_by(event: Mapping[str, Any], comparisons: list[Comparison]) -> list[Comparison]:
    """The comparisons after an event that concerns two trials."""
    new = Comparison(**event["comparison"])
    if event["event"] == "unprefer":
        last = len(comparisons) - 1 - comparisons[::-1].index(new)
        return comparisons[:last] + comparisons[last + 1 :]
    before = of_pair(comparisons, new.better, new.worse) if event.get("again") else []
    return [*(c for i, c in enumerate(comparisons) if i not in before), new]


@dataclass(frozen=True)
class Replayed:
    """A study as its journal has it."""

    trials: dict[int, Trial]
    comparisons: list[Comparison]
    state: dict[str, Any]  # as far as the journal says

    @staticmethod
    def of(events: Iterable[Mapping[str, Any]], refuse: Callable[[int], NoReturn]) -> "Replayed":
        """After these events; `refuse` raises for the event of an index."""
        trials: dict[int, Trial] = {}
        comparisons: list[Comparison] = []
        state: dict[str, Any] = {}
        for i, event in enumerate(events):
            try:
                if "comparison" in event:
                    comparisons = compared_by(event, comparisons)
                    continue
                told = [saving.trial_in(trial) for trial in event.get("trials") or [event["trial"]]]
                comparisons = [*comparisons, *(Comparison(**c) for c in event.get("comparisons", ()))]
            except (KeyError, TypeError, ValueError):
                refuse(i)
            trials |= {trial.number: trial for trial in told}
            state |= event.get("state", {})
        return Replayed(trials, comparisons, state)


class Journal:
    """An append-only file of a study's events, open for one writer."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        in_use = f"journal must have one writer; {self.path} is in use by another process. "
        self._lock = Lock(self.path, in_use + "Wait for it, or give another path.")
        self._lines = Lines(
            self.path,
            "journal must hold an event of a study in every line",
            "Restore the file from a copy, or give another path.",
            plain=saving.plain,
        )
        self._memory: Any = None  # the last one in the file

    def open_study(self, fresh: Optimizer) -> Optimizer:
        """The study that the file holds, or the fresh one, which the file then holds."""
        if not self._lines.begins(_START):  # somebody else's: not a byte of it is cut off
            raise ValueError(f"journal must be new, or a file of crashbo's; {self.path} is neither. Give another path.")
        events = self._lines.read()
        if not events:
            self._lines.append({"crashbo_journal": VERSION, "config": fresh.config()})
            return fresh
        self._check_same_study(events[0], fresh)
        found = Replayed.of(events[1:], lambda i: self._lines.refuse(i + 2))
        state = {**fresh.state(), **found.state}
        self._memory = state.get("memory")
        return Optimizer.restored(fresh.study, found.trials.values(), state, found.comparisons)

    def asked(self, trial: Trial, optimizer: Optimizer) -> None:
        """A trial was handed out. A memory that is in the file already is not written again: with many trials, most."""
        state = optimizer.state()
        if state["memory"] is not None and state["memory"] == self._memory:
            del state["memory"]
        else:
            self._memory = state["memory"]
        self._lines.append({"event": "ask", "trial": asdict(trial), "state": state})

    def told(self, trial: Trial) -> None:
        """A trial's outcome is known."""
        self._lines.append({"event": "tell", "trial": asdict(trial)})

    def told_table(self, trials: Sequence[Trial], comparisons: Sequence[Comparison]) -> None:
        """Trials that were made before were told together: one line, so that all of them are in the file or none."""
        told = {"trials": [asdict(t) for t in trials], "comparisons": [asdict(c) for c in comparisons]}
        self._lines.append({"event": "table", **{name: some for name, some in told.items() if some}})

    def preferred(self, comparison: Comparison, *, again: bool = False) -> None:
        """Two trials were compared; `again`, in place of what was said of them before."""
        self._lines.append({"event": "prefer", "comparison": asdict(comparison)} | ({"again": True} if again else {}))

    def unpreferred(self, comparison: Comparison) -> None:
        """The last such comparison was taken back."""
        self._lines.append({"event": "unprefer", "comparison": asdict(comparison)})

    def close(self) -> None:
        """Give the file and its lock back."""
        self._lines.close()
        self._lock.close()

    def _check_same_study(self, header: Mapping[str, Any], fresh: Optimizer) -> None:
        if header.get("crashbo_journal") != VERSION:
            found = header.get("crashbo_journal")
            raise ValueError(
                f"journal must have format version {VERSION}; {self.path} has {found!r}. Give another path."
            )
        now = json.loads(json.dumps(fresh.config(), default=saving.plain))
        for key, saved in header["config"].items():
            if own.is_named(saved) and not own.is_named(now.get(key)):
                raise own.refusal(key, saved)
        for key in ("space", "constraints", "direction", "objectives", "rules", "cost"):
            default = "measured" if key == "cost" else None  # of an edition in which every cost was
            before, here = header["config"].get(key, default), now.get(key)
            if before != here:
                raise ValueError(
                    f"journal must belong to this study; {self.path} has {key} {before}, not {here}. "
                    "Give another path, or the same study."
                )
