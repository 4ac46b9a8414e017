"""minimize where experiments really die: in workers of its own, in executors, and when it is killed itself."""

import json
import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from machines import SPACE, Together, cost_of

import crashbo
from crashbo import processes
from crashbo.optimizer import experiment
from crashbo.optimizer.attendance import Attendance, Sheet, attended
from deaths import die, gone, pids, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and /proc")

GOOD = "none"
WAYS = ("segfault", "kill", "exit", "memory", "hang", "hang with children", "nan", "error")
REASONS = {
    "segfault": "killed by signal 11 (SIGSEGV)",
    "kill": "killed by signal 9 (SIGKILL)",
    "exit": "ended with exit code 3",
    "memory": "used more than 500 MB",
    "hang": "no answer within 2 s",
    "hang with children": "no answer within 2 s",
    "nan": "no finite cost: nan",
    "error": "ValueError: my bug",
    GOOD: "",
}
DEADLY = {"how": crashbo.Choice((GOOD, *WAYS)), "x": (0.0, 1.0)}


def ways(*hows):
    """Start points that die in these ways, in turn."""
    return [{"how": how, "x": 0.01 * i} for i, how in enumerate(hows)]


class Deadly:
    """Dies as its params say; children are noted in a folder for each call."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def __call__(self, params):
        marks = self.folder / f"{params['x']}-{os.getpid()}-{time.monotonic_ns()}"
        if params["how"] == "hang with children":
            marks.mkdir()
        return die(None if params["how"] == GOOD else params["how"], marks) + params["x"]


def left(folder):
    return [pid for marks in Path(folder).iterdir() if marks.is_dir() for pid in pids(marks)]


def study(experiment, start, **kwargs):
    """A study of these start points."""
    rules = {"timeout": 2.0, "on_error": "crash", "on_nan": "crash"}
    told = {"trials": len(start), "start": start, "strategy": "random", "progress": False, **rules, **kwargs}
    return crashbo.minimize(experiment, DEADLY, **told)


def states(result):
    return [t.state for t in result.trials]


def quick(experiment, **kwargs):
    return crashbo.minimize(experiment, SPACE, **{"trials": 4, "strategy": "random", "progress": False, **kwargs})


MIXED = ways(GOOD, *WAYS, GOOD, "kill", GOOD, GOOD)


def check(result, seconds=2):
    for trial in result.trials:
        how = trial.params["how"]
        reason = REASONS[how].replace("2 s", f"{seconds} s")
        assert (how, trial.state) == (how, "success" if how == GOOD else "crash")
        assert trial.reason in (reason, "its process was killed" if how == "kill" else reason)


def test_each_way_to_die_in_workers_is_a_crash_with_its_reason_and_no_success_is_one(tmp_path):
    result = study(Deadly(tmp_path), MIXED, workers=3, memory="500MB")
    assert result.ended == f"{len(MIXED)} trials"
    check(result)
    assert len(left(tmp_path)) >= 3
    assert gone(left(tmp_path))


def test_each_way_to_die_in_a_pool_of_processes_is_a_crash_with_its_reason_and_no_success_is_one(tmp_path):
    with ProcessPoolExecutor(3) as pool:
        # To use up the memory takes longer than two seconds where other tests use it, too.
        result = study(Deadly(tmp_path), MIXED, executor=pool, memory="500MB", timeout=6.0)
    assert result.ended == f"{len(MIXED)} trials"
    check(result, seconds=6)
    assert len(left(tmp_path)) >= 3
    assert gone(left(tmp_path))


@pytest.mark.parametrize("how", ["kill", "memory", "hang"])
def test_deaths_and_timeouts_may_be_void(how, tmp_path):
    voids = {"on_death": "void", "on_timeout": "void", "stop": [lambda study: "done" if study.trials else None]}
    result = study(Deadly(tmp_path), ways(how), workers=1, memory="500MB", **voids)
    assert [(t.state, t.reason) for t in result.trials[:1]] == [("void", REASONS[how])]


def test_an_experiment_out_of_memory_by_its_own_account_has_died():
    def experiment(params):
        raise MemoryError("no room")

    result = quick(experiment, workers=1, trials=1)
    assert (result.trials[0].state, result.trials[0].reason) == ("crash", "out of memory: MemoryError('no room')")
    for here in ({}, {"executor": ThreadPoolExecutor(1)}):  # there it is an exception as any other
        with pytest.raises(MemoryError):
            quick(experiment, trials=1, **here)


@pytest.mark.parametrize("where", [{}, {"workers": 2}, {"n_parallel": 2}])
@pytest.mark.parametrize("how", ["error", "nan"])
def test_errors_and_what_is_no_cost_are_raised_or_count_as_said(where, how, tmp_path):
    kind = ValueError if how == "error" else TypeError
    with pytest.raises(kind, match="my bug" if how == "error" else "must return an Outcome or a finite cost"):
        study(Deadly(tmp_path), ways(how), on_error="raise", on_nan="raise", timeout=None, **where)
    for word in ("crash", "void"):
        rules = {"on_error": word, "on_nan": word, "timeout": None, "stop": [two_trials]}
        result = study(Deadly(tmp_path), ways(how, GOOD), **rules, **where)
        assert [(t.state, t.reason) for t in result.trials] == [(word, REASONS[how]), ("success", "")]


def two_trials(study):
    return "two trials" if len(study.trials) >= 2 else None


def test_an_error_in_a_worker_says_where_it_was_raised(tmp_path):
    with pytest.raises(ValueError, match="my bug") as caught:
        study(Deadly(tmp_path), ways("error"), on_error="raise", workers=1)
    assert "deaths.py" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "answer", [None, float("inf"), np.float32("nan"), np.array(np.nan), crashbo.Outcome(float("nan"))]
)
def test_no_finite_number_is_on_nan(answer):
    assert states(quick(lambda params: answer, on_nan="crash", trials=2)) == ["crash", "crash"]


@pytest.mark.parametrize("answer", ["1.0", [1.0], True, np.ones(2), crashbo.Outcome("1.0")])
def test_what_is_no_number_at_all_is_an_error(answer):
    with pytest.raises(TypeError, match="must return an Outcome or a finite cost"):
        quick(lambda params: answer, on_nan="crash", trials=2)


@pytest.mark.parametrize(
    "answer", [2, 2.0, np.float32(2.0), np.array(2.0), np.int64(2), crashbo.Outcome(np.array(2.0))]
)
def test_a_number_may_come_as_numpy_has_it(answer):
    assert [t.cost for t in quick(lambda params: answer, trials=2).trials] == [2.0, 2.0]


def test_an_outcome_that_the_study_cannot_take_is_an_error():
    def experiment(params):
        return crashbo.Outcome(1.0, {"load": float("nan")})

    with pytest.raises(ValueError, match=r"measured\['load'\] must be a finite number"):
        quick(experiment, constraints=["load"])
    result = quick(experiment, constraints=["load"], on_error="crash", trials=1)
    assert states(result) == ["crash"]


@pytest.mark.parametrize(
    ("words", "kwargs"),
    [
        (r"workers must be a whole number, at least 1; got 0\. ", {"workers": 0}),
        (r"workers must be given without executor; got 2 and both\. ", {"workers": 2, "executor": Together()}),
        (r"workers must be given without n_parallel; got 2 and both\. ", {"workers": 2, "n_parallel": 2}),
        (r"memory must go with workers or an executor of processes; got neither\. ", {"memory": "2GB"}),
        (r"executor must be one such as concurrent\.futures has; got 5\. ", {"executor": 5}),
        (r"callbacks must be a list of functions; got 5\. ", {"callbacks": 5}),
        (r"memory must be a size such as .+; got 'much'\. ", {"memory": "much", "workers": 1}),
        (r"on_death must go with workers or an executor of processes; got neither\. ", {"on_death": "void"}),
        (r"on_death must be 'crash' or 'void'; got 'raise'\. ", {"on_death": "raise", "workers": 1}),
        (r"on_error must be 'crash', 'void' or 'raise'; got None\. ", {"on_error": None}),
        (r"on_nan must be 'crash', 'void' or 'raise'; got 'nan'\. ", {"on_nan": "nan"}),
        (r"memory must go with workers or a pool of processes on this machine; got Together\. ",
         {"memory": "2GB", "executor": Together()}),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_in_one_sentence(words, kwargs):
    with pytest.raises(ValueError, match=rf"^{words}[^\n]*$"):
        quick(cost_of, **kwargs)


def test_a_closure_runs_in_workers_and_so_does_what_it_starts():
    offset = threading.local()  # cannot be sent
    offset.x = 3.0

    def experiment(params):
        with multiprocessing.get_context("fork").Pool(2) as inner:
            return sum(inner.map(abs, [-1.0, -2.0])) + hasattr(offset, "x")

    assert [t.cost for t in quick(experiment, workers=2).trials] == [4.0] * 4


def test_workers_work_under_spawn(monkeypatch, tmp_path):
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none=False: "spawn")
    check(study(Deadly(tmp_path), ways(GOOD, "kill", "error", GOOD), workers=2))


def sleepy(params):
    time.sleep(0.4)
    return 1.0


def test_a_trial_that_waits_for_a_worker_is_never_late():
    with ProcessPoolExecutor(1) as pool:  # its queue holds calls that it calls running
        result = quick(sleepy, executor=pool, n_parallel=4, timeout=1.0, trials=8)
    assert states(result) == ["success"] * 8


def test_a_pool_whose_every_worker_hangs_is_replaced(tmp_path):
    with ProcessPoolExecutor(2) as pool:
        result = study(Deadly(tmp_path), ways("hang", "hang", GOOD, GOOD, "hang", GOOD), executor=pool, timeout=1.0)
    check_states = Counter((t.params["how"], t.state) for t in result.trials)
    assert check_states == {("hang", "crash"): 3, (GOOD, "success"): 3}


def test_threads_that_all_hang_end_the_study_with_a_sentence():
    over = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        try:
            result = quick(lambda params: over.wait(60) or 1.0, executor=pool, timeout=0.1)
        finally:
            over.set()
    assert result.ended.startswith("all workers of the executor (2) hang in trials that were given up; workers=2")
    assert states(result) == ["crash", "crash"]


class Breaks(Together):
    """An executor of a kind that nobody can make anew, which breaks at its third call."""

    calls = 0

    def submit(self, function, *args):
        self.calls += 1
        if self.calls < 3:
            return super().submit(function, *args)
        future = Future()
        future.set_exception(BrokenExecutor("the cluster is gone"))
        return future


def test_an_executor_that_is_lost_ends_the_study_and_everything_is_kept(tmp_path):
    path = tmp_path / "study.jsonl"
    result = quick(cost_of, executor=Breaks(), journal=path, trials=6)
    assert "the executor can run nothing any more (the cluster is gone)" in result.ended
    assert states(result) == ["success", "success", "void"]
    assert states(quick(cost_of, journal=path, trials=6)) == ["success", "success", "void", *["success"] * 4]


class KilledWorker(Exception):
    """As Dask names it."""


class Dask(Together):
    def submit(self, function, *args):
        future = super().submit(function, *args)
        if args[1].params["x"] > 0.5:
            future = Future()
            future.set_exception(KilledWorker("three workers died while trying to run it"))
        return future


class Job:
    """As submitit has it: no future, and neither running nor cancelled."""

    def __init__(self, future):
        self.future, self.asked = future, 0

    def done(self):
        self.asked += 1
        return self.asked > 3

    def exception(self):
        return self.future.exception()

    def result(self):
        return self.future.result()

    def cancel(self, check=True):
        pass


class Submitit(Together):
    def submit(self, function, *args):
        return Job(super().submit(function, *args))


def test_a_worker_killed_in_dask_is_a_death():
    result = quick(cost_of, executor=Dask(), n_parallel=2, trials=12)
    assert {(t.params["x"] > 0.5, t.state) for t in result.trials} == {(True, "crash"), (False, "success")}
    assert "three workers died while trying to run it" in {t.reason for t in result.trials}


def test_jobs_that_are_no_futures_will_do():
    assert states(quick(cost_of, executor=Submitit(), n_parallel=3, timeout=60.0, trials=6)) == ["success"] * 6


def test_an_executor_s_own_error_is_raised_and_no_crash():
    with ProcessPoolExecutor(1) as pool, pytest.raises(Exception, match=r"pickle|lambda") as caught:
        quick(lambda params: 1.0, executor=pool, on_error="crash")
    assert "Or give workers=." in caught.value.__notes__[0]


def test_an_executor_out_of_reach_keeps_the_time_itself(monkeypatch):
    ending = attended(lambda params: time.sleep(60), experiment.Job({}), Sheet("/no/such/folder/1.", 0), 0.1)
    assert (ending.kind, ending.reason) == ("timeout", "no answer within 0.1 s")
    assert attended(lambda params: 2.0, experiment.Job({}), Sheet("/no/such/folder/1.", 0), 60.0).cost == 2.0


def test_a_call_whose_process_is_dead_is_not_late(tmp_path):
    attendance = Attendance()
    try:
        sheet = attendance.sheet()
        pid = os.fork()
        if pid == 0:
            with sheet.signed():
                time.sleep(600)
        assert wait_for(lambda: attendance.since(sheet) is not None)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert attendance.process(sheet) == pid  # which one it was is still known
        assert attendance.since(sheet) is None  # Dask may run it again, later
        with sheet.signed():
            assert attendance.since(sheet) > time.monotonic() - 60
    finally:
        attendance.close()


def test_a_suspect_is_run_again_alone():
    """Two ran when somebody ended the pool by the signal that the pool itself uses: which, nobody can tell."""

    with ProcessPoolExecutor(2) as pool:
        result = study(
            partial(dies_amid_others, signal.SIGTERM), ways("kill", GOOD, GOOD, GOOD), executor=pool, timeout=None
        )
    assert [(t.params["how"], t.state) for t in result.trials] == [("kill", "crash"), *[(GOOD, "success")] * 3]


def dies_amid_others(number, params):
    """A second of work; where it is deadly, a signal of this number in the midst of it."""
    time.sleep(0.5)
    if params["how"] == "kill":
        os.kill(os.getpid(), number)
    time.sleep(0.5)
    return 1.0


def forks_and_dies(params):
    """What it leaves behind is a fork without a parent, and holds all that a dying process would have closed."""
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        os._exit(0)
    os.wait()
    if params["how"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


@pytest.mark.parametrize("where", ["workers", "pool"])
def test_a_fork_that_is_left_behind_neither_hides_a_death_nor_stays(where):
    before = set(processes.table())
    with ProcessPoolExecutor(2) as pool:
        run = {"workers": 2} if where == "workers" else {"executor": pool}
        result = study(forks_and_dies, ways(GOOD, "kill", GOOD, "kill"), **{"timeout": 60.0, **run})
    check(result)
    me = started_here()
    assert wait_for(lambda: not {pid for pid in set(processes.table()) - before if started_here(pid) == me})


def started_here(pid=None):
    """The program that a process runs, with its arguments: that of a fork is its parent's."""
    try:
        return Path(f"/proc/{pid or os.getpid()}/cmdline").read_bytes()
    except OSError:
        return None


