"""Studies in which trials are compared: prefer, ties, corrections, what is refused, and what is found."""

import json
from typing import Any

import numpy as np
import pytest

import crashbo
from crashbo import Comparison, Optimizer

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


def cost(params: dict[str, Any]) -> float:
    """Hidden from the optimiser: best at (0.3, 0.6)."""
    return float((params["a"] - 0.3) ** 2 + (params["b"] - 0.6) ** 2)


def crashes(params: dict[str, Any]) -> bool:
    return bool(params["a"] + params["b"] > 1.4)


def run(optimizer: Optimizer, trials: int) -> None:
    """So many trials; each success is compared with its rival."""
    for _ in range(trials):
        trial = optimizer.ask()
        if crashes(trial.params):
            optimizer.tell(trial, crash=True)
            continue
        load = {"load": trial.params["a"] + trial.params["b"]} if optimizer.study.measured else None
        optimizer.tell(trial, success=True, measured=load)
        if trial.against is not None:
            rival = optimizer.trials[trial.against]
            pair = (trial, rival) if cost(trial.params) < cost(rival.params) else (rival, trial)
            optimizer.prefer(*pair)


@pytest.fixture
def two() -> Optimizer:
    """Two successes, a crash, a void, and one that is pending: trials 0 to 4."""
    optimizer = Optimizer(SPACE, cost="compared")
    for a, said in ((0.2, {"success": True}), (0.8, {"success": True}), (0.9, {"crash": True}), (0.1, {"void": True})):
        optimizer.tell({"a": a, "b": 0.5}, **said)  # type: ignore[arg-type]
    optimizer.ask()
    return optimizer


def test_a_study_without_costs_finds_the_best() -> None:
    optimizer = Optimizer(SPACE, ["load"], cost="compared", seed=1)
    run(optimizer, 22)
    best, recommended = optimizer.best, optimizer.recommend()
    assert best is not None
    assert recommended is not None
    assert cost(best.params) < 0.01
    assert cost(recommended.params) < 0.01
    assert sum(t.state == "crash" for t in optimizer.trials) <= 6
    assert optimizer.thresholds["load"].value is not None


def test_the_winner_is_what_the_next_trial_is_compared_with() -> None:
    optimizer = Optimizer(SPACE, cost="compared")
    first = optimizer.ask()
    assert first.against is None
    optimizer.tell(first, success=True)
    second = optimizer.ask()
    assert second.against == 0
    optimizer.tell(second, success=True)
    optimizer.prefer(second, first)
    assert optimizer.best is not None
    assert optimizer.best.number == 1
    assert optimizer.ask().against == 1


def test_worth_is_lower_for_the_better_and_sure_where_there_are_trials() -> None:
    optimizer = Optimizer(SPACE, cost="compared", seed=1)
    assert np.isnan(optimizer.worth({"a": 0.5, "b": 0.5}).mean)
    run(optimizer, 12)
    ranking = optimizer.ranking()
    assert [r.mean for r in ranking] == sorted(r.mean for r in ranking)
    assert optimizer.best is not None
    assert ranking[0].number == optimizer.best.number
    best, last = (optimizer.worth(optimizer.trials[r.number].params) for r in (ranking[0], ranking[-1]))
    assert best.mean < last.mean
    assert best.std > 0.0
    both = optimizer.worth([optimizer.trials[r.number].params for r in ranking[:2]])
    assert both.mean.shape == both.std.shape == (2,)
    assert np.isclose(both.mean[0], best.mean)


def test_numbers_and_trials_are_taken_alike_and_ties_are_kept(two: Optimizer) -> None:
    assert two.prefer(0, two.trials[1]) == Comparison(0, 1)
    assert two.prefer(np.int64(1), 0, tie=True) == Comparison(1, 0, tie=True)  # type: ignore[arg-type]
    assert two.comparisons == [Comparison(0, 1), Comparison(1, 0, True)]


