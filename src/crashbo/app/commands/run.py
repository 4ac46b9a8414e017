"""`crashbo run`: a command for each trial. May import every other layer."""

import argparse
import signal
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from crashbo.app.commands.common import (
    Answer,
    Refusal,
    bench_of,
    ended_by_sigterm,
    json_text,
    number,
    rule_options,
    rules_in,
    study_options,
)
from crashbo.app.commands.trial import readings, trial_text
from crashbo.app.launcher import run_command
from crashbo.app.text import counted
from crashbo.extras import needs
from crashbo.workers import BrokenWorkers, CannotStart, Workers

if TYPE_CHECKING:
    from crashbo.app.bench import Bench


def add_to(commands: Any) -> None:
    """Add the command."""
    run = commands.add_parser(
        "run",
        help="run a command for each trial",
        description="Run a command for each trial. It gets the parameters as JSON on stdin and prints its result as "
        'JSON: {"cost": 1.2, "measured": {"current": 96.3}}, {"crash": "tripped"} or {"void": "unplugged"}. '
        "A number alone counts as the cost if it is the last line. When the command has ended, all that it started is "
        "ended, too.",
    )
    run.add_argument("--trials", type=int, default=1, metavar="N", help="how many (default: %(default)s)")
    run.add_argument("--flags", action="store_true", help="parameters as flags --NAME=VALUE instead of JSON on stdin")
    run.add_argument(
        "--max-voids", type=int, default=5, metavar="N", help="stop after N voids in a row (default: %(default)s)"
    )
    run.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="NAME=X",
        help='what is met now; a result with "context": {"NAME": X} says what it really was',
    )
    run.add_argument("words", nargs="+", metavar="-- COMMAND", help="after two dashes")
    study_options(run)
    rule_options(run, "rules, by default the study's")
    run.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> Answer:
    needs("this command", "app", "optuna")
    # Workers are forked before the store is opened, so that they have no part of it.
    with Workers(run_command, 1) as workers, ended_by_sigterm(128 + signal.SIGTERM):
        try:
            return _run_trials(options, workers)
        except (BrokenWorkers, CannotStart) as error:
            raise Refusal(f"{error}; the trial is void. Run it again.") from None


def _run_trials(options: argparse.Namespace, workers: Workers) -> Answer:
    from crashbo.app.bench.runner import run_trial

    bench = bench_of(options)
    definition = bench.definition
    rules = replace(definition.run, **rules_in(options))
    context = readings(options, "context")
    done, voids = 0, 0
    for turn in range(options.trials):
        trial = run_trial(bench, options.words, "flags" if options.flags else "json", rules, workers, context)
        done += 1
        voids = voids + 1 if trial.state == "void" else 0
        if options.json:
            print(json_text(asdict(trial)), flush=True)
        else:
            print(f"{turn + 1}/{options.trials}  {trial_text(definition, trial)}  [{_so_far(bench)}]", flush=True)
        if voids >= options.max_voids:
            raise Refusal(f"stopped: the last {voids} trials were void, the last one because: {trial.reason}")
    if options.json:
        return Answer("", {"trials": done})
    return Answer(f"{counted(done, 'trial')} run.", None)


def _so_far(bench: "Bench") -> str:
    trials, best = bench.trials, bench.best()
    crashes = sum(t.state == "crash" for t in trials)
    figure = "none yet" if best is None else f"trial {best.number}" if best.cost is None else number(best.cost)
    reached = f"best {figure}"
    if bench.ledger.goals:
        reached = "front {}, hypervolume {:.4g}".format(*bench.front())
    return f"{reached}, {counted(crashes, 'crash', 'crashes')}"