@pytest.mark.parametrize("where", ["workers", "pool"])
def test_a_fork_that_comes_back_says_nothing(where):
    with ProcessPoolExecutor(2) as pool:
        run = {"workers": 2} if where == "workers" else {"executor": pool}
        assert states(quick(forks_and_comes_back, on_error="crash", trials=6, **run)) == ["success"] * 6


def forks_and_comes_back(params):
    if os.fork() == 0:
        raise ValueError("in the fork")
    return 1.0


@pytest.mark.parametrize("where", [{}, {"n_parallel": 2}, {"executor": ThreadPoolExecutor(1)}])
def test_an_experiment_that_exits_here_is_an_error(where):
    result = quick(exits, on_error="crash", trials=2, **where)
    assert [(t.state, t.reason) for t in result.trials] == [("crash", "SystemExit: 3")] * 2
    with pytest.raises(SystemExit):
        quick(exits, **where)


@pytest.mark.parametrize("where", ["workers", "pool"])
def test_an_experiment_that_exits_has_died(where):
    with ProcessPoolExecutor(2) as pool:
        run = {"workers": 2} if where == "workers" else {"executor": pool}
        result = quick(exits, trials=2, **run)
    assert [(t.state, t.reason) for t in result.trials] == [("crash", "ended with exit code 3")] * 2


