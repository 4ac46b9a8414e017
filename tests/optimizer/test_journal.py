"""The journal: a study that dies at any moment loses nothing that was told, and goes on where it was."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from machines import SPACE, Together, cost_of, press

import crashbo
from crashbo.optimizer.journal import Journal


def quick(path, experiment=cost_of, **kwargs):
    """A study in a journal whose proposals cost nothing."""
    settings = {"trials": 5, "strategy": "random", "progress": False, **kwargs}
    return crashbo.minimize(experiment, SPACE, journal=path, **settings)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.jsonl"


def events(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def told(path):
    return [(e["trial"]["number"], e["trial"]["state"]) for e in events(path)[1:] if e["event"] == "tell"]


def interrupted_at(number):
    """An experiment during whose trial of that number the process dies, as far as the journal knows."""
    calls = iter(range(1000))

    def experiment(params):
        if next(calls) == number:
            raise KeyboardInterrupt
        return cost_of(params)

    return experiment


def test_every_event_is_written_as_it_happens(path):
    seen = []

    def experiment(params):
        seen.append([e.get("event", "header") for e in events(path)])
        return cost_of(params)

    quick(path, experiment, trials=3)
    assert seen == [["header", *["ask", "tell"] * i, "ask"] for i in range(3)]
    assert told(path) == [(i, "success") for i in range(3)]


@pytest.mark.parametrize("stop", [2, 6])
def test_a_resumed_study_continues_as_the_uninterrupted_one(tmp_path, stop):
    study = {"constraints": ["load"], "strategy": "eicc", "seed": 3}
    whole = quick(tmp_path / "whole", press, trials=9, **study)
    quick(tmp_path / "parts", press, trials=stop, **study)
    resumed = quick(tmp_path / "parts", press, trials=9, **study)
    assert len(resumed.trials) == 9
    for a, b in zip(whole.trials, resumed.trials, strict=True):
        assert a.params == pytest.approx(b.params, abs=1e-6)
        assert a.state == b.state


def test_a_finished_study_runs_nothing_again(path):
    first = quick(path)

    def never(params):
        raise AssertionError("no trial is left")

    again = quick(path, never)
    assert again.trials == first.trials
    assert again.best == first.best


def test_a_journal_makes_no_difference_to_the_proposals(path):
    settings = {"trials": 7, "seed": 1, "progress": False}
    plain = crashbo.minimize(cost_of, SPACE, **settings)
    kept = crashbo.minimize(cost_of, SPACE, journal=path, **settings)
    assert [t.params for t in plain.trials] == [t.params for t in kept.trials]


def test_start_points_not_yet_tried_are_tried_on_resuming(path):
    start = [{"x": 0.1 * i, "y": 0.5} for i in range(4)]
    quick(path, trials=2, start=start)
    resumed = quick(path, trials=5, start=start)
    assert [t.params["x"] for t in resumed.trials[:4]] == pytest.approx([0.0, 0.1, 0.2, 0.3])


@pytest.mark.parametrize("cut", [1, 2, 10, 60])
def test_a_torn_last_line_is_dropped_and_the_rest_kept(path, cut):
    quick(path, trials=3)
    whole = path.read_bytes()
    assert len(whole.splitlines()[-1]) > 60
    path.write_bytes(whole[:-cut])
    resumed = quick(path, trials=4)
    assert [t.state for t in resumed.trials] == ["success", "success", "void", "success", "success"]
    assert sorted(set(told(path))) == sorted(told(path))


def test_zeros_that_a_power_cut_left_at_the_end_are_dropped(path):
    quick(path, trials=3)
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    assert [t.state for t in quick(path, trials=4).trials] == ["success"] * 4


def test_a_header_torn_by_a_kill_begins_anew(path):
    quick(path, trials=1)
    path.write_bytes(path.read_bytes()[:25])
    assert len(quick(path, trials=2).trials) == 2


@pytest.mark.parametrize("damage", [b"{broken", b"\xff\xfe\x00", b"[1, 2]", b"{}"])
def test_a_damaged_line_is_refused_by_its_number_and_left_alone(path, damage):
    quick(path, trials=3)
    lines = path.read_bytes().splitlines()
    lines[3] = damage
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"^journal must [^\n]*line 4 [^\n]*\. [A-Z][^\n]+$"):
        quick(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", [b'{"my": "settings"}', b"hello", b"hello\n", b"[]\n", b'{"my": "settings"}\n'])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(path, text):
    path.write_bytes(text)
    with pytest.raises(ValueError, match=r"^journal must [^\n]+\. [A-Z][^\n]+$"):
        quick(path)
    assert path.read_bytes() == text


@pytest.mark.parametrize(
    "other",
    [
        {"space": {"x": (0.0, 2.0), "y": (0.0, 1.0)}},
        {"constraints": ["load"]},
        {"direction": "maximize"},
    ],
)
def test_the_journal_of_another_study_is_refused(path, other):
    quick(path)
    before = path.read_bytes()
    study = {"space": SPACE, "trials": 6, "strategy": "random", "progress": False, **other}
    with pytest.raises(ValueError, match=r"^journal must belong to this study; [^\n]+\. Give another path"):
        crashbo.minimize(cost_of, journal=path, **study)
    assert path.read_bytes() == before


def test_a_journal_of_another_format_is_refused(path):
    quick(path)
    path.write_text(path.read_text().replace('"crashbo_journal": 1', '"crashbo_journal": 99', 1))
    with pytest.raises(ValueError, match=r"^journal must have format version 1; .+ has 99\. "):
        quick(path)


def test_a_second_writer_is_refused(path):
    def experiment(params):
        with pytest.raises(ValueError, match=r"^journal must have one writer; .+ is in use .+\. "):
            quick(path)
        return 1.0

    assert len(quick(path, experiment, trials=2).trials) == 2
    quick(path, trials=3)  # the lock was given back


def test_a_second_process_is_refused(path):
    script = "import sys, crashbo; crashbo.minimize(lambda p: 1.0, {'x': (0, 1), 'y': (0, 1)}, journal=sys.argv[1])"
    held = Journal(path)
    try:
        done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, env=environment())
    finally:
        held.close()
    assert done.returncode != 0
    assert "journal must have one writer" in done.stderr


@pytest.mark.parametrize(("on_lost", "state"), [("void", "void"), ("crash", "crash"), ("repeat", "success")])
def test_a_trial_that_was_lost_becomes_what_the_user_says(path, on_lost, state):
    first = quick(path, interrupted_at(2))
    assert first.trials[2].state == "pending"
    resumed = quick(path, on_lost=on_lost)
    assert resumed.trials[2].state == state
    assert resumed.trials[2].params == first.trials[2].params
    assert resumed.trials[:2] == first.trials[:2]
    assert sum(t.state in ("success", "crash") for t in resumed.trials) == 5
    assert "lost" in resumed.trials[2].reason or on_lost == "repeat"
    assert len(told(path)) == len({number for number, _ in told(path)})


@pytest.mark.parametrize("answer", [None, crashbo.Outcome(float("nan")), crashbo.Outcome(1.0, {"laod": 1.0})])
def test_a_wrong_answer_is_raised_and_its_trial_kept_as_void(path, answer):
    with pytest.raises((TypeError, ValueError), match=r"must .+; got "):
        quick(path, lambda params: answer)
    assert told(path) == [(0, "void")]


def test_an_exception_is_raised_and_its_trial_kept_as_void(path):
    calls = iter(range(100))

    def experiment(params):
        if next(calls) == 2:
            raise ZeroDivisionError("my bug")
        return 1.0

    with pytest.raises(ZeroDivisionError, match="my bug"):
        quick(path, experiment)
    assert told(path) == [(0, "success"), (1, "success"), (2, "void")]
    assert "my bug" in events(path)[-1]["trial"]["reason"]
    resumed = quick(path)
    assert [t.state for t in resumed.trials] == ["success", "success", "void", *["success"] * 3]


def test_an_exception_of_one_worker_loses_no_result_of_another(path):
    calls = iter(range(100))

    def experiment(params):
        if next(calls) == 0:
            raise ZeroDivisionError("my bug")
        return 1.0

    with pytest.raises(ZeroDivisionError, match="my bug"):
        quick(path, experiment, executor=Together(), n_parallel=5, trials=8)
    assert sorted(told(path)) == [(0, "void"), *[(i, "success") for i in range(1, 5)]]


CHILD = """
import os, sys, time
import crashbo

