"""`crashbo check`: what in a study's trials speaks against its model. May import every other layer."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from crashbo.app.commands.common import Answer, kept_option, patience, study_options, subject_in
from crashbo.optimizer.checks.finding import Finding


def add_to(commands: Any) -> None:
    """Add the command."""
    check = commands.add_parser("check", help="what in the trials speaks against the model, and what to do about it")
    kept_option(check)
    check.set_defaults(run=_check)
    study_options(check)


def _check(options: argparse.Namespace) -> Answer:
    subject = subject_in(options)
    with patience("fitting the models"):
        return _answer(subject.overview.check())


def _answer(found: Sequence[Finding]) -> Answer:
    lines = [f"{i}. {f.words}\n   {f.remedy}" for i, f in enumerate(found, start=1)]
    return Answer("\n".join(lines) or "Nothing speaks against the model.", [asdict(f) for f in found])
