"""Comparisons of trials in a storage: one attribute of the study each, written completely or not at all.

May import optimizer and below, and Optuna.

Nothing is deleted: a comparison that was taken back says so, and counts no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna import Study as OptunaStudy

from crashbo.integrations.optuna.keys import COMPARED
from crashbo.optimizer.records import Comparison


@dataclass(frozen=True)
class SaidOfTwo:
    """A comparison as it is stored."""

    id: str
    comparison: Comparison
    at: float  # its place in the order of everything that was told; close to its time, in seconds since 1970
    who: str = ""
    undone: bool = False
    undone_by: str = ""

    def out(self) -> dict[str, Any]:
        """As plain values."""
        c = self.comparison
        said = {"better": c.better, "worse": c.worse, "tie": c.tie, "at": self.at, "who": self.who}
        return said | ({"undone": True, "undone_by": self.undone_by} if self.undone else {})

    def write(self, study: OptunaStudy) -> None:
        """Store it; it counts from now on, or no more."""
        study.set_user_attr(COMPARED + self.id, self.out())


def said_in(attrs: Mapping[str, Any]) -> list[SaidOfTwo]:
    """All comparisons in a study's attributes, in the order in which they were told."""
    found = [_back(key.removeprefix(COMPARED), said) for key, said in attrs.items() if key.startswith(COMPARED)]
    return sorted(found, key=lambda said: (said.at, said.id))


def _back(name: str, said: Mapping[str, Any]) -> SaidOfTwo:
    comparison = Comparison(int(said["better"]), int(said["worse"]), bool(said.get("tie")))
    more = {key: said[key] for key in ("who", "undone", "undone_by") if key in said}
    return SaidOfTwo(name, comparison, float(said["at"]), **more)
