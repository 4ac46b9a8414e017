"""Progress in a notebook: the one door to IPython, which is there already where this is wanted.

May import optimizer and below.
"""

from html import escape
from typing import Any

from crashbo.extras import Absent
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.progress import summary
from crashbo.optimizer.records import Trial

try:
    from IPython.display import display
except ModuleNotFoundError as error:
    raise Absent("progress in a notebook", error.name, "notebook") from error

_BAR = "display:inline-block;vertical-align:middle;width:10em;height:0.6em;margin-right:0.8em;border-radius:0.3em"
_GREY, _BLUE = "rgba(128,128,128,0.25)", "#0072B2"


class NotebookProgress:
    """One line below the cell that is rewritten, with a bar where the number of trials is known."""

    def __init__(self) -> None:
        self._shown: Any = None  # a handle, once something is

    def __call__(self, optimizer: Optimizer, trial: Trial, total: int | None) -> None:
        """Rewrite the line."""
        line = summary(optimizer, total)
        told = sum(t.counts for t in optimizer.trials)
        bundle = {"text/plain": line, "text/html": f"<div>{_bar(told, total)}{escape(line)}</div>"}
        if self._shown is None:
            self._shown = display(bundle, raw=True, display_id=True)
        else:
            self._shown.update(bundle, raw=True)


def _bar(told: int, total: int | None) -> str:
    if not total:
        return ""
    share = min(told / total, 1.0)
    filled = f"{_BLUE} {share:.1%},{_GREY} {share:.1%}"
    return f"<span style='{_BAR};background:linear-gradient(to right,{filled})'></span>"
