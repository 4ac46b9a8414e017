"""Which parameters exist: some do only beside certain values of others.

May import models and below.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crashbo.search.parameters import Parameter, listed


@dataclass(frozen=True)
class Conditions:
    """The `when` of a space's parameters, checked."""

    parameters: Mapping[str, Parameter]

    def __post_init__(self) -> None:
        for name in self.conditional:
            for parent, values in (self.parameters[name].when or {}).items():
                self._check(name, parent, values)

    @cached_property
    def conditional(self) -> tuple[str, ...]:
        """The parameters that do not always exist, those on which others depend first."""
        left = [name for name, p in self.parameters.items() if p.when is not None]
        found: list[str] = []
        while left:
            ready = [name for name in left if not set(self.parameters[name].when or ()) & set(left)]
            if not ready:
                raise ValueError(f"when must not go in a circle; got {listed(left)}, each beside another. Mend one.")
            found += ready
            left = [name for name in left if name not in ready]
        return tuple(found)

    @cached_property
    def parents(self) -> frozenset[str]:
        """The parameters on whose values it depends which others exist."""
        return frozenset(parent for p in self.parameters.values() for parent in p.when or ())

    def existing(self, values: Mapping[str, Any]) -> list[str]:
        """The parameters that exist beside these values of them, in order; those without a value do not count."""
        there = {name for name, p in self.parameters.items() if p.when is None and name in values}
        for name in self.conditional:
            if name in values and self._exists(name, values, there):
                there.add(name)
        return [name for name in self.parameters if name in there]

    def lacking(self, values: Mapping[str, Any]) -> list[str]:
        """The parameters that exist beside these values, but have none."""
        there = set(self.existing(values))
        always = [name for name, p in self.parameters.items() if p.when is None and name not in values]
        return always + [n for n in self.conditional if n not in values and self._exists(n, values, there)]

    def words(self, name: str) -> str:
        """When a parameter exists."""
        pairs = (self.parameters[name].when or {}).items()
        return " and ".join(f"{parent} is {' or '.join(map(repr, values))}" for parent, values in pairs)

    def _exists(self, name: str, values: Mapping[str, Any], there: set[str]) -> bool:
        """Whether a parameter exists beside the values of those that do."""
        for parent, allowed in (self.parameters[name].when or {}).items():
            p = self.parameters[parent]
            if parent not in there or not p.reads(values[parent]):
                return False
            if not any(p.encode(values[parent]) == p.encode(value) for value in allowed):
                return False
        return True

    def _check(self, name: str, parent: str, values: tuple[Any, ...]) -> None:
        p = self.parameters.get(parent)
        if p is None:
            raise ValueError(f"when of {name!r} must name a parameter; got {parent!r}. Mend the name.")
        if math.isinf(p.count):
            raise ValueError(f"when of {name!r} must name one with countable values; got {parent!r}. Use a Choice.")
        for value in values:
            if not p.accepts(value):
                raise ValueError(f"{parent} in when of {name!r} must {p.rule()}; got {value!r}. Mend it.")
