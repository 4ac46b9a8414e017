"""What stands beside others' published runs: ours in their figures, and chance computed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crashbo import Choice, Int, problems
from crashbo.benchmark import methods
from crashbo.benchmark.cases import Case, of_problems, published
from crashbo.benchmark.chance import Chance, chance_on
from crashbo.benchmark.machine import Finished, Machine
from crashbo.benchmark.published import COMPUTED, HERE, THERE, reached
from crashbo.benchmark.runs import Spec, execute
from crashbo.benchmark.summary import Summary, data_profile
from crashbo.problems import Problem, Published
from fake_runs import fake


class TestChance:
    """Random search without repeats, against counting and against drawing."""

    def test_it_needs_as_many_trials_as_the_publication_computed(self):
        chance = chance_on("perovskites")
        until = (1.0 - chance.solved(0.0)[:-1]).sum()
        assert until == pytest.approx(118.93, abs=0.01)
        assert chance.solved(0.0)[200] == pytest.approx(1.0 - math.comb(1269, 200) / math.comb(1276, 200))

    def test_its_figures_are_those_of_many_draws(self):
        costs = np.array([1.0, 2.0, 2.0, 5.0])
        chance, rng = Chance(9, costs, 6), np.random.default_rng(0)
        everything = np.concatenate([costs, np.full(5, np.inf)])
        best, solved, crashes = [], [], []
        for _ in range(20_000):
            drawn = rng.permutation(everything)[:6]
            best.append(np.minimum.accumulate(drawn))
            there = np.flatnonzero(drawn <= 2.0)
            solved.append(np.arange(1, 7) > there[0] if len(there) else np.zeros(6, dtype=bool))
            crashes.append(np.isinf(drawn[: there[0] if len(there) else 6]).sum())
        assert_allclose(chance.mean(1.0 / costs, 0.0)[1:], np.mean(1.0 / np.array(best), axis=0), atol=0.01)
        assert_allclose(chance.solved(2.0)[1:], np.mean(solved, axis=0), atol=0.015)
        assert chance.crashes(2.0) == pytest.approx(np.mean(crashes), abs=0.03)
        assert chance.crashes() == pytest.approx(6 * 5 / 9)

    def test_there_is_none_of_a_problem_that_is_no_list(self):
        assert chance_on("branin") is None
        assert chance_on("bowl") is None

    def test_profiles_of_random_search_on_a_list_are_computed(self):
        runs = [fake("random", [None] * 200, problem="perovskites", dimension=3, trials=200, target=0.0)]
        trials, shares = data_profile(Summary.of(runs), "random", 0.01)
        assert_allclose(shares, chance_on("perovskites").solved(0.0))
        assert len(trials) == 201


class TestTarget:
    """A run on a problem with a target ends there."""

    def test_the_machine_ends_when_the_target_is_reached(self):
        problem = problems.get("perovskites")
        machine = Machine(problem, 200, 0)
        machine(problem.optimum)
        assert machine.left == 0
        with pytest.raises(Finished):
            machine(problem.optimum)

    def test_a_run_that_came_there_has_arrived_and_costs_nothing_more(self):
        run = execute(Spec("random", Case("perovskites", 3, 2), 1200))
        assert run.has_arrived
        assert len(run.costs) < 1200
        assert run.score[-1] == 0.0
        assert run.error is None

    def test_random_search_on_a_list_tries_nothing_twice(self):
        problem = replace(problems.get("perovskites"), published=None)
        machine = Machine(problem, 1300, 0)
        methods.get("random").run(machine)
        tried = {tuple(trial.params.values()) for trial in machine.tried}
        assert len(tried) == len(machine.tried)
        assert len(tried) > 1200


class TestReached:
    def test_all_stand_in_one_table_the_best_first(self):
        names = ("eicc", "random", "random-2")
        runs = [
            fake(name, [None, None, 0.0], problem="perovskites", dimension=3, trials=200, seed=seed, target=0.0)
            for name in names
            for seed in range(2)
        ]
        rows = reached(Summary.of(runs), "perovskites")
        figures = [row.figures[-1] for row in rows]
        assert figures == sorted(figures)
        by = {(row.origin, row.method): row for row in rows}
        assert by[HERE, "eicc"].figures == (3.0,)
        assert by[HERE, "eicc"].crashes == 2.0
        assert by[THERE, "wodesc_fia-1"].figures[0] == pytest.approx(44.76)
        assert by[THERE, "wodesc_fia-1"].runs == 100
        assert by[COMPUTED, "random"].solved == pytest.approx(0.698, abs=0.001)
        assert (HERE, "random") not in by  # computed instead

    def test_a_run_that_never_came_there_counts_as_the_cap(self):
        runs = [fake("eicc", [None], problem="perovskites", dimension=3, trials=200, target=0.0)]
        row = next(row for row in reached(Summary.of(runs), "perovskites") if row.origin == HERE)
        assert (row.figures, row.solved) == ((200.0,), 0.0)

    def test_the_optimum_over_the_best_is_nothing_before_a_success(self):
        costs = [None] * 30 + [2.0] + [None] * 49
        run = fake("eicc", costs, problem="convolution-A100", dimension=7, optimum=0.5, median=2.0)
        row = next(row for row in reached(Summary.of([run]), "convolution-A100") if row.origin == HERE)
        assert row.figures == (0.0, 0.25, 0.25)

    def test_a_gap_is_the_best_cost_less_the_optimum(self):
        run = fake("eicc", [3.0, None, 1.5] + [None] * 97, problem="branin", dimension=2, optimum=0.5, median=9.0)
        row = next(row for row in reached(Summary.of([run]), "branin") if row.origin == HERE)
        assert row.figures == (1.0, 1.0, 1.0)
        assert list(row.curve[:3]) == [2.5, 2.5, 1.0]

    def test_fewer_trials_than_were_published_are_carried_on_and_more_are_cut(self):
        few = fake("eicc", [None, None], problem="perovskites", dimension=3, target=0.0)
        row = next(row for row in reached(Summary.of([few]), "perovskites") if row.origin == HERE)
        assert (row.figures, len(row.curve), row.crashes) == ((200.0,), 200, 2.0)
        many = fake("eicc", [None] * 120, problem="convolution-A100", dimension=7, optimum=0.5, median=2.0)
        row = next(row for row in reached(Summary.of([many]), "convolution-A100") if row.origin == HERE)
        assert (row.figures, row.crashes) == ((0.0, 0.0, 0.0), 80.0)

    def test_before_a_success_the_gap_is_that_of_the_median(self):
        run = fake("eicc", [None] * 60 + [1.0], problem="branin", dimension=2, optimum=0.5, median=9.0, trials=100)
        row = next(row for row in reached(Summary.of([run]), "branin") if row.origin == HERE)
        assert row.figures == (8.5, 8.5, 0.5)

    def test_failures_beyond_the_cap_are_nobody_s_knowledge(self):
        run = fake("eicc", [0.0], problem="perovskites", dimension=3, trials=200, target=0.0)
        rows = {row.method: row for row in reached(Summary.of([run]), "perovskites") if row.origin == THERE}
        assert math.isnan(rows["wodesc_naive-fia-1000"].crashes)
        assert all(row.figures[0] <= 200.0 for row in rows.values())


class TestOnesOwn:
    """Problems of a user's own that say how they were judged."""

    def made(self, space, published, **more):
        def simulate(params):
            return sum((k + 1.0) * float(v) for k, v in enumerate(params.values())), {}

        return Problem("own", space, simulate, (), 0.0, "", 0.0, constrained_minimum=0.0, published=published, **more)

    @pytest.fixture
    def own(self, monkeypatch):
        """Makes a problem known by its name."""
        get = problems.get

        def known(problem):
            monkeypatch.setattr(problems, "get", lambda name: problem if name == "own" else get(name))
            chance_on.cache_clear()
            return problem

        yield known
        chance_on.cache_clear()

    def test_a_gap_on_a_list_is_computed_too(self, own):
        own(self.made({"a": Int(0, 3), "b": Choice([0, 1, 2])}, Published("gap", 6, at=(2, 6))))
        row = next(
            r for r in reached(Summary.of([fake("random", [1.0] * 6, problem="own")]), "own") if r.origin == COMPUTED
        )
        assert row.figures[0] > row.figures[1] > 0.0

    @pytest.mark.parametrize(
        ("space", "more"),
        [
            ({"a": Int(0, 3), "b": Choice([0, 1], when={"a": 2})}, {}),
            ({"a": Int(0, 3)}, {"rules": ("a <= 2",)}),
            ({name: Int(0, 9) for name in "abcdefgh"}, {}),
            ({"a": Int(0, 3)}, {"start": {"a": 1}}),
        ],
    )
    def test_chance_is_not_computed_where_settings_cannot_be_listed(self, own, space, more):
        own(self.made(space, Published("trials", 5, target=0.0), **more))
        assert chance_on("own") is None

    @pytest.mark.parametrize(
        "wrong",
        [
            {"figure": "regret", "trials": 5, "at": (5,)},
            {"figure": "gap", "trials": 5},
            {"figure": "gap", "trials": 5, "at": (6,)},
            {"figure": "trials", "trials": 5},
            {"figure": "trials", "trials": 5, "target": 0.0, "at": (2,)},
            {"figure": "share", "trials": 5, "at": (2,), "target": 0.0},
        ],
    )
    def test_how_a_problem_is_judged_must_make_sense(self, wrong):
        with pytest.raises(ValueError, match=r"^(figure|at|target) must .+; got .+\. .+\.$"):
            Published(**wrong)

    def test_a_problem_whose_median_is_its_optimum_is_refused_before_anything_runs(self, own):
        own(replace(self.made({"a": Int(0, 3)}, None), median_safe_cost=0.0))
        with pytest.raises(ValueError, match=r"must cost more than its optimum"):
            of_problems(["own"], [0])


def test_published_cases_have_the_trials_and_the_start_of_the_publication():
    cases = {case.problem: case for case in published([100])}
    assert [cases[name].trials for name in ("perovskites", "convolution-A100", "branin")] == [200, 80, 100]
    assert cases["branin"].make().start is None
    assert cases["hartmann6d"].make().start is not None
    assert cases["hartmann6d"].trials == 100
