"""The files that a demonstration saves: films, figures and a page. May import every other layer."""

from pathlib import Path

from crashbo.app import animation, demo, jump_plots, jump_report, plots, slices
from crashbo.app.animation import Film
from crashbo.app.demo import Story

_FILES = ("first.gif", "best.gif", "crash.gif", "course.png", "slice.png", "report.html")


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
    """The first jump, the best one, and one that crashed."""
    first = story.trials[0]
    films = [_film(folder / "first.gif", "First jump", first.params, story.seed)]
    if story.repeats:
        films.append(_film(folder / "best.gif", "Best jump", story.repeats[-1].params, story.seed))
    # With other noise a marginal crash may succeed, so take the first trial that crashes again.
    for trial in story.trials:
        if trial.state == "crash":
            film = _film(folder / "crash.gif", f"Trial {trial.number}: a crash", trial.params, story.seed)
            if film.crash:
                return [*films, film]
    return films


def _film(path: Path, title: str, params: dict[str, float], seed: int) -> Film:
    flight = demo.record(params, seed)
    assert flight.tape is not None
    return Film(path, title, flight.tape, flight.crash)
