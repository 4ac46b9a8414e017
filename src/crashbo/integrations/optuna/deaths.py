"""Workers that died: which trials they left behind, which of those are tried once more, and which count.

May import optimizer and below, and Optuna.

A worker may die of its setting (out of memory) or of something else (a power cut). So the first death at a setting says
nothing yet: the setting is tried once more, and the next death there counts as `on_death` says. All of it follows from
the storage, so that all workers agree.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna.clock import seconds_left
from crashbo.integrations.optuna.keys import CORRECTED, DEATH, HEARTBEAT, PROPOSAL, STATE
from crashbo.integrations.optuna.spaces import holds

EXPIRED = "lease ran out"
STALE = "heartbeat stopped"


@dataclass(frozen=True)
class Deaths:
    """The trials whose workers died, as far as somebody has to act on them."""

    repeated: Mapping[int, str] = field(default_factory=dict)  # number and reason: not the first at their settings
    untried: tuple[FrozenTrial, ...] = ()  # those whose settings nobody has tried since

    @staticmethod
    def among(trials: Sequence[FrozenTrial], attrs: Mapping[str, Any], lease: float | None, now: float) -> "Deaths":
        """Those among all trials of a study, in order, with the study's attributes; a corrected one is none."""
        dead = {t.number: why for t in trials if (why := death(t, lease, now)) and params_of(t)}
        dead = {number: why for number, why in dead.items() if f"{CORRECTED}{number}" not in attrs}
        if not dead:
            return Deaths()
        repeated, untried = {}, []
        for group in _by_setting(trials, dead):
            first, *later = (t for t in group if t.number in dead)
            repeated.update({t.number: dead[t.number] for t in later})
            if first is group[-1]:
                untried.append(first)
        return Deaths(repeated, tuple(sorted(untried, key=lambda t: t.number)))


def death(trial: FrozenTrial, lease: float | None, now: float) -> str | None:
    """Why the worker of a trial is taken to have died; None if it is not."""
    if trial.state not in (TrialState.RUNNING, TrialState.FAIL):
        return None
    said, noted = trial.user_attrs.get(STATE), trial.system_attrs.get(DEATH)
    if said is not None and not (said == "void" and noted):  # its outcome was written, if not its end
        return None
    if trial.state == TrialState.RUNNING:
        return EXPIRED if noted or expired(trial, lease, now) else None
    return noted or (STALE if trial.system_attrs.get(HEARTBEAT) else None)


def expired(trial: FrozenTrial, lease: float | None, now: float) -> bool:
    """Whether the lease of a running trial has run out."""
    left = seconds_left(trial.system_attrs, now)
    if left is not None:
        return left < 0.0
    if lease is None or trial.datetime_start is None:
        return False
    return (datetime.now() - trial.datetime_start).total_seconds() > lease


def params_of(trial: FrozenTrial) -> dict[str, Any]:
    """The trial's params; until it is complete, also those that were proposed but not yet asked for."""
    if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
        return trial.params
    return {**_proposal(trial).get("params", {}), **trial.system_attrs.get("fixed_params", {}), **trial.params}


def fits(dead: FrozenTrial, wanted: Mapping[str, BaseDistribution], known: Mapping[str, Any]) -> bool:
    """Whether a dead worker's setting has all that is wanted, and agrees with what is known already."""
    params = params_of(dead)
    return known.items() <= params.items() and all(
        name in params and holds(d, params[name]) for name, d in wanted.items()
    )


def tried_again_by(trials: Iterable[FrozenTrial], number: int) -> list[int]:
    """Which of some trials try the setting of another once more."""
    return [t.number for t in trials if tries_again(t) == number]


def tries_again(trial: FrozenTrial) -> int | None:
    """The number of the trial whose setting this one tries once more."""
    return _proposal(trial).get("again")


def _by_setting(trials: Sequence[FrozenTrial], dead: Mapping[int, str]) -> Iterable[list[FrozenTrial]]:
    """The trials at each setting where a worker died, in order.

    A trial that was made to try a setting again belongs there, though it may have asked for more parameters.
    """
    at = {t.number: repr(sorted(params_of(t).items(), key=lambda item: item[0])) for t in trials}
    groups: dict[str, list[FrozenTrial]] = defaultdict(list)
    for t in trials:
        again = tries_again(t)
        groups[at[t.number if again not in at else again]].append(t)
    return [group for group in groups.values() if any(t.number in dead for t in group)]


def _proposal(trial: FrozenTrial) -> Mapping[str, Any]:
    return trial.system_attrs.get(PROPOSAL) or {}
