"""EIC^2: expected improvement with crash constraints (paper, section III), under a risk.

May import search and below.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.search import candidates, doubt, reach
from crashbo.search.acquisition import Flat, LogGamma
from crashbo.search.aims import Improvement
from crashbo.search.candidates import Apart, Box, Found, Screen, Utility
from crashbo.search.maximise import spread_points
from crashbo.search.risk import (
    IMAGINED,
    LEAST,
    SURE,
    TOLERANCE,
    Budget,
    MinSafe,
    Paper,
    Price,
    Risk,
    Score,
    Situation,
    floor_of,
    is_spent,
    price_of,
    usual_price,
)
from crashbo.search.safety import Safety
from crashbo.search.space import SAME, SLACK, is_near, places
from crashbo.strategies.base import Proposal, Task

Array = NDArray[np.float64]
Gamma = Safety | LogGamma  # of the paper's rule the latter

# judgement: on the safe side
_PROVEN = 0.995  # P(safe) of a success that may be repeated when no crash is left: one near its threshold may yet crash
_LIKELY = 0.5  # P(safe), where nothing is left to gain, of a new setting of few, and of a success that is tried again
BESIDE = 0.01  # in every coordinate: a trial so near another tells little
_FIRST = 5  # trials of a bold study before it looks for gain
_TO_A_REPEAT = 10  # costs to each that was a repeat for the noise, at least
_LOOKS_FAR = 3  # trials of which one looks farther: beyond the ends of a front, or away from a winner that is polished
_LOOKED_AT = 16  # points of which a study that looks around takes one


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """The point of largest expected gain per expected price, under the study's risk."""
    models, taken = task.surrogates, task.taken
    gamma = task.safety.averaged if isinstance(task.risk, Paper) else task.safety
    if models.cost is None and not isinstance(task.risk, Price | Budget):
        return _safest(task, gamma, rng)
    if models.cost is None or is_early(task):
        return _look_around(task, gamma, rng)
    improvement, whole = _improvement(task), Box.whole(task.space, task.dead_ends)
    box = whole if _leaps(task) else Box.near(task.space, task.seen.X[task.seen.succeeded], task.dead_ends)
    screened, worth, situation = _screened(task, gamma, improvement, box, rng)
    if box is not whole and is_searched(task.risk, situation):  # here, not everywhere
        screened, worth, situation = _screened(task, gamma, improvement, whole, rng)
    floor, price = floor_of(task.risk, situation), price_of(task.risk, situation)
    if floor >= 1.0 and (again := proven(task)) is not None:
        return Proposal(again.x, float(np.exp(again.log_gamma)))
    if _is_for_a_repeat(task) and (again := _success(task, gamma, max(SURE, floor))) is not None:
        p = float(np.exp(again.log_gamma))
        if p >= max(SURE, floor) - TOLERANCE:
            return Proposal(again.x, p)
    exhausted = not isinstance(task.risk, Paper) and situation.is_exhausted(floor)
    if exhausted and (other := look_elsewhere(task, gamma, improvement, situation, rng)) is not None:
        return Proposal(other.x, float(np.exp(other.log_gamma)))
    if exhausted:
        improvement, worth = doubt.improvement(models, screened, floor, situation.log_noise)
    score = Score(float(np.log(floor)) if floor > 0.0 else -np.inf, price=price)
    utility: Utility = improvement
    if len(task.seen.pending):
        utility = apart = Apart(improvement, task.seen.pending, screened.apart)
        worth = worth + apart.log_share(screened.X)
    found = candidates.best(task.space, screened, utility, gamma, score, taken, worth)
    least = least_of(task.risk, floor)
    if np.exp(found.log_gamma) < least:
        safest = candidates.best(task.space, screened, Flat(), gamma, Score(), taken)
        found = safest if safest.log_gamma > found.log_gamma else found
    if exhausted and _tells_nothing(task, found.x):
        found = _useful_all_the_same(task, gamma, screened, least) or found
    if task.space.size < np.inf:
        found = in_a_finite_space(task, gamma, found, least)
    p = float(np.exp(found.log_gamma))
    return Proposal(found.x, p, admissible=p >= least)


class _Screened(NamedTuple):
    screened: Screen
    worth: Array
    situation: Situation


def _screened(task: Task, gamma: Gamma, improvement: Improvement, box: Box, rng: np.random.Generator) -> _Screened:
    """The candidates in a box that may matter, their worth, and the situation of the study by them."""
    models = task.surrogates
    rough = candidates.screen(task.space, models, gamma.roughly, box, rng=rng)
    ensemble_gamma = gamma if models.ensemble.is_several else None
    kept, worth = candidates.narrowed(rough, improvement(rough.X), ensemble_gamma, len(task.seen.numbers))
    return _Screened(kept, worth, situation_of(task, kept, worth))


