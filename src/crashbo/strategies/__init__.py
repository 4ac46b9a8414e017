"""Strategies: one file each, from what is known to the next point. May import search and below."""

from crashbo.strategies import eicc, random
from crashbo.strategies.base import Strategy

_STRATEGIES: dict[str, Strategy] = {"eicc": eicc.propose, "random": random.propose}


def names() -> list[str]:
    """The strategies there are."""
    return list(_STRATEGIES)


def get(name: str) -> Strategy:
    """The strategy of that name."""
    if name not in _STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(_STRATEGIES)}; got {name!r}. 'eicc' is the default.")
    return _STRATEGIES[name]
