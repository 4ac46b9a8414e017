"""`crashbo ask`, `tell`, `fix`, `undo`: one trial; `halt` and `resume`. May import every other layer."""

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from crashbo.app.commands.common import (
    Answer,
    Refusal,
    bench_of,
    kept_option,
    number,
    params_text,
    patience,
    study_options,
    subject_in,
)

if TYPE_CHECKING:
    from crashbo.app.bench import Bench, Definition
    from crashbo.optimizer.comparing import Ranked
    from crashbo.optimizer.records import Comparison, Trial
    from crashbo.optimizer.told import Told


def add_to(commands: Any) -> None:
    """Add the commands."""
    ask = commands.add_parser("ask", help="the next setting to try")
    ask.add_argument("--request", metavar="ID", help="asking again with the same id gives the same trial")
    ask.add_argument("--lease", type=float, metavar="S", help="give up the trial after S seconds")
    ask.add_argument("--context", action="append", default=[], metavar="NAME=X", help="what is met now")
    ask.set_defaults(run=_ask)
    tell = commands.add_parser("tell", help="report the outcome of a trial")
    tell.set_defaults(run=_tell)
    fix = commands.add_parser("fix", help="correct a trial that was told")
    fix.set_defaults(run=_fix)
    undo = commands.add_parser("undo", help="undo the last report on a trial")
    undo.add_argument("number", type=int, nargs="?", metavar="TRIAL", help="(default: the one told last)")
    undo.set_defaults(run=_undo)
    halt = commands.add_parser("halt", help="hand out no more trials, to anybody, until resumed")
    halt.add_argument("why", nargs="?", default="", metavar="WHY")
    halt.set_defaults(run=_halt)
    resume = commands.add_parser("resume", help="hand out trials again")
    resume.set_defaults(run=_resume)
    tell.add_argument(
        "--ran", action="append", default=[], metavar="NAME=X", help="a parameter's value that really ran"
    )
    tell.add_argument(
        "--context", action="append", default=[], metavar="NAME=X", help="what was met, where it differed"
    )
    fix.add_argument("--ran", action="append", default=[], metavar="NAME=X", help="a parameter's value that really ran")
    fix.add_argument("--beyond", action="store_true", help="it really ran beyond the bounds")
    prefer = commands.add_parser("prefer", help="say which of two trials was better")
    prefer.add_argument("better", type=int, metavar="BETTER", help="number of a trial that succeeded")
    prefer.add_argument("worse", type=int, metavar="WORSE", help="number of another")
    prefer.add_argument("--tie", action="store_true", help="both were about the same")
    prefer.add_argument("--replace", action="store_true", help="in place of what was said of these two before")
    prefer.set_defaults(run=_prefer)
    ranking = commands.add_parser("ranking", help="the compared trials, the best first, and who beat whom")
    kept_option(ranking)
    ranking.set_defaults(run=_ranking)
    for parser in (tell, fix, undo, halt, prefer):
        parser.add_argument("--who", default="", metavar="NAME", help="who says it")
    for parser in (tell, fix):
        parser.add_argument("number", type=int, metavar="TRIAL")
        parser.add_argument(
            "--cost",
            action="append",
            default=[],
            metavar="X",
            help="it succeeded, with this cost; of several goals NAME=X, once for each that was measured",
        )
        parser.add_argument("--success", action="store_true", help="it succeeded, without a cost")
        parser.add_argument("--measured", action="append", default=[], metavar="NAME=X")
        parser.add_argument("--crash", nargs="?", const=True, metavar="WHY", help="its parameters made it crash")
        parser.add_argument("--blame", action="append", default=[], metavar="NAME", help="constraint that was violated")
        parser.add_argument(
            "--censored",
            action="append",
            default=[],
            metavar="NAME",
            help="a measurement that was cut off: the true value lies there or beyond",
        )
        parser.add_argument(
            "--stopped",
            action="append",
            default=[],
            metavar="NAME=X",
            help="it was stopped before it could crash, at this reading",
        )
        parser.add_argument(
            "--reached", action="append", default=[], metavar="NAME=X", help="of a crash, the last reading before it"
        )
        parser.add_argument(
            "--rises", action="append", default=[], metavar="NAME=X", help="its largest rise from reading to reading"
        )
        parser.add_argument("--void", nargs="?", const=True, metavar="WHY", help="another fault: nothing is learnt")
        parser.add_argument("--note", metavar="WORDS", help="words to keep with it")
    for parser in (ask, tell, fix, undo, halt, resume, prefer, ranking):
        study_options(parser)


