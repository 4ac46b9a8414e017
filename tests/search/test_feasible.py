"""Everything that a space with rules, conditions and steps snaps, spreads or steps to can be proposed."""

import numpy as np
import pytest

from crashbo.search.polytope import Polytope
from crashbo.search.rules import rules_of
from crashbo.search.space import Choice, Context, Float, Int, Space

UNIT = (0.0, 1.0)
MIXTURE = dict.fromkeys("abcde", UNIT)
BRANCHES = {
    "solver": Choice(["direct", "multigrid", "other"]),
    "levels": Int(2, 6, when={"solver": ["multigrid", "other"]}),
    "weight": Float(0.0, 1.0, when={"solver": "multigrid"}),
    "deep": Float(0.0, 10.0, when={"levels": [4, 5, 6]}),
    "grade": Choice(["fine", "medium", "coarse"], ordered=True),
    "width": Float(0.0, 1.0, step=0.15),
}


def inside(params):
    return (params["x"] - 0.5) ** 2 + (params["y"] - 0.5) ** 2 <= 0.04


CASES = {
    "mixture": (MIXTURE, ["a + b + c + d + e == 1"]),
    "bounded mixture": (MIXTURE, ["a + b + c + d + e == 1", "a >= 0.2", "b + c <= 0.3"]),
    "two equalities": (MIXTURE, ["a + b + c == 1", "c + 2 * d == e"]),
    "order": ({"x8": UNIT, "x9": (0.0, 2.0)}, ["x8 <= x9"]),
    "twice": ({"x1": UNIT, "x2": UNIT, "x3": UNIT}, ["2 * x1 <= x3"]),
    "strict": ({"x": UNIT, "y": UNIT}, ["x < y", "x + y > 0.5"]),
    "thin": ({"x": UNIT, "y": UNIT}, ["x <= y + 0.001", "y <= x + 0.001"]),
    "far from zero": ({"x": (1e7, 1e7 + 1), "y": (1e7, 1e7 + 1)}, ["x <= y"]),
    "log scale": ({"x": Float(1e-4, 1.0, log=True), "y": Float(1e-3, 10.0, log=True)}, ["2 * x <= y", "x + y >= 0.01"]),
    "whole numbers": ({"n": Int(1, 100), "m": Int(1, 100), "k": Int(0, 200), "f": UNIT}, ["n + m == k", "n < m"]),
    "few whole numbers": ({"n": Int(1, 10), "m": Int(1, 10)}, ["n + m == 7"]),
    "product": ({"n": Int(1, 64), "m": Int(1, 64)}, ["n * m == 64"]),
    "steps": ({k: Float(0.0, 1.0, step=0.05) for k in "abcd"}, ["a + b + c + d == 1", "a >= b"]),
    "steps and reals": ({"a": Float(0.0, 1.0, step=0.3), "b": UNIT, "n": Int(0, 4)}, ["a + b + n == 2"]),
    "curve": ({"x": UNIT, "y": UNIT}, ["x * y <= 0.1"]),
    "own": ({"x": UNIT, "y": UNIT, "z": UNIT}, [inside, "z <= x"]),
    "options that are numbers": ({"size": Choice([16, 32, 64]), "rate": Float(0.1, 10.0)}, ["rate * 10 <= size"]),
    "branches": (BRANCHES, ["weight <= width", "deep <= levels"]),
    "branches without rules": (BRANCHES, []),
}


def ruled(name):
    parameters, rules = CASES[name]
    space = Space.of(parameters).with_rules(rules_of(rules))
    space.check_rules()
    return space


@pytest.mark.parametrize("name", CASES)
def test_every_point_of_a_space_keeps_its_rules_exactly(name):
    space, rng = ruled(name), np.random.default_rng(0)
    even = space.uniform(rng.random((80, space.dimension)))
    near = space.snap(np.clip(even + 0.3 * rng.standard_normal(even.shape), 0.0, 1.0))
    beside = np.vstack([space.steps(u) for u in even[:10]])
    for u in np.vstack([even, near, beside]):
        params = space.decode(u)
        assert space.accepts(params)
        assert all(rule.holds(params) for rule in space.rules)
        assert space.check(params) == params
        assert np.allclose(space.encode(params), u, rtol=0.0, atol=1e-9)
    assert np.array_equal(space.snap(near), near)


