"""A study as one HTML file that can be mailed around, and its figures. Writes; `study_plots` draws.

May import every other layer. No script, nothing loaded from elsewhere: it opens in any viewer, and prints.
"""

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crashbo.app.bench import Definition, table
from crashbo.app.gathered import Gathered
from crashbo.version import __version__

_STYLE = Path(__file__).parent / "page" / "report.css"


def figures(gathered: Gathered) -> dict[str, bytes]:
    """The figures as PNGs, by name."""
    from crashbo.app import study_plots  # only here: matplotlib is an extra, and slow to import

    drawn = study_plots.draw_all(gathered)
    out = {}
    for name, figure in drawn.items():
        buffer = io.BytesIO()
        study_plots.save(figure, buffer)
        out[name] = buffer.getvalue()
    return out


def write(gathered: Gathered, path: Path, pngs: Path | None = None) -> list[Path]:
    """Write the report, and its figures where `pngs` names a folder; gives the figures' paths."""
    drawn = figures(gathered)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_html(gathered, drawn), encoding="utf-8")
    if pngs is None:
        return []
    pngs.mkdir(parents=True, exist_ok=True)
    written = []
    for name, png in drawn.items():
        written.append(pngs / f"{name}.png")
        written[-1].write_bytes(png)
    return written


def to_html(gathered: Gathered, drawn: dict[str, bytes]) -> str:
    """The report as one text."""
    name = html.escape(gathered.definition.name)
    parts = [
        f"<h1>{name}</h1><p class='soft'>{html.escape(_goal(gathered.definition))} · {gathered.when} · "
        f"crashbo {__version__}</p>",
        _numbers(gathered),
        _findings(gathered),
        _thresholds(gathered),
        *(_figure(title, png) for title, png in drawn.items()),
        _blame(gathered),
        "<h2>Trials</h2>",
        _trials(gathered),
    ]
    style = _STYLE.read_text(encoding="utf-8")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{name} · crashbo</title><style>{style}</style></head>\n<body><main>"
        + "\n".join(filter(None, parts))
        + "</main></body></html>\n"
    )


def _goal(definition: Definition) -> str:
    return f"{'highest' if definition.study.direction == 'maximize' else 'lowest'} {definition.label}"


def _numbers(g: Gathered) -> str:
    counts = [(what, sum(t.state == state for t in g.trials)) for what, state in _STATES]
    cells = [f"<div><b>{count}</b>{what}</div>" for what, count in counts if count or what != "pending"]
    if g.best is not None:
        unit = g.definition.study.units.get("cost", "")
        best = html.escape(f"{_number(g.best.cost)} {unit}")
        cells.append(f"<div><b>{best}</b>best, trial {g.best.number}</div>")
    return f"<div class='numbers'>{''.join(cells)}</div>"


_STATES = (("successes", "success"), ("crashes", "crash"), ("voids", "void"), ("pending", "pending"))


def _findings(g: Gathered) -> str:
    if g.best is None:
        return "<p>No trial has succeeded yet.</p>"
    units, told = g.definition.study.units, g.recommended
    head = ["", f"best, trial {g.best.number}", "recommended"]
    cost = f"{g.definition.label} {units.get('cost', '')}"
    expected = (
        f"{_number(told['cost'][0])} (90 %: {_number(told['cost'][1])} to {_number(told['cost'][2])})" if told else ""
    )
    rows = [[cost, _number(g.best.cost), expected], ["P(safe)", "succeeded", f"{told['p_safe']:.2f}" if told else ""]]
    for name in g.definition.space.parameters:
        suggested = _number(told["params"].get(name)) if told else ""
        rows.append([f"{name} {units.get(name, '')}", _number(g.best.params.get(name)), suggested])
    return "<h2>Settings</h2>" + _table(head, rows)


def _thresholds(g: Gathered) -> str:
    rows = []
    for name, level in g.levels.items():
        low, high = level.interval or (None, None)
        how = "learnt" if level.learned else "given"
        rows.append(
            [
                f"{name} {g.definition.study.units.get(name, '')}",
                _number(level.value),
                _number(low),
                _number(high),
                how,
            ]
        )
    return "<h2>Crash thresholds</h2>" + _table(["", "value", "5 %", "95 %", ""], rows) if rows else ""


def _blame(g: Gathered) -> str:
    names = [c.name for c in g.definition.study.constraints]
    if not g.blame or len(names) < 2:
        return ""
    reasons = {t.number: t.reason for t in g.trials}
    rows = [[str(n), *(f"{of[name]:.2f}" for name in names), reasons[n]] for n, of in g.blame.items()]
    words = "<p class='soft'>How likely each constraint was violated in each crash; they need not sum to one.</p>"
    return "<h2>Blame</h2>" + words + _table(["crash", *names, "reason"], rows)


def _trials(g: Gathered) -> str:
    shown = [c for c in table.columns(g.definition, g.trials) if c[1] != "origin"]
    rows = [[_number(table.cell(t, column)) for column in shown] for t in g.trials]
    return _table([name for _, name in shown], rows, [t.state for t in g.trials])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str] = ()) -> str:
    top = "".join(f"<th>{html.escape(h)}</th>" for h in head)
    body = ""
    for i, row in enumerate(rows):
        cells = "".join(f"<td>{html.escape(c)}</td>" for c in row)
        body += f"<tr class='{classes[i] if classes else ''}'>{cells}</tr>"
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _figure(title: str, png: bytes) -> str:
    data = base64.b64encode(png).decode("ascii")
    return f"<figure><img alt='{html.escape(title)}' src='data:image/png;base64,{data}'></figure>"


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
