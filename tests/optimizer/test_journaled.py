"""A journal for who asks, tells and compares by hand: killed at any moment, nothing that was told is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crashbo
from crashbo import Comparison

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}

# Every third success has a number; all are compared with the one before. Says each event once it is on disk.
SCRIPT = """
import sys, crashbo
optimizer = crashbo.Optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0)}, cost="compared", strategy="random", seed=7)
with crashbo.journaled(sys.argv[1], optimizer) as study:
    last = None
    while True:
        trial = study.ask()
        print("ask", trial.number, flush=True)
        cost = trial.params["a"] ** 2
        study.tell(trial, **({"cost": cost} if trial.number % 3 == 0 else {"success": True}))
        print("tell", trial.number, flush=True)
        if last is not None:
            better, worse = (trial, last) if cost < last.params["a"] ** 2 else (last, trial)
            study.prefer(better, worse, tie=abs(cost - last.params["a"] ** 2) < 0.05)
            print("prefer", better.number, worse.number, flush=True)
        last = trial
"""


def fresh() -> crashbo.Optimizer:
    return crashbo.Optimizer(SPACE, cost="compared", strategy="random", seed=7)


def test_a_study_of_numbers_and_comparisons_goes_on_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    said: list[list[str]] = []
    for lines in (8, 13):
        worker = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        said += [worker.stdout.readline().split() for _ in range(lines)]
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
    with crashbo.journaled(path, fresh()) as study:
        told = {t.number for t in study.trials if t.state == "success"}
        pairs = [{c.better, c.worse} for c in study.comparisons]
        assert {int(n) for kind, n, *_ in said if kind == "tell"} <= told
        assert all({int(a), int(b)} in pairs for kind, a, *rest in said if kind == "prefer" for b in rest)
        assert any(t.cost is not None for t in study.trials)
        assert any(t.state == "success" and t.cost is None for t in study.trials)
        assert study.best is not None
        assert study.ask().number == len(study.trials) - 1


def test_corrections_and_what_was_taken_back_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    with crashbo.journaled(path, fresh()) as study:
        for a in (0.1, 0.5, 0.9):
            study.tell({"a": a, "b": 0.5}, success=True)
        study.prefer(0, 1)
        study.prefer(1, 2)
        study.prefer(1, 0, replace=True)
        study.prefer(0, 2, tie=True)
        study.unprefer(1, 2)
        study.tell(2, crash=True, replace=True)
        expected, trials = study.comparisons, study.trials
    assert expected == [Comparison(1, 0), Comparison(0, 2, tie=True)]
    with crashbo.journaled(path, fresh()) as study:
        assert study.comparisons == expected
        assert study.trials == trials
    assert crashbo.load(path).comparisons == expected  # as `crashbo check` reads it


def test_it_goes_on_with_the_same_proposals(tmp_path: Path) -> None:
    def told(study: Any, count: int) -> None:
        for _ in range(count):
            trial = study.ask()
            study.tell(trial, success=True)
            if trial.against is not None:
                study.prefer(trial, trial.against)

    whole = crashbo.Optimizer(SPACE, cost="compared", seed=3)
    told(whole, 9)
    path = tmp_path / "study.jsonl"
    for count in (4, 5):
        with crashbo.journaled(path, crashbo.Optimizer(SPACE, cost="compared", seed=3)) as study:
            told(study, count)
    assert study.trials == whole.trials


def test_a_compared_study_does_not_resume_one_with_costs(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    crashbo.minimize(lambda params: params["a"], SPACE, trials=2, strategy="random", journal=path)
    with (
        pytest.raises(ValueError, match=r"journal must belong to this study; .+ has cost measured, not compared"),
        crashbo.journaled(path, fresh()),
    ):
        pass