def test_a_mixture_is_drawn_evenly():
    space = ruled("mixture")
    X = space.uniform(np.random.default_rng(1).random((2000, 5)))
    assert np.allclose(X.sum(axis=1), 1.0, rtol=0.0, atol=1e-14)
    assert X.mean(axis=0) == pytest.approx(np.full(5, 0.2), abs=0.015)
    assert X.std(axis=0) == pytest.approx(np.full(5, (0.2 * 0.8 / 6) ** 0.5), abs=0.015)  # of a flat Dirichlet


def test_an_inequality_leaves_what_keeps_it_where_it_was():
    space, U = ruled("twice"), np.random.default_rng(2).random((500, 3))
    kept = 2.0 * U[:, 0] <= U[:, 2]
    X = space.uniform(U)
    assert np.array_equal(X[kept], U[kept])
    assert X[~kept, 0].mean() == pytest.approx(1 / 6, abs=0.02)  # drawn anew from the same part of the space


def test_the_nearest_point_is_the_nearest():
    space, u = ruled("twice"), np.array([0.9, 0.4, 0.3])
    assert space.snap(u[None])[0] == pytest.approx([0.3, 0.4, 0.6], abs=1e-6)


def test_random_polytopes_agree_with_brute_force():
    rng = np.random.default_rng(3)
    grid = rng.random((200_000, 2))
    for _ in range(10):
        A = rng.standard_normal((3, 2))
        A /= np.linalg.norm(A, axis=1)[:, None]
        b = A @ rng.random(2) + 0.1 * rng.random(3)  # some point keeps it
        polytope = Polytope(A, b, np.zeros((0, 2)), np.zeros(0))
        kept = grid[(grid @ A.T <= b).all(axis=1)]
        v = 3.0 * rng.random(2) - 1.0
        y = polytope.project(v[None])[0]
        assert (A @ y <= b + 1e-9).all()
        assert np.linalg.norm(y - v) <= np.linalg.norm(kept - v, axis=1).min() + 1e-9
        walked = polytope.walk(4000, rng)
        assert (walked @ A.T <= b + 1e-9).all()
        assert walked.mean(axis=0) == pytest.approx(kept.mean(axis=0), abs=0.03)
        found = polytope.nearest(v)
        e = 1e-6 * rng.standard_normal(2)
        assert polytope.project((v + e)[None])[0] - y == pytest.approx(found.slope @ e, abs=1e-8)


def test_an_ascent_slides_along_a_rule():
    space = ruled("twice")
    Y, slopes = space.feasible.onto(np.array([[0.5, 0.2, 0.5]]))
    assert 2.0 * Y[0, 0] == pytest.approx(Y[0, 2], abs=1e-6)
    along = np.array([1.0, 0.0, 2.0]) / 5.0**0.5
    assert slopes[0] @ along == pytest.approx(along)
    assert slopes[0] @ np.array([2.0, 0.0, -1.0]) == pytest.approx(np.zeros(3), abs=1e-12)


@pytest.mark.parametrize(
    "rules",
    [["a + b >= 3"], ["a < b", "b < a"], ["a + b + c == 4"], [lambda p: False], ["a * b == 0.5"], ["a / 0 < 1"]],
)
def test_rules_that_nothing_keeps_are_refused(rules):
    with pytest.raises(ValueError, match=r"rules must be kept by some params; got .*\. [A-Z]"):
        Space.of(MIXTURE).with_rules(rules_of(rules)).check_rules()


def test_a_rule_that_names_no_parameter_is_refused():
    with pytest.raises(ValueError, match=r"rules must name parameters .*; got 'q' in 'a <= q'\. Mend"):
        Space.of(MIXTURE).with_rules(rules_of("a <= q")).check_rules()
    with pytest.raises(ValueError, match=r"rules must name parameters .*; got 'q' in '<lambda>'\. Mend"):
        Space.of(MIXTURE).with_rules(rules_of(lambda params: params["q"] < 1)).check_rules()
    with pytest.raises(ValueError, match=r"rules must compare numbers; got 'solver'"):
        Space.of(BRANCHES).with_rules(rules_of("solver <= 1")).check_rules()


