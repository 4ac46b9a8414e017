"""A small version of benchmarks/check.py: one healthy study, one sick one, and the tables."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def benchmark():
    path = Path(__file__).parents[1] / "benchmarks" / "check.py"
    spec = importlib.util.spec_from_file_location("check_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_benchmark"] = module
    spec.loader.exec_module(module)
    return module


def test_a_healthy_study_has_no_false_finding_and_a_sick_one_the_right_one(benchmark, tmp_path):
    cases = [benchmark.Case("healthy", "driven", 2, 0), benchmark.Case("voids", "", 0, 1)]
    found = [benchmark.checked((case, tmp_path)) for case in cases]
    assert found[0].false == []
    assert "voids" in found[1].kinds[:2]
    assert benchmark.checked((cases[1], tmp_path)).kinds == found[1].kinds  # from its file
    text = benchmark.tables(found)
    assert "healthy: 1 of 1 studies without a false finding" in text
    assert "| voids | 1 | 1 | 1 |" in text


def test_every_sick_machine_answers(benchmark):
    rng = benchmark.np.random.default_rng(0)
    for kind in benchmark.SICK:
        machine = benchmark.sick(kind, 2)
        for u in machine.member.uniform(3, rng):
            assert set(machine.answer(machine, machine.member.params(u), 30, rng)) <= {
                "cost",
                "measured",
                "crash",
                "void",
            }
