"""The append-only file that journals and run logs are made of."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import crashbo
from crashbo.lines import Lines, Lock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.jsonl"


@pytest.fixture
def opened(path):
    files = []

    def opened(**options):
        files.append(Lines(path, "log must hold an entry in every line", "Mend it.", **options))
        return files[-1]

    yield opened
    for file in files:
        file.close()


def test_entries_come_back_in_their_order_and_stand_on_disk_at_once(opened, path):
    lines = opened()
    for i in range(3):
        lines.append({"i": i, "text": "a\nb"})
        assert path.read_bytes().count(b"\n") == i + 1
    assert opened().read() == [{"i": i, "text": "a\nb"} for i in range(3)]


def test_a_file_that_was_not_there_has_no_entry(opened):
    assert opened().read() == []


@pytest.mark.parametrize("tail", [b"{", b'{"i": 1}', b"\0" * 50])
def test_what_a_kill_left_of_a_line_is_cut_off_and_the_next_entry_stands_in_a_line_of_its_own(opened, path, tail):
    opened().append({"i": 0})
    with open(path, "ab") as file:
        file.write(tail)
    lines = opened()
    assert lines.read() == [{"i": 0}]
    assert path.read_bytes() == b'{"i": 0}\n'
    lines.append({"i": 1})
    assert lines.read() == [{"i": 0}, {"i": 1}]


@pytest.mark.parametrize("damage", [b"{broken", b"\xff\xfe", b"[1, 2]", b"3", b""])
def test_a_whole_line_that_is_no_object_is_refused_by_its_number_and_nothing_is_cut_off(opened, path, damage):
    path.write_bytes(b'{"i": 0}\n' + damage + b'\n{"i": 2}\n{"torn')
    before = path.read_bytes()
    words = r"^log must hold an entry in every line; line 2 of .*jsonl is none\. Mend it\.$"
    with pytest.raises(ValueError, match=words):
        opened().read()
    assert path.read_bytes() == before


def test_values_that_json_does_not_know_are_made_plain_by_the_one_who_knows_them(opened, path):
    opened(plain=str).append({"where": Path("here")})
    assert path.read_bytes() == b'{"where": "here"}\n'
    with pytest.raises(TypeError, match="not JSON serializable"):
        opened().append({"where": Path("here")})
    assert path.read_bytes() == b'{"where": "here"}\n'


@pytest.mark.parametrize(
    ("text", "is_ours"), [(b"", True), (b'{"o', True), (b'{"ours": 1}\n', True), (b'{"x', False), (b"hello", False)]
)
def test_a_file_is_known_by_its_beginning_as_far_as_it_goes(opened, path, text, is_ours):
    path.write_bytes(text)
    assert opened().begins(b'{"ours":') is is_ours
    assert path.read_bytes() == text


def test_a_program_that_changes_its_directory_goes_on_in_the_same_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = Lines(Path("some.jsonl"), "", "")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    lines.append({"i": 0})
    lines.close()
    assert (tmp_path / "some.jsonl").read_bytes() == b'{"i": 0}\n'
    assert not (tmp_path / "below" / "some.jsonl").exists()


HOLDER = """
import sys, time
from pathlib import Path
from crashbo.lines import Lock
lock = Lock(Path(sys.argv[1]), "held")
print("locked", flush=True)
time.sleep(60)
"""


class TestLock:
    def test_a_second_holder_is_told_so_until_the_first_gives_it_back(self, path):
        first = Lock(path, "never said")
        with pytest.raises(ValueError, match=r"^one is enough$"):
            Lock(path, "one is enough")
        first.close()
        Lock(path, "never said").close()

    def test_it_keeps_other_processes_out_and_ends_with_its_process(self, path):
        environment = os.environ | {"PYTHONPATH": str(Path(crashbo.__file__).parents[1])}
        with subprocess.Popen([sys.executable, "-c", HOLDER, path], env=environment, stdout=subprocess.PIPE) as holder:
            assert holder.stdout.readline() == b"locked\n"
            with pytest.raises(ValueError, match="in use"):
                Lock(path, "in use")
            holder.send_signal(signal.SIGKILL)
            holder.wait()
        Lock(path, "never said").close()

    def test_it_leaves_what_is_in_its_file_alone(self, path):
        path.write_bytes(b"text")
        Lock(path, "never said").close()
        assert path.read_bytes() == b"text"


def test_a_lock_is_held_against_a_second_opener_here_and_against_a_rival_process(path):
    lock = Lock(path, "in use")
    try:
        with pytest.raises(ValueError, match="in use"):
            Lock(path, "in use")
        open(path, "rb").close()  # another descriptor that is closed takes nothing away
        assert rival(path) == "in use"
    finally:
        lock.close()
    assert rival(path) == "mine"


def rival(path):
    code = f"""
from pathlib import Path
from crashbo.lines import Lock
try:
    Lock(Path({str(path)!r}), "in use")
    print("mine")
except ValueError as error:
    print(error)
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_neither_keeps_a_lock_nor_gives_it_away(path):
    lock = Lock(path, "in use")
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        assert rival(path) == "in use"  # the fork let go of its copy alone
        lock.close()
        assert rival(path) == "mine"  # though the fork still lives
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


WITHOUT = """
import sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
import crashbo
from crashbo.app.cli import main
result = crashbo.minimize(lambda p: p["x"], {"x": (0, 1)}, trials=3, journal="study.jsonl", progress=False)
again = crashbo.minimize(lambda p: p["x"], {"x": (0, 1)}, trials=4, journal="study.jsonl", progress=False)
assert len(again.trials) == 4 and again.trials[:3] == result.trials
sys.exit(main(["new", "jump", "--param", "knee=0:1"]) or main(["ask"]) or main(["tell", "0", "--cost", "1"]))
"""


def test_without_fcntl_journal_and_command_line_work(tmp_path):
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
