"""Parts of a study that are its user's own, such as a strategy or a risk: only their name can be saved.

Imports nothing of crashbo. What a file names is never imported from it: whoever loads a study passes the part again.
"""

from collections.abc import Mapping
from typing import Any

_KEY = "crashbo:own"


def name_of(part: Any) -> dict[str, str]:
    """What is saved in its place."""
    part = getattr(part, "func", part)  # of a partial
    kind = part if hasattr(part, "__qualname__") else type(part)
    return {_KEY: f"{kind.__module__}:{kind.__qualname__}"}


def is_named(saved: Any) -> bool:
    """Whether this is what was saved in its place."""
    return isinstance(saved, Mapping) and set(saved) == {_KEY}


class Unsaved(ValueError):
    """A part of a study that its user must pass again."""


def refusal(what: str, saved: Mapping[str, str]) -> Unsaved:
    """Why a study cannot go on without it."""
    return Unsaved(
        f"{what} must be passed again to go on with this study: it was saved with {saved[_KEY]!r}, which is not "
        f"crashbo's and cannot be read from a file. Import it, and pass {what}=... where the study is loaded."
    )