@pytest.mark.parametrize(
    ("rules", "only"),
    [(["a <= 0"], {"a": 0.0}), (["a + b >= 2"], {"a": 1.0, "b": 1.0}), (["1e300 * a <= 0"], {"a": 0.0})],
)
def test_rules_may_allow_the_end_of_a_range_alone(rules, only):
    space = Space.of(MIXTURE).with_rules(rules_of(rules))
    space.check_rules()
    for u in space.uniform(np.random.default_rng(0).random((5, 5))):
        assert space.decode(u).items() >= only.items()


@pytest.mark.parametrize(
    "rule",
    ["1e308 * a + 1e308 * b <= 1e308", "1e300 * a <= 1e300 * b", "1e-300 * a <= 1e-300 * b", "a / 4 <= 1e308 - b / 4"],
)
def test_numbers_of_any_size_overflow_nothing(rule):
    space = Space.of(MIXTURE).with_rules(rules_of(rule))
    space.check_rules()
    X = space.uniform(np.random.default_rng(0).random((20, 5)))
    assert all(r.holds(space.decode(x)) for r in space.rules for x in X)


def random_space(rng):
    """Up to six parameters of all kinds, some beside values of earlier ones."""
    parameters = {}
    for i in range(int(rng.integers(2, 7))):
        parents = [n for n, p in parameters.items() if np.isfinite(p.count)]
        when = None
        if parents and rng.random() < 0.4:
            parent = parents[int(rng.integers(len(parents)))]
            values = list(parameters[parent].values())
            when = {parent: [values[int(k)] for k in rng.choice(len(values), size=min(2, len(values)), replace=False)]}
        kind, low = int(rng.integers(5)), float(rng.normal())
        parameters[f"p{i}"] = (
            Float(low, low + float(rng.random()), when=when)
            if kind == 0
            else Float(1e-3, 10.0, log=True, when=when)
            if kind == 1
            else Float(round(low, 2), round(low, 2) + 1.0, step=float(rng.choice([0.1, 0.3, 0.25])), when=when)
            if kind == 2
            else Int(0, int(rng.integers(1, 9)), when=when)
            if kind == 3
            else Choice(["u", "v", "w"], ordered=bool(rng.random() < 0.5), when=when)
        )
    numbers = [n for n, p in parameters.items() if not isinstance(p, Choice)]
    rules = []
    if len(numbers) >= 2 and rng.random() < 0.7:
        a, b = (str(n) for n in rng.choice(numbers, size=2, replace=False))
        rules = [f"{a} <= {float(rng.uniform(0.5, 3)):.3f} * {b} + {float(rng.random()):.3f}"]
    return parameters, rules


@pytest.mark.parametrize("seed", range(24))
def test_random_spaces_encode_decode_and_keep_their_rules(seed):
    rng = np.random.default_rng(seed)
    parameters, rules = random_space(rng)
    space = Space.of(parameters).with_rules(rules_of(rules))
    try:
        space.check_rules()
    except ValueError:
        assert rules  # some are kept by nothing
        return
    X = space.uniform(rng.random((40, space.dimension)))
    for u in np.vstack([X, space.snap(rng.random((20, space.dimension))), space.steps(X[0])]):
        params = space.decode(u)
        assert space.accepts(params)
        assert all(rule.holds(params) for rule in space.rules)
        assert np.allclose(space.encode(params), u, rtol=0.0, atol=1e-9)


def test_a_context_stays_where_it_is_given():
    space = Space.of({"x": UNIT, "t": Context(5.0, 40.0)}).with_rules(rules_of("x <= t / 40"))
    here = space.in_context({"t": 45.0})  # more than was expected
    X = here.uniform(np.random.default_rng(0).random((20, 2)))
    assert all(here.decode(x)["t"] == pytest.approx(45.0) for x in X)
    with pytest.raises(ValueError, match=r"rules must be kept by some params; .* where t is -5\.0"):
        space.in_context({"t": -5.0}).uniform(np.full((1, 2), 0.5))
