"""Corrections of finished trials. Optuna's own record cannot be changed, so a correction is stored next to it.

May import optimizer and below, and Optuna.

A correction is one attribute of the study, so that it is written completely or not at all. It holds the current
version, the versions that undo returns to, and the full history, which is never deleted.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from optuna import Study as OptunaStudy

from crashbo.integrations.optuna.keys import CORRECTED
from crashbo.optimizer.records import Trial
from crashbo.optimizer.told import Told


@dataclass(frozen=True)
class Version:
    """What was once said of a trial."""

    told: Told = field(default_factory=Told)
    params: Mapping[str, Any] | None = None  # the setting that really ran; None: as handed out
    who: str = ""

    @staticmethod
    def back(saved: Mapping[str, Any]) -> "Version":
        """From the plain values of `out`."""
        return Version(Told.back(saved), saved.get("params"), saved.get("who", ""))

    def out(self) -> dict[str, Any]:
        """As plain values."""
        more = {"params": None if self.params is None else dict(self.params), "who": self.who}
        return self.told.out() | {name: value for name, value in more.items() if value}

    def on(self, trial: Trial) -> Trial:
        """The trial of which this is said."""
        told = self.told.on(trial)
        return told if self.params is None else replace(told, params=dict(self.params))


@dataclass(frozen=True)
class Correction:
    """The versions of a trial: current, undoable and past."""

    number: int  # of the trial
    now: Version
    below: tuple[Version, ...]  # what undo returns to, the last one first
    past: tuple[Mapping[str, Any], ...]  # everything told before, with when and why it was replaced
    at: float = 0.0  # its place in the order of everything that was told

    @staticmethod
    def of(attrs: Mapping[str, Any], trial: Trial, first: Told | None = None, who: str = "") -> "Correction":
        """The correction of a trial, from its study's attributes; below a first version is the pending state.

        `first` is what Optuna's own record says, for corrections of earlier editions, which did not keep it; `who`, who
        told it.
        """
        said = attrs.get(f"{CORRECTED}{trial.number}")
        if said is None:
            first_of_all: tuple[Version, ...] = () if trial.state == "pending" else (Version(),)
            return Correction(trial.number, Version(Told.of_trial(trial), who=who), first_of_all, ())
        known = () if first is None else (first.out(),)
        below = tuple(map(Version.back, said.get("below", ({}, *known))))
        past = tuple(said.get("past", ({**words, "by": "tell"} for words in known)))
        return Correction(trial.number, Version.back(said), below, past, said.get("at", 0.0))

    def changed(self, to: Version, does: str, at: float | None = None) -> "Correction":
        """With another version, at a place in the order of everything that was told: by default, the time."""
        below = (*self.below, self.now)
        return Correction(self.number, to, below, self._grown(does, to.who), time.time() if at is None else at)

    def undone(self, at: float | None = None, who: str = "") -> "Correction":
        """With the last change undone."""
        *below, now = self.below
        return Correction(self.number, now, tuple(below), self._grown("undo", who), time.time() if at is None else at)

    def write(self, study: OptunaStudy) -> None:
        """Store it; it counts from now on."""
        below = [version.out() for version in self.below]
        study.set_user_attr(
            f"{CORRECTED}{self.number}", {**self.now.out(), "below": below, "past": list(self.past), "at": self.at}
        )

    def _grown(self, does: str, who: str) -> tuple[Mapping[str, Any], ...]:
        doer = {"by_whom": who} if who else {}
        return (*self.past, {**self.now.out(), "until": time.time(), "by": does, **doer})
