"""The interface of a strategy: a task in, a proposal out.

May import search and below.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crashbo.search.calibration import Calibration
from crashbo.search.dead_ends import NOWHERE, DeadEnds
from crashbo.search.fitting import PosteriorOver, fit_surrogates
from crashbo.search.limits import ceilings
from crashbo.search.observations import GivenThreshold, Observations
from crashbo.search.risk import Paper, Risk
from crashbo.search.safety import Safety
from crashbo.search.space import Space
from crashbo.search.surrogates import Memory, Surrogates

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """Everything a strategy may use to propose the next point."""

    space: Space
    seen: Observations
    risk: Risk
    memory: Memory | None
    predicted: Array  # P(safe) of the told trials before the correction, when the search proposed them; NaN for others
    reported: Array  # the same, as corrected then
    trials_left: int | None  # where the study's length is announced
    fitted: Surrogates | None = None  # both models of these very observations, if they were fitted before
    sign: float = 1.0  # -1 where the user maximises: costs in `seen` are negated
    posterior: PosteriorOver = "marginal"
    dead_ends: DeadEnds = NOWHERE  # where nothing is proposed while there is another place
    voids: Array | None = None  # points of trials that were void, (k, D)

    @property
    def taken(self) -> Array:
        """Points that were tried, or are pending."""
        return np.vstack([self.seen.X, self.seen.pending])

    @property
    def visited(self) -> Array:
        """Those, and the void ones."""
        return self.taken if self.voids is None else np.vstack([self.taken, self.voids])

    @cached_property
    def calibration(self) -> Calibration:
        """Correction of P(safe) by the trials so far."""
        current = np.array(self.seen.numbers) >= self.surrogates.since
        return Calibration.of(np.where(current, self.predicted, np.nan), ~self.seen.succeeded)

    @cached_property
    def surrogates(self) -> Surrogates:
        """Both models, fitted on first use."""
        doubtful = not isinstance(self.risk, Paper)
        models = self.fitted or fit_surrogates(self.seen, self.memory, posterior=self.posterior, doubtful=doubtful)
        return models.in_context(self.space.met)

    @cached_property
    def safety(self) -> Safety:
        """The study's P(safe), by these models."""
        return self.surrogates.safety(self.calibration, ceilings(self.seen, self.surrogates))


@dataclass(frozen=True)
class Proposal:
    """The next point, in the unit cube."""

    x: Array
    p_safe: float | None = None  # by the models that the strategy goes by; a trial reports the study's
    admissible: bool = True


def checked_proposal(proposal: Proposal, space: Space) -> Proposal:
    """What a strategy returned, at the nearest setting that the space has: a user's own may return anything."""
    try:
        x = np.asarray(proposal.x, dtype=float)
        p = None if proposal.p_safe is None else float(proposal.p_safe)
    except (AttributeError, TypeError, ValueError):
        x, p = np.zeros(0), None
    if x.shape != (space.dimension,) or not np.isfinite(x).all() or not (p is None or 0.0 <= p <= 1.0):
        raise ValueError(
            f"strategy must return a Proposal of {space.dimension} finite coordinates, with a P(safe) or None; "
            f"got {proposal!r}. Write Proposal(task.space.encode(params))."
        )
    return replace(proposal, x=space.snap(x[None])[0], p_safe=p)


class Strategy(Protocol):
    """The next point of a study. One with parameters of its own is a frozen record of them."""

    def __call__(self, task: Task, rng: np.random.Generator, /) -> Proposal:
        """What to try next."""


class Further(Protocol):
    """More points of a study beside those that are pending, a few at a time: for several trials at once."""

    def __call__(self, task: Task, count: int, rng: np.random.Generator, /) -> Iterator[list[Proposal]]:
        """`count` of them."""


@runtime_checkable
class Demanding(Protocol):
    """A strategy that not every study can use."""

    def check(self, space: Space, thresholds: tuple[GivenThreshold, ...]) -> None:
        """Refuse a study with this space and these thresholds, in a sentence, if it cannot run."""
