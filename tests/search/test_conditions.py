"""Parameters that exist only beside certain values of others; steps; ordered choices."""

import re

import numpy as np
import pytest

from crashbo.search.space import Choice, Context, Float, Int, Space

SPACE = Space.of(
    {
        "model": Choice(["trees", "network"]),
        "depth": Int(1, 8, when={"model": "trees"}),
        "layers": Int(1, 3, when={"model": "network"}),
        "second": Float(0.0, 1.0, when={"layers": [2, 3]}),
        "rate": (0.0, 1.0),
    }
)


@pytest.mark.parametrize(
    "params",
    [
        {"model": "trees", "depth": 3, "rate": 0.5},
        {"model": "network", "layers": 1, "rate": 0.5},
        {"model": "network", "layers": 3, "second": 0.25, "rate": 0.5},
    ],
)
def test_params_hold_what_exists_and_nothing_else(params):
    assert SPACE.check(params) == params
    assert SPACE.decode(SPACE.encode(params)) == params
    assert list(SPACE.decode(SPACE.encode(params))) == list(params)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"model": "trees", "rate": 0.5}, "params must name each of 'model', 'depth', 'rate'; got"),
        (
            {"model": "network", "layers": 2, "rate": 0.5},
            "params must name each of 'model', 'layers', 'second', 'rate'; got",
        ),
        (
            {"model": "trees", "depth": 3, "layers": 1, "rate": 0.5},
            "layers must be left out, since it exists only when model is 'network'; got",
        ),
        ({"model": "trees", "depth": 9, "rate": 0.5}, "depth must be a whole number from 1 to 8; got 9"),
        ({"model": "shrubs", "rate": 0.5}, "model must be one of 'trees', 'network'; got 'shrubs'"),
    ],
)
def test_other_params_are_refused_in_a_sentence(params, words):
    assert not SPACE.accepts(params)
    with pytest.raises(ValueError, match=re.escape(words)):
        SPACE.check(params)


def test_what_does_not_exist_has_no_place_of_its_own():
    U = np.random.default_rng(0).random((50, SPACE.dimension))
    for x in SPACE.uniform(U):
        there = SPACE.decode(x)
        assert ("depth" in there) == (there["model"] == "trees")
        assert ("second" in there) == (there.get("layers", 1) > 1)
        assert "second" in there or x[SPACE.at("second")] == 0.5


