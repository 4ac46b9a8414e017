"""Several goals: the front of the trials so far, and what is to be gained beyond it.

May import models and below.

Inside, all goals are minimised. The front is of posterior means, so that no lucky trial stays on it for ever, and only
of trials of which every goal is known. Gains are volumes in units of the goals' own spreads.

The reference point bounds what counts: a trial that is worse in any goal gains nothing. Unless the user gives one, it
lies beyond the worst of the front in every goal, so far that the ends of the front may be extended, too. Now and then a
study looks much farther: the front may go on behind a region that crashes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.models.latent import Posterior
from crashbo.numerics.hypervolume import cells, hypervolume, on_front
from crashbo.search.aims import CENTRES, Bools, ContextNow, means_here, noise_of, resolution_of
from crashbo.search.ehvi import LogEHVI
from crashbo.search.maximise import kronecker

Array = NDArray[np.float64]

# fitted: python -m benchmarks.goals, seven problems, labels only, seeds 0 and 1. A single margin is too near for a
# front that goes on behind a crash (0.3, 1) or too far for one with ends (3, 10)
_MARGIN = 0.1  # of the extent of the front, by which the reference point lies beyond its worst
_FAR = 5.0  # the same, where a study looks for more of the front
_DEARLY = 30.0  # judgement: times what it gains in a goal that a point of the front may lose in another
_PAYS = 0.01  # judgement: share of the volume that was won which a step must add to have paid: most add a little
_NOTICED = 0.1  # judgement: of a goal's spread: less may be what a GP leaves of a function that is not that smooth
_NARROW = 1e-3  # judgement: share of the successes' extent below which a front has none of its own
_CENTRES = 4 * CENTRES  # judgement: points of the front, which has many ends, with candidates around them
_SAMPLED = 2048  # judgement: points by which the progress over the trials is measured: it need not be exact


@dataclass(frozen=True)
class Front:
    """A front of M goals, moved outwards."""

    cost: Posterior  # one function per goal
    successes: int  # rows of its data that were measured: pending ones come after them
    given: Array | None = None  # (M,), the reference point, where the user gives one
    context: ContextNow = ()

    centres = _CENTRES

    @cached_property
    def means(self) -> Array:
        """Posterior means of the goals at every row, (n, M), in the present context."""
        return np.column_stack([means_here(self.cost, j, self.context) for j in range(len(self.cost.hypers))])

    @property
    def complete(self) -> Bools:
        """Rows in which every goal is known; those that are pending count as such."""
        return np.asarray(self.cost.data.measured.all(axis=0))

    @cached_property
    def reference(self) -> Array:
        """The reference point, (M,): the user's, or one found from the successes. Pending trials do not move it."""
        return self._reference(_MARGIN)

    def _reference(self, margin: float) -> Array:
        if self.given is not None:
            return self.given
        known = self.complete[: self.successes]
        means = self.means[: self.successes]
        return reference_of(means[known] if known.any() else means, margin)

    def is_noisy(self, given: Sequence[float | None]) -> Bools:
        """Of which goals the noise counts, (M,): where one was given, or much is learnt."""
        learnt = [noise_of(h) > _NOTICED * np.sqrt(h.outputscale) for h in self.cost.hypers]
        return np.array([much if std is None else std > 0.0 for much, std in zip(learnt, given, strict=True)])

    @cached_property
    def spreads(self) -> Array:
        """The goals' own units, (M,)."""
        return np.sqrt([h.outputscale for h in self.cost.hypers])

    @cached_property
    def improvement(self) -> LogEHVI:
        """What a trial may be expected to gain if it does not crash."""
        return self._beyond(self.means[self.complete], self._noise_std, self.reference)

    @property
    def wider_improvement(self) -> LogEHVI:
        """The same up to a reference point far beyond the front: there may be more of it, behind what crashes."""
        return self._beyond(self.means[self.complete], self._noise_std, self._reference(_FAR))

    @property
    def _noise_std(self) -> Array:
        return np.array([noise_of(h) for h in self.cost.hypers])

    @property
    def observed_improvement(self) -> LogEHVI:
        """Over what was observed, as if there were no noise."""
        observed = self.cost.data.Y.T[: self.successes][self.complete[: self.successes]]
        return self._beyond(observed, 0.0 * self.spreads, self.reference)

    def doubted(self, cost: Posterior) -> LogEHVI:
        """The improvement under another posterior of the same trials, without noise."""
        other = Front(cost, self.successes, self.reference, self.context)
        return other._beyond(other.means[other.complete], 0.0 * self.spreads, self.reference)

    def _beyond(self, Y: Array, noise_std: Array, reference: Array) -> LogEHVI:
        """Improvement over the front of the rows of Y."""
        return LogEHVI(self.cost, *cells(Y, reference), noise_std, self.spreads)

    @cached_property
    def resolution(self) -> float:
        """The least volume that means anything.

        It is what a trial gains that betters one point of the front by the least amount that means anything in a goal:
        a slab of that height over the point's share of the front.
        """
        steps = np.array([resolution_of(h) for h in self.cost.hypers]) / self.spreads
        extents = self._extents / self.spreads
        slabs = steps * np.prod(extents) / extents
        return float(np.mean(slabs)) / max(int(self._members.sum()), 1)

    @property
    def payment(self) -> float:
        """The least gain that makes a step, or a leap, worth its while: a share of what was won, not one more point."""
        return max(self.resolution, _PAYS * self.gained)

    @cached_property
    def gained(self) -> float:
        """The volume that the successes have won."""
        known = np.arange(len(self.means)) < self.successes
        return hypervolume((self.means / self.spreads)[self.complete & known], self.reference / self.spreads)

    @cached_property
    def merit(self) -> Array:
        """How good each row is: on the front by the distance from the next, others by how far they are behind."""
        rank = standing(np.where(self.complete[:, None], self.means, np.nan))
        return -np.where(np.isnan(rank), np.inf, rank)

    @property
    def lengthscales(self) -> Array:
        """The geometric mean of the goals', (D,)."""
        return np.asarray(np.exp(np.mean([np.log(h.lengthscales) for h in self.cost.hypers], axis=0)))

    @property
    def worse(self) -> Bools:
        """Which successes are plainly behind the front."""
        steps = np.array([resolution_of(h) for h in self.cost.hypers])
        scaled = self.means / steps
        return np.asarray(_behind(scaled, scaled[self._members])[: self.successes] > 1.0)

    def price(self, X: Array) -> Array:
        """What is expected at X as one number: its distance from the best of every goal, in the goal that is worst."""
        means = np.column_stack([self.cost.predict(j, X)[0] for j in range(len(self.cost.hypers))])
        return np.asarray(np.max((means - self.ideal) / self._extents, axis=1))

    def progress(self, cost: Array, goals: Array | None) -> Array:
        """Minus the volume that was won up to each trial; NaN where nothing is known."""
        assert goals is not None
        found, whole = np.full(len(goals), np.nan), ~np.isnan(goals).any(axis=1)
        won = won_by(goals[whole], self.ideal, self.reference)
        found[whole] = -won * np.prod(self._extents / self.spreads)
        return found

    @property
    def ends(self) -> tuple[Array, Array]:
        """The best of every goal on the front, and from there to the worst, both (M,)."""
        front = self.means[self._members]
        extent = np.ptp(front, axis=0)
        return front.min(axis=0), np.where(extent > 0.0, extent, self.spreads)

    @cached_property
    def ideal(self) -> Array:
        """The best of every goal among the successes, (M,)."""
        return np.asarray(np.minimum(self.means[: self.successes].min(axis=0), self.reference))

    @cached_property
    def _extents(self) -> Array:
        """From there to the reference point; at least a little."""
        return np.asarray(np.maximum(self.reference - self.ideal, _NARROW * self.spreads))

    @cached_property
    def _members(self) -> Bools:
        """Rows on the front."""
        members = self.complete
        members[members] = on_front(self.means[members])
        return members if members.any() else np.ones(len(members), dtype=bool)


