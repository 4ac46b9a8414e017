"""The acquisition optimiser: candidates, a screen by score, local ascents, and the best new point.

May import models and below.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crashbo.models.ensemble import FEW_TRIALS
from crashbo.search import reach
from crashbo.search.aims import CENTRES
from crashbo.search.dead_ends import NOWHERE, DeadEnds
from crashbo.search.maximise import ENOUGH, EVALUATIONS, HOPELESS, ascend, diverse_best, perturbations, spread_points
from crashbo.search.risk import Score
from crashbo.search.space import SAME, Space, is_near
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]

MANY_TRIALS = 300  # judgement: past this many, every candidate and every doubt is too costly
_AROUND, _APART, _LEAST_APART = 0.5, 0.3, 1e-3  # judgement: how far around; distance of starts; in lengthscales
_AT, _FAR = 1e-8, 50.0  # derived: half squared distances at which a share is all but zero, and all but one
_EDGES = 2  # judgement: candidates all over the space to each at the edges of its rules
_LEVELS = (0.99, 0.95, 0.8, 0.4, 0.05)  # judgement: of P(safe); between them lie the floors of `risk`


class Utility(Protocol):
    """The logarithm of a point's value if it does not crash, or of its P(safe), with its gradient."""

    def __call__(self, X: Array) -> Array:
        """At X."""

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """At X, with the gradient."""


@dataclass(frozen=True)
class Apart:
    """A utility that falls to nothing at some points: those who ask at once get different trials."""

    utility: Utility
    points: Array  # (k, D)
    widths: Array  # over which it recovers, (D,)

    def __call__(self, X: Array) -> Array:
        """At X."""
        return self.utility(X) + self.log_share(X)

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """At X, with the gradient."""
        value, gradient = self.utility.with_gradient(X)
        away, q = self._away(X)
        return value + self.log_share(X), gradient + np.einsum("mk,mkd->md", 1.0 / np.expm1(q), away / self.widths)

    def log_share(self, X: Array) -> Array:
        """The logarithm of the share of the utility that is left at X."""
        share: Array = np.log(-np.expm1(-self._away(X)[1])).sum(axis=1)
        return share

    def _away(self, X: Array) -> tuple[Array, Array]:
        """Differences from the points in units of the widths, (m, k, D), and half of their squares, (m, k)."""
        away = (X[:, None, :] - self.points[None, :, :]) / self.widths
        return away, np.clip(0.5 * np.sum(away**2, axis=2), _AT, _FAR)


@dataclass(frozen=True)
class Box:
    """The part of the unit cube that is searched, without its dead ends."""

    low: Array
    high: Array
    dead_ends: DeadEnds = NOWHERE

    @staticmethod
    def whole(space: Space, dead_ends: DeadEnds = NOWHERE) -> "Box":
        """All of it."""
        return Box(np.zeros(space.dimension), np.ones(space.dimension), dead_ends)

    @staticmethod
    def near(space: Space, tried: Array, dead_ends: DeadEnds = NOWHERE) -> "Box":
        """The `tried` points, and a little beyond them in every real coordinate.

        In many dimensions most of the space lies far from all trials, and all of it promises the same there.
        """
        low, high = reach.ends(space.seen(tried))
        return Box(np.where(space.continuous, low, 0.0), np.where(space.continuous, high, 1.0), dead_ends)


class Effort(NamedTuple):
    """How many candidates and evaluations are spent."""

    wide: int  # candidates per dimension, all over the space
    most: int  # of those
    around: int  # candidates around each of the best trials
    kept: int  # candidates per level that the whole ensemble evaluates
    spread: int  # candidates that are kept in any case
    starts: int  # of local ascents
    evaluations: int  # of an ascent, at most
    enough: float  # gain of a step, in log acquisition, below which it ends
    hopeless: float  # times its predicted gain by which a start may lie behind the best

    @staticmethod
    def after(trials: int) -> "Effort":
        """Less with more trials: each point costs more, and the best are near trials."""
        return next(effort for upto, effort in _EFFORTS if trials <= upto)


# fitted: the later two by benchmarks/ask.py, with regret level by benchmarks/quality.py, on the paper's problems. An
# evaluation costs about the same for any number of starts: on 112 acquisitions of 15 families (seed 3, trials 64 to
# 92) five starts and twelve evaluations end a little higher than three and fifteen. By benchmarks/families/tune.py on
# twelve families in 4 and 10 dimensions, 120 trials, tuning seeds 0 to 3, six evaluations changed regret by +.012 +-
# .011, forty by +.005 +- .008; on seeds 0 to 7 half of the candidates by +.003 +- .007
_EFFORTS = (
    (
        FEW_TRIALS,
        Effort(64, 512, 40, kept=24, spread=64, starts=6, evaluations=EVALUATIONS, enough=ENOUGH, hopeless=HOPELESS),
    ),
    (MANY_TRIALS, Effort(24, 128, 16, kept=12, spread=32, starts=5, evaluations=12, enough=1e-2, hopeless=3.0)),
    (np.inf, Effort(24, 128, 12, kept=12, spread=32, starts=3, evaluations=10, enough=1e-2, hopeless=10.0)),
)


@dataclass(frozen=True)
class Screen:
    """Candidates and their P(safe), evaluated once and used several times."""

    X: Array
    log_gamma: Array
    apart: Array  # least distance of two starts of local ascents, per coordinate
    box: Box


