"""The HTTP service under load, and with malformed bodies. Prints its findings; exits with 1 if a requirement is broken.

    python benchmarks/service.py load --clients 32 --seconds 60
    python benchmarks/service.py clients --clients 32 --seconds 60    # the same without a pause: as fast as it answers
    python benchmarks/service.py malformed --bodies 10000
    python benchmarks/service.py schema        # needs schemathesis

Load: each client asks, waits as an experiment would, and tells; one call in five is sent twice, as after a lost answer.
Requirements: no trial lost, none told twice, no 5xx, p95 of a tell below 100 ms while models are being fitted; without
a pause also p50 of an ask below 1 s, p95 below 3 s, and none that times out.
"""

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from crashbo.app.bench import Bench, Definition

SLOW = 0.100  # seconds, of a tell
PATIENCE = 1.0, 3.0  # seconds, of an ask: half of them, 95 %
JUMP = {
    "name": "jump",
    "direction": "maximize",
    "parameters": {"knee": [0.0, 1.0], "hip": [0.0, 1.0], "mode": ["trot", "bound"]},
    "constraints": {"current": {"unit": "A"}, "heat": {}},
}


@contextmanager
def server(store, *more, port=0):
    """Run `crashbo serve` in its own process; yields the port."""
    code = "import sys; from crashbo.app.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", "--store", str(store), "--port", str(port), *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        line = process.stdout.readline()
        if "http://" not in line:
            raise RuntimeError(f"the server did not start: {line!r}")
        found = int(line.strip().rpartition(":")[2])
        until_ready(found)
        yield found
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def until_ready(port):
    for _ in range(300):
        try:
            if call(port, "GET", "/api/thresholds")[0]:
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server does not answer")


