"""EIC^2 for several trials at once: more points beside those that are under way.

May import search and below.

The first of a batch is chosen as any single trial is. The others come in groups, two from one screening of candidates:
each is the best candidate in the light of those before it (see `search.fantasies`), and a group is moved uphill
together. So one of them costs a few vectors, not a search of its own.

Trials under way count as spent: they may yet be crashes (see `risk`), and a leap that nobody has heard of yet has not
paid (see `reach`). P(safe) stays as it is: to believe that they succeed would let a whole batch walk into a crash.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.search import candidates, doubt, reach
from crashbo.search.acquisition import LogEI
from crashbo.search.aims import Best
from crashbo.search.candidates import Apart, Box, Found, Screen
from crashbo.search.fantasies import Fantasies
from crashbo.search.maximise import ascend
from crashbo.search.risk import LEAST, Paper, Score, Situation, floor_of, price_of, usual_price
from crashbo.search.space import SAME, is_near
from crashbo.strategies import eicc
from crashbo.strategies.base import Proposal, Task

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

# judgement: what two suggestions of a rival take, by benchmarks/batch.py cost
_GROUP = 8  # points that are moved uphill together, and handed out
_LONG = 32  # points that are chosen where they are, given only each other, past many trials
_SHARED = 2  # groups that are chosen from one screening
_TIMES = 2  # as many candidates as for a single trial
_STEPS, _ENOUGH = 5, 1e-2  # evaluations of such a move; gain of a step, in log acquisition, below which it ends
_FREE = 1.0 / 3.0  # derived: of the way to the nearest other: two that approach each other keep as much between them


def further(task: Task, count: int, rng: np.random.Generator) -> Iterator[list[Proposal]]:
    """`count` more points, to be tried at the same time as those that are pending; a few at a time."""
    shared, group, groups, alone = None, None, 0, task.surrogates.at_pending(task.seen.pending[:0])
    while count > 0:
        if _is_by_one(task):
            found = [eicc.propose(task, rng)]
        else:
            if group is None:
                shared = _screened(task, rng) if shared is None or groups % _SHARED == 0 else shared
                group, groups = _Group(task, shared, rng), groups + 1
            found = group.proposals(min(count, _GROUP))
        yield found
        count -= len(found)
        X = np.array([proposal.x for proposal in found])
        pending = np.vstack([task.seen.pending, X])
        left = None if task.trials_left is None else max(task.trials_left - len(X), 0)
        if group is not None and group.may_go_on:
            task = replace(task, seen=replace(task.seen, pending=pending), trials_left=left)
        elif count > 0:
            seen = replace(task.seen, pending=pending)
            task, group = replace(task, seen=seen, trials_left=left, fitted=alone.at_pending(pending)), None


def _is_by_one(task: Task) -> bool:
    """Whether each is chosen as a single trial: the paper's rule, before there is anything to gain upon, and fronts."""
    models = task.surrogates
    if isinstance(task.risk, Paper) or models.cost is None or eicc.is_early(task):
        return True
    return not isinstance(models.aim, Best)


def _improvement(task: Task) -> LogEI:
    """Over the best: of a front, no group is chosen."""
    aim = task.surrogates.aim
    assert isinstance(aim, Best)
    return aim.improvement


def _screened(task: Task, rng: np.random.Generator) -> Screen:
    """Candidates for a batch, in the whole space and near the successes."""
    models, gamma = task.surrogates, task.safety
    near = Box.near(task.space, task.seen.X[task.seen.succeeded], task.dead_ends)
    parts = [
        candidates.screen(task.space, models, gamma.roughly, box, rng=rng)
        for box in (near, Box.whole(task.space, task.dead_ends))
    ]
    both = replace(
        parts[1],
        X=np.vstack([part.X for part in parts]),
        log_gamma=np.concatenate([part.log_gamma for part in parts]),
    )
    several = gamma if models.ensemble.is_several else None
    return candidates.narrowed(both, _improvement(task)(both.X), several, len(task.seen.numbers), times=_TIMES)[0]


class _Choice(NamedTuple):
    """A point that was chosen."""

    found: Found
    least: float  # P(safe) at which it is admissible
    score: Score | None = None  # by which it may be moved uphill; None where that gains nothing


