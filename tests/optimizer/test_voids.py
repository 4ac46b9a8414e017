"""Voids: no place that was void twice is proposed while there is another, and too many are worth a warning."""

import warnings
from itertools import product

import numpy as np
import pytest

import crashbo
from crashbo import strategies
from crashbo.optimizer.records import Trial
from crashbo.optimizer.voids import commonest, too_many
from crashbo.strategies import Proposal

pytestmark = pytest.mark.filterwarnings("ignore:.* trials were void:RuntimeWarning")

SPACES = {
    "line": {"a": (0.0, 1.0)},
    "log": {"a": crashbo.Float(1e-3, 10.0, log=True), "b": (0.0, 1.0)},
    "mixed": {"a": (-1.0, 1.0), "n": crashbo.Int(0, 60), "mode": crashbo.Choice(["u", "v", "w"])},
    "finite": {"n": crashbo.Int(0, 9), "mode": crashbo.Choice(["u", "v"])},
    "six": {f"x{i}": (0.0, 1.0) for i in range(6)},
    "twenty": {f"x{i}": (0.0, 1.0) for i in range(20)},
}
RISKS = {
    "ours": None,
    "paper": "paper",
    "min_safe": crashbo.MinSafe(0.8),
    "budget": crashbo.Budget(4, 40),
    "spent": crashbo.Budget(0),
}


def machine(optimizer, trial):
    """Costs fall towards one corner, where the load trips."""
    u = float(np.mean(optimizer.space.encode(trial.params)))
    if u > 0.7:
        return {"crash": True, "measured": {"load": u}}
    return {"cost": -u, "measured": {"load": u}}


def apart(X, Y):
    """Largest coordinate differences of all pairs."""
    return np.abs(np.array(X)[:, None] - np.array(Y)[None]).max(axis=2)


def dead(optimizer):
    """The dead voids, by the words of the rule."""
    encode = optimizer.space.encode
    settled = [encode(t.params) for t in optimizer.trials if t.counts]
    voids = [encode(t.params) for t in optimizer.trials if t.state == "void"]
    voids = [x for x in voids if not settled or apart([x], settled).min() > 1e-6]
    return [x for x, gaps in zip(voids, apart(voids, voids) if voids else [], strict=True) if sum(gaps <= 0.04) > 1]


def is_dead(optimizer, params):
    centres = dead(optimizer)
    return bool(centres) and apart([optimizer.space.encode(params)], centres).min() <= 0.02


def spoilt(optimizer):
    """The same study, with two voids where it would propose next: it would again, of the same generator's state."""
    again = crashbo.Optimizer.from_json(optimizer.to_json())
    params = optimizer.ask().params
    for _ in range(2):
        again.tell(params, void="no power")
    return again


def begun(space, trials=6, **options):
    limit = 0.7 if options.get("strategy") in ("eic", "safeopt") else None
    optimizer = crashbo.Optimizer(SPACES[space], [crashbo.Constraint("load", limit)], **options)
    for _ in range(trials):
        trial = optimizer.ask()
        optimizer.tell(trial, **machine(optimizer, trial))
    return optimizer


def assert_keeps_clear(optimizer, rounds=6):
    """However often the next proposal is spoilt, another one is found."""
    for _ in range(rounds):
        optimizer = spoilt(optimizer)
        asked = crashbo.Optimizer.from_json(optimizer.to_json()).ask()
        assert not is_dead(optimizer, asked.params), asked
    return optimizer


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("space", SPACES)
def test_no_dead_end_is_proposed_under_any_risk(space, risk):
    optimizer = assert_keeps_clear(begun(space, risk=RISKS[risk]))
    assert dead(optimizer) or risk == "spent"  # which repeats a success, whatever its voids


@pytest.mark.parametrize("space", ["line", "mixed", "finite"])
@pytest.mark.parametrize("strategy", [name for name in strategies.names() if name != "eicc"])
def test_no_dead_end_is_proposed_by_any_strategy(strategy, space):
    optimizer = assert_keeps_clear(begun(space, strategy=strategy))
    assert dead(optimizer) or (strategy, space) == ("safeopt", "finite")  # where it knows nothing safe but successes


