"""What all commands share: refusals, answers, options, signals, and a progress indicator.

May import every other layer.
"""

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crashbo.app.text import value_text
from crashbo.extras import needs

if TYPE_CHECKING:
    from crashbo.app.bench import Bench
    from crashbo.app.subject import Subject, Titled

_PATIENCE = 2.0  # seconds before the progress indicator appears
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Refusal(Exception):
    """Why a command cannot be executed, in one sentence for the user."""


@dataclass(frozen=True)
class Answer:
    """The output of a command: text for people, data for --json."""

    text: str
    data: Any
    code: int = 0


def json_text(data: Any) -> str:
    """Data as one line of JSON."""
    return json.dumps(data, default=_plain, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def study_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for choosing a study and the output format."""
    parser.add_argument(
        "--store", metavar="STORE", help="file or Optuna storage URL (default: $CRASHBO_STORE, or crashbo.db)"
    )
    parser.add_argument("--study", metavar="NAME", help="which study of the store (default: the only one)")
    json_option(parser)


def json_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for JSON output."""
    parser.add_argument("--json", action="store_true", help="answer in JSON")


def bench_of(options: argparse.Namespace) -> "Bench":
    """The study that the options name."""
    needs("this command", "app", "optuna")
    from crashbo.app.bench import Bench
    from crashbo.app.bench.store import default_store

    return Bench.open(options.store or default_store(), options.study)


def kept_option(parser: argparse.ArgumentParser) -> None:
    """Add the argument for a study that is not in a store."""
    words = "a journal, or a study saved by to_json, in place of one in a store"
    parser.add_argument("kept", nargs="?", type=Path, metavar="FILE", help=words)


def subject_in(options: argparse.Namespace) -> "Subject":
    """The study that the options name, in a file or in a store."""
    if options.kept is None:
        bench = bench_of(options)
        from crashbo.app.bench.table import subject_of

        return subject_of(bench)
    if options.store or options.study:
        raise Refusal(
            f"FILE must be given without --store and --study; got {str(options.kept)!r} and both. Choose one."
        )
    from crashbo.app.subject import subject_of as subject_of_optimizer
    from crashbo.optimizer.loading import load

    try:
        return subject_of_optimizer(load(options.kept), options.kept.stem)
    except ValueError as error:
        raise Refusal(str(error).replace("path must", "FILE must", 1)) from None


_ENDS = {
    "timeout": "what it means that the command takes longer",
    "death": "... is killed by a signal, or uses more memory",
    "nan": "... prints a cost that is no finite number",
    "exit": "... ends with an exit code other than 0",
    "rubbish": "... prints no valid result",
}


def rule_options(parser: argparse.ArgumentParser, title: str) -> None:
    """Add the options for what a command may take, and what its end means."""
    rules = parser.add_argument_group(title)
    rules.add_argument("--timeout", type=float, metavar="S", help="seconds that a trial may take")
    rules.add_argument("--memory", metavar="SIZE", help="memory that it may use, with all that it starts: 2GB")
    for end, meaning in _ENDS.items():
        words = ("crash", "void", "raise") if end == "nan" else ("crash", "void")
        rules.add_argument(f"--on-{end}", choices=words, help=meaning)


def rules_in(options: argparse.Namespace) -> dict[str, Any]:
    """The rules of a command that were given as options."""
    names = ("timeout", "memory", *(f"on_{end}" for end in _ENDS))
    return {name: value for name in names if (value := getattr(options, name)) is not None}


@contextmanager
def ended_by_sigterm(code: int) -> Iterator[None]:
    """End with this exit code on SIGTERM, but in order: what was started is ended, what was begun is told."""
    if threading.current_thread() is not threading.main_thread():  # only it gets signals
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(code))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def number(value: float | None, unit: str = "") -> str:
    """A number with its unit."""
    return "-" if value is None else f"{value:.5g}" + (f" {unit}" if unit else "")


def params_text(titled: "Titled", params: dict[str, Any]) -> str:
    """A setting, one parameter per line."""
    width = max(map(len, params), default=0)
    units = titled.study.units
    lines = [f"  {name:{width}}  {value_text(v, 6)} {units.get(name, '')}".rstrip() for name, v in params.items()]
    return "\n".join(lines)


@contextmanager
def patience(what: str) -> Iterator[Callable[[float], None]]:
    """A progress indicator on a terminal, for anything that takes longer than two seconds.

    Yields a function to report the fraction that is done, from 0 to 1, if it is known.
    """
    if not sys.stderr.isatty():
        yield lambda share: None
        return
    done, share = threading.Event(), [-1.0]
    began = time.monotonic()

    def show() -> None:
        turn = 0
        while not done.wait(0.1):
            passed = time.monotonic() - began
            if passed > _PATIENCE:
                bar = f" {'█' * round(20 * share[0]):░<20} {share[0]:4.0%}" if share[0] >= 0 else ""
                sys.stderr.write(f"\r{_SPINNER[turn % len(_SPINNER)]} {what}{bar} {passed:.0f} s\x1b[K")
                sys.stderr.flush()
                turn += 1
        if turn:
            sys.stderr.write("\r\x1b[K")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield lambda s: share.__setitem__(0, s)
    finally:
        done.set()
        thread.join()


def writable(path: Path) -> Path:
    """The output folder, created and checked before any work is done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ".crashbo").touch()
        (path / ".crashbo").unlink()
    except OSError as error:
        raise not_writable(path, error) from error
    return path


@contextmanager
def campaigning(output: Path) -> Iterator[None]:
    """Run a campaign whose finished runs are kept in a folder: what ends it is said in a sentence."""
    try:
        yield
    except ValueError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        raise not_writable(output, error) from error
    except KeyboardInterrupt:
        raise Refusal("Stopped. Finished runs are kept: the same command goes on from here.") from None


def not_writable(path: Path, error: OSError) -> Refusal:
    """The refusal of an output folder."""
    rule = f"--output must be a directory that can be written to; got {str(path)!r}"
    return Refusal(f"{rule} ({error.strerror}). Name another.")
