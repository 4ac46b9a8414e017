"""What the tests of the bench share."""

import importlib.util
from pathlib import Path

import pytest
from jumper import SAID

pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'crashbo[app]'")

from crashbo.app.bench import Bench, Definition
from crashbo.app.cli import main


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "study.db")


@pytest.fixture
def bench(store):
    return Bench.create(store, Definition.of(SAID))


@pytest.fixture
def crashbo(capsys, store, monkeypatch):
    """Runs a command: exit code, standard output, standard error."""
    monkeypatch.setenv("CRASHBO_STORE", store)

    def run(*arguments):
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture(scope="session")
def service():
    """The benchmark of the service: small versions of it are tests."""
    path = Path(__file__).parents[2] / "benchmarks" / "service.py"
    spec = importlib.util.spec_from_file_location("service_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
