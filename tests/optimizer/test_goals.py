"""Several goals: the front and its volume, a point by weights, what is refused, and that nothing else is lost."""

import io
import json

import numpy as np
import pytest

import crashbo
from crashbo.numerics.hypervolume import hypervolume
from crashbo.optimizer.progress import TerminalProgress
from crashbo.optimizer.stopping import MaxCrashes, NoGain
from crashbo.search.front import reference_of, won_by

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
GOALS = {"time": "minimize", "accuracy": "maximize"}


def machine(params):
    """Faster is less accurate; driven hard it trips; y is to be 0.3."""
    x, y = params["x"], params["y"]
    load = x + 0.5 * y
    if load > 1.05:
        raise crashbo.Crash("tripped")
    loss = (y - 0.3) ** 2
    return crashbo.Outcome({"time": (1.0 - x) ** 2 + loss, "accuracy": 1.0 - x**2 - loss}, {"load": load})


def told(optimizer, rows):
    """Tell (x, time, accuracy) in order."""
    for x, time, accuracy in rows:
        cost = {"time": time, "accuracy": accuracy}
        optimizer.tell({"x": x, "y": 0.5}, cost={goal: v for goal, v in cost.items() if v is not None})
    return optimizer


def fresh(**more):
    return crashbo.Optimizer(SPACE, ["load"], objectives=GOALS, **more)


@pytest.fixture(scope="module")
def result():
    return crashbo.minimize(machine, SPACE, constraints=["load"], objectives=GOALS, trials=25, progress=False)


def beaten(cost, by):
    no_worse = by["time"] <= cost["time"] and by["accuracy"] >= cost["accuracy"]
    return no_worse and by != cost


def test_the_front_is_of_the_trials_that_no_other_beats(result):
    done = [t for t in result.trials if t.state == "success"]
    expected = [t.number for t in done if not any(beaten(t.cost, other.cost) for other in done)]
    assert [t.number for t in result.front] == expected
    assert len(expected) > 8


def test_a_study_finds_the_front_of_its_machine(result):
    """Its front is x from 0 to where it trips at y = 0.3, and beyond that along the boundary."""
    x = np.linspace(0.0, 0.9, 400)
    best = np.column_stack([(1.0 - x) ** 2, -(1.0 - x**2)])
    reference = {"time": 1.1, "accuracy": -0.1}
    assert result.hypervolume(reference) > 0.97 * hypervolume(best, np.array([1.1, 0.1]))
    assert sum(t.state == "crash" for t in result.trials) <= 8


def test_the_volume_is_that_of_the_front_up_to_a_reference_point():
    optimizer = told(fresh(noise={"time": 0.0, "accuracy": 0.0}), [(0.1, 1.0, 0.2), (0.5, 3.0, 0.8), (0.9, 4.0, 0.5)])
    assert [t.number for t in optimizer.front] == [0, 1]
    assert optimizer.hypervolume(reference={"time": 5.0, "accuracy": 0.0}) == pytest.approx(4.0 * 0.2 + 2.0 * 0.6)
    assert optimizer.hypervolume(reference={"time": 2.0, "accuracy": 0.0}) == pytest.approx(0.2)
    assert optimizer.hypervolume(reference={"time": 0.5, "accuracy": 0.9}) == 0.0


def test_the_reference_point_is_reported_and_a_users_is_honoured(result):
    found = result.reference
    assert found["time"] > max(t.cost["time"] for t in result.front)
    assert found["accuracy"] < min(t.cost["accuracy"] for t in result.front)
    assert result.hypervolume() == pytest.approx(result.hypervolume(found))
    own = {"time": 0.4, "accuracy": 0.3}
    more = {"constraints": ["load"], "objectives": GOALS, "progress": False}
    narrow = crashbo.minimize(machine, SPACE, reference=own, trials=20, **more)
    assert narrow.reference == own
    inside = [t.cost["time"] < 0.4 and t.cost["accuracy"] > 0.3 for t in narrow.trials[8:] if t.state == "success"]
    everywhere = [t.cost["time"] < 0.4 and t.cost["accuracy"] > 0.3 for t in result.trials[8:] if t.state == "success"]
    assert np.mean(inside) > np.mean(everywhere)


