"""Risk: what a crash costs, and how low P(safe) may be.

May import models and below.

A trial is worth its expected gain per expected price: EI x P / (P + c (1 - P)), where P is the study's P(safe) (see
`safety`) and a crash costs as much as c trials. A risk gives the price c and a floor of P(safe), by the situation of
the study:
- `Price`, our default, has a low floor: what a model promises where it is all but sure of a crash is imagined. Once
  nothing above that floor is worth a trial, crashes buy nothing any more, and the floor is a high one;
- `Budget` has the price at which the crashes that are left would last;
- `MinSafe` has its user's floor and the paper's price, `Paper` no floor and a price of one trial: plain EI x P.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crashbo.search import own
from crashbo.search.space import is_number

Array = NDArray[np.float64]

# judgement
TOLERANCE = 0.01  # by which a point may fall short of the floor's P(safe) and still be admissible
STEEP = 100.0  # slope below the floor where log Gamma itself has no weight
IMAGINED = 0.2  # P(safe) below which a promise counts for nothing
SURE = 0.9  # P(safe) of trials when nothing is worth a crash
WORTHWHILE = 0.3  # a gain of this share of the noise is worth a trial
_NEARLY = 0.9  # times the P(safe) of the safest point: where none reaches the floor, one about as safe is tried
LEAST = 1e-9  # of a floor
# judgement: level in regret with 0.03 on 316 tuning runs; in an earlier form three times as much lost 0.03
_A_STOP = 2.0  # judgement: trials that one costs which was stopped before it could crash
_WORTH_A_CRASH = 0.05  # of what a trial has brought, on average: a promise of less is not worth the risk of a crash
# fitted: benchmarks/quality.py --risk budget:10, hartmann6d and eggcrate2d-corner: these are the paper's
_SPARED = 2.0  # times the trials that are left for each crash: as much again is kept for the unexpected
_PACE = 0.5  # power of the share of trials that is the share of a budget's crashes that is due
# judgement
_PATIENT = 4.0  # crashes without a new best, after which a crash is risked ever less often
_HALF = 0.5  # crash that is added to those spent: otherwise the only one of a budget could be spent at once
_LAST = 30.0  # trials that the last crash of a budget costs in a study of unknown length


@dataclass(frozen=True)
class Score:
    """Utility + log Gamma - log of the expected price, with a penalty below the floor of P(safe).

    It has a gradient everywhere.
    """

    log_floor: float = -np.inf
    weight: float = 1.0  # of log Gamma
    steepness: float = 30.0  # judgement: of the slope below the floor, beside log Gamma's own
    price: float = 1.0  # of a crash, in trials

    def __call__(self, utility: Array, log_gamma: Array) -> Array:
        """The score of points."""
        price = np.log1p((1.0 - self.price) * np.expm1(log_gamma))
        score: Array = utility + self.weight * log_gamma - price
        return score if self.log_floor == -np.inf else score + self.steepness * self._shortfall(log_gamma)

    def with_gradient(self, utility: tuple[Array, Array], gamma: tuple[Array, Array]) -> tuple[Array, Array]:
        """The score of points and its gradient, from those of its two terms."""
        dearer = (self.price - 1.0) * np.exp(gamma[0])
        pull = self.weight + dearer / (self.price - dearer)
        if self.log_floor > -np.inf:
            pull += np.where(gamma[0] < self.log_floor, self.steepness, 0.0)
        return self(utility[0], gamma[0]), utility[1] + pull[:, None] * gamma[1]

    def _shortfall(self, log_gamma: Array) -> Array:
        return np.minimum(log_gamma - self.log_floor, 0.0)


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
    gained: float = 0.0  # how far the best success lies below the worst
    stopped: NDArray[np.bool_] | None = None  # which trials were stopped before they could crash
    risked: float | None = None  # expected crashes among the pending trials, where that is known: in a batch

    def log_gain(self, floor: float) -> float:
        """The largest log value of candidates with at least this P(safe)."""
        return float(np.max(self.log_value, where=self.log_gamma >= np.log(max(floor, LEAST)), initial=-np.inf))

    def is_exhausted(self, floor: float) -> bool:
        """Whether candidates with at least this P(safe) promise nothing worth a trial."""
        return self.log_gain(floor) < self.log_worthwhile

    @property
    def log_worthwhile(self) -> float:
        """The log of the least gain that is worth a trial."""
        return self.log_noise + float(np.log(WORTHWHILE))

    def is_dear(self, floor: float, price: float) -> bool:
        """Whether candidates with at least this P(safe) promise too little for the price of their crashes.

        That is a small share of what a trial has brought so far, and more after many crashes without a new best.
        """
        p = np.exp(self.log_gamma)
        per_price = self.log_value - np.log(p + price * (1.0 - p))
        most = float(np.max(per_price, where=p >= floor, initial=-np.inf))
        bar = _WORTH_A_CRASH * self._impatience * self.gained / max(len(self.crashed), 1)
        return bar > 0.0 and most < np.log(bar)

    @property
    def _impatience(self) -> float:
        """One, and more the more crashes there were since the last new best."""
        known = np.isfinite(self.cost)
        last = int(np.argmin(np.where(known, self.cost, np.inf))) if known.any() else 0
        return max(1.0, float(self.crashed[last:].sum()) / _PATIENT)

    def is_paid_for(self, price: float) -> bool:
        """Whether the last crash was as many trials ago as one costs, or more after many without a new best.

        A pending trial may be another crash. What was stopped before it could crash costs little more than itself. Of
        a batch it is known how many crashes are to be expected: the trials of it that succeed pay for them, so that a
        batch risks about as much as the same trials would one by one.
        """
        stopped = np.zeros_like(self.crashed) if self.stopped is None else self.stopped
        if self.risked is None:
            owed, paid = self._impatience * (1 + self.pending), 0.0
        else:
            owed, paid = self._impatience * (1.0 + self.risked), self.pending - self.risked
        since = _since(self.crashed) if self.risked is None else min(_since(self.crashed), price * self._impatience)
        return since + paid >= price * owed and _since(stopped) + paid >= min(price, _A_STOP) * owed

    def hopeful(self, price: float) -> float:
        """P(safe) at which a success may be expected for the price of as many trials as there were."""
        return min(price / (len(self.crashed) + price - 1.0), SURE)

    def within_reach(self, floor: float) -> float:
        """The floor, or where no candidate reaches it, nearly the P(safe) of the safest."""
        safest = float(np.exp(self.log_gamma.max()))
        return floor if safest >= floor else max(_NEARLY * safest, LEAST)


@runtime_checkable
class Risk(Protocol):
    """How much risk a study takes: a frozen record of its parameters.

    One of your own needs nothing but `floor`. A method `price` of the situation, where it has that, gives what a crash
    costs, in trials. With `bold = False` a study without start points begins at the centre of its space, and does not
    look around; `trials`, where it has that, is the announced length of the study.
    """

    def floor(self, situation: Situation) -> float:
        """The least P(safe) that the next trial may have."""


@dataclass(frozen=True)
class Price:
    """A crash costs as much as `crash` trials. With that of five it is our default."""

    crash: float = (
        5.0  # judgement: level in regret with 3 on 280 tuning runs, with one crash or so fewer in fifty trials
    )

    def __post_init__(self) -> None:
        if not is_number(self.crash) or self.crash < 1.0:
            raise ValueError(
                f"Price must be given the trials that a crash costs, at least 1; got {self.crash!r}. 5 is the default."
            )
        object.__setattr__(self, "crash", float(self.crash))

    def floor(self, situation: Situation) -> float:
        """A low one, while something is worth a crash."""
        return worthwhile_floor(situation, self.crash)

    def price(self, situation: Situation) -> float:
        """Always the same."""
        return self.crash


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

    A crash costs twice the trials that are left for each crash that is left, at least as many as by default: so a study
    that has spent much of its budget becomes careful, and one that has not pays for what it may find, late, too. While
    the crashes spent are a larger share of the budget than the square root of the share of trials, none is risked. When
    nothing is left, proven settings are repeated. Without a number of trials it does as the default until the last
    crash, which is dear.
    """

    crashes: int
    trials: int | None = None

    bold: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value, least in (("crashes", self.crashes, 0), ("trials", self.trials, 1)):
            if name == "trials" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be a whole number, at least {least}; got {value!r}. Count them.")
            object.__setattr__(self, name, int(value))

    def floor(self, situation: Situation) -> float:
        """The default's, a high one while more is spent than is due, and 1 when only proven settings are left."""
        left = self.left(situation.crashed, situation.pending)
        if left <= 0:
            return 1.0
        in_pace = self._in_pace(situation, left)
        return worthwhile_floor(situation, self.price(situation)) if in_pace else situation.within_reach(SURE)

    def price(self, situation: Situation) -> float:
        """The trials that are left for each crash that is left."""
        left = max(self.left(situation.crashed, situation.pending), 1)
        if situation.trials_left is None:
            return Price.crash if left > 1 else _LAST
        return max(Price.crash, _SPARED * situation.trials_left / left)

    def _in_pace(self, situation: Situation, left: int) -> bool:
        """Whether the crashes spent, plus half a crash, are no more than are due by now."""
        if situation.trials_left is None:
            return True
        told = len(situation.crashed)
        share = float(told / max(told + situation.trials_left, 1))
        return bool(self.crashes - left + _HALF <= self.crashes * share**_PACE)

    def left(self, crashed: NDArray[np.bool_], pending: int) -> int:
        """The crashes that may still be risked."""
        return self.crashes - int(crashed.sum()) - pending


