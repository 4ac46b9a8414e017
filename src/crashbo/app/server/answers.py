"""What the service answers: its form, for the OpenAPI document, and how it is put together.

May import every other layer.
"""

from dataclasses import asdict
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from crashbo.app.bench import table
from crashbo.app.bench.definition import Definition
from crashbo.app.server.live import Live
from crashbo.integrations.optuna.comparing import SaidOfTwo
from crashbo.integrations.optuna.ledger import Entry
from crashbo.optimizer.records import Constraint, Trial
from crashbo.search.space import Choice, Context, Int, Parameter
from crashbo.version import __version__

_PARAMS = {"knee": 0.31, "hip": 0.62}
_TRIAL = {
    "number": 7,
    "params": _PARAMS,
    "state": "success",
    "p_safe": 0.93,
    "cost": 0.71,
    "measured": {"current": 96.3},
    "reason": "",
    "blame": [],
    "censored": [],
    "origin": "search",
    "admissible": True,
    "repeats": None,
    "p_model": 0.95,
    "reached": {},
    "rises": {},
    "as_run": {},
    "against": None,
}
_MOST_ROWS = 500  # of a table, that are shown before it is imported


def _example(answer: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [answer]})


class Error(BaseModel):
    """The error in one sentence."""

    model_config = _example({"error": "trial must be one of this study's; got number 9. See its trials."})

    error: str


class TrialAnswer(BaseModel):
    """A trial, and what came of it."""

    model_config = _example(_TRIAL)

    number: int
    params: dict[str, Any]
    state: str
    p_safe: float | None
    cost: float | dict[str, float] | None
    measured: dict[str, float]
    reason: str
    blame: list[str]
    censored: list[str]
    origin: str
    admissible: bool
    repeats: int | None
    p_model: float | None
    reached: dict[str, float]
    rises: dict[str, float]
    as_run: dict[str, Any]
    against: int | None


class ComparisonAnswer(BaseModel):
    """Which of two trials was better, or that both were about the same."""

    model_config = _example({"id": "p1:0", "better": 7, "worse": 5, "tie": False, "at": 1.8e9, "who": "Ann"})

    id: str
    better: int
    worse: int
    tie: bool
    at: float
    who: str
    undone: bool
    undone_by: str


class RankedAnswer(BaseModel):
    """A trial that was compared or has a cost: mean and standard deviation of its hidden cost, and whom it beat."""

    number: int
    mean: float
    std: float
    beat: list[int]
    lost_to: list[int]
    tied_with: list[int]


class EntryAnswer(TrialAnswer):
    """A trial, and what else the store knows about it."""

    model_config = _example(_TRIAL | {"open": False, "who": "Ann", "history": []})

    queued: bool
    choosing: bool
    open: bool
    late: bool
    lease: float | None
    at: float
    who: str
    began: float | None
    ended: float | None
    corrections: int
    history: list[dict[str, Any]]


class LeaseAnswer(BaseModel):
    """When a lease ends, in seconds since 1970."""

    until: float


class LevelAnswer(BaseModel):
    """A crash threshold."""

    told: int
    number: int
    value: float | None
    interval: list[float | None] | None
    learned: bool
    proven: float | None
    words: str
    limit: float | None


class FindingAnswer(BaseModel):
    """What speaks against the models, or advice."""

    kind: str
    words: str
    trials: list[int]
    remedy: str
    advice: bool
    strength: float


class GuardAnswer(BaseModel):
    """Readings at which a trial that runs is to be stopped, by constraint; null where none is known yet."""

    model_config = _example({"limits": {"current": 108.2}, "sides": {"current": "above"}})

    limits: dict[str, float | None]
    sides: dict[str, str]


class FrontAnswer(BaseModel):
    """Of several goals: the trials that no other beats in all of them, and the volume of what they beat."""

    trials: list[int]
    hypervolume: float
    reference: dict[str, float] | None


class BestAnswer(BaseModel):
    """The best trial so far, or the front of several goals, and what the models recommend."""

    best: TrialAnswer | None
    front: FrontAnswer | None
    recommended: dict[str, Any] | None


class InsightAnswer(BaseModel):
    """What the models say about the trials."""

    levels: dict[str, LevelAnswer]
    recommended: dict[str, Any] | None
    blame: dict[str, dict[str, float]]
    influence: dict[str, dict[str, float]]
    exhausted: bool
    front: FrontAnswer | None
    told: int
    findings: list[FindingAnswer] | None
    expected: dict[str, Any]
    history: dict[str, list[LevelAnswer]]
    ranking: list[RankedAnswer]


class SliceAnswer(BaseModel):
    """Cost and P(safe) over one or two parameters."""

    axes: list[str]
    grid: list[list[Any]]
    at: dict[str, Any]
    cost: list[Any] | dict[str, list[Any]] | None
    cost_std: list[Any] | dict[str, list[Any]] | None
    p_safe: list[Any]
    forbidden: list[Any] | None


class StateAnswer(BaseModel):
    """Everything that the page shows.

    Of what is named in `unchanged` only the news is sent to a client that has said what it knows: the trials that
    changed, and nothing (null) for `insight`.
    """

    revision: int
    boot: str
    thinking: bool
    ready: bool
    version: str
    editions: dict[str, int]
    unchanged: list[str]
    read_only: bool
    halted: dict[str, Any] | None
    study: dict[str, Any]
    trials: list[EntryAnswer]
    best: int | None
    comparisons: list[ComparisonAnswer]
    films: dict[str, str]
    insight: InsightAnswer | None


class StudyAnswer(BaseModel):
    """One of the studies in the store."""

    name: str
    trials: int
    began: float | None
    here: bool


