"""EIC^2: expected improvement with crash constraints (paper, section III), under an appetite for risk.

May import search and below.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crashbo.search import candidates, doubt
from crashbo.search.acquisition import Flat, LogEI, LogGamma
from crashbo.search.candidates import Box, Screen
from crashbo.search.risk import MinSafe, Paper, Risk, Score, Situation
from crashbo.search.trust import Trust
from crashbo.strategies.base import Proposal, Task

Array = NDArray[np.float64]

_PROVEN = 0.995  # P(safe) of a success that may be repeated when no crash is left: one near its threshold may yet crash
_TOLERANCE = 0.01  # by which a point may fall short of the floor's P(safe) and still be admissible


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """The point that maximises log EI + log Gamma under the study's risk."""
    models = task.surrogates
    gamma = models.unwary_log_gamma if isinstance(task.risk, Paper) else models.log_gamma
    taken = task.taken
    if models.cost is None:
        return _look_for_a_success(task, gamma, taken, rng)
    tried, trials = task.seen.X[task.seen.succeeded], len(task.seen.numbers)
    box = None if isinstance(task.risk, Paper) else Box.early(task.space, tried, trials)
    improvement = LogEI(models.cost, _paper_eta(task) if isinstance(task.risk, Paper) else models.eta)
    rough = candidates.screen(task.space, models, replace(gamma, crowd=models.crowd.middle), box, rng=rng)
    screened, worth = candidates.narrowed(rough, improvement(rough.X), gamma if models.crowd.is_several else None)
    situation = _situation(task, screened, worth)
    floor = task.risk.floor(situation)
    if floor >= 1.0:
        return _repeat(task, gamma)
    if not isinstance(task.risk, Paper) and situation.is_exhausted(floor):
        improvement, worth = doubt.improvement(models, screened, floor, situation.log_noise)
    score = Score(float(np.log(floor)) if floor > 0.0 else -np.inf)
    found = candidates.best(task.space, screened, improvement, gamma, score, taken, worth)
    least = _least(task.risk, floor, task.trust)
    if np.exp(found.log_gamma) < least:
        safest = candidates.best(task.space, screened, Flat(), gamma, Score(), taken)
        found = safest if safest.log_gamma > found.log_gamma else found
    p = float(np.exp(found.log_gamma))
    return Proposal(found.x, p, admissible=p >= least)


def _look_for_a_success(task: Task, gamma: LogGamma, taken: Array, rng: np.random.Generator) -> Proposal:
    """The safest point (paper, after eq. 2), where pending trials count as crashes, so that a batch spreads."""
    wary = gamma.with_crashes(task.seen.pending)
    screened = candidates.screen(task.space, task.surrogates, wary, rng=rng)
    found = candidates.best(task.space, screened, Flat(), wary, Score(), taken)
    p = float(np.exp(gamma(found.x[None])[0]))
    least = _least(task.risk, 0.0, task.trust)
    return Proposal(found.x, p, admissible=p >= least)


def _situation(task: Task, screened: Screen, worth: Array) -> Situation:
    return Situation(
        log_value=worth + screened.log_gamma,
        log_gamma=screened.log_gamma,
        log_noise=float(np.log(task.surrogates.resolution)),
        trust=task.trust,
        reported=task.reported,
        crashed=task.seen.crashed,
        cost=task.seen.cost,
        pending=len(task.seen.pending),
        trials_left=task.trials_left,
        is_ambiguous=bool(task.surrogates.crash.data.joint.any()),
    )


def _repeat(task: Task, gamma: LogGamma) -> Proposal:
    """The proven setting to measure again: the best success among those that the model trusts."""
    models = task.surrogates
    assert models.cost is not None
    X = task.seen.X[task.seen.succeeded]
    log_gamma, (mean, _) = gamma(X), models.cost.predict(0, X)
    trusted = log_gamma >= min(np.log(_PROVEN), float(log_gamma.max()))
    i = int(np.argmin(np.where(trusted, mean, np.inf)))
    return Proposal(X[i], float(np.exp(log_gamma[i])))


def _least(risk: Risk, floor: float, trust: Trust) -> float:
    """The model's P(safe) at which a point is still admissible: what is promised to a user is promised as reported."""
    return floor - _TOLERANCE if not isinstance(risk, MinSafe) else trust.needed(max(risk.p - _TOLERANCE, 1e-9))


def _paper_eta(task: Task) -> float:
    """The best observation so far, on the scale that the cost model sees."""
    assert task.surrogates.cost is not None
    return float(task.surrogates.cost.data.Y[0, : task.surrogates.successes].min())
