"""Without an extra: every import that needs it, and every command, says in one sentence how to install it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
REMEDY = r"[^\n]+, which is not installed\. Run: pip install 'crashbo\[[\w,]+\]'"
# As if nothing beyond the core were installed: whoever looks for such a module finds none.
BARE = """
import sys
from importlib.machinery import PathFinder

EXTRAS = {"matplotlib", "PIL", "mujoco", "cloudpickle", "optuna", "sqlalchemy", "optuna_dashboard", "plotly", "fastapi",
          "uvicorn", "IPython", "torch", "botorch", "gpytorch", "smac", "cmaes", "PyNomad", "pandas"}

class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in EXTRAS else PathFinder.find_spec(name, path, target)

sys.meta_path = [Bare if finder is PathFinder else finder for finder in sys.meta_path]
"""
IMPORTS = """
import importlib, json
said = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        said[name] = str(error)
print(json.dumps(said))
"""
COMMAND = "from crashbo.app.cli import main; sys.exit(main(sys.argv[1:]))"


def bare(code, *words, folder):
    return subprocess.run(
        [sys.executable, "-c", BARE + code, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )


def modules():
    files = (path for room in ("app", "integrations", "problems") for path in (SOURCE / "crashbo" / room).rglob("*.py"))
    return sorted(".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in files)


def test_every_module_that_cannot_be_imported_says_what_to_install(tmp_path):
    done = bare(IMPORTS, *modules(), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for name in (
        "crashbo.integrations.optuna",
        "crashbo.integrations.botorch",
        "crashbo.app.server",
        "crashbo.app.plots",
        "crashbo.integrations.pandas",
        "crashbo.integrations.jupyter",
    ):
        assert name in said
    assert {name: words for name, words in said.items() if not re.fullmatch(REMEDY, words)} == {}


STUDY = """
import crashbo
optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, ["load"])
optimizer.tell_table([{"x": 0.1, "cost": 1.0, "load": 2.0}, {"x": 0.9, "cost": "crash"}])
open("study.json", "w").write(optimizer.to_json())
print(len(crashbo.load("study.json")._repr_html_()) > 100)
for show in (optimizer.to_dataframe, optimizer.plot, lambda: optimizer.report("study.html")):
    try:
        show()
    except ImportError as error:
        print(error)
"""


def test_a_study_without_extras_reads_tables_files_and_says_what_else_it_needs(tmp_path):
    done = bare(STUDY, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    first, *said = done.stdout.splitlines()
    assert first == "True"
    assert len(said) == 3
    assert all(re.fullmatch(REMEDY, words) for words in said)
    looked = bare(COMMAND, "best", "study.json", folder=tmp_path)
    assert looked.stdout.startswith("Best so far: trial 0"), looked.stderr


@pytest.mark.parametrize(
    "words",
    ["best", "thresholds", "trials", "ask", "demo", "demo --compare", "report", "serve", "illustrate", "run -- true"],
)
def test_every_command_says_what_to_install(words, tmp_path):
    done = bare(COMMAND, *words.split(), folder=tmp_path)
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(REMEDY, done.stderr.strip())


def test_what_a_demonstration_needs_is_said_at_once(tmp_path):
    assert "'crashbo[robot,plot]'" in bare(COMMAND, "demo", folder=tmp_path).stderr
    assert "'crashbo[app,robot]'" in bare(COMMAND, "demo", "--judge", folder=tmp_path).stderr
