"""Runs on several cores: in order, once each, and whatever dies of them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import sums
from sums import Done, Sum

from crashbo.campaigns.running import cores, run_all
from crashbo.workers import Limits


def test_runs_come_back_in_the_order_of_their_specs_and_are_reported_one_by_one(tmp_path):
    specs, said = [Sum("plus", i) for i in range(5)], []
    with sums.log_in(tmp_path) as log:
        runs = run_all(specs, sums.execute, log, workers=2, report=lambda run, done, total: said.append((done, total)))
    assert runs == [Done(spec, spec.left + 1) for spec in specs]
    assert said == [(i, 5) for i in range(1, 6)]


def test_what_is_in_the_log_is_not_run_again(tmp_path):
    with sums.log_in(tmp_path) as log:
        log.add(Done(Sum("plus", 1), -7))
        runs = run_all([Sum("plus", 1), Sum("plus", 2)], sums.execute, log, workers=1)
    assert [run.value for run in runs] == [-7, 3]
    with sums.log_in(tmp_path) as log:
        assert len(log.runs) == 2


@pytest.mark.parametrize(("method", "limits"), [("fatal", Limits()), ("slow", Limits(seconds=1.0))])
def test_a_run_that_dies_or_takes_too_long_is_recorded_as_lost_and_the_others_go_on(tmp_path, method, limits):
    with sums.log_in(tmp_path) as log:
        specs = [Sum(method, 0), Sum("plus", 1)]
        runs = run_all(specs, sums.execute, log, workers=1, lost=sums.lost, limits=limits)
    assert [run.value for run in runs] == [None, 2]


@pytest.mark.parametrize("method", ["fatal", "wrong"])
def test_without_a_record_for_it_the_first_failure_ends_everything_and_names_the_run(tmp_path, method):
    with sums.log_in(tmp_path) as log, pytest.raises(RuntimeError, match=f"Sum\\(method='{method}'.* failed"):
        run_all([Sum(method, 0)], sums.execute, log, workers=1)


def test_a_method_of_ones_own_has_a_file_of_its_own(tmp_path):
    with sums.log_in(tmp_path) as log:
        log.add(Done(Sum("my_module:plus", 1), 2))
    assert (tmp_path / "my_module.plus.jsonl").exists()
    with sums.log_in(tmp_path) as log:
        assert Sum("my_module:plus", 1) in log.runs


def test_there_is_a_core():
    assert cores() >= 1
