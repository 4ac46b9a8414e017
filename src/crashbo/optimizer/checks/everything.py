"""All checks of a study, the strongest finding first.

May import strategies and below.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from crashbo.optimizer.checks import advice, course, crashes
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.view import View

Check = Callable[[View], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    crashes.readings,
    crashes.beyond,
    crashes.glitches,
    course.noise,
    course.voids,
    course.rules,
    course.drift,
    course.scatter,
    crashes.cause,
    crashes.surprising,
    advice.gain,
)


def check(view: View, shown: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda params: params) -> list[Finding]:
    """What in a study's data speaks against its model, the strongest first; then advice.

    `shown` gives the params that people know, where those of the study's space are others.
    """
    found = [finding for ask in CHECKS for finding in ask(view)]
    found += advice.bounds(view, shown)
    return sorted(found, key=lambda f: (f.advice, -f.strength))