@dataclass(frozen=True)
class Found:
    """The best point and its P(safe)."""

    x: Array
    log_gamma: float


def screen(
    space: Space, models: Surrogates, gamma: Utility, box: Box | None = None, *, rng: np.random.Generator
) -> Screen:
    """Candidates all over the space, or a box in it, and around the best trials."""
    if models.cost is None:
        X, post = models.crash.data.X, models.crash
        return screen_around(space, X, gamma(space.here(X)), post.hypers[0].lengthscales, gamma, box, rng=rng)
    X, aim, trials = models.cost.data.X, models.aim, len(models.crash.data.X)
    return screen_around(space, X, aim.merit, aim.lengthscales, gamma, box, rng=rng, centres=aim.centres, trials=trials)


def screen_around(
    space: Space,
    tried: Array,
    merit: Array,
    lengthscales: Array,
    gamma: Utility,
    box: Box | None = None,
    *,
    rng: np.random.Generator,
    centres: int = CENTRES,
    trials: int = 0,
) -> Screen:
    """Candidates all over the space, or a box in it, and around so many of the tried points of highest merit.

    Their number goes by that of the `trials`, where those are more than the tried points: not all of them succeeded.
    """
    D, box, effort = space.dimension, box or Box.whole(space), Effort.after(max(trials, len(tried)))
    lengthscales = np.minimum(lengthscales, 1.0)
    best = tried[np.argsort(-merit, kind="stable")[:centres]]
    wide = space.uniform(spread_points(min(effort.wide * D, effort.most), D, rng=rng))
    around = effort.around * CENTRES // centres
    near = perturbations(np.clip(best, 0.0, 1.0), around, _AROUND * lengthscales, rng=rng)
    X = np.vstack(
        [
            space.settled(box.low + (box.high - box.low) * wide),
            space.snap(np.clip(near, box.low, box.high)),
            space.steps(space.snap(best[:1])[0]),
            _at_edges(space, box, min(effort.wide * D, effort.most) // _EDGES, rng=rng),
        ]
    )
    if box.dead_ends.hold(X).all():
        box = Box.whole(space, box.dead_ends)
    X = box.dead_ends.clear(X)
    return Screen(X, gamma(X), np.maximum(_APART * lengthscales, _LEAST_APART), box)


def _at_edges(space: Space, box: Box, n: int, *, rng: np.random.Generator) -> Array:
    """Candidates where rules end, if there are any: points all over the box, each moved to the nearest that keeps them.

    The best of a mixture often lacks some of its parts, and points inside it hardly ever do.
    """
    if not space.rules:
        return np.zeros((0, space.dimension))
    return space.snap(box.low + (box.high - box.low) * space.evened(spread_points(n, space.dimension, rng=rng)))


def narrowed(
    screened: Screen, worth: Array, gamma: Utility | None, trials: int, *, times: int = 1
) -> tuple[Screen, Array]:
    """The candidates that may matter after this many trials, with P(safe) by `gamma`, and their worth.

    The screen's own P(safe) is a rough one, unless there is no better `gamma`. Kept are the safest, the most valuable
    above every level near which a floor may lie, and some all over the space, for other utilities; of all that so many
    `times` as for one trial.
    """
    values, effort = worth + screened.log_gamma, Effort.after(trials)
    ranks = [np.where(screened.log_gamma >= np.log(level), values, -np.inf) for level in _LEVELS]
    kept = np.zeros(len(values), dtype=bool)
    kept[: times * effort.spread] = True
    for rank in (screened.log_gamma, *ranks):
        kept[np.argsort(-rank, kind="stable")[: times * effort.kept]] = True
    X = screened.X[kept]
    log_gamma = screened.log_gamma[kept] if gamma is None else gamma(X)
    return replace(screened, X=X, log_gamma=log_gamma), worth[kept]


def best(
    space: Space,
    screened: Screen,
    utility: Utility,
    gamma: Utility,
    score: Score,
    taken: Array,
    worth: Array | None = None,
) -> Found:
    """The point of highest score that is not one of `taken`, unless every point is.

    `worth` is the utility of the candidates, where it is known already.
    """
    values = score(utility(screened.X) if worth is None else worth, screened.log_gamma)
    effort = Effort.after(len(taken))
    starts = screened.X[diverse_best(screened.X, values, effort.starts, screened.apart)]
    tops, heights = ascend(
        space.along(lambda X: score.with_gradient(utility.with_gradient(X), gamma.with_gradient(X))),
        starts,
        space.continuous,
        screened.box.low,
        screened.box.high,
        widths=screened.apart,
        evaluations=effort.evaluations,
        enough=effort.enough,
        hopeless=effort.hopeless,
    )
    ends = space.settled(screened.box.dead_ends.withdrawn(space.snap(tops), starts))
    if heights is None or not np.array_equal(ends, tops):
        heights = score(utility(ends), gamma(ends))
    X, values = np.vstack([ends, screened.X]), np.append(heights, values)
    values = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-values, kind="stable")
    i = next((i for i in order if not is_taken(X[i : i + 1], taken)[0]), order[0])
    return Found(X[i], float(gamma(X[i : i + 1])[0] if i < len(ends) else screened.log_gamma[i - len(ends)]))


def is_taken(X: Array, taken: Array) -> NDArray[np.bool_]:
    """Which rows of X repeat one of `taken`."""
    return is_near(X, taken, SAME)