def _ask(options: argparse.Namespace) -> Answer:
    bench = bench_of(options)
    with patience("choosing the next trial"):
        trial = bench.ask(request=options.request, lease=options.lease, context=readings(options, "context"))
    definition = bench.definition
    safe = "" if trial.p_safe is None else f", P(safe) {trial.p_safe:.2f}"
    if trial.p_safe is not None and trial.p_model is not None and abs(trial.p_safe - trial.p_model) >= 0.005:
        safe += f" ({trial.p_model:.2f} by the model alone)"
    words = {"design": " (to fill the space)", "start": " (as you wished)", "told": ""}.get(trial.origin, "")
    if not trial.admissible:
        words = " (nothing is as safe as you ask: this is the safest)"
    measured = "".join(f" --measured {c.name}=..." for c in definition.study.measured)
    several = bool(definition.study.objectives)
    costs = "".join(f" --cost {goal.name}=..." if several else " --cost ..." for goal in definition.goals)
    told = " --success" if definition.study.compared else costs
    hint = f"Then: crashbo tell {trial.number}{told}{measured}, or --crash, or --void"
    if trial.against is not None:
        hint += f"\nCompare it with trial {trial.against}: crashbo prefer BETTER WORSE, or --tie"
    text = f"Trial {trial.number}{safe}{words}\n{params_text(definition.titled, trial.params)}\n{hint}"
    return Answer(text, asdict(trial))


def _tell(options: argparse.Namespace) -> Answer:
    bench = bench_of(options)
    told, definition = _told(options), bench.definition
    ran = _values(options.ran, list(definition.space.chosen), definition)
    met = _values(options.context, list(definition.space.contexts), definition, "context")
    trial = bench.tell(options.number, replace(told, as_run={**ran, **met}), who=options.who)
    return Answer(trial_text(bench.definition, trial), asdict(trial))


def _fix(options: argparse.Namespace) -> Answer:
    bench = bench_of(options)
    params = _ran(options, bench) if options.ran else None
    trial = bench.fix(options.number, _told(options), params=params, beyond=options.beyond, who=options.who)
    return Answer(f"Corrected. {trial_text(bench.definition, trial)}", asdict(trial))


def _undo(options: argparse.Namespace) -> Answer:
    bench = bench_of(options)
    if options.number is None and _last_is_comparison(bench):
        said = bench.unprefer(who=options.who)
        return Answer(f"Undone. {comparison_text(said.comparison, False)}", asdict(said))
    trial = bench.undo(options.number, who=options.who)
    return Answer(f"Undone. {trial_text(bench.definition, trial)}", asdict(trial))


def _last_is_comparison(bench: "Bench") -> bool:
    """Whether the last word of all was a comparison."""
    said = [said.at for said in bench.comparisons() if not said.undone]
    told = [e.at for e in bench.entries() if e.finished]
    return bool(said) and max(said) > max(told, default=0.0)


def _prefer(options: argparse.Namespace) -> Answer:
    bench = bench_of(options)
    said = bench.prefer(options.better, options.worse, tie=options.tie, replaces=options.replace, who=options.who)
    return Answer(comparison_text(said.comparison), asdict(said))


