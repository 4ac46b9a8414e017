"""What an Optimizer shows of itself: a picture, and its report. Found by way of `crashbo.lazy`.

May import every other layer.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from crashbo.app import report as report_page
from crashbo.app.gathered import ALONG_ONE, Gathered, at_best, axes_of, gather, history_in
from crashbo.app.overview import GRID
from crashbo.app.subject import Subject, subject_of
from crashbo.extras import needs
from crashbo.optimizer.optimizer import Optimizer

if TYPE_CHECKING:
    from crashbo.app.plots import Figure


def report(optimizer: Optimizer, path: str | PathLike[str]) -> Path:
    """Write the study as one HTML file; returns its path."""
    needs("a report", "plot", "matplotlib")
    where = Path(path)
    try:
        report_page.check_places(where)
        report_page.write(gather(subject_of(optimizer, where.stem)), where)
    except OSError as error:
        raise ValueError(
            f"path must be a place that can be written to; got {str(path)!r} ({error.strerror}). Name another."
        ) from None
    return where


def figure(optimizer: Optimizer, what: str | None = None, axes: Sequence[str] | None = None) -> "Figure":
    """One picture of the study; only what it needs is asked of the models."""
    needs("a figure", "plot", "matplotlib")
    subject = subject_of(optimizer)
    pictures = _pictures(subject, axes)
    what = next(iter(pictures)) if what is None else what
    if what not in pictures:
        raise ValueError(f"what must be one of {', '.join(map(repr, pictures))}; got {what!r}. Choose one.")
    if axes is not None and what != "slice":
        raise ValueError(f"axes must go with 'slice'; got {list(axes)} and {what!r}. Leave them out.")
    if not any(t.counts for t in subject.trials):
        raise ValueError("plot must have a trial that was told; there is none yet. Tell one first.")
    return pictures[what]()


def _pictures(subject: Subject, axes: Sequence[str] | None) -> dict[str, Callable[[], "Figure"]]:
    """Those that a study has, by name: the first is shown by default."""
    from crashbo.app import study_plots  # only here: matplotlib is slow to import

    study, seen = subject.titled.study, subject.overview
    plain = Gathered(subject.titled, subject.trials, None, None, {}, {}, {}, {}, [], "")
    found: dict[str, Callable[[], Figure]] = {}
    if study.objectives:
        found["front"] = lambda: study_plots.draw_front(replace(plain, front=seen.front()))
    elif not study.compared:
        found["cost"] = lambda: study_plots.draw_cost(plain)
    if study.compared or subject.comparisons:
        found["ranking"] = lambda: study_plots.draw_ranking(replace(plain, best=subject.best, ranking=seen.ranking()))
    for c in study.measured:
        found.setdefault(c.name, lambda name=c.name: study_plots.draw_level(plain, name, history_in(seen)[name]))  # type: ignore[misc]
    found["influence"] = lambda: study_plots.draw_influence(replace(plain, influence=seen.influence()))
    found["slice"] = lambda: _slice(replace(plain, best=subject.best, front=seen.front()), subject, axes)
    return found


def _slice(g: Gathered, subject: Subject, axes: Sequence[str] | None) -> "Figure":
    from crashbo.app import study_plots

    if axes is not None and (isinstance(axes, str) or not all(isinstance(name, str) for name in axes)):
        raise ValueError(f"axes must be a list of parameters; got {axes!r}. Write ['gain'].")
    size = ALONG_ONE if axes is not None and len(axes) == 1 else GRID
    along, points = axes_of(subject.overview, subject.overview.influence())[0] if axes is None else (axes, size)
    found = subject.overview.slice(along, at_best(subject), points)
    return study_plots.draw_line(g, found) if len(found.axes) == 1 else study_plots.draw_slice(g, found)