@pytest.mark.parametrize("strategy", ["eicc", "random", "sobol"])
def test_a_line_is_used_up_to_its_last_gap(strategy):
    optimizer = begun("line", trials=5, strategy=strategy)
    grid = [{"a": a} for a in np.linspace(0.0, 1.0, 2001)]
    for _ in range(120):
        trial = optimizer.ask()
        if is_dead(optimizer, trial.params):
            break
        optimizer.tell(trial, void=True)
    assert all(is_dead(optimizer, params) for params in grid)
    assert 25 <= len([t for t in optimizer.trials if t.state == "void"]) < 120


@pytest.mark.parametrize("risk", ["ours", "min_safe", "budget"])
@pytest.mark.parametrize("space", SPACES)
def test_no_dead_end_is_proposed_before_anything_is_known(space, risk):
    assert_keeps_clear(crashbo.Optimizer(SPACES[space], risk=RISKS[risk]))


def test_what_is_under_way_in_a_dead_end_is_not_measured_once_more():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, risk=crashbo.MinSafe(0.9))
    first = optimizer.ask()
    assert optimizer.ask().params == first.params
    for _ in range(2):
        optimizer.tell(first.params, void=True)
    assert not is_dead(optimizer, optimizer.ask().params)


@pytest.mark.parametrize("risk", RISKS)
def test_a_batch_keeps_out_of_dead_ends(risk):
    optimizer = spoilt(spoilt(begun("log", risk=RISKS[risk])))
    assert not any(is_dead(optimizer, trial.params) for trial in optimizer.ask_batch(4))


def test_fixed_parameters_stay_fixed():
    optimizer = assert_keeps_clear(begun("log").changed(fixed={"b": 0.3}), rounds=10)
    assert {t.params["b"] for t in optimizer.trials if t.state == "void"} == {0.3}


def two_successes(**options):
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, risk=crashbo.Budget(0), start=[{"x": 0.3}, {"x": 0.5}], **options)
    for cost in (2.0, 1.0):
        optimizer.tell(optimizer.ask(), cost=cost)
    return optimizer


def test_with_the_budget_spent_a_success_is_repeated_that_lies_in_no_dead_end():
    optimizer = two_successes()
    assert optimizer.ask().params == {"x": 0.5}
    for _ in range(2):
        optimizer.tell({"x": 0.51}, void=True)
    assert optimizer.ask().params == {"x": 0.3}
    for _ in range(2):
        optimizer.tell({"x": 0.31}, void=True)
    assert not is_dead(optimizer, optimizer.ask().params)


def test_a_setting_that_succeeded_is_repeated_however_often_it_was_void():
    optimizer = two_successes()
    for _ in range(6):
        trial = optimizer.ask()
        assert trial.params["x"] in (0.3, 0.5)
        optimizer.tell(trial, void="no power")


@pytest.mark.parametrize("strategy", strategies.names())
def test_a_space_that_is_one_dead_end_is_searched_as_if_there_were_none(strategy):
    def study():
        constraint = crashbo.Constraint("load", 0.7 if strategy in ("eic", "safeopt") else None)
        optimizer = crashbo.Optimizer(SPACES["finite"], [constraint], strategy=strategy, start=[{"n": 3, "mode": "u"}])
        optimizer.tell(optimizer.ask(), cost=1.0, measured={"load": 0.1})
        return optimizer

    untouched, used_up = study(), study()
    for n, _ in product(range(10), range(2)):
        used_up.tell({"n": n, "mode": "v"}, void=True)
    fixed = {"mode": "v"}
    assert used_up.changed(fixed=fixed).ask().params == untouched.changed(fixed=fixed).ask().params


