"""How a published problem was judged where it was published, and what others reached there.

May import the standard library.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

DATA = Path(__file__).parent / "published" / "data"

# What is read of a run: its trials until the target is reached, its best cost less the optimum, or the optimum's share
# of its best cost, which is 0 before a success.
Figure = Literal["trials", "gap", "share"]


@dataclass(frozen=True)
class PublishedRun:
    """One run of somebody else's method, as it was published."""

    method: str
    trials: int  # that it made; until the target, where there is one
    failures: int
    best: dict[int, float]  # lowest cost after so many trials


@dataclass(frozen=True)
class Published:
    """How a problem is judged.

    Attributes:
        figure: what is read of a run.
        trials: of a run; without success until then, "trials" counts as many.
        at: the numbers of trials after which the figure is read.
        target: the cost at which a run has reached its end.
        has_start: whether runs begin at a safe point that is given.
        name: of the problem among the published runs; empty if there are none.
    """

    figure: Figure
    trials: int
    at: tuple[int, ...] = ()
    target: float | None = None
    has_start: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        if self.figure not in get_args(Figure):
            raise ValueError(f"figure must be one of {', '.join(get_args(Figure))}; got {self.figure!r}. Choose one.")
        if self.trials < 1 or not all(1 <= n <= self.trials for n in self.at):
            raise ValueError(f"at must be numbers of trials, from 1 to {self.trials}; got {self.at!r}. Count them.")
        for name, given, wanted in (
            ("target", self.target is not None, self.figure == "trials"),
            ("at", bool(self.at), self.figure != "trials"),
        ):
            if given != wanted:
                raise ValueError(
                    f"{name} must be {'given' if wanted else 'left out'} where the figure is {self.figure!r}; got "
                    f"{getattr(self, name)!r}. 'trials' has a target, the others numbers of trials."
                )

    @property
    def runs(self) -> tuple[PublishedRun, ...]:
        """Others' runs; problems/published/data/SOURCES.md says whose."""
        return _runs().get(self.name, ())


def rows(name: str) -> list[dict[str, str]]:
    """A file of the data."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def _runs() -> dict[str, tuple[PublishedRun, ...]]:
    found: dict[str, list[PublishedRun]] = {}
    for row in rows("runs.csv"):
        best = {int(key.removeprefix("best_")): float(x) for key, x in row.items() if x and key.startswith("best_")}
        run = PublishedRun(row["method"], int(row["evaluations"]), int(row["failures"]), best)
        found.setdefault(row["problem"], []).append(run)
    return {name: tuple(runs) for name, runs in found.items()}
