"""The command line: people read it, programs read it, and what it refuses it says in one sentence."""

import json
import os
import subprocess
import sys

import pytest

from crashbo.app.bench import Bench

NEW = ("new", "jump", "--param", "knee=0:1", "--param", "rate=1e-4:1:log", "--param", "gait=trot,bound")


def test_a_study_by_hand_from_new_to_best(crashbo, tmp_path):
    assert crashbo(*NEW, "--constraint", "current", "--maximize", "--label", "height", "--unit", "cost=m")[0] == 0
    code, out, _ = crashbo("ask")
    assert code == 0
    assert out.startswith("Trial 0")
    assert "--measured current=..." in out
    assert crashbo("tell", "0", "--cost", "-0.71", "--measured", "current=96.3")[1] == (
        "Trial 0 is a success: height -0.71 m, current 96.3\n"
    )
    asked = json.loads(crashbo("ask", "--json", "--request", "r")[1])
    assert json.loads(crashbo("ask", "--json", "--request", "r")[1]) == asked
    assert crashbo("tell", "1", "--crash", "tripped", "--blame", "current")[1] == (
        "Trial 1 is a crash: tripped, blamed on current\n"
    )
    cut = ("--crash", "--measured", "current=120", "--censored", "current")
    assert crashbo("fix", "1", *cut)[1] == "Corrected. Trial 1 is a crash: current at least 120\n"
    assert "censored" in crashbo("trials")[1]
    crashbo("undo", "1")
    crashbo("ask")
    assert crashbo("tell", "2", "--void")[1] == "Trial 2 is a void\n"
    assert crashbo("fix", "0", "--cost", "0.5", "--measured", "current=90")[1].startswith(
        "Corrected. Trial 0 is a success"
    )
    assert crashbo("undo", "0")[1] == "Undone. Trial 0 is a success: height -0.71 m, current 96.3\n"
    best = json.loads(crashbo("best", "--json")[1])
    assert best["best"]["cost"] == -0.71
    assert 0 <= best["recommended"]["p_safe"] <= 1
    level = json.loads(crashbo("thresholds", "--json")[1])["current"]
    low, high = level["interval"]
    assert low <= level["value"]
    assert high is None or level["value"] <= high  # open: so few crashes bound nothing
    assert [t["state"] for t in json.loads(crashbo("trials", "--json")[1])] == ["success", "crash", "void"]
    assert "tripped" in crashbo("trials")[1]
    table = tmp_path / "old.csv"
    table.write_text(crashbo("trials", "--csv")[1])
    assert crashbo("trials", "--import", str(table))[1] == "0 trials added, 3 were there already\n"


def test_a_study_from_a_file_is_run_by_a_command(crashbo, tmp_path, store):
    path = tmp_path / "oven.toml"
    path.write_text('parameters = {heat = [0, 300]}\nrun = {on_exit = "crash", timeout = 20}\n')
    assert crashbo("new", str(path))[0] == 0
    code = "import json, sys; x = json.load(sys.stdin)['heat']; x > 200 and sys.exit('burnt'); print((x - 180) ** 2)"
    done, out, _ = crashbo("run", "--trials", "5", "--", sys.executable, "-c", code)
    assert done == 0
    assert out.splitlines()[-1] == "5 trials run."
    for trial in Bench.open(store).trials:
        expected = ("crash", "exit code 1: burnt") if trial.params["heat"] > 200 else ("success", "")
        assert (trial.state, trial.reason) == expected


def test_run_stops_when_nothing_but_voids_comes(crashbo):
    crashbo(*NEW)
    code, _, err = crashbo("run", "--trials", "9", "--max-voids", "2", "--", "/no/such/thing")
    assert code == 1
    assert err.startswith("stopped: the last 2 trials were void")


def test_rules_of_run_are_the_studys_unless_given_anew(crashbo, store):
    rules = ("--timeout", "9", "--memory", "2GB", "--on-timeout", "void", "--on-death", "void", "--on-exit", "crash")
    crashbo(*NEW, *rules)
    kept = Bench.open(store).definition.run
    assert (kept.timeout, kept.memory, kept.on_timeout, kept.on_death, kept.on_exit) == (
        9,
        "2GB",
        "void",
        "void",
        "crash",
    )
    assert (kept.on_nan, kept.on_rubbish) == ("raise", "void")
    death = ("--", "sh", "-c", "kill -9 $$")
    for given, state in (((), "void"), (("--on-death", "crash"), "crash")):
        trial = json.loads(crashbo("run", "--json", *given, *death)[1].splitlines()[0])
        assert (trial["state"], trial["reason"]) == (state, "killed by signal 9 (SIGKILL)")