def experiment(params):
    time.sleep(0.002)
    if params["x"] > 0.9:
        raise crashbo.Crash("edge")
    return params["x"] ** 2 + params["y"]

def note(study, trial, total):
    os.write(notes, f"{trial.number} {trial.state}\\n".encode())

notes = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
crashbo.minimize(experiment, {"x": (0, 1), "y": (0, 1)}, trials=int(sys.argv[3]), strategy=sys.argv[4],
                 journal=sys.argv[1], progress=note)
"""


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}


@pytest.mark.parametrize(("strategy", "kills", "trials"), [("random", 6, 5000), ("eicc", 2, 200)])
def test_a_killed_process_loses_no_told_trial_and_doubles_none(path, strategy, kills, trials):
    notes = path.with_suffix(".notes")
    notes.touch()
    chance = random.Random(0)
    for _ in range(kills):
        before = notes.stat().st_size
        command = [sys.executable, "-c", CHILD, path, notes, str(trials), strategy]
        child = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE)
        while child.poll() is None and notes.stat().st_size <= before:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.1))
        child.kill()
        assert child.wait() == -9, child.stderr.read().decode()
        child.stderr.close()
    noted = [line.split() for line in notes.read_text().splitlines()]
    noted = [(int(number), state) for number, state in noted]
    assert len(noted) >= kills
    resumed = crashbo.minimize(
        cost_of, SPACE, trials=1, strategy=strategy, journal=path, progress=False
    )  # it runs nothing more: enough was told
    kept = {t.number: t.state for t in resumed.trials}
    assert sorted(kept) == list(range(len(kept)))
    for number, state in noted:
        assert kept[number] == state
    numbers = [number for number, _ in told(path)]
    assert len(numbers) == len(set(numbers))
    lost = [t for t in resumed.trials if t.state == "void"]
    assert len(lost) <= kills


@pytest.mark.usefixtures("python_s_own_interrupt")
def test_ctrl_c_while_an_outcome_is_told_waits_until_it_is_on_disk(path, monkeypatch):
    tell = crashbo.Optimizer.tell

    def tell_and_press(self, *args, **kwargs):
        trial = tell(self, *args, **kwargs)
        if trial.number == 2:
            signal.raise_signal(signal.SIGINT)
        return trial

    monkeypatch.setattr(crashbo.Optimizer, "tell", tell_and_press)
    result = quick(path)
    assert result.ended == "interrupted"
    assert told(path) == [(i, "success") for i in range(3)]


def test_repeats_of_a_result_are_in_the_journal(path):
    result = quick(path, trials=3)
    report = result.confirm(cost_of, n=2)
    assert len(report.trials) == 2
    assert len(told(path)) == 5
    assert [t.number for t in quick(path, trials=5).trials] == [0, 1, 2, 3, 4]
