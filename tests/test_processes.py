"""Processes: found, weighed and ended with all that descends from them."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from crashbo import processes
from deaths import LEFT_BEHIND, gone, leave_behind, lives, pids, wait_for

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.mark.parametrize(
    ("said", "size"), [("2GB", 2e9), ("1.5 MB", 1.5e6), ("512 MiB", 2**29), ("10kb", 1e4), (12345, 12345), (3e9, 3e9)]
)
def test_a_size_is_read(said, size):
    assert processes.bytes_of(said) == size


@pytest.mark.parametrize("said", ["2", "GB", "-1GB", "0GB", "2 gigs", 0, -5, True, float("nan"), float("inf"), [2], ""])
def test_what_is_no_size_is_refused_in_a_sentence(said):
    with pytest.raises(ValueError, match=r"^memory must be a size such as .+; got .+\. None sets no limit\.$"):
        processes.bytes_of(said)


def test_sizes_and_ends_are_said_in_words():
    assert processes.sized(2e9) == "2 GB"
    assert processes.sized(1.5e6) == "1.5 MB"
    assert processes.sized(12) == "12 bytes"
    assert processes.how_it_ended(3) == "ended with exit code 3"
    assert processes.how_it_ended(-11) == "killed by signal 11 (SIGSEGV)"
    assert processes.how_it_ended(-200) == "killed by signal 200"


@pytest.fixture
def parent(tmp_path):
    """A process with three descendants, one of them without a parent any more."""
    code = f"""
        import sys, time
        sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
        from crashbo import processes
        from deaths import leave_behind
        processes.adopt_orphans()
        leave_behind({str(tmp_path)!r})
        time.sleep(600)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    assert wait_for(lambda: len(pids(tmp_path)) == 3)
    yield process
    for pid in [process.pid, *pids(tmp_path)]:
        if lives(pid):
            os.kill(pid, signal.SIGKILL)
    process.wait()


@linux
def test_all_descendants_of_one_that_adopts_orphans_are_found(parent, tmp_path):
    assert wait_for(lambda: set(processes.below(parent.pid)) == set(pids(tmp_path)))


@linux
def test_a_tree_is_ended_whole(parent, tmp_path):
    processes.end_tree(parent.pid)
    parent.wait()
    assert gone(pids(tmp_path))


@linux
def test_what_descends_is_ended_and_who_is_spared_lives(parent, tmp_path):
    spared = processes.below(parent.pid)[0]
    processes.end_below(parent.pid, spare=[spared])
    assert gone(set(pids(tmp_path)) - {spared})
    assert lives(spared)
    assert lives(parent.pid)


@linux
def test_what_bears_a_mark_is_ended_and_nothing_else():
    marked = subprocess.Popen(LEFT_BEHIND, env={**os.environ, processes.MARK: "/some/where/7."})
    other = subprocess.Popen(LEFT_BEHIND, env={**os.environ, processes.MARK: "/some/where/71."})
    try:
        processes.end_marked("/some/where/7.")
        assert marked.wait(10) == -signal.SIGKILL
        assert lives(other.pid)
    finally:
        other.kill()
        other.wait()


@linux
def test_a_fork_bears_the_mark_of_a_file_that_is_open(tmp_path):
    with open(tmp_path / "7.", "w"):
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
    processes.end_marked(str(tmp_path / "8."))
    assert lives(pid)
    with open(tmp_path / "7."):
        reader = os.fork()
        if reader == 0:
            time.sleep(600)
    processes.end_marked(str(tmp_path), spare=[pid])
    assert lives(pid)
    processes.end_marked(str(tmp_path / "7."))
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    assert lives(reader)
    os.kill(reader, signal.SIGKILL)
    os.waitpid(reader, 0)


@linux
def test_memory_is_that_of_all_descendants_and_shared_pages_count_once():
    code = "import os, time; held = bytearray(10**8); [os.fork() for _ in range(2)]; time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.DEVNULL)
    try:
        assert wait_for(lambda: len(processes.below(process.pid)) == 3)
        assert 1e8 < processes.used(process.pid, 0.0) < 1.6e8  # four processes of more than 1e8 each
        assert processes.used(process.pid, 0.0) < processes.used(process.pid, 1e12)
        assert processes.heavy([process.pid], 9e7)[0] == [process.pid]
        assert processes.heavy([process.pid], 2e8)[0] == []
    finally:
        processes.end_tree(process.pid)
        process.wait()


@linux
@pytest.mark.skipif(not os.path.exists("/bin/ps"), reason="needs ps")
def test_the_table_of_ps_has_the_same_parents(parent, monkeypatch):
    assert wait_for(lambda: len(processes.below(parent.pid)) == 3)  # who left the orphan behind has ended
    seen = processes.table()
    monkeypatch.setattr(processes, "LINUX", False)
    shown = processes.table()
    assert shown[parent.pid].parent == seen[parent.pid].parent == os.getpid()
    assert set(processes.below(parent.pid, shown)) == set(processes.below(parent.pid, seen))
    assert processes.started(parent.pid) == shown[parent.pid].started


@linux
@pytest.mark.parametrize("killed", [True, False])
def test_a_sentry_ends_those_it_watches_only_if_its_parent_is_killed(killed, tmp_path):
    (tmp_path / "sheets").mkdir()
    code = f"""
        import subprocess, sys, time
        from crashbo import processes
        member = subprocess.Popen({LEFT_BEHIND!r})
        sentry = processes.Sentry({str(tmp_path / "sheets")!r})
        sentry.over([member.pid])
        if not {killed}:
            time.sleep(0.5)
            sentry.close()
        print(member.pid, flush=True)
        if {killed}:
            time.sleep(600)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    member = int(process.stdout.readline())
    process.kill() if killed else process.wait()
    process.wait()
    process.stdout.close()
    try:
        if killed:
            assert gone([member])
            assert wait_for(lambda: not (tmp_path / "sheets").exists())
        else:
            time.sleep(1.0)
            assert lives(member)
    finally:
        if lives(member):
            os.kill(member, signal.SIGKILL)


@linux
def test_a_sentry_ends_what_one_that_died_has_left(tmp_path):
    sentry = processes.Sentry("/no/such/mark")
    pid = os.fork()
    if pid == 0:
        try:
            leave_behind(tmp_path)
            time.sleep(600)
        finally:
            os._exit(1)
    try:
        sentry.over([pid])
        assert wait_for(lambda: len(pids(tmp_path)) == 3)
        assert wait_for(lambda: len(set(processes.below(pid))) == 2)  # who started them is gone
        children = set(processes.below(pid))
        time.sleep(1.0)  # the sentry looks about
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert gone(children)
    finally:
        sentry.close()
        for left in pids(tmp_path):
            if lives(left):
                os.kill(left, signal.SIGKILL)