def test_run_ends_with_one_sentence_where_there_is_no_number(crashbo, store):
    crashbo(*NEW)
    code, out, err = crashbo("run", "--trials", "3", "--", "echo", "nan")
    assert (code, out) == (1, "")
    assert err == (
        "cost must be a finite number; trial 0 has none (no finite cost: nan) and is void. Mend the command, or say "
        "what it means: --on-nan crash, or void.\n"
    )
    code, out, _ = crashbo("run", "--on-nan", "crash", "--", "echo", "nan")
    assert code == 0
    assert [(t.state, t.reason) for t in Bench.open(store).trials] == [
        ("void", "no finite cost: nan"),
        ("crash", "no finite cost: nan"),
    ]


def test_the_report_is_one_file_without_scripts_or_links_and_names_are_harmless(crashbo, tmp_path):
    pytest.importorskip("matplotlib")
    crashbo("new", "<script>alert(1)</script>", "--param", "a$b<i>=0:1", "--param", "y=0:1", "--constraint", "c&d")
    for i, told in enumerate((["--cost", "1", "--measured", "c&d=3"], ["--crash", "<img src=x>"], ["--cost", "2"])):
        crashbo("ask")
        crashbo("tell", str(i), *told)
    page, figures = tmp_path / "out.html", tmp_path / "figures"
    assert crashbo("report", "--output", str(page), "--png", str(figures))[0] == 0
    text = page.read_text()
    for foreign in ("<script", "<img src=x", "http://", "https://", "<i>"):
        assert foreign not in text
    assert "&lt;script&gt;" in text
    names = sorted(path.name for path in figures.iterdir())
    assert names == ["cost.png", "influence.png", "slice-1.png", "threshold-1.png"]
    assert text.count("data:image/png;base64,") == len(names)


def test_a_report_that_cannot_be_written_is_refused_before_it_is_made(crashbo, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    crashbo(*NEW)
    monkeypatch.setattr("crashbo.app.gathered.gather", lambda *args: pytest.fail("it was gathered"))
    (tmp_path / "file").write_text("")
    for place in (["--output", "/proc/nowhere/report.html"], ["--png", str(tmp_path / "file")]):
        code, _, err = crashbo("report", "--output", str(tmp_path / "there.html"), *place)
        assert code != 0
        assert "must be places that can be written to" in err
    assert not (tmp_path / "there.html").exists()


def test_a_report_of_a_study_without_trials_says_so(crashbo, tmp_path):
    pytest.importorskip("matplotlib")
    crashbo(*NEW)
    page = tmp_path / "empty.html"
    assert crashbo("report", "--output", str(page))[0] == 0
    assert "No trial has succeeded yet." in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ask",), "store must be an existing file"),
        (("new", "x", "--param", "a"), "--param must be"),
        (("new", "x", "--param", "a=1:2:red"), "--param must be"),
        (("new", "x", "--param", "a=0:1", "--budget", "many"), "--budget must be"),
        (("new", "x", "--param", "a=0:1", "--unit", "b=m"), "--unit must name"),
        (("new", "x", "--param", "a=0:1", "--memory", "lots"), "memory must be a size such as"),
        (("new", "missing.toml"), "file must be readable"),
        (("serve", "--host", "0.0.0.0"), "token must be given"),
        (("serve", "--host", "0.0.0.0", "--token", "short"), "token must have at least 8"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(crashbo, monkeypatch, arguments, words):
    monkeypatch.delenv("CRASHBO_TOKEN", raising=False)
    code, out, err = crashbo(*arguments)
    assert (code, out) == (1, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_without_optuna_the_command_names_the_extra(tmp_path):
    code = "import sys; sys.modules['optuna'] = None\nfrom crashbo.app.cli import main; sys.exit(main(['ask']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'crashbo[app]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help_needs_no_optional_package():
    code = "import sys, crashbo.app.cli as c\nassert not {'optuna', 'fastapi', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_notes_names_settings_and_a_halt_by_command(crashbo):
    crashbo(*NEW, "--constraint", "current")
    crashbo("ask")
    told = crashbo("tell", "0", "--cost", "1", "--note", "squeaks", "--who", "Ann")[1]
    assert told.endswith("squeaks\n")
    name = next(iter(json.loads(crashbo("trials", "--json")[1])[0]["params"]))
    code, _, error = crashbo("fix", "0", "--cost", "1", "--ran", f"{name}=99")
    assert (code, "params must lie within the bounds" in error) == (1, True)
    fixed = json.loads(crashbo("fix", "0", "--cost", "1", "--ran", f"{name}=99", "--beyond", "--json")[1])
    assert fixed["params"][name] == 99
    assert "--ran must be NAME=VALUE of a parameter" in crashbo("fix", "0", "--cost", "1", "--ran", "toe=1")[2]
    crashbo("halt", "smoke")
    assert "it was: smoke" in crashbo("ask")[2]
    crashbo("resume")
    assert crashbo("ask")[0] == 0