@pytest.mark.parametrize(
    ("better", "worse", "words"),
    [
        (0, 2, "trial 2 must be a success to be compared; it is a crash. A crash is not worse"),
        (3, 0, "trial 3 must be a success to be compared; it is a void"),
        (0, 4, "trial 4 must be a success to be compared; it is pending. Tell it first"),
        (0, 0, "must be two trials; got trial 0 twice"),
        (0, 9, "worse must be a trial of this study, or its number; got 9"),
        ("x", 0, "better must be a trial of this study, or its number; got 'x'"),
        (True, 0, "better must be a trial of this study"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(two: Optimizer, better: Any, worse: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        two.prefer(better, worse)
    assert two.comparisons == []


def test_a_tie_is_yes_or_no(two: Optimizer) -> None:
    with pytest.raises(ValueError, match="tie must be True or False; got 'maybe'"):
        two.prefer(0, 1, tie="maybe")  # type: ignore[arg-type]


def test_a_comparison_can_be_corrected_and_taken_back(two: Optimizer) -> None:
    two.prefer(0, 1)
    two.prefer(1, 0, replace=True)
    assert two.comparisons == [Comparison(1, 0)]
    assert two.best is not None
    assert two.best.number == 1
    two.prefer(0, 1, tie=True)
    assert two.unprefer() == Comparison(0, 1, tie=True)
    assert two.unprefer(0, 1) == Comparison(1, 0)
    with pytest.raises(ValueError, match="must have a comparison to take back"):
        two.unprefer()
    with pytest.raises(ValueError, match="must have been compared to be corrected"):
        two.prefer(0, 1, replace=True)


def test_a_comparison_waits_while_its_trial_is_corrected_to_a_crash(two: Optimizer) -> None:
    two.prefer(0, 1)
    two.tell(0, crash=True, replace=True)
    assert two.comparisons == [Comparison(0, 1)]
    assert two.best is not None
    assert two.best.number == 1
    two.tell(0, success=True, replace=True)
    assert two.best.number == 0


def test_a_success_without_a_number_teaches_safety_in_any_study() -> None:
    optimizer = Optimizer(SPACE, ["load"])
    trial = optimizer.tell({"a": 0.5, "b": 0.5}, success=True, measured={"load": 1.0}, note="no scale at hand")
    assert trial.state == "success"
    assert trial.cost is None
    assert trial.measured == {"load": 1.0}
    optimizer.tell({"a": 0.9, "b": 0.9}, crash=True)
    assert optimizer.best is None
    assert optimizer.p_safe({"a": 0.5, "b": 0.5}) > optimizer.p_safe({"a": 0.9, "b": 0.9})
    assert optimizer.ask().state == "pending"


def test_success_and_cost_exclude_each_other() -> None:
    optimizer = Optimizer(SPACE)
    with pytest.raises(ValueError, match="exactly one of cost, success, crash, stopped and void"):
        optimizer.tell({"a": 0.5, "b": 0.5}, success=True, cost=1.0)
    with pytest.raises(ValueError, match="success must be True"):
        optimizer.tell({"a": 0.5, "b": 0.5}, success="yes")  # type: ignore[typeddict-item]
    with pytest.raises(ValueError, match="blame must belong to a crash"):
        optimizer.tell({"a": 0.5, "b": 0.5}, success=True, blame="crash")


def test_numbers_and_comparisons_mix() -> None:
    optimizer = Optimizer(SPACE, seed=3)
    for i, (a, b) in enumerate(np.random.default_rng(0).random((8, 2)).tolist()):
        params = {"a": a, "b": b}
        optimizer.tell(params, **({"cost": 10.0 + cost(params)} if i % 2 else {"success": True}))  # type: ignore[arg-type]
    for i in range(7):
        left, right = optimizer.trials[i], optimizer.trials[i + 1]
        optimizer.prefer(*((left, right) if cost(left.params) < cost(right.params) else (right, left)))
    true = [cost(t.params) for t in optimizer.trials]
    mean = [optimizer.worth(t.params).mean for t in optimizer.trials]
    assert np.corrcoef(true, mean)[0, 1] > 0.9
    assert all(9.0 < m < 12.0 for m in mean)  # the scale is that of the numbers
    assert optimizer.best is not None
    assert true[optimizer.best.number] <= sorted(true)[1]


def test_a_study_that_maximises_has_higher_worth_for_the_better() -> None:
    optimizer = Optimizer(SPACE, direction="maximize")
    optimizer.tell({"a": 0.2, "b": 0.5}, cost=5.0)
    optimizer.tell({"a": 0.8, "b": 0.5}, success=True)
    optimizer.prefer(1, 0)
    assert optimizer.worth({"a": 0.8, "b": 0.5}).mean > optimizer.worth({"a": 0.2, "b": 0.5}).mean
    assert optimizer.best is not None
    assert optimizer.best.number == 1


def test_a_saved_study_goes_on_with_the_same_proposals() -> None:
    optimizer = Optimizer(SPACE, ["load"], cost="compared", seed=4)
    run(optimizer, 9)
    again = Optimizer.from_json(optimizer.to_json())
    assert again.study.compared
    assert again.comparisons == optimizer.comparisons
    assert again.trials == optimizer.trials
    assert again.ask() == optimizer.ask()


def test_a_study_saved_without_comparisons_loads() -> None:
    saved = json.loads(Optimizer(SPACE).to_json())
    del saved["comparisons"]
    del saved["config"]["cost"]
    assert Optimizer.from_json(json.dumps(saved)).comparisons == []


def test_a_changed_study_keeps_its_comparisons(two: Optimizer) -> None:
    two.prefer(0, 1)
    other = two.changed(space={"a": (0.0, 2.0), "b": (0.0, 1.0)})
    other.prefer(1, 0)
    assert two.comparisons == [Comparison(0, 1)]
    assert other.comparisons == [Comparison(0, 1), Comparison(1, 0)]


@pytest.mark.parametrize("risk", ["paper", crashbo.MinSafe(0.8), crashbo.Budget(3, 20), crashbo.Price(2)])
def test_every_risk_runs_a_compared_study(risk: Any) -> None:
    optimizer = Optimizer(SPACE, ["load"], cost="compared", risk=risk, seed=5)
    run(optimizer, 9)
    assert optimizer.best is not None
    assert optimizer.gain_left() is not None
    assert isinstance(optimizer.check(), list)


def test_batches_and_trials_nobody_has_compared_yet_spread() -> None:
    optimizer = Optimizer(SPACE, cost="compared", seed=6)
    run(optimizer, 6)
    for trial in optimizer.ask_batch(3):
        optimizer.tell(trial, success=True)
    batch = optimizer.ask_batch(3)
    points = np.array([[t.params["a"], t.params["b"]] for t in batch])
    assert min(np.abs(p - q).max() for i, p in enumerate(points) for q in points[:i]) > 0.01
    assert all(t.against is not None for t in batch)


def test_confirm_repeats_the_winner(two: Optimizer) -> None:
    two.prefer(1, 0)
    two.confirm(2)
    assert two.ask().params == two.trials[1].params


def test_what_needs_costs_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="strategy must be 'eicc', 'random', 'sobol' or your own where"):
        Optimizer(SPACE, cost="compared", strategy="ei-hc")
    with pytest.raises(ValueError, match="cost must be left out where there are objectives"):
        Optimizer(SPACE, cost="compared", objectives={"time": "minimize", "loss": "minimize"})
    with pytest.raises(ValueError, match="cost must be a number where there is a context"):
        Optimizer({**SPACE, "heat": crashbo.Context(5.0, 40.0)}, cost="compared")
    with pytest.raises(ValueError, match="cost must be None or 'compared'; got 'hidden'"):
        Optimizer(SPACE, cost="hidden")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cost must be a number that the experiment returns"):
        crashbo.minimize(cost, SPACE, cost="compared", trials=3)


def test_comparisons_that_come_late_make_another_model_at_once() -> None:
    optimizer = Optimizer(SPACE, seed=8)
    for a, b in np.random.default_rng(0).random((33, 2)).tolist():
        optimizer.tell({"a": a, "b": b}, cost=cost({"a": a, "b": b}))
    optimizer.ask()  # from here on hyperparameters are held
    new = optimizer.tell({"a": 0.9, "b": 0.1}, success=True)
    optimizer.prefer(0, new)
    optimizer.ask()
    assert optimizer._memory is not None
    assert optimizer._memory.cost is not None
    assert optimizer._memory.cost.hypers[0].threshold == 0.0  # no ties
    assert optimizer.worth(new.params).mean > optimizer.worth(optimizer.trials[0].params).mean
    optimizer.unprefer()
    assert optimizer.ask().state == "pending"
    assert optimizer.check() is not None
