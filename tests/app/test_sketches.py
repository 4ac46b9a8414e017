"""Small pictures of a study, drawn beside one's own."""

import numpy as np
import pytest

import crashbo
from crashbo.app import plots, sketches


@pytest.fixture(scope="module")
def optimizer():
    made = crashbo.Optimizer(
        {"knee": (0.0, 1.0), "rate": crashbo.Float(0.01, 1.0, log=True), "legs": crashbo.Int(2, 8)}
    )
    for i in range(10):
        params = {"knee": i / 10, "rate": 0.01 * 10 ** (i / 5), "legs": 2 + i % 7}
        made.tell(params, **({"crash": True} if i > 6 else {"cost": 10.0 - i}))
    return made


def test_a_map_holds_the_others_at_the_best_trial_and_is_what_the_optimizer_says(optimizer):
    seen = sketches.gather_safety(optimizer, ("knee", "rate"))
    there = {"knee": seen.x[3], "rate": seen.y[5], "legs": optimizer.best.params["legs"]}
    assert seen.p_safe[5, 3] == pytest.approx(optimizer.p_safe(there))
    assert seen.logarithmic == (False, True)
    assert np.allclose(np.diff(np.log(seen.y)), np.log(seen.y[1] / seen.y[0]))


def test_others_may_be_held_elsewhere(optimizer):
    seen = sketches.gather_safety(optimizer, ("knee", "rate"), at={"legs": 8})
    assert seen.p_safe[0, 0] == pytest.approx(optimizer.p_safe({"knee": 0.0, "rate": 0.01, "legs": 8}))


def test_whole_numbers_stay_whole(optimizer):
    assert list(sketches.gather_safety(optimizer, ("legs", "knee")).x) == [2, 3, 4, 5, 6, 7, 8]


def test_a_study_without_a_success_has_a_course_too():
    crashed = crashbo.Optimizer({"x": (0.0, 1.0)})
    crashed.tell({"x": 0.5}, crash=True)
    axes = plots.Figure().subplots()
    sketches.draw_course(axes, crashed.trials)
    assert sum(len(line.get_xdata()) for line in axes.get_lines()[2:]) == 1


def test_a_choice_has_no_range():
    chosen = crashbo.Optimizer({"gait": crashbo.Choice(["trot", "bound"]), "knee": (0.0, 1.0)})
    with pytest.raises(ValueError, match="across must name two parameters with a range; got 'gait'"):
        sketches.gather_safety(chosen, ("gait", "knee"))


def test_the_course_shows_every_trial_and_the_best_so_far(optimizer):
    axes = plots.Figure().subplots()
    sketches.draw_course(axes, optimizer.trials, lambda cost: -cost, up=True)
    best, costs, *marks = axes.get_lines()
    assert list(best.get_ydata())[:7] == [-10.0, -9.0, -8.0, -7.0, -6.0, -5.0, -4.0]
    assert np.isfinite(costs.get_ydata()).sum() == 7
    assert sum(len(line.get_xdata()) for line in marks) == 3  # the crashes, below


def test_a_map_with_its_trials_can_be_drawn(optimizer):
    figure = plots.Figure()
    sketches.draw_safety(
        figure.subplots(), sketches.gather_safety(optimizer, ("knee", "rate")), optimizer.trials, optimizer.best
    )
    assert plots.png(figure).startswith(b"\x89PNG")
