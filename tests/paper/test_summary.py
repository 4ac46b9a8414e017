"""What runs say together."""

import made_up
import numpy as np
import pytest

from crashbo.paper.campaign import Campaign
from crashbo.paper.published import TABLE_1
from crashbo.paper.summary import claims, summarise


def campaign(methods=("eicc", "ei-ac"), problems=("eggcrate2d",), repeats=2, trials=4):
    return Campaign(tuple(methods), tuple(problems), repeats, trials)


class TestCampaign:
    def test_repeats_come_one_after_the_other(self):
        specs = campaign(problems=("toy1d", "lsq")).specs()
        assert [(s.repeat, s.problem, s.method) for s in specs] == [
            (i, p, m) for i in (0, 1) for p in ("toy1d", "lsq") for m in ("eicc", "ei-ac")
        ]
        assert {s.trials for s in specs} == {4}

    def test_what_cannot_run_is_left_out_and_named(self):
        c = campaign(("safeopt", "random"), ("hartmann6d", "eggcrate2d"))
        assert ("safeopt", "hartmann6d") not in {(s.method, s.problem) for s in c.specs()}
        assert len(c.specs()) == 6
        assert list(c.refusals) == [("safeopt", "hartmann6d")]
        assert "got 6" in c.refusals["safeopt", "hartmann6d"]

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"methods": ("magic",)}, r"methods must be different ones of eicc, .*; got magic\. Separate"),
            ({"methods": ()}, "got none"),
            ({"methods": ("eicc", "eicc")}, "methods must be different"),
            ({"problems": ("egg",)}, "problems must be different ones of toy1d"),
            ({"repeats": 0}, "repeats must be a whole number, at least 1; got 0"),
            ({"trials": -1}, "trials must be a whole number"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, changes, words):
        with pytest.raises(ValueError, match=words):
            campaign(**changes)


class TestSummary:
    def test_shares_regrets_and_thresholds_are_those_of_the_runs(self):
        runs = [
            made_up.run("eicc", repeat=0, regret=(2.0, 1.0, 0.5, 0.25), crashes=(1,), threshold=0.1),
            made_up.run("eicc", repeat=1, regret=(3.0, 3.0, 2.0, 0.75), crashes=(1, 2, 3), threshold=-0.3),
        ]
        cell = summarise(campaign(("eicc",)), runs).cells["eicc", "eggcrate2d"]
        assert cell.safe.tolist() == [75.0, 25.0]
        assert cell.regret.tolist() == [0.25, 0.75]
        assert cell.crashes.tolist() == [[0, 1, 1, 1], [0, 1, 2, 3]]
        assert cell.threshold_errors.tolist() == [0.1, -0.3]  # the true one is 0
        assert cell.crashes_after_start == 4

    def test_a_threshold_that_was_not_learnt_is_no_number(self):
        runs = [made_up.run("eicc", threshold=None), made_up.run("eicc", repeat=1, threshold=0.2)]
        cell = summarise(campaign(("eicc",)), runs).cells["eicc", "eggcrate2d"]
        assert cell.threshold_errors.tolist() == [0.2]

    def test_regret_is_not_a_number_before_the_first_success(self):
        cell = summarise(campaign(("eicc",), repeats=1), [made_up.run(regret=(None, 1.0, 1.0, 1.0))]).cells
        assert np.isnan(cell["eicc", "eggcrate2d"].regrets[0, 0])


class TestClaims:
    @staticmethod
    def measured(ours, theirs):
        """What is said of safety and of regret, from runs with these crashes and final regrets."""
        runs = []
        for method, outcomes in (("eicc", ours), ("ei-ac", theirs)):
            for i, (crashes, regret) in enumerate(outcomes):
                runs.append(made_up.run(method, repeat=i, crashes=range(1, 1 + crashes), regret=[9.0] * 3 + [regret]))
        return claims(summarise(campaign(repeats=len(ours)), runs))

    def test_orderings_hold_where_ours_is_safer_and_has_lower_regret(self):
        safer, lower = self.measured([(1, 0.25), (0, 0.5)], [(2, 2.0), (1, 2.25)])
        assert safer.words == "eggcrate2d: eicc is safer than ei-ac"
        assert lower.words == "eggcrate2d: eicc has lower regret than ei-ac"
        assert safer.holds
        assert safer.sure
        assert lower.holds
        assert safer.figures == "eicc 87.5, ei-ac 62.5, difference 25 ± 0"
        assert lower.figures == "eicc 0.375, ei-ac 2.125, difference -1.75 ± 0"

    def test_one_may_hold_without_the_other(self):
        safer, lower = self.measured([(1, 3.0), (0, 3.5)], [(2, 2.0), (1, 2.25)])
        assert (safer.holds, lower.holds) == (True, False)

    def test_a_difference_within_its_error_is_not_sure(self):
        safer, _ = self.measured([(1, 1.0), (3, 1.0), (1, 1.0)], [(2, 1.0), (2, 1.0), (2, 1.0)])
        gaps = np.array([25.0, -25.0, 25.0])
        assert safer.holds
        assert not safer.sure
        assert f"± {gaps.std(ddof=1) / np.sqrt(3):.2g}" in safer.figures

    def test_a_single_repeat_makes_nothing_sure(self):
        assert not any(claim.sure for claim in self.measured([(0, 1.0)], [(3, 2.0)]))

    @pytest.mark.parametrize(("crashes", "holds"), [((), True), ((2,), False)])
    def test_one_crash_of_safeopt_is_enough(self, crashes, holds):
        runs = [made_up.run("safeopt", crashes=crashes)]
        (claim,) = claims(summarise(campaign(("safeopt",), repeats=1), runs))
        assert claim.holds == holds
        assert claim.sure


def test_the_published_table_is_the_papers():
    assert {method: len(row) for method, row in TABLE_1.items()} == {
        **dict.fromkeys(("eicc", "eicc-paper", "ei-mc", "ei-hc", "ei-ac", "pibu", "eic"), 3),
        "safeopt": 1,
    }
    assert TABLE_1["eic"]["hartmann6d"] == (48.14, 15.71)
    assert TABLE_1["safeopt"]["eggcrate2d"] == (100.0, 0.0)
