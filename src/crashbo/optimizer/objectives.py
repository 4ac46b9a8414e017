"""The goals of a study that has several: names to directions, and a reference point for them.

May import strategies and below.
"""

from collections.abc import Mapping
from typing import Any, Literal

from crashbo.search.space import is_number

Direction = Literal["minimize", "maximize"]

_MOST = 3  # goals for which the expected gain is exact and quick


def objectives_of(said: Any) -> dict[str, Direction]:
    """Goals to directions, checked; none at all is the one cost of an ordinary study."""
    if said is None or (isinstance(said, Mapping) and not said):
        return {}
    if not isinstance(said, Mapping) or not all(isinstance(name, str) and name for name in said):
        raise ValueError(
            f"objectives must map names of goals to directions; got {said!r}. "
            "Write {'time': 'minimize', 'accuracy': 'maximize'}."
        )
    for name, direction in said.items():
        if direction not in ("minimize", "maximize"):
            raise ValueError(f"objectives[{name!r}] must be 'minimize' or 'maximize'; got {direction!r}. Choose one.")
    if len(said) == 1:
        (direction,) = said.values()
        raise ValueError(
            f"objectives must be two or three goals; got {list(said)}. For one, leave them out, tell its cost as a "
            f"number, and say direction={direction!r}."
        )
    if len(said) > _MOST:
        raise ValueError(
            f"objectives must be two or three goals; got {len(said)}: {list(said)}. Join some in a sum, or keep them "
            "within limits by constraints."
        )
    return dict(said)


def reference_of(said: Any) -> dict[str, float]:
    """Goals to the worst values that count; none at all is found from the trials."""
    if said is None:
        return {}
    if not isinstance(said, Mapping) or not all(is_number(value) for value in said.values()):
        raise ValueError(
            f"reference must map every goal to the worst value that counts; got {said!r}. None finds it by itself."
        )
    return {name: float(value) for name, value in said.items()}


def check_reference(reference: Mapping[str, float], objectives: Mapping[str, Direction]) -> None:
    """Refuse a reference point of other goals than the study's."""
    if not objectives:
        raise ValueError(f"reference must belong to a study with objectives; got {dict(reference)}. Leave it out.")
    if set(reference) != set(objectives):
        raise ValueError(
            f"reference must name every goal ({', '.join(objectives)}); got {sorted(reference, key=str)}. "
            "Give one value each, or none at all."
        )


def weights_of(said: Any, objectives: Mapping[str, Direction]) -> list[float]:
    """One weight per goal, in their order; None is as much for each."""
    if not objectives:
        raise ValueError(f"weights must belong to a study with objectives; got {said!r}. Leave them out.")
    if said is None:
        return [1.0] * len(objectives)
    if not isinstance(said, Mapping):
        raise ValueError(f"weights must map goals to numbers; got {said!r}. Write {{{next(iter(objectives))!r}: 1.0}}.")
    unknown = sorted(set(said) - set(objectives), key=str)
    if unknown:
        raise ValueError(f"weights must name goals ({', '.join(objectives)}); got {unknown[0]!r}. Mend the name.")
    if not all(is_number(w) and w >= 0.0 for w in said.values()) or not any(said.values()):
        raise ValueError(f"weights must be numbers >= 0, and one above 0; got {dict(said)}. 1 each is the default.")
    return [float(said.get(name, 0.0)) for name in objectives]
