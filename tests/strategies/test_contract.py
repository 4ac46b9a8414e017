"""What every strategy must do, whatever happens to the study."""

import json
import os
import subprocess
import sys

import pytest

import crashbo
from crashbo import strategies

SPACE = {
    "gain": (-2.0, 3.0),
    "rate": crashbo.Float(1e-4, 1.0, log=True),
    "legs": crashbo.Int(1, 5),
    "mode": crashbo.Choice(["trot", "walk", "bound"]),
}

every_strategy = pytest.mark.parametrize("strategy", strategies.names())


PRIVILEGED = ("eic", "safeopt")  # need a known threshold, and crashes that were measured


def study(strategy, *, seed=0, space=SPACE, **kwargs):
    load = crashbo.Constraint("load", 5.0 if strategy in PRIVILEGED else None)
    return crashbo.Optimizer(space, [load], seed=seed, strategy=strategy, **kwargs)


def robot(params):
    """What to tell of a trial: a crash where the load is high."""
    load = params["gain"] + params["legs"]
    if load > 5.0:
        return {"crash": "boards tripped"}
    cost = (params["gain"] - 0.5) ** 2 + params["rate"] + (params["mode"] != "walk")
    return {"cost": cost, "measured": {"load": load}}


def crashing(params):
    return {"crash": True}


def harmless(params):
    return {"cost": params["gain"] ** 2 + params["rate"], "measured": {"load": params["gain"]}}


def tell(optimizer, trial, outcome=robot):
    """Tell what came of a trial; a crash carries its load where the threshold is known."""
    told = outcome(trial.params)
    if "crash" in told and optimizer.constraints[0].threshold is not None:
        told["measured"] = {"load": max(trial.params["gain"] + trial.params["legs"], 5.1)}
    optimizer.tell(trial, **told)


def run(optimizer, trials, outcome=robot):
    """Ask and tell, so many times; the trials as they were asked."""
    asked = []
    for _ in range(trials):
        trial = optimizer.ask()
        asked.append(trial)
        tell(optimizer, trial, outcome)
    return asked


def assert_in_space(trials):
    for trial in trials:
        p = trial.params
        assert list(p) == list(SPACE)
        assert type(p["gain"]) is float
        assert -2.0 <= p["gain"] <= 3.0
        assert 1e-4 <= p["rate"] <= 1.0
        assert type(p["legs"]) is int
        assert 1 <= p["legs"] <= 5
        assert p["mode"] in ("trot", "walk", "bound")
        assert trial.p_safe is None or 0.0 <= trial.p_safe <= 1.0


def assert_all_different(trials):
    assert len({json.dumps(t.params) for t in trials}) == len(trials)


def assert_same(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.params["legs"], a.params["mode"]) == (b.params["legs"], b.params["mode"])
        assert a.params["gain"] == pytest.approx(b.params["gain"], abs=1e-6)
        assert a.params["rate"] == pytest.approx(b.params["rate"], rel=1e-6)


@every_strategy
@pytest.mark.parametrize("outcome", [robot, harmless])
def test_proposals_are_settings_of_the_space_and_new(strategy, outcome):
    asked = run(study(strategy), 10, outcome)
    assert_in_space(asked)
    assert_all_different(asked)
    assert [t.number for t in asked] == list(range(10))


@pytest.mark.parametrize("strategy", [name for name in strategies.names() if name not in PRIVILEGED])
def test_a_second_constraint_and_a_cause_that_nobody_measures_are_no_harm(strategy):
    causes = ["load", crashbo.Constraint("speed", side="below"), crashbo.Unmeasured("other")]
    optimizer = crashbo.Optimizer(SPACE, causes, seed=0, strategy=strategy)
    for i in range(8):
        trial = optimizer.ask()
        told = robot(trial.params)
        if "crash" not in told and i % 2:  # every other success lacks a reading
            told["measured"]["speed"] = trial.params["rate"]
        optimizer.tell(trial, **told)
    assert_in_space(optimizer.trials)
    assert_all_different(optimizer.trials)


@every_strategy
def test_fifteen_crashes_in_a_row_do_not_end_the_search(strategy):
    optimizer = study(strategy)
    asked = run(optimizer, 15, crashing)
    assert_in_space(asked)
    assert_all_different(asked)
    assert optimizer.best is None
    assert_in_space(run(optimizer, 3, harmless))
    assert optimizer.best is not None


@every_strategy
def test_a_first_trial_that_crashes_is_survived(strategy):
    optimizer = study(strategy, start=[{"gain": 3.0, "rate": 1e-2, "legs": 5, "mode": "trot"}])
    asked = run(optimizer, 8)
    assert optimizer.trials[0].state == "crash"
    assert_in_space(asked)
    assert any(t.state == "success" for t in optimizer.trials)


