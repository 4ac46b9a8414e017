"""Benchmark problems.

May import the public API: optimizer, search and models.
"""

from collections.abc import Callable

from crashbo.problems import engineering, hidden, literature, paper
from crashbo.problems.problem import Limit, Problem, Truth

__all__ = ["Limit", "Problem", "Truth", "get", "names"]

# Name to factory. A problem with dependencies of its own imports them within its factory: none is paid for by others.
_FACTORIES: dict[str, Callable[[], Problem]] = {
    **paper.FACTORIES,
    **literature.FACTORIES,
    **hidden.FACTORIES,
    **engineering.FACTORIES,
}


def names() -> list[str]:
    """All problems, the paper's first."""
    return list(_FACTORIES)


def get(name: str) -> Problem:
    """The problem of that name."""
    if name not in _FACTORIES:
        raise ValueError(f"name must be one of {', '.join(_FACTORIES)}; got {name!r}. See crashbo.problems.names().")
    return _FACTORIES[name]()
