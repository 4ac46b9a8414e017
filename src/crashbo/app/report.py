"""The report of a study as one HTML file, and its figures. `study_plots` draws them.

May import every other layer.
"""

import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashbo.app import html_page
from crashbo.app.gathered import Gathered, gather
from crashbo.app.states import LOOKS
from crashbo.app.text import counted, value_text
from crashbo.app.trial_table import shown_columns
from crashbo.optimizer.records import Trial
from crashbo.optimizer.tables.columns import TableColumn, cell
from crashbo.search.risk import Budget, MinSafe, Paper, Price
from crashbo.search.space import Choice, Context, Float, Int
from crashbo.version import __version__

if TYPE_CHECKING:
    from crashbo.app.bench import Bench

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


def check_places(path: Path, pngs: Path | None = None) -> None:
    """Raise the OSError that `write` would raise; what is there stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    path.open("ab").close()
    if is_new:
        path.unlink()
    if pngs is not None:
        pngs.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=pngs):
            pass


def of_bench(bench: "Bench") -> str:
    """The report of a study in a store, gathered and drawn now."""
    from crashbo.app import plots, study_plots
    from crashbo.app.bench.table import subject_of  # only here: a store needs Optuna

    gathered = gather(subject_of(bench))
    return to_html(gathered, {n: plots.png(f, _DPI) for n, f in study_plots.draw_all(gathered).items()})


def file_name(study: str) -> str:
    """The file name of a study's report, in letters that every system takes."""
    return "".join(c if (c.isascii() and c.isalnum()) or c in "-_." else "_" for c in study) + ".html"


def to_html(gathered: Gathered, drawn: dict[str, bytes]) -> str:
    """The report as HTML."""
    name = gathered.titled.name
    goal = " and ".join(goal.wanted for goal in gathered.titled.goals)
    if gathered.titled.study.compared:
        goal = "the better of two trials"
    parts = [
        f"<h1>{escape(name)}</h1><p class='soft'>{escape(goal)}{_dates(gathered)}</p>",
        _numbers(gathered),
        _findings(gathered),
        _ranking(gathered),
        _thresholds(gathered),
        _second_look(gathered),
        *(html_page.picture(png, title) for title, png in drawn.items()),
        _blame(gathered),
        _bounds(gathered),
        f"<div class='whole'><h2>Trials</h2>{_trials(gathered)}{_written(gathered)}</div>",
    ]
    return html_page.page(f"{name} · crashbo", parts)


def _numbers(g: Gathered) -> str:
    counts = [(sum(t.state == state for t in g.trials), look) for state, look in LOOKS.items()]
    cells = [(str(count), look.many) for count, look in counts if count or look.counted]
    left = crashes_left(g.titled.study.risk, g.trials)
    if left is not None:
        cells.append(left)
    if g.front is not None and g.front["trials"]:
        cells += [(str(len(g.front["trials"])), "on the front"), (value_text(g.front["hypervolume"]), "hypervolume")]
    if g.best is not None:
        unit = g.titled.study.units.get("cost", "")
        figure = f"#{g.best.number}" if g.best.cost is None else f"{value_text(g.best.cost)} {unit}"
        cells.append((figure, f"best, trial {g.best.number}"))
    return html_page.numbers(cells)


def crashes_left(risk: Any, trials: Sequence[Trial]) -> tuple[str, str] | None:
    """How many crashes a budget still allows, as a number and what it counts; None without a budget."""
    if not isinstance(risk, Budget):
        return None
    left = max(0, risk.crashes - sum(t.state == "crash" for t in trials))
    return f"{left} of {risk.crashes}", "crashes left"


def risk_words(risk: Any) -> str:
    """A study's appetite for risk, in words."""
    if isinstance(risk, Budget):
        return f"at most {counted(risk.crashes, 'crash', 'crashes')}" + (
            f" in {risk.trials} trials" if risk.trials is not None else ""
        )
    if isinstance(risk, Price):
        return f"a crash costs as much as {risk.crash:g} trials"
    if isinstance(risk, MinSafe):
        return f"P(safe) at least {risk.p:.0%}"
    if risk is None:
        return "the usual price of a crash"
    return "the paper's rule" if isinstance(risk, Paper) else str(risk)


