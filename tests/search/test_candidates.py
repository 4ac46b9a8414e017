"""The candidates of a search: where a study looks."""

import numpy as np

from crashbo.search.candidates import Box
from crashbo.search.space import Float, Int, Space

SPACE = Space({"gain": Float(0.0, 1.0), "legs": Int(2, 6)})


def test_near_the_successes_is_a_little_beyond_them_in_what_is_continuous():
    box = Box.near(SPACE, np.array([[0.5, 0.5], [0.05, 0.75]]))
    np.testing.assert_allclose(box.low, [0.0, 0.0])
    np.testing.assert_allclose(box.high, [0.6, 1.0])
