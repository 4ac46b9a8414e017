"""The package for OptunaHub: what its registry checks, and that its example runs."""

import re
import runpy
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import yaml

REGISTRY = Path(__file__).parents[2] / "optunahub"
PACKAGE = REGISTRY / "package" / "samplers" / "crash_sampler"
TEXT = (PACKAGE / "README.md").read_text()


def load_module(package):
    """As optunahub.load_module does, from this folder instead of the registry."""
    spec = spec_from_file_location("hub_package", REGISTRY / "package" / package / "__init__.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_header_has_what_the_registry_asks_for():
    header = yaml.safe_load(TEXT.split("---")[1])
    for key in ("author", "title", "description"):
        assert isinstance(header[key], str)
    assert "sampler" in header["tags"]
    assert all(isinstance(value, str) for value in header["tags"] + header["optuna_versions"])
    assert header["license"] == "MIT License"
    assert "MIT License" in (PACKAGE / "LICENSE").read_text()
    assert (PACKAGE / "requirements.txt").read_text().split() == ["crashbo[optuna]"]


def test_the_code_of_the_page_runs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "optunahub", SimpleNamespace(load_module=load_module))
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    low, high = map(float, re.findall(r"[\d.]+", capsys.readouterr().out))
    assert low < 112.3 < high


def test_the_example_runs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "optunahub", SimpleNamespace(load_module=load_module))
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    tpe, ours, fuse = capsys.readouterr().out.splitlines()
    assert ours.startswith("CrashSampler")
    assert float(re.search(r"best (\S+),", ours)[1]) < float(re.search(r"best (\S+),", tpe)[1])
    low, high = map(float, re.findall(r"\d+\.\d", fuse))
    assert low <= 112.3 <= high
