"""`check()`: the finding of each kind, its words and trials; no finding where nothing is wrong; nothing ever fails."""

import json
import math

import numpy as np
import pytest

import crashbo
from crashbo.optimizer.checks.everything import check
from crashbo.optimizer.view import View

LEVEL = 1.3


def place(rng):
    return {"x": float(rng.random()), "y": float(rng.random())}


def load(p):
    return p["x"] + 0.6 * p["y"] + 0.1 * math.sin(6 * p["y"])


def cost(p):
    return (p["x"] - 0.4) ** 2 + (p["y"] - 0.6) ** 2


def told(n=40, *, seed=0, constraints="load", say=None, start=None, **options):
    """A study of trials all over the space: `say(i, params, said, rng)` changes what is said of each."""
    rng = np.random.default_rng(seed)
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, constraints, **options)
    for i in range(n):
        p = place(rng) if start is None or i >= len(start) else start[i]
        noise = 0.01 * rng.standard_normal(2)
        said = {"cost": cost(p) + noise[0], "measured": {"load": load(p) + noise[1]}}
        if load(p) > LEVEL:
            said = {"crash": True}
        said = said if say is None else say(i, p, said, rng)
        optimizer.tell(p, **said)
    return optimizer


def kinds(optimizer):
    return [f.kind for f in optimizer.check()]


def the(kind, optimizer):
    found = [f for f in optimizer.check() if f.kind == kind]
    assert len(found) == 1, kinds(optimizer)
    return found[0]


@pytest.mark.parametrize("seed", range(3))
def test_nothing_speaks_against_the_model_of_a_plain_study(seed):
    assert [f for f in told(seed=seed).check() if not f.advice] == []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_success_beyond_a_given_threshold():
    optimizer = told(constraints=crashbo.Constraint("load", threshold=0.9), units={"load": "A"})
    found = the("beyond", optimizer)
    far = {t.number for t in optimizer.trials if t.state == "success" and t.measured["load"] > 0.95}
    assert far <= set(found.trials)
    assert f"{len(found.trials)} successes have load beyond its given threshold, 0.9 A" in found.words
    assert "Check the threshold of load" in found.remedy
    assert kinds(optimizer)[0] == "beyond"


def test_a_success_beyond_a_given_interval_on_the_side_below():
    def say(i, p, said, rng):
        return {**said, "measured": {"load": -said["measured"]["load"]}} if "measured" in said else said

    constraint = crashbo.Constraint("load", threshold=(-0.8, -0.6), side="below")
    found = the("beyond", told(constraints=constraint, say=say))
    assert "beyond the interval given for its threshold, -0.8" in found.words


def test_a_crash_with_a_reading_on_the_safe_side():
    def say(i, p, said, rng):
        return {"crash": "bang", "measured": {"load": load(p)}} if "crash" in said else said

    optimizer = told(constraints=crashbo.Constraint("load", threshold=1.6, noise=0.01), say=say)
    found = the("reading", optimizer)
    assert set(found.trials) == {t.number for t in optimizer.trials if t.state == "crash" and load(t.params) < 1.55}
    assert "crashed with load on the safe side of what was given" in found.words


@pytest.mark.parametrize(
    "constraint",
    [
        crashbo.Constraint("load", threshold=1.6, noise=0.01, censored=True),
        crashbo.Constraint("load", threshold=LEVEL, noise=0.01),
    ],
)
def test_a_reading_that_was_cut_off_or_lies_beyond_is_no_finding(constraint):
    def say(i, p, said, rng):
        return {"crash": "bang", "measured": {"load": load(p)}} if "crash" in said else said

    assert "reading" not in kinds(told(constraints=constraint, say=say))


def test_a_crash_that_has_another_cause_beside_is_no_finding():
    def say(i, p, said, rng):
        return {"crash": "bang", "measured": {"load": load(p)}} if "crash" in said else said

    constraints = [crashbo.Constraint("load", threshold=1.6, noise=0.01), crashbo.Unmeasured()]
    assert "reading" not in kinds(told(constraints=constraints, say=say))


def test_crashes_at_random():
    def say(i, p, said, rng):
        return {"crash": True} if i % 6 == 2 else said

    optimizer = told(60, say=say)
    found = the("crashes", optimizer)
    random = {i for i in range(60) if i % 6 == 2 and load(optimizer.trials[i].params) < 1.1}
    assert len(random & set(found.trials)) >= 0.8 * len(random)
    assert "where all other trials make P(safe)" in found.words
    assert found in optimizer.check()[:2]