def test_an_ascent_leaves_what_does_not_exist_alone():
    X = np.array([SPACE.encode(p) for p in ({"model": "trees", "depth": 3, "rate": 0.5},)])
    _, gradient = SPACE.along(lambda Y: (Y.sum(axis=1), np.ones_like(Y)))(X)
    assert gradient[0, SPACE.at("second")] == 0.0
    assert gradient[0, SPACE.at("rate")] == 1.0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"a": Float(0, 1, when={"b": 1})}, "when of 'a' must name a parameter; got 'b'"),
        ({"a": Float(0, 1, when={"b": 1}), "b": (0, 1)}, "when of 'a' must name one with countable values; got 'b'"),
        (
            {"a": Float(0, 1, when={"b": 9}), "b": Int(0, 3)},
            "b in when of 'a' must be a whole number from 0 to 3; got 9",
        ),
        ({"a": Int(0, 1, when={"b": 1}), "b": Int(0, 3, when={"a": 1})}, "when must not go in a circle; got 'a', 'b'"),
        ({"t": Context(0, 1)}, "space must have a parameter to choose; got contexts alone: 't'"),
    ],
)
def test_conditions_that_cannot_be_are_refused(parameters, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Space.of(parameters)


@pytest.mark.parametrize("when", [5, {}, {1: 2}, {"b": []}])
def test_a_when_that_says_nothing_is_refused(when):
    with pytest.raises(ValueError, match=r"^when.* must"):
        Int(0, 1, when=when)


def test_a_condition_may_come_before_what_it_depends_on():
    space = Space.of({"a": Float(0, 1, when={"b": [1, 2]}), "b": Int(0, 3)})
    assert space.check({"b": 0}) == {"b": 0}
    assert space.check({"a": 1, "b": 2}) == {"a": 1.0, "b": 2}


@pytest.mark.parametrize(
    ("p", "values"),
    [
        (Float(0.0, 1.0, step=0.25), [0.0, 0.25, 0.5, 0.75, 1.0]),
        (Float(0.1, 0.5, step=0.1), [0.1, 0.2, 0.3, 0.4, 0.5]),
        (Float(0.0, 1.0, step=0.3), [0.0, 0.3, 0.6, 0.9]),  # high is no step
        (Float(-1.0, 1.0, step=5.0), [-1.0]),
    ],
)
def test_a_float_with_steps_has_these_values(p, values):
    space = Space.of({"x": p, "y": (0.0, 1.0)})
    X = space.uniform(np.random.default_rng(0).random((400, 2)))
    counts = [sum(space.decode(x)["x"] == value for x in X) for value in values]
    assert sum(counts) == 400
    assert min(counts) > 0.7 * 400 / len(values)  # equal shares
    assert p.values() == values


def test_what_lies_between_steps_is_refused_as_a_proposal_and_taken_as_a_trial():
    space = Space.of({"x": Float(0.0, 1.0, step=0.05)})
    with pytest.raises(ValueError, match=r"x must be a number from 0 to 1 in steps of 0.05; got 0.31\. Mend"):
        space.check({"x": 0.31})
    assert space.check({"x": 0.31}, steps=False) == {"x": 0.31}
    assert space.encode({"x": 0.31}) == pytest.approx([0.31])
    assert space.steps(space.encode({"x": 0.3})).ravel() == pytest.approx([0.25, 0.35])


@pytest.mark.parametrize(
    ("step", "log"), [(0.0, False), (-1.0, False), (float("nan"), False), ("a", False), (0.1, True)]
)
def test_a_step_that_cannot_be_is_refused(step, log):
    with pytest.raises(ValueError, match="step must"):
        Float(0.1, 1.0, log=log, step=step)


def test_an_ordered_choice_has_one_coordinate():
    p = Choice(["fine", "medium", "coarse"], ordered=True)
    space = Space.of({"grade": p})
    assert space.dimension == 1
    assert [space.encode({"grade": o})[0] for o in p.options] == [0.0, 0.5, 1.0]
    assert [space.decode(u)["grade"] for u in space.steps(np.array([0.0]))] == ["medium"]
    assert {space.decode(u)["grade"] for u in space.steps(np.array([0.5]))} == {"fine", "coarse"}
    shares = np.bincount(
        [p.options.index(space.decode(u)["grade"]) for u in space.uniform(np.linspace(0, 1, 300)[:, None])]
    )
    assert shares == pytest.approx([100, 100, 100], abs=1)


def test_what_ran_need_not_lie_in_range_or_on_a_step():
    space = Space.of({"x": Float(0.0, 1.0, step=0.5), "n": Int(1, 3), "mode": Choice(["a", "b"])})
    params = {"x": 0.5, "n": 2, "mode": "a"}
    assert space.as_run(params, {"x": 1.2, "n": 2.5}) == {"x": 1.2, "n": 2.5, "mode": "a"}
    with pytest.raises(ValueError, match="ran must name parameters"):
        space.as_run(params, {"y": 1.0})
    with pytest.raises(ValueError, match=r"ran\['mode'\] must be one of 'a', 'b'; got 'c'"):
        space.as_run(params, {"mode": "c"})


def test_what_ran_may_have_been_another_branch():
    params = {"model": "trees", "depth": 3, "rate": 0.5}
    ran = SPACE.as_run(params, {"model": "network", "layers": 1})
    assert ran == {"model": "network", "layers": 1, "rate": 0.5}
    with pytest.raises(ValueError, match="ran must name 'layers', too"):
        SPACE.as_run(params, {"model": "network"})
