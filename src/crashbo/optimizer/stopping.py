"""Rules that end a study early.

May import strategies and below.

A rule is any function that gets the Optimizer and returns a reason to stop, or None.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from crashbo.optimizer.optimizer import Optimizer

StopRule = Callable[[Optimizer], str | None]


@dataclass(frozen=True)
class MaxCrashes:
    """Stop after so many crashes."""

    crashes: int

    def __call__(self, optimizer: Optimizer) -> str | None:
        """The reason, if it is time."""
        count = sum(t.state == "crash" for t in optimizer.trials)
        return f"{count} crashes" if count >= self.crashes else None


@dataclass(frozen=True)
class MaxSeconds:
    """Stop when so many seconds have passed since the rule was made."""

    seconds: float
    _since: float = field(default_factory=time.monotonic, repr=False, compare=False)

    def __call__(self, optimizer: Optimizer) -> str | None:
        """The reason, if it is time."""
        return f"{self.seconds:g} s have passed" if time.monotonic() - self._since >= self.seconds else None


@dataclass(frozen=True)
class NoGain:
    """Stop when the next trial may be expected to gain less than `share` of the cost's noise.

    Of several goals: of what one point of the front gains in volume by moving as far as the noise.

    Looked at only from `after` told trials on: a study knows too little before.
    """

    share: float = 0.1
    after: int = 20

    def __call__(self, optimizer: Optimizer) -> str | None:
        """The reason, if it is time."""
        if sum(t.counts for t in optimizer.trials) < self.after:
            return None
        gain = optimizer.gain_left()
        return "no expected gain is left" if gain is not None and gain < self.share else None
