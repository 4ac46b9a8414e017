"""Ways for an experiment to die, importable by worker processes, and a look at who still lives."""

import ctypes
import faulthandler
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LEFT_BEHIND = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
DETACHED = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"


def die(how, marks=None):
    """Die in this way; None returns 1.0. Processes that are left behind write their number into the folder `marks`."""
    if how == "segfault":
        faulthandler.disable()  # pytest's, which would show a page
        ctypes.string_at(0)
    elif how == "exit":
        os._exit(3)
    elif how == "sys.exit":
        sys.exit(4)
    elif how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "kill group":
        os.killpg(0, signal.SIGKILL)
    elif how == "memory":
        held = []
        while True:
            held.append(bytearray(10**7))
    elif how == "hang":
        time.sleep(600)
    elif how in ("hang with children", "segfault with children"):
        leave_behind(marks)
        die(how.split()[0])
    elif how == "nan":
        return math.nan
    elif how == "error":
        raise ValueError("my bug")
    return 1.0


def leave_behind(marks):
    """A child, one in a session of its own, and one whose parent is gone; they note that they live."""
    note = "import os, sys, time; open(os.path.join(sys.argv[1], str(os.getpid())), 'w').close(); time.sleep(600)"
    sleeper = [sys.executable, "-S", "-c", note, str(marks)]
    subprocess.Popen(sleeper)
    subprocess.Popen(sleeper, start_new_session=True)
    subprocess.run([sys.executable, "-S", "-c", DETACHED, *sleeper], check=True)
    assert wait_for(lambda: len(list(Path(marks).iterdir())) >= 3)


def pids(marks):
    """Who was left behind in that folder."""
    return [int(path.name) for path in Path(marks).iterdir()]


def lives(pid):
    """Whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, seconds=30.0):
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def gone(numbers, seconds=10.0):
    """Whether all of these are gone in time."""
    return wait_for(lambda: not any(map(lives, numbers)), seconds)