@every_strategy
def test_one_start_point_is_enough(strategy):
    start = {"gain": 0.0, "rate": 1e-2, "legs": 2, "mode": "walk"}
    asked = run(study(strategy, start=[start]), 6)
    assert asked[0].params == start
    assert asked[0].origin == "start"
    assert all(t.origin == "search" for t in asked[1:])
    assert_all_different(asked)


@every_strategy
@pytest.mark.parametrize("told", [0, 6])
@pytest.mark.parametrize("outcome", [robot, crashing])
def test_ten_asks_in_a_row_give_ten_different_settings(strategy, told, outcome):
    optimizer = study(strategy)
    run(optimizer, told, outcome)
    waiting = [optimizer.ask() for _ in range(10)]
    assert_in_space(waiting)
    # SafeOpt repeats a proven setting when it knows of no other that is safe.
    proven = [t.params for t in optimizer.trials if t.state == "success"] if strategy == "safeopt" else []
    assert_all_different([t for t in waiting if t.params not in proven])
    assert all(t.params in proven or t.params not in [told.params for told in optimizer.trials[:told]] for t in waiting)
    for trial in waiting:
        tell(optimizer, trial)
    assert_in_space([optimizer.ask()])


@every_strategy
def test_a_void_trial_is_as_if_it_had_never_been(strategy):
    plain, disturbed = study(strategy), study(strategy)
    run(plain, 6)
    run(disturbed, 6)
    for gain in (0.0, 1.0):
        disturbed.tell({"gain": gain, "rate": 0.1, "legs": 2, "mode": "walk"}, void="robot was unplugged")
    assert_same(run(plain, 3), run(disturbed, 3))


@every_strategy
@pytest.mark.filterwarnings("ignore:.* trials were void:RuntimeWarning")
def test_a_study_that_only_voids_goes_on(strategy):
    optimizer = study(strategy)
    for _ in range(6):
        optimizer.tell(optimizer.ask(), void=True)
    assert {t.state for t in optimizer.trials} == {"void"}
    assert_in_space(run(optimizer, 5))


@every_strategy
@pytest.mark.parametrize("told", [2, 8])
def test_a_saved_study_goes_on_as_the_uninterrupted_one(strategy, told):
    optimizer = study(strategy, start=[{"gain": 0.0, "rate": 1e-2, "legs": 2, "mode": "walk"}])
    run(optimizer, told)
    waiting = optimizer.ask()
    resumed = crashbo.Optimizer.from_json(optimizer.to_json())
    assert resumed.trials == optimizer.trials
    for one in (optimizer, resumed):
        tell(one, waiting)
    assert_same(run(optimizer, 4), run(resumed, 4))


def test_a_saved_study_of_one_parameter_goes_on_along_its_sequence():
    optimizer = crashbo.Optimizer({"gain": (0.0, 1.0)}, strategy="sobol", seed=1)
    for _ in range(6):
        optimizer.tell(optimizer.ask(), cost=1.0)
    resumed = crashbo.Optimizer.from_json(optimizer.to_json())
    assert resumed.ask().params == optimizer.ask().params


@every_strategy
def test_the_same_seed_gives_the_same_sequence_and_another_seed_another(strategy):
    first, again, other = (run(study(strategy, seed=seed), 7) for seed in (3, 3, 4))
    assert [t.params for t in first] == [t.params for t in again]
    assert [t.params for t in first] != [t.params for t in other]


@every_strategy
def test_looking_at_a_study_does_not_change_what_it_proposes(strategy):
    looked, left = study(strategy), study(strategy)
    for _ in range(7):
        for optimizer in (looked, left):
            trial = optimizer.ask()
            tell(optimizer, trial)
        looked.p_safe(trial.params)
        looked.recommend()
        _ = looked.thresholds["load"].interval
        looked.to_json()
    assert looked.ask().params == left.ask().params


SEQUENCE = """
import json, sys
sys.path.insert(0, {folder!r})
import test_contract as contract
print(json.dumps([t.params for t in contract.run(contract.study("eicc", seed=5), 9)]))
"""


def test_two_processes_with_the_same_seed_propose_the_same():
    script = SEQUENCE.format(folder=os.path.dirname(__file__))
    outputs = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        outputs.append(json.loads(done.stdout))
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 9


def test_an_unknown_strategy_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"^strategy must be one of .*eicc.*; got 'magic'\. 'eicc' is the default"):
        crashbo.Optimizer(SPACE, strategy="magic")


@pytest.mark.parametrize("seed", range(3))
def test_eicc_tries_every_setting_of_a_small_space_before_it_repeats_one(seed):
    space = {"n": crashbo.Int(1, 4), "mode": crashbo.Choice(["a", "b"])}
    optimizer = crashbo.Optimizer(space, seed=seed, risk="paper")
    for _ in range(8):
        trial = optimizer.ask()
        optimizer.tell(trial, cost=trial.params["n"] + (trial.params["mode"] == "a"))
    assert_all_different(optimizer.trials)
    assert optimizer.best.cost == 1.0
    assert 1 <= optimizer.ask().params["n"] <= 4
