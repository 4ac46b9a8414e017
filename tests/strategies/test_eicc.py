"""Our strategy as its users meet it: what it tries first, what it keeps to, and what it does when nothing is left."""

from dataclasses import dataclass

import numpy as np
import pytest

import crashbo

MODES = ["a", "b", "c", "d", "e", "f"]


def ramp(optimizer, trials, limit=0.6, cost=lambda x: -x):
    """A study in which `x` drives the cost and crashes above a limit."""
    told = []
    for _ in range(trials):
        trial = optimizer.ask()
        x = float(trial.params["x"])
        if x > limit:
            optimizer.tell(trial, crash=True)
        else:
            optimizer.tell(trial, cost=cost(x))
        told.append(trial)
    return told


@pytest.mark.parametrize("start", [None, [{"x": 0.4, "mode": "c"}]])
def test_every_option_is_tried_early(start):
    space = {"x": (0.0, 1.0), "mode": crashbo.Choice(MODES)}
    told = ramp(crashbo.Optimizer(space, start=start, seed=0), 8)
    assert {trial.params["mode"] for trial in told} == set(MODES)


def test_an_option_that_is_void_keeps_no_other_from_being_tried():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "mode": crashbo.Choice(["a", "b", "c"])}, seed=0)
    modes = []
    for _ in range(8):
        trial = optimizer.ask()
        modes.append(trial.params["mode"])
        if trial.params["mode"] == "b":
            optimizer.tell(trial, void="out of stock")
        else:
            optimizer.tell(trial, cost=trial.params["x"])
    assert set(modes) == {"a", "b", "c"}


def test_a_study_with_a_start_looks_around():
    told = ramp(crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, start=[{"x": 0.1, "y": 0.1}], seed=0), 5)
    points = np.array([list(trial.params.values()) for trial in told])
    assert np.ptp(points, axis=0).min() > 0.5


@pytest.mark.parametrize("risk", [None, crashbo.Budget(40)])
@pytest.mark.parametrize("seed", range(3))
def test_a_small_safe_region_in_the_middle_is_found(seed, risk):
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, risk=risk, seed=seed)
    for _ in range(30):
        trial = optimizer.ask()
        if np.hypot(trial.params["x"] - 0.4, trial.params["y"] - 0.65) < 0.16:  # 8 % of the square
            return
        optimizer.tell(trial, crash=True)
    pytest.fail("thirty trials, and no success")


@pytest.mark.parametrize("seed", range(3))
def test_every_combination_of_options_is_looked_at(seed):
    modes = crashbo.Choice(["a", "b", "c"])
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "m": modes, "k": modes, "l": modes}, seed=seed)
    for _ in range(40):
        trial = optimizer.ask()
        if trial.params["m"] == "a" and trial.params["k"] == "b":
            return
        optimizer.tell(trial, crash=True)
    pytest.fail("forty trials, and no success")


def test_a_spent_budget_is_never_admissible_in_a_space_of_few_settings():
    optimizer = crashbo.Optimizer({"x": crashbo.Int(0, 3)}, risk=crashbo.Budget(0), seed=0)
    for _ in range(8):
        trial = optimizer.ask()
        assert not trial.admissible
        optimizer.tell(trial, crash=True)


@pytest.mark.parametrize("seed", range(2))
def test_a_safe_region_in_the_middle_of_six_dimensions_is_found(seed):
    optimizer = crashbo.Optimizer({f"x{i}": (0.0, 1.0) for i in range(6)}, seed=seed)
    half = 0.5 * 0.1 ** (1.0 / 6.0)  # 10 % of the volume
    for _ in range(60):
        trial = optimizer.ask()
        if all(abs(x - 0.5) < half for x in trial.params.values()):
            return
        optimizer.tell(trial, crash=True)
    pytest.fail("sixty trials, and no success")


