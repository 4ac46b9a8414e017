"""A study at a glance, for notebooks: the HTML of an Optimizer and of a Result. Found by way of `crashbo.lazy`.

May import optimizer and below. All styles stand in the elements: notebooks keep nothing else.
"""

from collections.abc import Mapping, Sequence
from html import escape

from crashbo.app.states import CRASH, LOOKS
from crashbo.app.subject import Titled
from crashbo.app.text import counted, value_text
from crashbo.app.trial_table import shown_columns
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Trial, cost_words
from crashbo.optimizer.tables.columns import cell

_LAST = 5  # trials
_WIDEST = 12  # columns of their table
_FITTED = 200  # told trials up to which the models are fitted for it; beyond, whoever asks for them waits

# It takes the colours of the page around it, light or dark: text inherits, lines are half transparent.
_GREY = "1px solid rgba(128,128,128,0.4)"
_BOX = f"font-size:13px;line-height:1.45;max-width:60em;border:{_GREY};border-radius:6px;padding:10px 14px"
_SOFT = "opacity:0.72"
_CELL = "text-align:left;padding:2px 10px 2px 0;border:none;background:transparent;white-space:nowrap"
_LINE = f"border-bottom:{_GREY}"
_TABLE = "border-collapse:collapse;border:none;margin:0;font-size:12px"


def html(optimizer: Optimizer, ended: str | None = None) -> str:
    """The study at a glance: what it is, what came of its trials, the best, the thresholds, the last trials."""
    titled, trials = Titled("", optimizer.study), optimizer.trials
    kind = "Optimizer" if ended is None else f"Result · {ended}"
    parts = [
        f"<div style='{_SOFT}'>{escape(kind)}</div>",
        f"<div>{escape(_purpose(titled))}</div>",
        _counts(trials),
        *(_line(name, words) for name, words in _findings(optimizer).items()),
        _table(titled, trials),
    ]
    return f"<div style='{_BOX}'>{''.join(filter(None, parts))}</div>"


def _purpose(titled: Titled) -> str:
    study = titled.study
    goals = "the better of two trials" if study.compared else " and ".join(goal.wanted for goal in titled.goals)
    names = list(study.space.parameters)
    over = ", ".join(names) if len(names) <= _LAST else f"{len(names)} parameters"
    return "; ".join(filter(None, [f"{goals[:1].upper()}{goals[1:]} over {over}", study.causes]))


def _counts(trials: Sequence[Trial]) -> str:
    counts = [(sum(t.state == state for t in trials), state, look) for state, look in LOOKS.items()]
    kept = [(n, state, look) for n, state, look in counts if n or state in ("success", "crash")]
    shown = [(n, state if n == 1 else look.many, state) for n, state, look in kept]
    cells = [(len(trials), "trials" if len(trials) != 1 else "trial", ""), *shown]
    each = "".join(
        f"<span style='margin-right:1.6em'><b style='font-size:17px{_colour(state)}'>{n}</b> {escape(words)}</span>"
        for n, words, state in cells
    )
    return f"<div style='margin:4px 0'>{each}</div>"


def _colour(state: str) -> str:
    return f";color:{CRASH}" if state == "crash" else ""


def _line(name: str, words: str) -> str:
    return f"<div><span style='{_SOFT}'>{escape(name)}</span> {escape(words)}</div>"


def _findings(optimizer: Optimizer) -> dict[str, str]:
    """What was found, in words by what it is."""
    study, told = optimizer.study, sum(t.counts for t in optimizer.trials)
    if not told:
        return {}
    if told > _FITTED and not optimizer.is_viewed:
        best = None if _takes_fit(optimizer) else optimizer.best
        later = {"Models": f"{told} trials take a while to fit: see `thresholds`, `recommend` and `report`"}
        return ({} if best is None else {"Best": _trial_words(best, study.units)}) | later
    found = {}
    if study.objectives:
        found["Front"] = f"{counted(len(optimizer.front), 'trial')}, hypervolume {optimizer.hypervolume():.4g}"
    elif (best := optimizer.best) is not None:
        found["Best"] = _trial_words(best, study.units)
    return found | {f"Threshold of {name}": t.words for name, t in optimizer.thresholds.items()}


def _takes_fit(optimizer: Optimizer) -> bool:
    """Whether it takes a fit to say what is best."""
    return bool(optimizer.study.objectives or optimizer.study.compared or optimizer.comparisons)


def _trial_words(trial: Trial, units: Mapping[str, str]) -> str:
    cost = "" if trial.cost is None else f", {cost_words(trial.cost)} {units.get('cost', '')}".rstrip()
    params = ", ".join(f"{name} {value_text(v, 4)} {units.get(name, '')}".rstrip() for name, v in trial.ran.items())
    return f"trial {trial.number}{cost}, at {params}"


def _table(titled: Titled, trials: Sequence[Trial]) -> str:
    """The last trials."""
    last = trials[-_LAST:]
    if not last:
        return ""
    found = [c for c in shown_columns(titled.study, last) if c.header != "ran"]
    shown = [c for c in found if any(cell(t, c) not in (None, "") for t in last)]
    state = [c for c in shown if c.header == "state"]
    left = [shown[0], *state, *(c for c in shown[1:] if c not in state)][:_WIDEST]
    more = "" if len(left) == len(shown) else f"<th style='{_CELL};{_LINE}'>…</th>"
    names = ["#" if c.header == "number" else c.header for c in left]
    head = "".join(f"<th style='{_CELL};{_LINE}'>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr style='background:transparent'>"
        + "".join(f"<td style='{_CELL}{_colour(t.state)}'>{escape(_short(cell(t, c)))}</td>" for c in left)
        + "</tr>"
        for t in last
    )
    return (
        f"<div style='overflow-x:auto;margin-top:6px'><table style='{_TABLE}'>"
        f"<thead><tr style='background:transparent'>{head}{more}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _short(value: object) -> str:
    text = value_text(value, 4)
    return text if len(text) <= 40 else f"{text[:39]}…"
