"""The package for OptunaHub: what its registry checks, and that it runs when OptunaHub's own loader has loaded it."""

import inspect
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from crashbo.integrations.optuna import CrashSampler

optunahub = pytest.importorskip("optunahub", reason="optunahub is not installed: make test installs it")

REGISTRY = Path(__file__).parents[2] / "optunahub"
PACKAGE = REGISTRY / "package" / "samplers" / "crash_sampler"
TEXT = (PACKAGE / "README.md").read_text()


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """As if `optunahub.load_module` had fetched the package from the registry before: it is in its cache."""
    monkeypatch.setenv("OPTUNAHUB_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "github.com" / "optuna" / "optunahub-registry" / "main"
    shutil.copytree(REGISTRY / "package", cache / "package")
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("optunahub_registry."):
            del sys.modules[name]


def test_the_header_has_what_the_registry_asks_for():
    header = yaml.safe_load(TEXT.split("---")[1])
    for key in ("author", "title", "description"):
        assert isinstance(header[key], str)
    assert "sampler" in header["tags"]
    assert all(isinstance(value, str) for value in header["tags"] + header["optuna_versions"])
    assert header["license"] == "MIT License"
    assert "MIT License" in (PACKAGE / "LICENSE").read_text()
    assert (PACKAGE / "requirements.txt").read_text().split() == ["crashbo[optuna]"]


def test_its_own_loader_finds_all_that_the_page_names():
    module = optunahub.load_local_module("samplers/crash_sampler", registry_root=str(REGISTRY / "package"))
    assert module.CrashSampler is CrashSampler
    section = TEXT.split("## APIs")[1].split("## Installation")[0]
    assert set(re.findall(r"^- `(\w+)\(", section, re.MULTILINE)) == set(module.__all__)


def test_the_page_names_every_argument_of_the_sampler():
    (signature,) = re.findall(r"^- `CrashSampler\((.*?)\)`", TEXT, re.MULTILINE)
    named = re.findall(r"(\w+)=", signature)
    assert set(named) == set(inspect.signature(CrashSampler).parameters)
    for name in named:
        assert f"`{name}`" in TEXT


def test_the_code_of_the_page_runs(registry, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    low, high = map(float, re.findall(r"[\d.]+", capsys.readouterr().out))
    assert low < 112.3 < high


def test_the_example_runs(registry, capsys):
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    tpe, ours, fuse = capsys.readouterr().out.splitlines()
    assert ours.startswith("CrashSampler")
    assert float(re.search(r"best (\S+),", ours)[1]) < float(re.search(r"best (\S+),", tpe)[1])
    low, high = map(float, re.findall(r"\d+\.\d", fuse))
    assert low <= 112.3 <= high