def test_of_few_settings_each_is_tried_once_while_nothing_succeeds():
    optimizer = crashbo.Optimizer({"x": crashbo.Int(0, 20), "mode": crashbo.Choice(["a", "b"])}, seed=0)
    settings = set()
    for _ in range(42):
        trial = optimizer.ask()
        settings.add((trial.params["x"], trial.params["mode"]))
        optimizer.tell(trial, crash=True)
    assert len(settings) == 42


@pytest.mark.parametrize("seed", range(2))
def test_a_noisy_study_does_not_measure_its_best_over_and_over(seed):
    rng = np.random.default_rng(seed)
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=seed)
    for _ in range(40):
        trial = optimizer.ask()
        x, y = trial.params["x"], trial.params["y"]
        optimizer.tell(trial, cost=(x - 0.3) ** 2 + (y - 0.6) ** 2 + 0.2 * rng.standard_normal())
    points = np.array([list(trial.params.values()) for trial in optimizer.trials])
    beside = np.abs(points[:, None] - points).max(axis=2) < 0.03
    assert beside.sum(axis=1).max() <= 12


def test_a_fixed_option_needs_no_trial():
    space = {"x": (0.0, 1.0), "mode": crashbo.Choice([str(i) for i in range(30)])}
    optimizer = crashbo.Optimizer(space, seed=0).changed(fixed={"mode": "3"})
    ramp(optimizer, 20, cost=lambda x: (x - 0.3) ** 2)
    assert optimizer.best.cost < 1e-3


def test_once_the_boundary_is_known_nothing_more_is_paid_for_it():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    told = ramp(optimizer, 60)
    assert optimizer.best.cost < -0.59
    assert sum(trial.params["x"] > 0.6 for trial in told[40:]) <= 2
    assert optimizer.gain_left() < 0.3


@pytest.mark.parametrize("price", [5.0, 10.0])
def test_a_study_with_nothing_left_to_gain_crashes_no_more_often_than_its_price_allows(price):
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, risk=crashbo.Price(price), seed=0)
    told = ramp(optimizer, 60)
    crashes = np.flatnonzero([trial.params["x"] > 0.6 for trial in told])
    assert np.diff(crashes[crashes > 30]).min(initial=price) >= price - 1.0
    assert sum(crashes > 30) <= 30.0 / price


def test_another_island_is_found_when_the_first_is_known():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, start=[{"x": 0.1}], seed=0)
    for _ in range(80):
        trial = optimizer.ask()
        x = float(trial.params["x"])
        if x < 0.2 or 0.75 < x < 0.9:
            optimizer.tell(trial, cost=-x)
        else:
            optimizer.tell(trial, crash=True)
    assert optimizer.best.cost < -0.8


@pytest.mark.parametrize("p", [0.9, 0.97])
def test_a_floor_is_kept_when_nothing_is_left_to_gain(p):
    rng = np.random.default_rng(0)
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, start=[{"x": 0.4}], risk=crashbo.MinSafe(p), seed=0)
    told = ramp(optimizer, 25, cost=lambda x: -x + 0.1 * rng.standard_normal())
    assert all(trial.p_safe >= p - 0.011 for trial in told[1:] if trial.admissible)
    assert sum(not trial.admissible for trial in told[8:]) <= 1


@dataclass(frozen=True)
class Careful:
    least: float = 0.95

    def floor(self, situation):
        return self.least


def test_a_risk_of_one_s_own_is_kept_from_the_first_trial_on():
    told = ramp(crashbo.Optimizer({"x": (0.0, 1.0)}, start=[{"x": 0.4}], risk=Careful(), seed=0), 20)
    assert all(trial.p_safe >= 0.93 for trial in told[1:] if trial.admissible)


@pytest.mark.parametrize("measured", [True, False])
def test_those_who_ask_at_once_get_different_trials_on_a_line_too(measured):
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, ["load"] if measured else [], seed=1)
    for _ in range(12):
        trial = optimizer.ask()
        x = trial.params["x"]
        if x > 0.7:
            optimizer.tell(trial, crash=True)
        else:
            optimizer.tell(trial, cost=np.sin(5.0 * x), measured={"load": x} if measured else {})
    x = np.sort([trial.params["x"] for trial in optimizer.ask_batch(10)])
    assert np.diff(x).min() > 0.002
    assert np.median(np.diff(x)) > 0.02


