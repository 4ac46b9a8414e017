"""Histories of `minimize`: whole runs that nothing interrupts, and journals that are resumed at every trial."""

import json
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import crashbo
from histories import machines
from histories.machines import BOILER, MIXED, SQUARE
from histories.studies import look
from histories.tape import FileTape, StudyTape, ended

Experiment = Callable[[dict[str, Any]], Any]


class AtOnce(Executor):
    """An executor that runs tasks immediately: several pending trials, always in the same order."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """The finished future."""
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


def walk(tape: StudyTape, outcome: machines.Outcome, space: Any, **settings: Any) -> None:
    """A whole run in one step: one Optimizer that is never saved, on its own path."""
    settings = {"progress": False, **settings}
    tape.do("ask all", lambda _: crashbo.minimize(machines.raised(outcome), space, **settings))
    tape.do("look", look)


def alone(tape: StudyTape) -> None:
    """The study is inspected after every trial, which must change nothing."""

    def watch(study: Any, trial: Any, _: int) -> None:
        seen = study.p_safe(trial.params), {n: c.interval for n, c in study.thresholds.items()}
        assert len(seen) == 2

    walk(tape, machines.press, SQUARE, constraints=["load"], trials=25, progress=watch)


def together(tape: StudyTape) -> None:
    """Three at a time, with a budget whose length `minimize` announces."""
    settings = {"risk": crashbo.Budget(5), "executor": AtOnce(), "n_parallel": 3}
    walk(tape, machines.boiler, SQUARE, constraints=BOILER, trials=20, **settings)


def stopped(tape: StudyTape) -> None:
    """Rules that end a run."""
    rules = [crashbo.stopping.NoGain(5.0, after=12), crashbo.stopping.MaxCrashes(9)]
    walk(tape, machines.robot, MIXED, constraints=["load"], trials=22, seed=6, stop=rules)


class JournalTape(FileTape):
    """A journal; every step is a run of its own that resumes it."""

    name = "study.jsonl"

    def run(self, what: str, experiment: Experiment, trials: int, **settings: Any) -> Any:
        """Resume until there are so many trials."""
        return self.do(what, lambda path: said(resumed(path, experiment, trials, **settings)))

    def essence(self, saved: bytes) -> Any:
        """Every event, without the format's version."""
        events = [json.loads(line) for line in saved.splitlines()]
        return [{key: value for key, value in event.items() if key != "crashbo_journal"} for event in events]


def resumed(path: Path, experiment: Experiment, trials: int, **settings: Any) -> Any:
    return crashbo.minimize(experiment, trials=trials, journal=path, progress=False, **settings)


def said(result: Any) -> list[Any]:
    return [ended(result), result.best, result.table(), result.recommend()]


def dying(experiment: Experiment, trial: int) -> Experiment:
    """An experiment in whose n-th trial from here the process dies."""
    calls = iter(range(trial + 1))

    def dies(params: dict[str, Any]) -> Any:
        if next(calls) == trial:
            raise KeyboardInterrupt
        return experiment(params)

    return dies


def journal(tape: JournalTape) -> None:
    """Resumed at every trial; an incomplete last line, lost trials settled in each of the three ways; repeats."""
    experiment = machines.raised(machines.press)
    study = {"space": SQUARE, "constraints": ["load"], "seed": 8, "start": [{"x": 0.3, "y": 0.2}]}
    tape.run("begin", experiment, 5, **study)
    for trials in range(6, 10):
        tape.run("ask", experiment, trials, **study)
    for on_lost in ("void", "crash", "repeat"):
        trials += 2
        tape.run("interrupted", dying(experiment, 1), trials, **study)
        tape.run("ask", experiment, trials, on_lost=on_lost, **study)
    tape.do("torn", lambda path: path.write_bytes(path.read_bytes()[:-30]))
    tape.run("ask", experiment, trials + 1, **study)
    tape.do(
        "ask repeats",
        lambda path: resumed(path, experiment, 1, **study).confirm(experiment, 3).costs,
    )
    tape.run("ask", experiment, trials + 6, **study)


def journal_of_several(tape: JournalTape) -> None:
    """A mixed space, several pending trials, voids, and a budget."""
    calls: list[int] = []

    def experiment(params: dict[str, Any]) -> Any:
        calls.append(1)
        if len(calls) % 5 == 0:
            raise crashbo.Void("unplugged")
        return machines.raised(machines.robot)(params)

    study = {"space": MIXED, "constraints": ["load"], "risk": crashbo.Budget(6, trials=30), "noise": {"load": 0.01}}
    for trials in (4, 6, 7, 9, 10, 13):
        tape.run("ask", experiment, trials, executor=AtOnce(), n_parallel=2, **study)


RUNS: dict[str, Callable[[StudyTape], None]] = {
    "minimize": alone,
    "minimize-parallel": together,
    "minimize-stopped": stopped,
}
JOURNALS: dict[str, Callable[[JournalTape], None]] = {"journal": journal, "journal-parallel": journal_of_several}
