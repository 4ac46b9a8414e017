"""One run, and the log that keeps it."""

from dataclasses import replace

import made_up
import numpy as np
import pytest

from crashbo import problems, strategies
from crashbo.campaigns.run_log import RunLog
from crashbo.paper.methods import METHODS, PROBLEMS
from crashbo.paper.runs import PaperSpec, execute, plain, revived


def log_in(folder):
    return RunLog(folder, plain, revived)


def without_time(run):
    return replace(run, seconds=0.0)


class TestRuns:
    @pytest.mark.parametrize("method", ["ei-ac", "safeopt"])
    def test_a_run_depends_on_its_spec_alone(self, method):
        spec = PaperSpec(method, "eggcrate2d", 1, 5)
        assert without_time(execute(spec)) == without_time(execute(spec))
        assert execute(spec).regret != execute(replace(spec, repeat=2)).regret

    def test_all_methods_begin_at_the_same_safe_start_in_the_same_repeat(self):
        first = {execute(PaperSpec(method, "lsq", 3, 1)).regret for method in METHODS}
        assert len(first) == 1
        (regret,) = first
        assert regret[0] > 0.0

    def test_the_first_cost_is_the_noise_free_one_at_the_start(self):
        run = execute(PaperSpec("random", "toy1d", 0, 40))
        problem = problems.get("toy1d")
        assert len(run.regret) == len(run.crashed) == 40
        assert not run.crashed[0]
        assert 10 <= sum(run.crashed) <= 30  # half of the space crashes
        assert run.safe == 100.0 * (1.0 - sum(run.crashed) / 40)
        assert all(r >= 0.0 for r in run.regret)
        # 40 random points come within noise of the best safe cost, which is not the unconstrained minimum.
        best_safe = problem.constrained_minimum - problem.minimum
        assert best_safe <= run.regret[-1] < best_safe + 0.1

    def test_learnt_thresholds_are_kept_for_those_who_learn_them(self):
        assert set(execute(PaperSpec("eicc", "toy1d", 0, 8)).thresholds) == {"g"}
        assert execute(PaperSpec("eic", "toy1d", 0, 6)).thresholds == {}

    def test_noise_is_told_only_if_asked_for(self):
        learnt, known = (execute(PaperSpec("ei-ac", "eggcrate2d", 0, 8, known_noise=k)) for k in (False, True))
        assert learnt.regret != known.regret


class TestMethods:
    def test_every_strategy_takes_part(self):
        assert {method.strategy for method in METHODS.values()} == set(strategies.names())

    def test_eicc_enters_by_our_risk_and_by_the_papers(self):
        assert {METHODS["eicc"].risk, METHODS["eicc-paper"].risk} == {None, "paper"}

    def test_only_the_privileged_get_the_informed_view(self):
        problem = problems.get("eggcrate2d")
        informed = {m.name for m in METHODS.values() if m.view(problem).is_informed}
        assert informed == {"eic", "safeopt"}

    def test_the_high_cost_is_the_authors_where_they_have_one(self):
        assert METHODS["ei-hc"].strategy_on(problems.get("michalewicz10d")) == strategies.HighCost(10.0)
        assert METHODS["ei-hc"].strategy_on(problems.get("lsq")) == strategies.HighCost()

    @pytest.mark.parametrize("name", ["michalewicz10d", "hartmann6d", "eggcrate2d"])
    def test_a_high_cost_bounds_the_costs_of_its_problem(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(0)
        costs = [problem.truth({k: rng.random() for k in problem.space}).cost for _ in range(2000)]
        assert max(costs) <= METHODS["ei-hc"].strategy_on(problem).cost

    def test_safeopt_alone_cannot_run_everywhere(self):
        refused = {(m, p) for m in METHODS for p in PROBLEMS if METHODS[m].refusal(problems.get(p)) is not None}
        assert refused == {("safeopt", "michalewicz10d"), ("safeopt", "hartmann6d")}


class TestRunLog:
    def test_runs_come_back_as_they_were(self, tmp_path):
        runs = made_up.several(["eicc", "random"], ["eggcrate2d"])
        with log_in(tmp_path) as log:
            for run in runs:
                log.add(run)
        with log_in(tmp_path) as log:
            assert log.runs == {run.spec: run for run in runs}
        assert {path.name for path in tmp_path.glob("*.jsonl")} == {"eicc.jsonl", "random.jsonl"}

    def test_before_the_first_success_there_is_no_regret(self, tmp_path):
        run = made_up.run(regret=(None, 1.0))
        with log_in(tmp_path) as log:
            log.add(run)
        with log_in(tmp_path) as log:
            assert log.runs[run.spec].regret == (None, 1.0)

    @pytest.mark.parametrize("cut", [1, 40])
    def test_a_torn_line_is_cut_off_and_its_run_missing(self, tmp_path, cut):
        first, second = made_up.run(repeat=0), made_up.run(repeat=1)
        with log_in(tmp_path) as log:
            log.add(first)
            log.add(second)
        path = tmp_path / "eicc.jsonl"
        path.write_bytes(path.read_bytes()[:-cut])
        with log_in(tmp_path) as log:
            assert list(log.runs) == [first.spec]
            log.add(second)
        with log_in(tmp_path) as log:
            assert list(log.runs) == [first.spec, second.spec]

    def test_a_line_that_is_no_run_is_named(self, tmp_path):
        (tmp_path / "eicc.jsonl").write_text('{"spec": 3}\n')
        with pytest.raises(ValueError, match=r"run log must hold a run in every line; line 1 of .*eicc.jsonl is none"):
            log_in(tmp_path)

    def test_two_writers_are_one_too_many(self, tmp_path):
        with log_in(tmp_path), pytest.raises(ValueError, match="output must have one writer"):
            log_in(tmp_path)
