"""Voids, counted: when they are so many that their parameters may well be the cause.

May import strategies and below.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable

from crashbo.optimizer.records import Trial

_FEWEST = 5  # judgement: a robot that is unplugged four times has a bad day
_SHARE = 1 / 3  # judgement: of what was told
_WIDTH = 120  # of a reason: it may be a whole traceback


def too_many(trials: Iterable[Trial]) -> str | None:
    """Words on voids that are more than anyone would expect, at least five and a third of what was told; else None."""
    told = [t for t in trials if t.state != "pending"]
    known = {_setting(t) for t in told if t.counts}  # where it was not the setting, and was tried again
    voids = [t for t in told if t.state == "void" and _setting(t) not in known]
    if len(voids) < max(_FEWEST, _SHARE * len(told)):
        return None
    reason = commonest(t.reason for t in voids)
    why = f", most often because: {reason}" if reason else ""
    return (
        f"{len(voids)} of {len(told)} trials were void{why}. A void teaches nothing of its parameters: if they caused "
        "it, have it count as a crash (on_death, on_timeout or on_error='crash' in minimize, on_fail or on_death="
        "'crash' in Optuna, crash=... in tell)."
    )


def _setting(trial: Trial) -> str:
    return repr(sorted(trial.params.items()))


def commonest(reasons: Iterable[str]) -> str:
    """The commonest reason, on one line; those that begin alike, up to a colon or a bracket, count together."""
    given = [reason for reason in reasons if reason.strip()]
    if not given:
        return ""
    kinds = Counter(map(_kind, given))
    kind = kinds.most_common(1)[0][0]
    text = Counter(reason for reason in given if _kind(reason) == kind).most_common(1)[0][0]
    return textwrap.shorten(text, _WIDTH, placeholder=" ...")


def _kind(reason: str) -> str:
    """What is the same in "MemoryError: 3 GB" and "MemoryError: 5 GB", or in MemoryError('3 GB') and ('5 GB')."""
    return re.split(r"[:(]", reason.strip(), maxsplit=1)[0].strip() or reason
