"""Processes and their descendants: found, weighed and ended as a whole. Also the sentry of another's pool.

Belongs to all layers, so it needs the standard library only; a sentry runs it by its path, without the package.

On Linux the kernel's own table, /proc, tells who descends from whom, and a process that adopts orphans keeps even those
below it that cut their ties (setsid, a double fork). On other systems `ps` shows the tree, without the latter.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

LINUX = sys.platform == "linux"
WINDOWS = sys.platform == "win32"
MARK = "CRASHBO_CALL"  # the environment variable that holds a mark
_DIE_WITH_PARENT, _ADOPT = 1, 36  # PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of prctl
_LOOK = 0.2  # seconds between two looks for whether a parent still lives
_WEIGH = 0.05  # seconds between two looks at the memory in use
_LEISURE = 10  # or so many times as long as a look takes: on a machine with thousands of processes it takes a while
_WATCH = 0.1  # seconds between two looks of a sentry
_LAST_REPORTS = 0.3  # seconds for reports that are under way when a sentry has lost its parent
_PATIENCE = 2.0  # seconds for which killed processes are looked for again
_PASSES, _MOMENT = 100, 0.002  # looks for descendants that may still be forking, and seconds between them
_UNITS = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


class Known(NamedTuple):
    """One process of the table; `started` tells it apart from a later one with the same number."""

    pid: int
    parent: int
    started: str
    state: str  # "Z" is dead


def table() -> dict[int, Known]:
    """Every process that can be seen."""
    if WINDOWS:
        return {}
    return {known.pid: known for known in (_of_proc() if LINUX else _of_ps())}


def below(pid: int, now: Mapping[int, Known] | None = None) -> list[int]:
    """All descendants of a process, the nearest first."""
    children: dict[int, list[int]] = {}
    for known in (table() if now is None else now).values():
        children.setdefault(known.parent, []).append(known.pid)
    found = list(children.get(pid, ()))
    for one in found:  # grows while it is read
        found += children.get(one, ())
    return found


def started(pid: int) -> str | None:
    """When a process began, in the kernel's own count; None if there is none."""
    known = _known(pid)
    return None if known is None else known.started


def lives(pid: int, begun: str, now: Mapping[int, Known] | None = None) -> bool:
    """Whether the process that began then still lives."""
    known = _known(pid) if now is None else now.get(pid)
    return known is not None and known.started == begun and known.state not in "ZX"


def end_tree(pid: int) -> None:
    """Kill a process and all its descendants, itself last: while it lives, none of them is lost sight of."""
    if WINDOWS:
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False)
        return
    for _ in range(_PASSES):
        now = table()
        alive = [one for one in below(pid, now) if now[one].state not in "ZX"]
        if not alive:
            break
        _kill(alive)
        time.sleep(_MOMENT)
    _kill([pid])


def end_below(pid: int, spare: Iterable[int] = ()) -> None:
    """Kill all descendants of a process but not itself, nor some of its children with theirs, and reap our own."""
    spared = set(spare)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        children = [known.pid for known in table().values() if known.parent == pid and known.pid not in spared]
        if not children:
            return
        for child in children:
            end_tree(child)
            if pid == os.getpid():
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child, os.WNOHANG)
        time.sleep(_MOMENT)


def end_marked(mark: str, spare: Iterable[int] = ()) -> None:
    """Kill every process that bears a mark that begins so, with all its descendants, but for some.

    A mark is a path: in the environment that a program was started with, or of a file that is open for writing, as it
    is in every fork of a process that has it open. So what outlived the one that started it is found, too.
    """
    spared = {os.getpid(), *spare}
    for pid in [pid for pid in table() if LINUX and pid not in spared and _bears(pid, mark)]:
        end_tree(pid)


def adopt_orphans() -> None:
    """From now on a descendant whose parent dies becomes a child of this process. On Linux only."""
    _prctl(_ADOPT, 1)


def die_with_parent() -> None:
    """Be killed when the thread that started this process ends. On Linux only."""
    _prctl(_DIE_WITH_PARENT, int(getattr(signal, "SIGKILL", 9)))


