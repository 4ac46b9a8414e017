"""What is released: a wheel and an sdist that hold what they must, and a wheel that works without any extra."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import crashbo

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Every module of every extra is made impossible to import; then the core must do its work.
WITHOUT_EXTRAS = """
import sys
EXTRAS = {"matplotlib", "mujoco", "cloudpickle", "optuna", "optuna_dashboard", "plotly", "fastapi", "uvicorn", "torch",
          "botorch", "smac", "cmaes", "pandas"}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import crashbo
print(crashbo.__file__)
print(crashbo.minimize(lambda p: p["x"] ** 2, {"x": (-1.0, 1.0)}, trials=4).best.cost >= 0.0)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (found,) = built.glob("*.whl")
    return zipfile.ZipFile(found)


def test_the_wheel_holds_all_files_of_the_package_and_nothing_else(wheel):
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert files == {name.removeprefix("src/") for name in tracked.stdout.split() if (ROOT / name).exists()}


def test_the_sdist_has_sources_tests_and_licence(built):
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "tests/test_release.py"} <= names
    assert "src/crashbo/app/page/index.html" in names


def test_the_version_comes_from_one_place(wheel):
    (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    assert Parser().parsestr(wheel.read(metadata).decode())["Version"] == crashbo.__version__
    assert re.search(rf"^version: {re.escape(crashbo.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert f"## {crashbo.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheel_works_without_any_extra(wheel, tmp_path):
    wheel.extractall(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    where, works = done.stdout.split()
    assert (Path(where).parents[1], works) == (tmp_path, "True")


def test_no_extra_pins_a_version_for_its_users():
    extras = PROJECT["optional-dependencies"]
    assert not [words for extra in extras.values() for words in extra if "==" in words]