def test_a_reference_point_lies_beyond_the_front_and_stays_where_it_is():
    Y = np.array([[0.0, 1.0], [0.5, 0.4], [1.0, 0.0]])
    found = reference_of(Y)
    assert np.all(found > 1.05)
    np.testing.assert_allclose(reference_of(np.vstack([Y, [0.2, 0.8]])), found)
    assert np.all(reference_of(np.vstack([Y, [1.5, 90.0]])) <= 2.0)  # not as bad as the worst
    assert np.all(reference_of(np.zeros((3, 2))) > 0.0)


def test_progress_is_a_new_lowest_where_the_front_moved():
    won = won_by(np.array([[0.5, 0.5], [0.7, 0.7], [0.2, 0.8], [0.1, 0.1]]), np.zeros(2), np.ones(2))
    assert won[0] == pytest.approx(0.25, abs=0.01)
    assert won[1] == won[0]
    assert won[2] == pytest.approx(0.25 + 0.3 * 0.2, abs=0.01)
    assert won[3] == pytest.approx(0.81, abs=0.01)


def test_with_noise_the_front_is_of_what_is_expected():
    rng = np.random.default_rng(0)
    optimizer = crashbo.Optimizer(SPACE, objectives=GOALS, noise={"time": 0.3, "accuracy": 0.3})
    for x in np.repeat([0.2, 0.5, 0.8], 8):
        time, accuracy = (1.0 - x) ** 2 + 0.3 * rng.standard_normal(), 1.0 - x**2 + 0.3 * rng.standard_normal()
        optimizer.tell({"x": float(x), "y": 0.3}, cost={"time": time, "accuracy": accuracy})
    lucky = optimizer.tell({"x": 0.5, "y": 0.9}, cost={"time": 1.0, "accuracy": 0.0})
    optimizer.tell({"x": 0.5, "y": 0.9}, cost={"time": 1.0, "accuracy": 0.0}, replace=False)
    expected = optimizer.predict([t.params for t in optimizer.trials]).cost
    pairs = np.column_stack([expected["time"][0], -expected["accuracy"][0]])
    on_it = [not any(np.all(q <= p) and np.any(q < p - 1e-9) for q in pairs) for p in pairs]
    assert {t.number for t in optimizer.front} <= {n for n, member in enumerate(on_it) if member}
    assert lucky.number not in [t.number for t in optimizer.front]
    assert len({t.params["x"] for t in optimizer.front}) == 3


def test_a_goal_that_was_not_measured_does_no_harm():
    optimizer = fresh()
    for k in range(14):
        trial = optimizer.ask()
        outcome = machine({"x": 0.6 * trial.params["x"], "y": 0.6 * trial.params["y"]})
        cost = dict(outcome.cost)
        if k % 3 == 0:
            cost.pop("time")
        elif k % 5 == 1:
            cost["accuracy"] = None
        optimizer.tell(trial, cost=cost, measured=outcome.measured)
    assert optimizer.front
    assert all(set(t.cost) == set(GOALS) for t in optimizer.front)
    assert optimizer.recommend() is not None
    assert optimizer.gain_left() > 0.0
    optimizer.check()


def test_before_every_goal_was_measured_a_study_looks_around():
    optimizer = told(fresh(), [(0.1, 1.0, None), (0.4, 2.0, None), (0.8, 3.0, None)])
    assert optimizer.front == []
    assert optimizer.reference is None
    assert optimizer.hypervolume() == 0.0
    assert optimizer.recommend() is None
    assert optimizer.ask().state == "pending"


def test_weights_choose_a_point_between_the_ends_of_the_front(result):
    fast = result.recommend(weights={"time": 1.0})
    between = result.recommend()
    exact = result.recommend(weights={"accuracy": 1.0})
    nearly = result.recommend(weights={"time": 1.0, "accuracy": 3.0})
    assert fast.cost["time"] < between.cost["time"] < nearly.cost["time"] < exact.cost["time"]
    assert fast.cost["accuracy"] < between.cost["accuracy"] < nearly.cost["accuracy"] <= exact.cost["accuracy"]
    for found in (fast, between, nearly, exact):
        assert found.admissible
        assert found.p_safe >= 0.89
    assert result.recommend(0.01, weights={"time": 1.0}).p_safe > fast.p_safe - 1e-6


def test_pending_trials_move_the_front():
    optimizer = fresh()
    for _ in range(10):
        trial = optimizer.ask()
        try:
            outcome = machine(trial.params)
            optimizer.tell(trial, cost=outcome.cost, measured=outcome.measured)
        except crashbo.Crash as crash:
            optimizer.tell(trial, crash=crash)
    batch = np.array([list(t.params.values()) for t in optimizer.ask_batch(6)])
    apart = np.abs(batch[:, None] - batch[None]).max(axis=2) + np.eye(6)
    assert apart.min() > 0.01


