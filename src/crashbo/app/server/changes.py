"""What has changed since a client last looked, so that the rest need not be sent again.

May import every other layer.
"""

import threading
from collections.abc import Sequence
from typing import Any

from crashbo.integrations.optuna.ledger import Entry


class Changes:
    """The edition in which each trial, and what the models say, was last changed. Editions count up from 1."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._changed: list[int] = []  # edition of each
        self._said: tuple[Any, ...] = ()
        self.trials, self.insight = 0, 0

    def note(self, entries: Sequence[Entry], said: tuple[Any, ...]) -> None:
        """The present trials, and the objects that hold what the models say: each is replaced when it changes."""
        with self._lock:
            known = len(self._entries)
            new = [
                i for i, e in enumerate(entries) if i >= known or (e is not self._entries[i] and e != self._entries[i])
            ]
            self.trials += bool(new)
            self._changed += [0] * (len(entries) - known)
            for i in new:
                self._changed[i] = self.trials
            self._entries = list(entries)
            if len(said) != len(self._said) or any(a is not b for a, b in zip(said, self._said, strict=True)):
                self._said, self.insight = said, self.insight + 1

    def since(self, edition: int) -> list[Entry]:
        """The trials that changed after an edition."""
        return [e for e, changed in zip(self._entries, self._changed, strict=True) if changed > edition]