def risk_of(risk: Any) -> Risk:
    """The risk that a `risk` argument names; as plain values, {"price": 5}, {"min_safe": 0.9} or {"crashes": 5}."""
    if risk is None:
        return Price()
    if isinstance(risk, str) and risk == "paper":
        return Paper()
    if own.is_named(risk):
        raise own.refusal("risk", risk)
    if isinstance(risk, Mapping):
        if set(risk) == {"price"}:
            return Price(risk["price"])
        if set(risk) == {"min_safe"}:
            return MinSafe(risk["min_safe"])
        if "crashes" in risk and set(risk) <= {"crashes", "trials"}:
            return Budget(risk["crashes"], risk.get("trials"))
    elif isinstance(risk, Risk) and not isinstance(risk, type):
        length_of(risk)
        return risk
    raise ValueError(
        "risk must be None, 'paper', Price, Budget, MinSafe, {price = 5}, {min_safe = 0.9}, {crashes = 5, trials = 50}"
        f", or a record of your own with a method `floor`; got {risk!r}. None is our default."
    )


def is_bold(risk: Risk) -> bool:
    """Whether trials may lie anywhere before there is a model: not with a budget or a floor."""
    return bool(getattr(risk, "bold", True))


def worthwhile_floor(situation: Situation, price: float) -> float:
    """A low floor of P(safe) while something above it is worth a crash of that price; then, mostly, a high one."""
    low = situation.within_reach(IMAGINED)
    dear = situation.is_dear(low, price) and not situation.is_paid_for(price)
    return situation.within_reach(SURE) if dear or situation.is_exhausted(low) else low


