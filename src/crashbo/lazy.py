"""What a study shows of itself is made by layers above its own: found here, by name, when it is first wanted.

Belongs to every layer; imports nothing of crashbo. The layers below know the names on the left, and no more: all that
is named on the right stands in this one table.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

ABOVE = {
    "frame": "crashbo.integrations.pandas:frame_of",
    "figure": "crashbo.app.notebook:figure",
    "report": "crashbo.app.notebook:report",
    "html": "crashbo.app.glance:html",
    "progress": "crashbo.integrations.jupyter:NotebookProgress",
}


def above(name: str) -> Callable[..., Any]:
    """What goes by this name in a layer above."""
    module, _, part = ABOVE[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), part)
    return found