@pytest.mark.parametrize("risk", ["paper", crashbo.Budget(3, 16), crashbo.MinSafe(0.8), crashbo.Price(8)])
def test_every_risk_holds_with_several_goals(risk):
    found = crashbo.minimize(
        machine, SPACE, constraints=["load"], objectives=GOALS, risk=risk, trials=16, progress=False
    )
    crashes = sum(t.state == "crash" for t in found.trials)
    assert len(found.front) >= 3
    assert crashes <= (3 if isinstance(risk, crashbo.Budget) else 14)


def test_three_goals():
    def robot(params):
        outcome = machine(params)
        return {**outcome.cost, "heat": params["y"]}

    goals = {**GOALS, "heat": "minimize"}
    found = crashbo.minimize(robot, SPACE, objectives=goals, trials=16, progress=False)
    assert len(found.front) >= 5
    assert found.hypervolume() > 0.0
    assert set(found.recommend(weights={"heat": 1.0}).cost) == set(goals)


@pytest.mark.parametrize(
    ("objectives", "words"),
    [
        ({"time": "minimize"}, "objectives must be two or three goals; got \\['time'\\]"),
        (dict.fromkeys("abcd", "minimize"), "objectives must be two or three goals; got 4"),
        ({"a": "minimize", "b": "least"}, "objectives\\['b'\\] must be 'minimize' or 'maximize'"),
        (["a", "b"], "objectives must map names of goals"),
    ],
)
def test_objectives_that_cannot_be_are_refused(objectives, words):
    with pytest.raises(ValueError, match=words):
        crashbo.Optimizer(SPACE, objectives=objectives)


def test_what_has_no_meaning_with_several_goals_is_refused_with_the_remedy(result):
    optimizer = result.optimizer
    for ask, remedy in (
        (lambda: optimizer.best, "See `front`"),
        (lambda: result.best, "See `front`"),
        (lambda: optimizer.direction, "See `objectives`"),
        (lambda: optimizer.confirm(3), "See `front`"),
        (lambda: fresh(direction="maximize"), "Every goal has its own"),
        (lambda: optimizer.changed(direction="maximize"), "Every goal has its own"),
        (lambda: optimizer.changed(objectives={"time": "minimize", "heat": "minimize"}), "Begin another study"),
        (lambda: fresh(noise=0.1), "noise must name goals"),
        (lambda: fresh(strategy="pibu"), "'eicc' is the default"),
        (lambda: fresh(reference={"time": 1.0}), "reference must name every goal"),
        (lambda: optimizer.hypervolume({"time": 1.0}), "reference must name every goal"),
        (lambda: optimizer.recommend(weights={"heat": 1.0}), "weights must name goals"),
        (lambda: optimizer.recommend(weights={"time": -1.0}), "weights must be numbers >= 0"),
        (lambda: optimizer.tell({"x": 0.1, "y": 0.1}, cost=1.0), "cost must map goals"),
        (lambda: optimizer.tell({"x": 0.1, "y": 0.1}, cost={"heat": 1.0}), "cost must name goals"),
        (
            lambda: optimizer.tell({"x": 0.1, "y": 0.1}, cost={"time": float("nan")}),
            "Leave it out if it was not measured",
        ),
        (lambda: optimizer.tell({"x": 0.1, "y": 0.1}, cost={}), "cost must have a goal that was measured"),
    ):
        with pytest.raises(ValueError, match=remedy):
            ask()


def test_one_cost_knows_no_front():
    optimizer = crashbo.Optimizer(SPACE)
    optimizer.tell({"x": 0.1, "y": 0.1}, cost=1.0)
    for ask in (
        lambda: optimizer.front,
        lambda: optimizer.hypervolume(),
        lambda: optimizer.recommend(weights={"cost": 1.0}),
        lambda: optimizer.tell({"x": 0.1, "y": 0.1}, cost={"time": 1.0}),
        lambda: crashbo.Optimizer(SPACE, reference={"time": 1.0}),
    ):
        with pytest.raises(ValueError, match=r"objectives|one goal"):
            ask()


def test_a_point_of_the_front_is_confirmed(result):
    optimizer = crashbo.Optimizer.from_json(result.optimizer.to_json())
    copy = type(result)(optimizer, result.ended)
    confirmation = copy.confirm(machine, 3, params=optimizer.front[2])
    assert confirmation.done
    assert confirmation.params == optimizer.front[2].params
    assert confirmation.mean == pytest.approx(machine(confirmation.params).cost)
    assert confirmation.std == pytest.approx({"time": 0.0, "accuracy": 0.0}, abs=1e-12)