def _dates(g: Gathered) -> str:
    """From when to when trials were told."""
    told = sorted(filter(None, (of.get("told_at") for of in g.more)))
    days = [when[:10] for when in told]
    if not days:
        return ""
    return f" · told from {days[0]} to {days[-1]}" if days[0] != days[-1] else f" · told on {days[0]}"


def _written(g: Gathered) -> str:
    return f"<footer>Times are UTC. Written {g.when} by crashbo {__version__}.</footer>"


def _bounds(g: Gathered) -> str:
    """The parameters with their bounds, the risk, and what is known of the constraints."""
    units, rows = g.titled.study.units, []
    for name, p in g.titled.space.parameters.items():
        more = []
        if isinstance(p, Choice):
            span = ", ".join(map(str, p.options))
            more += ["in this order"] if p.ordered else []
        else:
            span = f"{value_text(p.low)} to {value_text(p.high)} {units.get(name, '')}".rstrip()
            kinds = (
                ("whole numbers", isinstance(p, Int)),
                ("logarithmic", p.log),
                ("met, not chosen", isinstance(p, Context)),
            )
            more += [word for word, is_so in kinds if is_so]
            more += [f"in steps of {value_text(p.step)}"] if isinstance(p, Float) and p.step is not None else []
        more += [f"when {g.titled.space.conditions.words(name)}"] if p.when else []
        rows.append([name, span, ", ".join(more)])
    rows += [["rule", rule.words, ""] for rule in g.titled.study.rules]
    risk = f"<p class='soft'>Risk: {escape(risk_words(g.titled.study.risk))}.</p>"
    return "<h2>Bounds and risk</h2>" + html_page.table(["parameter", "from the study's definition", ""], rows) + risk


def _front(g: Gathered) -> str:
    """The trials on the front of several goals, and a compromise."""
    members = [t for t in g.trials if g.front is not None and t.number in g.front["trials"]]
    if not members:
        return "<p>No trial has succeeded in all goals yet.</p>"
    units, goals = g.titled.study.units, g.titled.goals
    names = list(g.titled.space.parameters)
    head = ["", *(_titled(goal.label, goal.unit) for goal in goals), *(_titled(n, units.get(n, "")) for n in names)]
    rows = [
        [
            f"trial {t.number}",
            *(value_text(goal.of(t.cost)) for goal in goals),
            *(value_text(t.params[n]) for n in names),
        ]
        for t in sorted(members, key=lambda t: goals[0].of(t.cost))
    ]
    if (found := g.recommended) is not None:
        expected = [value_text(found["cost"][goal.name][0]) for goal in goals]
        words = f"a compromise, expected, P(safe) {found['p_safe']:.2f}"
        rows.append([words, *expected, *(value_text(found["params"].get(n)) for n in names)])
    worst = ", ".join(f"{name} {value_text(value)}" for name, value in ((g.front or {}).get("reference") or {}).items())
    said = (
        f"<p class='soft'>No other trial beats these in all goals. The hypervolume is that up to {escape(worst)}.</p>"
    )
    return "<h2>Front</h2>" + said + html_page.table(head, rows)


