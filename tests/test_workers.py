"""Workers: every way for a call to die is told, leaves nothing behind, and harms no other call."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from crashbo import processes, workers
from crashbo.workers import BrokenWorkers, CannotStart, Died, Late, Limits, Workers
from deaths import die, gone, lives, pids, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and /proc")
FREE = Limits()


@pytest.fixture(params=["fork", "spawn"])
def method(request, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none=False: request.param)
    return request.param


def here():
    return os.getpid()


@pytest.mark.usefixtures("method")
def test_every_death_is_told_and_the_next_call_is_well(tmp_path):
    with Workers(die, 2, Limits(seconds=3.0, memory=5e8)) as pool:
        ways = {
            "segfault": "killed by signal 11 (SIGSEGV)",
            "exit": "ended with exit code 3",
            "sys.exit": "ended with exit code 4",
            "kill": "killed by signal 9 (SIGKILL)",
            "kill group": "killed by signal 9 (SIGKILL)",
            "memory": "used more than 500 MB",
        }
        for how, words in ways.items():
            error = pool.submit(how).exception()
            assert (type(error), str(error)) == (Died, words)
            assert pool.submit(None).result() == 1.0
        error = pool.submit("error").exception()
        assert (type(error), str(error)) == (ValueError, "my bug")
        assert "deaths.py" in error.__notes__[0]  # where it was raised


@pytest.mark.usefixtures("method")
def test_a_call_that_takes_too_long_ends_with_all_its_children(tmp_path):
    with Workers(die, 1, Limits(seconds=5.0)) as pool:
        error = pool.submit("hang with children", tmp_path).exception()
        assert (type(error), str(error)) == (Late, "no answer within 5 s")
        assert len(pids(tmp_path)) == 3
        assert gone(pids(tmp_path))


def test_what_one_that_dies_leaves_behind_ends_with_it(tmp_path):
    with Workers(die, 1) as pool:
        assert isinstance(pool.submit("segfault with children", tmp_path).exception(), Died)
        assert len(pids(tmp_path)) == 3
        assert gone(pids(tmp_path))
        assert pool.submit(None).result() == 1.0


def test_a_call_is_timed_from_its_own_beginning():
    with Workers(time.sleep, 1, Limits(seconds=1.5)) as pool:
        calls = [pool.submit(1.0) for _ in range(3)]  # the last waits for two seconds before it begins
        assert [call.exception() for call in calls] == [None] * 3
        assert all(call.begun for call in calls)


def test_the_others_go_on_when_one_dies():
    with Workers(die, 3, Limits(seconds=600.0)) as pool:
        long = [pool.submit("hang") for _ in range(2)]
        assert wait_for(lambda: all(call.begun for call in long))
        assert [str(pool.submit("kill").exception())[:6] for _ in range(3)] == ["killed"] * 3
        assert not any(call.done() for call in long)


@pytest.mark.usefixtures("method")
def test_a_worker_lives_on_between_calls_and_is_replaced_only_when_it_dies():
    with Workers(_here_or_die, 1) as pool:
        first = pool.submit(False).result()
        assert first != os.getpid()
        assert pool.submit(False).result() == first
        assert isinstance(pool.submit(True).exception(), Died)
        assert pool.submit(False).result() != first


def _here_or_die(die):
    if die:
        os._exit(1)
    return os.getpid()


def test_any_function_will_do_where_workers_are_forked():
    secret = {"k": threading.Lock()}  # cannot be sent
    with Workers(lambda x: (x, "k" in secret), 1) as pool:
        assert pool.submit(3).result() == (3, True)


def test_a_function_that_cannot_be_sent_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none=False: "spawn")
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(
        ValueError, match=r"^experiment must be one that can be sent .+; got .+lambda.+crashbo\[workers\]"
    ):
        Workers(lambda: 1, 1)


def test_a_lambda_is_sent_by_cloudpickle(monkeypatch):
    pytest.importorskip("cloudpickle")
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none=False: "spawn")
    beside = 40
    with Workers(lambda x: x + beside, 1) as pool:
        assert pool.submit(2).result() == 42


@pytest.mark.parametrize("name", ["file", "stdin"])
def test_workers_that_cannot_start_say_so(name, tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "import crashbo\n"
        "def f(params): return 1.0\n"
        "multiprocessing.set_start_method('spawn', force=True)\n"
        "crashbo.minimize(f, {'x': (0, 1)}, workers=1)\n"
    )
    run = [sys.executable, script] if name == "file" else [sys.executable, "-"]
    with open(script) as text:
        done = subprocess.run(run, stdin=text, capture_output=True, text=True, timeout=60, check=False)
    assert "workers must be able to start; their keeper ended at once." in done.stderr
    assert "if __name__ == '__main__':" in done.stderr.splitlines()[-1]


def _dies_as_it_is_loaded():
    os._exit(7)


class Unloadable:
    def __call__(self):
        return 1

    def __reduce__(self):
        return _dies_as_it_is_loaded, ()


def test_a_function_that_ends_every_worker_as_it_is_loaded_is_no_death_of_a_call(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none=False: "spawn")
    with Workers(Unloadable(), 2) as pool:
        error = pool.submit().exception()
    assert isinstance(error, CannotStart)
    assert "ended with exit code 7" in str(error)


class Unsendable(Exception):
    def __init__(self, one, two):
        super().__init__(one + two)


def _raise_unsendable():
    raise Unsendable("a", "b")


def test_an_exception_that_cannot_be_received_comes_as_its_words():
    with Workers(_raise_unsendable, 1) as pool:
        error = pool.submit().exception()
    assert isinstance(error, RuntimeError)
    assert "Unsendable('ab')" in str(error)


def test_an_answer_that_cannot_be_sent_is_an_error_and_a_large_one_is_none():
    with Workers(lambda size: bytes(size) if size else (i for i in ()), 1) as pool:
        assert "cannot be sent" in str(pool.submit(0).exception())
        assert len(pool.submit(10**8).result()) == 10**8


def test_a_fork_that_a_call_makes_and_that_comes_back_answers_nothing():
    def forks():
        if os.fork() == 0:
            raise ValueError
        return os.getpid()

    with Workers(forks, 1) as pool:
        answers = {pool.submit().result() for _ in range(5)}
    assert len(answers) == 1


def test_a_call_may_use_processes_of_its_own():
    def sums():
        with multiprocessing.get_context("fork").Pool(2) as inner:
            return sum(inner.map(abs, [-1, -2, -3]))

    with Workers(sums, 2) as pool:
        assert [pool.submit().result(timeout=60) for _ in range(4)] == [6] * 4


def test_workers_draw_different_random_numbers():
    with Workers(lambda: (time.sleep(0.3), np.random.random())[1], 3) as pool:  # noqa: NPY002
        calls = [pool.submit() for _ in range(3)]
        assert len({call.result() for call in calls}) == 3


def test_output_of_a_call_is_seen_at_its_end(tmp_path):
    script = tmp_path / "prints.py"
    script.write_text(
        "from crashbo.workers import Workers\n"
        "import os, time\n"
        "with Workers(lambda: print('seen'), 1) as pool:\n"
        "    pool.submit().result()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "seen\n"


def test_when_the_keeper_is_killed_the_calls_are_told_and_nothing_is_left(tmp_path):
    pool = Workers(die, 2)
    call = pool.submit("hang with children", tmp_path)
    assert wait_for(lambda: len(pids(tmp_path)) == 3)
    worker = next(pid for pid in processes.below(pool._keeper.pid) if processes.table()[pid].parent == pool._keeper.pid)
    os.kill(pool._keeper.pid, signal.SIGKILL)
    assert isinstance(call.exception(timeout=10), BrokenWorkers)
    assert call.begun
    assert isinstance(pool.submit(None).exception(timeout=10), BrokenWorkers)
    pool.close()
    assert gone([worker])
    for pid in filter(lives, pids(tmp_path)):  # what a call started is nobody's then
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_when_we_are_killed_everything_ends(start, number, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    script = tmp_path / "study.py"
    script.write_text(
        textwrap.dedent(f"""
            import multiprocessing, os, sys
            sys.path.insert(0, {str(Path(__file__).parent)!r})
            from crashbo.workers import Workers
            from deaths import die
            if __name__ == "__main__":
                multiprocessing.set_start_method({start!r})
                pool = Workers(die, 2)
                pool.submit("hang with children", {str(marks)!r}).result()
        """)
    )
    process = subprocess.Popen([sys.executable, script])
    assert wait_for(lambda: len(pids(marks)) == 3, 60)
    others = processes.below(process.pid)
    process.send_signal(number)
    process.wait()
    assert gone({*pids(marks), *others})


def test_a_fork_of_ours_that_ends_closes_nothing():
    with Workers(here, 1) as pool:
        first = pool.submit().result()
        pid = os.fork()
        if pid == 0:
            pool.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert pool.submit().result() == first


def test_workers_are_refused_to_a_daemon():
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_refused, args=(theirs,), daemon=True)
    process.start()
    assert ours.recv().startswith("workers must be started where processes may have children")
    process.join()


def _refused(pipe):
    try:
        Workers(here, 1)
    except ValueError as error:
        pipe.send(str(error))


def test_limits_of_memory_are_refused_where_they_cannot_be_held(monkeypatch):
    monkeypatch.setattr(processes, "LINUX", False)
    with pytest.raises(ValueError, match=r"^memory must be None here; got 1e\+09\. "):
        Limits(memory=1e9)


def test_what_is_sent_can_be_loaded_elsewhere():
    assert pickle.loads(workers._Sent.of(here).text)() == os.getpid()
