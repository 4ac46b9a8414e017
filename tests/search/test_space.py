"""Spaces: what the user writes becomes a point of the unit cube, and comes back the same."""

import math
import re

import numpy as np
import pytest

from crashbo.search.space import Choice, Float, Int, Space

MIXED = Space.of(
    {
        "gain": (-2.0, 3.0),
        "rate": Float(1e-5, 10.0, log=True),
        "legs": Int(1, 6),
        "size": Int(1, 1024, log=True),
        "mode": Choice(["trot", "walk", "bound"]),
    }
)

SETTINGS = [
    {"gain": -2.0, "rate": 1e-5, "legs": 1, "size": 1, "mode": "trot"},
    {"gain": 3.0, "rate": 10.0, "legs": 6, "size": 1024, "mode": "bound"},
    {"gain": 0.1234567, "rate": 3.3e-3, "legs": 4, "size": 7, "mode": "walk"},
]


def is_one_clear_sentence(error, argument):
    """An argument that must follow a rule, the value that did not, and a remedy, on one line."""
    return re.fullmatch(rf"{re.escape(argument)} must [^\n]+; got [^\n]+\. [A-Z0-9'][^\n]+", str(error)) is not None


@pytest.mark.parametrize("params", SETTINGS)
def test_a_setting_comes_back_from_the_unit_cube_as_it_was(params):
    u = MIXED.encode(params)
    assert u.shape == (MIXED.dimension,)
    assert np.all((u >= 0.0) & (u <= 1.0))
    back = MIXED.decode(u)
    for name, value in params.items():
        assert back[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12))
    assert [type(v) for v in back.values()] == [float, float, int, int, str]


@pytest.mark.parametrize("params", SETTINGS)
def test_a_setting_is_where_snapping_leaves_it(params):
    u = MIXED.encode(params)
    np.testing.assert_allclose(MIXED.snap(u[None, :])[0], u, atol=1e-12)


def test_snapping_gives_points_that_settings_have_and_does_so_once():
    U = np.random.default_rng(0).uniform(-0.2, 1.2, (200, MIXED.dimension))
    snapped = MIXED.snap(U)
    np.testing.assert_allclose(MIXED.snap(snapped), snapped, atol=1e-12)
    for u in snapped:
        np.testing.assert_allclose(MIXED.encode(MIXED.check(MIXED.decode(u))), u, atol=1e-12)


def test_snapping_does_not_change_what_it_is_given():
    U = np.random.default_rng(0).random((5, MIXED.dimension))
    before = U.copy()
    MIXED.snap(U)
    MIXED.uniform(U)
    np.testing.assert_array_equal(U, before)


def test_snapping_moves_no_coordinate_further_than_it_must():
    legs = Int(1, 6)
    U = np.random.default_rng(1).random((300, 1))
    nearest = np.min(np.abs(U - np.linspace(0.0, 1.0, 6)), axis=1)
    np.testing.assert_allclose(np.abs(legs.snap(U) - U)[:, 0], nearest, atol=1e-12)


def test_a_log_scale_puts_the_geometric_mean_in_the_middle():
    assert Float(1e-4, 1.0, log=True).encode(1e-2) == pytest.approx([0.5])
    assert Float(1e-4, 1.0, log=True).decode(np.array([0.25])) == pytest.approx(1e-3)
    assert Int(1, 100, log=True).encode(10) == pytest.approx([0.5])


@pytest.mark.parametrize("parameter", [Float(1e-5, 10.0, log=True), Float(-0.1, 0.3), Float(0.1, 0.7, log=True)])
def test_the_ends_are_reached_and_never_passed(parameter):
    assert parameter.decode(np.array([0.0])) == pytest.approx(parameter.low, rel=1e-14)
    assert parameter.decode(np.array([1.0])) == pytest.approx(parameter.high, rel=1e-14)
    assert all(parameter.low <= parameter.decode(np.array([u])) <= parameter.high for u in np.linspace(0, 1, 101))


def test_two_different_options_lie_at_distance_one():
    mode = Choice(["a", "b", "c"])
    codes = np.array([mode.encode(o) for o in mode.options])
    gaps = np.linalg.norm(codes[:, None] - codes[None], axis=2)
    np.testing.assert_allclose(gaps, 1.0 - np.eye(3))


def test_the_option_true_is_not_the_option_one():
    mode = Choice([1, True, 0, False])
    for i, option in enumerate(mode.options):
        assert np.argmax(mode.encode(option)) == i
        assert mode.decode(np.array(mode.encode(option))) is option


def test_every_whole_number_and_every_option_gets_its_share():
    space = Space.of({"n": Int(3, 7), "mode": Choice(["a", "b", "c"])})
    U = np.random.default_rng(0).random((6000, space.dimension))
    drawn = [space.decode(u) for u in space.uniform(U)]
    for name, values in (("n", range(3, 8)), ("mode", "abc")):
        shares = np.array([sum(p[name] == v for p in drawn) for v in values]) / len(drawn)
        # Four standard deviations of a fair draw; rounding would halve the share of the end values.
        share = 1.0 / len(shares)
        np.testing.assert_allclose(shares, share, atol=4.0 * math.sqrt(share * (1.0 - share) / len(drawn)))


