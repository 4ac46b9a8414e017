"""An experiment that dies in all the ways there are: whether and how it dies depends on x. Needs nothing but Python.

Every run says in a log of its own what is going to happen, before it happens: by this `chaos.py` judges what a study
made of it. All that it starts bears a mark, so that what is left can be found.
"""

import ctypes
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
BEST, WORST = 0.0392, 0.8264  # of the cost, where nothing dies: at (0.56, 0.44) and (0, 0)
LOG, MARK = "CHAOS_LOG", "CHAOS_MARK"  # environment variables: the log's path, and by what our processes are known
TIMEOUT = 3.0  # seconds that a run may take
_EDGE = 1.0  # x + y beyond this is deadly
_ETERNITY = 120.0  # seconds, far beyond every limit
_CHUNK = 50_000_000  # bytes


class Broken(Exception):
    """An exception that can be sent to another process, but not received there."""

    def __init__(self, x: float, y: float) -> None:
        super().__init__(f"broken at {x}, {y}")


def cost_of(params: dict[str, float]) -> float:
    """Its least value lies where it dies."""
    x, y = params["x"], params["y"]
    return (x - 0.7) ** 2 + (y - 0.58) ** 2


def kind_of(params: dict[str, float]) -> str:
    """What happens there."""
    digest = hashlib.md5(json.dumps([round(params[name], 3) for name in sorted(params)]).encode()).digest()
    if params["x"] + params["y"] > _EDGE:
        return sorted(DEATHS)[digest[0] % len(DEATHS)]
    return "litters" if digest[0] < 16 else "lives"


def experiment(params: dict[str, float]) -> float:
    """Run it."""
    kind, cost = kind_of(params), cost_of(params)
    note(event="ran", params=params, kind=kind, cost=cost)
    time.sleep(0.01)
    if kind == "litters":
        _start_children()
    return DEATHS[kind](params) if kind in DEATHS else cost


def polite(params: dict[str, float]) -> float:
    """The same, and about as long, but it says that it crashed."""
    from crashbo import Crash

    kind = kind_of(params)
    time.sleep({"hang": TIMEOUT, "memory": 0.5}.get(kind.split()[0], 0.01))
    if kind in DEATHS:
        raise Crash("politely")
    return cost_of(params)


def steady(run: Callable[[dict[str, float]], float], params: dict[str, float]) -> Any:
    """Run it so that four are under way at a time, whatever dies; a success says how near the edge it is."""
    from crashbo import Outcome

    time.sleep(0.2)
    return Outcome(run(params), {"load": sum(params.values())})


def command() -> None:
    """The same as a command: params on its input, the cost on its output."""
    print(json.dumps({"cost": experiment(json.load(sys.stdin))}))


def note(**words: Any) -> None:
    """Write a line that survives whatever comes."""
    path = os.environ.get(LOG)
    if path is not None:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, (json.dumps({**words, "pid": os.getpid(), "time": time.time()}) + "\n").encode())
        os.close(file)


def notes(path: Path) -> list[dict[str, Any]]:
    """All lines of a log."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _start_children() -> None:
    """One as they are, one that cut all ties, and one that was forked twice."""
    idle = [sys.executable, "-S", "-c", f"import time; time.sleep({_ETERNITY})", os.environ.get(MARK, "")]
    for child in (subprocess.Popen(idle), subprocess.Popen(idle, start_new_session=True)):
        child.returncode = 0  # nobody waits for them
    if (child := os.fork()) == 0:
        if os.fork() == 0:
            os.setsid()
            time.sleep(_ETERNITY)
        os._exit(0)
    os.waitpid(child, 0)


def _segfault(params: dict[str, float]) -> float:
    ctypes.string_at(0)
    raise AssertionError


def _kill(params: dict[str, float]) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _exit(params: dict[str, float]) -> float:
    os._exit(0 if params["x"] > params["y"] else 7)


def _eat(params: dict[str, float]) -> float:
    held = []
    for _ in range(40):
        held.append(b"x" * _CHUNK)
        time.sleep(0.01)
    return _hang(params)


def _hang(params: dict[str, float]) -> float:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(_ETERNITY)
    raise AssertionError


def _hang_with_children(params: dict[str, float]) -> float:
    _start_children()
    return _hang(params)


def _kill_with_children(params: dict[str, float]) -> float:
    _start_children()
    return _kill(params)


def _nan(params: dict[str, float]) -> float:
    return float("nan")


def _raise(params: dict[str, float]) -> float:
    raise Broken(**params) if params["x"] > params["y"] else ValueError("out of range")


DEATHS: dict[str, Callable[[dict[str, float]], float]] = {
    "segfault": _segfault,
    "SIGKILL": _kill,
    "os._exit": _exit,
    "memory": _eat,
    "hang": _hang,
    "hang with children": _hang_with_children,
    "SIGKILL with children": _kill_with_children,
    "NaN": _nan,
    "exception": _raise,
}
