"""What a method is.

May import the public API, `problems` and `campaigns`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from crashbo.benchmark.machine import Machine


@dataclass(frozen=True)
class Method:
    """A way to optimise a machine that crashes.

    Attributes:
        name: on the command line.
        label: in tables and figures.
        run: calls the machine until it raises `Finished`, or the method itself has nothing left to try.
        measures: whether it uses what successes measure; the others have labels only.
        informed: whether it is told which params are safe.
        libraries: distributions whose versions belong to its results.
        pace: seconds of a suggestion in few parameters, roughly: for a forecast before the first run.
    """

    name: str
    label: str
    run: Callable[[Machine], None]
    measures: bool = False
    informed: bool = False
    libraries: tuple[str, ...] = ()
    pace: float = 0.1
