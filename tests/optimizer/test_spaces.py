"""Studies in the spaces that people have: rules, conditions, steps, contexts, and settings that ran otherwise."""

import json
import warnings

import numpy as np
import pytest

import crashbo
from crashbo import Choice, Context, Float, Int, Optimizer

MIXTURE = dict.fromkeys("abcde", (0.0, 1.0))
SUM = "a + b + c + d + e == 1"
TRAINING = {
    "model": Choice(["trees", "network"]),
    "depth": Int(1, 8, when={"model": "trees"}),
    "layers": Int(1, 3, when={"model": "network"}),
    "rate": Float(1e-4, 1.0, log=True, when={"model": "network"}),
    "share": Float(0.1, 1.0, step=0.1),
}


def breaks(optimizer, params):
    return [rule.words for rule in optimizer.space.rules if not rule.holds(params)]


def training(params):
    """The network is better, and runs out of time with many layers on much data."""
    if params["model"] == "trees":
        return 0.4 + 0.01 * (params["depth"] - 5) ** 2 - 0.1 * params["share"]
    if params["layers"] * params["share"] > 2.0:
        return None
    return 0.1 + 0.1 * (np.log10(params["rate"]) + 2.0) ** 2 - 0.1 * params["share"] - 0.02 * params["layers"]


def run(optimizer, experiment, trials, context=None):
    for _ in range(trials):
        trial = optimizer.ask(context)
        assert optimizer.space.accepts(trial.params)
        assert not breaks(optimizer, trial.params)
        cost = experiment(trial.params)
        optimizer.tell(trial, crash=True) if cost is None else optimizer.tell(trial, cost=cost)
    return optimizer


@pytest.mark.parametrize("strategy", ["random", "sobol"])
@pytest.mark.parametrize(
    ("space", "rules"),
    [
        (MIXTURE, [SUM]),
        ({"x1": (0.0, 1.0), "x2": (0.0, 1.0), "x3": (0.0, 1.0)}, ["2 * x1 <= x3"]),
        (TRAINING, ["layers * share <= 2", "10 * share >= depth"]),
    ],
)
def test_cheap_proposals_never_break_a_rule(strategy, space, rules):
    optimizer = Optimizer(space, rules=rules, strategy=strategy)
    first = optimizer.ask()
    optimizer.tell(first, cost=0.0)
    task = optimizer._task()
    for _ in range(200):
        proposal = optimizer.study.strategy(task, optimizer._rng)
        params = optimizer.space.decode(proposal.x)
        assert optimizer.space.accepts(params)
        assert not breaks(optimizer, params)


def test_a_mixture_is_searched_on_its_surface():
    best = {"a": 0.5, "b": 0.3, "c": 0.2, "d": 0.0, "e": 0.0}

    def experiment(params):
        assert abs(sum(params.values()) - 1.0) < 1e-12
        return None if params["d"] > 0.5 else sum((params[name] - best[name]) ** 2 for name in best)

    optimizer = run(Optimizer(MIXTURE, rules=[SUM]), experiment, 22)
    assert optimizer.best.cost < 2e-3
    found = optimizer.recommend()
    assert sum(found.params.values()) == pytest.approx(1.0, abs=1e-12)
    batch = optimizer.ask_batch(4)
    assert all(not breaks(optimizer, trial.params) for trial in batch)
    assert len({tuple(trial.params.values()) for trial in batch}) == 4


def test_an_optimum_on_a_rules_edge_is_found():
    def experiment(params):
        return (params["x"] - 0.6) ** 2 + (params["y"] - 0.7) ** 2

    optimizer = run(Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, rules=["2 * x <= y"]), experiment, 18)
    assert optimizer.best.cost == pytest.approx(0.05, abs=1e-3)  # at x = 0.4, y = 0.8


@pytest.mark.parametrize("risk", ["paper", crashbo.Budget(3, trials=20)])
def test_every_risk_keeps_the_rules(risk):
    run(Optimizer(TRAINING, rules=["layers * share <= 2"], risk=risk, seed=1), training, 9)


@pytest.mark.parametrize("strategy", ["ei-ac", "pibu"])
def test_every_strategy_keeps_the_rules(strategy):
    run(Optimizer(TRAINING, rules=["layers * share <= 2"], strategy=strategy), training, 8)


