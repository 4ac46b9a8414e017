"""Corrections of finished trials. Optuna's own record cannot be changed, so a correction is stored next to it.

May import optimizer and below, and Optuna.

A correction is one attribute of the study, so that it is written completely or not at all. It holds the current
outcome, the outcomes that undo returns to, and the full history, which is never deleted.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna import Study as OptunaStudy

from crashbo.integrations.optuna.keys import CORRECTED
from crashbo.optimizer.records import Trial
from crashbo.optimizer.told import Told


@dataclass(frozen=True)
class Correction:
    """The outcomes of a trial: current, undoable and past."""

    number: int  # of the trial
    now: Told
    below: tuple[Told, ...]  # what undo returns to, the last one first
    past: tuple[Mapping[str, Any], ...]  # everything told before, with when and why it was replaced
    at: float = 0.0

    @staticmethod
    def of(attrs: Mapping[str, Any], trial: Trial, first: Told | None = None) -> "Correction":
        """The correction of a trial, from its study's attributes; below a first outcome is the pending state.

        `first` is what Optuna's own record says, for corrections of earlier editions, which did not keep it.
        """
        said = attrs.get(f"{CORRECTED}{trial.number}")
        if said is None:
            return Correction(trial.number, Told.of_trial(trial), () if trial.state == "pending" else (Told(),), ())
        known = () if first is None else (first.out(),)
        below = tuple(map(Told.back, said.get("below", ({}, *known))))
        past = tuple(said.get("past", ({**words, "by": "tell"} for words in known)))
        return Correction(trial.number, Told.back(said), below, past, said.get("at", 0.0))

    def changed(self, to: Told, does: str) -> "Correction":
        """With another outcome."""
        return Correction(self.number, to, (*self.below, self.now), self._grown(does), time.time())

    def undone(self) -> "Correction":
        """With the last change undone."""
        *below, now = self.below
        return Correction(self.number, now, tuple(below), self._grown("undo"), time.time())

    def write(self, study: OptunaStudy) -> None:
        """Store it; it counts from now on."""
        below = [told.out() for told in self.below]
        study.set_user_attr(
            f"{CORRECTED}{self.number}", {**self.now.out(), "below": below, "past": list(self.past), "at": self.at}
        )

    def _grown(self, does: str) -> tuple[Mapping[str, Any], ...]:
        return (*self.past, {**self.now.out(), "until": time.time(), "by": does})
