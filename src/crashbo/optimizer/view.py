"""What one may ask about a study once its models are fitted: P(safe), predictions, thresholds, blame, what to choose.

May import strategies and below.

A `View` is the study at one moment. `Optimizer`, `Result`, pages, reports and dashboards all look through it; params
in and out are those of the study's own space.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from crashbo.numerics.hypervolume import hypervolume, on_front
from crashbo.optimizer.comparing import Ranked, Worth, ranking, winner
from crashbo.optimizer.guard import Guard
from crashbo.optimizer.objectives import check_reference, reference_of, weights_of
from crashbo.optimizer.observed import calibration, goals_of, observations
from crashbo.optimizer.records import Comparison, Constraint, Trial
from crashbo.optimizer.study import Study, best_of, checked
from crashbo.optimizer.threshold import Threshold
from crashbo.search import candidates, recommend
from crashbo.search.causes import Causes, causes
from crashbo.search.fitting import fit_surrogates
from crashbo.search.front import Front
from crashbo.search.limits import ceilings, limits
from crashbo.search.observations import Observations
from crashbo.search.preferences import Compared
from crashbo.search.risk import TOLERANCE, Paper, Situation, floor_of, length_of
from crashbo.search.safety import Safety
from crashbo.search.space import Params, Space, is_number
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Recommendation:
    """Where the expected cost is least among points that are safe enough (eq. 3); of several goals, a compromise."""

    params: dict[str, Any]
    cost: Any  # expected: a number; of several goals, each by its name
    p_safe: float
    admissible: bool = True  # whether that is what was asked for


@dataclass(frozen=True)
class Prediction:
    """What the models expect of m points, in the user's units: means and standard deviations of the latent functions.

    Costs far above the rest are drawn in, as the cost's model sees them.
    """

    cost: Any  # a pair of both; of several goals, one by each name; None before a success
    measured: dict[str, tuple[Array, Array]]  # by constraint
    p_safe: Array


def winner_of(study: Study, trials: Sequence[Trial], comparisons: Sequence[Comparison]) -> Trial | None:
    """The best of trials that were compared, as `View.best`, by the cost's model alone: fast, and fitted anew."""
    seen = observations(study, trials, comparisons=comparisons)
    numbers, worth = [n for n, judged in zip(seen.numbers, seen.judged, strict=True) if judged], np.zeros(0)
    if seen.comparisons:
        hidden = Compared.of(seen.X, seen.cost, seen.comparisons)
        cost = hidden.fit(seen.cost_noise_std, seen.cost_prior).posterior
        worth = cost.mean_at_trials(0)
    else:
        worth = seen.cost[seen.judged]
    found = winner([t.number for t in trials if t.state == "success"], numbers, worth)
    return next((t for t in trials if t.number == found), None)


def _limit(constraint: Constraint, p: float) -> float:
    """A guard's limit before any trial was told: of an interval, the level that the threshold is below by p."""
    given = constraint.given
    low, high = given if isinstance(given, tuple) else (math.inf, math.inf) if given is None else (given, given)
    return constraint.sign * (low + p * (high - low) if high > low else high)


