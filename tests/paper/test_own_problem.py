"""A machine of the user's own in `crashbo reproduce`, with workers that find it as the command does."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

import crashbo
from crashbo.paper.campaign import Campaign

# What it measures is up to the machine: here nothing, and a crash has a cause that nobody measures.
MACHINE = """
import crashbo
from crashbo.problems import Episode, Problem

def simulate(params):
    return (params["speed"] - 0.6) ** 2, {}

def run(problem, params, rng):
    return Episode(simulate(params)[0], {}, "jammed" if params["speed"] > 0.7 else "")

def problem():
    return Problem(name="mill", space={"speed": crashbo.Float(0.0, 1.0)}, simulate=simulate, limits=(), cost_noise=0.0,
                   source="ours", minimum=0.0, machine=run, unmeasured=("jam",))
"""
# As the command that is installed: its first path is where it lies, not the current directory.
COMMAND = """
import sys
from crashbo.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
"""
SMALL = ["--methods", "eicc,ei-ac,eic,random", "--repeats", "1", "--trials", "6", "--workers", "2"]


@pytest.fixture
def reproduce(tmp_path):
    """Runs the command in a directory of its own."""
    command, here = tmp_path / "bin" / "crashbo", tmp_path / "here"
    command.parent.mkdir()
    here.mkdir()
    command.write_text(COMMAND)

    def reproduce(*arguments, path=(), python=()):
        paths = [str(Path(crashbo.__file__).parents[1]), *map(str, path)]
        return subprocess.run(
            [sys.executable, *python, command, "reproduce", *SMALL, *arguments],
            cwd=here,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            timeout=120,  # workers that cannot begin are begun again, for ever
        )

    return reproduce


def problems_in(folder):
    rows = list(csv.DictReader((folder / "crashbo-reproduce" / "runs.csv").read_text().splitlines()))
    return {(row["method"], row["problem"]) for row in rows}


def test_one_in_the_current_directory_runs_beside_ours(reproduce, tmp_path):
    (tmp_path / "here" / "mill.py").write_text(MACHINE)
    done = reproduce("--problems", "mill:problem,toy1d")
    assert done.returncode == 0, done.stderr
    both = {(method, problem) for method in ("eicc", "ei-ac", "random") for problem in ("mill:problem", "toy1d")}
    assert problems_in(tmp_path / "here") == both | {("eic", "toy1d")}  # which needs a known threshold
    page = (tmp_path / "here" / "crashbo-reproduce" / "results.md").read_text()
    assert "--problems mill:problem,toy1d" in page
    assert "EIC (informed) on mill:problem: strategy 'eic' must" in page


def test_one_on_pythonpath_runs_from_anywhere(reproduce, tmp_path):
    (tmp_path / "there" / "machines").mkdir(parents=True)
    (tmp_path / "there" / "machines" / "mill.py").write_text(MACHINE)
    done = reproduce("--problems", "machines.mill:problem", path=[tmp_path / "there"])
    assert done.returncode == 0, done.stderr
    assert ("eicc", "machines.mill:problem") in problems_in(tmp_path / "here")


@pytest.mark.parametrize("python", [(), ("-P",)])
def test_one_that_cannot_be_found_is_refused_before_anything_runs(reproduce, tmp_path, python):
    if python:  # Python was told to keep out of the current directory, so it is there in vain
        (tmp_path / "here" / "mill.py").write_text(MACHINE)
    done = reproduce("--problems", "mill:problem", python=python)
    assert done.returncode == 1
    assert done.stderr.startswith("name must lead to a module that can be imported; got 'mill:problem' (No module")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "here" / "crashbo-reproduce").exists()


def test_what_else_lies_in_the_current_directory_stands_before_nothing_that_is_installed(reproduce, tmp_path):
    (tmp_path / "here" / "mill.py").write_text(MACHINE)
    (tmp_path / "here" / "scipy.py").write_text("raise AssertionError('not this one')")
    done = reproduce("--problems", "mill:problem", "--methods", "random")
    assert done.returncode == 0, done.stderr


def test_a_campaign_takes_each_of_them_once(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "once_mill.py").write_text(MACHINE)
    campaign = Campaign(("random",), ("once_mill:problem", "lsq"), 1, 3)
    assert [spec.problem for spec in campaign.specs()] == ["once_mill:problem", "lsq"]
    with pytest.raises(ValueError, match=r"problems must be different ones of toy1d, .*once_mill:problem"):
        Campaign(("random",), ("once_mill:problem", "once_mill:problem"), 1, 3)
