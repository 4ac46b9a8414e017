"""What the tests of the bench share."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'crashbo[app]'")

from crashbo.app.bench import Bench, Definition

SAID = {
    "name": "jump",
    "direction": "maximize",
    "parameters": {"knee": [0.0, 1.0], "hip": {"low": 0.0, "high": 1.0, "unit": "rad"}},
    "constraints": {"current": {"unit": "A"}},
    "cost": {"label": "height", "unit": "m"},
}


def current_of(params):
    return 60 + 45 * params["knee"] + 40 * params["knee"] * params["hip"]


def height_of(params):
    return 0.35 + 0.4 * params["knee"] - 0.5 * (params["hip"] - 0.6) ** 2


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "study.db")


@pytest.fixture
def bench(store):
    return Bench.create(store, Definition.of(SAID))


@pytest.fixture(scope="session")
def service():
    """The benchmark of the service: small versions of it are tests."""
    path = Path(__file__).parents[2] / "benchmarks" / "service.py"
    spec = importlib.util.spec_from_file_location("service_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
