"""Published problems: they are what was published, and so are the runs that stand beside ours."""

import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import crashbo
from crashbo import Choice, problems
from crashbo.problems import publication

NAMES = problems.PUBLISHED
LISTS = {"perovskites": (1276, 111), "convolution-A100": (10_240, 4201), "convolution-MI250X": (10_240, 4362)}
SURFACES = ("branin", "styblinski", "hyperellips")


def settings(problem):
    values = [p.options if isinstance(p, Choice) else range(p.low, p.high + 1) for p in problem.space.values()]
    return [dict(zip(problem.space, setting, strict=True)) for setting in product(*values)]


@pytest.mark.parametrize("name", NAMES)
class TestEach:
    def test_it_is_known_by_name_and_says_where_it_comes_from(self, name):
        problem = problems.get(name)
        assert problem.name == name
        assert name in problems.names()
        assert "MIT" in problem.source

    def test_its_optimum_is_safe_and_costs_what_it_says(self, name):
        problem = problems.get(name)
        truth = problem.truth(problem.optimum)
        assert not truth.crashed
        assert truth.cost == pytest.approx(problem.constrained_minimum, rel=1e-7, abs=1e-12)

    def test_nothing_is_told_but_whether_it_failed(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(0)
        space = crashbo.Space.of(problem.space)
        drawn = [space.decode(u) for u in space.uniform(rng.random((300, space.dimension)))]
        failing = next(params for params in drawn if problem.truth(params).crashed)
        with pytest.raises(crashbo.Crash) as crash:
            problem.evaluate(failing)
        assert crash.value.measured == {}
        assert problem.evaluate(problem.optimum).measured == {}
        assert problem.limits == ()

    def test_it_can_be_sent_to_another_process(self, name):
        problem = problems.get(name)
        assert pickle.loads(pickle.dumps(problem)).truth(problem.optimum) == problem.truth(problem.optimum)


class TestLists:
    @pytest.mark.parametrize("name", LISTS)
    def test_as_many_settings_succeed_as_were_published_and_none_is_better_than_the_optimum(self, name):
        problem = problems.get(name)
        truths = [problem.truth(params) for params in settings(problem)]
        costs = [truth.cost for truth in truths if not truth.crashed]
        assert (len(truths), len(costs)) == LISTS[name]
        assert min(costs) == problem.constrained_minimum
        assert np.median(costs) == problem.median_safe_cost

    def test_a_perovskite_is_good_exactly_if_its_gap_and_its_mass_are(self):
        problem = problems.get("perovskites")
        good = 0
        for row in publication.rows("perovskites.csv"):
            params = {name: row[name] for name in problem.space}
            heavy = row["effective_mass"].startswith(">") or float(row["effective_mass"]) >= 4
            is_good = abs(float(row["bandgap"]) - 1.25) < 0.5 and not heavy
            assert (problem.truth(params).cost <= problem.published.target) == is_good
            good += is_good
        assert good == 7

    def test_a_forbidden_block_and_one_that_does_not_run_both_fail(self):
        problem = problems.get("convolution-A100")
        forbidden = {**problem.optimum, "block_size_x": 256, "block_size_y": 16}
        stalled = dict(zip(problem.space, (80, 8, 3, 4, 0, 1, 1), strict=True))
        assert problem.truth(forbidden).crashed
        assert problem.truth(stalled).crashed
        assert not problems.get("convolution-W6600").truth(stalled).crashed


class TestSurfaces:
    @pytest.mark.parametrize("name", SURFACES)
    def test_random_search_fails_as_often_as_it_did_there(self, name):
        problem = problems.get(name)
        published = [run.failures / run.trials for run in problem.published.runs if run.method == "random"]
        rng = np.random.default_rng(0)
        ours = np.mean([problem.truth({"u0": a, "u1": b}).crashed for a, b in rng.random((4000, 2))])
        error = np.hypot(np.std(published) / np.sqrt(len(published)), 0.5 / np.sqrt(4000))
        assert abs(ours - np.mean(published)) < 3.0 * error

    @pytest.mark.parametrize("name", SURFACES)
    def test_random_search_finds_what_it_found_there(self, name):
        problem = problems.get(name)
        theirs = [run.best[25] for run in problem.published.runs if run.method == "random"]
        rng, ours = np.random.default_rng(1), []
        for _ in range(100):
            truths = [problem.truth({"u0": a, "u1": b}) for a, b in rng.random((25, 2))]
            ours.append(min(truth.cost for truth in truths if not truth.crashed))
        error = np.hypot(np.std(theirs), np.std(ours)) / np.sqrt(100)
        assert abs(np.mean(ours) - np.mean(theirs)) < 3.0 * error

    def test_no_published_run_is_below_an_optimum(self):
        for name in SURFACES:
            problem = problems.get(name)
            lowest = min(min(run.best.values()) for run in problem.published.runs)
            assert lowest >= problem.constrained_minimum - 1e-6


class TestRuns:
    def test_their_means_are_those_of_the_publication(self):
        runs = problems.get("perovskites").published.runs
        trials = [run.trials for run in runs if run.method == "wodesc_fia-1"]
        assert (len(trials), np.mean(trials)) == (100, pytest.approx(44.76))
        branin = [run.best[100] for run in problems.get("branin").published.runs if run.method == "fca-0.5"]
        assert np.mean(branin) - 0.397887 == pytest.approx(0.0018, abs=5e-5)

    def test_problems_that_nobody_published_runs_of_have_none(self):
        assert problems.get("convolution-A100").published.runs == ()
        assert problems.get("hartmann6d").published.runs == ()
        assert problems.get("townsend").published is None

    def test_every_file_is_named_with_its_source_and_the_package_stays_small(self):
        files = [path for path in publication.DATA.iterdir() if path.suffix == ".csv"]
        words = (publication.DATA / "SOURCES.md").read_text(encoding="utf-8")
        assert all(f"`{path.name}`" in words for path in files)
        assert "MIT" in words
        assert sum(Path(path).stat().st_size for path in files) < 1_000_000
