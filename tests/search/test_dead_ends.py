"""Dead ends: which voids make one, what they hold, and the way out of them."""

import numpy as np
import pytest

from crashbo.search.candidates import Box, best, screen_around
from crashbo.search.dead_ends import NOWHERE, DeadEnds
from crashbo.search.design import Design
from crashbo.search.risk import Price, Score
from crashbo.search.space import Choice, Float, Int, Space

PLANE = Space.of({"x": (0.0, 1.0), "y": (0.0, 1.0)})
NOTHING = np.zeros((0, 2))


def dead_ends(voids, settled=NOTHING, space=PLANE):
    return DeadEnds.of(space, np.array(voids, dtype=float), np.array(settled, dtype=float))


def at(*point):
    return np.array([point], dtype=float)


def test_one_void_is_no_dead_end_and_two_are_one_wherever_a_point_lies_near_both():
    assert dead_ends([[0.5, 0.5]]) is NOWHERE
    assert dead_ends([[0.5, 0.5], [0.5, 0.541]]) is NOWHERE
    two = dead_ends([[0.5, 0.5], [0.5, 0.539], [0.2, 0.2]])
    np.testing.assert_array_equal(two.centres, [[0.5, 0.5], [0.5, 0.539]])


def test_it_reaches_a_fiftieth_in_every_coordinate():
    hold = dead_ends([[0.5, 0.5], [0.5, 0.5]]).hold
    np.testing.assert_array_equal(hold(np.array([[0.5, 0.5], [0.52, 0.48], [0.521, 0.5], [0.5, 0.479]])), [1, 1, 0, 0])


def test_a_void_does_not_count_whose_very_setting_succeeded_or_crashed():
    twice = [[0.5, 0.5], [0.5, 0.5]]
    assert dead_ends(twice, settled=at(0.5, 0.5)) is NOWHERE
    assert dead_ends(twice, settled=at(0.5, 0.5001)).hold(at(0.5, 0.5))[0]


def test_other_options_of_a_choice_are_far_away():
    space = Space.of({"x": (0.0, 1.0), "mode": Choice(["a", "b"])})
    a, b = (space.encode({"x": 0.5, "mode": mode}) for mode in "ab")
    assert dead_ends([a, b], np.zeros((0, 3)), space) is NOWHERE
    assert not dead_ends([a, a], np.zeros((0, 3)), space).hold(b[None])[0]


@pytest.mark.parametrize("space", [{"n": Int(0, 9)}, {"n": Int(1, 9, log=True), "mode": Choice(["a", "b"])}])
def test_a_finite_space_has_dead_ends_until_none_of_its_points_is_left(space):
    space = Space.of(space)
    every = np.unique(space.uniform(np.random.default_rng(0).random((500, space.dimension))), axis=0)
    assert len(every) == space.size
    for left in range(len(every)):
        found = dead_ends(np.repeat(every[left:], 2, axis=0), np.zeros((0, space.dimension)), space)
        assert (found is NOWHERE) == (left == 0)
        assert left == 0 or not found.hold(found.others).any()


@pytest.mark.parametrize("space", [{"x": Float(0, 1)}, {"n": Int(0, 10**6)}, {"x": Float(1e-3, 1, log=True)}])
def test_the_last_gap_on_a_line_is_found(space):
    gap = np.array([0.6151, 0.6162])
    low, high = np.arange(gap[0] - 0.021, -0.04, -0.04), np.arange(gap[1] + 0.021, 1.04, 0.04)
    centres = Space.of(space).snap(np.concatenate([low, high])[:, None])
    found = dead_ends(np.repeat(centres, 2, axis=0), np.zeros((0, 1)), Space.of(space))
    assert len(found.others)
    assert not found.hold(found.others).any()
    assert np.all((found.others > gap[0] - 0.002) & (found.others < gap[1] + 0.002))


def test_fixed_parameters_stay_fixed_elsewhere():
    space = PLANE.with_fixed({"y": 0.25})
    others = dead_ends([[x, 0.25] for x in np.repeat(np.arange(0.0, 0.9, 0.04), 2)], space=space).others
    assert len(others)
    assert np.all(others[:, 1] == 0.25)


class Peak:
    """A utility with its maximum at one point, and a P(safe) of one."""

    def __init__(self, top, weight=1.0):
        self.top, self.weight = np.array(top), weight

    def __call__(self, X):
        return -self.weight * np.sum((X - self.top) ** 2, axis=1)

    def with_gradient(self, X):
        return self(X), -2.0 * self.weight * (X - self.top)


def found(box, rng=0):
    rng = np.random.default_rng(rng)
    flat = Peak([0.0, 0.0], weight=0.0)
    screened = screen_around(PLANE, at(0.2, 0.2), np.zeros(1), np.ones(2), flat, box, rng=rng)
    assert not box.dead_ends.hold(screened.X).any()
    return best(PLANE, screened, Peak([0.613, 0.377]), flat, Score(), NOTHING).x


def test_an_ascent_into_a_dead_end_stops_at_its_rim():
    assert np.allclose(found(Box.whole(PLANE)), [0.613, 0.377], atol=1e-3)
    box = Box.whole(PLANE, dead_ends([[0.613, 0.377]] * 2))
    for seed in range(5):
        gap = np.abs(found(box, seed) - [0.613, 0.377]).max()
        assert 0.02 <= gap < 0.021


def test_a_box_that_is_one_dead_end_is_left():
    closed = dead_ends([[x, y] for x in (0.48, 0.52) for y in (0.48, 0.52)])
    box = Box(np.full(2, 0.47), np.full(2, 0.53), closed)
    assert not closed.hold(found(box)[None])[0]


def test_the_design_passes_over_dead_ends():
    design = Design.for_study(PLANE, Price(), None, np.random.default_rng(0))
    points, step = [], design
    for _ in range(4):
        step, x = step.next(PLANE)
        points.append(x)
    closed = dead_ends([points[0], points[0], points[2], points[2]])
    after, params = design.next_new(PLANE, [], closed)
    np.testing.assert_array_equal(PLANE.encode(params), points[1])
    np.testing.assert_array_equal(PLANE.encode(after.next_new(PLANE, [], closed)[1]), points[3])


def test_the_design_of_a_line_ends_in_its_last_gap():
    line = Space.of({"x": (0.0, 1.0)})
    closed = dead_ends(np.repeat(np.arange(0.0, 0.985, 0.0399), 2)[:, None], np.zeros((0, 1)), line)
    design = Design.for_study(line, Price(), None, np.random.default_rng(0))
    assert not closed.hold(line.encode(design.next_new(line, [], closed)[1])[None])[0]
