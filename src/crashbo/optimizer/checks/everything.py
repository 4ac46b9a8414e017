"""All checks of a study, the strongest finding first.

May import strategies and below.
"""

from collections.abc import Callable, Iterator

from crashbo.optimizer.checks import advice, course, crashes
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.view import View

Check = Callable[[View], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    crashes.readings,
    crashes.beyond,
    course.noise,
    course.voids,
    course.drift,
    course.scatter,
    crashes.cause,
    crashes.surprising,
    advice.bounds,
    advice.gain,
)


def check(view: View) -> list[Finding]:
    """What in a study's data speaks against its model, the strongest first; then advice."""
    found = [finding for ask in CHECKS for finding in ask(view)]
    return sorted(found, key=lambda f: (f.advice, -f.strength))
