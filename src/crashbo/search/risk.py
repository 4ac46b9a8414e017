"""Risk: how low P(safe) may be for the sake of gain.

May import models and below.

A risk turns the situation of a study into a floor of its P(safe) (see `safety`), above which the acquisition is
EI x P(safe). `Adaptive` is our default:
- usually the floor is high: caution lowers both crashes and regret, since the gain beyond the boundary is
  mostly imagined;
- once points that are all but safe promise less than a third of the noise, crashes buy nothing near the best point,
  and the floor rises further;
- but a study may sit in one of several safe regions. So where a point below the floor promises a multiple of
  what any point above it does, a leap is allowed. Every leap that crashes lengthens the wait for the next;
- where crashes are not blamed on one of several causes, all are suspects and P(safe) is low everywhere away from the
  trials. Then the safest leap that is worth it tells the most, and the safer it is, the shorter the wait;
- and where nothing at all is left to gain, the strategy doubts its model of the cost and searches elsewhere,
  above the floor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crashbo.search import own
from crashbo.search.space import is_number

Array = NDArray[np.float64]

# judgement: some were compared on the paper's benchmarks, as benchmarks/tuning_problems.py says; no fit is on record
TOLERANCE = 0.01  # by which a point may fall short of the floor's P(safe) and still be admissible
STEEP = 100.0  # slope below the floor where log Gamma itself has no weight
ALL_BUT_SAFE = 0.9  # P(safe) of the points that show whether anything is left to gain; only by chance equal to _USUAL
_USUAL = 0.9  # floor
_LOG_WORTHWHILE = float(np.log(0.3))  # a gain of this share of the noise is worth a leap, or a trial at all
_PAID = 2.0  # times the noise: improvement over the best cost with which a leap has paid
_MOST_BACKOFFS = 10  # leaps in vain that lengthen the wait
_NEARLY = 0.9  # of the odds of the safest point: about as safe
_USUAL_ROW = 3  # crashes in a row that are not unusual where no point is safe
_HALF = 0.5  # crash that is added to those spent: otherwise the only one of a budget could be spent at once
# derived: reported P(safe) below which a trial was a leap: the floor less twice the tolerance, clear of its edge
_LEAPT = _USUAL - 2.0 * TOLERANCE


@dataclass(frozen=True)
class Score:
    """Utility + log Gamma with a penalty below the floor of P(safe), which has a gradient everywhere."""

    log_floor: float = -np.inf
    weight: float = 1.0  # of log Gamma
    steepness: float = 30.0  # judgement: of the slope below the floor, beside log Gamma's own

    def __call__(self, utility: Array, log_gamma: Array) -> Array:
        """The score of points."""
        return utility + self.weight * log_gamma + self.steepness * self._shortfall(log_gamma)

    def with_gradient(self, utility: tuple[Array, Array], gamma: tuple[Array, Array]) -> tuple[Array, Array]:
        """The score of points and its gradient, from those of its two terms."""
        pull = self.weight + np.where(gamma[0] < self.log_floor, self.steepness, 0.0)
        return self(utility[0], gamma[0]), utility[1] + pull[:, None] * gamma[1]

    def _shortfall(self, log_gamma: Array) -> Array:
        return np.minimum(log_gamma - self.log_floor, 0.0) if np.isfinite(self.log_floor) else np.zeros_like(log_gamma)


@dataclass(frozen=True)
class Situation:
    """What a risk may use: what the candidates promise, and the trials so far."""

    log_value: Array  # log of EI x P(safe), at candidates all over the space
    log_gamma: Array  # log P(safe) there
    log_noise: float  # of the cost
    reported: Array  # P(safe) of the told trials as reported when the search proposed them, NaN for others
    crashed: NDArray[np.bool_]
    cost: Array  # NaN where none is known
    pending: int
    trials_left: int | None
    is_ambiguous: bool = False  # whether some crash may have had any of several causes

    def log_gain(self, floor: float) -> float:
        """The largest log value of candidates with at least this P(safe)."""
        return float(np.max(self.log_value, where=self.log_gamma >= np.log(floor), initial=-np.inf))

    @property
    def crashed_in_a_row(self) -> int:
        """How many of the last trials crashed, one after the other."""
        return len(self.crashed) - 1 - int(np.max(np.flatnonzero(~self.crashed), initial=-1))

    def is_exhausted(self, floor: float) -> bool:
        """Whether candidates with at least this P(safe), or all but safe ones, promise nothing worth a trial."""
        return self.log_gain(min(floor, ALL_BUT_SAFE)) < self.log_noise + _LOG_WORTHWHILE


@runtime_checkable
class Risk(Protocol):
    """How much risk a study takes: a frozen record of its parameters.

    One of your own needs nothing but `floor`. With `bold = False` a study without start points begins at the centre of
    its space; `trials`, where it has that, is the announced length of the study.
    """

    def floor(self, situation: Situation) -> float:
        """The least P(safe) that the next trial may have."""


@dataclass(frozen=True)
class Adaptive:
    """Our default: cautious, more so when nothing is left to gain, with rare leaps elsewhere."""

    # judgement, but for backoff; small_leaps were found by benchmarks/two_causes.py, on its press
    usual: float = _USUAL
    raised: float = 0.97
    leap: float = 0.1
    small_leaps: tuple[float, ...] = (0.75, 0.5, 0.25)  # while the cause of some crash is ambiguous
    worth: float = 2.0  # times the gain above the floor that a leap must promise
    patience: float = 2.0  # trials between leaps
    backoff: float = 1.3  # fitted: benchmarks/quality.py --problems tuning; every leap that crashes lengthens the wait
    odds: float = 0.5  # times those of the safest point suffice where nothing reaches the floor

    def floor(self, situation: Situation) -> float:
        """See the module's docstring."""
        leap = self.leap_now(situation)
        return self.step(situation) if leap is None else leap

    def leap_now(self, situation: Situation) -> float | None:
        """The floor of a leap, where one is worth it and the last is long enough ago."""
        price = max(situation.log_noise + _LOG_WORTHWHILE, situation.log_gain(self.usual) + float(np.log(self.worth)))
        leaps = (*self.small_leaps, self.leap) if situation.is_ambiguous else (self.leap,)
        leap = next((leap for leap in leaps if situation.log_gain(leap) > price), None)
        return leap if leap is not None and self._rested(situation, leap) else None

    def step(self, situation: Situation) -> float:
        """The floor of a trial that is no leap."""
        floor = self.raised if situation.is_exhausted(1.0) else self.usual
        safest = float(np.exp(situation.log_gamma.max()))
        if safest >= floor:
            return floor
        # The safest point is one that is known already, and nothing is learnt there: so a share of its odds suffices.
        # But when trial after trial crashes, ever less should be risked.
        odds = 1.0 - (1.0 - self.odds) / (1.0 + max(situation.crashed_in_a_row - _USUAL_ROW, 0))
        return odds * safest / (1.0 - safest + odds * safest)

    def _rested(self, situation: Situation, leap: float) -> bool:
        """Whether the last leap is long enough ago, given how safe this is and how many crashed since one paid."""
        noise = float(np.exp(situation.log_noise))
        best, in_vain, last = np.inf, 0, -np.inf
        told = zip(situation.reported, situation.crashed, situation.cost, strict=True)
        for i, (p, crashed, cost) in enumerate(told):
            if p < _LEAPT:
                last = i
                in_vain = in_vain + 1 if crashed else 0 if cost < best - _PAID * noise else in_vain
            best = float(np.fmin(best, cost))
        wait = self.patience * (1.0 - leap) / (1.0 - self.leap) * self.backoff ** min(in_vain, _MOST_BACKOFFS)
        return bool(len(situation.cost) - last >= wait)


