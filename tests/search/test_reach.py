"""Steps and leaps: what they are, and which is due."""

import numpy as np
import pytest

from crashbo.search import reach

BOTH = np.array([True, True])


def test_a_leap_lies_beyond_reach_of_the_successes_before_it():
    X = np.array([[0.5, 0.5], [0.3, 0.3], [0.58, 0.5], [0.65, 0.5], [0.45, 0.9], [0.5, 0.85]])
    succeeded = np.array([False, True, False, True, False, True])
    # the first has none before it; from (0.3, 0.3) all lie too far; (0.65, 0.5) opens its side, but not the other
    assert reach.leaps(X, succeeded, BOTH).tolist() == [False, False, True, True, True, True]
    assert reach.leaps(X, succeeded, np.array([True, False])).tolist() == [False, False, True, True, False, False]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_without_a_success_nothing_is_a_leap(n):
    assert not reach.leaps(np.zeros((n, 2)), np.zeros(n, dtype=bool), BOTH).any()


def due(words, price=3.0):
    """Whether a leap is due after trials such as "step gains", "leap crashes", "step fails"."""
    leapt = np.array([word.startswith("leap") for word in words], dtype=bool)
    crashed = np.array([word.endswith("crashes") for word in words], dtype=bool)
    gains = np.cumsum([word.endswith("gains") for word in words])
    cost = np.where(crashed, np.nan, np.where([w.endswith("fails") for w in words], 9.0, -1.0 * gains))
    return reach.leap_is_due(leapt, crashed, cost, np.ones(len(words), dtype=bool), price, 0.1)


def test_both_ways_take_turns_while_neither_has_paid():
    assert due([])
    assert not due(["leap fails"])
    assert due(["leap fails", "step fails"])


def test_leaps_that_crash_wait_until_steps_no_longer_gain():
    before = ["step gains", "leap crashes", "step gains", "leap crashes"]
    assert not due([*before, "step gains"])
    assert not due([*before, *["step fails"] * 5])
    assert due([*before, *["step fails"] * 30])


def test_what_pays_is_done_again_and_a_dear_crash_counts_for_more():
    assert due(["step fails", "leap gains", "step fails", "leap gains"])
    words = ["step fails", "step fails", "leap crashes"]
    assert due(words, price=1.0)
    assert not due(words, price=10.0)


def test_a_gain_within_the_resolution_does_not_pay():
    leapt, crashed, searched = np.array([False, True]), np.zeros(2, dtype=bool), np.ones(2, dtype=bool)
    assert not reach.leap_is_due(leapt, crashed, np.array([1.0, 0.95]), searched, 3.0, 0.1)
    assert reach.leap_is_due(leapt, crashed, np.array([1.0, 0.5]), searched, 3.0, 0.1)


def test_only_what_the_search_proposed_counts_and_it_must_beat_a_start():
    leapt, crashed, cost = np.array([False, False, True]), np.zeros(3, dtype=bool), np.array([0.0, 1.0, 2.0])
    searched = np.array([False, True, True])
    assert reach.leap_is_due(leapt, crashed, cost, searched, 3.0, 0.1)
