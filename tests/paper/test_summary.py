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
        runs = [made_up.run("eicc", **ours), made_up.run("ei-ac", **theirs)]
        (claim,) = claims(summarise(campaign(repeats=1), runs))
        return claim

    def test_an_ordering_holds_where_ours_is_safer_with_lower_regret(self):
        claim = self.measured({"crashes": (1,)}, {"crashes": (1, 2), "regret": (2.0, 2.0, 2.0, 2.0)})
        assert claim.holds
        assert claim.figures == "safe 75.0 against 50.0 %, mean regret 0.25 against 2"

    @pytest.mark.parametrize(
        "theirs", [{"crashes": (), "regret": (2.0, 2.0, 2.0, 2.0)}, {"crashes": (1, 2), "regret": (0.1, 0.1, 0.1, 0.1)}]
    )
    def test_and_does_not_hold_where_either_fails(self, theirs):
        assert not self.measured({"crashes": (1,)}, theirs).holds

    @pytest.mark.parametrize(("crashes", "holds"), [((), True), ((2,), False)])
    def test_one_crash_of_safeopt_is_enough(self, crashes, holds):
        runs = [made_up.run("safeopt", crashes=crashes)]
        (claim,) = claims(summarise(campaign(("safeopt",), repeats=1), runs))
        assert claim.holds == holds


def test_the_published_table_is_the_papers():
    assert {method: len(row) for method, row in TABLE_1.items()} == {
        **dict.fromkeys(("eicc", "eicc-paper", "ei-mc", "ei-hc", "ei-ac", "pibu", "eic"), 3),
        "safeopt": 1,
    }
    assert TABLE_1["eic"]["hartmann6d"] == (48.14, 15.71)
    assert TABLE_1["safeopt"]["eggcrate2d"] == (100.0, 0.0)
