"""The report of a benchmark as one HTML page that needs no other file. May import every other layer.

`words` has its sentences, `grids` its tables, `plots` its figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from crashbo.app import html_page
from crashbo.app.benchmark import grids, plots
from crashbo.app.benchmark.words import DEFINITIONS, VERDICTS, in_short, told, troubles
from crashbo.app.benchmark.words import in_words as in_words  # also printed by the command
from crashbo.app.plots import Figure, png
from crashbo.app.text import counted
from crashbo.benchmark.published import judged
from crashbo.benchmark.summary import Summary, label

_TITLE = "Benchmark: optimisation with crashes"
_DPI = 140
_NONE = "<p>None that is sure.</p>"
_CURVES = (
    "Means over cases. Methods are named at the ends of their lines. On the right, each method's way over its trials: "
    "down is a better cost, to the right are more crashes, and its end is marked. Bands are 95 % intervals:"
)
_GROUPS = (
    "Regret averaged over the price paid, where a crash costs as much as five trials; small below it, regret at the "
    "end and the share of trials that crashed. Lower is better; outlined: the best of the group."
)
_PROFILES = (
    "Each method is a line over all problems: the share that it has solved after so many trials, to the published "
    "target or to the regret above. High on the left is fast, high on the right is thorough."
)
_PUBLISHED = (
    "Problems that others published, judged as they judged them. Dotted, and marked as published: their own runs, from "
    "their raw data. Random search on a list is computed."
)
_MAPS = (
    "Outlined: the best peer of the row, by regret. Ours are on the left, our other strategies and the oracle right."
)


@dataclass(frozen=True)
class BenchmarkOrigin:
    """How the results of a benchmark were produced."""

    command: str
    cores: int
    versions: Mapping[str, str]
    left_out: Mapping[str, str]  # methods that could not run, and why


def page(summary: Summary, origin: BenchmarkOrigin) -> str:
    """The page."""
    body = [f"<h1>{_TITLE}</h1>", f"<p>{_text(in_short(summary))}</p>", _numbers(summary)]
    body += _in_a_minute(summary) if summary.cases else []
    body += ["<h2>Where we lead and where we lose</h2>", *_standings(summary)]
    body += _figures(summary) if summary.cases else []
    body += [_definitions(), _origin(origin)]
    return html_page.page(_TITLE, body)


def _numbers(summary: Summary) -> str:
    runs = [run for method in summary.methods for run in summary.of_method(method)]
    cells = {
        "cases": len(summary.cases),
        "methods": len(summary.methods),
        "trials": sum(len(run.costs) for run in runs),
        "crashes seen": sum(cost is None for run in runs for cost in run.costs),
    }
    return html_page.numbers((f"{count:,}", what) for what, count in cells.items())


def _standings(summary: Summary) -> list[str]:
    parts = []
    for found in told(summary) if summary.cases else []:
        parts.append(f"<h3>{escape(found.name)}, beside the best peer in hindsight</h3>{_list(found.coarse)}")
        sides = (("lead", "Leads", found.leads), ("lose", "Losses", found.losses))
        boxes = [
            f"<div class='{css}'><h4>{words} on families: {len(lines)}</h4>{_list(lines) or _NONE}</div>"
            for css, words, lines in sides
        ]
        parts.append(f"<div class='sides'>{''.join(boxes)}</div>")
        parts += [_soft(words) for words in (found.level, found.few) if words]
    parts += [] if parts else ["<p>There is no peer to compare with.</p>"]
    nothing = "<p>No run failed, ended early or got below an optimum on file.</p>"
    return [*parts, "<h3>Failed runs</h3>", _list(troubles(summary)) or nothing]


def save_figures(summary: Summary, folder: Path) -> None:
    """The picture of all methods over all problems, and that of the published problems, as files of their own."""
    if summary.cases:
        look = plots.looks(summary)
        (folder / "figure.png").write_bytes(png(plots.draw_profiles(summary, look), _DPI))
        drawn = plots.draw_published(summary, look)
        if drawn is not None:
            (folder / "published.png").write_bytes(png(drawn, _DPI))


def _in_a_minute(summary: Summary) -> list[str]:
    """One table, one picture."""
    profiles = plots.draw_profiles(summary, plots.looks(summary))
    return [
        _kept("<h2>In a minute</h2>", _soft(_GROUPS), grids.by_group(summary)),
        _kept(
            "<h2>Solved against trials</h2>",
            _soft(_PROFILES),
            _picture(profiles, "Share of all cases solved against trials"),
        ),
    ]


def _picture(drawn: Figure, words: str) -> str:
    return f"<div class='wide'>{html_page.picture(png(drawn, _DPI), words)}</div>"


def _figures(summary: Summary) -> list[str]:
    """Tables and figures."""
    look = plots.looks(summary)

    def curves(name: str, part: Summary) -> str:
        cases = counted(len(part.cases), "case")
        own = {method: style for method, style in look.items() if method in part.methods}
        drawn = _picture(plots.draw_curves(part, own), f"Regret and crashes against trials: {name}, {cases}")
        return f"<h3>{escape(name)}, {cases}</h3>{drawn}"

    banded = "; ".join(label(method) for method, style in look.items() if style.banded)
    marks = f"{grids.MARKS['lead']} is a sure lead of ours over it, {grids.MARKS['lose']} a sure loss."
    published = plots.draw_published(summary, look)
    return [
        *(
            [_kept("<h2>Published problems</h2>", _soft(_PUBLISHED), _picture(published, "Published problems"))]
            if published
            else []
        ),
        *(_kept(f"<h3>{escape(problem)}</h3>", grids.published(summary, problem)) for problem in judged(summary)),
        _kept("<h2>Overview</h2>", _soft("Mean over cases; the best first."), grids.overview(summary)),
        _kept("<h2>Regret and crashes</h2>", _soft(f"{_CURVES} {banded}."), curves("All cases", summary)),
        *(_kept(curves(name[0].upper() + name[1:], part)) for name, part in summary.groups.items()),
        _kept(
            "<h2>Wasted trials and time</h2>",
            _picture(plots.draw_effort(summary, look), "Wasted trials and seconds per suggestion"),
        ),
        _kept(
            "<h2>Regret on each family</h2>",
            _soft(f"Mean regret at the end; darker is worse. {_MAPS} {marks}"),
            grids.regrets(summary),
        ),
        _kept(
            "<h2>Crashes on each family</h2>",
            _soft(f"Crashes in percent of the trials; darker is more. {_MAPS}"),
            grids.crashes(summary),
        ),
        _kept(
            "<h2>Regret against trials on each family</h2>",
            _picture(plots.draw_families(summary, look), "Mean regret against trials, a panel each"),
        ),
    ]


def _kept(*parts: str) -> str:
    """What stays on one page in print."""
    return f"<section class='kept'>{''.join(parts)}</section>"


def _soft(words: str) -> str:
    return f"<p class='soft'>{_text(words)}</p>"


def _text(words: str) -> str:
    """Escaped, and a number stays with its percent sign."""
    return escape(words).replace(" %", "&nbsp;%")


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_emphasised(line)}</li>' for line in lines)}</ul>" if lines else ""


def _emphasised(line: str) -> str:
    """A sentence with its verdict in bold."""
    words = next((words for words in VERDICTS.values() if line.startswith(words)), "")
    return f"<b>{words}</b>{_text(line.removeprefix(words))}" if words else _text(line)


def _definitions() -> str:
    terms = "".join(f"<dt>{escape(term)}</dt><dd>{_text(words)}</dd>" for term, words in DEFINITIONS.items())
    return f"<h2>Definitions</h2><dl>{terms}</dl>"


def _origin(origin: BenchmarkOrigin) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    left = _list([f"{label(method)}: {why}" for method, why in origin.left_out.items()])
    return (
        f"<h2>How it was made</h2><p><code>{escape(origin.command)}</code></p>"
        f"<p>{escape(versions)}; {counted(origin.cores, 'core')}.</p>"
        f"<h3>Methods left out</h3>{left or '<p>None.</p>'}"
    )