class _Group:
    """Points that are chosen one after the other from the same candidates, given those under way."""

    def __init__(self, task: Task, screened: Screen, rng: np.random.Generator) -> None:
        models, X, pending = task.surrogates, screened.X, task.seen.pending
        self._is_full = False  # whether nothing empty was left to look at
        self._rng, self._risked = rng, float(-np.expm1(task.safety(pending)).sum())
        self._task, self._screened, self._pending = task, screened, pending
        reached = Box.near(task.space, task.seen.X[task.seen.succeeded])
        self._near = np.all((reached.low <= X) & (reached.high >= X), axis=1)
        self._free = ~candidates.is_taken(X, task.taken)
        self._share = np.zeros(len(X))  # log of what is left of their worth beside those under way
        self._stay_away(pending)
        self._hopes = Fantasies.of(_improvement(task), X)
        self._chosen: list[int] = []
        self._doubts = doubt.levels(models)
        self._doubt: Fantasies | None = None

    @property
    def may_go_on(self) -> bool:
        """Whether more points may come from here: where to condition on those so far is dear."""
        return len(self._task.seen.numbers) > candidates.MANY_TRIALS and len(self._chosen) < _LONG

    def proposals(self, count: int) -> list[Proposal]:
        """The next `count` points."""
        fresh = not self._chosen
        choices = [self._next() for _ in range(count)]
        found = self._uphill(choices) if fresh else [choice.found for choice in choices]
        p = [float(np.exp(f.log_gamma)) for f in found]
        return [
            Proposal(f.x, safe, admissible=safe >= choice.least)
            for f, safe, choice in zip(found, p, choices, strict=True)
        ]

    def _next(self) -> _Choice:
        task, log_gamma = self._task, self._screened.log_gamma
        hopes, among = self._hopes.log_gain(), self._near if not self._may_leap() else self._free
        situation = self._situation(hopes, among)
        if among is not self._free and eicc.is_searched(task.risk, situation):  # here, not everywhere
            among, situation = self._free, self._situation(hopes, self._free)
        floor = floor_of(task.risk, situation)
        least = eicc.least_of(task.risk, floor)
        if floor >= 1.0 and (proven := eicc.proven(task)) is not None:
            return self._taken(proven, least)
        exhausted = situation.is_exhausted(floor)
        if exhausted and not self._is_full and (other := self._elsewhere(situation)) is not None:
            self._stay_away(other.x[None])
            return self._taken(other, 0.0)
        if exhausted:
            hopes = self._doubted(among & (log_gamma >= np.log(max(floor, LEAST))), situation.log_noise)
        score = Score(float(np.log(floor)) if floor > 0.0 else -np.inf, price=price_of(task.risk, situation))
        i = self._best(score(hopes + self._share, log_gamma), among)
        if np.exp(log_gamma[i]) < least:
            i = max(i, self._best(log_gamma, self._free), key=lambda k: log_gamma[k])
        # What is left of a promise beside those under way may be nothing, though the place itself promised much.
        idle = exhausted or hopes[i] + self._share[i] + log_gamma[i] < situation.log_worthwhile
        if idle and self._tells_nothing(i):
            i = self._emptiest(least, i)
        found = Found(self._screened.X[i], float(log_gamma[i]))
        self._take(i)
        if task.space.size < np.inf:
            found = eicc.in_a_finite_space(task, task.safety, found, least)
        return self._taken(found, least, None if idle else score)

    def _taken(self, found: Found, least: float, score: Score | None = None) -> _Choice:
        self._pending = np.vstack([self._pending, found.x])
        self._risked -= float(np.expm1(found.log_gamma))
        return _Choice(found, least, score)

    def _elsewhere(self, situation: Situation) -> Found | None:
        """A look at what is empty still, as `eicc` has it, given all that is under way."""
        now = replace(self._task, seen=replace(self._task.seen, pending=self._pending))
        found = eicc.look_elsewhere(now, self._task.safety, _improvement(self._task), situation, self._rng)
        self._is_full = found is None
        return found

    def _take(self, i: int) -> None:
        """Candidate i is under way from now on."""
        self._chosen.append(i)
        self._free = self._free & ~candidates.is_taken(self._screened.X, self._screened.X[i : i + 1])
        self._near = self._near & self._free
        self._stay_away(self._screened.X[i : i + 1])
        self._hopes = self._hopes.with_chosen(i)
        self._doubt = None if self._doubt is None else self._doubt.with_chosen(i)

    def _stay_away(self, points: Array) -> None:
        if len(points):
            apart = Apart(_improvement(self._task), points, self._screened.apart)
            self._share = self._share + apart.log_share(self._screened.X)

    def _situation(self, worth: Array, among: Flags) -> Situation:
        """By the candidates among which to choose; by all, if none of those is left."""
        among = among if among.any() else np.ones_like(among)
        screened = replace(self._screened, X=self._screened.X[among], log_gamma=self._screened.log_gamma[among])
        return replace(
            eicc.situation_of(self._task, screened, worth[among]), pending=len(self._pending), risked=self._risked
        )

    def _may_leap(self) -> bool:
        """As `eicc` has it; what is under way was spent, and has not paid."""
        task, seen, more = self._task, self._task.seen, len(self._pending)
        leapt = reach.leaps(
            task.space.seen(np.vstack([seen.X, self._pending])),
            np.append(seen.succeeded, np.zeros(more, bool)),
            task.space.continuous,
        )
        return reach.leap_is_due(
            leapt,
            np.append(seen.crashed, np.zeros(more, bool)),
            np.append(seen.cost, np.full(more, np.nan)),
            np.append(~np.isnan(task.reported), np.ones(more, bool)),
            usual_price(task.risk),
            task.surrogates.aim.resolution,
        )

    def _doubted(self, admissible: Flags, log_noise: float) -> Array:
        """The candidates' worth under the least doubt that leaves something to gain, or the last."""
        while True:
            if self._doubt is not None:
                worth = self._doubt.log_gain()
                if np.max(worth + self._screened.log_gamma, where=admissible, initial=-np.inf) > log_noise:
                    return worth
            deeper = next(self._doubts, None)
            if deeper is None:
                assert self._doubt is not None
                return self._doubt.log_gain()
            assert isinstance(deeper, LogEI)
            self._doubt = Fantasies.of(deeper, self._screened.X)
            for i in self._chosen:
                self._doubt = self._doubt.with_chosen(i)

    def _best(self, values: Array, among: Flags) -> int:
        """The candidate of highest value among some, or among all if those are used up."""
        values = np.where(np.isnan(values), -np.inf, values)
        for mask in (among, self._free):
            if mask.any():
                return int(np.argmax(np.where(mask, values, -np.inf)))
        return int(np.argmax(values))

    def _tells_nothing(self, i: int) -> bool:
        """Whether candidate i lies beside a trial that is under way, or a success that was worse than the best."""
        known = np.vstack([eicc.worse_successes(self._task), self._pending])
        return bool(is_near(self._screened.X[i : i + 1], known, eicc.BESIDE)[0])

    def _emptiest(self, least: float, i: int) -> int:
        """The candidate farthest from all trials that is safe; i, if there is none."""
        safe = np.flatnonzero(self._free & (self._screened.log_gamma >= np.log(max(least, LEAST))))
        if not len(safe):
            return i
        visited = np.vstack([self._task.visited, self._pending])
        gaps = np.linalg.norm(self._screened.X[safe][:, None, :] - visited[None, :, :], axis=2).min(axis=1)
        return int(safe[np.argmax(gaps)])

    def _uphill(self, choices: list[_Choice]) -> list[Found]:
        """Where the points lead, each within a part of the way to the nearest other."""
        found = [choice.found for choice in choices]
        rows = [k for k, choice in enumerate(choices) if choice.score is not None]
        score = next((choice.score for choice in choices if choice.score is not None), None)
        if score is None or not self._task.space.continuous.any():
            return found
        X, task = np.array([found[k].x for k in rows]), self._task
        improvement, safety = _improvement(task), task.safety
        tops, _ = ascend(
            task.space.along(lambda X: score.with_gradient(improvement.with_gradient(X), safety.with_gradient(X))),
            X,
            task.space.continuous,
            widths=self._screened.apart,
            evaluations=_STEPS,
            enough=_ENOUGH,
            around=_FREE * _gaps(X, self._pending),
        )
        ends = task.space.settled(task.dead_ends.withdrawn(task.space.snap(tops), X))
        log_gamma = safety(ends)
        better = score(improvement(ends), log_gamma) > score(
            improvement(X), np.array([found[k].log_gamma for k in rows])
        )
        for k, x, log_p, is_better in zip(rows, ends, log_gamma, better, strict=True):
            if is_better:
                found[k] = Found(x, float(log_p))
        return found


def _gaps(X: Array, others: Array) -> Array:
    """The largest coordinate of the way from each row of X to the nearest of `others`, itself left out."""
    gaps = np.abs(X[:, None, :] - others[None, :, :]).max(axis=2)
    return np.asarray(np.where(gaps > SAME, gaps, np.inf).min(axis=1))
