"""A command a trial: however it ends, the trial becomes what the study says, and the reason is kept."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from jumper import SAID

from crashbo.app.bench import Bench, Definition, RunRules, Told
from crashbo.app.bench.runner import parse_result, run_command, run_trial

if os.name != "posix":
    pytest.skip("these experiments are shell commands", allow_module_level=True)

ENDS = {
    "exit": ("echo 'out of paper' >&2; exit 1", "exit code 1: out of paper"),
    "timeout": ("sleep 30", "no result within 0.3 s"),
    "kill": ("kill -9 $$", "killed by SIGKILL"),
    "rubbish": ("echo 'done, I think'", "no result on its output, which ends with 'done, I think'"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("verdict", ["crash", "void"])
def test_an_end_without_a_result_is_what_the_study_says(bench, end, verdict):
    rules = RunRules(timeout=0.3 if end == "timeout" else 20.0, **{f"on_{end}": verdict})
    trial = run_trial(bench, ["sh", "-c", ENDS[end][0]], "json", rules)
    assert (trial.state, trial.reason) == (verdict, ENDS[end][1])
    assert bench.trials == [trial]


def test_single_exit_codes_may_mean_something_else(bench):
    rules = RunRules(on_exit="void", exits={"3": "crash"})
    assert [run_trial(bench, ["sh", "-c", f"exit {c}"], "json", rules).state for c in (2, 3)] == ["void", "crash"]


def test_parameters_come_as_json_and_the_last_json_line_is_the_result(bench):
    code = "import json, sys; p = json.load(sys.stdin); print('warming up'); "
    code += "print(json.dumps({'cost': p['knee'], 'measured': {'current': 80}})); print('bye')"
    trial = run_trial(bench, [sys.executable, "-c", code], "json", RunRules())
    assert trial.state == "success"
    assert trial.cost == trial.params["knee"]
    assert trial.measured == {"current": 80.0}


def test_parameters_come_as_flags():
    ended = run_command(["echo"], {"knee": 0.1, "gait": "trot; rm -rf /", "up": True}, "flags", 5.0)
    assert ended.out.strip() == "--knee=0.1 --gait=trot; rm -rf / --up=true"


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("0.5", Told.of(cost=0.5)),
        ('{"crash": "tripped", "measured": {"current": 120}}', Told.of(crash="tripped", measured={"current": 120})),
        ('{"void": true}\nbye', Told.of(void=True)),
    ],
)
def test_results_are_read(out, told):
    assert parse_result(out) == told


@pytest.mark.parametrize(
    "out",
    ["", "x" * 10**6, "[" * 10**5, '{"cost": 1, "evil": "__import__"}', '{"a": 1}', "true", "nan?", "\x00\xff"],
)
def test_rubbish_is_no_result(out):
    with pytest.raises(ValueError, match="result"):
        parse_result(out)


@pytest.mark.parametrize("said", ['{"cost": "high"}', '{"cost": NaN}', '{"cost": 1, "measured": 3}', '{"crash": 5}'])
def test_a_result_that_the_study_cannot_take_is_rubbish(bench, said):
    trial = run_trial(bench, ["echo", said], "json", RunRules(on_rubbish="crash"))
    assert trial.state == "crash"
    assert trial.reason.startswith("result not understood")


def test_a_command_that_cannot_be_started_is_void_whatever_the_study_says(bench):
    rules = RunRules(on_exit="crash", on_kill="crash", on_rubbish="crash")
    trial = run_trial(bench, ["/no/such/experiment"], "json", rules)
    assert trial.state == "void"
    assert "could not be started" in trial.reason


def test_nothing_that_a_command_started_outlives_it(tmp_path):
    path = tmp_path / "alive"
    run_command(["sh", "-c", f"(sleep 1; touch {path}) & sleep 30"], {}, "json", 0.3)
    time.sleep(1.2)
    assert not path.exists()


def test_a_runner_that_is_killed_leaves_a_trial_that_its_lease_makes_void(store):
    Bench.create(store, Definition.of(SAID))
    code = "import crashbo.app.bench.runner as r; r._LEASE = 1.0\nfrom crashbo.app.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "--store", store, "--", "sleep", "60"]
    runner = subprocess.Popen(command)
    bench = Bench.open(store)
    while not any(e.open for e in bench.entries()):
        time.sleep(0.05)
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    time.sleep(1.1)
    assert [(t.state, t.reason) for t in bench.trials] == [("void", "lease ran out")]


def test_results_survive_json_to_the_last_digit(bench):
    trial = run_trial(bench, ["echo", json.dumps({"cost": 0.1 + 0.2})], "json", RunRules())
    assert trial.cost == 0.1 + 0.2