def test_a_strategy_of_ones_own_is_held_to_the_rules():
    def corner(task, rng):
        return crashbo.strategies.Proposal(np.ones(task.space.dimension))

    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, rules=["x + y <= 1"], strategy=corner)
    run(optimizer, lambda params: params["x"], 6)
    assert optimizer.trials[-1].params == pytest.approx({"x": 0.5, "y": 0.5}, abs=1e-6)


def test_an_option_that_a_rule_forbids_is_not_waited_for():
    space = {"mode": Choice(["a", "b"]), "x": (0.0, 1.0), "y": (0.0, 1.0)}
    optimizer = Optimizer(space, rules=[lambda params: params["mode"] == "a"])
    run(optimizer, lambda params: (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2, 14)
    assert optimizer.best.cost < 1e-2


def test_a_batch_is_for_a_context():
    optimizer = told_machine(12)
    batch = optimizer.ask_batch(5, context={"temperature": 20.0})
    assert {trial.params["temperature"] for trial in batch} == {20.0}
    assert len({trial.params["drive"] for trial in batch}) == 5


def test_the_better_branch_is_found_and_params_hold_what_exists():
    optimizer = run(Optimizer(TRAINING, seed=2), training, 22)
    assert optimizer.best.params["model"] == "network"
    assert optimizer.best.cost < -0.01
    for trial in optimizer.trials:
        there = {"trees": {"depth"}, "network": {"layers", "rate"}}[trial.params["model"]]
        assert set(trial.params) == {"model", "share", *there}
    assert set(optimizer.recommend().params) == {"model", "share", "layers", "rate"}
    assert optimizer.p_safe({"model": "trees", "depth": 3, "share": 0.5}) > 0.5


def test_a_start_that_breaks_a_rule_is_refused():
    with pytest.raises(ValueError, match=r"start must keep every rule; got .*, which breaks 'x <= y'\. Mend"):
        Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, rules=["x <= y"], start=[{"x": 1.0, "y": 0.0}])
    kept = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, rules=["x <= y"], start=[{"x": 0.3, "y": 0.3}])
    assert kept.ask().params == {"x": 0.3, "y": 0.3}


def test_what_breaks_a_rule_is_kept_with_one_warning():
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, rules=["x <= y"])
    with pytest.warns(RuntimeWarning, match="trial 0 ran at params that break the rule 'x <= y'"):
        optimizer.tell({"x": 0.9, "y": 0.1}, cost=-5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.tell({"x": 0.8, "y": 0.1}, cost=-4.0)
    assert optimizer.best.params == {"x": 0.9, "y": 0.1}
    (finding,) = [f for f in optimizer.check() if f.kind == "rule"]
    assert finding.trials == (0, 1)
    assert "'x <= y' was broken by trials 0 and 1" in finding.words
    run(optimizer, lambda params: params["y"] - params["x"], 8)
    with pytest.raises(ValueError, match="params must keep every rule"):
        optimizer.confirm(2, {"x": 0.9, "y": 0.1})
    assert optimizer.confirm(1).params["x"] <= optimizer.confirm(1).params["y"]


def small(params):
    return params["x"] < 0.5


def test_rules_are_saved_with_a_study_and_can_be_changed(tmp_path):
    optimizer = run(Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, rules=["x <= y"]), lambda p: p["y"], 6)
    again = Optimizer.from_json(optimizer.to_json())
    assert again.study == optimizer.study
    assert again.ask().params == optimizer.ask().params
    other = optimizer.changed(rules=["x >= y"])
    assert other.ask().params["x"] >= other.ask().params["y"]
    assert not optimizer.changed(rules=[]).space.rules
    own = Optimizer({"x": (0.0, 1.0)}, rules=[small])
    with pytest.raises(ValueError, match="rules must be passed again"):
        Optimizer.from_json(own.to_json())
    assert Optimizer.from_json(own.to_json(), rules=[small]).ask().params == own.ask().params


def test_a_journal_goes_on_in_such_a_space(tmp_path):
    said = {"trials": 7, "rules": ["layers * share <= 2"], "progress": False, "on_nan": "crash"}

    def experiment(params):
        return training(params)

    whole = crashbo.minimize(experiment, TRAINING, **said)
    crashbo.minimize(experiment, TRAINING, journal=tmp_path / "j", **(said | {"trials": 4}))
    again = crashbo.minimize(experiment, TRAINING, journal=tmp_path / "j", **said)
    assert [t.params for t in again.trials] == [t.params for t in whole.trials]
    with pytest.raises(ValueError, match=r"journal must belong to this study; .* has rules"):
        crashbo.minimize(experiment, TRAINING, journal=tmp_path / "j", **(said | {"rules": ["share <= 0.5"]}))


