"""The files that a demonstration saves: films, figures and a page. May import every other layer."""

import math
from pathlib import Path

from crashbo.app import animation, demo, jump_plots, jump_report, plots, slices
from crashbo.app.animation import Film
from crashbo.app.demo import Story

_FILES = ("first.gif", "best.gif", "crash.gif", "stopped.gif", "course.png", "slice.png", "report.html")


def save(story: Story, folder: Path) -> Path:
    """Write everything; returns the path of the page."""
    for name in _FILES:  # of an earlier study, which may have had more files
        (folder / name).unlink(missing_ok=True)
    films = _films(story, folder)
    rendered = animation.save(films)
    course, cut = folder / "course.png", folder / "slice.png"
    plots.save(jump_plots.draw_course(story), course)
    figures = {course: "The course of the study"}
    if any(t.state == "success" for t in story.trials):
        plots.save(jump_plots.draw_slice(slices.gather(story)), cut)
        figures[cut] = "What was learnt of height and current"
    shown = {film.path: film.title for film in films}
    page = folder / "report.html"
    page.write_text(jump_report.page(story, shown, figures, rendered), encoding="utf-8")
    return page


def _films(story: Story, folder: Path) -> list[Film]:
    """The first jump, the best one, one that crashed, and one that a guard stopped."""
    first = story.trials[0]
    films = [_film(folder / "first.gif", "First jump", first.params, story.seed)]
    if story.repeats:
        films.append(_film(folder / "best.gif", "Best jump", story.repeats[-1].params, story.seed))
    # With other noise a marginal crash may succeed, so take the first trial that crashes again.
    for trial in story.trials:
        if trial.state == "crash":
            film = _film(folder / "crash.gif", f"Trial {trial.number}: a crash", trial.params, story.seed)
            if film.end:
                films.append(film)
                break
    stopped = [t for t in story.trials if t.state == "stopped"]
    if stopped:
        last, limit = stopped[-1], story.optimizer.view.limits()["current"]
        film = _film(folder / "stopped.gif", f"Trial {last.number}: stopped", last.params, story.seed, limit)
        films += [film] if film.end else []
    return films


def _film(path: Path, title: str, params: dict[str, float], seed: int, limit: float = math.inf) -> Film:
    flight = demo.record(params, seed, limit)
    assert flight.tape is not None
    end = flight.crash if flight.stopped is None else f"stopped at {flight.current:.1f} A"
    return Film(path, title, flight.tape, end)
