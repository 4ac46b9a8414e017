"""Strategies: one file each, from the trials so far to the next point. May import search and below.

A strategy is chosen by name; one with parameters of its own also as a record, such as `HighCost(10.0)`; and a user's
own is any function of a `Task` and a random generator that returns a `Proposal`. Of ours only "eicc" heeds a study's
risk. "eic" and "safeopt" need more than a crash says: known thresholds, and measurements in crashes, too.
"""

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from crashbo.search import own
from crashbo.search.observations import GivenThreshold
from crashbo.search.risk import Paper, Price, Risk
from crashbo.search.space import Space
from crashbo.strategies import eic_classifier, eicc, eicc_batch, floor_padding, random, sobol
from crashbo.strategies.base import Demanding, Further, Proposal, Strategy, Task
from crashbo.strategies.eic import Eic
from crashbo.strategies.penalties import AdaptiveCost, HighCost, MiddleCost
from crashbo.strategies.pibu import Pibu
from crashbo.strategies.safeopt import SafeOpt

__all__ = [
    "AdaptiveCost",
    "Eic",
    "HighCost",
    "MiddleCost",
    "Pibu",
    "Proposal",
    "SafeOpt",
    "Strategy",
    "Task",
    "get",
    "names",
]

_STRATEGIES: dict[str, Strategy] = {
    "eicc": eicc.propose,
    "eic": Eic(),
    "ei-hc": HighCost(),
    "ei-mc": MiddleCost(),
    "ei-ac": AdaptiveCost(),
    "eic-classifier": eic_classifier.propose,
    "pibu": Pibu(),
    "safeopt": SafeOpt(),
    "floor-padding": floor_padding.propose,
    "random": random.propose,
    "sobol": sobol.propose,
}


_FOR_SEVERAL_GOALS = ("eicc", "eic-classifier", "random", "sobol")


def names() -> list[str]:
    """Names of all strategies."""
    return list(_STRATEGIES)


def get(strategy: str | Strategy | Mapping[str, Any]) -> Strategy:
    """The strategy of that name, of that record, or of what `plain` made of it; a user's own as it is."""
    if isinstance(strategy, str) and strategy in _STRATEGIES:
        return _STRATEGIES[strategy]
    if own.is_named(strategy):
        raise own.refusal("strategy", strategy)  # type: ignore[arg-type]
    if isinstance(strategy, Mapping):
        more = {key: value for key, value in strategy.items() if key != "name"}
        try:
            record: Strategy = replace(get(strategy.get("name")), **more)  # type: ignore[arg-type,type-var]
        except TypeError:
            said = dict(strategy)
            raise ValueError(f"strategy must have a name and its own parameters; got {said!r}. Mend it.") from None
        return record
    if callable(strategy) and not isinstance(strategy, type):
        return strategy
    raise ValueError(
        f"strategy must be one of {', '.join(_STRATEGIES)}, or a function of a task and a random generator; "
        f"got {strategy!r}. 'eicc' is the default."
    )


def further(strategy: Strategy) -> Further | None:
    """What chooses several trials at once more cheaply than one by one, if the strategy has that."""
    return eicc_batch.further if strategy is eicc.propose else None


def plain(strategy: Strategy) -> str | dict[str, Any]:
    """A strategy as plain values: its name, with its parameters where they are not the usual ones."""
    name = _name(strategy)
    if name is None:
        return own.name_of(strategy)
    if strategy == _STRATEGIES[name] or not is_dataclass(strategy):
        return name
    return {"name": name, **asdict(strategy)}


def check(strategy: Strategy, space: Space, thresholds: tuple[GivenThreshold, ...], risk: Risk, goals: int = 1) -> None:
    """Refuse a study that the strategy cannot run, in a sentence."""
    if goals > 1 and _name(strategy) not in (None, *_FOR_SEVERAL_GOALS):
        raise ValueError(
            f"strategy must be one of {', '.join(_FOR_SEVERAL_GOALS)} with several objectives, or your own; "
            f"got {plain(strategy)!r}. 'eicc' is the default."
        )
    if isinstance(strategy, Demanding):
        strategy.check(space, thresholds)
    deaf = _name(strategy) not in (None, "eicc")
    if deaf and risk not in (Price(), Paper()):
        raise ValueError(f"risk must be None with strategy {plain(strategy)!r}; got {risk!r}. Only 'eicc' heeds it.")


def takes_comparisons(strategy: Strategy) -> bool:
    """Whether a strategy can run a study in which trials have no cost, but are compared with each other."""
    return _name(strategy) in (None, "eicc", "random", "sobol")


def _name(strategy: Strategy) -> str | None:
    """A function is one of ours if it is registered, a record if one of its type is."""
    same = (name for name, s in _STRATEGIES.items() if s is strategy or (is_dataclass(s) and type(s) is type(strategy)))
    return next(same, None)
