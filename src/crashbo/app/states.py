"""The states of trials, in one table: what each is called and how it looks in plots and reports. Imports nothing.

A new state is one more row. The page has the same table in `page/states.js`.
"""

from dataclasses import dataclass

CRASH, SUCCESS, NEXT, VOID, STOPPED = "#D55E00", "#1A1A1A", "#009E73", "#8C8C8C", "#CC79A7"


@dataclass(frozen=True)
class StateLook:
    """How the trials of a state are called and drawn."""

    many: str
    colour: str
    marker: str
    filled: bool  # whether its mark is
    rail: bool  # whether it stands on a line below the others, where it has no value
    counted: bool  # whether it is counted even where there is none


LOOKS = {
    "success": StateLook("successes", SUCCESS, "o", filled=True, rail=False, counted=True),
    "crash": StateLook("crashes", CRASH, "x", filled=True, rail=True, counted=True),
    "stopped": StateLook("stopped", STOPPED, "s", filled=True, rail=True, counted=False),
    "void": StateLook("voids", VOID, "o", filled=False, rail=True, counted=True),
    "pending": StateLook("pending", NEXT, "o", filled=False, rail=False, counted=False),
}
