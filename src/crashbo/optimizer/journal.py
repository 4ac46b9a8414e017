"""The journal: every event of a study on disk before the next one begins.

May import strategies and below.

One JSON object a line. The first names the format and the study; then "ask" (a trial was handed out, with the
state the optimiser was left in) and "tell" (what came of it). Each line is flushed and synced, so a process
that is killed at any moment loses nothing that was told; a line torn by the kill is dropped. One writer at
a time holds the file's lock.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from crashbo.optimizer import saving
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Trial

VERSION = 1
_START = b'{"crashbo_journal":'


class Journal:
    """An append-only file of a study's events, open for one writer."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = open(self.path, "a+b")  # noqa: SIM115  # held, with its lock, for the study's life
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ValueError(
                f"journal must have one writer; {self.path} is in use by another process. "
                "Wait for it, or give another path."
            ) from None

    def open_study(self, fresh: Optimizer) -> Optimizer:
        """The study that the file holds, or the fresh one, which the file then holds."""
        events = self._read()
        if not events:
            self._write({"crashbo_journal": VERSION, "config": fresh.config()})
            return fresh
        self._check_same_study(events[0], fresh)
        trials: dict[int, Trial] = {}
        state: Mapping[str, Any] = fresh.state()
        for number, event in enumerate(events[1:], start=2):
            try:
                trial = saving.trial_in(event["trial"])
            except (KeyError, TypeError):
                self._refuse_line(number)
            trials[trial.number] = trial
            state = event.get("state", state)
        return Optimizer.restored(fresh.study, trials.values(), state)

    def asked(self, trial: Trial, study: Optimizer) -> None:
        """A trial was handed out."""
        self._write({"event": "ask", "trial": saving.trial_out(trial), "state": study.state()})

    def told(self, trial: Trial) -> None:
        """A trial's outcome is known."""
        self._write({"event": "tell", "trial": saving.trial_out(trial)})

    def close(self) -> None:
        """Give the file and its lock back."""
        self._file.close()

    def _write(self, event: dict[str, Any]) -> None:
        self._file.write(json.dumps(event, default=saving.plain).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> list[dict[str, Any]]:
        """All whole lines; what a kill left of the last one is cut off."""
        self._file.seek(0)
        text = self._file.read()
        if not text.startswith(_START[: len(text)]):
            raise ValueError(f"journal must be new, or a file of crashbo's; {self.path} is neither. Give another path.")
        whole = text[: text.rfind(b"\n") + 1]
        events = []
        for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
            try:
                events.append(json.loads(line))
            except ValueError:
                self._refuse_line(number)
            if not isinstance(events[-1], dict):
                self._refuse_line(number)
        if len(whole) < len(text):
            self._file.truncate(len(whole))
        return events

    def _refuse_line(self, number: int) -> NoReturn:
        raise ValueError(
            f"journal must hold an event of a study in every line; line {number} of {self.path} is none. "
            "Restore the file from a copy, or give another path."
        )

    def _check_same_study(self, header: Mapping[str, Any], fresh: Optimizer) -> None:
        if header.get("crashbo_journal") != VERSION:
            found = header.get("crashbo_journal")
            raise ValueError(
                f"journal must have format version {VERSION}; {self.path} has {found!r}. Give another path."
            )
        now = json.loads(json.dumps(fresh.config(), default=saving.plain))
        for key in ("space", "constraints", "direction"):
            if header["config"][key] != now[key]:
                raise ValueError(
                    f"journal must belong to this study; {self.path} has {key} {header['config'][key]}, "
                    f"not {now[key]}. "
                    "Give another path, or the same study."
                )
