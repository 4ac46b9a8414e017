"""Keywords that several functions take alike: listed once, as a TypedDict, and spelled out where people look.

Imports nothing of crashbo.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def spelled_out(keywords: Any, words: Mapping[str, str], without: str = "") -> Callable[[F], F]:
    """Shows in a function's signature and docstring the keywords that it takes as `**said: Unpack[keywords]`."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        hints, kind = keywords.__annotations__, inspect.Parameter.KEYWORD_ONLY
        names = [name for name in hints if name != without]
        more = [inspect.Parameter(name, kind, default=None, annotation=hints[name]) for name in names]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        lines = [f"    {name}: {words[name]}" for name in names]
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), *lines])
        return function

    return decorate