def used(
    pid: int, limit: float, now: Mapping[int, Known] | None = None, *, itself: bool = True, kin: int | None = None
) -> float:
    """Bytes of memory that a process and its descendants hold, or those alone; what several share is counted once.

    What they share with `kin`, from which they were forked, was there before and is not theirs. The exact count takes a
    while: up to the limit it is only known to lie below.
    """
    pids = [pid, *below(pid, now)] if itself else below(pid, now)
    held = sum(map(_resident, pids))
    if held <= limit:
        return held
    share, own = (0.0, 0.0) if kin is None else _held(kin)
    return sum(max(theirs, all_ - (share - own)) for all_, theirs in map(_held, pids))


def heavy(pids: Iterable[int], limit: float, kin: int | None = None) -> tuple[list[int], float]:
    """Those that use more, with their descendants, and seconds to wait, so as not to spend all time on looking."""
    begun = time.monotonic()
    now = table()
    found = [pid for pid in pids if used(pid, limit, now, kin=kin) > limit]
    return found, max(_WEIGH, _LEISURE * (time.monotonic() - begun))


def bytes_of(memory: Any) -> float:
    """A size such as 2e9, "2GB" or "512 MiB" in bytes."""
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]i?b)\s*", memory.lower())
        size = float(found[1]) * _UNITS[found[2]] if found else 0.0
    else:
        number = isinstance(memory, int | float) and not isinstance(memory, bool)
        size = float(memory) if number else 0.0
    if not 0 < size < float("inf"):
        raise ValueError(
            f'memory must be a size such as "2GB", or a number of bytes; got {memory!r}. None sets no limit.'
        )
    return size


def sized(size: float) -> str:
    """A size in words: 2 GB."""
    unit = next((unit for unit in ("TB", "GB", "MB", "KB") if size >= _UNITS[unit.lower()]), None)
    return f"{size:g} bytes" if unit is None else f"{size / _UNITS[unit.lower()]:.4g} {unit}"


def how_it_ended(code: int | None) -> str:
    """A process's exit code in words; a negative one is a signal, None if nobody knows."""
    if code is None:
        return "its process was killed"
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"killed by signal {-code} ({signal.Signals(-code).name})"
    return f"killed by signal {-code}"


class Orphaned:
    """Tells whether this process has lost its parent."""

    def __init__(self, parent: int) -> None:
        self._parent = parent

    def __call__(self) -> bool:
        """Whether the parent died."""
        return os.getppid() != self._parent

    def end_when_true(self) -> None:
        """End this process with all its descendants as soon as its parent dies."""

        def watch() -> None:
            while not self():
                time.sleep(_LOOK)
            end_below(os.getpid())
            os._exit(1)

        threading.Thread(target=watch, daemon=True, name="crashbo-orphaned").start()


class Sentry:
    """A process that ends what others leave behind, and those others, too, should this process be killed.

    A pool's workers wait for their next call for ever when their parent was killed, and what they started outlives
    them. The sentry is told who they are, and remembers their descendants; it is a process of its own since nobody else
    may be left.

    Args:
        folder: of files that name those who are at work; they are the marks of what those start, see `end_marked`.
    """

    def __init__(self, folder: str) -> None:
        command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), folder]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        self._known: set[int] = set()

    @contextmanager
    def over_forks(self) -> Iterator[None]:
        """Watch every fork of this process that is made here. It reports itself: we may be killed before we know."""
        global _reports_to
        assert self._process.stdin is not None
        _reports_to = self._process.stdin.fileno()
        try:
            yield
        finally:
            _reports_to = None

    def over(self, pids: Iterable[int]) -> None:
        """Watch these, too."""
        new = set(pids) - self._known
        self._known |= new
        self._say("".join(f"{pid} {started(pid)}\n" for pid in new))

    def close(self) -> None:
        """End what the dead have left, and nobody else."""
        self._say("close\n")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2 * _PATIENCE)
        self._process.kill()
        self._process.communicate()

    def _say(self, lines: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(lines.encode())
            self._process.stdin.flush()


_reports_to: int | None = None  # where a fork of this process reports itself


def _report() -> None:
    global _reports_to
    if _reports_to is not None:
        with contextlib.suppress(OSError):
            os.write(_reports_to, f"{os.getpid()} {started(os.getpid())}\n".encode())
        _reports_to = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_report)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _known(pid: int) -> Known | None:
    return _read_stat(pid) if LINUX else table().get(pid)