def test_rules_that_nothing_keeps_are_refused_at_once():
    for rules, words in ((["x <= z"], "rules must name parameters"), (["x > 2"], "rules must be kept by some params")):
        with pytest.raises(ValueError, match=words):
            Optimizer({"x": (0.0, 1.0)}, rules=rules)


KNOB = {"gain": Float(0.0, 1.0, step=0.05), "mode": Choice(["a", "b"])}


def test_models_learn_from_what_ran():
    optimizer, other = Optimizer(KNOB), Optimizer(KNOB)
    for _ in range(6):
        trial = optimizer.ask()
        ran = trial.params["gain"] + 0.013
        told = optimizer.tell(trial, cost=ran**2, ran={"gain": ran})
        assert told.params == trial.params
        assert told.ran == {**trial.params, "gain": ran}
        other.tell({**trial.params, "gain": min(ran, 1.0)}, cost=ran**2)
    at = {"gain": 0.3, "mode": "a"}
    assert optimizer.predict([at]).cost[0] == pytest.approx(other.predict([at]).cost[0], rel=0.05, abs=0.02)
    assert optimizer.best.ran["gain"] == optimizer.best.params["gain"] + 0.013
    assert optimizer.table()[0]["as_run"] == optimizer.trials[0].ran
    again = Optimizer.from_json(optimizer.to_json())
    assert again.trials == optimizer.trials
    assert again.ask().params == optimizer.ask().params


def test_what_ran_as_proposed_is_the_same():
    optimizer = Optimizer(KNOB)
    trial = optimizer.ask()
    assert trial.ran == trial.params
    told = optimizer.tell(trial, cost=1.0, ran=dict(trial.params))
    assert told.as_run == {}
    changed = optimizer.tell(trial, cost=1.0, ran={"gain": 0.31}, replace=True)
    assert changed.ran["gain"] == 0.31
    assert optimizer.tell(trial, cost=1.0, replace=True).ran == trial.params


@pytest.mark.parametrize(
    ("ran", "words"), [(5, "ran must map"), ({"x": 1}, "ran must name"), ({"gain": "a"}, "ran.* must")]
)
def test_what_cannot_have_run_is_refused(ran, words):
    optimizer = Optimizer(KNOB)
    trial = optimizer.ask()
    with pytest.raises(ValueError, match=words):
        optimizer.tell(trial, cost=1.0, ran=ran)
    assert optimizer.trials[0].state == "pending"


MACHINE = {"drive": (0.0, 1.0), "temperature": Context(5.0, 40.0)}


def machine(params):
    """It trips at a level that falls as it gets warm; the harder it is driven, the better."""
    if params["drive"] > 0.9 - 0.6 * (params["temperature"] - 5.0) / 35.0:
        return None
    return -params["drive"]


def test_a_context_that_is_told_in_two_ways_must_be_told_alike():
    optimizer = Optimizer(MACHINE)
    trial = optimizer.ask(context={"temperature": 20.0})
    with pytest.raises(ValueError, match=r"ran and context must agree; got 21.0 and 22.0 for 'temperature'"):
        optimizer.tell(trial, cost=1.0, ran={"temperature": 21.0}, context={"temperature": 22.0})
    told = optimizer.tell(trial, cost=1.0, ran={"temperature": 21.0}, context={"temperature": 21.0})
    assert told.ran["temperature"] == 21.0


def told_machine(trials=24):
    optimizer, rng = Optimizer(MACHINE, seed=3), np.random.default_rng(0)
    for _ in range(trials):
        given = float(rng.uniform(5.0, 40.0))
        trial = optimizer.ask(context={"temperature": given})
        assert trial.params["temperature"] == given
        met = {"temperature": given + 0.5}
        cost = machine({**trial.params, **met})
        said = {"crash": True} if cost is None else {"cost": cost}
        told = optimizer.tell(trial, context=met, **said)
        assert told.ran["temperature"] == met["temperature"]
        assert told.params["temperature"] == given
    return optimizer


