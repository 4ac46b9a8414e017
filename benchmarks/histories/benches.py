"""Histories of the bench: SQLite files, by the command line and by the HTTP service.

Every step uses new objects, as another process would. Times, which are never the same, are left out.
"""

import http.client
import io
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from crashbo.app import cli
from histories.optuna_studies import BORN, timeless
from histories.tape import FileTape


class BenchTape(FileTape):
    """A SQLite file of the bench, changed by its commands."""

    name = "bench.db"

    def command(self, *words: str, what: str | None = None, file: str | None = None) -> Any:
        """Run one command: exit code, output and errors. Its last argument may name a file."""

        def act(path: Path) -> Any:
            out, err = io.StringIO(), io.StringIO()
            if file is not None:
                path.with_name(words[-1]).write_text(file)
            at = words.index("--") if "--" in words else len(words)
            arguments = [*words[:at], "--store", path.name, "--json", *words[at:]]
            with redirect_stdout(out), redirect_stderr(err):
                code = cli.main(arguments)
            return [code, [timeless(json.loads(line)) for line in out.getvalue().splitlines()], err.getvalue()]

        return self.do(what or words[0], act)

    def ask(self, *words: str) -> Any:
        """The next trial, as plain values."""
        return self.command("ask", *words)[1][0]

    def packed(self, path: Path) -> bytes:
        """The whole database, including its write-ahead log, with a fixed start time of its first trial."""
        whole = path.with_name("whole.db")
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(whole)) as target:
            source.backup(target)
            target.execute("UPDATE trials SET datetime_start = ? WHERE number = 0 AND datetime_start > ''", [BORN])
            target.commit()
            target.execute("PRAGMA journal_mode=DELETE")
        return whole.read_bytes()

    def essence(self, saved: bytes) -> Any:
        """Every row of every table, by its key."""
        with self.unpacked(saved) as path, closing(sqlite3.connect(path)) as database:
            database.row_factory = sqlite3.Row
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {table: dict(map(in_table, database.execute(f"SELECT * FROM {table}"))) for table in tables}


def in_table(row: sqlite3.Row) -> tuple[str, Any]:
    """A row's key and its content: Optuna numbers rows as they are written, in any order."""
    cells = dict(row)
    named = [str(cells[key]) for key in ("study_id", "trial_id", "key", "param_name", "objective") if key in cells]
    values = {key: v for key, v in cells.items() if "datetime" not in key and not key.endswith("_id")}
    if "value_json" in values:
        said = json.loads(values["value_json"])
        values["value_json"] = timeless({values["key"]: said})
    return " ".join(named), values


OVEN = """
parameters = {heat = {low = 50, high = 300, unit = "C"}, minutes = {low = 1, high = 60, int = true, log = true}}
constraints = {smoke = {side = "above", unit = "ppm"}, door = {measured = false}}
risk = {crashes = 6, trials = 40}
cost = {label = "colour"}
start = [{heat = 120, minutes = 10}]
run = {on_exit = "crash", timeout = 60}
"""
BAKED = """heat,minutes,cost,smoke,state,reason,blame
100,5,3.5,12,,,
280,50,,,crash,burnt,smoke
90,30,2.5,20,success,,
200,20,,,void,power cut,
"""
BAKER = """
import json, sys
p = json.load(sys.stdin)
smoke = p["heat"] * p["minutes"] ** 0.5 / 10
smoke > 90 and sys.exit("burnt")
print(json.dumps({"cost": (smoke - 60) ** 2 / 1000, "measured": {"smoke": smoke}}))
"""


def oven(tape: BenchTape) -> None:
    """From a TOML file: trials asked and told, corrected, undone, imported, run by a command."""
    tape.command("new", "oven.toml", file=OVEN)
    for i in range(8):
        trial = tape.ask(*(("--request", "twice") if i == 3 else ()))
        tape.command("tell", str(trial["number"]), *baked(trial["params"]))
        if i == 2:
            tape.command("trials", "--import", "old.csv", file=BAKED)
            tape.command("trials", "--import", "old.csv", file=BAKED)
    tape.ask("--request", "twice")
    tape.command("fix", "1", "--crash", "it burnt", "--blame", "door")
    tape.command("fix", "1", "--void", "wrong oven")
    for words in (["undo", "1"], ["undo"], ["undo", "1"], ["undo", "1"]):
        tape.command(*words)
    tape.command("tell", "1", "--cost", "1.5")
    tape.ask()
    tape.command("run", "--trials", "2", "--", sys.executable, "-c", BAKER, what="ask and run")
    finish(tape)


def baked(params: dict[str, Any]) -> list[str]:
    """The outcome of a trial, as arguments of the command."""
    smoke = params["heat"] * params["minutes"] ** 0.5 / 10
    if smoke > 90:
        return ["--crash", "burnt", "--measured", "smoke=95", "--censored", "smoke"]
    return ["--cost", str((smoke - 60) ** 2 / 1000), "--measured", f"smoke={smoke!r}"]


