"""ask and tell: every form of it, and what is refused."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from machines import SPACE, run, telling

import crashbo
from crashbo.search import fitting
from crashbo.strategies import base

HERE, THERE = {"x": 0.2, "y": 0.3}, {"x": 0.9, "y": 0.8}


def study(constraints=("load",), **kwargs):
    return crashbo.Optimizer(SPACE, list(constraints), **kwargs)


def test_an_asked_trial_is_pending_until_it_is_told():
    optimizer = study()
    trial = optimizer.ask()
    assert (trial.number, trial.state, trial.cost) == (0, "pending", None)
    told = optimizer.tell(trial, cost=1.5, measured={"load": 0.4})
    assert (told.number, told.params, told.state, told.cost) == (0, trial.params, "success", 1.5)
    assert told.measured == {"load": 0.4}
    assert optimizer.trials == [told]
    assert trial.state == "pending"


def test_a_crash_may_be_told_as_true_as_text_and_as_a_crash():
    optimizer = study(["load", "heat"])
    crash = crashbo.Crash("fuse", blame="load", measured={"load": 130.0})
    plain = optimizer.tell(optimizer.ask(), crash=True)
    text = optimizer.tell(optimizer.ask(), crash="boards tripped", blame=["load", "heat"])
    full = optimizer.tell(optimizer.ask(), crash=crash)
    more = optimizer.tell(optimizer.ask(), crash=crash, blame="heat", measured={"heat": 80.0})
    assert {t.state for t in optimizer.trials} == {"crash"}
    assert (plain.reason, plain.blame, plain.measured, plain.cost) == ("", (), {}, None)
    assert (text.reason, text.blame) == ("boards tripped", ("load", "heat"))
    assert (full.reason, full.blame, full.measured) == ("fuse", ("load",), {"load": 130.0})
    assert (more.reason, more.blame, more.measured) == ("fuse", ("heat",), {"load": 130.0, "heat": 80.0})


def test_a_void_is_kept_with_its_reason_and_is_neither_success_nor_crash():
    optimizer = study()
    optimizer.tell(optimizer.ask(), void="robot was unplugged")
    optimizer.tell(optimizer.ask(), void=True)
    assert [t.state for t in optimizer.trials] == ["void", "void"]
    assert [t.reason for t in optimizer.trials] == ["robot was unplugged", ""]
    assert optimizer.best is None
    assert np.isnan(optimizer.p_safe(HERE))


def test_a_trial_may_be_told_by_its_number():
    optimizer = study()
    optimizer.ask()
    assert optimizer.tell(0, cost=1.0).state == "success"


def test_a_trial_that_was_never_asked_is_learnt_from():
    optimizer = study()
    told = optimizer.tell(HERE, cost=0.5, measured={"load": 0.5})
    crashed = optimizer.tell(THERE, crash=True)
    assert (told.number, crashed.number) == (0, 1)
    assert told.origin == "told"
    assert optimizer.best == told
    assert optimizer.p_safe(HERE) > optimizer.p_safe(THERE)
    assert optimizer.ask().number == 2


def test_telling_does_not_change_its_arguments():
    params, measured = dict(HERE), {"load": 0.5}
    study().tell(params, cost=1.0, measured=measured)
    assert (params, measured) == (HERE, {"load": 0.5})


def test_telling_twice_is_an_error_unless_it_is_a_correction():
    optimizer = study()
    trial = optimizer.ask()
    optimizer.tell(trial, cost=1.0)
    with pytest.raises(ValueError, match=r"^trial 0 must be pending to be told; it is a success\. Pass replace=True"):
        optimizer.tell(trial, cost=2.0)
    assert optimizer.trials[0].cost == 1.0
    optimizer.tell(trial, cost=2.0, measured={"load": 3.0}, replace=True)
    assert (optimizer.trials[0].cost, optimizer.trials[0].measured) == (2.0, {"load": 3.0})
    optimizer.tell(trial, crash="in truth it tripped", replace=True)
    assert (optimizer.trials[0].state, optimizer.trials[0].cost) == ("crash", None)
    assert optimizer.best is None
    assert len(optimizer.trials) == 1


def test_a_correction_is_honoured_by_the_models():
    corrected, right = study(), study()
    for optimizer in (corrected, right):
        for i, (x, y) in enumerate(np.random.default_rng(0).random((10, 2))):
            wrong = optimizer is corrected and i in (4, 6)
            params = {"x": x, "y": y}
            optimizer.tell(params, **({"cost": 50.0, "measured": {"load": 9.0}} if wrong else telling(params)))
    assert abs(corrected.p_safe(HERE) - right.p_safe(HERE)) > 1e-3
    for number in (4, 6):
        corrected.tell(number, **telling(corrected.trials[number].params), replace=True)
    for params in (HERE, THERE, {"x": 0.6, "y": 0.6}):
        assert corrected.p_safe(params) == pytest.approx(right.p_safe(params), abs=1e-6)
    assert corrected.recommend().cost == pytest.approx(right.recommend().cost, abs=1e-6)
    assert corrected.ask().params == pytest.approx(right.ask().params, abs=1e-6)


def test_a_correction_after_many_asks_is_honoured_by_the_models():
    optimizer = study(seed=1)
    run(optimizer, 9)
    before = optimizer.p_safe(optimizer.best.params)
    best = optimizer.best
    optimizer.tell(best, crash=True, replace=True)
    assert optimizer.best.number != best.number
    assert optimizer.p_safe(best.params) < before - 0.2


def test_the_order_of_tells_does_not_matter_to_the_models():
    orders = [range(8), reversed(range(8)), [3, 0, 7, 5, 1, 6, 2, 4]]
    tables = []
    for order in orders:
        optimizer = study()
        trials = [optimizer.ask() for _ in range(8)]
        for i in order:
            optimizer.tell(trials[i], **telling(trials[i].params))
        tables.append(optimizer.p_safe([HERE, THERE, {"x": 0.5, "y": 0.65}]))
        assert [t.number for t in optimizer.trials] == list(range(8))
    np.testing.assert_allclose(tables[1], tables[0], atol=1e-6)
    np.testing.assert_allclose(tables[2], tables[0], atol=1e-6)


def test_the_order_of_trials_that_were_never_asked_does_not_matter_to_the_models():
    X = np.random.default_rng(2).random((14, 2))
    tables = []
    for order in (np.arange(14), np.arange(14)[::-1], np.random.default_rng(0).permutation(14)):
        optimizer = study()
        for x, y in X[order]:
            optimizer.tell({"x": x, "y": y}, **telling({"x": x, "y": y}))
        tables.append(optimizer.p_safe([HERE, THERE, {"x": 0.5, "y": 0.65}]))
    np.testing.assert_allclose(tables[1], tables[0], atol=1e-6)
    np.testing.assert_allclose(tables[2], tables[0], atol=1e-6)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (r"tell must get exactly one of cost, success, crash, stopped and void; got .+\. A crash has no cost", {}),
        (r"tell must get exactly one .+; got .+\. ", {"cost": 1.0, "crash": True}),
        (r"tell must get exactly one .+; got .+\. ", {"crash": True, "void": True}),
        (r"tell must get exactly one .+; got .+\. ", {"crash": False}),
        (r"cost must be a finite number; got nan\. ", {"cost": float("nan")}),
        (r"cost must be a finite number; got inf\. ", {"cost": float("inf")}),
        (r"cost must be a finite number; got 10+\. ", {"cost": 10**400}),
        (r"crash must be True, or say why in words; got 0\. ", {"crash": 0}),
        (r"void must be True, or say why in words; got 1\.5\. ", {"void": 1.5}),
        (r"measured must map constraints to values; got 5\.0\. ", {"cost": 1.0, "measured": 5.0}),
        (r"cost must be a finite number; got '3'\. ", {"cost": "3"}),
        (r"cost must be a finite number; got True\. ", {"cost": True}),
        (r"cost must be a finite number; got \[1\.0\]\. ", {"cost": [1.0]}),
        (r"measured must name constraints \(load\); got 'laod'\. ", {"cost": 1.0, "measured": {"laod": 1.0}}),
        (r"measured\['load'\] must be a finite number; got nan\. ", {"cost": 1.0, "measured": {"load": np.nan}}),
        (r"measured\['load'\] must be a finite number; got None\. ", {"crash": True, "measured": {"load": None}}),
        (r"blame must name constraints \(load\); got 'heat'\. ", {"crash": True, "blame": "heat"}),
        (r"blame must name constraints \(load\); got 'heat'\. ", {"crash": crashbo.Crash("", blame=["load", "heat"])}),
        (r"blame must belong to a crash; got 'load' .+\. ", {"cost": 1.0, "blame": "load"}),
    ],
)
def test_a_wrong_outcome_is_refused_in_one_sentence_and_changes_nothing(words, told):
    optimizer = study()
    trial = optimizer.ask()
    with pytest.raises(ValueError, match=rf"^{words}[^\n]*$"):
        optimizer.tell(trial, **told)
    assert optimizer.trials == [trial]
    optimizer.tell(trial, cost=1.0)


def test_a_refused_trial_uses_up_no_number():
    optimizer = study()
    with pytest.raises(ValueError, match="cost must"):
        optimizer.tell(HERE, cost=float("nan"))
    assert optimizer.tell(HERE, cost=1.0).number == 0


@pytest.mark.parametrize("wrong", [{"x": 0.1}, {"x": 0.1, "y": 3.0}, {"x": 0.1, "y": 0.1, "z": 0.1}])
def test_params_outside_the_space_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=r"^(params|y) must [^\n]+; got [^\n]+\. [A-Z]"):
        study().tell(wrong, cost=1.0)
    with pytest.raises(ValueError, match=r"^(params|y) must "):
        study(start=[wrong])


def test_a_trial_of_another_study_is_refused():
    with pytest.raises(ValueError, match=r"^trial must be one of this study; got number 7\. "):
        study().tell(7, cost=1.0)


@pytest.mark.parametrize(
    ("words", "kwargs"),
    [
        (r"direction must be 'minimize' or 'maximize'; got 'up'\. ", {"direction": "up"}),
        (r"risk must be .+; got 'bold'\. ", {"risk": "bold"}),
        (r"noise must be a standard deviation >= 0, or None; got -1\. ", {"noise": -1}),
        (r"noise must name 'cost' or constraints; got \['heat'\]\. ", {"noise": {"heat": 0.1}}),
        (r"noise must be a standard deviation >= 0, or None; got -0\.1\. ", {"noise": {"load": -0.1}}),
        (r"constraints must have different names; got .+\. ", {"constraints": ["load", "load"]}),
        (r"constraints must be names, Constraint or Unmeasured; got 3\. ", {"constraints": [3]}),
    ],
)
def test_a_wrong_study_is_refused_in_one_sentence(words, kwargs):
    with pytest.raises(ValueError, match=rf"^{words}[^\n]*$"):
        study(**kwargs)


@pytest.mark.parametrize(
    ("words", "make"),
    [
        (r"side must be 'above' or 'below'; got 'left'\. ", lambda: crashbo.Constraint("a", side="left")),
        (r"threshold must be None, a number or a pair .+; got \(2, 1\)\. ", lambda: crashbo.Constraint("a", (2, 1))),
        (r"threshold must be .+; got 'high'\. ", lambda: crashbo.Constraint("a", "high")),
        (r"threshold must be .+; got nan\. ", lambda: crashbo.Constraint("a", float("nan"))),
        (r"constraint must have a name; got ''\. ", lambda: crashbo.Constraint("")),
    ],
)
def test_a_wrong_constraint_is_refused_in_one_sentence(words, make):
    with pytest.raises(ValueError, match=rf"^{words}[^\n]*$"):
        make()


def test_start_points_come_first_and_in_their_order():
    start = [THERE, HERE, {"x": 1, "y": 0}]
    optimizer = study(start=start)
    assert run(optimizer, 3) == start
    assert [t.origin for t in optimizer.trials] == ["start"] * 3
    assert optimizer.ask().origin == "search"


def test_without_start_points_the_first_trials_fill_the_space():
    optimizer = study()
    X = np.array([list(optimizer.ask().params.values()) for _ in range(4)])
    assert {t.origin for t in optimizer.trials} == {"design"}
    gaps = np.linalg.norm(X[:, None] - X[None], axis=2)[~np.eye(4, dtype=bool)]
    assert gaps.min() > 0.25


def test_a_cautious_study_without_start_points_begins_in_the_centre():
    for risk in (crashbo.Budget(3, 20), crashbo.MinSafe(0.9)):
        assert study(risk=risk).ask().params == {"x": 0.5, "y": 0.5}


@pytest.mark.parametrize("constraints", [[], None, [crashbo.Unmeasured("other")]])
def test_crashes_are_learnt_from_when_nothing_is_measured(constraints):
    optimizer = crashbo.Optimizer(SPACE, constraints)
    for x, y in np.random.default_rng(0).random((20, 2)):
        outcome = telling({"x": x, "y": y})
        outcome.pop("measured", None)
        optimizer.tell({"x": x, "y": y}, **outcome)
    assert optimizer.thresholds == {}
    assert optimizer.p_safe({"x": 0.3, "y": 0.3}) > 0.9
    assert optimizer.p_safe({"x": 0.9, "y": 0.9}) < 0.2


def test_the_text_of_another_format_is_refused():
    text = study().to_json()
    for wrong in ("no json", "[]", "{}", text.replace('"crashbo": 1', '"crashbo": 99')):
        with pytest.raises(ValueError, match=r"^text must [^\n]+; got [^\n]+\. [A-Z]"):
            crashbo.Optimizer.from_json(wrong)


def test_everything_that_defines_a_study_survives_saving():
    optimizer = crashbo.Optimizer(
        {
            "a": (0, 2),
            "r": crashbo.Float(1e-3, 1, log=True),
            "n": crashbo.Int(1, 9),
            "m": crashbo.Choice(["p", 3, None]),
        },
        [crashbo.Constraint("load", (1.0, 2.0), "below", 0.1), crashbo.Constraint("heat", 80), crashbo.Unmeasured("?")],
        seed=4,
        risk=crashbo.Budget(5, 60),
        start=[{"a": 1, "r": 0.1, "n": 2, "m": None}],
        noise={"cost": 0.3},
        direction="maximize",
    )
    optimizer.tell(optimizer.ask(), crash=crashbo.Crash("x", blame=["load"], measured={"heat": 70}))
    optimizer.ask()
    again = crashbo.Optimizer.from_json(optimizer.to_json())
    assert again.to_json() == optimizer.to_json()
    assert again.trials == optimizer.trials
    assert (again.space, again.constraints, again.risk) == (optimizer.space, optimizer.constraints, optimizer.risk)
    assert again.direction == "maximize"


def test_options_that_are_tuples_survive_saving():
    optimizer = crashbo.Optimizer({"kernel": crashbo.Choice([(3, 3), (5, 5)]), "x": (0.0, 1.0)})
    for _ in range(5):
        optimizer.tell(optimizer.ask(), cost=1.0)
    again = crashbo.Optimizer.from_json(optimizer.to_json())
    assert again.ask().params["kernel"] in ((3, 3), (5, 5))


def test_looking_before_asking_costs_no_second_fit(monkeypatch):
    fits = []
    fit = fitting.fit_surrogates
    monkeypatch.setattr("crashbo.strategies.base.fit_surrogates", lambda *a, **k: fits.append(1) or fit(*a, **k))
    optimizer = study()
    for x in np.random.default_rng(2).random((6, 2)):
        params = {"x": x[0], "y": x[1]}
        optimizer.tell(params, **telling(params))
    optimizer.p_safe(HERE)
    optimizer.ask()
    assert len(fits) == 1


def test_while_nothing_has_succeeded_a_batch_spreads():
    optimizer = study()
    for x in ({"x": 0.5, "y": 0.5}, {"x": 0.6, "y": 0.5}):
        optimizer.tell(x, crash=True)
    batch = np.array([list(optimizer.ask().params.values()) for _ in range(4)])
    apart = [np.linalg.norm(a - b) for i, a in enumerate(batch) for b in batch[:i]]
    assert min(apart) > 0.2


def test_a_batch_comes_from_one_fit_and_spreads(monkeypatch):
    fits = []
    fit = base.fit_surrogates
    monkeypatch.setattr(base, "fit_surrogates", lambda *a, **k: (fits.append(1), fit(*a, **k))[1])
    optimizer, single = study(), study()
    for each in (optimizer, single):
        run(each, 12)
    fits.clear()
    batch = optimizer.ask_batch(6)
    assert len(fits) == 1
    assert [t.number for t in batch] == list(range(12, 18))
    assert batch == optimizer.trials[12:]
    assert batch[0] == single.ask()
    points = np.array([list(t.params.values()) for t in batch])
    assert min(np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[:i]) > 0.01
    assert optimizer.ask_batch(0) == []


def test_a_batch_begins_with_what_was_wished_for_and_with_the_design():
    optimizer = study(start=[{"x": 0.1, "y": 0.2}])
    wished, *others = optimizer.ask_batch(5)
    assert (wished.params, wished.origin) == ({"x": 0.1, "y": 0.2}, "start")
    assert {t.origin for t in others} == {"design"}
    assert len({tuple(t.params.values()) for t in others}) == 4


def test_after_a_batch_was_told_the_models_are_fitted_anew():
    optimizer = study()
    run(optimizer, 10)
    for trial in optimizer.ask_batch(3):
        optimizer.tell(trial, **telling(trial.params))
    saved = crashbo.Optimizer.from_json(optimizer.to_json())
    assert [t.params for t in optimizer.ask_batch(3)] == [t.params for t in saved.ask_batch(3)]


def test_a_crash_that_numpy_denies_is_none():
    optimizer = crashbo.Optimizer(SPACE, ["load"])
    assert optimizer.tell(optimizer.ask(), cost=1.0, crash=np.False_).state == "success"
    assert optimizer.tell(optimizer.ask(), crash=np.True_).state == "crash"


def test_a_text_that_is_no_whole_study_is_refused():
    with pytest.raises(ValueError, match=r"^text must be a whole study from to_json; it has no 'config'\. "):
        crashbo.Optimizer.from_json('{"crashbo": 1}')


def test_threads_that_ask_at_once_get_what_one_would_get_in_sequence():
    def warmed():
        optimizer = study(seed=0)
        run(optimizer, 8)
        return optimizer

    one, many = warmed(), warmed()
    expected = [one.ask().params for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        asked = [job.result() for job in [pool.submit(many.ask) for _ in range(6)]]
    assert sorted(t.number for t in asked) == list(range(8, 14))
    assert [t.params for t in sorted(asked, key=lambda t: t.number)] == expected


def test_threads_may_ask_tell_and_look_at_once():
    optimizer = study(seed=0)

    def work(_):
        for _ in range(4):
            trial = optimizer.ask()
            optimizer.tell(trial, **telling(trial.params))
            optimizer.p_safe(trial.params)
            assert optimizer.trials
            optimizer.to_json()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert [t.number for t in optimizer.trials] == list(range(16))
    assert len({tuple(t.params.values()) for t in optimizer.trials}) == 16


def test_an_optimizer_can_be_copied_and_pickled():
    optimizer = study(seed=0)
    run(optimizer, 6)
    for twin in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert twin.trials == optimizer.trials
        assert twin.ask().params == copy.deepcopy(optimizer).ask().params
