"""Strategies cannot reach the truth: not by what they are given, and it shows in nothing that they do."""

import gc
import types

import numpy as np
import pytest

import crashbo
from crashbo import strategies
from crashbo.problems import Limit, Problem

PRIVILEGED = ("eic", "safeopt")
THRESHOLD = 0.6789012345  # a number that nothing else has
TRIALS = 14


def machine(params):
    x, y = params["x"], params["y"]
    return (x - 0.9) ** 2 + (y - 0.8) ** 2, {"load": 0.5 * x + 0.5 * x * y + 0.3 * y}


def other_machine(params):
    """The same machine as far as successes tell; crashes are dearer, and far beyond another threshold."""
    cost, measured = machine(params)
    if measured["load"] > THRESHOLD:
        return cost + 1000.0, {"load": THRESHOLD + 1.0 + 2.0 * measured["load"]}
    return cost, measured


def problem(simulate=machine, threshold=THRESHOLD):
    return Problem(
        name="secret",
        space={"x": crashbo.Float(0.0, 1.0), "y": crashbo.Float(0.0, 1.0)},
        simulate=simulate,
        limits=(Limit("load", threshold, noise=0.01),),
        cost_noise=0.01,
        source="made up",
        minimum=0.0,
    )


def run(view, strategy, trials=TRIALS):
    """A study on a view of the problem, told what the view says and nothing else."""
    rng = np.random.default_rng(3)
    optimizer = crashbo.Optimizer(
        view.space, view.constraints, strategy=strategy, noise=view.noise, start=[{"x": 0.3, "y": 0.2}], seed=3
    )
    for _ in range(trials):
        trial = optimizer.ask()
        try:
            outcome = view.evaluate(trial.params, rng)
            optimizer.tell(trial, cost=outcome.cost, measured=outcome.measured)
        except crashbo.Crash as crash:
            optimizer.tell(trial, crash=crash)
    return optimizer


def reachable(*roots):
    """Everything that can be reached by attributes, items and closures; code and classes themselves are left out."""
    seen, found, todo = set(), [], list(roots)
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, types.ModuleType | type | types.BuiltinFunctionType):
            continue
        seen.add(id(thing))
        found.append(thing)
        if isinstance(thing, types.FunctionType):  # its globals are a module, which the layers' test looks after
            todo += [thing.__defaults__, thing.__kwdefaults__, thing.__closure__]
        else:
            todo += gc.get_referents(thing)
    return found


def tells_the_truth(found):
    """What among it gives the truth away."""
    numbers = [thing for thing in found if isinstance(thing, float) and thing == THRESHOLD]
    arrays = [a for a in found if isinstance(a, np.ndarray) and a.dtype == float and np.any(a == THRESHOLD)]
    return numbers + arrays + [thing for thing in found if isinstance(thing, Problem | Limit) or thing is machine]


@pytest.mark.parametrize("strategy", [name for name in strategies.names() if name not in PRIVILEGED])
def test_nothing_that_a_strategy_is_given_leads_to_the_truth(strategy):
    optimizer = run(problem(), strategy, trials=5)
    task = optimizer._task()
    found = reachable(task, optimizer._rng)
    assert any(thing is task.seen.X for thing in found)  # the walk has been there
    assert tells_the_truth(found) == []


@pytest.mark.parametrize("strategy", PRIVILEGED)
def test_the_privileged_are_given_the_threshold_and_no_more(strategy):
    optimizer = run(problem().informed(), strategy, trials=5)
    found = tells_the_truth(reachable(optimizer._task(), optimizer._rng))
    assert found  # so the walk does find it where it is
    assert not any(isinstance(thing, Problem | Limit) or thing is machine for thing in found)


@pytest.mark.parametrize("strategy", strategies.names())
def test_two_machines_that_differ_where_nobody_looks_are_searched_alike(strategy):
    one, other = problem(), problem(other_machine, THRESHOLD + 0.5)
    views = [p.informed() if strategy in PRIVILEGED else p for p in (one, other)]
    ours, theirs = (run(view, strategy) for view in views)
    assert [t.state for t in ours.trials].count("crash") > 0 or strategy == "safeopt"
    alike = [t.params for t in ours.trials] == [t.params for t in theirs.trials]
    assert alike == (strategy not in PRIVILEGED)