def test_voids_far_from_each_other_change_no_proposal():
    untouched, other = begun("log"), begun("log")
    for a, b in [(0.01, 0.2), (1.0, 0.5), (0.1, 0.9)]:
        other.tell({"a": a, "b": b}, void=True)
    assert [t.params for t in other.ask_batch(3)] == [t.params for t in untouched.ask_batch(3)]


def test_a_void_that_is_corrected_makes_no_dead_end():
    optimizer = begun("line")
    expected = crashbo.Optimizer.from_json(optimizer.to_json()).ask().params
    optimizer = spoilt(optimizer)
    assert is_dead(optimizer, expected)
    optimizer.tell(optimizer.trials[-1], cost=-0.1, replace=True)
    assert len(dead(optimizer)) == 0
    assert not optimizer._task().dead_ends.hold(optimizer.space.encode(expected)[None])[0]


def test_a_saved_study_keeps_its_dead_ends():
    optimizer = spoilt(spoilt(begun("mixed")))
    assert crashbo.Optimizer.from_json(optimizer.to_json()).ask().params == optimizer.ask().params


def test_what_users_queue_and_their_own_strategies_are_left_alone():
    def stubborn(task, rng):
        return Proposal(np.full(task.space.dimension, 0.5))

    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, strategy=stubborn, start=[{"x": 0.4}] * 4)
    for _ in range(4):
        trial = optimizer.ask()
        assert trial.params == {"x": 0.4}
        optimizer.tell(trial, void=True)
    optimizer.tell({"x": 0.1}, cost=1.0)
    for x in (0.6, 0.7, 0.8):
        optimizer.tell({"x": x}, cost=1.0)
    for _ in range(3):
        trial = optimizer.ask()
        assert trial.params == {"x": 0.5}
        optimizer.tell(trial, void=True)


def trials(*reasons, successes=0):
    told = [Trial(i, {"x": i}, "void", reason=reason) for i, reason in enumerate(reasons)]
    return [*told, *(Trial(100 + i, {"x": 100 + i}, "success", cost=1.0) for i in range(successes)), Trial(999, {})]


def test_a_void_whose_setting_was_tried_again_is_none_of_too_many():
    told = trials(*["lease ran out"] * 6, successes=3)
    assert too_many(told) is not None
    assert too_many([*told, *(Trial(200 + i, {"x": i}, "crash") for i in range(2))]) is None


def test_five_voids_that_are_a_third_of_what_was_told_are_too_many():
    assert too_many([]) is None
    assert too_many(trials(*["no power"] * 4)) is None
    assert too_many(trials(*["no power"] * 5, successes=11)) is None
    words = too_many(trials(*["no power"] * 5, successes=10))
    assert words.startswith("5 of 15 trials were void, most often because: no power. A void teaches nothing")
    assert "on_timeout or on_error='crash' in minimize" in words
    assert too_many(trials(*[""] * 5)).startswith("5 of 5 trials were void. A void")


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ([], ""),
        (["", " ", "late"], "late"),
        (["late", "cold", "cold"], "cold"),
        (["cold", "cold", "OOM: 3 GB", "OOM: 4 GB", "OOM: 3 GB"], "OOM: 3 GB"),
        (["cold", "KeyError('a')", "KeyError('b')"], "KeyError('a')"),
        ([": odd", ": odd", "late"], ": odd"),
        (["Traceback\n  line " + 100 * "long "], "Traceback line" + 20 * " long" + " ..."),
    ],
)
def test_the_commonest_reason_is_named_whatever_varies_in_it(reasons, words):
    assert commonest(reasons) == words


@pytest.mark.filterwarnings("error")
def test_a_study_warns_once_of_too_many_voids():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)})
    for _ in range(4):
        optimizer.tell(optimizer.ask(), void="MemoryError()")
    with pytest.warns(RuntimeWarning, match=r"5 of 5 trials were void, most often because: MemoryError\(\)\. ") as said:
        optimizer.tell(optimizer.ask(), void="MemoryError()")
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.tell(optimizer.ask(), void="MemoryError()")
