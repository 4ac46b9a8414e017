"""A command a trial: however it ends, the trial becomes what the study says, and the reason is kept."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from jumper import SAID

from crashbo import processes
from crashbo.app.bench import Bench, Definition, RunRules, Told
from crashbo.app.bench.definition import extras_in
from crashbo.app.bench.runner import NotFinite, parse_result, run_trial
from crashbo.app.launcher import MOST_OUTPUT, run_command
from crashbo.workers import Limits, Workers

if os.name != "posix":
    pytest.skip("these experiments are shell commands", allow_module_level=True)

on_linux = pytest.mark.skipif(not processes.LINUX, reason="only Linux shows it")
HOLD = "import sys, time; held = bytearray(int(float(sys.argv[1]) * 1e6)); time.sleep(60)"


@pytest.fixture(scope="module")
def workers():
    with Workers(run_command, 1) as workers:
        yield workers


@pytest.fixture
def run(bench, workers):
    """Runs a command on the next trial."""

    def run(*command, style="json", **rules):
        return run_trial(bench, command, style, RunRules(**rules), workers)

    return run


@pytest.fixture
def command(workers):
    """Runs a command; how it ended."""

    def command(*arguments, text=b"", **limits):
        return workers.submit(arguments, text, Limits(**limits)).result()

    return command


def gone(pid):
    """Whether a process ends, within a while."""
    deadline = time.monotonic() + 5.0
    while processes.started(pid) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    return processes.started(pid) is None


ENDS = {
    "exit": ("echo 'out of paper' >&2; exit 1", "exit code 1: out of paper"),
    "timeout": ("sleep 30", "no result within 0.3 s"),
    "death": ("kill -SEGV $$", "killed by signal 11 (SIGSEGV)"),
    "nan": ("echo warm; echo nan", "no finite cost: nan"),
    "rubbish": ("echo 'done, I think'", "no result on its output, which ends with 'done, I think'"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("verdict", ["crash", "void"])
def test_an_end_without_a_result_is_what_the_study_says(run, bench, end, verdict):
    trial = run("sh", "-c", ENDS[end][0], timeout=0.3 if end == "timeout" else 20.0, **{f"on_{end}": verdict})
    assert (trial.state, trial.reason) == (verdict, ENDS[end][1])
    assert bench.trials == [trial]


@pytest.mark.parametrize(
    ("end", "state"), [("exit", "void"), ("timeout", "crash"), ("death", "crash"), ("rubbish", "void")]
)
def test_a_study_that_says_nothing_has_the_defaults_of_minimize(run, end, state):
    assert run("sh", "-c", ENDS[end][0], timeout=0.3 if end == "timeout" else None).state == state


@pytest.mark.parametrize("said", ["NaN", "-inf", '{"cost": NaN}', '{"cost": -Infinity}', '{"cost": null}', "1e999"])
def test_a_cost_that_is_no_finite_number_makes_the_trial_void_and_is_raised(run, bench, said):
    with pytest.raises(
        NotFinite, match=r"^cost must be a finite number; trial 0 has none \(.*\) and is void\. Mend .*--on-nan"
    ):
        run("echo", said)
    (trial,) = bench.trials
    assert trial.state == "void"
    assert trial.reason.startswith("no finite cost: ")
    assert run("echo", said, on_nan="crash").state == "crash"


def test_a_crash_needs_no_cost(run):
    trial = run("echo", '{"crash": "tripped", "cost": NaN, "measured": {"current": 120}}')
    assert (trial.state, trial.reason, trial.measured) == ("crash", "tripped", {"current": 120.0})


def test_single_exit_codes_may_mean_something_else(run):
    rules = {"on_exit": "void", "exits": {"3": "crash"}}
    assert [run("sh", "-c", f"exit {c}", **rules).state for c in (2, 3)] == ["void", "crash"]


def test_a_shell_passes_on_the_death_of_what_it_ran(run):
    inner = ("sh", "-c", "sh -c 'kill -SEGV $$'; exit $?")
    trial = run(*inner, on_exit="void")
    assert (trial.state, trial.reason) == ("crash", "killed by signal 11 (SIGSEGV), says exit code 139")
    assert run(*inner, exits={"139": "void"}).reason.startswith("exit code 139")
    assert run("sh", "-c", "exit 156", on_exit="void").state == "void"


def test_parameters_come_as_json_and_the_last_json_line_is_the_result(run):
    code = "import json, sys; p = json.load(sys.stdin); print('warming up'); "
    code += "print(json.dumps({'cost': p['knee'], 'measured': {'current': 80}})); print('bye'); print(0)"
    trial = run(sys.executable, "-c", code)
    assert trial.state == "success"
    assert trial.cost == trial.params["knee"]
    assert trial.measured == {"current": 80.0}


def test_parameters_come_as_flags(run):
    code = "import json, sys; print(json.dumps({'void': ' '.join(sys.argv[1:]) + sys.stdin.read()}))"
    trial = run(sys.executable, "-c", code, style="flags")
    assert trial.reason == f"--knee={trial.params['knee']} --hip={trial.params['hip']}"


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("0.5", Told.of(cost=0.5)),
        ("warming up\n-1.5e-3 \n\n", Told.of(cost=-0.0015)),
        ("10 %\r100 %\r.25\r\n", Told.of(cost=0.25)),
        ("Temperatur 20\ufffd\n+7", Told.of(cost=7.0)),
        ('{"crash": "tripped", "measured": {"current": 120}}', Told.of(crash="tripped", measured={"current": 120})),
        ('{"void": true}\nbye', Told.of(void=True)),
        ('{"cost": 1}\n{"cost": 2}\n{"step": 3}\n[4]\n5', Told.of(cost=2.0)),
        ('{"cost": null, "crash": true}', Told.of(crash=True)),
    ],
)
def test_results_are_read(out, told):
    assert parse_result(out) == told


@pytest.mark.parametrize(
    "out",
    [
        "",
        "\n \n",
        "100\nERROR: sensor lost",
        "3 4",
        "0x10",
        "1_000",
        "\u0663",
        "[1]",
        "cost: 3",
        "x" * 10**6,
        "7" * 10**6,
        "[" * 10**5,
        '{"a":' * 10**5,
        '{"cost": 1, "evil": "__import__"}',
        '{"cost": 1, "crash": true}',
        '{"a": 1}',
        "true",
        "nan?",
        "\x00\ufffd\n0",
    ],
)
def test_rubbish_is_no_result(out):
    with pytest.raises(ValueError, match="result") as refusal:
        parse_result(out)
    assert not isinstance(refusal.value, NotFinite)


def test_random_bytes_are_no_result(run):
    code = "import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(300_000) + b'\\n0')"
    assert run(sys.executable, "-c", code).reason == "no result on its output, which ends with '0'"


@pytest.mark.parametrize("said", ['{"cost": "high"}', '{"cost": 1e40}', '{"cost": 1, "measured": 3}', '{"crash": 5}'])
def test_a_result_that_the_study_cannot_take_is_rubbish(run, said):
    trial = run("echo", said, on_rubbish="crash")
    assert trial.state == "crash"
    assert trial.reason.startswith("result not understood")


def test_a_command_that_cannot_be_started_is_void_whatever_the_study_says(run):
    trial = run("/no/such/experiment", on_exit="crash", on_rubbish="crash")
    assert trial.state == "void"
    assert "could not be started" in trial.reason


@on_linux
def test_a_command_that_uses_more_memory_than_it_may_is_ended(run, command):
    trial = run(sys.executable, "-c", HOLD, "300", memory="150MB", timeout=50)
    assert (trial.state, trial.reason) == ("crash", "used more than 150 MB")
    shared = f"{sys.executable} -c '{HOLD}' 80 & setsid {sys.executable} -c '{HOLD}' 80 & wait"
    assert command("sh", "-c", shared, memory=150e6, seconds=50).past == "memory"
    modest = "import time; held = bytearray(60_000_000); time.sleep(0.5); print(1)"
    modest = command(sys.executable, "-c", modest, memory=90e6)  # ours does not count
    assert (modest.past, modest.out) == (None, "1\n")


LEFT = {
    "in its group": "sleep 60 & echo $! >> {}",
    "in a session of its own": "setsid sleep 60 & echo $! >> {}",
    "forked twice": "(setsid sh -c 'sleep 60 & echo $! >> {}; sleep 0.1' &); sleep 0.3",
}


@pytest.mark.parametrize(
    "way", [LEFT["in its group"], *(pytest.param(LEFT[w], marks=on_linux) for w in list(LEFT)[1:])], ids=LEFT
)
@pytest.mark.parametrize(("then", "past"), [("echo 3", None), ("sleep 60", "time")])
def test_nothing_that_a_command_started_outlives_it(command, tmp_path, way, then, past):
    pids = tmp_path / "pids"
    ended = command("sh", "-c", f"{way.format(pids)}; {then}", seconds=2.0 if past else 50.0)
    assert ended.past == past  # the pipe was open all the time: it is the command that is waited for
    assert ended.out == ("" if past else "3\n")
    assert all(map(gone, map(int, pids.read_text().split())))


def test_output_that_is_on_its_way_when_a_command_ends_is_waited_for(run):
    assert run("sh", "-c", "(sleep 0.05; echo 7) & exit 0").cost == 7.0


def test_the_end_of_much_output_is_kept(command):
    code = "import sys; sys.stdout.write('x' * 3_000_000 + '\\n7'); sys.stderr.write('y' * 3_000_000 + '\\nlast')"
    ended = command(sys.executable, "-c", code)
    assert len(ended.out) == len(ended.err) == MOST_OUTPUT
    assert (ended.out[-3:], ended.err[-5:]) == ("x\n7", "\nlast")


def test_much_output_costs_little_memory():
    code = """if True:
        import resource, sys
        from crashbo.app.launcher import run_command
        from crashbo.workers import Limits
        used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = used()
        ended = run_command(["sh", "-c", "head -c 200000000 /dev/zero | tr '\\\\0' x; echo; echo 5"], b"", Limits())
        print(used() - before, ended.out[-3:].strip())
    """
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    grown, cost = map(int, said.split())
    assert cost == 5
    assert grown * (1 if sys.platform == "darwin" else 1024) < 30e6


@pytest.mark.parametrize(
    ("code", "out"),
    [
        ("exec <&-; sleep 0.1; echo 4", "4\n"),
        ("echo 5", "5\n"),
        ("head -c 3 >/dev/null; exec <&-; sleep 0.1; echo 6", "6\n"),
        ("wc -c", "3000000\n"),
    ],
)
def test_a_command_may_read_its_input_or_not(command, code, out):
    assert command("sh", "-c", code, text=b"x" * 3_000_000, seconds=50.0).out == out


def test_a_command_that_kills_its_runner_is_a_death_and_the_next_one_runs(run):
    trial = run("sh", "-c", "kill -9 $PPID; sleep 60")
    assert (trial.state, trial.reason) == ("crash", "killed by signal 9 (SIGKILL)")
    assert run("echo", "1").cost == 1.0


def test_rules_of_an_earlier_edition_mean_what_they_meant():
    said = {
        "timeout": 9.0,
        "on_timeout": "void",
        "on_exit": "void",
        "exits": {},
        "on_kill": "void",
        "on_rubbish": "crash",
    }
    rules = extras_in(json.dumps({"run": said}))[2]
    assert rules == RunRules(timeout=9.0, on_timeout="void", on_death="void", on_nan="crash", on_rubbish="crash")
    assert extras_in(Definition.of(SAID).extras())[2] == RunRules()


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


def test_results_survive_json_to_the_last_digit(run):
    assert run("echo", json.dumps({"cost": 0.1 + 0.2})).cost == 0.1 + 0.2


def test_a_stray_byte_in_a_log_is_no_reason_to_lose_the_cost():
    assert parse_result("log \0 x\n" + "a line\n" * 20 + "5\n").cost == 5.0
    rubbish = random.Random(0).randbytes(3000).decode("utf-8", errors="replace")
    with pytest.raises(ValueError, match="no result on its output"):
        parse_result(rubbish + "\n7")