def _titled(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _findings(g: Gathered) -> str:
    if g.titled.study.objectives:
        return _front(g)
    if g.best is None:
        return "<p>No trial has succeeded yet.</p>"
    units, recommended = g.titled.study.units, g.recommended
    head = ["", f"best, trial {g.best.number}", "recommended"]
    cost = "hidden cost" if g.ranking else f"{g.titled.label} {units.get('cost', '')}"
    expected, p_safe, params = "", "", {}
    if recommended is not None:
        mean, low, high = map(value_text, recommended["cost"])
        expected, p_safe = f"{mean} (90 %: {low} to {high})", f"{recommended['p_safe']:.2f}"
        params = recommended["params"]
    known = {r.number: f"{value_text(r.mean)} ± {value_text(r.std)}" for r in g.ranking}
    best = known.get(g.best.number) or value_text(g.best.cost)
    rows = [[cost, best, expected], ["P(safe)", "succeeded", p_safe]]
    for name in g.titled.space.parameters:
        values = (value_text(of.get(name)) for of in (g.best.ran, params))
        rows.append([f"{name} {units.get(name, '')}", *values])
    return "<h2>Settings</h2>" + html_page.table(head, rows)


def _ranking(g: Gathered) -> str:
    """The compared trials, the best first, with their uncertainty, and who beat whom."""
    if not g.ranking:
        return ""
    rows = [
        [str(i), str(r.number), value_text(r.mean), value_text(r.std)]
        + [", ".join(map(str, others)) for others in (r.beat, r.lost_to, r.tied_with)]
        for i, r in enumerate(g.ranking, start=1)
    ]
    better = "higher" if g.titled.study.direction == "maximize" else "lower"
    words = f"<p class='soft'>Mean and standard deviation of the hidden cost: {better} is better.</p>"
    head = ["", "trial", "hidden cost", "±", "better than", "worse than", "as good as"]
    return "<h2>Ranking</h2>" + words + html_page.table(head, rows)


def _thresholds(g: Gathered) -> str:
    rows = []
    for name, level in g.levels.items():
        ends = level.interval or (None, None)
        how = "learnt" if level.learned else "given"
        unit = g.titled.study.units.get(name, "")
        rows.append([f"{name} {unit}", *map(value_text, (level.value, *ends)), how, level.words])
    return "<h2>Crash thresholds</h2>" + html_page.table(["", "value", "5 %", "95 %", "", ""], rows) if rows else ""


def _second_look(g: Gathered) -> str:
    """What speaks against the models, and advice."""
    if not g.findings:
        return ""
    said = "".join(f"<li>{escape(f.words)} <span class='soft'>{escape(f.remedy)}</span></li>" for f in g.findings)
    return f"<h2>Second look</h2><ul>{said}</ul>"


def _blame(g: Gathered) -> str:
    names = [c.name for c in g.titled.study.constraints]
    if not g.blame or len(names) < 2:
        return ""
    reasons = {t.number: t.reason for t in g.trials}
    rows = [[str(n), *(f"{of[name]:.2f}" for name in names), reasons[n]] for n, of in g.blame.items()]
    words = "<p class='soft'>How likely each constraint was violated in each crash; they need not sum to one.</p>"
    return "<h2>Blame</h2>" + words + html_page.table(["crash", *names, "reason"], rows)


def _trials(g: Gathered) -> str:
    columns = shown_columns(g.titled.study, g.trials)
    names = {"number": "#", "reason": "note", "cost": g.titled.label, "p_safe": "P(safe)"}
    head = [_with_unit(g, c, names) for c in columns]
    rows = [[value_text(cell(t, column), 4) for column in columns] for t in g.trials]
    if g.more:  # at a bench
        head += ["told", "by", "took (s)"]
        times = ([_date(of.get("told_at")), of.get("who") or "", value_text(of.get("took"))] for of in g.more)
        rows = [row + when for row, when in zip(rows, times, strict=True)]
    return html_page.table(head, rows, [t.state for t in g.trials])


def _date(told_at: str | None) -> str:
    """Day and time, to the minute, in one piece."""
    return (told_at or "")[:16].replace("T", "\u00a0").replace("-", "\u2011")


def _with_unit(g: Gathered, column: TableColumn, names: Mapping[str, str]) -> str:
    kind, name, _ = column
    unit = g.titled.study.units.get(name, "") if kind or name == "cost" else ""
    return _titled(name if kind else names.get(name, name), unit)
