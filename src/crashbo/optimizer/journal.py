"""The journal: every event of a study on disk before the next one begins.

May import strategies and below.

One JSON object a line. The first names the format and the study; then "ask" (a trial was handed out, with the
state the optimiser was left in) and "tell" (what came of it). One writer at a time holds the file's lock.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crashbo.lines import Lines, Lock
from crashbo.optimizer import saving
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Trial
from crashbo.search import own

VERSION = 1
_START = b'{"crashbo_journal":'


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
        trials: dict[int, Trial] = {}
        state: Mapping[str, Any] = fresh.state()
        for number, event in enumerate(events[1:], start=2):
            try:
                trial = saving.trial_in(event["trial"])
            except (KeyError, TypeError):
                self._lines.refuse(number)
            trials[trial.number] = trial
            state = {**state, **event.get("state", {})}
        self._memory = state.get("memory")
        return Optimizer.restored(fresh.study, trials.values(), state)

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
        for key in ("space", "constraints", "direction", "objectives", "rules"):
            before, here = header["config"].get(key), now.get(key)
            if before != here:
                raise ValueError(
                    f"journal must belong to this study; {self.path} has {key} {before}, not {here}. "
                    "Give another path, or the same study."
                )