def exits(params):
    sys.exit(3)


def test_an_experiment_that_kills_the_keeper_is_found_and_nobody_else_is_blamed():
    def experiment(params):
        if params["x"] > 0.6:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(5)
        return params["x"]

    result = quick(experiment, workers=3, trials=8)
    assert {(t.params["x"] > 0.6, t.state) for t in result.trials} == {(True, "crash"), (False, "success")}


def test_an_experiment_that_closes_its_descriptors_stops_nobody_else():
    def experiment(params):
        if params["how"] == "hang":
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            time.sleep(600)
        return 1.0

    result = study(experiment, ways("hang", GOOD, GOOD), workers=2, timeout=None)
    assert [(t.params["how"], t.state) for t in result.trials] == [("hang", "crash"), *[(GOOD, "success")] * 2]
    assert result.trials[0].reason == "closed the descriptors of its own process"


def test_a_program_that_ignores_its_children_hears_how_they_died(tmp_path):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        check(study(Deadly(tmp_path), ways("kill", GOOD, "exit"), workers=1))
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("where", ["workers", "pool"])
def test_what_the_parent_holds_is_not_the_experiment_s(where):
    global held
    held = np.ones(10**8 // 8 * 6)  # 600 MB
    try:
        with ProcessPoolExecutor(1) as pool:
            run = {"workers": 1} if where == "workers" else {"executor": pool}
            result = study(reads, ways(GOOD, "memory", GOOD), memory="300MB", **{**run, "timeout": 60.0})
    finally:
        held = None
    check_states = [(t.params["how"], t.state, t.reason) for t in result.trials]
    assert check_states == [
        (GOOD, "success", ""),
        ("memory", "crash", "used more than 300 MB"),
        (GOOD, "success", ""),
    ]


held = None


def reads(params):
    kept = []
    for _ in range(5):
        held.sum()
        time.sleep(0.1)
        if params["how"] == "memory":
            kept.append(np.ones(10**8 // 8))
    if kept:
        time.sleep(5.0)  # memory is weighed now and then, on a busy machine seldom
    return 1.0


def test_a_bystander_is_neither_crash_nor_void(tmp_path):
    with ProcessPoolExecutor(3) as pool:
        result = study(Deadly(tmp_path), ways("kill", GOOD, "segfault", GOOD, "kill", GOOD), executor=pool)
    check(result)


def test_a_bystander_is_run_to_its_end_though_the_study_is_over(tmp_path):
    with ProcessPoolExecutor(3) as pool:
        run = {"executor": pool, "stop": [crashbo.stopping.MaxCrashes(1)]}
        result = study(partial(dies_amid_others, signal.SIGKILL), ways("kill", GOOD, GOOD, GOOD, GOOD), **run)
    assert result.ended == "1 crashes"
    assert sorted(states(result)) == ["crash", "success", "success"]


@pytest.mark.parametrize("where", ["workers", "pool", "threads"])
def test_killed_at_any_moment_the_same_call_goes_on_at_once_and_nothing_is_left(where, tmp_path):
    path = tmp_path / "study.jsonl"
    script = tmp_path / "study.py"
    run = {"workers": "workers=3", "pool": "executor=ProcessPoolExecutor(3)", "threads": "n_parallel=3"}[where]
    script.write_text(
        textwrap.dedent(f"""
            import os, sys, time
            from concurrent.futures import ProcessPoolExecutor
            import crashbo
            os.environ["CRASHBO_TEST"] = {str(tmp_path)!r}
            def experiment(params):
                time.sleep(0.02)
                if params["x"] > 0.8 and {where != "threads"}:
                    os.kill(os.getpid(), 9)
                return params["x"]
            if __name__ == "__main__":
                crashbo.minimize(experiment, {{"x": (0, 1)}}, trials=100_000, strategy="random", progress=False,
                                 journal={str(path)!r}, {run})
        """)
    )
    rng, family = random.Random(0), set()
    for _ in range(4):
        before = told(path)
        process = subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, text=True)
        assert wait_for(lambda before=before, process=process: len(told(path)) > len(before) + 5 or process.poll())
        time.sleep(rng.uniform(0.0, 0.3))
        family |= set(processes.below(process.pid))
        process.kill()
        error = process.communicate()[1]
        assert "journal" not in error
        assert told(path)[: len(before)] == before
    numbers = [number for number, _ in told(path)]
    assert len(set(numbers)) == len(numbers)
    assert {state for _, state in told(path)} <= {"success", "crash", "void"}
    assert gone(family)


def told(path):
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines(keepends=True)[1:] if line.endswith("\n")]
    return [(e["trial"]["number"], e["trial"]["state"]) for e in lines if e["event"] == "tell"]


def test_a_death_teaches_what_a_polite_crash_does():
    def polite(params):
        if params["x"] + params["y"] > 1.2:
            raise crashbo.Crash
        return cost_of(params)

    def deadly(params):
        if params["x"] + params["y"] > 1.2:
            os.kill(os.getpid(), signal.SIGKILL)
        return cost_of(params)

    runs = [crashbo.minimize(f, SPACE, trials=16, workers=1, progress=False).trials for f in (polite, deadly)]
    assert [(t.params, t.state, t.cost) for t in runs[0]] == [(t.params, t.state, t.cost) for t in runs[1]]
    assert "crash" in {t.state for t in runs[0]}


def test_callbacks_hear_of_every_trial_that_is_told():
    heard = []
    result = quick(cost_of, callbacks=[lambda optimizer, trial: heard.append((optimizer.trials[-1].number, trial))])
    assert [trial for _, trial in heard] == result.trials
    assert [number for number, _ in heard] == [0, 1, 2, 3]


@pytest.mark.parametrize("where", [{}, {"workers": 2}, {"executor": Together(), "n_parallel": 3}])
@pytest.mark.parametrize("name", ["callbacks", "progress"])
def test_what_a_callback_raises_is_raised_as_it_is_and_what_was_told_is_kept(where, name, tmp_path):
    def bad(*heard):
        raise KeyError("my own")

    path = tmp_path / "study.jsonl"
    with pytest.raises(KeyError, match="my own"):
        quick(cost_of, journal=path, **{name: [bad] if name == "callbacks" else bad}, **where)
    assert len(told(path)) in ((3,) if "executor" in where else (1, 2))  # two workers may end together


def test_a_result_can_be_confirmed_by_an_experiment_that_dies():
    def experiment(params):
        if random.random() < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        return 2.0

    result = quick(cost_of)
    report = result.confirm(experiment, n=8, workers=3)
    assert report.done
    assert len(report.trials) == 8
    assert report.crashes == sum("signal 9" in t.reason for t in report.trials)
    assert all(t.origin == "confirm" for t in result.trials[4:])
    with pytest.raises(ValueError, match=r"^memory must go with workers"):
        result.confirm(experiment, memory="2GB")


def test_the_library_speaks_to_its_logger_and_prints_nothing(caplog, capfd):
    def experiment(params):
        if params["x"] > 0.7:
            raise crashbo.Crash("fuse")
        if params["x"] < 0.2:
            raise crashbo.Void("no power")
        return 1.0

    with caplog.at_level(logging.INFO, "crashbo"):
        crashbo.minimize(experiment, SPACE, trials=12, strategy="random", progress=False)
    said = caplog.text
    assert "success, cost 1" in said
    assert "crash: fuse" in said
    assert "void: no power" in said
    assert capfd.readouterr() == ("", "")


def test_workers_that_die_print_nothing(tmp_path):
    script = tmp_path / "quiet.py"
    script.write_text(
        textwrap.dedent("""
            import os, signal, time
            import crashbo
            def experiment(params):
                time.sleep(0.02)
                if params["x"] > 0.7:
                    os.kill(os.getpid(), signal.SIGKILL)
                if params["x"] < 0.2:
                    raise KeyboardInterrupt
                return params["x"]
            for _ in range(3):
                crashbo.minimize(experiment, {"x": (0, 1)}, trials=12, workers=3, strategy="random", progress=False)
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_a_listener_nothing_is_printed():
    code = "import crashbo, logging; logging.getLogger('crashbo').warning('hear me')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