def floor_of(risk: Risk, situation: Situation) -> float:
    """The floor that a risk wants, if it is one: a user's own may return anything."""
    floor = risk.floor(situation)
    if not is_number(floor) or not 0.0 <= floor <= 1.0:
        raise ValueError(f"risk must return a floor between 0 and 1; {risk!r} returned {floor!r}. Mend its `floor`.")
    return float(floor)


def price_of(risk: Risk, situation: Situation) -> float:
    """What a crash costs by a risk, in trials; one, where it does not say."""
    if not hasattr(risk, "price"):
        return 1.0
    price = risk.price(situation)
    if not is_number(price) or price < 1.0:
        raise ValueError(f"risk must return a price of 1 trial or more; {risk!r} returned {price!r}. Mend its `price`.")
    return float(price)


def _since(flags: NDArray[np.bool_]) -> int:
    """How many trials ago the last of these was, the next one counted; more than there are, if there was none."""
    return 1 + (int(np.argmax(flags[::-1])) if flags.any() else len(flags))


def usual_price(risk: Risk) -> float:
    """What a crash costs whatever the situation: the user's word, or the default."""
    return risk.crash if isinstance(risk, Price) else Price.crash


def is_spent(risk: Risk, crashed: NDArray[np.bool_], pending: int) -> bool:
    """Whether a budget has no crash left to risk."""
    return isinstance(risk, Budget) and risk.left(crashed, pending) <= 0


def length_of(risk: Risk) -> int | None:
    """The announced length of a study, where its risk knows it."""
    trials = getattr(risk, "trials", None)
    if trials is not None and (not isinstance(trials, int | np.integer) or isinstance(trials, bool) or trials < 1):
        raise ValueError(f"risk must have a whole number of trials, or None; got {trials!r} in {risk!r}. Mend it.")
    return None if trials is None else int(trials)


def announced(risk: Risk, trials: int) -> Risk:
    """The risk of a study whose length is now known."""
    return replace(risk, trials=trials) if isinstance(risk, Budget) and risk.trials is None else risk
