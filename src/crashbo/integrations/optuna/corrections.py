"""What finished trials should have said. Optuna's own record of one cannot be changed: a correction stands beside it.

May import optimizer and below, and Optuna.

A correction is one attribute of the study, so that it is written whole or not at all. It holds what counts now, what
an undo goes back to, and everything that was ever said before, which nothing removes.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna import Study

from crashbo.integrations.optuna.keys import CORRECTED
from crashbo.optimizer.records import Trial
from crashbo.optimizer.told import Told


@dataclass(frozen=True)
class Correction:
    """Where a trial's record stands among those it had."""

    number: int  # of the trial
    now: Told
    below: tuple[Told, ...]  # what undo goes back to, the last one first to come
    past: tuple[Mapping[str, Any], ...]  # everything that was ever said before, with when and why it was replaced
    at: float = 0.0

    @staticmethod
    def of(attrs: Mapping[str, Any], trial: Trial) -> "Correction":
        """That of a trial, from its study's attributes; one that was never corrected lies on a pending one."""
        said = attrs.get(f"{CORRECTED}{trial.number}")
        if said is None:
            return Correction(trial.number, Told.of_trial(trial), () if trial.state == "pending" else (Told(),), ())
        below = tuple(map(Told.back, said.get("below", ({},))))
        return Correction(trial.number, Told.back(said), below, tuple(said.get("past", ())), said.get("at", 0.0))

    def changed(self, to: Told, does: str) -> "Correction":
        """After saying something else."""
        return Correction(self.number, to, (*self.below, self.now), self._grown(does), time.time())

    def undone(self) -> "Correction":
        """After taking the last word back."""
        *below, now = self.below
        return Correction(self.number, now, tuple(below), self._grown("undo"), time.time())

    def write(self, study: Study) -> None:
        """Let it count from now on."""
        below = [told.out() for told in self.below]
        study.set_user_attr(
            f"{CORRECTED}{self.number}", {**self.now.out(), "below": below, "past": list(self.past), "at": self.at}
        )

    def _grown(self, does: str) -> tuple[Mapping[str, Any], ...]:
        return (*self.past, {**self.now.out(), "until": time.time(), "by": does})
