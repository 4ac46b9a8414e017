"""The Optimizer: ask for the next trial, tell what came of it. The only mutable state of a study.

May import strategies and below.
"""

import copy
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from crashbo import strategies
from crashbo.optimizer import saving
from crashbo.optimizer.records import (
    AnyConstraint,
    Censored,
    Constraint,
    Crash,
    Trial,
    Unmeasured,
    censored_of,
    constraints_of,
    is_number,
)
from crashbo.search import candidates, recommend
from crashbo.search.acquisition import LogEI
from crashbo.search.design import Design
from crashbo.search.risk import Risk, is_bold, risk_of
from crashbo.search.space import Space
from crashbo.search.surrogates import Memory, Observations, PosteriorOver, Surrogates, check_posterior
from crashbo.strategies.base import Strategy, Task

Array = NDArray[np.float64]
_DESIGN_TRIES = 100
Params = Mapping[str, Any]
Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True)
class Recommendation:
    """Where the expected cost is least among points that are safe enough (eq. 3)."""

    params: dict[str, Any]
    cost: float  # expected
    p_safe: float


@dataclass(frozen=True)
class Prediction:
    """What the models expect of m points, in the user's units: means and standard deviations of the latent functions.

    Costs far above the rest are drawn in, as the cost's model sees them.
    """

    cost: tuple[Array, Array] | None  # None before a success
    measured: dict[str, tuple[Array, Array]]  # by constraint
    p_safe: Array


class Queued(NamedTuple):
    """A setting that will be asked before the search is."""

    origin: str
    params: dict[str, Any]
    repeats: int | None = None


class Threshold:
    """A constraint's crash threshold; its interval is computed when it is first looked at."""

    def __init__(self, surrogates: Surrogates | None, constraint: AnyConstraint, j: int) -> None:
        self._surrogates, self._constraint, self._j = surrogates, constraint, j
        known = constraint.threshold
        self.learned = not is_number(known)
        if surrogates is None:
            self.value = float(known) if is_number(known) else None  # type: ignore[arg-type]
        else:
            learnt = surrogates.crash_model.thresholds[j] is not None
            self.value = constraint.sign * surrogates.threshold(j) if learnt else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """An interval that holds the threshold with 90 % probability."""
        if self._surrogates is None:
            known = self._constraint.threshold
            return None if known is None else (known if isinstance(known, tuple) else (float(known), float(known)))
        found = self._surrogates.crash_model.threshold_interval(self._j)
        if found is None or self.value is None:
            return None
        # The value is a quantile with all else held, the interval is not: keep the one within the other.
        ends = *(self._constraint.sign * end for end in found), self.value
        return min(ends), max(ends)

    def __repr__(self) -> str:
        return f"Threshold(value={self.value}, learned={self.learned})"


class Confirmation:
    """Repeats of one setting, as they come in: their mean cost, its spread, and how many crashed."""

    def __init__(self, optimizer: "Optimizer", params: dict[str, Any], number: int, n: int) -> None:
        self.params, self.n = params, n
        self._optimizer, self._number = optimizer, number

    @property
    def trials(self) -> list[Trial]:
        """The repeats that were handed out so far; one that was void is made again."""
        return [t for t in self._optimizer.trials if t.repeats == self._number]

    @property
    def costs(self) -> list[float]:
        """Costs of the repeats that succeeded."""
        return [t.cost for t in self.trials if t.state == "success" and t.cost is not None]

    @property
    def crashes(self) -> int:
        """How many of the repeats crashed."""
        return sum(t.state == "crash" for t in self.trials)

    @property
    def done(self) -> bool:
        """Whether all repeats were told."""
        return sum(t.state in ("success", "crash") for t in self.trials) >= self.n

    @property
    def mean(self) -> float | None:
        """Mean cost."""
        return float(np.mean(self.costs)) if self.costs else None

    @property
    def std(self) -> float | None:
        """Standard deviation of the cost, from two repeats on."""
        return float(np.std(self.costs, ddof=1)) if len(self.costs) > 1 else None

    def __repr__(self) -> str:
        told = len(self.costs) + self.crashes
        figures = f"mean {self.mean}, std {self.std}, crashes {self.crashes}"
        return f"Confirmation({told} of {self.n} told: {figures})"


