"""A guard: stops an experiment while it runs, before it crashes.

May import strategies and below.

It is a small record that can be sent to another process or written down for a controller in another language: for each
constraint a limit, and the side on which the machine crashes.
"""

import math
from collections.abc import Mapping

from crashbo.optimizer.records import Side, Stopped


class Guard:
    """Limits of what is measured while one trial runs. `Optimizer.guard` makes it.

    Attributes:
        limits: constraint name to the reading at which the trial is stopped; infinite where nothing is known yet.
        reached: the farthest reading of each constraint so far, towards the crash.
        rises: the largest rise of each from one reading to the next, towards the crash.
    """

    __slots__ = ("_before", "_signs", "limits", "reached", "rises")

    def __init__(self, limits: Mapping[str, float], sides: Mapping[str, Side]) -> None:
        self.limits = dict(limits)
        self.reached: dict[str, float] = {}
        self.rises: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._signs = {name: 1.0 if sides[name] == "above" else -1.0 for name in limits}

    def update(self, **readings: float) -> None:
        """Take readings of the running trial, by constraint.

        Raises:
            Stopped: at or beyond a limit. Bring the machine to rest, and let it pass, or tell it.
        """
        over = None
        for name, reading in readings.items():
            sign = self._signs.get(name)
            if sign is None:
                known = ", ".join(self.limits) or "none"
                raise ValueError(f"readings must name measured constraints ({known}); got {name!r}. Mend the name.")
            if not _is_finite(reading):
                raise ValueError(f"{name} must be a finite number; got {reading!r}. Leave it out if unknown.")
            towards = sign * float(reading)
            before = self._before.get(name)
            if before is not None and towards - before > self.rises.get(name, 0.0):
                self.rises[name] = towards - before
            self._before[name] = towards
            if name not in self.reached or towards > sign * self.reached[name]:
                self.reached[name] = float(reading)
            if towards >= sign * self.limits[name]:
                over = name
        if over is not None:
            words = f"{over} reached {self.reached[over]:.4g}, its limit is {self.limits[over]:.4g}"
            raise Stopped(self.reached, words)

    def __repr__(self) -> str:
        return f"Guard(limits={self.limits})"


def _is_finite(reading: object) -> bool:
    try:
        return math.isfinite(reading)  # type: ignore[arg-type]
    except TypeError:
        return False
