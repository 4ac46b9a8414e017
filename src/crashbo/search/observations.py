"""The told and pending trials of a study, as its models see them.

May import models and below.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crashbo.models import hyperpriors
from crashbo.models.crash import Blame
from crashbo.models.hidden_cost import Comparisons
from crashbo.models.hyperpriors import Hyperprior
from crashbo.numerics.kernels import MATERN52, Kernel
from crashbo.search.front import standing
from crashbo.search.trip_levels import Tilt

Array = NDArray[np.float64]
GivenThreshold = float | tuple[float, float] | None


@dataclass(frozen=True)
class Observations:
    """The data of n trials, and where m more are pending; constraints crash above their threshold."""

    numbers: tuple[int, ...]  # of the trials, ascending
    X: Array  # (n, D)
    succeeded: NDArray[np.bool_]
    crashed: NDArray[np.bool_]
    cost: Array  # (n,), to be minimised; NaN where none is known
    Y: Array  # (n, G); NaN where nothing was measured
    blame: Blame
    pending: Array  # (m, D)
    cost_noise_std: float | None
    noise_std: tuple[float | None, ...]
    thresholds: tuple[GivenThreshold, ...]
    censored: NDArray[np.bool_] | None = None  # (n, G), where Y is only a lower bound
    reached: Array | None = None  # (n, G), the last readings before a crash; NaN where they are not known
    rises: Array | None = None  # (n, G), of these, the largest from one reading to the next; NaN where it is not known
    kernel: Kernel = MATERN52  # of both models
    tied: tuple[int, ...] = ()  # coordinates with one lengthscale in common, as Hyperprior has them
    tilts: tuple[Tilt, ...] = ()  # of the only threshold, along contexts
    stops_at: float = 0.5  # probability of a crash at which a guard stops a trial; derived: likelier than not
    total: int | None = None  # trials that there are, where these are only some of them
    goals: Array | None = None  # (n, M), of a study with several, all minimised; NaN where not known. It has no `cost`
    goal_noise_std: tuple[float | None, ...] = ()
    reference: Array | None = None  # (M,), of such a study, where the user gives it
    comparisons: Comparisons | None = None  # of trials, by their rows; None where there are none

    @property
    def cost_prior(self) -> Hyperprior:
        """The hyperprior of the cost."""
        return replace(hyperpriors.of_cost(self.X.shape[1], self.tied), kernel=self.kernel)

    @property
    def crash_prior(self) -> Hyperprior:
        """The hyperprior of what crashes."""
        return replace(hyperpriors.of_crash(self.X.shape[1], self.tied), kernel=self.kernel)

    @property
    def count(self) -> int:
        """How many trials there are, these and those that were left out."""
        return len(self.numbers) if self.total is None else self.total

    def only(self, rows: NDArray[np.intp]) -> "Observations":
        """Some of the trials, in order."""
        return replace(
            self,
            numbers=tuple(self.numbers[i] for i in rows.tolist()),
            X=self.X[rows],
            succeeded=self.succeeded[rows],
            crashed=self.crashed[rows],
            cost=self.cost[rows],
            goals=None if self.goals is None else self.goals[rows],
            Y=self.Y[rows],
            blame=None if self.blame is None else [self.blame[i] for i in rows.tolist()],
            censored=None if self.censored is None else self.censored[rows],
            reached=None if self.reached is None else self.reached[rows],
            rises=None if self.rises is None else self.rises[rows],
            comparisons=None if self.comparisons is None else self.comparisons.among(rows),
            total=self.count,
        )

    @property
    def stopped(self) -> NDArray[np.bool_]:
        """Which trials were stopped before they could crash: they have neither label nor cost."""
        return ~(self.succeeded | self.crashed)

    def risen(self, X: Array) -> Array:
        """By how much readings, and the threshold, lie higher at X than Y and the models have them, (m, 1)."""
        total = np.zeros((len(X), 1))
        for tilt in self.tilts:
            total += tilt.slope * X[:, tilt.at : tilt.at + 1]
        return total

    @property
    def watched(self) -> tuple[Array | None, Array | None]:
        """The last readings before crashes, and how far the next might have come: one rise more."""
        return self.reached, None if self.reached is None or self.rises is None else self.reached + self.rises

    @property
    def costed(self) -> NDArray[np.bool_]:
        """Which trials have a cost, or any of several."""
        return np.asarray(~np.isnan(self.cost) if self.goals is None else ~np.isnan(self.goals).all(axis=1))

    @property
    def ranked(self) -> "Observations":
        """The same, with one number per trial as its cost, also where there are several goals: the best lowest."""
        return self if self.goals is None else replace(self, cost=standing(self.goals))

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which trials have a cost, or were compared with another."""
        judged = self.costed
        if self.comparisons is not None:
            judged[self.comparisons.pairs.ravel()] = True
        return judged

    @property
    def unjudged(self) -> Array:
        """Where trials succeeded of whose cost nobody has said anything, (k, D)."""
        return self.X[self.succeeded & ~self.judged]

    def digest(self, numbers: tuple[int, ...]) -> str:
        """A digest of the data of the trials of these numbers: a correction of any of them changes it."""
        known = set(numbers)
        rows = np.array([number in known for number in self.numbers], dtype=bool)
        told = hashlib.blake2b(digest_size=16)
        stopped = self.stopped if self.stopped.any() else None  # studies without one keep the digests that they had
        readings = self.reached, self.rises
        for values in (self.X, self.cost, self.Y, self.crashed, self.censored, stopped, *readings, self.goals):
            told.update(b"" if values is None else np.ascontiguousarray(values[rows]).tobytes())
        if self.comparisons is not None:
            among = rows[self.comparisons.pairs].all(axis=1)
            told.update(np.asarray(self.numbers)[self.comparisons.pairs[among]].tobytes())
            told.update(self.comparisons.tie[among].tobytes())
        told.update(repr(self.blame and [self.blame[i] for i in np.flatnonzero(rows).tolist()]).encode())
        return told.hexdigest()

    def labels_only(self) -> "Observations":
        """The same trials without measurements: one unmeasured constraint, informed by labels alone."""
        nothing = np.full((len(self.numbers), 1), np.nan)
        bare = replace(self, censored=None, reached=None, rises=None)
        return replace(bare, Y=nothing, blame=None, noise_std=(None,), thresholds=(None,))
