"""Runs a command to its end, or to its limits, and ends whatever it started. Belongs in a worker of `crashbo.workers`.

May import what belongs to all layers. On Linux a worker adopts orphans, so what called setsid or forked twice is still
among its descendants and is ended, too. Elsewhere only what stayed in the command's process group is.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Literal

from crashbo import processes
from crashbo.workers import Limits

MOST_OUTPUT = 1_000_000  # bytes that are kept of a stream: its end
_GRACE = 0.5  # seconds for output that is still on its way when a command has ended, through `tee`, say; judgement
_WEIGH = 0.05  # seconds between two looks at the memory in use


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None  # negative: by that signal; None: it could not be started
    out: str = ""
    err: str = ""
    past: Literal["time", "memory"] | None = None  # the limit at which it was ended


def run_command(arguments: Sequence[str], text: bytes, limits: Limits) -> Ended:
    """Run a command with a text on its standard input. All children of this process are ended when the command has."""
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Ended(None, err=f"{arguments[0]}: {error.strerror}")
    except ValueError as error:
        return Ended(None, err=str(error))
    threading.Thread(target=_feed, args=(process.stdin, text), daemon=True).start()
    out, err = _Tail(process.stdout), _Tail(process.stderr)
    try:
        past = _await(process, limits)
        if past is None:
            _wait_for_end_of(out, err)
    finally:
        _end(process)
    _wait_for_end_of(out, err)  # what escaped may hold them open
    return Ended(process.returncode, out.text(), err.text(), past)


def _await(process: "subprocess.Popen[bytes]", limits: Limits) -> Literal["time", "memory"] | None:
    """Wait for a command to end; or say which limit it went past."""
    began, tick = time.monotonic(), limits.seconds if limits.memory is None else _WEIGH
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(tick)
            return None
        passed = time.monotonic() - began
        if limits.seconds is not None and passed >= limits.seconds:
            return "time"
        if limits.memory is not None:
            if processes.used(os.getpid(), limits.memory, itself=False) > limits.memory:
                return "memory"
            tick = _WEIGH if limits.seconds is None else min(_WEIGH, limits.seconds - passed)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a command and all that it started."""
    if process.poll() is None:
        processes.end_tree(process.pid)
        process.wait()
    if not processes.LINUX and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    processes.end_below(os.getpid())


class _Tail:
    """The end of a stream, which is read to its end in the background."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._kept = bytearray()
        self.reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self.reader.start()

    def text(self) -> str:
        """What was read so far."""
        return bytes(self._kept[-MOST_OUTPUT:]).decode("utf-8", errors="replace")

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while chunk := os.read(stream.fileno(), 65_536):
                self._kept += chunk
                if len(self._kept) > 2 * MOST_OUTPUT:
                    del self._kept[:-MOST_OUTPUT]


def _wait_for_end_of(*tails: _Tail) -> None:
    deadline = time.monotonic() + _GRACE
    for tail in tails:
        tail.reader.join(max(deadline - time.monotonic(), 0.0))


def _feed(stream: IO[bytes], text: bytes) -> None:
    with contextlib.suppress(OSError), stream:  # nobody need read it
        stream.write(text)
