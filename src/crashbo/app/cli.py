"""The command `crashbo`. May import every other layer."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from crashbo.app.commands import benchmark, check, demo, run, share, study, trial
from crashbo.app.commands.common import Answer, Refusal, json_text
from crashbo.extras import Absent
from crashbo.version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 success, 1 failure, 2 invalid arguments (from argparse)."""
    options = parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            said = options.run(options)
    except (Refusal, ValueError, Absent) as refusal:
        print(" ".join(str(refusal).split()), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        trouble = _trouble(error)
        if trouble is None:
            raise
        print(trouble, file=sys.stderr)
        return 1
    answer = Answer(said, None) if isinstance(said, str) else said
    try:
        print(json_text(answer.data) if getattr(options, "json", False) else answer.text, flush=True)
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(answer.code)


def _trouble(error: Exception) -> str | None:
    """What is wrong with the store, if that is what an error comes of."""
    if "optuna" not in sys.modules:  # then no store was opened
        return None
    from crashbo.integrations.optuna.troubles import trouble_of

    trouble = trouble_of(error)
    return None if trouble is None else trouble.words


def _note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show a warning without the line of code that raised it."""
    print(f"Note: {' '.join(str(message).split())}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """All commands."""
    whole = argparse.ArgumentParser(prog="crashbo", description="Bayesian optimisation that learns from crashes.")
    whole.add_argument("--version", action="version", version=f"crashbo {__version__}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for family in (demo, study, check, trial, run, share, benchmark):
        family.add_to(commands)
    return whole