def test_what_is_measured_explains_none_of_the_crashes():
    def say(i, p, said, rng):
        return {"crash": True} if p["x"] - p["y"] > 0.35 else {"cost": cost(p), "measured": {"load": load(p)}}

    optimizer = told(say=say)
    found = the("cause", optimizer)
    assert set(found.trials) == {t.number for t in optimizer.trials if t.state == "crash"}
    assert found.words == f"What is measured, load, explains none of the {len(found.trials)} crashes."
    assert "Measure something else" in found.remedy


def test_a_cost_that_drifts_in_the_direction_of_the_user():
    def say(i, p, said, rng):
        return {**said, "cost": -said["cost"] - 0.02 * i} if "cost" in said else said

    found = the("drift", told(say=say, direction="maximize", units={"cost": "m"}))
    assert found.words.startswith("The cost at the same setting")
    by = float(found.words.split("by about ")[1].split()[0])
    assert -1.2 < by < -0.4
    assert " m from" in found.words


def test_a_reading_that_changes_at_once():
    def say(i, p, said, rng):
        return {**said, "measured": {"load": said["measured"]["load"] - 0.4 * (i >= 20)}} if "cost" in said else said

    found = the("drift", told(say=say))
    assert "The load at the same setting changed about trial" in found.words
    assert min(found.trials) in range(17, 24)


def test_scatter_that_grew():
    def say(i, p, said, rng):
        return {**said, "cost": said["cost"] + 0.3 * (i >= 25) * rng.standard_normal()} if "cost" in said else said

    found = the("scatter", told(50, say=say))
    assert "The scatter of the cost has grown" in found.words
    assert found.trials[-1] == 49


@pytest.mark.parametrize(("given", "is_found"), [(0.001, True), (0.01, False), (0.2, True)])
def test_noise_that_was_given_against_what_repeats_show(given, is_found):
    again = [{"x": 0.3, "y": 0.3}] * 8
    optimizer = told(30, start=again, noise=given)
    assert ("noise" in kinds(optimizer)) == is_found
    if is_found:
        found = the("noise", optimizer)
        assert found.trials == tuple(range(8))
        assert f"the noise given for the cost is {given:g}" in found.words


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_voids_that_cluster():
    def say(i, p, said, rng):
        return {"void": "no answer"} if p["x"] > 0.7 else said

    optimizer = told(say=say)
    found = the("voids", optimizer)
    assert set(found.trials) == {t.number for t in optimizer.trials if t.state == "void"}
    assert "most often because: no answer" in found.words
    assert "These may be crashes" in found.remedy


def test_voids_at_random_are_no_finding():
    assert "voids" not in kinds(told(say=lambda i, p, said, rng: {"void": True} if i % 7 == 3 else said))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_parameter_at_its_bound(direction):
    sign = 1.0 if direction == "minimize" else -1.0

    def say(i, p, said, rng):
        return {"cost": sign * ((p["x"] + 0.5) ** 2 + (p["y"] - 0.5) ** 2) + 0.001 * rng.standard_normal()}

    at = [{"x": 0.0, "y": y} for y in (0.4, 0.5, 0.6)]
    optimizer = told(say=say, constraints=None, direction=direction, start=at, units={"x": "N"})
    found = the("bound", optimizer)
    assert found.advice
    assert "x at its lower bound (0 N)" in found.words
    assert "y" not in found.words.split("bound")[0]
    assert f"the cost still {'falls' if sign > 0 else 'rises'} towards it" in found.words
    assert set(found.trials) == {0, 1, 2}
    assert "Widen the range of x" in found.remedy


def test_an_optimum_that_happens_to_lie_at_a_bound_is_no_finding():
    def say(i, p, said, rng):
        return {"cost": p["x"] ** 2 + (p["y"] - 0.5) ** 2 + 0.01 * rng.standard_normal()}

    at = [{"x": 0.0, "y": y} for y in (0.45, 0.5, 0.55)]
    assert "bound" not in kinds(told(say=say, constraints=None, start=at))


def test_a_study_whose_trials_no_longer_gain():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, risk=crashbo.MinSafe(0.9))
    for i in range(45):
        if i == 25:
            assert "gain" not in kinds(optimizer)  # fifteen or twenty in vain are not yet a waste
        trial = optimizer.ask()
        optimizer.tell(trial, cost=(trial.params["x"] - 0.4) ** 2 + 0.001 * math.cos(77.0 * i))
    found = the("gain", optimizer)
    assert found.advice
    assert "have gained nothing" in found.words
    assert "Stop, or repeat the best" in found.remedy