def test_a_saved_study_goes_on_as_if_nothing_had_happened(result):
    text = result.optimizer.to_json()
    assert json.loads(text)["config"]["objectives"] == GOALS
    one, other = crashbo.Optimizer.from_json(text), crashbo.Optimizer.from_json(text)
    assert one.objectives == GOALS
    assert one.trials == result.trials
    assert [one.ask() for _ in range(2)] == [other.ask() for _ in range(2)]


def test_a_study_with_one_cost_is_saved_as_it_was():
    saved = json.loads(crashbo.Optimizer(SPACE, ["load"]).to_json())["config"]
    assert not {"objectives", "reference", "goal_noise"} & set(saved)


def test_noise_reference_and_units_of_goals_are_saved():
    optimizer = fresh(noise={"time": 0.1, "load": 0.2}, reference={"time": 5.0, "accuracy": 0.1}, units={"time": "s"})
    again = crashbo.Optimizer.from_json(optimizer.to_json()).study
    assert again == optimizer.study
    assert again.noise == {"time": 0.1, "load": 0.2}


def test_a_goal_may_also_be_what_crashes_the_machine():
    optimizer = crashbo.Optimizer(
        SPACE, ["load"], objectives={"time": "minimize", "load": "minimize"}, noise={"load": 0.1}
    )
    optimizer.tell({"x": 0.1, "y": 0.1}, cost={"time": 3.0, "load": 0.2}, measured={"load": 0.2})
    assert optimizer.front[0].cost == {"time": 3.0, "load": 0.2}


def test_a_journal_resumes_several_goals_and_no_others(tmp_path):
    more = {"constraints": ["load"], "objectives": GOALS, "progress": False}
    crashbo.minimize(machine, SPACE, trials=6, journal=tmp_path / "study", **more)
    resumed = crashbo.minimize(machine, SPACE, trials=9, journal=tmp_path / "study", **more)
    whole = crashbo.minimize(machine, SPACE, trials=9, **more)
    assert [t.params for t in resumed.trials] == [t.params for t in whole.trials]
    with pytest.raises(ValueError, match="journal must belong to this study"):
        crashbo.minimize(machine, SPACE, constraints=["load"], trials=9, journal=tmp_path / "study", progress=False)


def test_stop_rules_and_progress_speak_of_the_front():
    stream = io.StringIO()
    rules = [MaxCrashes(50), NoGain(share=1e9, after=8)]
    more = {"constraints": ["load"], "objectives": GOALS, "progress": TerminalProgress(stream)}
    found = crashbo.minimize(machine, SPACE, trials=20, stop=rules, **more)
    assert found.ended == "no expected gain is left"
    assert len(found.trials) == 8
    assert "hypervolume" in stream.getvalue()


def test_a_cost_that_is_no_number_in_one_goal_follows_on_nan():
    def sometimes(params):
        return {"time": 1.0 - params["x"], "accuracy": float("nan") if params["x"] > 0.5 else params["x"]}

    found = crashbo.minimize(sometimes, SPACE, objectives=GOALS, trials=8, on_nan="crash", progress=False)
    assert any(t.state == "crash" for t in found.trials)
    with pytest.raises(TypeError, match="finite cost"):
        crashbo.minimize(sometimes, SPACE, objectives=GOALS, trials=8, progress=False)


def test_an_experiment_that_returns_one_number_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="cost must map goals"):
        crashbo.minimize(lambda params: 1.0, SPACE, objectives=GOALS, trials=3, progress=False)


@pytest.mark.parametrize("values", [1e-12, 1e12, 1e200, 0.0])
def test_goals_of_any_size_do_not_fail(values):
    rng = np.random.default_rng(0)
    optimizer = fresh()
    for _ in range(8):
        optimizer.tell(optimizer.ask(), cost={"time": values * rng.random(), "accuracy": -values * rng.random()})
    assert optimizer.front
    assert optimizer.ask().params
    assert optimizer.recommend().params


def test_the_same_outcome_every_time_does_not_fail():
    optimizer = fresh()
    for _ in range(9):
        optimizer.tell(optimizer.ask(), cost={"time": 1.0, "accuracy": 0.5})
    assert len(optimizer.front) == 9
    assert optimizer.hypervolume() > 0.0
    assert optimizer.gain_left() is not None
