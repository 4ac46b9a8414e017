"""What finished trials should have said. Optuna's own record of one cannot be changed: a correction stands beside it.

May import every other layer.

A correction is one attribute of the study, so that it is written whole or not at all. It holds what counts now, what
an undo goes back to, and everything that was ever said before, which nothing removes.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from crashbo.integrations.optuna.stored import CORRECTED
from crashbo.optimizer.records import Trial

Words = dict[str, Any]
PENDING: Words = {"state": "pending", "cost": None, "reason": "", "blame": [], "censored": [], "measured": {}}


@dataclass(frozen=True)
class Correction:
    """Where a trial's record stands among those it had."""

    now: Words
    below: tuple[Words, ...]  # what undo goes back to, the last one first to come
    past: tuple[Words, ...]  # everything that was ever said before, with when and why it was replaced
    at: float = 0.0

    @staticmethod
    def of(attrs: Mapping[str, Any], trial: Trial) -> "Correction":
        """That of a trial, from its study's attributes; one that was never corrected lies on a pending one."""
        said = attrs.get(f"{CORRECTED}{trial.number}")
        if said is None:
            return Correction(words(trial), () if trial.state == "pending" else (PENDING,), ())
        now = {key: said[key] for key in PENDING}
        return Correction(now, tuple(said.get("below", (PENDING,))), tuple(said.get("past", ())), said.get("at", 0.0))

    def changed(self, to: Words, does: str) -> "Correction":
        """After saying something else."""
        return Correction(to, (*self.below, self.now), self._grown(does), time.time())

    def undone(self) -> "Correction":
        """After taking the last word back."""
        *below, now = self.below
        return Correction(now, tuple(below), self._grown("undo"), time.time())

    def out(self) -> dict[str, Any]:
        """As plain values for the storage."""
        return {**self.now, "below": list(self.below), "past": list(self.past), "at": self.at}

    def _grown(self, does: str) -> tuple[Words, ...]:
        return (*self.past, {**self.now, "until": time.time(), "by": does})


def key(number: int) -> str:
    """The study's attribute that holds a trial's correction."""
    return f"{CORRECTED}{number}"


def words(trial: Trial) -> Words:
    """What a trial says, as plain values."""
    said = {"state": trial.state, "cost": trial.cost, "reason": trial.reason}
    names = {"blame": list(trial.blame), "censored": list(trial.censored)}
    return {**said, **names, "measured": dict(trial.measured)}


def applied(trial: Trial, said: Words) -> Trial:
    """A trial that says this."""
    names = {key: tuple(said[key]) for key in ("blame", "censored")}
    return replace(trial, **{**said, **names, "measured": dict(said["measured"])})