def _ranking(options: argparse.Namespace) -> Answer:
    subject = subject_in(options)
    with patience("fitting the models"):
        ranking = subject.overview.ranking() if subject.trials else []
    lines = [f"{i}. trial {r.number}: {r.mean:.3g} ± {r.std:.2g}{_beaten(r)}" for i, r in enumerate(ranking, start=1)]
    return Answer("\n".join(lines) or "No trials were compared yet.", [asdict(r) for r in ranking])


def _beaten(r: "Ranked") -> str:
    words = {"better than": r.beat, "worse than": r.lost_to, "as good as": r.tied_with}
    said = [f"{word} {', '.join(map(str, numbers))}" for word, numbers in words.items() if numbers]
    return f" ({'; '.join(said)})" if said else ""


def comparison_text(c: "Comparison", stands: bool = True) -> str:
    """A comparison in one line."""
    words = "about as good as" if c.tie else "better than"
    return f"Trial {c.better} is {words} trial {c.worse}." + ("" if stands else " No longer.")


def _halt(options: argparse.Namespace) -> Answer:
    bench = bench_of(options)
    bench.halt(options.why, who=options.who)
    return Answer("No trials are handed out until: crashbo resume", {"halted": bench.halted})


def _resume(options: argparse.Namespace) -> Answer:
    bench_of(options).resume()
    return Answer("Trials are handed out again.", {"halted": None})


def _ran(options: argparse.Namespace, bench: "Bench") -> dict[str, Any]:
    """The setting of a trial, with the values that really ran."""
    params = dict(bench.entry(options.number).trial.params)
    return {**params, **_values(options.ran, list(params), bench.definition)}


def _values(texts: list[str], names: list[str], definition: "Definition", option: str = "ran") -> dict[str, Any]:
    """Values of parameters, as they were written."""
    from crashbo.optimizer.tables.cells import Dialect

    found = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not (equals and name in names):
            raise Refusal(f"--{option} must be NAME=VALUE of a parameter ({', '.join(names)}); got {text!r}. Mend it.")
        found[name] = Dialect().param(definition.space.parameters[name], value, name)
    return found


def trial_text(definition: "Definition", trial: "Trial") -> str:
    """A trial in one line."""
    units = definition.study.units
    state = f"a {trial.state}" if trial.state in ("success", "crash", "void") else trial.state
    words = [f"Trial {trial.number} is {state}"]
    for goal in definition.goals:
        if (value := goal.of(trial.cost)) is not None:
            words.append(f"{goal.label} {number(value, goal.unit)}")
    beyond = {
        c.name: " at least" if c.sign > 0 else " at most" for c in definition.study.measured if c.name in trial.censored
    }
    for name, value in trial.measured.items():
        words.append(f"{name}{beyond.get(name, '')} {number(value, units.get(name, ''))}")
    if trial.reason:
        words.append(trial.reason)
    if trial.blame:
        words.append("blamed on " + " and ".join(trial.blame))
    return ": ".join([words[0], ", ".join(words[1:])]) if words[1:] else words[0]


def _told(options: argparse.Namespace) -> "Told":
    from crashbo.optimizer.told import Told

    return Told.of(
        cost=_cost(options),
        success=options.success or None,
        measured=readings(options, "measured"),
        stopped=readings(options, "stopped"),
        reached=readings(options, "reached"),
        rises=readings(options, "rises"),
        crash=options.crash,
        blame=options.blame or None,
        void=options.void,
        censored=options.censored or None,
        note=options.note,
    )


def _cost(options: argparse.Namespace) -> Any:
    """A number, or several goals by name; None if there is none."""
    if len(options.cost) == 1 and "=" not in options.cost[0]:
        try:
            return float(options.cost[0])
        except ValueError:
            raise Refusal(f"--cost must be a number; got {options.cost[0]!r}. Mend it.") from None
    return readings(options, "cost")


def readings(options: argparse.Namespace, option: str) -> dict[str, float] | None:
    """Numbers by name, of an option that may be given several times; None if it was not."""
    found = {}
    for text in getattr(options, option):
        name, equals, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise Refusal(f"--{option} must be NAME=NUMBER; got {text!r}. Mend it.")
    return found or None