@dataclass(frozen=True)
class View:
    """A study as its models see it."""

    study: Study
    trials: tuple[Trial, ...]
    models: Surrogates | None  # None before a trial was told
    context: Params | None = None  # in which it is looked at; None is that of the last trial
    comparisons: tuple[Comparison, ...] = ()

    def at(self, context: Params | None) -> "View":
        """The same in a context."""
        if context is None:
            return self
        return replace(self, context=dict(self.study.space.in_context(context).fixed))

    @cached_property
    def space(self) -> Space:
        """The study's, in the context."""
        space = self.study.space
        given = self.context or (self.trials[-1].ran if self.trials else None)
        return space if given is None else space.in_context({name: given[name] for name in space.contexts} or None)

    @staticmethod
    def of(study: Study, trials: Sequence[Trial], comparisons: Sequence[Comparison] = ()) -> "View":
        """The study of these trials, its models fitted from scratch."""
        seen = observations(study, trials, comparisons=comparisons)
        doubtful = not isinstance(study.risk, Paper)
        models = fit_surrogates(seen, posterior=study.posterior, doubtful=doubtful) if seen.numbers else None
        return View(study, tuple(trials), models, comparisons=tuple(comparisons))

    @cached_property
    def safety(self) -> Safety | None:
        """The study's P(safe), with its stages, in the unit cube; None before a trial was told."""
        if self.models is None or self.seen is None:
            return None
        return self.models.safety(calibration(self.trials, self.models.since), ceilings(self.seen, self.models))

    @cached_property
    def seen(self) -> Observations | None:
        """The data of the trials; None before one was told."""
        return None if self.models is None else observations(self.study, self.trials, comparisons=self.comparisons)

    @cached_property
    def best(self) -> Trial | None:
        """The success with the best observed cost; where trials were compared, the one of best expected worth."""
        if not (self.study.compared or self.comparisons):
            return best_of(self.trials, self.study.direction)
        successes = [t.number for t in self.trials if t.state == "success"]
        found = winner(successes, *self._judged[:2])
        return next((t for t in self.trials if t.number == found), None)

    def ranking(self) -> list[Ranked]:
        """The trials that were compared or have a cost, the best first, and who beat whom."""
        numbers, mean, std = self._judged
        found = ranking(numbers, mean, std, self.comparisons)
        return [replace(r, mean=self.study.sign * r.mean) for r in found]

    @cached_property
    def _judged(self) -> tuple[list[int], Array, Array]:
        """The trials that were compared or have a cost, with mean and spread of it, minimised."""
        if self.models is None or self.models.cost is None or self.seen is None:
            return [], np.zeros(0), np.zeros(0)
        mean, var = self.models.cost.predict(0, self.seen.X[self.seen.judged])
        numbers = np.array(self.seen.numbers)[self.seen.judged]
        return [int(n) for n in numbers], mean, np.sqrt(var)

    @overload
    def worth(self, params: Params) -> Worth: ...
    @overload
    def worth(self, params: Sequence[Params]) -> Worth: ...
    def worth(self, params: Params | Sequence[Params]) -> Worth:
        """Mean and standard deviation of the hidden cost at params; a list gives arrays. NaN before any is known.

        Lower is better, unless the study maximises. The scale is that of the costs that were told; where there are
        none it is a convention: over the space the hidden cost spreads by about one.
        """
        if isinstance(params, Mapping):
            return Worth(*(float(value[0]) for value in self.worth([params])))
        X = self._points(params)
        if self.models is None or self.models.cost is None:
            return Worth(np.full(len(X), np.nan), np.full(len(X), np.nan))
        mean, var = self.models.cost.predict(0, X)
        return Worth(self.study.sign * mean, np.sqrt(var))

    @cached_property
    def risen(self) -> float:
        """By how much the only threshold lies higher in this context than the models have it."""
        met = dict(self.space.met)
        return 0.0 if self.seen is None else sum(tilt.slope * met[tilt.at] for tilt in self.seen.tilts)

    @property
    def risen_std(self) -> float:
        """Standard deviation of that, beside the threshold's own."""
        met = dict(self.space.met)
        gaps = [] if self.seen is None else [tilt.std * (met[tilt.at] - tilt.middle) for tilt in self.seen.tilts]
        return math.hypot(*gaps)

    @cached_property
    def causes(self) -> Causes | None:
        """What the constraints had to do with the crashes; None before a trial was told."""
        return None if self.models is None else causes(self.models)

    @cached_property
    def thresholds(self) -> dict[str, Threshold]:
        """The crash threshold of every measured constraint."""
        constraints = enumerate(self.study.constraints)
        return {c.name: Threshold(self, c, j) for j, c in constraints if isinstance(c, Constraint)}

    def limits(self, p: float | None = None, params: Params | None = None) -> dict[str, float]:
        """For each measured constraint the reading at which to stop a trial, at params or at any; else infinite.

        It would else crash with probability p or more, by default the study's own (`guard`). Before the first crash
        nothing is known of a threshold that was not given: crashes teach.
        """
        x = None if params is None else self._points([params])[0]
        level = self.study.guard if p is None else checked({"guard": p})["guard"]
        found = None if self.models is None or self.seen is None else limits(self.seen, self.models, level, x)
        if found is not None and self.seen is not None:
            found = found + (self.risen if x is None else float(self.seen.risen(x[None])[0, 0]))
        return {
            c.name: _limit(c, level) if found is None else c.sign * float(found[j])
            for j, c in enumerate(self.study.constraints)
            if isinstance(c, Constraint)
        }

    def guard(self, p: float | None = None, params: Params | None = None) -> Guard:
        """What stops a trial while it runs, at these limits."""
        return Guard(self.limits(p, params), {c.name: c.side for c in self.study.measured})

    def recommend(self, delta: float = 0.1, weights: Mapping[str, float] | None = None) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta (eq. 3); None before a success.

        Of several goals it is the point whose worst goal is best: every goal counts from the best on the front, 0, to
        the worst, 1, times its weight; one that is left out has none.
        """
        if not is_number(delta) or not 0.0 <= delta <= 1.0:
            raise ValueError(f"delta must lie in [0, 1]; got {delta!r}. 0.1 asks for P(safe) of 0.9.")
        several = weights is not None or self.study.objectives
        wanted = np.array(weights_of(weights, self.study.objectives)) if several else None
        if self.models is None or self.models.cost is None or self.safety is None:
            return None
        rng = np.random.default_rng(0)
        x, means, p = recommend.best_point(self.models, self.safety, self.space, delta, rng, wanted)
        admissible = p >= 1.0 - delta - min(TOLERANCE, 0.1 * delta)
        cost = self._named(means) if several else self.study.sign * float(means[0])
        met = {name: self.space.fixed[name] for name in self.space.contexts}
        return Recommendation({**self.space.decode(x), **met}, cost, p, admissible)

    @cached_property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other beats in all goals, in order; those of which a goal is not known do not count.

        Goals with noise go by their posterior means at the trials, so that luck does not count, others as told.
        """
        trials, values = self._compared
        order = np.flatnonzero(on_front(values)) if len(trials) else ()
        return tuple(trials[i] for i in order)

    @cached_property
    def reference(self) -> dict[str, float] | None:
        """The reference point of several goals: the study's own, else found from the trials; None before a success."""
        if self.study.reference:
            return dict(self.study.reference)
        aim = None if self.models is None or self.models.cost is None else self.models.aim
        return self._named(aim.reference) if isinstance(aim, Front) else None

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """The volume of what the front beats, up to a reference point, in the units of the goals."""
        self._need_goals("hypervolume")
        if reference is not None:
            check_reference(reference_of(reference), self.study.objectives)
        at = self.reference if reference is None else reference
        if at is None:
            return 0.0
        worst = self.study.signs * [float(at[name]) for name in self.study.objectives]
        return hypervolume(self._compared[1], worst)

    @cached_property
    def _compared(self) -> tuple[list[Trial], Array]:
        """The successes of which every goal is known, and their goals, (n, M), all minimised."""
        self._need_goals("front")
        told = [t for t in self.trials if t.state == "success" and isinstance(t.cost, Mapping)]
        values = goals_of(self.study, told)
        whole = np.asarray(~np.isnan(values).any(axis=1))
        aim = None if self.models is None or self.models.cost is None else self.models.aim
        if isinstance(aim, Front):
            X = np.array([self.study.space.encode(t.ran) for t in told]).reshape(len(told), -1)
            means = np.column_stack([aim.cost.predict(j, X)[0] for j in range(len(aim.cost.hypers))])
            given = tuple(self.study.noise.get(name) for name in self.study.objectives)
            doubtful = self.models is not None and self.models.noise_is_open  # then nobody knows that there is any
            noisy = aim.is_noisy(tuple(0.0 if std is None and doubtful else std for std in given))
            values = np.where(noisy, means, values)
        return [t for t, known in zip(told, whole, strict=True) if known], values[whole]

    def _need_goals(self, what: str) -> None:
        if not self.study.objectives:
            raise ValueError(f"{what} must be asked of a study with objectives; this has one cost. See `best`.")

    def _named(self, goals: Array) -> dict[str, float]:
        """Goals in the user's directions, by name."""
        return dict(zip(self.study.objectives, (self.study.signs * goals).tolist(), strict=True))

    @overload
    def p_safe(self, params: Params) -> float: ...
    @overload
    def p_safe(self, params: Sequence[Params]) -> Array: ...
    def p_safe(self, params: Params | Sequence[Params]) -> float | Array:
        """Probability that a trial at params succeeds; a list gives an array. NaN before any trial was told."""
        if isinstance(params, Mapping):
            return float(self.p_safe([params])[0])
        X = self._points(params)
        return np.full(len(X), np.nan) if self.safety is None else np.asarray(np.exp(self.safety(X)))

    def predict(self, params: Sequence[Params]) -> Prediction | None:
        """Cost, constraints and P(safe) at params; None before any trial was told."""
        models, safety, X = self.models, self.safety, self._points(params)
        if models is None or safety is None:
            return None
        measured = {}
        for j, c in enumerate(self.study.constraints):
            if isinstance(c, Constraint):
                mean, var = models.measured.predict(j, X)
                risen = 0.0 if self.seen is None else self.seen.risen(X)[:, 0]
                measured[c.name] = c.sign * (mean + risen), np.sqrt(var)
        return Prediction(self._expected(models, X), measured, np.exp(safety(X)))

    def _expected(self, models: Surrogates, X: Array) -> Any:
        """Mean and standard deviation of the cost, or of every goal by name."""
        if models.cost is None:
            return None
        signs = self.study.signs if self.study.objectives else [self.study.sign]
        pairs = [models.cost.predict(j, X) for j in range(len(signs))]
        found = [(sign * mean, np.sqrt(var)) for sign, (mean, var) in zip(signs, pairs, strict=True)]
        return dict(zip(self.study.objectives, found, strict=True)) if self.study.objectives else found[0]

    @overload
    def p_violated(self, params: Params) -> dict[str, float]: ...
    @overload
    def p_violated(self, params: Sequence[Params]) -> dict[str, Array]: ...
    def p_violated(self, params: Params | Sequence[Params]) -> dict[str, float] | dict[str, Array]:
        """Probability that a trial at params would violate each constraint; a list gives arrays. NaN before any."""
        if isinstance(params, Mapping):
            return {name: float(p[0]) for name, p in self.p_violated([params]).items()}
        X = self._points(params)
        unknown = np.full((len(X), len(self.study.constraints)), np.nan)
        p = unknown if self.safety is None else self.safety.violated(X)
        return dict(zip(self.study.names, p.T, strict=True))

    def blame(self, trial: Trial | int) -> dict[str, float]:
        """Probability that each constraint was violated in a trial that crashed; they need not sum to one.

        What is missing of one, where there is a single constraint, is that of a cause that nobody measures.
        """
        blames = self.blames()
        number = trial if isinstance(trial, int) else trial.number
        if number not in blames:
            raise ValueError(f"trial must be one that crashed; got {trial!r}. See `trials` for their states.")
        return blames[number]

    def blames(self) -> dict[int, dict[str, float]]:
        """The blame of every trial that crashed, by its number."""
        if self.causes is None or self.seen is None:
            return {}
        crashes, rows = sorted(t.number for t in self.trials if t.state == "crash"), self.causes.blame_in(self.seen)
        return {
            number: dict(zip(self.study.names, row, strict=True))
            for number, row in zip(crashes, rows.tolist(), strict=True)
        }

    def table(self) -> list[dict[str, Any]]:
        """Every trial as a row of plain values, in order; `blame` as inferred (told ones are certain), for crashes."""
        blames = self.blames()
        return [{**asdict(t), "blame": blames.get(t.number, {}), "as_run": t.ran} for t in self.trials]

    def gain_left(self) -> float | None:
        """What the next trial may be expected to gain, in units of the cost's noise; None before a success.

        Of several goals the unit is the volume that one point of the front gains by moving as far as the noise. What
        the study's risk would not try does not count.
        """
        models, safety = self.models, self.safety
        if models is None or models.cost is None or safety is None:
            return None
        models = models.in_context(self.space.met)
        screened = candidates.screen(self.space, models, safety, rng=np.random.default_rng(0))
        seen, length = observations(self.study, self.trials, comparisons=self.comparisons), length_of(self.study.risk)
        aim = models.aim
        situation = Situation(
            log_value=aim.improvement(screened.X) + screened.log_gamma,
            log_gamma=screened.log_gamma,
            log_noise=float(np.log(aim.resolution)),
            reported=np.full(len(seen.crashed), np.nan),
            crashed=seen.crashed,
            cost=aim.progress(seen.cost, seen.goals),
            pending=0,
            trials_left=None if length is None else max(length - len(seen.crashed), 0),
            gained=aim.gained,
            stopped=seen.stopped,
        )
        floor = floor_of(self.study.risk, situation)
        return float(np.exp(situation.log_gain(floor) - situation.log_noise))

    def _points(self, params: Sequence[Params]) -> Array:
        """Params in the unit cube, one row each."""
        space, fixed = self.study.space, self.space.fixed
        met = {name: fixed[name] for name in space.contexts if name in fixed}
        points = [space.encode(space.check({**met, **p} if met else p, steps=False)) for p in params]
        return np.array(points).reshape(len(params), space.dimension)