def test_p_safe_and_what_is_best_are_for_a_context():
    optimizer = told_machine()
    cold, hot = {"temperature": 7.0}, {"temperature": 38.0}
    assert optimizer.p_safe({"drive": 0.6, **cold}) > 0.8
    assert optimizer.p_safe({"drive": 0.6, **hot}) < 0.4
    assert optimizer.p_safe({"drive": 0.6}, context=hot) == optimizer.p_safe({"drive": 0.6, **hot})
    best = {name: optimizer.recommend(context=context) for name, context in (("cold", cold), ("hot", hot))}
    assert best["cold"].params["temperature"] == 7.0
    assert best["cold"].params["drive"] > best["hot"].params["drive"] + 0.2
    assert machine(best["cold"].params) is not None
    assert machine(best["hot"].params) is not None
    again = Optimizer.from_json(optimizer.to_json())
    assert again.ask(context=hot).params == optimizer.ask(context=hot).params


def test_a_context_is_asked_for():
    optimizer = Optimizer(MACHINE, start=[{"drive": 0.2}])
    for context in (None, {}, {"drive": 1.0}, {"temperature": "warm"}, {"temperature": 5.0, "more": 1}):
        with pytest.raises(ValueError, match="must"):
            optimizer.ask(context=context)
    trial = optimizer.ask(context={"temperature": 50.0})  # it may be hotter than was expected
    assert trial.params == {"drive": 0.2, "temperature": 50.0}
    with pytest.raises(ValueError, match="context must name contexts"):
        optimizer.tell(trial, cost=1.0, context={"drive": 0.3})
    optimizer.tell(trial, cost=1.0)
    optimizer.tell({"drive": 0.3}, cost=0.9, context={"temperature": 20.0})
    assert optimizer.trials[1].params == {"drive": 0.3, "temperature": 20.0}
    with pytest.raises(ValueError, match="context must give"):
        Optimizer({"x": (0.0, 1.0)}).ask(context={"temperature": 1.0})


def test_minimize_takes_a_context_or_a_function_that_says_it():
    days = iter(np.linspace(6.0, 39.0, 12))
    result = crashbo.minimize(
        lambda params: float("nan") if machine(params) is None else machine(params),
        MACHINE,
        trials=12,
        on_nan="crash",
        context=lambda: {"temperature": float(next(days))},
        progress=False,
    )
    assert [t.params["temperature"] for t in result.trials] == pytest.approx(list(np.linspace(6.0, 39.0, 12)))
    assert result.recommend(context={"temperature": 10.0}).params["temperature"] == 10.0
    fixed = crashbo.minimize(lambda p: p["drive"], MACHINE, trials=3, context={"temperature": 9.0}, progress=False)
    assert {t.params["temperature"] for t in fixed.trials} == {9.0}


def test_an_experiment_says_what_ran_and_what_it_met(tmp_path):
    def experiment(params):
        ran, met = {"x": round(params["x"], 1)}, {"t": params["t"] + 0.5}
        if params["x"] > 0.6:
            raise crashbo.Crash("tripped", ran=ran, context=met)
        return crashbo.Outcome(params["x"], ran=ran, context=met)

    space, path = {"x": Float(0.0, 1.0), "t": Context(0.0, 40.0)}, tmp_path / "study.jsonl"
    for workers in (None, 1):
        result = crashbo.minimize(
            experiment,
            space,
            trials=6,
            context={"t": 20.0},
            start=[{"x": 0.31}, {"x": 0.92}],
            progress=False,
            workers=workers,
            journal=path if workers is None else None,
        )
        success, crash = result.trials[:2]
        assert (success.params, success.ran) == ({"x": 0.31, "t": 20.0}, {"x": 0.3, "t": 20.5})
        assert (crash.state, crash.ran) == ("crash", {"x": 0.9, "t": 20.5})
    assert [t.ran for t in crashbo.load(path).trials[:2]] == [success.ran, crash.ran]


def test_a_rule_may_name_a_context():
    optimizer = Optimizer(MACHINE, rules=["drive <= 1 - temperature / 50"])
    for temperature in (10.0, 40.0, 20.0, 39.0):
        trial = optimizer.ask(context={"temperature": temperature})
        assert trial.params["drive"] <= 1 - temperature / 50
        optimizer.tell(trial, cost=trial.params["drive"])


def test_every_kind_of_parameter_is_saved():
    space = {**TRAINING, "grade": Choice([("a", 1), ("b", 2)], ordered=True), "t": Context(1.0, 9.0, log=True)}
    space["inner"] = Float(0.0, 1.0, when={"grade": [("b", 2)]})
    optimizer = Optimizer(space)
    text = optimizer.to_json()
    assert Optimizer.from_json(text).study == optimizer.study
    assert "when" not in json.loads(Optimizer({"x": (0.0, 1.0)}).to_json())["config"]["space"]["parameters"]["x"]
