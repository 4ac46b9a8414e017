"""EIC^2: expected improvement with crash constraints (paper, section III), under a risk.

May import search and below.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crashbo.search import candidates, doubt
from crashbo.search.acquisition import Flat, LogEI, LogGamma
from crashbo.search.candidates import Box, Found, Screen
from crashbo.search.risk import TOLERANCE, Budget, MinSafe, Paper, Risk, Score, Situation, floor_of, is_bold
from crashbo.search.safety import Safety
from crashbo.search.space import SLACK
from crashbo.strategies.base import Proposal, Task

Array = NDArray[np.float64]
Gamma = Safety | LogGamma  # of the paper's rule the latter

# judgement: on the safe side
_PROVEN = 0.995  # P(safe) of a success that may be repeated when no crash is left: one near its threshold may yet crash
_LIKELY = 0.5  # P(safe) of a success that is tried again where nothing new is left
_LEAST = 1e-9  # P(safe) in place of a floor of zero or less


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """The point that maximises log EI + log Gamma under the study's risk."""
    models = task.surrogates
    gamma = task.safety.averaged if isinstance(task.risk, Paper) else task.safety
    taken = task.taken
    if models.cost is None:
        return _look_for_a_success(task, gamma, taken, rng)
    tried, trials = task.seen.X[task.seen.succeeded], len(task.seen.numbers)
    whole = Box.whole(task.space, task.dead_ends)
    box = whole if isinstance(task.risk, Paper) else Box.early(task.space, tried, trials, task.dead_ends)
    improvement = LogEI(models.cost, _paper_eta(task) if isinstance(task.risk, Paper) else models.eta)
    rough = candidates.screen(task.space, models, replace(gamma, ensemble=models.ensemble.middle), box, rng=rng)
    ensemble_gamma = gamma if models.ensemble.is_several else None
    screened, worth = candidates.narrowed(rough, improvement(rough.X), ensemble_gamma, trials)
    situation = _situation(task, screened, worth)
    floor = floor_of(task.risk, situation)
    if floor >= 1.0 and (proven := _success(task, gamma, _PROVEN)) is not None:
        return Proposal(proven.x, float(np.exp(proven.log_gamma)))
    if not isinstance(task.risk, Paper) and situation.is_exhausted(floor):
        improvement, worth = doubt.improvement(models, screened, floor, situation.log_noise)
    score = Score(float(np.log(floor)) if floor > 0.0 else -np.inf)
    found = candidates.best(task.space, screened, improvement, gamma, score, taken, worth)
    least = _least(task.risk, floor)
    if np.exp(found.log_gamma) < least:
        safest = candidates.best(task.space, screened, Flat(), gamma, Score(), taken)
        found = safest if safest.log_gamma > found.log_gamma else found
    if task.space.size < np.inf:
        found = _in_a_finite_space(task, gamma, found, least)
    p = float(np.exp(found.log_gamma))
    return Proposal(found.x, p, admissible=p >= least)


def _in_a_finite_space(task: Task, gamma: Gamma, found: Found, least: float) -> Found:
    """What was found, or a success again: where nothing new is left, or nothing that a user's floor allows."""
    nothing_new = candidates.is_taken(found.x[None], task.taken)[0]
    if not nothing_new and (is_bold(task.risk) or np.exp(found.log_gamma) >= least):
        return found
    again = _success(task, gamma, max(least, _LIKELY))
    return again if again is not None and (nothing_new or again.log_gamma > found.log_gamma) else found


def _look_for_a_success(task: Task, gamma: Gamma, taken: Array, rng: np.random.Generator) -> Proposal:
    """The safest point (paper, after eq. 2); pending trials count as crashes, so that a batch spreads."""
    wary = gamma.with_crashes(task.seen.pending)
    box = Box.whole(task.space, task.dead_ends)
    screened = candidates.screen(task.space, task.surrogates, wary, box, rng=rng)
    found = candidates.best(task.space, screened, Flat(), wary, Score(), taken)
    p = float(np.exp(gamma(found.x[None])[0]))
    spent = isinstance(task.risk, Budget) and task.risk.left(task.seen.crashed, len(task.seen.pending)) <= 0
    least = _least(task.risk, 0.0)
    return Proposal(found.x, p, admissible=p >= least and not spent)


def _situation(task: Task, screened: Screen, worth: Array) -> Situation:
    return Situation(
        log_value=worth + screened.log_gamma,
        log_gamma=screened.log_gamma,
        log_noise=float(np.log(task.surrogates.resolution)),
        reported=task.reported,
        crashed=task.seen.crashed,
        cost=task.seen.cost,
        pending=len(task.seen.pending),
        trials_left=task.trials_left,
        is_ambiguous=bool(task.surrogates.crash.data.joint.any()),
    )


def _success(task: Task, gamma: Gamma, least: float) -> Found | None:
    """The best success with this P(safe), else the safest, to be measured again.

    None if a changed space has none, or only in dead ends.
    """
    models = task.surrogates
    assert models.cost is not None
    X = task.seen.X[task.seen.succeeded]
    X = X[(np.abs(task.space.snap(X) - X).max(axis=1) < SLACK) & ~task.dead_ends.hold(X)]
    if not len(X):
        return None
    log_gamma, (mean, _) = gamma(X), models.cost.predict(0, X)
    safe_enough = log_gamma >= min(np.log(least), float(log_gamma.max()))
    i = int(np.argmin(np.where(safe_enough, mean, np.inf)))
    return Found(X[i], float(log_gamma[i]))


def _least(risk: Risk, floor: float) -> float:
    """P(safe) at which a point is still admissible."""
    return floor - TOLERANCE if not isinstance(risk, MinSafe) else max(risk.p - TOLERANCE, _LEAST)


def _paper_eta(task: Task) -> float:
    """The best observation so far, on the scale that the cost model sees."""
    assert task.surrogates.cost is not None
    return float(task.surrogates.cost.data.Y[0, : task.surrogates.successes].min())
