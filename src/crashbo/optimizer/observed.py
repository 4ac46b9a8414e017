"""A study's trials as models and strategies see them: in the unit cube, costs minimised, constraints that crash above.

May import strategies and below.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crashbo.optimizer.comparing import arrays
from crashbo.optimizer.records import Comparison, Constraint, Trial, Unmeasured
from crashbo.optimizer.study import Study
from crashbo.search.calibration import Calibration
from crashbo.search.dead_ends import NOWHERE, DeadEnds
from crashbo.search.observations import Observations
from crashbo.search.risk import length_of
from crashbo.search.space import Space
from crashbo.search.surrogates import Memory, Surrogates
from crashbo.search.trip_levels import tilts
from crashbo.strategies.base import Task

Array = NDArray[np.float64]

_LARGEST, _SMALLEST = 1e150, 1e-150  # derived: of numbers whose squares, and sums of many, neither overflow nor vanish


def observations(
    study: Study,
    trials: Iterable[Trial],
    encoded: Callable[[Trial], Array] | None = None,
    comparisons: Iterable[Comparison] = (),
) -> Observations:
    """What is known of the trials that were told, in order of number, and where others are under way.

    `encoded` gives a trial's point, where somebody keeps them.
    """
    at = encoded or (lambda trial: study.space.encode(trial.ran))
    ordered = sorted(trials, key=lambda t: t.number)
    told = [t for t in ordered if t.counts]
    pending = [t for t in ordered if t.state == "pending"]
    constraints, names = study.constraints, study.names
    size, nan, sign = (len(told), len(names)), math.nan, study.sign
    states = np.array([t.state for t in told], dtype=object)
    Y = np.array([[c.sign * t.measured.get(c.name, nan) for c in constraints] for t in told], dtype=float)
    # Most studies have none of these.
    cut, reached, rises = np.zeros(size, dtype=bool), None, None
    if any(c.censored for c in constraints) or any(t.censored or t.state == "stopped" for t in told):
        cut = np.array([[_is_cut(t, c) for c in constraints] for t in told], dtype=bool).reshape(size)
    if any(t.reached for t in told):
        reached = np.array([[c.sign * t.reached.get(c.name, nan) for c in constraints] for t in told], dtype=float)
    if any(t.rises for t in told):
        rises = np.array([[t.rises.get(c.name, nan) for c in constraints] for t in told], dtype=float)
    seen = Observations(
        numbers=tuple(t.number for t in told),
        X=np.array([at(t) for t in told]).reshape(len(told), study.space.dimension),
        cost=_in_range(np.array([_number(t, sign) for t in told], dtype=float)),
        Y=_in_range(Y.reshape(size)),
        succeeded=np.asarray(states == "success", dtype=bool),
        crashed=np.asarray(states == "crash", dtype=bool),
        blame=[([names.index(name) for name in t.blame if name in names] or None) if t.blame else None for t in told],
        censored=cut,
        reached=None if reached is None or np.isnan(reached).all() else _in_range(reached.reshape(size)),
        rises=None if rises is None or np.isnan(rises).all() else _in_range(rises.reshape(size)),
        stops_at=study.guard,
        kernel=study.kernel,
        tied=study.space.tied,
        pending=np.array([at(t) for t in pending]).reshape(-1, study.space.dimension),
        cost_noise_std=study.noise.get("cost"),
        goals=_in_range(goals_of(study, told)) if study.objectives else None,
        goal_noise_std=tuple(study.noise.get(name) for name in study.objectives),
        reference=study.signs * [study.reference[name] for name in study.objectives] if study.reference else None,
        noise_std=tuple(c.noise for c in constraints),
        thresholds=tuple(c.given for c in constraints),
        comparisons=arrays(comparisons, [t.number for t in told], (t.number for t in told if t.state == "success")),
    )
    return _levelled(study, seen)


def _levelled(study: Study, seen: Observations) -> Observations:
    """Readings less what their threshold rises with the context, where it is learnt and the only one."""
    contexts = tuple(study.space.at(name).start for name in study.space.contexts)
    if not contexts or seen.thresholds != (None,) or not isinstance(study.constraints[0], Constraint):
        return seen
    found = tilts(seen.X, seen.Y[:, 0], seen.crashed, contexts)
    if not found:
        return seen
    by = replace(seen, tilts=found).risen(seen.X)
    reached = None if seen.reached is None else seen.reached - by
    return replace(seen, tilts=found, Y=seen.Y - by, reached=reached)


def goals_of(study: Study, trials: Sequence[Trial]) -> Array:
    """What trials say of every goal, (n, M), all minimised; NaN where nothing is known."""
    costs = [t.cost if isinstance(t.cost, Mapping) else {} for t in trials]
    values = [[cost.get(name, np.nan) for name in study.objectives] for cost in costs]
    return np.asarray(study.signs * np.array(values, dtype=float).reshape(len(trials), len(study.objectives)))


def _is_cut(trial: Trial, constraint: Constraint | Unmeasured) -> bool:
    """Whether what a trial measured of a constraint is only a lower bound."""
    return (
        trial.state == "stopped"
        or constraint.name in trial.censored
        or (constraint.censored and trial.state == "crash")
    )


def _number(trial: Trial, sign: float) -> float:
    return sign * trial.cost if isinstance(trial.cost, float | int) else np.nan


def _in_range(values: Array) -> Array:
    """Values whose squares are numbers, for the models: what is larger counts as huge, what is smaller as zero."""
    return np.where(np.abs(values) < _SMALLEST, 0.0, np.clip(values, -_LARGEST, _LARGEST))


def task(
    study: Study,
    trials: Mapping[int, Trial],
    seen: Observations,
    memory: Memory | None,
    fitted: Surrogates | None,
    space: Space | None = None,
) -> Task:
    """What a strategy is asked: the next point after these trials, of which `seen` are the observations.

    `space` is the study's, in the context that is given.
    """
    space = space or study.space
    told = [trials[number] for number in seen.numbers]
    length = length_of(study.risk)
    voids = [space.encode(t.params) for t in trials.values() if t.state == "void"]
    left = None if length is None else max(length - sum(t.state != "void" for t in trials.values()), 0)
    return Task(
        space=space,
        seen=seen,
        risk=study.risk,
        memory=memory,
        predicted=_proposed(told, lambda t: t.p_model),
        reported=_proposed(told, lambda t: t.p_safe),
        trials_left=left,
        fitted=fitted,
        sign=study.sign,
        posterior=study.posterior,
        dead_ends=DeadEnds.of(space, np.array(voids), seen.X) if voids else NOWHERE,
        voids=np.array(voids) if voids else None,
    )


def calibration(trials: Iterable[Trial], since: int = 0) -> Calibration:
    """The correction of P(safe) by those of these trials that were asked `since` a number."""
    told = sorted((t for t in trials if t.counts), key=lambda t: t.number)
    failed = np.array([t.state != "success" for t in told], dtype=bool)
    return Calibration.of(_proposed(told, lambda t: t.p_model if t.number >= since else None), failed)


def _proposed(told: Sequence[Trial], number: Callable[[Trial], float | None]) -> Array:
    """A number of each trial that the search proposed, NaN for others."""
    return np.array([number(t) if t.origin == "search" else None for t in told], dtype=float)