def leased(tape: BenchTape) -> None:
    """From flags: labels only, maximised; running trials, leases that run out, late results, refusals."""
    tape.command(
        *("new", "walk", "--param", "gait=trot,bound,pace", "--param", "rate=1e-3:1:log", "--param", "lift=0:0.5"),
        *("--maximize", "--min-safe", "0.7", "--noise", "0.05", "--lease", "1000000"),
    )
    for i in range(10):
        trial = tape.ask(*(("--lease", "1e-9") if i % 4 == 1 else ()))  # so short that it is over when it is told
        if i % 3 == 2:
            continue  # under way for good
        crash = trial["params"]["lift"] > 0.35 and trial["params"]["gait"] != "pace"
        told = ("--crash",) if crash else ("--cost", str(trial["params"]["lift"]))
        if i % 4 != 1 or i > 5:  # the last of those whose lease ran out is told all the same
            tape.command("tell", str(trial["number"]), *told)
    tape.command("tell", "0", "--cost", "99")
    tape.command("tell", "77", "--crash")
    finish(tape)


def finish(tape: BenchTape) -> None:
    """What the bench says about a study."""
    for words in (["best"], ["thresholds"], ["trials"]):
        tape.command(*words)
    tape.do("csv", csv)
    tape.ask()


def csv(path: Path) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        cli.main(["trials", "--csv", "--store", path.name])
    return out.getvalue()


@contextmanager
def server(store: str) -> Iterator[Callable[..., Any]]:
    """Run `crashbo serve` on a store; yields a function that sends it a request."""
    code = "import sys; from crashbo.app.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", "--store", store, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        with process.stdout:
            port = int(process.stdout.readline().strip().rpartition(":")[2])
            wait_for(port)
            yield lambda *words: request(port, *words)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the workers that it started
        process.wait()


def wait_for(port: int) -> None:
    """Wait until the server listens: it announces its address a moment before."""
    for _ in range(300):
        with closing(socket.socket()) as knock:
            if knock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the server does not answer")


def request(port: int, path: str, body: Any = None) -> Any:
    """Status and answer; a request with a body is a POST."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        data = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return [answer.status, timeless(json.loads(answer.read()))]


def served(tape: BenchTape) -> None:
    """One ask per start of the server: what it would remember of an earlier one depends on timing."""
    tape.command("new", "oven.toml", file=OVEN)
    tape.command("trials", "--import", "old.csv", file=BAKED)

    def serve(what: str, act: Callable[[Callable[..., Any]], Any]) -> Any:
        def on_file(path: Path) -> Any:
            with server(path.name) as send:
                return act(send)

        return tape.do(what, on_file)

    serve("ask and correct", corrected)
    serve("ask", lambda send: send("/api/ask", {"lease": 1e6}))
    serve("ask and look", observed)


def corrected(send: Callable[..., Any]) -> list[Any]:
    """Everything that can be told about a trial, and what is refused."""
    told = {"cost": 1.0, "measured": {"smoke": 30.0}, "request": "t"}
    return [
        send("/api/ask", {"request": "r"}),
        send("/api/ask", {"request": "r"}),
        send("/api/trials/0/tell", told),
        send("/api/trials/0/tell", told),
        send("/api/trials/0/fix", {"crash": "burnt", "blame": ["smoke"]}),
        send("/api/trials/1/undo", {}),
        send("/api/trials/1/void", {"reason": "power cut"}),
        send("/api/trials", {"params": {"heat": 70.0, "minutes": 5}, "cost": 4.0}),
        send("/api/trials/0/tell", {"cost": 1.0}),
        send("/api/trials/99/tell", {"cost": 1.0}),
        send("/api/trials/0/tell", {"cost": "high"}),
        send("/api/trials"),
    ]


def observed(send: Callable[..., Any]) -> list[Any]:
    """What the service says about the study, once all fits are done."""
    asked, states = send("/api/ask", {}), [trial["state"] for trial in send("/api/trials")[1]]
    told, pending = sum(state in ("success", "crash") for state in states), states.count("pending")
    for _ in range(600):
        insight = send("/api/insight")[1] or {"expected": {}, "history": {}}
        looked = [len(insight["expected"]), *map(len, insight["history"].values())]
        if looked == [pending, *[told] * len(insight["history"])] and told:
            break
        time.sleep(0.1)
    at = {"axes": ["heat"], "at": {"minutes": 10}, "size": 9}
    views = [send("/api/best"), send("/api/thresholds"), send("/api/slice", at), send("/api/state")[1]["study"]]
    return [asked, insight, *views]


HISTORIES: dict[str, Callable[[BenchTape], None]] = {"bench": oven, "bench-leases": leased, "service": served}
