"""The report of a study as one HTML file, and its figures. `study_plots` draws them.

May import every other layer.
"""

from html import escape
from pathlib import Path

from crashbo.app import html_page
from crashbo.app.bench import table
from crashbo.app.gathered import Gathered
from crashbo.app.text import value_text
from crashbo.version import __version__

_DPI = 130


def write(gathered: Gathered, path: Path, pngs: Path | None = None) -> list[Path]:
    """Write the report, and its figures if `pngs` names a folder; returns the paths of the figures."""
    from crashbo.app import plots, study_plots  # only here: matplotlib is an extra, and slow to import

    drawn = {name: plots.png(figure, _DPI) for name, figure in study_plots.draw_all(gathered).items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_html(gathered, drawn), encoding="utf-8")
    if pngs is None:
        return []
    pngs.mkdir(parents=True, exist_ok=True)
    for name, png in drawn.items():
        (pngs / f"{name}.png").write_bytes(png)
    return [pngs / f"{name}.png" for name in drawn]


def to_html(gathered: Gathered, drawn: dict[str, bytes]) -> str:
    """The report as HTML."""
    name, label = gathered.definition.name, gathered.definition.label
    goal = f"{'highest' if gathered.definition.study.direction == 'maximize' else 'lowest'} {label}"
    parts = [
        f"<h1>{escape(name)}</h1><p class='soft'>{escape(goal)} · {gathered.when} · crashbo {__version__}</p>",
        _numbers(gathered),
        _findings(gathered),
        _thresholds(gathered),
        _second_look(gathered),
        *(html_page.picture(png, title) for title, png in drawn.items()),
        _blame(gathered),
        "<h2>Trials</h2>",
        _trials(gathered),
    ]
    return html_page.page(f"{name} · crashbo", parts)


def _numbers(g: Gathered) -> str:
    counts = [(sum(t.state == state for t in g.trials), what) for what, state in _STATES]
    cells = [(str(count), what) for count, what in counts if count or what != "pending"]
    if g.best is not None:
        unit = g.definition.study.units.get("cost", "")
        cells.append((f"{value_text(g.best.cost)} {unit}", f"best, trial {g.best.number}"))
    return html_page.numbers(cells)


_STATES = (("successes", "success"), ("crashes", "crash"), ("voids", "void"), ("pending", "pending"))


def _findings(g: Gathered) -> str:
    if g.best is None:
        return "<p>No trial has succeeded yet.</p>"
    units, recommended = g.definition.study.units, g.recommended
    head = ["", f"best, trial {g.best.number}", "recommended"]
    cost = f"{g.definition.label} {units.get('cost', '')}"
    expected, p_safe, params = "", "", {}
    if recommended is not None:
        mean, low, high = map(value_text, recommended["cost"])
        expected, p_safe = f"{mean} (90 %: {low} to {high})", f"{recommended['p_safe']:.2f}"
        params = recommended["params"]
    rows = [[cost, value_text(g.best.cost), expected], ["P(safe)", "succeeded", p_safe]]
    for name in g.definition.space.parameters:
        values = (value_text(of.get(name)) for of in (g.best.params, params))
        rows.append([f"{name} {units.get(name, '')}", *values])
    return "<h2>Settings</h2>" + html_page.table(head, rows)


def _thresholds(g: Gathered) -> str:
    rows = []
    for name, level in g.levels.items():
        ends = level.interval or (None, None)
        how = "learnt" if level.learned else "given"
        unit = g.definition.study.units.get(name, "")
        rows.append([f"{name} {unit}", *map(value_text, (level.value, *ends)), how, level.words])
    return "<h2>Crash thresholds</h2>" + html_page.table(["", "value", "5 %", "95 %", "", ""], rows) if rows else ""


def _second_look(g: Gathered) -> str:
    """What speaks against the models, and advice."""
    if not g.findings:
        return ""
    said = "".join(f"<li>{escape(f.words)} <span class='soft'>{escape(f.remedy)}</span></li>" for f in g.findings)
    return f"<h2>Second look</h2><ul>{said}</ul>"


def _blame(g: Gathered) -> str:
    names = [c.name for c in g.definition.study.constraints]
    if not g.blame or len(names) < 2:
        return ""
    reasons = {t.number: t.reason for t in g.trials}
    rows = [[str(n), *(f"{of[name]:.2f}" for name in names), reasons[n]] for n, of in g.blame.items()]
    words = "<p class='soft'>How likely each constraint was violated in each crash; they need not sum to one.</p>"
    return "<h2>Blame</h2>" + words + html_page.table(["crash", *names, "reason"], rows)


def _trials(g: Gathered) -> str:
    columns = [c for c in table.columns(g.definition, g.trials) if c[1] != "origin"]
    rows = [[value_text(table.cell(t, column)) for column in columns] for t in g.trials]
    return html_page.table([name for _, name in columns], rows, [t.state for t in g.trials])
