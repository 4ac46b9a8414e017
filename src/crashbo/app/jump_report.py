"""One HTML page of a jumping study, pictures included. May import every other layer."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np

from crashbo.app import html_page
from crashbo.app.demo import REPEATS, Story
from crashbo.app.text import counted
from crashbo.optimizer.records import Trial
from crashbo.version import __version__


def page(story: Story, films: Mapping[Path, str], figures: Mapping[Path, str], rendered: bool) -> str:
    """The page, which needs no other file; films and figures map files to what they show."""
    kind = "rendered by MuJoCo" if rendered else "stick figures, without a graphics library"
    parts = [
        f"<h1>Solo8 learns to jump</h1><p>{counted(len(story.trials), 'trial')} of crashbo {__version__} "
        f"on the simulated robot, seed {story.seed}, {story.seconds:.0f} s. "
        "Nobody told it the current at which the boards trip.</p>",
        _numbers(story),
        f"<h2>Jumps</h2><p>In slow motion; {kind}.</p><div class='films'>",
        *(_picture(file, words, caption=words) for file, words in films.items()),
        "</div>",
        *(f"<h2>{escape(words)}</h2>{_picture(file, words)}" for file, words in figures.items()),
        "<h2>Trials</h2>",
        _table(story),
        "<p>This is a simulation. Masses, lengths and motors are the robot's, the plan, the ranges of the gains and "
        "the trip level were fitted to the figures in Marco et al., <i>Robot Learning with Crash "
        "Constraints</i>, 2021.</p>",
    ]
    return html_page.page("Solo8 learns to jump", parts)


def _numbers(story: Story) -> str:
    cells = [(f"{story.crashes} of {len(story.trials)}", "crashes")]
    if story.stops:
        cells.append((str(story.stops), "stopped by the guard"))
    first = next((t for t in story.trials if t.cost is not None), None)
    if first is not None and first.cost is not None:
        cells.insert(0, (f"{-first.cost:.3f} m", "first jump"))
    again = story.confirmed
    if again is not None:
        spread = f"{np.mean(again.heights):.3f} ± {np.std(again.heights):.3f} m"
        cells.insert(1, (spread, f"best jump, {REPEATS} of {REPEATS} repeats"))
    last = story.learnt[-1]
    if last.value is not None and last.interval is not None:
        low, high = last.interval
        where = f"at least {low:.1f} A" if np.isinf(high) else f"90 % in {low:.1f} to {high:.1f} A"
        cells.append((f"{last.value:.1f} A", f"learnt trip current, {where}"))
    cells.append((f"{story.trip:.2f} A", "true trip current"))
    return html_page.numbers(cells)


def _table(story: Story) -> str:
    head = ["trial", *story.trials[0].params, "P(safe)", "height (m)", "current (A)", "end"]
    best = story.confirmed.number if story.confirmed is not None else None
    classes = ["best" if t.number == best else t.state for t in story.trials]
    return html_page.table(head, [_row(t) for t in story.trials], classes)


def _row(trial: Trial) -> list[str]:
    cells = [str(trial.number), *(f"{value:.2f}" for value in trial.params.values())]
    cells.append("" if trial.p_safe is None else f"{trial.p_safe:.2f}")
    if trial.cost is None:
        reached = f"{trial.measured['current']:.1f}" if trial.state == "stopped" else ""
        return [*cells, "", reached, trial.reason]
    return [*cells, f"{-trial.cost:.3f}", f"{trial.measured['current']:.1f}", ""]


def _picture(file: Path, words: str, caption: str = "") -> str:
    return html_page.picture(file.read_bytes(), words, kind=file.suffix[1:], caption=caption)
