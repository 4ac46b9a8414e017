"""A constraint's threshold, as a study tells it: its value, an interval, what is proven, and all that in words.

May import strategies and below.
"""

import math
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from crashbo.optimizer.records import AnyConstraint
from crashbo.optimizer.study import Study
from crashbo.search.causes import Causes
from crashbo.search.observations import Observations
from crashbo.search.space import is_number
from crashbo.search.surrogates import Surrogates

_MANY = 150  # judgement: readings of which the highest is so by its noise, as far as that of the largest of so many
_SURELY = 3.0  # judgement: deviations of the noise by which a success may seem to lie beyond a threshold
_NORMAL = 1.645  # derived: standard deviations in half of a 90 % interval
_LIKELIER = 0.5  # derived: the other hypothesis is the more probable one


class Fitted(Protocol):
    """What of a `View` a threshold is read off."""

    @property
    def study(self) -> Study:
        """What is tuned."""

    @property
    def seen(self) -> Observations | None:
        """Its trials, as the models see them."""

    @property
    def models(self) -> Surrogates | None:
        """Fitted to them; None before there is anything to fit."""

    @property
    def risen(self) -> float:
        """How much higher thresholds lie in the context that is looked at."""

    @property
    def risen_std(self) -> float:
        """Its standard deviation."""

    @property
    def causes(self) -> Causes | None:
        """What made the crashes."""


class Threshold:
    """A constraint's crash threshold: known, or the median of its posterior, with an interval.

    The interval is computed when it is first looked at.
    """

    def __init__(self, view: Fitted, constraint: AnyConstraint, j: int) -> None:
        self._view, self._constraint, self._j = view, constraint, j
        self._unit = view.study.units.get(constraint.name, "")
        self._seen, self._models = view.seen, view.models
        known = constraint.threshold
        self.learned = not is_number(known)
        if view.models is None:
            self.value = float(known) if is_number(known) else None  # type: ignore[arg-type]
        else:
            found = view.models.threshold(j)
            self.value = None if found is None else constraint.sign * (found + view.risen)
            if self.learned and self.value is not None and self.proven is not None:
                self.value = constraint.sign * max(constraint.sign * self.value, constraint.sign * self.proven)
            if isinstance(known, tuple) and self.value is not None:
                self.value = min(max(self.value, known[0]), known[1])

    @cached_property
    def proven(self) -> float | None:
        """The farthest that was measured without a crash, less its noise; None before a success or a stop was."""
        return self._proven(1.0)

    def _proven(self, deviations: float) -> float | None:
        """The same, less so many deviations of the noise."""
        if self._seen is None or self._models is None:
            return None
        y = self._seen.Y[:, self._j]
        reached = y[~self._seen.crashed & ~np.isnan(y)]
        if not len(reached):
            return None
        lifted = max(deviations, 1.0 if len(reached) <= _MANY else float(ndtri(1.0 - 1.0 / len(reached))))
        noise = float(np.max(self._models.crash.hypers[self._j].noise_std))
        return self._constraint.sign * (float(reached.max()) - lifted * noise + self._view.risen)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """An interval that holds the threshold with 90 % probability.

        The end towards the crash is infinite where the trials do not bound it.
        """
        known, sign = self._constraint.threshold, self._constraint.sign
        if is_number(known):
            return float(known), float(known)  # type: ignore[arg-type]
        causes = self._view.causes
        if causes is None:
            return known  # type: ignore[return-value]
        found = causes.interval(self._j)
        if found is None or self.value is None:
            return None
        low, high = (end + self._view.risen for end in found)
        if self._view.risen_std:  # both uncertainties, as if they were normal
            own, also = self.value * sign, _NORMAL * self._view.risen_std
            low, high = own - math.hypot(own - low, also), own + math.hypot(high - own, also)
        if self.proven is not None and high < sign * self.proven:
            surely = self._proven(_SURELY)
            # a success beyond it that is no matter of noise: the crashes had another cause
            high = math.inf if surely is None or high < sign * surely else sign * self.proven
        # The value is a median with all else held, the interval is not: keep the one within the other.
        low, high = min(low, sign * self.value), max(high, sign * self.value)
        if self.proven is not None and causes.silent[self._j] > _LIKELIER:
            low = sign * self.proven  # crashes say nothing of it, and successes no more than this
        if isinstance(known, tuple):
            least, most = sorted(sign * end for end in known)
            low, high = (min(max(end, least), most) for end in (low, high))
        return (low, high) if sign > 0 else (-high, -low)

    @property
    def words(self) -> str:
        """What is known of it, in a sentence."""
        if self.value is None or self.interval is None:
            return "nothing is known yet"
        if not self.learned:
            return f"{self._text(self.value)}, as given"
        low, high = self.interval
        if math.isfinite(low) and math.isfinite(high):
            return f"{self._text(self.value)}, 90 % interval {low:.4g} to {self._text(high)}"
        end, least, higher = (low, "least", "higher") if self._constraint.sign > 0.0 else (high, "most", "lower")
        why = f"crashes begin before anything {higher} was measured"
        if self._seen is not None and not self._seen.crashed.any():
            why = "nothing has crashed yet"
        return f"at {least} {self._text(end)}; {why}"

    def _text(self, value: float) -> str:
        return f"{value:.4g} {self._unit}".rstrip()

    def __repr__(self) -> str:
        return f"Threshold(value={self.value}, learned={self.learned})"