def _of_proc() -> Iterator[Known]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (known := _read_stat(int(name))) is not None:
            yield known


def _read_stat(pid: int) -> Known | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # a command's name may hold anything
        return Known(pid, int(fields[1]), fields[19].decode(), fields[0].decode())
    except (OSError, IndexError):  # it ends in this moment
        return None


def _of_ps() -> Iterator[Known]:
    shown = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat=,lstart="], capture_output=True, text=True, check=False
    ).stdout
    for line in shown.splitlines():
        pid, parent, state, begun = line.split(maxsplit=3)
        yield Known(int(pid), int(parent), begun.strip(), state[:1])


def _resident(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except (OSError, IndexError):
        return 0.0


def _held(pid: int) -> tuple[float, float]:
    """Bytes that a process holds, of shared pages its share; and those that it holds alone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            said = {line.split()[0]: float(line.split()[1]) * 1024 for line in file.readlines()[1:]}
        return said[b"Pss:"], said[b"Private_Clean:"] + said[b"Private_Dirty:"]
    except (OSError, IndexError, KeyError):
        return (_resident(pid),) * 2


def _bears(pid: int, mark: str) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        if b"\0" + f"{MARK}={mark}".encode() in b"\0" + file.read():
            return True
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{number}").startswith(mark) and _writes(pid, number):
                    return True
    return False


def _writes(pid: int, number: str) -> bool:
    """Whether a descriptor is for writing; who only reads a mark does not bear it."""
    with open(f"/proc/{pid}/fdinfo/{number}") as file:
        flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
    return flags & os.O_ACCMODE == os.O_WRONLY


def _prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _stand_sentry() -> None:
    """What a sentry does, until it is told to close or has lost the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orphaned, said = Orphaned(int(sys.argv[1])), deque[bytes]()
    threading.Thread(target=lambda: said.extend(iter(sys.stdin.buffer.readline, b"")), daemon=True).start()
    watched: dict[int, str] = {}  # with when they began
    kin: dict[int, dict[int, str]] = {}  # their descendants
    while True:
        begun_at = time.monotonic()
        if over := orphaned():
            time.sleep(_LAST_REPORTS)
        while said:
            word, _, begun = said.popleft().decode().strip().partition(" ")
            if word == "close":
                over = True
            else:
                watched[int(word)] = begun
        now = table()
        for pid, begun in list(watched.items()):
            if lives(pid, begun, now):
                kin.setdefault(pid, {}).update({one: now[one].started for one in below(pid, now)})
            else:
                del watched[pid]
                for one, since in kin.pop(pid, {}).items():
                    if lives(one, since, now):
                        end_tree(one)
                for sheet in _sheets(sys.argv[2], pid):
                    end_marked(sheet)
        if over:
            break
        time.sleep(min(max(_WATCH, _LEISURE * (time.monotonic() - begun_at)), 1.0))
    if orphaned():
        for pid in watched:
            end_tree(pid)
        end_marked(sys.argv[2])
        shutil.rmtree(sys.argv[2], ignore_errors=True)
    os._exit(0)  # without waiting for the thread that still reads


def _sheets(folder: str, pid: int) -> Iterator[str]:
    """Marks of what a process was doing: files in the folder that name it."""
    with contextlib.suppress(OSError):
        for path in [os.path.join(folder, name) for name in os.listdir(folder)]:
            with contextlib.suppress(OSError), open(path) as file:
                if file.read().split()[:1] == [str(pid)]:
                    yield path


if __name__ == "__main__":
    _stand_sentry()
