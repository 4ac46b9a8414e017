"""Problems that others published, where settings fail, with the raw runs that they published.

May import the public API, from the modules that define it, and `problem`.

`data/SOURCES.md` says where they come from. Of each, `problem.published` says how it is judged, and `.published.runs`
are others' runs on it. Those that are read from files are made when they are asked for.
"""

from crashbo.problems.published.lists import MADE
from crashbo.problems.published.surfaces import PROBLEMS

__all__ = ["MADE", "PROBLEMS"]
