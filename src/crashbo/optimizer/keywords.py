"""Keywords that several functions take alike: counts, and those listed once, as a TypedDict, and spelled out.

Imports nothing of crashbo.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from numbers import Integral
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def counted(name: str, value: Any, remedy: str = "Count them.", least: int = 1) -> int:
    """A whole number, of NumPy's kinds, too."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}; got {value!r}. {remedy}")
    return int(value)


def spelled_out(keywords: Any, words: Mapping[str, str], without: Collection[str] = ()) -> Callable[[F], F]:
    """Shows in a function's signature and docstring the keywords that it takes as `**said: Unpack[keywords]`."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        hints, kind = keywords.__annotations__, inspect.Parameter.KEYWORD_ONLY
        names = [name for name in hints if name not in without]
        more = [inspect.Parameter(name, kind, default=None, annotation=hints[name]) for name in names]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        lines = [f"    {name}: {words[name]}" for name in names]
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), *lines])
        return function

    return decorate
