"""Families of crash problems: generators with as many members as there are seeds. All members have known optima.

May import the public API, from the modules that define it, and `problem`.

Each family is about one thing; everything else differs from seed to seed: the share of the space that crashes (10 to
90 %), whether a safe start is given, noise (none, or 0.2 to 2 % of the spread of the costs), units, bounds, scales, and
on which side of its threshold a measured quantity crashes. Seeds 0 to 99 are for tuning, seeds from 100 on for
reporting: whoever looks at those to choose a setting has no benchmark any more.

A family of your own is a `Family`: a name, a sentence, and a function that draws a `Landscape`.
"""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from crashbo.problems.families import (
    bowls,
    causes,
    cusps,
    driven,
    instance,
    islands,
    mixed,
    options,
    people,
    random_functions,
    stored,
    structure,
)
from crashbo.problems.families.instance import Instance
from crashbo.problems.families.landscape import Cause, Dial, Family, Landscape
from crashbo.problems.problem import Problem

__all__ = [
    "LOWEST",
    "TUNING",
    "Cause",
    "Dial",
    "Family",
    "Instance",
    "Landscape",
    "check_tuning",
    "draw",
    "family",
    "get",
    "names",
]

TUNING = range(100)  # seeds; those beyond are for reporting

_FAMILIES: dict[str, Family] = {
    family.name: family
    for module in (random_functions, driven, bowls, islands, structure, causes, mixed, people, options, cusps)
    for family in module.FAMILIES
}
LOWEST = 2  # parameters


def names() -> list[str]:
    """All families."""
    return list(_FAMILIES)


def family(name: str) -> Family:
    """The family of that name."""
    if name not in _FAMILIES:
        raise ValueError(f"name must be one of {', '.join(_FAMILIES)}; got {name!r}. See families.names().")
    return _FAMILIES[name]


def get(name: str, dimension: int, seed: int) -> Problem:
    """A member of a family, with its optimum.

    Args:
        name: one of `names()`.
        dimension: how many parameters.
        seed: 0 to 99 for tuning, from 100 on for reporting.
    """
    return _found(name, dimension, seed)


def draw(name: str, dimension: int, seed: int) -> Instance:
    """A member of a family as its functions, vectorised; without its optimum, which takes seconds to find."""
    found = family(name)
    if isinstance(dimension, float) or dimension not in range(LOWEST, found.most + 1):
        raise ValueError(
            f"dimension must be a whole number from {LOWEST} to {found.most} in family {name!r}; got {dimension!r}. "
            "Other families have more."
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number from 0 on; got {seed!r}. From 100 on they are for reporting.")
    return instance.draw(found, int(dimension), int(seed))


def check_tuning(seeds: Iterable[int]) -> None:
    """Refuse seeds that are reserved for reporting: for every command that chooses a setting."""
    reserved = [seed for seed in seeds if seed not in TUNING]
    if reserved:
        raise ValueError(
            f"seeds must be from {TUNING[0]} to {TUNING[-1]} for tuning; got {reserved[0]}. Those from "
            f"{TUNING.stop} on are for reporting only."
        )


@lru_cache(maxsize=256)
def _found(name: str, dimension: int, seed: int) -> Problem:
    member = draw(name, dimension, seed)
    lowest = stored.lowest(member)
    if lowest is None:
        from crashbo.problems.families import brute_force  # only here: SciPy's optimisers are slow to import

        lowest = brute_force.lowest(member)
    return member.problem(lowest)
