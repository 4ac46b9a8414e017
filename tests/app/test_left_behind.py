"""`crashbo run` and `crashbo serve` leave no process behind, whichever signal ends them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from jumper import SAID, current_of, height_of

from crashbo import processes
from crashbo.app.bench import Bench, Definition, Told

if not processes.LINUX:
    pytest.skip("who is left is seen in /proc", allow_module_level=True)
pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")

MARK = "CRASHBO_TEST_MARK"
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGKILL]
# Whoever runs the tests in the background may have had SIGINT ignored for them.
CODE = """if True:
    import signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from crashbo.app.cli import main
    sys.exit(main())
"""


class Family:
    """A command of crashbo and all that it starts, known by a mark in their environment."""

    def __init__(self, *arguments):
        self._mark = f"{MARK}={uuid.uuid4().hex}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE, *arguments],
            env={**os.environ, **dict([self._mark.split("=")])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def alive(self):
        return [pid for pid in processes.table() if self._mark.encode() in environment(pid).split(b"\0")]

    def end(self, number):
        """Send a signal to the command alone; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def left(self):
        """Who still lives ten seconds later; nobody, if that is so before."""
        deadline = time.monotonic() + 10.0
        while (alive := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in alive]

    def close(self):
        for pid in self.alive():
            processes.end_tree(pid)
        self.process.communicate()


def environment(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def start(store):
    Bench.create(store, Definition.of(SAID))
    families = []

    def start(*arguments):
        families.append(Family(*arguments))
        return families[-1]

    yield start
    for family in families:
        family.close()


def until(true, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("number", SIGNALS)
def test_run_takes_its_command_along_however_that_hides(start, store, tmp_path, number):
    hang = f"setsid sleep 60 & (setsid sh -c 'trap : TERM INT; sleep 61; sleep 62' &); touch {tmp_path}/hangs; sleep 63"
    family = start("run", "--store", store, "--", "sh", "-c", hang)
    until((tmp_path / "hangs").exists)
    until(lambda: len(family.alive()) >= 7)  # us, keeper, worker, the shells and sleepers
    assert family.end(number) == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert family.left() == []
    (trial,) = Bench.open(store).trials
    if number == signal.SIGKILL:  # nobody was left to tell: its lease will
        assert trial.state == "pending"
    else:
        assert (trial.state, trial.reason) == ("void", "interrupted while it ran")


def test_run_leaves_nobody_when_it_is_done(start, store):
    family = start("run", "--store", store, "--trials", "2", "--", "sh", "-c", "setsid sleep 60 & echo 1")
    assert family.process.wait(timeout=60) == 0
    assert family.alive() == []
    assert [t.cost for t in Bench.open(store).trials] == [1.0, 1.0]


def test_run_whose_workers_are_taken_away_says_so_and_leaves_no_trial_pending(start, store, tmp_path):
    family = start("run", "--store", store, "--", "sh", "-c", f"ps -o ppid= -p $PPID > {tmp_path}/keeper; sleep 60")
    keeper = until(lambda: (tmp_path / "keeper").exists() and (tmp_path / "keeper").read_text().strip())
    os.kill(int(keeper), signal.SIGKILL)
    assert family.process.wait(timeout=20) == 1
    sentence = "the process that keeps the workers was killed; the trial is void. Run it again.\n"
    assert family.process.stderr.read() == sentence
    (trial,) = Bench.open(store).trials
    assert (trial.state, trial.reason) == ("void", "BrokenWorkers while it ran")


@pytest.fixture
def served(start, store):
    """A server that is busy: models are being fitted, requests are under way, somebody listens for events."""
    bench = Bench.open(store)
    for i in range(25):
        params = {"knee": i / 25, "hip": (7 * i % 25) / 25}
        bench.add(params, Told.of(cost=height_of(params), measured={"current": current_of(params)}))
    family = start("serve", "--store", store, "--port", "0")
    place = "127.0.0.1", int(family.process.stdout.readline().rpartition(":")[2])
    with contextlib.ExitStack() as connections:

        def connection():
            with contextlib.suppress(ConnectionRefusedError):  # it says where it will be, and then listens
                return connections.enter_context(socket.create_connection(place, timeout=60.0))

        def send(method, path, body=""):
            more = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            line = until(connection)
            line.sendall(f"{method} {path} HTTP/1.1\r\n{more}\r\n\r\n{body}".encode())
            return line

        assert send("GET", "/api/events").recv(100).startswith(b"HTTP/1.1 200")
        until(lambda: len(family.alive()) >= 4)  # server, tracker of resources, and two that think
        for i in range(3):
            send("POST", "/api/ask", json.dumps({"request": f"r{i}"}))
        time.sleep(0.2)  # they are under way
        yield family


@pytest.mark.parametrize("number", SIGNALS)
def test_serve_ends_its_workers_in_the_middle_of_their_thoughts(served, number):
    assert served.end(number) == {signal.SIGTERM: 0, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert served.left() == []
    if number != signal.SIGKILL:
        assert "Traceback" not in served.process.stderr.read()


def test_serve_that_is_interrupted_twice_hurries_and_still_leaves_nobody(served):
    served.process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    served.end(signal.SIGINT)
    assert served.left() == []