def test_findings_against_the_model_come_before_advice_and_the_strongest_first():
    def say(i, p, said, rng):
        return {"cost": (p["x"] + 0.5) ** 2 + 0.02 * i, "measured": {"load": load(p)}}

    found = told(say=say, start=[{"x": 0.0, "y": y} for y in (0.4, 0.5, 0.6)]).check()
    assert [f.advice for f in found] == sorted(f.advice for f in found)
    against = [f.strength for f in found if not f.advice]
    assert against == sorted(against, reverse=True)


FINE = {"cost": 1.0, "measured": {"load": 2.0}}
LABELS = [{"cost": float(i)} if i % 3 else {"crash": True} for i in range(14)]
PARTLY = [{"cost": float(i), "measured": {"a": 1.0 * i}} if i % 3 else {"crash": True} for i in range(14)]
MIXED = {"m": crashbo.Choice(["a", "b"]), "n": crashbo.Int(1, 5), "k": crashbo.Int(3, 3), "z": (0.0, 1.0)}
READ = {"crash": True, "measured": {"load": 0.5}}
DEGENERATE = {  # outcomes, and what defines the study
    "nothing": ([], {}),
    "one success": ([FINE], {}),
    "one crash": ([{"crash": True}], {}),
    "one void": ([{"void": True}], {}),
    "all crashed": ([{"crash": True}] * 12, {}),
    "all void": ([{"void": True}] * 12, {}),
    "all equal": ([FINE] * 12, {}),
    "labels only": (LABELS, {"constraints": None}),
    "nothing measured": (LABELS, {}),
    "several": (PARTLY, {"constraints": ["a", "b", crashbo.Unmeasured("c")]}),
    "blamed": ([FINE, {"crash": True, "blame": "load"}] * 6, {"constraints": ["load", "other"]}),
    "mixed": ([FINE, FINE, {"crash": True}] * 7, {"space": MIXED, "direction": "maximize"}),
    "known": ([FINE, READ] * 5, {"constraints": crashbo.Constraint("load", threshold=1.0)}),
    "huge": ([{"cost": 1e160 * i, "measured": {"load": 1e-160 * i}} for i in range(12)], {}),
    "exact": ([{"cost": float(i % 4)} for i in range(16)], {"constraints": None, "noise": 0.0}),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", DEGENERATE)
def test_nothing_degenerate_fails(name):
    outcomes, options = DEGENERATE[name]
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    optimizer, rng = crashbo.Optimizer(**{"space": space, "constraints": "load", **options}), np.random.default_rng(0)
    for said in outcomes:
        x = optimizer.space.uniform(rng.random((1, optimizer.space.dimension)))[0]
        optimizer.tell(optimizer.space.decode(x), **said)
    for f in optimizer.check():
        assert f.words.endswith(".")
        assert f.remedy.endswith(".")
        assert set(f.trials) <= set(range(len(outcomes)))


def test_a_pending_trial_and_a_saved_study_change_nothing():
    def say(i, p, said, rng):
        return {**said, "cost": said["cost"] + 0.02 * i} if "cost" in said else said

    optimizer = told(say=say)
    before = optimizer.check()
    optimizer.ask()
    assert [f.kind for f in optimizer.check()] == [f.kind for f in before]
    again = crashbo.Optimizer.from_json(optimizer.to_json())
    assert [f.kind for f in again.check()] == [f.kind for f in before]


def test_looking_does_not_change_what_is_proposed_next():
    one, other = told(15), told(15)
    one.check()
    assert one.ask().params == other.ask().params


def test_a_result_can_be_checked_and_its_findings_are_plain():
    result = crashbo.minimize(lambda p: cost(p), {"x": (0.0, 1.0), "y": (0.0, 1.0)}, trials=6, progress=False)
    assert result.check() == check(View.of(result.optimizer.study, result.trials))
    json.dumps([vars(f) for f in result.check()])


@pytest.mark.parametrize(("side", "sign"), [("above", 1.0), ("below", -1.0)])
def test_a_stop_at_a_reading_far_beyond_all_others_may_be_a_glitch(side, sign):
    def say(i, p, said, rng):
        if i in (20, 25):
            return {"stopped": {"load": sign * (9.0 if i == 20 else 1.2)}}
        return said if "crash" in said else said | {"measured": {"load": sign * said["measured"]["load"]}}

    optimizer = told(constraints=crashbo.Constraint("load", side=side), say=say)
    found = the("stop", optimizer)
    assert found.trials == (20,)
    assert "Trial 20 was stopped at load far beyond all other readings" in found.words
    assert kinds(optimizer)[0] == "stop"
    optimizer.tell(20, void="a glitch", replace=True)
    assert "stop" not in kinds(optimizer)
