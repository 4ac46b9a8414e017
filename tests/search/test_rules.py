"""Rules between parameters: a small grammar, parsed and never evaluated as Python."""

import pickle
import random

import pytest

from crashbo.search.rules import TOLERANCE, rules_of, rules_out


def rule(text):
    (found,) = rules_of([text])
    return found


@pytest.mark.parametrize(
    ("text", "params", "kept"),
    [
        ("x8 <= x9", {"x8": 1, "x9": 1}, True),
        ("x8 < x9", {"x8": 1, "x9": 1}, False),
        ("2 * x1 <= x3", {"x1": 0.5, "x3": 0.9}, False),
        ("a + b + c == 1", {"a": 0.1, "b": 0.2, "c": 0.7}, True),
        ("a - b - c >= 0", {"a": 3, "b": 2, "c": 2}, False),
        ("a / b * c > 4", {"a": 4, "b": 2, "c": 3}, True),
        ("-(a + 1.5e1) / 2 < -'my gain'", {"a": 5, "my gain": 9}, True),
        ("a - -b <= +3", {"a": 1, "b": 2}, True),
        ("a / b <= 1", {"a": 1, "b": 0}, False),
    ],
)
def test_a_rule_is_read_as_it_would_be_in_a_formula(text, params, kept):
    assert rule(text).holds(params) is kept


def test_a_rule_that_names_what_does_not_exist_holds():
    assert rule("a <= b").holds({"a": 5})
    (own,) = rules_of([lambda p: p["a"] <= p["b"]])
    assert own.holds({"a": 5})
    assert not own.holds({"a": 5, "b": 4})


def test_a_function_that_has_a_bug_says_so():
    (own,) = rules_of([lambda p: {}["a"]])
    with pytest.raises(KeyError):
        own.holds({"a": 1})


def test_rounding_breaks_no_equality_and_nothing_that_a_user_wrote():
    assert rule("a + b == 0.3").holds({"a": 0.1, "b": 0.2})
    assert not rule("a + b <= 0.3").holds({"a": 0.1, "b": 0.2})
    assert rule("a + b <= 0.3").holds({"a": 0.1, "b": 0.2}, rounded=True)
    assert rule("a - b == 0").holds({"a": 1e6, "b": 1e6 * (1 + 0.5 * TOLERANCE)})
    assert not rule("a - b == 0").holds({"a": 1.0, "b": 1.0 + 3 * TOLERANCE})


@pytest.mark.parametrize("text", ["2 * (a - b) / 4 <= 1 - a", "a == b", "a * 3 + 1 > 2 * 2"])
def test_sums_are_known_as_linear(text):
    assert rule(text).linear is not None


def test_linear_rules_give_their_factors():
    assert rule("2 * (a - b) / 4 <= 1 - a").linear == ({"a": 1.5, "b": -0.5}, -1.0)


@pytest.mark.parametrize("text", ["a * b <= 1", "1 / a <= 2", "a / 0 <= 1"])
def test_other_rules_are_not(text):
    assert rule(text).linear is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a <=", "<= a", "a = b", "a <= b <= c", "a b <= c", "1 < 2", "a ** 2 <= 1", "(a <= b", "a) <= b"),
        *("a <= 1e999", "a <= b;", "__import__('os').system('true') <= 1", "a.b <= 1", "a[0] <= 1", "a <= 'b"),
        *("(" * 60 + "a" + ")" * 60 + " <= 1", "-" * 60 + "a <= 1", "a + " * 200 + "a <= 1"),
    ],
)
def test_a_malformed_rule_is_refused_in_a_sentence(text):
    with pytest.raises(ValueError, match=r"(?s)^rule must .*; got .*\. [A-Z]"):
        rules_of([text])


def test_whatever_is_written_is_a_rule_or_refused():
    rng = random.Random(0)
    for _ in range(20_000):
        text = "".join(rng.choice("ab12 .+-*/()<>=='\"eE_²\n") for _ in range(rng.randint(0, 25)))
        try:
            (found,) = rules_of([text])
        except ValueError as error:
            assert str(error).startswith("rule must ")  # noqa: PT017 (either may happen)
        else:
            assert isinstance(found.holds(dict.fromkeys(found.names, 1.0)), bool)


@pytest.mark.parametrize("said", [5, [5], [None], {"a": 1}, [int]])
def test_what_is_neither_text_nor_a_function_is_refused(said):
    with pytest.raises(ValueError, match="rules must"):
        rules_of(said)


def test_rules_are_saved_as_text_and_by_name():
    rules = rules_of(["a <= b", is_small])
    assert rules_out(rules) == ["a <= b", {"crashbo:own": f"{__name__}:is_small"}]
    assert pickle.loads(pickle.dumps(rules)) == rules
    with pytest.raises(ValueError, match="rules must be passed again"):
        rules_of(rules_out(rules))


def is_small(params):
    return params["a"] < 0.1