class ImportAnswer(BaseModel):
    """What an import does, or has done."""

    applied: bool
    comparisons: int
    new: int
    known: int
    rows: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    beyond: list[dict[str, Any]]
    notes: list[dict[str, Any]]


class HaltAnswer(BaseModel):
    """Since when no trial is handed out, by whom and why; null if they are."""

    halted: dict[str, Any] | None


class KnownState(NamedTuple):
    """What a client has: the boot and the editions of its last answer."""

    boot: str = ""
    trials: int = 0
    insight: int = 0


def state_of(live: Live, known: KnownState) -> dict[str, Any]:
    """Everything that the page shows, without what a client knows: then only the trials that changed."""
    entries, changes, same = live.bench.entries(), live.changes, known.boot == live.boot
    definition, comparisons = live.bench.definition, live.bench.comparisons()
    best = live.bench.best(e.trial for e in entries)
    changes.note(entries, (live.picture, live.expected, live.history, live.findings))
    unchanged = [name for name in ("insight",) if same and known.insight == changes.insight]
    unchanged += ["trials"] if same and known.trials <= changes.trials else []
    sent = changes.since(known.trials) if "trials" in unchanged else entries
    return {
        **live.signs(),
        "version": __version__,
        "editions": {"trials": changes.trials, "insight": changes.insight},
        "unchanged": unchanged,
        "read_only": live.bench.ledger.read_only,
        "halted": live.bench.halted,
        "study": study_out(definition),
        "trials": [entry_out(e) for e in sent],
        "best": None if best is None else best.number,
        "comparisons": [comparison_out(said) for said in comparisons],
        "films": live.films.known([e.trial.number for e in entries]),
        "insight": None if "insight" in unchanged else insight_of(live),
    }


def comparison_out(said: SaidOfTwo) -> dict[str, Any]:
    """A comparison for clients."""
    more = {name: getattr(said, name) for name in ("id", "at", "who", "undone", "undone_by")}
    return {**asdict(said.comparison), **more}


def insight_of(live: Live) -> dict[str, Any] | None:
    """What the models say about the trials; None before one was told."""
    if live.picture is None:
        return None
    picture = {name: value for name, value in asdict(live.picture).items() if name not in ("digest", "points")}
    return {
        **picture,
        "told": len(live.picture.digest),
        "findings": findings_of(live),
        "expected": {number: asdict(e) for number, e in live.expected.items()},
        "history": {name: [asdict(level) for level in levels] for name, levels in live.history.items()},
    }


def findings_of(live: Live) -> list[dict[str, Any]] | None:
    """What in the trials speaks against the models, the strongest first; then advice. None until it is known."""
    return None if live.findings is None else [asdict(finding) for finding in live.findings]


def guard_of(live: Live, trial: Trial | None = None) -> dict[str, Any]:
    """Limits for whoever watches a trial while it runs."""
    return {"limits": live.limits(trial), "sides": {c.name: c.side for c in live.bench.definition.study.measured}}


def study_out(definition: Definition) -> dict[str, Any]:
    """The definition of the study, for clients."""
    units, risk = definition.study.units, definition.options.get("risk")
    return {
        "name": definition.name,
        "direction": definition.study.direction,
        "compared": definition.study.compared,
        "cost": {"label": definition.label, "unit": units.get("cost", "")},
        "goals": [asdict(goal) for goal in definition.goals],
        "risk": None if risk is None else {"kind": type(risk).__name__, **vars(risk)},
        "parameters": [
            {
                "name": name,
                "unit": units.get(name, ""),
                **_kind(p),
                "when": {parent: list(values) for parent, values in (p.when or {}).items()} or None,
            }
            for name, p in definition.space.parameters.items()
        ],
        "rules": [rule.words for rule in definition.study.rules],
        "constraints": [
            {
                "name": c.name,
                "measured": isinstance(c, Constraint),
                "side": getattr(c, "side", "above"),
                "censored": c.censored,
                "unit": units.get(c.name, ""),
                "threshold": c.threshold,
            }
            for c in definition.study.constraints
        ],
    }


def _kind(p: Parameter) -> dict[str, Any]:
    """What values a parameter has, for clients."""
    if isinstance(p, Choice):
        return {"kind": "choice", "options": list(p.options), "ordered": p.ordered}
    kind = "int" if isinstance(p, Int) else "context" if isinstance(p, Context) else "float"
    return {"kind": kind, "low": p.low, "high": p.high, "log": p.log, "step": getattr(p, "step", None)}


_MORE = ("queued", "choosing", "open", "late", "lease", "at", "who", "began", "ended", "corrections", "history")


def entry_out(entry: Entry) -> dict[str, Any]:
    """A trial for clients."""
    return {**asdict(entry.trial), **{name: getattr(entry, name) for name in _MORE}}


def plan_out(plan: table.ImportPlan, applied: bool) -> dict[str, Any]:
    """What an import does, for clients."""
    rows = [{"line": r.line, "id": r.id, "params": r.params, **r.told.out()} for r in plan.new[:_MOST_ROWS]]
    return {
        "applied": applied,
        "comparisons": len(plan.pairs),
        "new": len(plan.new),
        "known": len(plan.known) + len(plan.changed),
        "rows": rows,
        "changed": [{"line": row.line, "number": number} for row, number in plan.changed],
        "beyond": [{"line": row.line, "words": words} for row, words in plan.beyond],
        "notes": [{"line": line, "words": words} for line, words in plan.notes[:_MOST_ROWS]],
    }


def studies_of(live: Live) -> list[dict[str, Any]]:
    """The studies in the store."""
    here = live.bench.ledger.name
    return [{**study, "here": study["name"] == here} for study in live.bench.ledger.neighbours()]
