"""What a bench refuses, in one sentence each. May import every other layer."""

from collections.abc import Mapping
from typing import Any

from crashbo.app.bench.definition import LARGEST, LONGEST_NAME, check_text
from crashbo.integrations.optuna.spaces import Distributions, fits, holds, space_of
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer.told import Told, judge
from crashbo.search.space import is_number

_LONGEST_LEASE = 1e9  # seconds


class Missing(ValueError):
    """The trial does not exist."""


class Conflict(ValueError):
    """The request contradicts the state of the study."""


class Beyond(Conflict):
    """A setting lies beyond the bounds, and nobody said that it really ran there."""


def check_new(params: Mapping[str, Any], told: Told, reading: Reading, *, beyond: bool = True) -> None:
    """Refuse a trial that a study cannot take; without `beyond`, also one beyond the bounds."""
    check_told(judge(told, reading.declared.constraints, reading.goals))
    check_params(params, reading, beyond=beyond)


def check_params(params: Mapping[str, Any], reading: Reading, *, beyond: bool) -> None:
    """Refuse a setting that a study cannot have; in a context it may be anything that can be met."""
    structure, distributions = reading.structure, reading.distributions
    if not fits(params, distributions, structure) or any(is_number(v) and abs(v) > LARGEST for v in params.values()):
        where = ", each where it exists," if structure.when else ""
        raise ValueError(
            f"params must give each of {', '.join(distributions)}{where} and nothing else, a value that it can "
            f"have; got {dict(params)!r}. Mend it."
        )
    chosen = {name: d for name, d in distributions.items() if name not in structure.contexts}
    if not beyond and (outside := beyond_bounds(params, chosen)):
        raise Beyond(f"params must lie within the bounds; got {outside}. If it really ran there, say beyond.")


def check_wish(params: Mapping[str, Any], reading: Reading, *, beyond: bool) -> None:
    """Refuse a setting that cannot be tried next: one that a study cannot have, or that breaks a rule."""
    contexts = reading.structure.contexts
    chosen = {name: d for name, d in reading.distributions.items() if name not in contexts}
    if any(name in params for name in contexts):
        raise ValueError(f"params must leave out {', '.join(contexts)}: that is met, not chosen. Give it when asking.")
    met = {name: (d.low + d.high) / 2 for name, d in reading.distributions.items() if name in contexts}  # type: ignore[attr-defined]
    check_params({**params, **met}, reading, beyond=beyond)
    rules = tuple(rule for rule in reading.declared.rules or () if rule.names <= set(chosen))
    space_of(chosen, reading.structure).with_rules(rules).check_unbroken("params", params)


def beyond_bounds(params: Mapping[str, Any], distributions: Distributions) -> str:
    """Which values lie beyond their bounds, in words; empty if none does."""
    found = [(name, d) for name, d in distributions.items() if name in params and not holds(d, params[name])]
    return ", ".join(
        f"{name} {params[name]:g} ({getattr(d, 'low', 0):g} to {getattr(d, 'high', 0):g})" for name, d in found
    )


def check_told(told: Told) -> None:
    """Check the limits of store and models."""
    ran = {f"ran[{name!r}]": value for name, value in told.as_run.items() if is_number(value)}
    costs = told.cost if isinstance(told.cost, Mapping) else {"cost": told.cost}
    for what, value in [*costs.items(), *told.measured.items(), *ran.items()]:
        if value is not None and abs(value) > LARGEST:
            raise ValueError(
                f"{what} must be a finite number, at most {LARGEST:g}; got {value!r}. Leave it out if unknown."
            )
    check_text(told.reason, f"note of {told.state}" if told.state == "success" else f"reason of {told.state}")


def check_request(request: Any) -> None:
    """Refuse an invalid request id."""
    if request is not None:
        check_text(request, "request", 100)


def check_who(who: Any) -> None:
    """Refuse an invalid name of an operator."""
    check_text(who, "who", LONGEST_NAME)


def check_lease(seconds: Any) -> None:
    """Refuse an invalid length of a lease."""
    if not (is_number(seconds) and 0 < seconds <= _LONGEST_LEASE):
        raise ValueError(f"lease must be a positive number of seconds; got {seconds!r}. Say how long to wait.")