@dataclass(frozen=True)
class Paper:
    """The paper's rule: EI x Gamma and no floor."""

    def floor(self, situation: Situation) -> float:
        """None."""
        return 0.0


@dataclass(frozen=True)
class MinSafe:
    """Nothing with P(safe) below `p` is proposed; where nothing reaches it, the safest point, as not admissible."""

    p: float

    bold: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.p, int | float | np.integer | np.floating) or not 0.0 <= self.p < 1.0:
            raise ValueError(f"MinSafe must be given a P(safe) in [0, 1); got {self.p!r}. 0.9 is a usual one.")
        object.__setattr__(self, "p", float(self.p))

    def floor(self, situation: Situation) -> float:
        """`p`."""
        return self.p


@dataclass(frozen=True)
class Budget:
    """At most `crashes` crashes over `trials` trials, pending ones counted as possible crashes.

    Crashes buy the most in leaps, which find what no careful step does, late in a study too. So some are
    saved for them:
    - leaps, as the default takes them, are allowed while the crashes spent, plus half a crash, are no larger a share of
      the budget than the share of trials to the power of `pace`: somewhat more freely in the beginning;
    - any other trial keeps to a floor at which the rest of the budget would last if all trials to come were just as
      safe: at least the default's, and at most `safest`, since a study with a higher floor finds nothing any more.
      Where no point reaches it and more is spent than was due, one about as safe as the safest is tried;
    - when nothing is left, proven settings are repeated.
    Without a number of trials it does as the default until the last crash, which is for steps at `safest`.
    """

    crashes: int
    trials: int | None = None

    bold: ClassVar[bool] = False
    safest: ClassVar[float] = 0.98  # judgement: above 0.995 studies found nothing any more
    pace: ClassVar[float] = 0.5  # fitted: benchmarks/quality.py --risk budget:10, wells5d and hartmann6d, against 0.75

    def __post_init__(self) -> None:
        for name, value, least in (("crashes", self.crashes, 0), ("trials", self.trials, 1)):
            if name == "trials" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be a whole number, at least {least}; got {value!r}. Count them.")
            object.__setattr__(self, name, int(value))

    def floor(self, situation: Situation) -> float:
        """That of a leap or of a step, by the class's rules; 1 when only proven settings are left."""
        left = self.left(situation.crashed, situation.pending)
        if left <= 0:
            return 1.0
        usual = self._lasting(situation.trials_left, left)
        cautious = Adaptive(usual=usual, raised=max(usual, Adaptive.raised))
        if self._in_pace(situation, left):
            return cautious.floor(situation)
        return replace(cautious, odds=_NEARLY).step(situation)

    def left(self, crashed: NDArray[np.bool_], pending: int) -> int:
        """The crashes that may still be risked."""
        return self.crashes - int(crashed.sum()) - pending

    def _lasting(self, trials_left: int | None, left: int) -> float:
        """The P(safe) at which the crashes left last for the trials to come."""
        if trials_left is None:
            return Adaptive.usual if left > 1 else self.safest
        return min(max(1.0 - left / max(trials_left, 1), Adaptive.usual), self.safest)

    def _in_pace(self, situation: Situation, left: int) -> bool:
        """Whether the crashes spent, plus half a crash, are no more than were due by now."""
        if situation.trials_left is None:
            return left > 1
        told = len(situation.crashed)
        share = float(told / max(told + situation.trials_left, 1))
        return bool(self.crashes - left + _HALF <= self.crashes * share**self.pace)