def is_searched(risk: Risk, situation: Situation) -> bool:
    """Whether what is left to gain here is not worth a trial, or not a crash."""
    dear = isinstance(risk, Price) and situation.is_dear(situation.within_reach(IMAGINED), risk.crash)
    return dear or situation.is_exhausted(floor_of(risk, situation))


def look_elsewhere(
    task: Task, gamma: Gamma, improvement: Improvement, situation: Situation, rng: np.random.Generator
) -> Found | None:
    """Where nothing is left to gain: a look at what is empty still, if a crash may be risked for it.

    It may if the last one is paid for, if a success there may be expected for the price of the trials so far, and if
    that is worth a trial.
    """
    if not isinstance(task.risk, Price) or not situation.is_paid_for(task.risk.crash):
        return None
    X = _spread(task, rng)
    log_gamma = gamma(X)
    hopeful = (log_gamma >= np.log(situation.hopeful(task.risk.crash))) & (log_gamma < np.log(SURE))
    hopeful &= improvement(X) + log_gamma >= situation.log_worthwhile
    hopeful &= ~is_near(X, task.visited, BESIDE)
    if not hopeful.any():
        return None
    return _emptiest(task, X[hopeful], log_gamma[hopeful])


def _tells_nothing(task: Task, x: Array) -> bool:
    """Whether x lies beside a trial that is under way, or a success that was worse than the best."""
    known = np.vstack([worse_successes(task), task.seen.pending])
    return bool(is_near(x[None], known, BESIDE)[0])


def worse_successes(task: Task) -> Array:
    """The points of successes that were plainly worse than the best."""
    models = task.surrogates
    assert models.cost is not None
    return models.cost.data.X[: models.successes][models.aim.worse]


def proven(task: Task) -> Found | None:
    """What is repeated when no crash is left to risk."""
    return _success(task, task.safety, _PROVEN)


def _useful_all_the_same(task: Task, gamma: Gamma, screened: Screen, least: float) -> Found | None:
    """Where nothing is left to gain: the place farthest from all trials that is safe, or the best again.

    A study with a floor or a budget measures the best again, unless others do so at this moment.
    """
    if not isinstance(task.risk, Price) and not len(task.seen.pending):
        again = _success(task, gamma, max(SURE, least))
        return again if again is not None and np.exp(again.log_gamma) >= least else None
    safe = screened.X[screened.log_gamma >= np.log(max(least, LEAST))]
    if not len(safe):
        return None
    x = safe[int(np.argmax(_gaps(task, safe)))]
    return Found(x, float(gamma(x[None])[0]))


def _leaps(task: Task) -> bool:
    """Where to look: in the whole space, or only just beyond what has succeeded."""
    if isinstance(task.risk, Paper):
        return True
    seen = task.seen
    leapt = reach.leaps(task.space.seen(seen.X), seen.succeeded, task.space.continuous)
    searched, aim = ~np.isnan(task.reported), task.surrogates.aim
    progress = aim.progress(seen.cost, seen.goals)
    return reach.leap_is_due(leapt, seen.crashed, progress, searched, usual_price(task.risk), aim.payment)


def _improvement(task: Task) -> Improvement:
    """The paper's is of the best observation, as if there were no noise."""
    aim = task.surrogates.aim
    if isinstance(task.risk, Paper):
        return aim.observed_improvement
    far = len(task.taken) % _LOOKS_FAR == 0
    return aim.wider_improvement if far else aim.improvement


def is_early(task: Task) -> bool:
    """Whether a study still looks around: in its first trials, and while an option was never tried."""
    return isinstance(task.risk, Price) and (len(task.visited) < _FIRST or task.space.lacks_options(task.visited))


def _look_around(task: Task, gamma: Gamma, rng: np.random.Generator) -> Proposal:
    """The point that opens up the most of the space, by the volume about it that is empty, per expected price."""
    X = _spread(task, rng)
    X = X[~candidates.is_taken(X, task.taken)]
    if not len(X):  # in a space of few settings
        return _safest(task, gamma, rng)
    found = _emptiest(task, X, gamma(X))
    spent = is_spent(task.risk, task.seen.crashed, len(task.seen.pending))
    return Proposal(found.x, float(np.exp(found.log_gamma)), admissible=not spent)