def reference_of(Y: Array, margin: float | None = None) -> Array:
    """A reference point for the front of the rows of Y, (n, M): beyond its worst in every goal, by a margin.

    It lies so far beyond that the ends of the front may be extended, but not so far that they count for more than what
    lies between them. A row does not count that pays dearly for being hardly better than another: at the end of a front
    there are many such, far out.
    """
    front = Y[on_front(Y)]
    front = front[_is_worth_it(front)]
    best, worst, all_over = front.min(axis=0), front.max(axis=0), Y.max(axis=0)
    narrow = worst - best <= _NARROW * (all_over - best)  # such as one of a single trial
    worst = np.where(narrow, all_over, worst)
    extent = worst - best
    # Where all are alike, anything worse will do.
    beyond = _MARGIN if margin is None else margin
    return np.asarray(worst + beyond * np.where(extent > 0.0, extent, np.maximum(np.abs(worst), 1.0)))


def _is_worth_it(front: Array) -> Bools:
    """Which points of a front are not much worse than another in one goal for being hardly better in the others."""
    extent = np.ptp(front, axis=0)
    gap = (front[:, None, :] - front[None, :, :]) / np.where(extent > 0.0, extent, 1.0)  # positive where one is worse
    kept: Bools = ~np.any(np.max(gap, axis=2) > _DEARLY * np.maximum(-np.min(gap, axis=2), _NARROW), axis=1)
    return kept if kept.any() else np.ones(len(front), dtype=bool)


def won_by(Y: Array, ideal: Array, reference: Array) -> Array:
    """The share of the box between the two points that is beaten by the first k rows of Y, (n, M), for every k."""
    points = ideal + (reference - ideal) * ((0.5 + np.outer(np.arange(_SAMPLED), kronecker(len(ideal)))) % 1.0)
    beaten = np.all(Y[:, None, :] <= points[None], axis=2)
    share: Array = np.logical_or.accumulate(beaten, axis=0).mean(axis=1)
    return share


def _behind(Y: Array, front: Array) -> Array:
    """How much every goal of a row of Y would have to improve for it to be no worse than some point of the front."""
    gaps: Array = np.max(Y[:, None, :] - front[None], axis=2).min(axis=1)
    return np.maximum(gaps, 0.0)


def standing(Y: Array) -> Array:
    """One number per row of Y, (n, M), the best lowest: how far it is behind the front, or, on it, minus how far apart.

    NaN for a row of which a goal is not known.
    """
    found = np.full(len(Y), np.nan)
    whole = ~np.isnan(Y).any(axis=1)
    if not whole.any():
        return found
    members = on_front(Y[whole])
    extent = np.ptp(Y[whole][members], axis=0)
    scaled = Y[whole] / np.where(extent > 0.0, extent, 1.0)
    rank, front = _behind(scaled, scaled[members]), scaled[members]
    if len(front) > 1:
        apart = np.linalg.norm(front[:, None] - front[None], axis=2) + np.diag(np.full(len(front), np.inf))
        rank[members] -= apart.min(axis=1)
    found[whole] = rank
    return found