def risk_of(risk: Any) -> Risk:
    """The risk that a `risk` argument names; as plain values, {"min_safe": 0.9} or {"crashes": 5, "trials": 50}."""
    if risk is None:
        return Adaptive()
    if isinstance(risk, str) and risk == "paper":
        return Paper()
    if own.is_named(risk):
        raise own.refusal("risk", risk)
    if isinstance(risk, Mapping):
        if set(risk) == {"min_safe"}:
            return MinSafe(risk["min_safe"])
        if "crashes" in risk and set(risk) <= {"crashes", "trials"}:
            return Budget(risk["crashes"], risk.get("trials"))
    elif isinstance(risk, Risk) and not isinstance(risk, type):
        length_of(risk)
        return risk
    raise ValueError(
        "risk must be None, 'paper', Budget, MinSafe, {min_safe = 0.9}, {crashes = 5, trials = 50}, or a record of "
        f"your own with a method `floor`; got {risk!r}. None is our default."
    )


def is_bold(risk: Risk) -> bool:
    """Whether trials may lie anywhere before there is a model: not with a budget or a floor."""
    return bool(getattr(risk, "bold", True))


def floor_of(risk: Risk, situation: Situation) -> float:
    """The floor that a risk wants, if it is one: a user's own may return anything."""
    floor = risk.floor(situation)
    if not is_number(floor) or not 0.0 <= floor <= 1.0:
        raise ValueError(f"risk must return a floor between 0 and 1; {risk!r} returned {floor!r}. Mend its `floor`.")
    return float(floor)


def length_of(risk: Risk) -> int | None:
    """The announced length of a study, where its risk knows it."""
    trials = getattr(risk, "trials", None)
    if trials is not None and (not isinstance(trials, int | np.integer) or isinstance(trials, bool) or trials < 1):
        raise ValueError(f"risk must have a whole number of trials, or None; got {trials!r} in {risk!r}. Mend it.")
    return None if trials is None else int(trials)


def announced(risk: Risk, trials: int) -> Risk:
    """The risk of a study whose length is now known."""
    return replace(risk, trials=trials) if isinstance(risk, Budget) and risk.trials is None else risk