def _spread(task: Task, rng: np.random.Generator) -> Array:
    """A few points all over the space, with options that were never tried while there are such."""
    X = task.space.uniform(spread_points(_LOOKED_AT, task.space.dimension, rng=rng))
    if task.space.lacks_options(task.visited):
        X = task.space.with_rarest_options(X, task.visited)
    return task.dead_ends.clear(X)


def _emptiest(task: Task, X: Array, log_gamma: Array) -> Found:
    """The row of X with the largest empty volume about it, within the space, per expected price."""
    gaps, X_in = np.maximum(_gaps(task, X), SAME)[:, None], np.clip(X, 0.0, 1.0)  # a context may lie beyond
    volumes = np.log(np.minimum(X_in + gaps, 1.0) - np.maximum(X_in - gaps, 0.0)).sum(axis=1)
    i = int(np.argmax(Score(price=usual_price(task.risk))(volumes, log_gamma)))
    return Found(X[i], float(log_gamma[i]))


def _gaps(task: Task, X: Array) -> Array:
    """The distance of each row of X from the nearest trial."""
    gaps: Array = np.min(np.linalg.norm(X[:, None, :] - task.visited[None, :, :], axis=2), axis=1)
    return gaps


def _is_for_a_repeat(task: Task) -> bool:
    """Whether the best is to be measured again: where noise and a rugged cost explain the costs as well, that tells."""
    seen = task.seen
    if not task.surrogates.noise_is_open or isinstance(task.risk, Paper) or len(seen.pending):
        return False
    X = seen.X[seen.costed]
    tried = X if task.voids is None else np.vstack([X, task.voids])
    repeats = len(tried) - len(np.unique(places(tried)))
    return _TO_A_REPEAT * (repeats + 1) <= len(X)


def in_a_finite_space(task: Task, gamma: Gamma, found: Found, least: float) -> Found:
    """What was found, or a success again: where nothing new is left, or nothing safe enough."""
    nothing_new = candidates.is_taken(found.x[None], task.taken)[0]
    if isinstance(task.risk, Price):
        least = min(least, _LIKELY)
    if not nothing_new and np.exp(found.log_gamma) >= least:
        return found
    again = _success(task, gamma, max(least, _LIKELY))
    return again if again is not None and (nothing_new or again.log_gamma > found.log_gamma) else found


def _safest(task: Task, gamma: Gamma, rng: np.random.Generator) -> Proposal:
    """The safest point (paper, after eq. 2); pending trials count as crashes, so that a batch spreads."""
    wary = gamma.with_crashes(task.seen.pending)
    box = Box.whole(task.space, task.dead_ends)
    screened = candidates.screen(task.space, task.surrogates, wary, box, rng=rng)
    found = candidates.best(task.space, screened, Flat(), wary, Score(), task.taken)
    p = float(np.exp(gamma(found.x[None])[0]))
    spent = is_spent(task.risk, task.seen.crashed, len(task.seen.pending))
    return Proposal(found.x, p, admissible=p >= least_of(task.risk, 0.0) and not spent)


def situation_of(task: Task, screened: Screen, worth: Array) -> Situation:
    """What a risk may use, by these candidates."""
    aim = task.surrogates.aim
    return Situation(
        log_value=worth + screened.log_gamma,
        log_gamma=screened.log_gamma,
        log_noise=float(np.log(aim.resolution)),
        reported=task.reported,
        crashed=task.seen.crashed,
        cost=aim.progress(task.seen.cost, task.seen.goals),
        pending=len(task.seen.pending),
        trials_left=task.trials_left,
        gained=aim.gained,
        stopped=task.seen.stopped,
    )


def _success(task: Task, gamma: Gamma, least: float) -> Found | None:
    """The best success with this P(safe), else the safest, to be measured again.

    None if a changed space has none, or only in dead ends.
    """
    X = task.space.here(task.seen.X[task.seen.succeeded])
    X = X[(np.abs(task.space.snap(X) - X).max(axis=1) < SLACK) & ~task.dead_ends.hold(X)]
    if not len(X):
        return None
    log_gamma, price = gamma(X), task.surrogates.aim.price(X)
    safe_enough = log_gamma >= min(np.log(least), float(log_gamma.max()))
    i = int(np.argmin(np.where(safe_enough, price, np.inf)))
    return Found(X[i], float(log_gamma[i]))


def least_of(risk: Risk, floor: float) -> float:
    """P(safe) at which a point is still admissible."""
    return floor - TOLERANCE if not isinstance(risk, MinSafe) else max(risk.p - TOLERANCE, LEAST)
