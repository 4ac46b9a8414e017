"""The candidates of a search: where a study looks in its first trials."""

import numpy as np

from crashbo.search.candidates import Box
from crashbo.search.space import Float, Int, Space

SPACE = Space({"gain": Float(0.0, 1.0), "legs": Int(2, 6)})
MIDDLE = np.array([[0.5, 0.5]])


def test_the_first_trials_begin_in_the_middle_of_what_is_continuous():
    box = Box.early(SPACE, MIDDLE, 0)
    np.testing.assert_allclose(box.low, [0.4, 0.0])
    np.testing.assert_allclose(box.high, [0.6, 1.0])


def test_they_reach_outwards_trial_by_trial_until_all_is_open():
    lows = [Box.early(SPACE, MIDDLE, trials).low[0] for trials in (0, 3, 6, 9)]
    assert lows == sorted(set(lows), reverse=True)
    whole, late = Box.whole(SPACE), Box.early(SPACE, MIDDLE, 10)
    np.testing.assert_array_equal([late.low, late.high], [whole.low, whole.high])


def test_a_success_farther_out_opens_the_way_to_it():
    box = Box.early(SPACE, np.array([[0.5, 0.5], [0.05, 0.5]]), 0)
    np.testing.assert_allclose((box.low[0], box.high[0]), (0.05, 0.6))
