"""What was made of trials, kept for the next reading of their study: a finished trial never changes.

May import Optuna. Storages give the same object for a finished trial every time, or another one: then it is read anew.
So a memo cannot be wrong, only empty.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from optuna import Study as OptunaStudy

T = TypeVar("T")
_KINDS = 8  # that are kept at once: a sampler may look at a study through a few different spaces


class Remembered:
    """Things made of sources, by number; each as long as its source is the same object."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}

    def of(self, number: int, source: Any, make: Callable[[Any], T]) -> T:
        """What was made of a source before, or is now."""
        known = self._made.get(number)
        if known is not None and known[0] is source:
            before: T = known[1]
            return before
        made = make(source)
        self._made[number] = source, made
        return made


class Memo:
    """What is kept of one study, by kind: what is made, and all that it depends on beside its source."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, Remembered] = {}

    def __getitem__(self, kind: Hashable) -> Remembered:
        found = self._kinds.pop(kind, None) or Remembered()
        self._kinds[kind] = found  # as the latest
        while len(self._kinds) > _KINDS:
            self._kinds.pop(next(iter(self._kinds)), None)
        return found


_MEMOS: "WeakKeyDictionary[OptunaStudy, Memo]" = WeakKeyDictionary()


def memo_of(study: OptunaStudy) -> Memo:
    """The memo of a study, for as long as somebody has it."""
    return _MEMOS.setdefault(study, Memo())
