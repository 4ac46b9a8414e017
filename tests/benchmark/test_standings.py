"""Means with intervals, profiles, and where we lead and lose."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crashbo.benchmark import summary as statistics
from crashbo.benchmark.cases import of_families, published
from crashbo.benchmark.comparison import Difference, compare, verdicts
from crashbo.benchmark.groups import GROUPS
from crashbo.benchmark.summary import (
    Summary,
    band,
    below_optimum,
    best_peer,
    bootstrap,
    data_profile,
    final_score,
    is_peer,
    parts,
    standings,
    suggestion_seconds,
    trials_to,
    verdict,
)
from crashbo.problems import families
from fake_runs import fake, fakes

BY_NAME = {group.name: group for group in GROUPS}


def test_only_cases_that_all_methods_have_finished_count():
    alone = [fake("random", [0.0], seed=seed) for seed in (3, 4)]
    runs = [*fakes({"eicc": 0.2, "random": 0.6}, seeds=3), *alone]
    summary = Summary.of(runs)
    assert [case.seed for case in summary.cases] == [0, 1, 2]
    assert summary.unfinished == 2
    assert summary.estimate("random", final_score).mean == pytest.approx(0.6)


def test_a_curve_takes_each_case_after_that_share_of_its_own_trials():
    runs = [fake("eicc", [0.8, 0.6, 0.4, 0.2], seed=0), fake("eicc", [None, 0.5], seed=1)]
    curves = Summary.of(runs).curves("eicc", lambda run: run.score, before=7.0)
    assert curves.shape == (2, statistics.STEPS + 1)
    assert_allclose(curves[0, [0, 24, 25, 49, 50, 99, 100]], [7.0, 7.0, 0.8, 0.8, 0.6, 0.4, 0.2])
    assert_allclose(curves[1, [0, 49, 50, 99, 100]], [7.0, 7.0, 1.0, 1.0, 0.5])


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    found = [bootstrap(rng.normal(3.0, 1.0, 40)) for _ in range(300)]
    covered = np.mean([e.low <= 3.0 <= e.high for e in found])
    assert 0.90 <= covered <= 0.98
    assert np.mean([e.high - e.low for e in found]) == pytest.approx(2 * 1.96 / np.sqrt(40), rel=0.1)


def test_an_interval_of_five_cases_covers_as_often_too_which_a_plain_bootstrap_does_not():
    rng = np.random.default_rng(2)
    samples = rng.normal(0.0, 1.0, (500, 5))
    missed = np.mean([not e.low <= 0.0 <= e.high for e in map(bootstrap, samples)])
    picks = rng.integers(5, size=(2000, 5))
    plain = [np.percentile(sample[picks].mean(axis=1), [2.5, 97.5]) for sample in samples]
    assert missed < 0.09
    assert np.mean([not low <= 0.0 <= high for low, high in plain]) > 0.12


def test_the_interval_of_a_score_stays_within_what_a_score_can_be():
    rare, often = (
        Summary.of([fake("eicc", [one if seed else other], seed=seed) for seed in range(6)]).estimate(
            "eicc", final_score
        )
        for one, other in ((0.0, 0.5), (1.0, 0.5))
    )
    assert rare.low == 0.0 < rare.mean < rare.high < 1.0
    assert 0.0 < often.low < often.mean < often.high == 1.0
    slow = Summary.of(fakes({"eicc": 0.1}, seeds=6, seconds=3.0)).estimate("eicc", suggestion_seconds)
    assert slow == (3.0, 3.0, 3.0)


def test_too_few_cases_have_a_mean_but_no_interval():
    mean, low, high = bootstrap(np.array([1.0, 2.0, 3.0, 6.0]))
    assert mean == 3.0
    assert np.isnan(low)
    assert np.isnan(high)
    assert np.isfinite(bootstrap(np.arange(5.0)).low)


def test_a_band_is_the_interval_of_every_point():
    curves = np.random.default_rng(2).random((12, 3))
    low, high = band(curves)
    for j in range(3):
        assert_allclose((low[j], high[j]), bootstrap(curves[:, j])[1:])
    assert np.isnan(band(curves[:4])).all()


def test_an_estimate_leaves_out_runs_without_a_value():
    runs = [*(fake("eicc", [0.1], seed=i, seconds=2.0) for i in range(5)), fake("eicc", [], seed=5, trials=1)]
    assert_allclose(Summary.of(runs).estimate("eicc", statistics.suggestion_seconds), 2.0)


def test_a_data_profile_by_hand():
    runs = [
        *(fake("eicc", [1.0, 0.1, 0.0, 0.0], seed=0), fake("random", [1.0, 1.0, 1.0, 0.05], seed=0)),
        *(fake("eicc", [1.0, 0.1], seed=1), fake("random", [1.0, 1.0], seed=1)),
    ]
    assert trials_to(runs[0], 0.1) == 2.0
    assert trials_to(runs[3], 0.1) == np.inf
    trials, shares = data_profile(Summary.of(runs), "eicc", 0.1)
    assert_allclose(trials, [0, 1, 2, 3, 4])
    assert_allclose(shares, [0, 0, 1, 1, 1])
    assert_allclose(data_profile(Summary.of(runs), "random", 0.1)[1], [0, 0, 0, 0, 0.5])


def test_what_was_solved_once_stays_solved_even_if_noise_leads_astray():
    run = fake("eicc", [0.5, 0.04, 0.03], truths=[0.5, 0.05, 0.2])  # the lowest cost seen is not the lowest
    assert list(run.score) == [0.5, 0.05, 0.2]
    assert list(run.solved(0.1)) == [False, True, True]


def test_a_run_with_a_target_is_solved_there_and_not_before():
    run = fake("eicc", [None, 0.05, 0.0], trials=5, target=0.0)
    assert list(run.solved(0.1)) == [False, False, True, True, True]
    assert run.has_arrived
    assert not fake("eicc", [None, 0.05], trials=5, target=0.0).has_arrived


@pytest.mark.parametrize(
    ("ours", "word"),
    [
        (0.1, "lead"),
        (0.7, "lose"),
        (lambda seed: 0.3 if seed % 2 else 0.7, "level"),
        (0.5, "level"),
    ],
)
def test_a_verdict_is_by_the_interval_of_the_paired_difference(ours, word):
    found = verdict(Summary.of(fakes({"eicc": ours, "random": 0.5, "oracle": 0.0})), "here", "eicc")
    assert (found.word, found.rival, found.cases) == (word, "random", 8)
    assert found.theirs == pytest.approx(0.5)
    assert found.crashes == pytest.approx(1 / 3)


def test_pairs_count_not_spreads():
    # Costs differ widely from case to case, but ours is always a little better.
    ends = {"eicc": lambda seed: 0.1 * seed, "random": lambda seed: 0.1 * seed + 0.01}
    assert verdict(Summary.of(fakes(ends)), "", "eicc").word == "lead"


def test_with_few_cases_there_is_no_verdict():
    found = verdict(Summary.of(fakes({"eicc": 0.1, "random": 0.9}, seeds=4)), "", "eicc")
    assert found.word == "few"


def test_the_rival_is_the_best_peer_on_the_very_cases():
    runs = fakes({"eicc": 0.2, "random": 0.3, "their:method": 0.6}, problem="bowl")
    runs += fakes({"eicc": 0.2, "random": 0.7, "their:method": 0.4}, problem="valley")
    of = Summary.of(runs).problems
    assert (best_peer(of["bowl"]), best_peer(of["valley"])) == ("random", "their:method")


def test_peers_are_the_others():
    assert [m for m in ("eicc", "eicc-paper", "pibu", "oracle") if is_peer(m)] == []
    assert all(map(is_peer, ("random", "sobol", "nowhere:method", "a-library-that-is-not-here")))


def test_without_a_peer_there_is_no_verdict():
    assert verdict(Summary.of(fakes({"eicc": 0.1, "oracle": 0.0})), "", "eicc") is None
    assert verdict(Summary.of([]), "", "eicc") is None


def test_parts_divide_the_cases_in_each_kind():
    runs = fakes({"eicc": 0.1, "random": 0.5}, problem="bowl", dimension=4)
    runs += fakes({"eicc": 0.1, "random": 0.5}, problem="bowl", dimension=16)
    runs += fakes({"eicc": 0.1, "random": 0.5}, problem="labels", dimension=4, measured=False, started=False)
    found = parts(Summary.of(runs))
    kinds: dict[str, list[str]] = {}
    for part in found:
        kinds.setdefault(part.kind, []).append(part.name)
    assert kinds == {
        "all": ["all cases"],
        "group": ["smooth measured", "smooth labels only", "many parameters"],
        "problem": ["bowl", "labels"],
        "problem and dimension": ["bowl (4 parameters)", "bowl (16 parameters)", "labels (4 parameters)"],
    }
    for kind in ("all", "problem", "problem and dimension"):
        assert sum(len(part.summary.cases) for part in found if part.kind == kind) == 24


def test_standings_tell_the_same_cases_once():
    runs = fakes({"eicc": 0.1, "random": 0.5}, problem="bowl", dimension=4)
    runs += fakes({"eicc": 0.9, "random": 0.5}, problem="labels", dimension=6, measured=False)
    found = standings(Summary.of(runs), "eicc")
    assert [(v.where, v.word) for v in found["all"]] == [("over all cases", "level")]
    assert [(v.where, v.word) for v in found["group"]] == [("on smooth measured", "lead")]
    assert [(v.where, v.word) for v in found["problem"]] == [("on labels", "lose")]  # bowl is the group again
    assert set(found) == {"all", "group", "problem"}


class TestGroups:
    """Every comparison is by these."""

    def test_every_family_and_published_problem_is_in_a_group_of_its_kind(self):
        cases = [*of_families(families.names(), [0]), *published([0])]
        kinds = {name: {case.problem for case in cases if group.has(case)} for name, group in BY_NAME.items()}
        assert kinds["options"] == {"options", "mixed", "conditional"}
        assert kinds["cusps and islands"] == {"cusps", "islands", "corridor", "plateau", "rugged"}
        assert "perovskites" in kinds["published"]
        assert kinds["paper"] >= {"hartmann6d", "michalewicz10d", "eggcrate2d"}
        assert kinds["other"] == set()
        assert all(sum(case.problem in names for names in kinds.values()) for case in cases)

    def test_the_same_cases_stand_there_with_labels_only(self):
        runs = fakes({"eicc": 0.1, "eicc-labels": 0.3, "random": 0.5}, problem="bowl", seeds=5)
        groups = Summary.of(runs).groups
        assert {name: part.methods for name, part in groups.items()} == {
            "smooth measured": ("eicc", "random"),
            "smooth labels only": ("eicc", "random"),
        }
        means = {name: part.estimate("eicc", final_score).mean for name, part in groups.items()}
        assert means == pytest.approx({"smooth measured": 0.1, "smooth labels only": 0.3})

    def test_many_parameters_are_judged_both_ways(self):
        runs = fakes({"eicc": 0.1, "eicc-labels": 0.3}, problem="bowl", dimension=16, seeds=5)
        part = Summary.of(runs).groups["many parameters"]
        assert len(part.cases) == 10
        assert part.estimate("eicc", final_score).mean == pytest.approx(0.2)

    def test_what_is_not_measured_is_not_among_the_measured(self):
        runs = fakes({"eicc": 0.1, "eicc-labels": 0.3}, problem="labels", measured=False, seeds=5)
        assert list(Summary.of(runs).groups) == ["smooth labels only"]

    def test_labels_alone_stand_under_their_own_name_and_never_among_the_measured(self):
        groups = Summary.of(fakes({"eicc-labels": 0.3}, seeds=5)).groups
        assert {name: part.methods for name, part in groups.items()} == {"smooth labels only": ("eicc-labels",)}


class TestComparison:
    """Here less there, by group."""

    def test_a_difference_has_its_standard_error(self):
        rng = np.random.default_rng(0)
        gaps = rng.normal(0.02, 0.05, 50)
        here = [fake("eicc", [0.5 + gap], seed=seed) for seed, gap in enumerate(gaps)]
        there = [fake("eicc", [0.5], seed=seed) for seed in range(50)]
        one, overall = compare(here, there)
        assert (one.group, one.pairs) == ("smooth measured", 50)
        assert one.differences["regret"].mean == pytest.approx(gaps.mean())
        assert one.differences["regret"].error == pytest.approx(gaps.std(ddof=1) / np.sqrt(50))
        assert overall.differences["regret"] == one.differences["regret"]

    def test_verdicts_are_by_two_standard_errors_and_lower_is_better(self):
        assert Difference(0.1, 0.2, -0.1, 0.04).word == "better"
        assert Difference(0.2, 0.1, 0.1, 0.04).word == "worse"
        assert Difference(0.1, 0.2, -0.1, 0.06).word == "level"

    def test_few_pairs_have_no_verdict(self):
        runs = fakes({"eicc": 0.1}, seeds=39)
        assert "too few to tell (39 pairs of 40)" in verdicts(compare(runs, runs))[0]
        runs = fakes({"eicc": 0.1}, seeds=40)
        last = verdicts(compare(runs, runs))[-1]
        assert last == "mean of groups: level in all of regret, over the run, per price of 5, crashes."

    def test_machines_that_changed_are_left_out(self):
        here = fakes({"eicc": 0.1}, seeds=4)
        there = [*fakes({"eicc": 0.1}, seeds=3), *fakes({"eicc": 0.1}, seeds=4, median=2.0)[3:]]
        assert compare(here, there)[0].pairs == 3

    def test_who_hears_labels_only_counts_once_per_case(self):
        here, there = (fakes({"optuna-tpe": end}, seeds=5, dimension=16) for end in (0.1, 0.2))
        found = {one.group: one.pairs for one in compare(here, there)}
        assert found["many parameters"] == 5
        here, there = (fakes({"optuna-tpe": end}, seeds=5) for end in (0.1, 0.2))
        assert "smooth labels only" not in {one.group for one in compare(here, there)}

    def test_an_optimum_that_was_found_better_since_is_both_sides(self):
        here, there = fakes({"eicc": 0.3}, seeds=4, optimum=-0.2), fakes({"eicc": 0.3}, seeds=4)
        assert compare(here, there)[0].differences["regret"].mean == 0.0

    def test_groups_weigh_the_same_in_the_mean(self):
        here = [*fakes({"eicc": 0.3}, seeds=4), *fakes({"eicc": 0.2}, seeds=12, problem="islands")]
        there = [*fakes({"eicc": 0.1}, seeds=4), *fakes({"eicc": 0.2}, seeds=12, problem="islands")]
        assert compare(here, there)[-1].differences["regret"].mean == pytest.approx(0.1)


def test_a_cost_below_the_optimum_on_file_is_found_even_if_noise_hid_it():
    def run(truth):
        return fake("eicc", [0.5, 12.0], truths=[3.0, truth], optimum=2.0, median=12.0)

    assert below_optimum(run(2.0 - 1e-3)) == pytest.approx(1e-4)
    assert below_optimum(run(2.0 - 5e-6)) == 0.0
    assert below_optimum(run(2.5)) == 0.0
    assert below_optimum(fake("eicc", [None, None])) == 0.0
