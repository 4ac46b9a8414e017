"""One HTML page of a jumping study, pictures and all. May import every other layer."""

import base64
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from crashbo.app.demo import REPEATS, Story, counted
from crashbo.optimizer.records import Trial
from crashbo.version import __version__

_KINDS = {".png": "image/png", ".gif": "image/gif"}
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 2rem auto; max-width: 70rem;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; } .figures div { padding: .7rem 1rem; background: #f4f4f4;
       border-radius: .4rem; } .figures b { display: block; font-size: 1.35rem; }
.films { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; } figcaption { color: #4d4d4d; }
img { max-width: 100%; height: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .15rem .8rem; border-bottom: 1px solid #e6e6e6; }
.scroll { overflow-x: auto; } td.crash { color: #b34700; text-align: left; } tr.best { background: #fff7d6; }
"""


@dataclass(frozen=True)
class MediaFile:
    """A picture's file and what it shows."""

    path: Path
    words: str


def page(story: Story, films: list[MediaFile], figures: list[MediaFile], rendered: bool) -> str:
    """The page, which needs no other file."""
    kind = "rendered by MuJoCo" if rendered else "stick figures, without a graphics library"
    parts = [
        f"<h1>Solo8 learns to jump</h1><p>{counted(len(story.trials), 'trial')} of crashbo {__version__} "
        f"on the simulated robot, seed {story.seed}, {story.seconds:.0f} s. "
        "Nobody told it the current at which the boards trip.</p>",
        _figures(story),
        f"<h2>Jumps</h2><p>In slow motion; {kind}.</p><div class='films'>",
        *map(_picture, films),
        "</div>",
        *(f"<h2>{escape(picture.words)}</h2>{_image(picture)}" for picture in figures),
        "<h2>Trials</h2>",
        _table(story),
        "<p>This is a simulation. Masses, lengths and motors are the robot's, the plan, the ranges of the gains and "
        "the trip level were fitted to the figures in Marco et al., <i>Robot Learning with Crash "
        "Constraints</i>, 2021.</p>",
    ]
    head = f"<meta charset='utf-8'><title>Solo8 learns to jump</title><style>{_STYLE}</style>"
    head += "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _figures(story: Story) -> str:
    cells = [("crashes", f"{story.crashes} of {len(story.trials)}")]
    first = next((t for t in story.trials if t.cost is not None), None)
    if first is not None and first.cost is not None:
        cells.insert(0, ("first jump", f"{-first.cost:.3f} m"))
    again = story.confirmed
    if again is not None:
        spread = f"{np.mean(again.heights):.3f} &plusmn; {np.std(again.heights):.3f} m"
        cells.insert(1, (f"best jump, {REPEATS} of {REPEATS} repeats", spread))
    last = story.learnt[-1]
    if last.value is not None and last.interval is not None:
        low, high = last.interval
        cells.append((f"learnt trip current, 90 % in {low:.1f} to {high:.1f} A", f"{last.value:.1f} A"))
    cells.append(("true trip current", f"{story.trip:.2f} A"))
    return "<div class='figures'>" + "".join(f"<div><b>{b}</b>{a}</div>" for a, b in cells) + "</div>"


def _table(story: Story) -> str:
    names = "".join(f"<th>{escape(name)}</th>" for name in story.trials[0].params)
    head = f"<tr><th>trial</th>{names}<th>P(safe)</th><th>height (m)</th><th>current (A)</th></tr>"
    best = story.confirmed.number if story.confirmed is not None else None
    rows = "".join(_row(t, t.number == best) for t in story.trials)
    return f"<div class='scroll'><table>{head}{rows}</table></div>"


def _row(trial: Trial, is_best: bool) -> str:
    cells = [f"<td>{trial.number}</td>", *(f"<td>{value:.2f}</td>" for value in trial.params.values())]
    cells.append(f"<td>{'' if trial.p_safe is None else f'{trial.p_safe:.2f}'}</td>")
    if trial.cost is None:
        cells.append(f"<td class='crash' colspan='2'>{escape(trial.reason)}</td>")
    else:
        cells.append(f"<td>{-trial.cost:.3f}</td><td>{trial.measured['current']:.1f}</td>")
    return f"<tr{' class=best' if is_best else ''}>{''.join(cells)}</tr>"


def _picture(picture: MediaFile) -> str:
    return f"<figure>{_image(picture)}<figcaption>{escape(picture.words)}</figcaption></figure>"


def _image(picture: MediaFile) -> str:
    data = base64.b64encode(picture.path.read_bytes()).decode()
    return f"<img alt='{escape(picture.words)}' src='data:{_KINDS[picture.path.suffix]};base64,{data}'>"