class Optimizer:
    """Bayesian optimisation that learns from crashes, one trial at a time.

    Args:
        space: names to (low, high), Float, Int or Choice.
        constraints: the measured reasons for a crash: names, Constraint or Unmeasured.
        seed: of the proposals; None draws one.
        strategy: how the next trial is chosen: a name, see `crashbo.strategies.names()`, or a record.
        risk: None (ours), "paper", Budget or MinSafe.
        start: params to try first, in this order; None begins with a few that fill the space.
        noise: standard deviation of the cost where known, or a mapping with "cost" and constraints.
        direction: "minimize" or "maximize" the cost.
        posterior: "marginal" averages P(safe) over plausible hyperparameters; "map" takes the most probable ones.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        constraints: Sequence[str | AnyConstraint] | str | AnyConstraint | None = None,
        *,
        seed: int | None = 0,
        strategy: str | Strategy = "eicc",
        risk: Risk | str | None = None,
        start: Sequence[Params] | None = None,
        noise: float | Mapping[str, float] | None = None,
        direction: Direction = "minimize",
        posterior: PosteriorOver = "marginal",
    ) -> None:
        self.space = Space.of(space)
        self.constraints = _with_noise(constraints_of(constraints), noise)
        self._propose = strategies.get(strategy)
        self.risk = risk_of(risk)
        self.direction: Direction = direction
        if direction not in ("minimize", "maximize"):
            raise ValueError(f"direction must be 'minimize' or 'maximize'; got {direction!r}. Choose one.")
        self.posterior: PosteriorOver = posterior
        check_posterior(posterior)
        strategies.check(self._propose, self.space, tuple(map(_turned, self.constraints)), self.risk)
        self._noise = noise
        self._cost_noise = _cost_noise(noise)
        self._rng = np.random.default_rng(seed)
        self._design = Design.for_study(self.space, self.risk, None if start is None else len(start), self._rng)
        self._queue = [Queued("start", self.space.check(params)) for params in start or ()]
        self._confirmations = 0
        self._trials: dict[int, Trial] = {}
        self._points: dict[int, Array] = {}  # of trials, in the unit cube
        self._memory: Memory | None = None
        self._cached: tuple[tuple[int, int], Surrogates] | None = None
        self._told = 0
        self._warned: set[str] = set()

    def ask(self) -> Trial:
        """The next trial to run. It is pending until it is told."""
        return self.ask_batch(1)[0]

    def ask_batch(self, n: int) -> list[Trial]:
        """The next n trials to run at the same time, chosen from one fit: each knows of those before it."""
        batch: list[Trial] = []
        for _ in range(n):
            batch.append(self._next_trial(share_fit=bool(batch)))
            self._trials[batch[-1].number] = batch[-1]
        return batch

    def tell(
        self,
        trial: Trial | int | Params,
        *,
        cost: float | None = None,
        measured: Mapping[str, float] | None = None,
        crash: bool | str | Crash | None = None,
        blame: str | Sequence[str] | None = None,
        censored: Censored = None,
        void: bool | str | None = None,
        replace: bool = False,
    ) -> Trial:
        """Say what came of a trial: a cost, a crash, or a void.

        Args:
            trial: as asked, its number, or params of a trial that was not proposed here.
            cost: of a success.
            measured: constraint name to value; of a crash, what the machine still delivered.
            crash: True, a reason, or a Crash.
            blame: names of the constraints that a crash violated, where known.
            censored: names of the readings in `measured` that were cut off, True for all: the true value lies there
                or beyond, towards the crash.
            void: True or a reason, for a fault that says nothing of the params.
            replace: correct a trial that was told before.
        """
        crash, void = _spoken("crash", crash, str | Crash), _spoken("void", void, str)
        if sum(x is not None for x in (cost, crash, void)) != 1:
            raise ValueError(
                "tell must get exactly one of cost, crash and void; "
                f"got cost={cost!r}, crash={crash!r}, void={void!r}. A crash has no cost."
            )
        found = self._find(trial)
        if found.state != "pending" and not replace:
            raise ValueError(
                f"trial {found.number} must be pending to be told; it is a {found.state}. "
                "Pass replace=True to correct it."
            )
        if isinstance(crash, Crash):
            measured, blame = {**crash.measured, **(measured or {})}, blame or crash.blame
            censored = crash.censored if censored is None else censored
            crash = crash.reason
        told = self._told_trial(found, cost, {} if measured is None else measured, crash, blame, censored, void)
        self._trials[told.number] = told
        self._told += 1
        if told.state == "void" and told.repeats is not None and found.state == "pending":
            self._queue = [Queued("confirm", told.params, told.repeats), *self._queue]
        self._warn_about(told)
        return told

    @property
    def trials(self) -> list[Trial]:
        """Every trial, in order of number."""
        return [self._trials[number] for number in sorted(self._trials)]

    @property
    def best(self) -> Trial | None:
        """The success with the best observed cost; None before the first."""
        return self._best_of(self.trials)

    def recommend(self, delta: float = 0.1) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta (eq. 3); None before a success."""
        if not is_number(delta) or not 0.0 <= delta <= 1.0:
            raise ValueError(f"delta must lie in [0, 1]; got {delta!r}. 0.1 asks for P(safe) of 0.9.")
        models = self._surrogates()
        if models is None or models.cost is None:
            return None
        x, cost, p = recommend.best_point(models, self.space, delta, np.random.default_rng(0))
        return Recommendation(self.space.decode(x), self._sign * cost, p)

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The crash threshold of every measured constraint."""
        models = self._surrogates()
        return {c.name: Threshold(models, c, j) for j, c in enumerate(self.constraints) if isinstance(c, Constraint)}

    @overload
    def p_safe(self, params: Params) -> float: ...
    @overload
    def p_safe(self, params: Sequence[Params]) -> Array: ...
    def p_safe(self, params: Params | Sequence[Params]) -> float | Array:
        """Probability that a trial at params succeeds; a list gives an array. NaN before any trial was told."""
        if isinstance(params, Mapping):
            return float(self.p_safe([params])[0])
        points = [self.space.encode(self.space.check(p)) for p in params]
        X = np.array(points).reshape(len(params), self.space.dimension)
        models = self._surrogates()
        if models is None:
            return np.full(len(params), np.nan)
        return np.asarray(np.exp(models.log_gamma(X)))

    def predict(self, params: Sequence[Params]) -> Prediction | None:
        """Cost, constraints and P(safe) at params; None before any trial was told."""
        models = self._surrogates()
        if models is None:
            return None
        points = [self.space.encode(self.space.check(p)) for p in params]
        X = np.array(points).reshape(len(params), self.space.dimension)
        cost = None
        if models.cost is not None:
            mean, var = models.cost.predict(0, X)
            cost = self._sign * mean, np.sqrt(var)
        measured = {}
        for j, c in enumerate(self.constraints):
            if isinstance(c, Constraint):
                mean, var = models.crash.predict(j, X)
                measured[c.name] = c.sign * mean, np.sqrt(var)
        return Prediction(cost, measured, np.exp(models.log_gamma(X)))

    @overload
    def p_violated(self, params: Params) -> dict[str, float]: ...
    @overload
    def p_violated(self, params: Sequence[Params]) -> dict[str, Array]: ...
    def p_violated(self, params: Params | Sequence[Params]) -> dict[str, float] | dict[str, Array]:
        """Probability that a trial at params would violate each constraint; a list gives arrays. NaN before any."""
        if isinstance(params, Mapping):
            return {name: float(p[0]) for name, p in self.p_violated([params]).items()}
        points = [self.space.encode(self.space.check(p)) for p in params]
        models = self._surrogates()
        p = np.full((len(points), len(self.constraints)), np.nan)
        if models is not None:
            p = models.log_gamma.violated(np.array(points).reshape(len(points), self.space.dimension))
        return dict(zip((c.name for c in self.constraints), p.T, strict=True))

    def blame(self, trial: Trial | int) -> dict[str, float]:
        """Probability that each constraint was violated in a trial that crashed; they need not sum to one."""
        found = self._trials.get(trial if isinstance(trial, int) else trial.number)
        if found is None or found.state != "crash":
            raise ValueError(f"trial must be one that crashed; got {trial!r}. See `trials` for their states.")
        return self.blames()[found.number]

    def blames(self) -> dict[int, dict[str, float]]:
        """The blame of every trial that crashed, by its number."""
        models = self._surrogates()
        if models is None:
            return {}
        names = [c.name for c in self.constraints]
        crashes = [t.number for t in self.trials if t.state == "crash"]
        rows = models.crash_model.blame().tolist()
        return {number: dict(zip(names, row, strict=True)) for number, row in zip(crashes, rows, strict=True)}

    def table(self) -> list[dict[str, Any]]:
        """Every trial as a row of plain values, in order; `blame` as inferred (told ones are certain), for crashes."""
        blames = self.blames()
        return [{**asdict(t), "blame": blames.get(t.number, {})} for t in self.trials]

    def confirm(self, n: int = 10, params: Params | None = None) -> Confirmation:
        """Queue n repeats of the best trial (or of params): the next asks give them. Returns their report."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"n must be a whole number, at least 1; got {n!r}. Ten repeats are usual.")
        if params is None:
            best = self._best_of(t for t in self.trials if self.space.accepts(t.params))
            if best is None:
                raise ValueError(
                    "confirm must have a success to repeat; there is none in the space. Give params, or tell one."
                )
            params = best.params
        setting = self.space.check(params)
        self._confirmations += 1
        waiting = [queued for queued in self._queue if queued.origin == "confirm"]
        others = [queued for queued in self._queue if queued.origin != "confirm"]
        self._queue = [*waiting, *[Queued("confirm", setting, self._confirmations)] * n, *others]
        return Confirmation(self, setting, self._confirmations, n)

    def changed(
        self,
        *,
        space: Space | Mapping[str, Any] | None = None,
        constraints: Sequence[str | AnyConstraint] | None = None,
        fixed: Params | None = None,
        risk: Risk | str | None = None,
        posterior: PosteriorOver | None = None,
    ) -> "Optimizer":
        """The same study with other bounds, constraints, risk or posterior, or with some parameters fixed to a value.

        Every trial is kept; one outside new bounds still informs the models.
        """
        new = copy.copy(self)
        new.space = Space.of(space) if space is not None else self.space
        if list(new.space.parameters) != list(self.space.parameters):
            raise ValueError(
                f"space must keep the parameters {list(self.space.parameters)}; got {list(new.space.parameters)}. "
                "Fix one with `fixed` instead of leaving it out."
            )
        new.space = new.space.with_fixed({**self.space.fixed, **(fixed or {})})
        new.constraints = self.constraints
        if constraints is not None:
            new.constraints = _with_noise(constraints_of(constraints), self._noise, strict=False)
        new.risk = risk_of(risk) if risk is not None else self.risk
        new.posterior = self.posterior if posterior is None else posterior
        check_posterior(new.posterior)
        strategies.check(new._propose, new.space, tuple(map(_turned, new.constraints)), new.risk)
        new._trials, new._warned = dict(self._trials), set(self._warned)
        new._queue = [queued for queued in self._queue if new.space.accepts(queued.params)]
        new._design = self._design.fitted_to(new.space)
        new._memory, new._cached, new._points = None, None, {}
        new._rng = np.random.default_rng()
        new._rng.bit_generator.state = self._rng.bit_generator.state
        return new

    def to_json(self) -> str:
        """The whole study as text, from which `from_json` goes on with the same proposals."""
        trials = [saving.trial_out(t) for t in self.trials]
        return saving.dumps({"config": self.config(), "trials": trials, "state": self.state()})

    @staticmethod
    def from_json(text: str) -> "Optimizer":
        """A study saved by `to_json`."""
        saved = saving.loads(text)
        return Optimizer.restored(saved["config"], map(saving.trial_in, saved["trials"]), saved["state"])

    def config(self) -> dict[str, Any]:
        """What defines the study, as plain values."""
        return {
            "space": saving.space_out(self.space),
            "constraints": saving.constraints_out(self.constraints),
            "strategy": self.strategy,
            "risk": saving.risk_out(self.risk),
            "direction": self.direction,
            "cost_noise": self._cost_noise,
            "posterior": self.posterior,
        }

    def state(self) -> dict[str, Any]:
        """What, beside its trials, decides what the study proposes next, as plain values."""
        return {
            "design": saving.design_out(self._design),
            "queue": [list(queued) for queued in self._queue],
            "confirmations": self._confirmations,
            "memory": saving.memory_out(self._memory),
            "rng": self._rng.bit_generator.state,
        }

    @staticmethod
    def restored(config: Mapping[str, Any], trials: Iterable[Trial], state: Mapping[str, Any] | None) -> "Optimizer":
        """The study of a `config`, its trials, and the `state` it was in."""
        new = Optimizer(
            saving.space_in(config["space"]),
            saving.constraints_in(config["constraints"]),
            strategy=config["strategy"],
            risk=saving.risk_in(config["risk"]),
            noise=config["cost_noise"],
            direction=config["direction"],
            posterior=config.get("posterior", "marginal"),
        )
        known = {c.name: c.noise for c in new.constraints if isinstance(c, Constraint) and c.noise is not None}
        new._noise = {**known, **({} if new._cost_noise is None else {"cost": new._cost_noise})}  # for `changed`
        new._trials = {t.number: replace(t, params=new.space.revived(t.params)) for t in trials}
        if state is not None:
            new._design = saving.design_in(state["design"])
            new._queue = [Queued(origin, new.space.revived(params), k) for origin, params, k in state["queue"]]
            new._confirmations = state["confirmations"]
            new._memory = saving.memory_in(state["memory"])
            new._rng.bit_generator.state = state["rng"]
        return new

    def gain_left(self) -> float | None:
        """What the next trial may be expected to gain, in units of the cost's noise; None before a success."""
        models = self._surrogates()
        if models is None or models.cost is None:
            return None
        gamma = models.log_gamma
        X = candidates.screen(self.space, models, gamma, rng=np.random.default_rng(0)).X
        gain = np.exp(LogEI(models.cost, models.eta)(X) + gamma(X)).max()
        return float(gain) / models.resolution

    @property
    def strategy(self) -> str | dict[str, Any]:
        """How trials are chosen: its name, with its parameters where they are not the usual ones."""
        return strategies.plain(self._propose)

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "minimize" else -1.0

    @property
    def _next(self) -> int:
        return max(self._trials, default=-1) + 1

    def _best_of(self, trials: Iterable[Trial]) -> Trial | None:
        successes = (t for t in trials if t.state == "success")
        return min(successes, key=lambda t: self._sign * _cost(t), default=None)

    def _next_trial(self, *, share_fit: bool = False) -> Trial:
        if self._queue:
            first, *self._queue = self._queue
            p_safe = self._known_p_safe(first.params)
            return Trial(self._next, first.params, p_safe=p_safe, origin=first.origin, repeats=first.repeats)
        told = sum(t.state in ("success", "crash") for t in self._trials.values())
        under_way = sum(t.state == "pending" for t in self._trials.values())
        if told + under_way < self._design.size or told == 0:
            waits = told == 0 and under_way >= self._design.size and not is_bold(self.risk)
            params = self._pending_params() if waits else self._designed()
            return Trial(self._next, params, p_safe=self._known_p_safe(params), origin="design")
        task = self._task(share_fit=share_fit)
        proposal = self._propose(task, self._rng)
        if "surrogates" in task.__dict__:
            self._remember(task.surrogates)
        params = self.space.decode(proposal.x)
        p = proposal.p_safe
        reported = None if p is None else task.calibration.corrected(p)
        return Trial(self._next, params, p_safe=reported, p_model=p, admissible=proposal.admissible)

    def _pending_params(self) -> dict[str, Any]:
        """What is under way already, to be measured once more while nothing is known of anything else."""
        return next(t.params for t in self.trials if t.state == "pending")

    def _designed(self) -> dict[str, Any]:
        """The design's next setting that was not tried, unless all were."""
        tried = [t.params for t in self._trials.values() if t.state != "void"]
        for _ in range(_DESIGN_TRIES):
            self._design, x = self._design.next(self.space)
            params = self.space.decode(x)
            if params not in tried:
                break
        return params

    def _task(self, *, share_fit: bool = False) -> Task:
        seen = self._observations()
        told = [self._trials[i] for i in seen.numbers]
        predicted, reported = (
            np.array([getattr(t, name) if t.origin == "search" else None for t in told], dtype=float)
            for name in ("p_model", "p_safe")
        )
        left = None
        if self.risk.trials is not None:
            left = max(self.risk.trials - sum(t.state != "void" for t in self.trials), 0)
        fitted = self._fitted(seen, share=share_fit)
        return Task(
            self.space,
            seen,
            self.risk,
            self._memory,
            predicted,
            reported,
            left,
            fitted,
            self._sign,
            self.posterior,
        )

    def _fitted(self, seen: Observations, *, share: bool) -> Surrogates | None:
        """The last fit, if nothing changed since; to be shared, if nothing was told since."""
        if self._cached is None:
            return None
        key, models = self._cached
        if key == self._key:
            return models
        return models.at_pending(seen.pending) if share and key[0] == self._told else None

    def _observations(self) -> Observations:
        """What the models see: costs to be minimised, constraints that crash above."""
        told = [t for t in self.trials if t.state in ("success", "crash")]
        names = [c.name for c in self.constraints]
        Y = [[c.sign * t.measured.get(c.name, np.nan) for c in self.constraints] for t in told]
        return Observations(
            numbers=tuple(t.number for t in told),
            X=np.array([self._encoded(t) for t in told]).reshape(len(told), self.space.dimension),
            cost=np.array([self._sign * _cost(t) if t.state == "success" else np.nan for t in told]),
            Y=np.array(Y, dtype=float).reshape(len(told), len(names)),
            crashed=np.array([t.state == "crash" for t in told], dtype=bool),
            blame=[[names.index(name) for name in t.blame if name in names] or None for t in told],
            censored=np.array(
                [[c.name in t.censored or (c.censored and t.state == "crash") for c in self.constraints] for t in told],
                dtype=bool,
            ).reshape(len(told), len(names)),
            pending=np.array([self._encoded(t) for t in self.trials if t.state == "pending"]).reshape(
                -1, self.space.dimension
            ),
            cost_noise_std=self._cost_noise,
            noise_std=tuple(c.noise for c in self.constraints),
            thresholds=tuple(_turned(c) for c in self.constraints),
        )

    def _encoded(self, trial: Trial) -> Array:
        """A trial's point in the unit cube; its params never change."""
        if trial.number not in self._points:
            self._points[trial.number] = self.space.encode(trial.params)
        return self._points[trial.number]

    def _surrogates(self) -> Surrogates | None:
        """Both models for the trials told so far; fitted once until something is told."""
        task = self._task()
        if not task.seen.numbers:
            return None
        # Looking at a study must not change what it proposes next: the memory stays as it is.
        self._cached = (self._key, task.surrogates)
        return task.surrogates

    @property
    def _key(self) -> tuple[int, int]:
        """Changes whenever a trial is asked or told."""
        return self._told, len(self._trials)

    def _remember(self, models: Surrogates) -> None:
        self._memory = models.memory
        self._cached = (self._key, models)
        if not models.converged:
            self._warn_once("fit", "a model did not converge; its last state is used, and the study goes on.")

    def _known_p_safe(self, params: Params) -> float | None:
        p = float(self.p_safe(params)) if self._memory is not None else np.nan
        return None if np.isnan(p) else p

    def _find(self, trial: Trial | int | Params) -> Trial:
        if isinstance(trial, Trial | int):
            number = trial if isinstance(trial, int) else trial.number
            if number not in self._trials:
                raise ValueError(f"trial must be one of this study; got number {number}. Tell params for a new one.")
            return self._trials[number]
        params = self.space.check(trial)
        return Trial(self._next, params, origin="told", p_safe=self._known_p_safe(params))

    def _told_trial(
        self,
        found: Trial,
        cost: float | None,
        measured: Mapping[str, float],
        crash: bool | str | None,
        blame: str | Sequence[str] | None,
        censored: Censored,
        void: bool | str | None,
    ) -> Trial:
        names = [c.name for c in self.constraints if isinstance(c, Constraint)]
        if not isinstance(measured, Mapping):
            raise ValueError(f"measured must map constraints to values; got {measured!r}. Write {{'name': value}}.")
        for name, value in measured.items():
            if name not in names:
                raise ValueError(
                    f"measured must name constraints ({', '.join(names) or 'none'}); got {name!r}. Add it."
                )
            if not is_number(value):
                raise ValueError(f"measured[{name!r}] must be a finite number; got {value!r}. Leave it out if unknown.")
        blamed = (blame,) if isinstance(blame, str) else tuple(blame or ())
        known = [c.name for c in self.constraints]
        for name in blamed:
            if name not in known:
                raise ValueError(
                    f"blame must name constraints ({', '.join(known)}); got {name!r}. Leave it out if unknown."
                )
        values = {name: float(value) for name, value in measured.items()}
        found = replace(found, measured=values, censored=censored_of(censored, values))
        if void is not None:
            reason = void if isinstance(void, str) else ""
            return replace(found, state="void", cost=None, reason=reason, blame=())
        if crash is not None:
            reason = crash if isinstance(crash, str) else ""
            return replace(found, state="crash", cost=None, reason=reason, blame=blamed)
        if not is_number(cost):
            raise ValueError(
                f"cost must be a finite number; got {cost!r}. If there is none, tell crash=True or void=True."
            )
        if blamed:
            raise ValueError(f"blame must belong to a crash; got {blame!r} with a cost. Leave one of them out.")
        return replace(found, state="success", cost=float(cost), reason="", blame=())  # type: ignore[arg-type]

    def _warn_about(self, told: Trial) -> None:
        for c in self.constraints:
            value, limit = told.measured.get(c.name), c.threshold
            if told.state != "success" or value is None or limit is None or isinstance(limit, tuple):
                continue
            if c.sign * (value - limit) > 4.0 * (c.noise or 0.0):  # noise alone may carry it past the limit
                self._warn_once(
                    f"above {c.name}",
                    f"trial {told.number} succeeded with {c.name} {value:g} beyond its known threshold {limit:g}. "
                    "It is taken as it is; check the threshold.",
                )

    def _warn_once(self, kind: str, words: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(words, RuntimeWarning, stacklevel=3)


def _cost(trial: Trial) -> float:
    assert trial.cost is not None
    return trial.cost


def _spoken(name: str, said: Any, kinds: Any) -> Any:
    """What was said of a crash or a void; None for False."""
    if said is None or (isinstance(said, bool | np.bool_) and not said):
        return None
    if not isinstance(said, bool | np.bool_ | kinds):
        raise ValueError(f"{name} must be True, or say why in words; got {said!r}. Leave it out if there was none.")
    return said


def _turned(c: AnyConstraint) -> float | tuple[float, float] | None:
    """A constraint's threshold where every machine crashes above."""
    if c.threshold is None or isinstance(c, Unmeasured):
        return None
    if isinstance(c.threshold, tuple):
        low, high = sorted(c.sign * end for end in c.threshold)
        return low, high
    return c.sign * float(c.threshold)


def _with_noise(
    constraints: tuple[AnyConstraint, ...], noise: float | Mapping[str, float] | None, *, strict: bool = True
) -> tuple[AnyConstraint, ...]:
    """Constraints with the noise that the study's `noise` gives them."""
    if not isinstance(noise, Mapping):
        return constraints
    unknown = set(noise) - {"cost", *(c.name for c in constraints)}
    if unknown and strict:
        raise ValueError(f"noise must name 'cost' or constraints; got {sorted(unknown)}. Mend the name.")
    return tuple(
        replace(c, noise=noise[c.name]) if isinstance(c, Constraint) and c.name in noise else c for c in constraints
    )


def _cost_noise(noise: float | Mapping[str, float] | None) -> float | None:
    value = noise.get("cost") if isinstance(noise, Mapping) else noise
    if value is not None and not (is_number(value) and value >= 0):
        raise ValueError(f"noise must be a standard deviation >= 0, or None; got {value!r}. None learns it.")
    return None if value is None else float(value)
