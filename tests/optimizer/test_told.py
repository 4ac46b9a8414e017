"""What is said of a trial: one record, one judge, whoever hears it."""

import json
import math

import numpy as np
import pytest

import crashbo
from crashbo.optimizer.told import Told, judge, said_by, salvaged, surprise

CONSTRAINTS = (crashbo.Constraint("load", 5.0, noise=0.1), crashbo.Unmeasured("other"))
TOLD = [
    Told(),
    Told("success", 1.5, {"load": 2.0}, censored=("load",)),
    Told("crash", None, {"load": 9.0}, "bent", ("load", "other")),
    Told("void", reason="unplugged"),
]


@pytest.mark.parametrize("told", TOLD)
def test_it_survives_json(told):
    assert Told.back(json.loads(json.dumps(told.out()))) == told


@pytest.mark.parametrize("told", TOLD)
def test_a_trial_says_what_it_was_told_and_nothing_of_before(told):
    before = crashbo.Trial(3, {"x": 1.0}, "crash", 0.5, None, {"load": 1.0}, "old", ("load",), ("load",))
    after = told.on(before)
    assert Told.of_trial(after) == told
    assert (after.number, after.params, after.p_safe) == (3, {"x": 1.0}, 0.5)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"cost": 2}, Told("success", 2.0)),
        ({"cost": np.float32(2), "crash": False, "void": False}, Told("success", 2.0)),
        (
            {"cost": 1.0, "measured": {"load": 2}, "censored": True},
            Told("success", 1.0, {"load": 2.0}, "", (), ("load",)),
        ),
        ({"crash": True}, Told("crash")),
        ({"crash": "bent", "blame": "load"}, Told("crash", reason="bent", blame=("load",))),
        ({"crash": crashbo.Crash("bent", "load", {"load": 7})}, Told("crash", None, {"load": 7.0}, "bent", ("load",))),
        ({"void": "unplugged"}, Told("void", reason="unplugged")),
        ({"void": True, "blame": "load"}, Told("void")),
        ({"crash": True, "blame": {"b", "a"}, "censored": np.False_}, Told("crash", blame=("a", "b"))),
        ({"crash": crashbo.Crash("x", "c"), "blame": np.array(["a", "b"])}, Told("crash", None, {}, "x", ("a", "b"))),
        ({"crash": True, "blame": (name for name in ("a", "b"))}, Told("crash", blame=("a", "b"))),
    ],
)
def test_what_users_say_is_put_in_order(said, told):
    assert Told.of(**said) == told


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"cost": 1.0, "crash": True},
        {"cost": math.nan},
        {"cost": True},
        {"cost": "1"},
        {"cost": 10**400},
        {"cost": 1.0, "blame": "load"},
        {"cost": 1.0, "measured": [1.0]},
        {"cost": 1.0, "measured": {1: 2.0}},
        {"cost": 1.0, "measured": {"": 2.0}},
        {"cost": 1.0, "measured": {"load": None}},
        {"crash": 5},
        {"void": 0.5},
        {"crash": True, "blame": 5},
        {"crash": True, "blame": [1]},
        {"crash": True, "blame": ""},
        {"crash": True, "censored": "load"},
        {"crash": True, "measured": {"load": 1.0}, "censored": 3},
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(said):
    with pytest.raises(ValueError, match=r"^[^\n]+ must [^\n]+\. [^\n]+\.?$"):
        Told.of(**said)


def test_a_judge_knows_the_constraints():
    told = Told.of(crash=True, measured={"load": 6.0}, blame=["load", "other"])
    assert judge(told, CONSTRAINTS) is told
    with pytest.raises(ValueError, match=r"measured must name constraints \(load\); got 'other'\. Add it\."):
        judge(Told.of(cost=1.0, measured={"other": 1.0}), CONSTRAINTS)
    with pytest.raises(ValueError, match=r"blame must name constraints \(load, other\); got 'heat'\. "):
        judge(Told.of(crash=True, blame="heat"), CONSTRAINTS)


@pytest.mark.parametrize("told", [Told(), Told(cost=0.5), Told("crash", 0.5)])
def test_what_is_no_outcome_is_no_judgement(told):
    with pytest.raises(ValueError, match=r"^told must be a success to have a cost, not pending; .+Told\.of\.$"):
        judge(told, None)


def test_where_no_constraints_are_known_every_name_is_taken():
    assert judge(Told.of(crash=True, measured={"heat": 1.0}, blame="load"), None).blame == ("load",)


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (crashbo.Outcome(1.0, {"load": 2.0}, censored="load"), Told("success", 1.0, {"load": 2.0}, censored=("load",))),
        (crashbo.Crash("bent"), Told("crash", reason="bent")),
        (crashbo.Void(), Told("void")),
    ],
)
def test_an_experiments_end_says_it_too(outcome, told):
    assert Told.of(**said_by(outcome)) == told


def test_of_a_crash_that_nobody_can_ask_about_everything_is_kept_that_makes_sense():
    crash = crashbo.Crash("bent", ["load"], {"load": 7, "heat": math.nan, "name": "x"}, censored=["load", "heat"])
    assert salvaged(crash, {"speed": 2.0, "load": 1.0}) == Told(
        "crash", None, {"speed": 2.0, "load": 7.0}, "bent", ("load",), ("load",)
    )
    odd = crashbo.Crash("bent", [1, "", "load"], {1: 2.0, "load": 7}, censored=np.True_)
    assert salvaged(odd, {}) == Told("crash", None, {"load": 7.0}, "bent", ("load",), ("load",))
    assert salvaged(crashbo.Crash("bent", censored=5), {}) == Told("crash", reason="bent")
    cut = crashbo.Crash("bent", measured={"load": 7.0}, censored=True)
    assert salvaged(cut, {"speed": 2.0}).censored == ("speed", "load")


def test_a_success_beyond_a_known_threshold_is_a_surprise_unless_noise_explains_it():
    def at(load, state="success"):
        return surprise(crashbo.Trial(0, {}, state, cost=1.0, measured={"load": load}), CONSTRAINTS)

    assert list(at(5.5)) == ["above load"]
    assert at(5.3) == at(4.0) == at(9.0, "crash") == {}
