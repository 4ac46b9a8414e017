"""Runs a command per trial: parameters in, a result out. The study's rules say how each way of ending counts.

May import every other layer.

The command gets the parameters as one JSON object on standard input, or as flags. The result is the last line of its
standard output that is a JSON object: {"cost": -0.71, "measured": {"current": 96.3}}, {"crash": "tripped"} or
{"void": "unplugged"}; a single number is a cost.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from crashbo.app.bench.bench import Bench
from crashbo.app.bench.definition import RunRules
from crashbo.optimizer.records import Fault, Trial
from crashbo.optimizer.told import Said, Told

Style = Literal["json", "flags"]
_LEASE, _RENEWED = (
    90.0,
    30.0,
)  # seconds, of a lease and between renewals: a dead runner's trial becomes void
_MOST_OUTPUT = 1_000_000  # characters of output that are parsed
_WORDS = 200  # characters of a command's own message that are kept as a reason


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None  # None: it could not be started
    out: str
    err: str
    timed_out: bool = False


def run_trial(bench: Bench, command: Sequence[str], style: Style, rules: RunRules) -> Trial:
    """Ask for a trial, run the command on it, and tell the outcome."""
    trial = bench.ask(lease=_LEASE)
    with _kept_alive(bench, trial.number):
        try:
            ended = run_command(command, trial.params, style, rules.timeout)
        except BaseException as error:  # above all Ctrl-C: the trial must not stay pending
            bench.void(trial.number, f"{type(error).__name__} while it ran")
            raise
    told = verdict(ended, rules)
    try:
        return bench.tell(trial.number, told)
    except ValueError as error:  # a well-formed result that the study does not accept
        return bench.tell(trial.number, _fault(rules.on_rubbish, f"result not understood: {error}"))


def run_command(command: Sequence[str], params: dict[str, Any], style: Style, timeout: float | None) -> Ended:
    """Run a command to its end or until the timeout; all processes that it started are ended with it."""
    arguments = [*command, *(_flags(params) if style == "flags" else ())]
    text = json.dumps(params) + "\n" if style == "json" else ""
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Ended(None, "", f"{arguments[0]}: {error.strerror}")
    except ValueError as error:
        return Ended(None, "", str(error))
    try:
        out, err = process.communicate(text.encode(), timeout=timeout)
        return Ended(process.returncode, _text(out), _text(err))
    except subprocess.TimeoutExpired:
        _kill(process)
        out, err = process.communicate()
        return Ended(process.returncode, _text(out), _text(err), timed_out=True)
    finally:
        _kill(process)


def verdict(ended: Ended, rules: RunRules) -> Told:
    """The outcome of a trial, from how its command ended."""
    words = _last_line(ended.err)
    if ended.code is None:
        return Told.of(void=_brief(f"command could not be started: {words}"))
    if ended.timed_out:
        return _fault(rules.on_timeout, f"no result within {rules.timeout:g} s")
    if ended.code < 0:
        return _fault(rules.on_kill, f"killed by {_signal_name(-ended.code)}")
    if ended.code > 0:
        return _fault(rules.of_exit(ended.code), f"exit code {ended.code}" + (f": {words}" if words else ""))
    try:
        return parse_result(ended.out)
    except ValueError as error:
        return _fault(rules.on_rubbish, str(error))


def parse_result(out: str) -> Told:
    """The last result in a command's output."""
    for line in reversed(out[-_MOST_OUTPUT:].splitlines()):
        try:
            said = json.loads(line)
        except (json.JSONDecodeError, RecursionError, ValueError):
            continue
        if isinstance(said, int | float) and not isinstance(said, bool):
            return Told.of(cost=float(said))
        if isinstance(said, dict) and said.keys() & {"cost", "crash", "void"}:
            unknown = sorted(said.keys() - set(Said.__annotations__))
            try:
                return Told.of(**said)
            except (ValueError, TypeError) as error:
                why = f"it has {unknown[0]!r}" if unknown else error
                raise ValueError(f"result not understood: {why}") from None
    shown = _last_line(out)
    raise ValueError(f"no result on its output, which ends with {shown!r}" if shown else "no result: no output")


def _fault(what: Fault, reason: str) -> Told:
    return Told.of(crash=_brief(reason)) if what == "crash" else Told.of(void=_brief(reason))


@contextmanager
def _kept_alive(bench: Bench, number: int) -> Iterator[None]:
    """Renew a trial's lease while its command runs."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(_RENEWED):
            try:
                bench.renew(number, _LEASE)
            except ValueError:
                return  # somebody else told it

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the command and all processes that it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass


def _flags(params: dict[str, Any]) -> list[str]:
    return [f"--{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in params.items()]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _brief(lines[-1]) if lines else ""


def _brief(text: str) -> str:
    """Text that can be stored: printable, and not too long."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= _WORDS else shown[: _WORDS - 1] + "…"
