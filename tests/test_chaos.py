"""Experiments that really die, in parents that are killed with -9. `benchmarks/chaos.py` does it at full size."""

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import chaos  # noqa: E402  # benchmarks/chaos.py


@pytest.mark.parametrize("setting", ["workers", "pool"])
def test_nothing_is_lost_doubled_mistold_or_left_by_experiments_and_parents_that_die(setting, tmp_path):
    verdict = chaos.killed_at_random(setting, tmp_path, trials=40, kills=3, seed=0)
    assert verdict.faults == []
    assert verdict.kills == 3
    assert sum(verdict.kinds[kind] for kind in chaos.DEATHS) >= 10


ASKED = {"number": 0, "params": {"x": 0.9, "y": 0.9}, "state": "success", "cost": 0.1, "reason": ""}
RAN = {"event": "ran", "params": ASKED["params"], "kind": "lives", "cost": 0.1}
TOLD = {"event": "told", **ASKED}


@pytest.mark.parametrize(
    ("trials", "log", "fault"),
    [
        ([ASKED], [{**RAN, "kind": "hang"}], "no success"),
        ([{**ASKED, "state": "crash"}], [RAN], "no such crash"),
        ([{**ASKED, "state": "crash", "reason": "killed by signal 9"}], [{**RAN, "kind": "segfault"}], "no such crash"),
        ([{**ASKED, "state": "void", "reason": "who knows"}], [{**RAN, "kind": "hang"}], "neither"),
        ([ASKED, ASKED], [RAN], "numbered"),
        ([ASKED], [RAN, RAN], "more than once"),
        ([ASKED], [RAN, {**TOLD, "cost": 0.2}], "told, but"),
        ([], [RAN], "no trial"),
    ],
)
def test_the_judge_sees_what_is_wrong(trials, log, fault):
    verdict = chaos.Verdict("workers")
    chaos.judge(trials, log, len(trials), verdict)
    assert any(fault in words for words in verdict.faults)


def test_the_judge_is_content_with_a_study_that_says_what_happened():
    verdict = chaos.Verdict("workers")
    chaos.judge([ASKED], [RAN, TOLD], 1, verdict)
    assert verdict.faults == []
