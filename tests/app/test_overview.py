"""What is gathered for pages and reports, against the models and against closed forms."""

import numpy as np
import pytest
from jumper import SAID, current_of, height_of

from crashbo import Choice, Float, Optimizer
from crashbo.app.bench import Bench, Definition, Told
from crashbo.app.overview import Overview, _random_points, _total_effects, grid_values, history_points


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    bench = Bench.create(str(tmp_path_factory.mktemp("overview") / "s.db"), Definition.of(SAID))
    rng = np.random.default_rng(0)
    for knee, hip in rng.random((12, 2)):
        params = {"knee": float(knee), "hip": float(hip)}
        over = current_of(params) > 112
        said = (
            Told.of(crash="tripped")
            if over
            else Told.of(cost=height_of(params), measured={"current": current_of(params)})
        )
        bench.add(params, said)
    bench.ask()
    return bench


@pytest.fixture(scope="module")
def overview(told):
    return Overview(told.insight())


def test_total_effects_of_a_linear_function_are_its_shares_of_variance():
    parameters = {"x": Float(0, 1), "y": Float(0, 1), "z": Choice(["a", "b"])}
    rng = np.random.default_rng(1)
    A, B = _random_points(parameters, rng), _random_points(parameters, rng)
    mixed = [{**a, name: b[name]} for name in parameters for a, b in zip(A, B, strict=True)]
    y = np.array([3 * p["x"] + 4 * p["y"] for p in [*A, *B, *mixed]])
    assert _total_effects(y, 3) == pytest.approx([9 / 25, 16 / 25, 0.0], abs=0.07)
    assert _total_effects(np.ones(len(y)), 3) == [0.0] * 3


def test_a_slice_holds_what_the_optimizer_says_at_its_points(overview):
    found = overview.slice(["hip", "knee"], {}, 5)
    assert found.p_safe.shape == (5, 5)
    params = {"hip": found.grid[0][1], "knee": found.grid[1][3]}
    assert found.p_safe[3, 1] == pytest.approx(overview.view.p_safe(params))
    expected = overview.expect([params])[0]
    assert found.cost[3, 1] == pytest.approx(expected.cost[0])
    low, high = expected.cost[1:]
    assert low < height_of(params) + 0.1
    assert high > height_of(params) - 0.1


@pytest.mark.parametrize(
    ("axes", "at", "words"),
    [(["toe"], {}, "axis must be"), (["hip", "hip"], {}, "different"), (["hip"], {}, "at must give a value to knee")],
)
def test_a_slice_that_cannot_be_is_refused(overview, axes, at, words):
    with pytest.raises(ValueError, match=words):
        overview.slice(axes, at)


def test_pending_trials_do_not_narrow_what_is_expected_of_them(told, overview):
    assert all(t.state in ("success", "crash") for t in overview.told)
    (pending,) = (t for t in told.trials if t.state == "pending")
    mean, low, high = overview.expect([pending.params])[0].cost
    assert low < mean < high


def test_the_past_is_the_study_as_it_was(told, overview):
    before = overview.before(7)
    assert [t.number for t in before.told] == list(range(7))
    level = before.levels()["current"]
    assert (level.told, level.number) == (7, 6)
    low, high = level.interval
    assert low <= level.value
    assert high is None or level.value <= high  # open: so few crashes bound nothing
    assert history_points(3) == [1, 2, 3]
    assert history_points(0) == []
    assert len(history_points(5000)) < 30
    assert history_points(1000)[-1] == 1000


def test_the_history_keeps_its_points_as_trials_are_told():
    before = history_points(700)[:-1]
    assert set(before) <= set(history_points(701)) < set(history_points(1500)) | {701}
    assert set(history_points(700, per_doubling=1)) <= set(history_points(700))


def test_influence_recommendation_and_blame_are_there_for_everything(told, overview):
    assert set(overview.influence()) == {"cost", "safety"}
    assert overview.influence()["cost"]["knee"] > overview.influence()["cost"]["hip"]
    assert overview.recommended()["p_safe"] >= 0.89
    assert set(overview.blame()) == {t.number for t in told.trials if t.state == "crash"}


def test_grids_follow_the_parameters():
    assert grid_values(Choice(["a", "b"]), 9) == ["a", "b"]
    assert grid_values(Float(1, 100, log=True), 3) == pytest.approx([1, 10, 100])


def test_predictions_agree_with_p_safe_and_turn_with_the_users_signs():
    optimizer = Optimizer({"x": (0.0, 1.0)}, ["g"], direction="maximize")
    assert optimizer.predict([{"x": 0.5}]) is None
    for x in (0.1, 0.3, 0.5, 0.7):
        optimizer.tell({"x": x}, cost=10 + x, measured={"g": 5 + x})
    found = optimizer.predict([{"x": 0.3}, {"x": 0.7}])
    np.testing.assert_allclose(found.p_safe, optimizer.p_safe([{"x": 0.3}, {"x": 0.7}]))
    np.testing.assert_allclose(found.cost[0], [10.3, 10.7], atol=0.1)
    np.testing.assert_allclose(found.measured["g"][0], [5.3, 5.7], atol=0.1)