def call(port, method, path, body=None, *, raw=None, headers=None, keep=None):
    """One request: status, answer, seconds."""
    connection = keep or http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    data = raw if raw is not None else (json.dumps(body).encode() if body is not None else None)
    began = time.perf_counter()
    connection.request(method, path, data, headers or {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    seconds = time.perf_counter() - began
    if keep is None:
        connection.close()
    try:
        return answer.status, json.loads(text), seconds
    except ValueError:
        return answer.status, text.decode("utf-8", "replace"), seconds


def outcome(params, rng):
    current = 60 + 45 * params["knee"] + 40 * params["knee"] * params["hip"]
    if rng.random() < 0.03:
        return {"void": "unplugged"}
    if current > 112:
        return {"crash": "tripped"}
    height = 0.35 + 0.4 * params["knee"] - 0.5 * (params["hip"] - 0.6) ** 2
    return {"cost": height, "measured": {"current": current, "heat": 20 + current / 3}}


class Client(threading.Thread):
    """Asks, waits, tells, until time is up."""

    def __init__(self, port, number, end, pause):
        super().__init__(daemon=True)
        self.port, self.number, self.end, self.pause = port, number, end, pause
        self.rng = random.Random(number)
        self.told, self.tells, self.asks, self.statuses, self.twice = {}, [], [], Counter(), 0
        self.gave_up = False

    def run(self):
        """Until time is up."""
        try:
            self.work()
        except TimeoutError:
            self.gave_up = True

    def work(self):
        """Ask, run, tell."""
        keep = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        turn = 0
        while time.time() < self.end:
            turn += 1
            trial, seconds = self.sent(keep, "/api/ask", {"request": f"{self.number}-{turn}", "lease": 600})
            self.asks.append(seconds)
            time.sleep(self.rng.random() * self.pause)
            body = {**outcome(trial["params"], self.rng), "request": f"tell-{self.number}-{turn}"}
            said, seconds = self.sent(keep, f"/api/trials/{trial['number']}/tell", body)
            self.tells.append(seconds)
            self.told[trial["number"]] = said
        keep.close()

    def sent(self, keep, path, body):
        """Send a request, sometimes twice."""
        status, said, seconds = call(self.port, "POST", path, body, keep=keep)
        self.statuses[status] += 1
        if self.rng.random() < 0.2:  # as if the answer had been lost
            again, repeated, _ = call(self.port, "POST", path, body, keep=keep)
            self.statuses[again] += 1
            self.twice += repeated["number"] != said["number"]
        return said, seconds


def load(clients, seconds, pause=0.3):
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "load.db"
        Bench.create(str(store), Definition.of(JUMP))
        with server(store) as port:
            end = time.time() + seconds
            running = [Client(port, number, end, pause) for number in range(clients)]
            began = time.time()
            for client in running:
                client.start()
            thinking = Counter()
            while any(c.is_alive() for c in running):
                thinking[call(port, "GET", "/api/trials/0")[0]] += 1
                time.sleep(0.5)
            took = time.time() - began
        return judge(store, running, took, patient=pause > 0.0)


def judge(store, running, took, patient):
    tells = sorted(s for c in running for s in c.tells)
    asks = sorted(s for c in running for s in c.asks)
    statuses = sum((c.statuses for c in running), Counter())
    trials = {t.number: t for t in Bench.open(str(store)).trials}
    told = {number: said for c in running for number, said in c.told.items()}
    wrong = [n for n, said in told.items() if (trials[n].state, trials[n].cost) != (said["state"], said["cost"])]
    shared = len(told) < sum(len(c.told) for c in running)
    unheard = [n for n, t in trials.items() if n not in told and t.state != "pending"]
    at = lambda values, q: values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")  # noqa: E731
    print(f"{len(running)} clients, {took:.0f} s: {len(trials)} trials, {len(told)} told, statuses {dict(statuses)}")
    print(
        f"tell  p50 {1e3 * at(tells, 0.5):.0f} ms  p95 {1e3 * at(tells, 0.95):.0f} ms  max {1e3 * at(tells, 1):.0f} ms"
    )
    print(f"ask   p50 {at(asks, 0.5):.2f} s  p95 {at(asks, 0.95):.2f} s  max {at(asks, 1):.2f} s")
    checks = {
        "no answer but 200": set(statuses) == {200},
        "no trial handed out twice": not shared and not any(c.twice for c in running),
        "no told trial lost or changed": not wrong,
        "no trial told that nobody told": not unheard,
        f"p95 of tell under {1e3 * SLOW:.0f} ms": at(tells, 0.95) < SLOW,
    }
    if not patient:
        half, most = PATIENCE
        checks |= {
            f"p50 of ask under {half:g} s, p95 under {most:g} s": at(asks, 0.5) < half and at(asks, 0.95) < most,
            "no ask timed out": not any(c.gave_up for c in running),
        }
    return report(checks)


def rubbish(rng):
    """A body that no route should accept, and the path to send it to."""
    deep = b"[" * rng.randrange(1, 20000)
    text = rng.choice(
        ["'; DROP TABLE trials; --", "<script>alert(1)</script>", "\\ud800", "x" * 5000, "\u0000", "../../etc/passwd"]
    )
    odd = rng.choice([text, [1], {}, None, True, -1, "1e5", 1e308, 10**400, [[]], {"a": {"b": []}}])
    bodies = [
        deep,
        bytes(rng.randrange(256) for _ in range(rng.randrange(0, 60))),
        b'{"cost": NaN}',
        b'{"cost": Infinity, "measured": {"current": -Infinity}}',
        b'{"cost": 1e999}',
        b'{"cost": ' + b"9" * rng.randrange(40, 6000) + b"}",
        b'{"cost": 1, "crash": true}',
        b'{"cost": 1} trailing',
        b'{"cost": 1, "cost2": 2}',
        json.dumps({"cost": odd, "measured": odd}).encode(),
        json.dumps({"cost": 1.0, "measured": {text: 1.0}}).encode(),
        json.dumps({"crash": text * rng.randrange(200, 400)}).encode(),
        json.dumps({"crash": True, "blame": [text]}).encode(),
        json.dumps({"void": odd if not isinstance(odd, str) and odd is not True else []}).encode(),
        json.dumps({"params": odd, "cost": 1.0}).encode(),
        json.dumps({"request": [odd]}).encode(),
        b"x" * 70000,
        b"",
        b"null",
    ]
    number = rng.choice(["0", "999", "-1", "x", "1e3", "99999999999999999999", "%00", "..%2f.."])
    path = rng.choice([f"/api/trials/{number}/tell", f"/api/trials/{number}/fix", "/api/trials"])
    return path, rng.choice(bodies)


def malformed(bodies, seed=0):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "malformed.db"
        bench = Bench.create(str(store), Definition.of(JUMP))
        bench.ask()
        before = bench.trials
        statuses, bad = Counter(), []
        with server(store) as port:
            for i in range(bodies):
                path, raw = rubbish(rng)
                try:
                    status, said, _ = call(port, "POST", path, raw=raw)
                except (ConnectionError, http.client.HTTPException) as error:
                    status, said = 0, repr(error)
                statuses[status] += 1
                sentence = said.get("error") if isinstance(said, dict) else None
                if not 400 <= status < 500 or not isinstance(sentence, str) or "\n" in sentence or len(sentence) > 400:
                    bad.append((path, raw[:80], status, str(said)[:200]))
                if sys.stderr.isatty() and i % 100 == 0:
                    print(f"\r{i}/{bodies}", end="", file=sys.stderr)
        print(f"{bodies} malformed bodies: statuses {dict(statuses)}")
        for case in bad[:5]:
            print("not as promised:", *case)
        return report(
            {"4xx with one sentence for each": not bad, "study unchanged": Bench.open(str(store)).trials == before}
        )


def schema(examples=50):
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "schema.db"
        Bench.create(str(store), Definition.of(JUMP))
        with server(store) as port:
            url = f"http://127.0.0.1:{port}/api/openapi.json"
            checks = "not_a_server_error,status_code_conformance,content_type_conformance"
            checks += ",response_schema_conformance,unsupported_method"
            beside = Path(sys.executable).parent / "schemathesis"
            command = [beside if beside.exists() else "schemathesis", "run", url, "--checks", checks]
            command += ["--max-examples", str(examples), "--request-timeout", "60"]
            command += ["--exclude-path", "/api/events", "--exclude-path", "/api/report.html"]  # both take their time
            command += ["--max-time", "240"]
            done = subprocess.run([*map(str, command)], cwd=folder, check=False)
        return done.returncode == 0


def report(checks):
    for promise, kept in checks.items():
        print(("kept    " if kept else "BROKEN  ") + promise)
    return all(checks.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="what")
    one = commands.add_parser("load")
    both = commands.add_parser("clients")
    for parser_of in (one, both):
        parser_of.add_argument("--clients", type=int, default=32)
        parser_of.add_argument("--seconds", type=float, default=60.0)
    two = commands.add_parser("malformed")
    two.add_argument("--bodies", type=int, default=10_000)
    commands.add_parser("schema")
    options = parser.parse_args()
    if options.what == "schema":
        return schema()
    if options.what == "malformed":
        return malformed(options.bodies)
    pause = 0.0 if options.what == "clients" else 0.3
    return load(getattr(options, "clients", 32), getattr(options, "seconds", 60.0), pause)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
