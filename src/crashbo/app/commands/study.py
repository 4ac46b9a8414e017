"""`crashbo new`, `best`, `thresholds`, `trials`: a study as a whole. May import every other layer."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashbo.app.commands.common import (
    Answer,
    Refusal,
    bench_of,
    kept_option,
    number,
    params_text,
    patience,
    rule_options,
    rules_in,
    study_options,
    subject_in,
)
from crashbo.app.text import counted
from crashbo.extras import needs

if TYPE_CHECKING:
    from crashbo.app.bench import Bench, Definition
    from crashbo.app.subject import Subject

_NOTES = 20  # on rows of a file, that are printed


def add_to(commands: Any) -> None:
    """Add the commands."""
    _add_new(commands)
    best = commands.add_parser("best", help="the best trial so far, and what the models recommend")
    best.set_defaults(run=_best)
    thresholds = commands.add_parser("thresholds", help="the levels at which the machine crashes, as learnt so far")
    thresholds.set_defaults(run=_thresholds)
    trials = commands.add_parser("trials", help="all trials; CSV out and in")
    trials.add_argument("--csv", action="store_true", help="print them as CSV")
    trials.add_argument("--import", dest="file", metavar="FILE", help="add the trials of a CSV file ('-': from stdin)")
    trials.add_argument("--preview", action="store_true", help="of --import: only say what it would do")
    trials.add_argument("--beyond", action="store_true", help="of --import: rows beyond the bounds really ran there")
    trials.set_defaults(run=_trials)
    for parser in (best, thresholds, trials):
        kept_option(parser)
        study_options(parser)


def _add_new(commands: Any) -> None:
    new = commands.add_parser(
        "new",
        help="begin a study, from a TOML file or from flags",
        description="Begin a study: crashbo new jump.toml, or crashbo new jump --param knee=0:1 --constraint current",
    )
    new.add_argument("what", metavar="FILE.toml|NAME", help="a description in TOML, or a name and flags")
    new.add_argument("--param", action="append", default=[], metavar="NAME=LOW:HIGH[:log][:int]|NAME=A,B,C")
    new.add_argument("--constraint", action="append", default=[], metavar="NAME[=THRESHOLD][:below]")
    new.add_argument("--unmeasured", action="append", default=[], metavar="NAME", help="a cause that is not measured")
    new.add_argument("--compared", action="store_true", help="trials have no cost: they are compared with each other")
    new.add_argument("--maximize", action="store_true", help="maximize the cost instead of minimizing it")
    new.add_argument(
        "--objective",
        action="append",
        default=[],
        metavar="NAME=minimize|maximize",
        help="one of two or three goals, in place of the cost",
    )
    new.add_argument("--label", metavar="WORD", help="what the cost is called")
    new.add_argument(
        "--unit", action="append", default=[], metavar="NAME=UNIT", help="of cost, parameter or constraint"
    )
    risk = new.add_mutually_exclusive_group()
    risk.add_argument("--price", type=float, metavar="TRIALS", help="how many trials a crash costs (5)")
    risk.add_argument("--min-safe", type=float, metavar="P", help="lowest P(safe) of a proposal")
    risk.add_argument("--budget", metavar="CRASHES[/TRIALS]", help="maximum number of crashes")
    risk.add_argument("--paper", action="store_true", help="the paper's rule")
    new.add_argument("--noise", type=float, metavar="STD", help="standard deviation of the cost's noise, if known")
    new.add_argument("--lease", type=float, metavar="S", help="give up a trial after S seconds")
    rule_options(new, "rules of `crashbo run`")
    study_options(new)
    new.set_defaults(run=_new)


def _new(options: argparse.Namespace) -> Answer:
    needs("this command", "app", "optuna")
    from crashbo.app.bench import Bench, Definition
    from crashbo.app.bench.store import default_store

    said = _said(options)
    if options.what.endswith(".toml"):
        definition = Definition.from_toml(Path(options.what), **said)
    else:
        definition = Definition.of({"name": options.what, **said})
    store = options.store or default_store()
    Bench.create(store, definition)
    lines = [f"Study {definition.name!r} in {store}: {_described(definition)}", "Next: crashbo ask"]
    return Answer("\n".join(lines), {"study": definition.name, "store": store})


def _described(definition: "Definition") -> str:
    parameters = counted(len(definition.space.parameters), "parameter")
    goals = " and ".join(f"{goal.direction} {goal.label}" for goal in definition.goals)
    if definition.study.compared:
        goals = "trials are compared"
    return ", ".join(filter(None, [parameters, goals, definition.study.causes]))


def _said(options: argparse.Namespace) -> dict[str, Any]:
    """The flags in the form of a TOML file."""
    said: dict[str, Any] = {}
    if options.study:
        said["name"] = options.study
    units = dict(_pair(text, "--unit", "NAME=UNIT") for text in options.unit)
    if options.param:
        said["parameters"] = dict(map(_parameter, options.param))
    if options.constraint or options.unmeasured:
        said["constraints"] = dict(map(_constraint, options.constraint)) | {
            n: {"measured": False} for n in options.unmeasured
        }
    if options.objective:
        rule = "NAME=minimize or NAME=maximize"
        said["objectives"] = dict(_pair(text, "--objective", rule) for text in options.objective)
        said["units"] = {name: units.pop(name) for name in said["objectives"] if name in units}
    cost = {"label": options.label, "unit": units.pop("cost", None)}
    if any(cost.values()):
        said["cost"] = {k: v for k, v in cost.items() if v}
    for name, unit in units.items():
        table = said.get("parameters", {}).get(name, said.get("constraints", {}).get(name))
        if table is None:
            raise Refusal(f"--unit must name the cost, or a --param or --constraint given here; got {name!r}. Mend it.")
        table["unit"] = unit
    if options.maximize:
        said["direction"] = "maximize"
    if options.compared:
        said["compared"] = True
    if options.paper or options.budget or options.price is not None or options.min_safe is not None:
        said["risk"] = "paper" if options.paper else _risk(options)
    said |= {k: v for k in ("noise", "lease") if (v := getattr(options, k)) is not None}
    if rules := rules_in(options):
        said["run"] = rules
    return said


def _parameter(text: str) -> tuple[str, dict[str, Any]]:
    name, value = _pair(text, "--param", "NAME=LOW:HIGH or NAME=A,B,C")
    if "," in value:
        return name, {"options": value.split(",")}
    low, *rest = value.split(":")
    if not rest or not set(rest[1:]) <= {"log", "int"}:
        raise Refusal(f"--param must be NAME=LOW:HIGH[:log][:int] or NAME=A,B,C; got {text!r}. Mend it.")
    ends = [_float(v, "--param") for v in (low, rest[0])]
    return name, {"low": ends[0], "high": ends[1], **dict.fromkeys(rest[1:], True)}


def _constraint(text: str) -> tuple[str, dict[str, Any]]:
    head, *side = text.rsplit(":", 1) if text.endswith((":below", ":above")) else [text]
    name, _, threshold = head.partition("=")
    table: dict[str, Any] = {"side": side[0]} if side else {}
    if threshold:
        ends = [_float(v, "--constraint") for v in threshold.split("..")]
        table["threshold"] = ends if len(ends) == 2 else ends[0]
    return name, table


def _risk(options: argparse.Namespace) -> dict[str, Any]:
    if options.price is not None:
        return {"price": options.price}
    if options.min_safe is not None:
        return {"min_safe": options.min_safe}
    parts = options.budget.split("/")
    if len(parts) > 2 or not all(p.isdecimal() for p in parts):
        raise Refusal(f"--budget must be CRASHES or CRASHES/TRIALS; got {options.budget!r}. Write 5/50, for example.")
    return dict(zip(("crashes", "trials"), map(int, parts), strict=False))


def _pair(text: str, flag: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise Refusal(f"{flag} must be {form}; got {text!r}. Mend it.")
    return name, value


def _float(text: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refusal(f"{flag} must have numbers; got {text!r}. Mend it.") from None


def _best(options: argparse.Namespace) -> Answer:
    subject = subject_in(options)
    titled, best = subject.titled, subject.best
    if titled.study.objectives:
        return _front(subject)
    if best is None:
        return Answer("No success yet.", {"best": None, "recommended": None})
    with patience("fitting the models"):
        recommended = subject.overview.recommended()
    unit = titled.study.units.get("cost", "")
    figure = "" if best.cost is None else f", {titled.label} {number(best.cost, unit)}"
    lines = [f"Best so far: trial {best.number}{figure}"]
    lines += [params_text(titled, best.params)]
    if recommended is not None and recommended["cost"] is not None:
        mean, low, high = recommended["cost"]
        lines += [
            f"Recommended: expected {titled.label} {number(mean, unit)} "
            f"(90 % interval {number(low)} to {number(high, unit)}), P(safe) {recommended['p_safe']:.2f}",
            params_text(titled, recommended["params"]),
        ]
    return Answer("\n".join(lines), {"best": asdict(best), "recommended": recommended})


def _front(subject: "Subject") -> Answer:
    """The front of several goals, and a compromise."""
    from crashbo.app.trial_table import to_text

    titled, trials = subject.titled, {t.number: t for t in subject.trials}
    with patience("fitting the models"):
        seen = subject.overview if any(t.counts for t in trials.values()) else None
        front, recommended = (seen.front(), seen.recommended()) if seen is not None else (None, None)
    if front is None or not front["trials"]:
        return Answer("No success yet.", {"front": None, "recommended": None})
    members = [trials[number] for number in front["trials"]]
    worst = ", ".join(f"{name} {value:.4g}" for name, value in (front["reference"] or {}).items())
    lines = [
        f"On the front: {counted(len(members), 'trial')} that no other beats in all goals.",
        to_text(titled.study, members),
        f"Hypervolume {front['hypervolume']:.6g}, up to {worst}.",
    ]
    if recommended is not None and recommended["cost"] is not None:
        expected = [f"{g.label} {number(recommended['cost'][g.name][0], g.unit)}" for g in titled.goals]
        lines += [
            f"A compromise: expected {', '.join(expected)}, P(safe) {recommended['p_safe']:.2f}",
            params_text(titled, recommended["params"]),
        ]
    return Answer(
        "\n".join(lines), {"front": {**front, "trials": [asdict(t) for t in members]}, "recommended": recommended}
    )


def _thresholds(options: argparse.Namespace) -> Answer:
    subject = subject_in(options)
    with patience("fitting the models"):
        levels = subject.overview.levels()
    lines = []
    for name, level in levels.items():
        at = "" if level.value is None else "crashes at " if None not in (level.interval or ()) else "threshold "
        stops = "" if level.limit is None else f"; a guard stops at {level.limit:.4g}"
        lines.append(f"{name}: {at}{level.words}{stops}")
    return Answer("\n".join(lines) or "No constraint is measured.", {n: asdict(level) for n, level in levels.items()})


def _trials(options: argparse.Namespace) -> Answer:
    from crashbo.app.trial_table import to_text

    if options.file and options.kept is not None:
        raise Refusal(f"--import must go into a store; got {str(options.kept)!r}. In Python, see tell_table.")
    if options.file:
        return _import(options, bench_of(options))
    subject = subject_in(options)
    text = subject.csv if options.csv else to_text(subject.titled.study, subject.trials)
    return Answer(text.rstrip("\n"), [asdict(t) for t in subject.trials])


def _import(options: argparse.Namespace, bench: "Bench") -> Answer:
    from crashbo.app.bench import table

    text = _read(options.file)
    plan = table.plan(bench, text) if options.preview else table.load(bench, text, beyond=options.beyond)
    words = [counted(len(plan.new), "trial") + (" would be added" if options.preview else " added")]
    known = len(plan.known) + len(plan.changed)
    if known:
        words.append(f"{known} were there already")
    lines = [", ".join(words)]
    lines += [f"line {row.line} is beyond the bounds: {how}" for row, how in plan.beyond]
    lines += [
        f"line {row.line} is trial {number}, which says otherwise by now: left as it is" for row, number in plan.changed
    ]
    lines += [f"line {line}: {how}" for line, how in plan.notes[:_NOTES]]
    lines += [f"and {len(plan.notes) - _NOTES} more such notes"] * (len(plan.notes) > _NOTES)
    data = {"added": len(plan.new), "known": known, "changed": len(plan.changed)}
    return Answer("\n".join(lines), {**data, "beyond": len(plan.beyond), "preview": options.preview})


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Refusal(f"--import must be a file that can be read; got {file!r} ({error.strerror}). Check it.") from None
    except UnicodeDecodeError:
        raise Refusal(f"--import must be a text file in UTF-8; got {file!r}. Save it so.") from None