def test_a_first_batch_beyond_a_budget_is_not_admissible():
    batch = crashbo.Optimizer({"x": (0.0, 1.0)}, risk=crashbo.Budget(1, trials=10)).ask_batch(3)
    assert [trial.admissible for trial in batch] == [True, False, False]


def test_a_threshold_that_was_given_is_believed():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, [crashbo.Constraint("current", 10.0)], seed=0)
    rng = np.random.default_rng(0)
    for x, y in rng.random((30, 2)) * [0.55, 1.0]:
        if y > 0.5:
            optimizer.tell({"x": x, "y": y}, crash=True)
        else:
            optimizer.tell({"x": x, "y": y}, cost=-x, measured={"current": 16.0 * x})
    assert optimizer.p_safe({"x": 1.0, "y": 0.2}) < 0.2


def test_a_repeat_that_comes_to_nothing_is_not_asked_for_again_and_again():
    rng = np.random.default_rng(1)
    optimizer, points, void = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=1), set(), 0
    for _ in range(40):
        trial = optimizer.ask()
        point = tuple(trial.params.values())
        if point in points:
            optimizer.tell(trial, void="duplicate")
            void += 1
        else:
            optimizer.tell(trial, cost=(trial.params["x"] - 0.4) ** 2 + 0.2 * rng.standard_normal())
        points.add(point)
    assert void <= 4


@pytest.mark.parametrize("risk", [crashbo.MinSafe(0.9), crashbo.MinSafe(0.95)])
def test_a_floor_is_kept_by_those_who_ask_at_once(risk):
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, start=[{"x": 0.2}], risk=risk, seed=0)
    told = []
    for _ in range(25):
        for trial in optimizer.ask_batch(2):
            told.append(trial)
            if trial.params["x"] > 0.6:
                optimizer.tell(trial, crash=True)
            else:
                optimizer.tell(trial, cost=-trial.params["x"])
    assert min(trial.p_safe for trial in told[10:]) > risk.p - 0.02


def test_a_spent_budget_has_nothing_left_to_gain():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, start=[{"x": 0.2}], risk=crashbo.Budget(0, trials=20), seed=0)
    ramp(optimizer, 6)
    assert optimizer.gain_left() == 0.0


def test_of_few_settings_none_that_is_sure_to_crash_is_tried():
    rng = np.random.default_rng(0)
    optimizer = crashbo.Optimizer({"x": crashbo.Int(0, 12)}, seed=3)
    for _ in range(30):
        trial = optimizer.ask()
        if trial.params["x"] > 8:
            optimizer.tell(trial, crash=True)
        else:
            optimizer.tell(trial, cost=-0.1 * trial.params["x"] + 0.02 * rng.standard_normal())
    assert all(trial.p_safe is None or trial.p_safe > 0.15 for trial in optimizer.trials[5:])


def repeats(cost, trials=30, noise=None, seed=0):
    """How many trials of a study in two dimensions were at the place of another."""
    rng = np.random.default_rng(seed)
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=seed, noise=noise)
    points = []
    for _ in range(trials):
        trial = optimizer.ask()
        points.append((trial.params["x"], trial.params["y"]))
        optimizer.tell(trial, cost=cost(*points[-1], rng))
    return len(points) - len(set(points))


def rugged(x, y, rng):
    return np.sin(40.0 * x + 1.0) + np.sin(37.0 * y)


def test_the_best_is_measured_again_where_noise_and_a_rugged_cost_explain_the_same():
    assert 1 <= repeats(rugged) <= 3
    assert 1 <= repeats(lambda x, y, rng: (x - 0.4) ** 2 + y + rng.standard_normal()) <= 3


def test_nothing_is_repeated_where_the_noise_is_plain_or_given():
    assert repeats(lambda x, y, rng: (x - 0.4) ** 2 + (y - 0.7) ** 2, trials=20) == 0
    assert repeats(rugged, noise={"cost": 0.01}) == 0
