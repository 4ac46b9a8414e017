"""Chaos: experiments that really die, parents that are killed, and a check of what the studies made of it.

300 runs of `deadly.experiment` in each of four settings: `minimize(workers=4)`, `minimize(executor=...)` of four
processes, an Optuna fleet of four on PostgreSQL with leases, and `crashbo run`. In the first two the parent is killed
with -9 at random moments, 50 times each, and the same call made again at once. No told trial may be lost or doubled, no
success be told as a crash, no death be missed, and no process be left ten seconds after the end. The search must be as
good as where deaths are a polite `raise Crash`. Otherwise it ends with exit code 1. On Linux only; the fleet needs the
extra `dev`.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import crashbo
import deadly
from crashbo import processes
from deadly import DEATHS, SPACE, note, notes

CREW = 4
LIMITS: dict[str, Any] = {"timeout": deadly.TIMEOUT, "memory": "400MB"}
RULES: dict[str, Any] = {"on_error": "crash", "on_nan": "crash"}
LEASE = 10.0  # seconds, of the fleet
GONE = 10.0  # seconds after which nothing may be left
STUCK = 120.0  # seconds without a word
LARGEST = 0.02  # of the range: what the search may be worse by
NAME = "chaos"
REASONS = {
    "segfault": r"signal 11\b",
    "SIGKILL": r"signal 9\b",
    "SIGKILL with children": r"signal 9\b",
    "os._exit": r"exit code [07]\b|no result",
    "memory": "more than 400 MB",
    "hang": "no (answer|result) within 3 s",
    "hang with children": "no (answer|result) within 3 s",
    "NaN": "no finite cost",
    "exception": "(?i)broken|out of range",
}
HERE = Path(__file__).resolve().parent

Note = dict[str, Any]


@dataclass
class Verdict:
    """What came of one setting."""

    setting: str
    faults: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)  # how often each was run
    states: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    seconds: float = 0.0

    def left(self, alive: Mapping[int, str]) -> None:
        """Processes were left; each counts once."""
        faults = [f"left after ten seconds: {pid} {words}" for pid, words in alive.items()]
        self.faults += [fault for fault in faults if fault not in self.faults]

    @property
    def row(self) -> str:
        """As a line of the table."""
        ran, died = sum(self.kinds.values()), sum(self.kinds[kind] for kind in DEATHS)
        told = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        good = "good" if not self.faults else f"{len(self.faults)} FAULTS"
        return f"{self.setting:8} {ran:5} {died:5} {self.kills:5} {self.seconds:6.0f} s  {good:10} {told}"


class Marks:
    """Our processes by their marks: each run has its own, which whatever it starts inherits."""

    def __init__(self, setting: str) -> None:
        self._start = f"{setting}-{os.getpid()}-{random.getrandbits(48):x}-"
        self._ended: dict[str, float] = {}
        self._count = 0

    def new(self) -> str:
        """Of a new run."""
        self._count += 1
        return f"{self._start}{self._count}."

    def end(self, mark: str) -> None:
        """A run is over."""
        self._ended[mark] = time.monotonic()

    def overdue(self) -> dict[int, str]:
        """Processes of runs that ended more than ten seconds ago, and what they are."""
        past = [mark for mark, when in self._ended.items() if time.monotonic() - when > GONE]
        return {pid: words for pid, words in self.alive().items() if any(mark in words for mark in past)}

    def left(self) -> dict[int, str]:
        """Processes that are left ten seconds after the end."""
        deadline = time.monotonic() + GONE
        while (found := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.2)
        for pid in found:
            processes.end_tree(pid)
        return found

    def alive(self) -> dict[int, str]:
        """All of them, and what they are."""
        return {pid: words for pid in processes.table() if self._start in (words := _words_of(pid))}


def _words_of(pid: int) -> str:
    """The command and the mark of a process; nothing if it is dead."""
    words = []
    for name in ("cmdline", "environ"):
        with suppress(OSError):
            text = Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace").split("\0")
            words += text if name == "cmdline" else [word for word in text if word.startswith(deadly.MARK)]
    return " ".join(words)


def killed_at_random(setting: str, folder: Path, trials: int, kills: int, seed: int) -> Verdict:
    """`minimize` in a parent that is killed again and again."""
    rng, verdict, marks = random.Random(seed), Verdict(setting), Marks(setting)
    log, began = folder / "log", time.monotonic()
    moments = sorted(rng.uniform(0, 0.9 * trials) for _ in range(kills))  # later ones may come too late
    seen: list[Note] = []
    while True:
        mark = marks.new()
        call = _call(setting, folder, trials, mark)
        killed = verdict.kills < kills and _killed(call, log, moments[verdict.kills], rng.expovariate(4.0))
        verdict.kills += killed
        if not killed and not _ended(call, log):
            verdict.faults.append(f"stuck: nothing happened for {STUCK:g} s")
            call.send_signal(signal.SIGKILL)
        code = call.wait()
        marks.end(mark)
        verdict.left(marks.overdue())
        if code not in (0, -signal.SIGKILL):
            verdict.faults.append(f"the call failed with {code}: {(folder / 'errors').read_text()[-500:]}")
        seen = _unchanged(seen, folder / "journal", verdict)
        if code == 0 or len(verdict.faults) > 50:
            break
        if killed and verdict.kills % 5 == 0:
            print(
                f"  {setting}: killed {verdict.kills} times, {_counted(seen)} trials, {len(verdict.faults)} faults",
                flush=True,
            )
    verdict.left(marks.left())
    if verdict.kills < kills:
        verdict.faults.append(f"the study ended after {verdict.kills} of {kills} kills")
    judge(_trials(seen), notes(log), trials, verdict)
    verdict.seconds = time.monotonic() - began
    return verdict


def _call(setting: str, folder: Path, trials: int, mark: str, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--call", setting, "--folder", str(folder), "--trials", str(trials), *more]
    with (folder / "errors").open("ab") as errors:
        return subprocess.Popen(command, env=_environment(folder, mark), stderr=errors)


def _environment(folder: Path, mark: str) -> dict[str, str]:
    paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths, deadly.LOG: str(folder / "log"), deadly.MARK: mark}


def _killed(call: subprocess.Popen[bytes], log: Path, moment: float, delay: float) -> bool:
    """Kill a parent a while after so many trials were told; False if it ended before."""
    while sum(line["event"] == "told" and line["state"] != "void" for line in notes(log)) < moment:
        if call.poll() is not None:
            return False
        time.sleep(0.02)
    with suppress(subprocess.TimeoutExpired):
        call.wait(delay)
        return False
    call.kill()
    return True


def _ended(call: subprocess.Popen[bytes], log: Path) -> bool:
    """Wait for a call; False if it is stuck."""
    size, since = -1, time.monotonic()
    while call.poll() is None:
        if (now := log.stat().st_size if log.exists() else 0) != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > STUCK:
            return False
        time.sleep(0.1)
    return True


def minimized(setting: str, folder: Path, trials: int) -> None:
    """The call that is killed and made again."""
    told: dict[str, Any] = {
        "trials": trials,
        "start": _start(trials),
        "journal": folder / "journal",
        "progress": False,
        "callbacks": [lambda _, t: note(event="told", number=t.number, state=t.state, cost=t.cost, reason=t.reason)],
        **LIMITS,
        **RULES,
    }
    if setting == "workers":
        crashbo.minimize(deadly.experiment, SPACE, workers=CREW, **told)
        return
    with ProcessPoolExecutor(CREW) as pool:
        crashbo.minimize(deadly.experiment, SPACE, executor=pool, **told)


def _start(trials: int) -> list[dict[str, float]]:
    """Two thirds of the trials are anywhere: a search that learns does not die often enough."""
    points = np.random.default_rng(0).random((2 * trials // 3, len(SPACE)))
    return [dict(zip(SPACE, map(float, point), strict=True)) for point in points]


def _unchanged(seen: Sequence[Note], journal: Path, verdict: Verdict) -> list[Note]:
    """The whole lines of a journal, which must begin with those that were there before."""
    text = journal.read_bytes() if journal.exists() else b""
    lines = [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]
    if lines[: len(seen)] != list(seen):
        verdict.faults.append("the journal has lost lines that it had")
    return lines


def _trials(lines: Sequence[Note]) -> list[Note]:
    """The trials of a journal; one that was told twice is there twice."""
    asked = {line["trial"]["number"]: line["trial"] for line in lines if line.get("event") == "ask"}
    told = [line["trial"] for line in lines if line.get("event") == "tell"]
    return [*told, *(asked[number] for number in asked.keys() - {trial["number"] for trial in told})]


def _counted(lines: Sequence[Note]) -> int:
    return sum(trial["state"] in ("success", "crash") for trial in _trials(lines))


def judge(trials: Sequence[Note], log: Sequence[Note], wanted: int, verdict: Verdict) -> None:
    """What a study has, beside what its experiments said of themselves."""
    ran: dict[str, list[Note]] = defaultdict(list)
    for line in log:
        if line["event"] == "ran":
            ran[_key(line)].append(line)
    verdict.kinds = Counter(line["kind"] for lines in ran.values() for line in lines)
    verdict.states = Counter(trial["state"] for trial in trials)
    verdict.faults += _doubled(trials, log, wanted)
    for trial in trials:
        verdict.faults += _misjudged(trial, ran.pop(_key(trial), []), verdict.setting)
    verdict.faults += [f"ran, but no trial: {lines}" for lines in ran.values()]


def _doubled(trials: Sequence[Note], log: Sequence[Note], wanted: int) -> Iterator[str]:
    """Trials that were lost or told twice."""
    numbers = sorted(trial["number"] for trial in trials)
    if numbers != list(range(len(trials))):
        yield f"the trials are not numbered one by one: {numbers}"
    counted = sum(trial["state"] in ("success", "crash") for trial in trials)
    if counted != wanted:
        yield f"{counted} trials count, not {wanted}"
    has = {trial["number"]: (trial["state"], trial["cost"]) for trial in trials}
    for line in log:
        if line["event"] == "told" and has.get(line["number"]) != (line["state"], line["cost"]):
            yield f"told, but {has.get(line['number'])} now: {line}"


def _misjudged(trial: Note, ran: Sequence[Note], setting: str) -> Iterator[str]:
    """Whether a trial is what its experiment says that it was."""
    kinds = {line["kind"] for line in ran}
    words = f"trial {trial['number']} ({trial['state']}, {trial['reason']}) ran as {[line['kind'] for line in ran]}"
    died = bool(kinds & DEATHS.keys())
    if trial["state"] == "success":
        if died or not ran or trial["cost"] != ran[0]["cost"]:
            yield f"no success: {words}"
    elif trial["state"] == "crash":
        said = "|".join(REASONS.get(kind, "$^") for kind in kinds) + ("|its process was killed" * (setting == "pool"))
        if not died or not re.search(said, trial["reason"]):
            yield f"no such crash: {words}"
    elif trial["state"] != "void" or not re.search("lost: the process that ran it died", trial["reason"]):
        yield f"neither success nor crash: {words}"
    if len(ran) > 1 and setting != "pool":  # where a pool breaks, what it ran is run again
        yield f"ran more than once: {words}"


def _key(line: Note) -> str:
    return json.dumps(line["params"], sort_keys=True)


def commanded(folder: Path, trials: int) -> Verdict:
    """`crashbo run`, with the experiment as a command."""
    from crashbo.integrations.optuna import records

    verdict, marks, began = Verdict("run"), Marks("run"), time.monotonic()
    rules = {**LIMITS, "on_nan": "crash", "on_exit": "crash", "on_rubbish": "crash"}
    points = ", ".join(f"{{x = {at['x']!r}, y = {at['y']!r}}}" for at in _start(trials))
    lines = [
        f"start = [{points}]",
        "[parameters]",
        *(f"{name} = [{low}, {high}]" for name, (low, high) in SPACE.items()),
        "[run]",
        *(f"{name} = {json.dumps(value)}" for name, value in rules.items()),
    ]
    (folder / f"{NAME}.toml").write_text("\n".join(lines))
    command = [sys.executable, "-S", "-c", "import deadly; deadly.command()"]
    for words in (["new", f"{NAME}.toml"], ["run", "--trials", str(trials), "--", *command]):
        crashbo_ = [sys.executable, "-c", "import sys; from crashbo.app.cli import main; sys.exit(main())", *words]
        mark = marks.new()
        with (folder / "errors").open("ab") as errors:
            done = subprocess.run(
                crashbo_, cwd=folder, env=_environment(folder, mark), stdout=subprocess.DEVNULL, stderr=errors
            )
        marks.end(mark)
        if done.returncode != 0:
            verdict.faults.append(f"failed with {done.returncode}: {(folder / 'errors').read_text()[-500:]}")
    verdict.left(marks.left())
    judge(
        [_plain(t) for t in records(_study(f"sqlite:///{folder}/crashbo.db"))], notes(folder / "log"), trials, verdict
    )
    return replace(verdict, seconds=time.monotonic() - began)


def _study(url: str) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    return optuna.load_study(study_name=NAME, storage=url)


def _plain(trial: crashbo.Trial) -> Note:
    return {name: getattr(trial, name) for name in ("number", "params", "state", "cost", "reason")}


def fleet(folder: Path, trials: int) -> Verdict:
    """Four processes on one Optuna study. Whoever dies, hangs or eats too much is replaced, as a cluster would do."""
    import optuna

    from crashbo.integrations.optuna import declare, records
    from fleet import postgres

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    verdict, marks, began = Verdict("fleet"), Marks("fleet"), time.monotonic()
    with postgres() as url:
        study = optuna.create_study(study_name=NAME, storage=url)
        declare(study, space=SPACE, lease=LEASE)
        for point in _start(trials):
            study.enqueue_trial(point)
        verdict.kills = _supervise(folder, trials, url, marks)
        verdict.left(marks.left())
        _judge_fleet([_plain(t) for t in records(study)], notes(folder / "log"), trials, verdict)
    return replace(verdict, seconds=time.monotonic() - began)


def _supervise(folder: Path, trials: int, url: str, marks: Marks) -> int:
    """Hire workers until the first has nothing left to do; how many were put to an end."""
    crew: dict[str, subprocess.Popen[bytes]] = {}
    ended = deaths = 0
    while all(line["event"] != "done" for line in notes(folder / "log")):  # an experiment may exit with 0, too
        for mark, worker in list(crew.items()):
            if worker.poll() is None and _beyond(worker.pid, folder / "log"):
                worker.kill()
                worker.wait()
                ended += 1
            if worker.poll() is not None:
                del crew[mark]
                _end_job(mark, marks)
                deaths += 1
                if deaths % 20 == 0:
                    print(f"  fleet: {deaths} workers died, {_told(folder / 'log')} trials told", flush=True)
        for _ in range(CREW - len(crew)):
            mark = marks.new()
            crew[mark] = _call("fleet", folder, trials, mark, "--url", url)
        time.sleep(0.1)
    for mark, worker in crew.items():
        with suppress(subprocess.TimeoutExpired):
            worker.wait(2 * LEASE)
        _end_job(mark, marks)
        worker.wait()
    return ended


def _beyond(pid: int, log: Path) -> bool:
    """Whether a worker takes more time or memory than it may."""
    last = next((line for line in reversed(notes(log)) if line["pid"] == pid), None)
    hangs = last is not None and last["event"] == "ran" and time.time() - last["time"] > LEASE
    limit = processes.bytes_of(LIMITS["memory"])
    return hangs or processes.used(pid, limit) > limit


def _end_job(mark: str, marks: Marks) -> None:
    """End whatever a job has left, as a cluster does."""
    for pid, words in marks.alive().items():
        if mark in words:
            processes.end_tree(pid)
    marks.end(mark)


def _told(log: Path) -> int:
    return sum(line["event"] == "told" for line in notes(log))


def hired(url: str, trials: int) -> None:
    """One worker of the fleet, until enough trials are told."""
    from crashbo.integrations.optuna import CrashSampler, records

    study = _study(url)
    study.sampler = CrashSampler()

    def objective(trial: Any) -> float:
        return deadly.experiment({name: trial.suggest_float(name, *limits) for name, limits in SPACE.items()})

    def told(study: Any, trial: Any) -> None:
        state = "success" if trial.state.name == "COMPLETE" else "crash"
        note(event="told", number=trial.number, state=state, cost=trial.value)

    while sum(t.state in ("success", "crash") for t in records(study)) < trials:
        study.optimize(objective, n_trials=1, catch=(Exception,), callbacks=[told])
    note(event="done")


def _judge_fleet(trials: Sequence[Note], log: Sequence[Note], wanted: int, verdict: Verdict) -> None:
    """As `judge`; but a first death is void, and its setting is tried once more."""
    ran: dict[str, list[Note]] = defaultdict(list)
    at: dict[str, list[Note]] = defaultdict(list)
    for line in log:
        if line["event"] == "ran":
            ran[_key(line)].append(line)
    for trial in trials:
        at[_key(trial)].append(trial)
    verdict.kinds = Counter(line["kind"] for lines in ran.values() for line in lines)
    verdict.states = Counter(trial["state"] for trial in trials)
    counted = sum(trial["state"] in ("success", "crash") for trial in trials)
    verdict.faults += [fault for fault in _doubled(trials, log, wanted) if "trials count" not in fault]
    if not wanted <= counted <= wanted + 2 * CREW:  # others were at work, and leases ran out, when it had enough
        verdict.faults.append(f"{counted} trials count, not {wanted}")
    for key, tried in at.items():
        kinds = [line["kind"] for line in ran.pop(key, [])]
        states = sorted(trial["state"] for trial in tried)
        if not _plausible(kinds, states):
            verdict.faults.append(f"{states} ran as {kinds}: {[trial['reason'] for trial in tried]}")
    verdict.faults += [f"ran, but no trial: {lines}" for lines in ran.values()]


def _plausible(kinds: Sequence[str], states: Sequence[str]) -> bool:
    """Whether a setting has the states that its runs deserve."""
    if not kinds:
        return set(states) <= {"pending", "void"}
    if kinds[0] not in DEATHS:
        return states == ["success"]
    if kinds[0] in ("NaN", "exception"):
        return states == ["crash"]
    waiting = ["pending", "void"]  # nobody has come to try it again, or the second lease still runs
    if len(kinds) == 1:
        return list(states) in (["void"], ["pending"], waiting)
    return len(kinds) == 2 and list(states) in (["crash", "void"], waiting)


def search(seeds: int, trials: int = 40) -> Verdict:
    """Whether the search is as good as where deaths are polite, on paired seeds."""
    verdict, began, gaps = Verdict("search"), time.monotonic(), []
    for seed in range(seeds):
        real, polite = (_regret(experiment, seed, trials, verdict) for experiment in (deadly.experiment, deadly.polite))
        gaps.append(real - polite)
        error = np.std(gaps, ddof=1) / len(gaps) ** 0.5 if seed else np.nan
        print(
            f"  seed {seed}: regret {real:.4f}, politely {polite:.4f}; mean gap {np.mean(gaps):+.4f} ± {error:.4f}",
            flush=True,
        )
    if np.mean(gaps) > LARGEST:
        verdict.faults.append(f"regret is larger by {np.mean(gaps):.4f} of the range")
    return replace(verdict, seconds=time.monotonic() - began)


def _regret(experiment: Any, seed: int, trials: int, verdict: Verdict) -> float:
    """Of the range of the cost."""
    run = partial(deadly.steady, experiment)
    told: dict[str, Any] = {"workers": CREW, "trials": trials, "seed": seed, "progress": False, **LIMITS, **RULES}
    result = crashbo.minimize(run, SPACE, constraints=["load"], **told)
    for trial in result.trials:
        if (trial.state == "crash") != (deadly.kind_of(trial.params) in DEATHS):
            verdict.faults.append(f"seed {seed}: {trial} was {deadly.kind_of(trial.params)}")
    verdict.states.update(trial.state for trial in result.trials)
    verdict.kinds.update(deadly.kind_of(trial.params) for trial in result.trials)
    assert result.best is not None
    assert result.best.cost is not None
    return (result.best.cost - deadly.BEST) / (deadly.WORST - deadly.BEST)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="workers,pool,fleet,run,search", help="some of %(default)s")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--kills", type=int, default=50, help="of the parent, in each of the first two")
    parser.add_argument("--seeds", type=int, default=20, help="of the search")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--quick", action="store_true", help="40 trials, 3 kills, 2 seeds")
    parser.add_argument("--call", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.call is not None:
        hired(args.url, args.trials) if args.call == "fleet" else minimized(args.call, args.folder, args.trials)
        return 0
    if args.quick:
        args.trials, args.kills, args.seeds = 40, 3, 2
    verdicts = []
    for setting in args.only.split(","):
        with tempfile.TemporaryDirectory(prefix="crashbo-chaos-") as name:
            folder = Path(name)
            print(f"{setting} ...", flush=True)
            if setting in ("workers", "pool"):
                verdicts.append(killed_at_random(setting, folder, args.trials, args.kills, args.seed))
            elif setting == "search":
                verdicts.append(search(args.seeds))
            else:
                verdicts.append({"fleet": fleet, "run": commanded}[setting](folder, args.trials))
        for fault in verdicts[-1].faults:
            print("  FAULT", fault)
    print("\nsetting    ran  died kills     time  verdict    told")
    for verdict in verdicts:
        print(verdict.row)
    kinds = sum((verdict.kinds for verdict in verdicts), Counter[str]())
    print("runs:", ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    return int(any(verdict.faults for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
