"""The ends of leases, by a clock that nobody sets: on one machine, until it is started again. Imports only keys.

A lease is stored twice: in seconds since 1970, which all machines understand, and by the machine's own monotonic clock.
Where the second can be read it counts, so that setting the clock neither ends a lease nor prolongs it.
"""

import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from crashbo.integrations.optuna.keys import LEASE, STEADY

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def lease_of(seconds: float | None) -> dict[str, Any]:
    """Attributes of a trial whose lease ends in so many seconds; None is no lease."""
    if seconds is None:
        return {LEASE: None}
    until = time.time() + seconds
    return {LEASE: until} if _boot() is None else {LEASE: until, STEADY: [_boot(), time.monotonic() + seconds, until]}


def seconds_left(attrs: Mapping[str, Any], now: float) -> float | None:
    """Seconds until a trial's own lease ends; None if it has none."""
    until = attrs.get(LEASE)
    if until is None:
        return None
    boot, end, same = attrs.get(STEADY) or (None, 0.0, None)
    if boot is not None and boot == _boot() and same == until:  # else it was written elsewhere, or renewed without it
        return float(end) - time.monotonic()
    return float(until) - now


def until(attrs: Mapping[str, Any]) -> float | None:
    """The end of a trial's own lease as the clock is set now, in seconds since 1970; None if it has none."""
    now = time.time()
    left = seconds_left(attrs, now)
    if left is None:
        return None
    said = float(attrs[LEASE])
    return said if abs(said - now - left) < 1.0 else float(round(now + left))


@cache
def _boot() -> str | None:
    """What this machine calls its present run; None where it does not say."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return None
