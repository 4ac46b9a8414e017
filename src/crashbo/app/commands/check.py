"""`crashbo check`: what in a study's trials speaks against its model. May import every other layer."""

import argparse
import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crashbo.app.commands.common import Answer, Refusal, bench_of, patience, study_options
from crashbo.optimizer import saving
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.journal import compared_by
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Comparison, Trial
from crashbo.optimizer.study import Study


def add_to(commands: Any) -> None:
    """Add the command."""
    check = commands.add_parser("check", help="what in the trials speaks against the model, and what to do about it")
    check.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a journal or a saved study, not a bench's")
    check.set_defaults(run=_check)
    study_options(check)


def _check(options: argparse.Namespace) -> Answer:
    if options.file is not None:
        optimizer = opened(options.file)
        with patience("fitting the models"):
            return _answer(optimizer.check())
    bench = bench_of(options)
    from crashbo.app.bench.overview import Overview

    with patience("fitting the models"):
        return _answer(Overview(bench.insight()).check())


def _answer(found: Sequence[Finding]) -> Answer:
    lines = [f"{i}. {f.words}\n   {f.remedy}" for i, f in enumerate(found, start=1)]
    return Answer("\n".join(lines) or "Nothing speaks against the model.", [asdict(f) for f in found])


def opened(path: Path) -> Optimizer:
    """The study in a journal or in a file of `to_json`; nothing is written to it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"FILE must be a text file that can be read; got {str(path)!r} ({error}). Check it.") from None
    try:
        first = json.loads(text.split("\n", 1)[0])
        if "crashbo_journal" not in first:
            return Optimizer.from_json(text)
        trials: dict[int, Trial] = {}
        comparisons: list[Comparison] = []
        for event in _events_of(text):
            if "comparison" in event:
                comparisons = compared_by(event, comparisons)
            else:
                trial = saving.trial_in(event["trial"])
                trials[trial.number] = trial
        return Optimizer.restored(Study.back(first["config"]), trials.values(), None, comparisons)
    except (ValueError, KeyError, TypeError) as error:
        rule = "FILE must be a journal of crashbo's, or a study saved by to_json"
        raise Refusal(f"{rule}; {str(path)!r} is neither ({error}). Name another.") from None


def _events_of(journal: str) -> list[dict[str, Any]]:
    """A journal's events; its last line may be torn."""
    *whole, last = journal.rstrip("\n").split("\n")[1:] or [""]
    events = [json.loads(line) for line in whole]
    with contextlib.suppress(ValueError):
        events.append(json.loads(last))
    return events
