"""What a method is.

May import the public API, `problems` and `campaigns`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crashbo import Choice
from crashbo.benchmark.machine import Machine, Params


@dataclass(frozen=True)
class Method:
    """A way to optimise a machine that crashes.

    Attributes:
        name: on the command line.
        label: in tables and figures.
        run: calls the machine until it raises `Finished`, or the method itself has nothing left to try.
        informed: whether it is told which params are safe.
        libraries: distributions whose versions belong to its results.
        pace: seconds of a suggestion in few parameters, roughly: for a forecast before the first run.
    """

    name: str
    label: str
    run: Callable[[Machine], None]
    informed: bool = False
    libraries: tuple[str, ...] = ()
    pace: float = 0.1


def option_index(choice: Choice, value: Any) -> int:
    """Which option a value is."""
    code = choice.encode(value)
    return next(i for i, option in enumerate(choice.options) if choice.encode(option) == code)


def by_index(machine: Machine, params: Params) -> dict[str, Any]:
    """Params with the index of an option in its place, for libraries that take only some kinds of options."""
    return {
        name: option_index(p, params[name]) if isinstance(p, Choice) else params[name]
        for name, p in machine.space.items()
    }
