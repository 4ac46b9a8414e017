"""Runs a command per trial: parameters in, a result out. The study's rules say how each way of ending counts.

May import every other layer.

The command gets the parameters as one JSON object on standard input, or as flags. The result is the last line of its
standard output that is a JSON object with one of the keys cost, crash and void: {"cost": -0.71, "measured": {"current":
96.3}}, {"crash": "tripped"} or {"void": "unplugged"}; lines after it are noise. Where there is none, a number is the
cost if it is all of the last line that is not empty.
"""

import json
import math
import re
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Literal

from crashbo.app.bench.bench import Bench
from crashbo.app.bench.definition import RunRules
from crashbo.app.launcher import Ended
from crashbo.optimizer.records import Fault, Trial
from crashbo.optimizer.told import Said, Told
from crashbo.processes import how_it_ended, sized
from crashbo.workers import Died, Workers

Style = Literal["json", "flags"]
_LEASE, _RENEWED = (
    90.0,
    30.0,
)  # seconds, of a lease and between renewals: a dead runner's trial becomes void
_WORDS = 200  # characters of a command's own message that are kept as a reason
_LONGEST_NUMBER = 400  # characters: the largest of all has 309 digits
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_SAMPLE, _STRANGE = 2_000, 0.1  # judgement: characters at the end, and the share of them that may be no text
_SHELL = 128  # a shell, and whoever follows its custom, ends with this plus the signal that killed what it ran
_DEADLY = [_SHELL + s for s in signal.Signals if s.name[3:] in ("ILL", "ABRT", "BUS", "FPE", "KILL", "SEGV")]


class NotFinite(ValueError):
    """A command said its cost, but that is no finite number."""


def run_trial(
    bench: Bench,
    command: Sequence[str],
    style: Style,
    rules: RunRules,
    workers: Workers,
    context: Mapping[str, Any] | None = None,
) -> Trial:
    """Ask for a trial, run the command on it in a worker (of `launcher.run_command`), and tell the outcome.

    The context is what is met now; the command may say what it really was.

    Raises:
        NotFinite: if the study says so; the trial is void.
    """
    limits = rules.limits  # refused, if at all, before a trial is asked for
    trial = bench.ask(lease=_LEASE, context=context)
    with _kept_alive(bench, trial.number):
        try:
            told = _outcome(workers.submit(*_call(command, trial.params, style), limits), rules)
        except NotFinite as error:
            bench.void(trial.number, str(error))
            raise NotFinite(
                f"cost must be a finite number; trial {trial.number} has none ({error}) and is void. Mend the command, "
                "or say what it means: --on-nan crash, or void."
            ) from None
        except BaseException as error:  # above all Ctrl-C: the trial must not stay pending
            workers.close()  # first of all what it started ends
            stopped = "interrupted" if not isinstance(error, Exception) else type(error).__name__
            bench.void(trial.number, f"{stopped} while it ran")
            raise
    try:
        return bench.tell(trial.number, told)
    except ValueError as error:  # a well-formed result that the study does not accept
        return bench.tell(trial.number, _fault(rules.on_rubbish, f"result not understood: {error}"))


def _call(command: Sequence[str], params: dict[str, Any], style: Style) -> tuple[list[str], bytes]:
    """A command's arguments, and its input."""
    if style == "flags":
        return [*command, *_flags(params)], b""
    return [*command], json.dumps(params).encode() + b"\n"


def _outcome(future: "Future[Ended]", rules: RunRules) -> Told:
    try:
        return verdict(future.result(), rules)
    except Died as error:  # the worker itself; the command may have killed it
        return _fault(rules.on_death, str(error))


def verdict(ended: Ended, rules: RunRules) -> Told:
    """The outcome of a trial, from how its command ended."""
    words = _last_line(ended.err)
    if ended.code is None:
        return Told.of(void=_brief(f"command could not be started: {words}"))
    if ended.past == "time":
        return _fault(rules.on_timeout, f"no result within {rules.timeout:g} s")
    if ended.past == "memory":
        return _fault(rules.on_death, f"used more than {sized(rules.limits.memory or 0.0)}")
    if ended.code < 0:
        return _fault(rules.on_death, how_it_ended(ended.code))
    if ended.code in _DEADLY and str(ended.code) not in rules.exits:
        return _fault(rules.on_death, f"{how_it_ended(_SHELL - ended.code)}, says exit code {ended.code}")
    if ended.code > 0:
        return _fault(rules.of_exit(ended.code), f"exit code {ended.code}" + (f": {words}" if words else ""))
    try:
        return parse_result(ended.out)
    except NotFinite as error:
        if rules.on_nan == "raise":
            raise
        return _fault(rules.on_nan, str(error))
    except ValueError as error:
        return _fault(rules.on_rubbish, str(error))


def parse_result(out: str) -> Told:
    """The result in a command's output.

    Raises:
        NotFinite: for a cost that is no finite number.
        ValueError: if there is no result.
    """
    lines = [line.strip() for line in re.split(r"[\r\n]+", out) if line.strip()]
    for line in reversed(lines):
        said = _object(line)
        if said.keys() & {"cost", "crash", "stopped", "void"}:
            return _told(said)
    last = lines[-1] if lines else ""
    if _is_text(out) and len(last) <= _LONGEST_NUMBER and _NUMBER.fullmatch(last):
        return _told({"cost": float(last)})
    raise ValueError(f"no result on its output, which ends with {_brief(last)!r}" if last else "no result: no output")


def _is_text(out: str) -> bool:
    """Whether an output ends in text; random bytes may end in a digit by chance."""
    end = out[-_SAMPLE:]
    strange = sum(c == "\ufffd" or not (c.isprintable() or c.isspace() or c == "\x1b") for c in end)
    return strange <= _STRANGE * len(end)


def _object(line: str) -> dict[str, Any]:
    """The JSON object that a line is; an empty one if it is none."""
    if not line.startswith("{"):
        return {}
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _told(said: dict[str, Any]) -> Told:
    if "cost" in said and _not_finite(said["cost"]):
        cost, said = said["cost"], {name: value for name, value in said.items() if name != "cost"}
        if not any(said.get(name) not in (None, False) for name in ("crash", "stopped", "void")):
            raise NotFinite(f"no finite cost: {f'{cost:g}' if isinstance(cost, float) else json.dumps(cost)}")
    unknown = sorted(said.keys() - set(Said.__annotations__))
    try:
        return Told.of(**said)
    except (ValueError, TypeError) as error:
        why = f"it has {unknown[0]!r}" if unknown else error
        raise ValueError(f"result not understood: {why}") from None


def _not_finite(cost: Any) -> bool:
    """Whether a cost, or any of several goals, is no finite number; a goal that is null was not measured."""
    if isinstance(cost, dict):
        known = [value for value in cost.values() if value is not None]
        return not known or any(isinstance(value, float) and not math.isfinite(value) for value in known)
    return cost is None or (isinstance(cost, float) and not math.isfinite(cost))


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


def _flags(params: dict[str, Any]) -> list[str]:
    return [f"--{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in params.items()]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _brief(lines[-1]) if lines else ""


def _brief(text: str) -> str:
    """Text that can be stored: printable, and not too long."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= _WORDS else shown[: _WORDS - 1] + "…"