def test_the_steps_from_a_setting_are_its_neighbours_in_whole_numbers_and_all_other_options():
    space = Space.of({"gain": (0.0, 1.0), "legs": Int(1, 6), "mode": Choice(["trot", "walk", "bound"]), "n": Int(1, 2)})
    held = space.with_fixed({"n": 2})
    at = {"gain": 0.25, "legs": 1, "mode": "walk", "n": 2}
    found = [held.decode(u) for u in held.steps(held.encode(at))]
    assert found == [at | change for change in ({"legs": 2}, {"mode": "trot"}, {"mode": "bound"})]
    assert Space.of({"gain": (0.0, 1.0)}).steps(np.array([0.3])).shape == (0, 1)


def test_the_rarest_options_are_those_that_were_tried_least():
    space = Space.of({"gain": (0.0, 1.0), "mode": Choice(["trot", "walk", "bound"]), "held": Choice([1, 2])})
    held = space.with_fixed({"held": 1})
    at = {"gain": 0.3, "mode": "trot", "held": 1}
    tried = np.array([held.encode(at | {"mode": mode}) for mode in ("trot", "bound", "trot", "walk", "bound")])
    [found] = held.with_rarest_options(held.encode(at)[None], tried)
    assert held.decode(found) == at | {"mode": "walk"}
    assert not held.lacks_options(tried)
    assert held.lacks_options(tried[:3])


def test_a_pair_is_a_float():
    assert Space.of({"x": (0, 2)}).parameters["x"] == Float(0.0, 2.0)
    assert Space.of({"x": [0, 2]}).parameters["x"] == Float(0.0, 2.0)


def test_only_free_floats_are_continuous():
    assert MIXED.continuous.tolist() == [True, True, False, False, False, False, False]
    assert MIXED.with_fixed({"rate": 1.0}).continuous.tolist() == [True] + [False] * 6


def test_the_size_counts_the_different_settings():
    space = Space.of({"n": Int(1, 8), "mode": Choice(["a", "b"])})
    assert space.size == 16
    assert space.with_fixed({"n": 3}).size == 2
    assert MIXED.size == math.inf


def test_a_fixed_parameter_stays_in_everything_that_is_proposed():
    fixed = MIXED.with_fixed({"gain": 1, "mode": "walk"}).with_fixed({"legs": 2})
    U = np.random.default_rng(0).random((50, fixed.dimension))
    for points in (fixed.snap(U), fixed.uniform(U)):
        for params in map(fixed.decode, points):
            assert (params["gain"], params["mode"], params["legs"]) == (pytest.approx(1.0), "walk", 2)
    assert len({fixed.decode(u)["size"] for u in fixed.uniform(U)}) > 5
    assert MIXED.fixed == {}


def test_check_gives_the_space_s_own_order_and_types():
    given = {"mode": "walk", "size": np.int64(7), "legs": 4.0, "rate": 1, "gain": np.float32(0.5)}
    checked = MIXED.check(given)
    assert list(checked) == list(MIXED.parameters)
    assert [type(v) for v in checked.values()] == [float, float, int, int, str]


def test_rounding_in_a_value_at_the_end_is_no_error():
    assert Space.of({"x": (0.0, 0.3)}).check({"x": 0.1 + 0.2}) == {"x": 0.3}


@pytest.mark.parametrize(
    ("params", "argument"),
    [
        ({"gain": 4.0}, "gain"),
        ({"gain": float("nan")}, "gain"),
        ({"gain": True}, "gain"),
        ({"gain": "1"}, "gain"),
        ({"rate": 0.0}, "rate"),
        ({"legs": 2.5}, "legs"),
        ({"legs": 7}, "legs"),
        ({"mode": "gallop"}, "mode"),
        ({"wings": 2}, "params"),
    ],
)
def test_a_value_outside_its_parameter_is_refused_in_one_sentence(params, argument):
    with pytest.raises(ValueError, match="must") as caught:
        MIXED.check({**SETTINGS[0], **params})
    assert is_one_clear_sentence(caught.value, argument), caught.value


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Float(2.0, 1.0), "Float"),
        (lambda: Float(0.0, math.inf), "Float"),
        (lambda: Float(0.0, 1.0, log=True), "Float"),
        (lambda: Int(0.5, 3), "Int"),
        (lambda: Int(5, 1), "Int"),
        (lambda: Int(0, 8, log=True), "Int"),
        (lambda: Choice(["a"]), "Choice"),
        (lambda: Choice(["a", "a"]), "Choice"),
        (lambda: Choice("ab"), "Choice"),
        (lambda: Space.of({}), "space"),
        (lambda: Space.of([("x", (0, 1))]), "space"),
        (lambda: Space.of({"x": (0, 1, 2)}), "space['x']"),
        (lambda: Space.of({"x": 3}), "space['x']"),
        (lambda: Space.of({3: (0, 1)}), "space"),
        (lambda: MIXED.with_fixed({"wings": 2}), "fixed"),
        (lambda: MIXED.with_fixed({"legs": 9}), "legs"),
        (lambda: MIXED.check({"gain": 1.0}), "params"),
        (lambda: MIXED.check(3), "params"),
    ],
)
def test_a_wrong_space_is_refused_in_one_sentence_with_its_remedy(make, argument):
    with pytest.raises(ValueError, match="must") as caught:
        make()
    assert re.match(rf"{re.escape(argument)} must [^\n]+; got [^\n]+\. [A-Z0-9'][^\n]+\.?$", str(caught.value))
