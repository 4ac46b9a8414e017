"""Bad input gets one sentence that names argument, rule and value, and one that names the remedy."""

import re

import numpy as np
import pytest

from crashbo.models import GP, GPCR

X = np.random.default_rng(0).random((4, 2))
Y = np.array([0.1, 0.2, np.nan, 0.3])
CRASHED = np.array([False, False, True, False])
HYPERS = {"lengthscales": 0.3, "outputscale": 1.0, "threshold": 1.0, "noise_std": 0.1}


def with_entry(array, value):
    changed = np.array(array, dtype=float)
    changed.flat[1] = value
    return changed


# Argument, the bad value, and what the message must hold of rule and value.
BAD_DATA = [
    ("X", X[:, 0], "shape (4,)"),
    ("X", np.empty((4, 0)), "shape (4, 0)"),
    ("X", with_entry(X, np.nan), "got nan"),
    ("X", with_entry(X, np.inf), "got inf"),
    ("X", with_entry(X, -np.inf), "got -inf"),
    ("X", [["a", "b"]] * 4, "numbers"),
    ("X", [[0.1, 0.2], [0.3]], "numbers"),
    ("X", None, "got"),
    ("y", Y[:3], "shape (3,)"),
    ("y", Y[:, None], "shape (4, 1)"),
    ("y", 1.0, "shape ()"),
    ("y", with_entry(Y, np.inf), "got inf"),
    ("y", with_entry(Y, -np.inf), "got -inf"),
    ("y", ["a"] * 4, "numbers"),
    ("crashed", CRASHED[:3], "shape (3,)"),
    ("crashed", CRASHED[:, None], "shape (4, 1)"),
    ("crashed", CRASHED.astype(int), "got 0 in row 0"),
    ("crashed", [0.0, 1.0, 0.0, np.nan], "got 0.0 in row 0"),
    ("crashed", [False, True, np.nan, False], "got nan in row 2"),
    ("crashed", ["no", "no", "yes", "no"], "got 'no' in row 0"),
    ("crashed", [False, None, True, False], "got None in row 1"),
    ("crashed", [False, True, False, 1], "got 1 in row 3"),
]
BAD_NOISE = [
    ("noise_std", -0.1, "got -0.1"),
    ("noise_std", np.nan, "got nan"),
    ("noise_std", np.inf, "got inf"),
    ("noise_std", np.ones(3), "shape (3,)"),
    ("noise_std", [0.1, 0.1, -0.2, 0.1], "got -0.2"),
    ("noise_std", "small", "'small'"),
]
BAD_HYPERS = [
    ("lengthscales", 0.0, "got 0.0"),
    ("lengthscales", [0.3, -0.1], "got -0.1"),
    ("lengthscales", [0.3, np.nan], "got nan"),
    ("lengthscales", [0.3, 0.3, 0.3], "shape (3,)"),
    ("outputscale", 0.0, "got 0.0"),
    ("outputscale", -1.0, "got -1.0"),
    ("outputscale", np.inf, "got inf"),
    ("outputscale", [1.0, 1.0], "shape (2,)"),
    ("threshold", np.nan, "nan"),
    ("threshold", np.inf, "inf"),
    ("threshold", [1.0, 2.0], "[1.0, 2.0]"),
    ("crash_noise_std", -0.1, "got -0.1"),
    ("crash_noise_std", np.nan, "nan"),
    ("mean", np.inf, "inf"),
    ("mean", "zero", "'zero'"),
]
BAD_FIT = [
    ("threshold", (2.0, 1.0), "(2.0, 1.0)"),
    ("threshold", (1.0, 1.0), "(1.0, 1.0)"),
    ("threshold", (1.0, 2.0, 3.0), "(1.0, 2.0, 3.0)"),
    ("threshold", (0.0, np.inf), "inf"),
    ("threshold", np.nan, "nan"),
    ("threshold", "high", "'high'"),
    ("prior", "wide", "'wide'"),
]


def check(error, name, what):
    """Argument, rule, value, remedy: "*argument* must *rule*; got *value*. *Remedy*."."""
    message = str(error.value)
    assert re.fullmatch(rf"{name} must [^;]+; got .+\. [A-Z].+\.", message), message
    assert "\n" not in message
    assert what in message


@pytest.mark.parametrize(("name", "value", "what"), BAD_DATA + BAD_NOISE + BAD_HYPERS)
def test_condition_refuses_bad_input_in_one_sentence(name, value, what):
    data = {"X": X, "y": Y, "crashed": CRASHED}
    with pytest.raises(ValueError) as error:  # noqa: PT011 (checked in full below)
        GPCR.condition(**(data | HYPERS | {name: value}))
    check(error, name, what)


@pytest.mark.parametrize(("name", "value", "what"), BAD_DATA + BAD_NOISE + BAD_FIT)
def test_fit_refuses_bad_input_in_one_sentence(name, value, what):
    data = {"X": X, "y": Y, "crashed": CRASHED}
    with pytest.raises(ValueError) as error:  # noqa: PT011
        GPCR.fit(**(data | {name: value}))
    check(error, name, what)


@pytest.mark.parametrize(("name", "value", "what"), [case for case in BAD_DATA if case[0] != "crashed"] + BAD_NOISE)
def test_regression_refuses_the_same(name, value, what):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        GP.fit(**({"X": X, "y": Y} | {name: value}))
    check(error, name, what)


@pytest.mark.parametrize("bad", [X[:, :1], X[0], with_entry(X, np.nan)], ids=["too few columns", "a vector", "NaN"])
def test_predictions_refuse_points_that_do_not_fit(bad):
    model = GPCR.condition(X, Y, CRASHED, **HYPERS)
    for question in (model.predict, model.p_safe):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            question(bad)
        check(error, "X", "got")


@pytest.mark.parametrize("start", [GPCR.fit(X[:, :1], Y, CRASHED), "yesterday's"], ids=["another space", "a word"])
def test_a_start_that_is_no_earlier_model_of_this_space_is_refused(start):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        GPCR.fit(X, Y, CRASHED, start=start)
    check(error, "start", "one of 1" if isinstance(start, GPCR) else "yesterday's")


def test_lists_and_integers_are_as_good_as_arrays():
    listed = GPCR.condition(X.tolist(), Y.tolist(), CRASHED.tolist(), **HYPERS)
    assert listed.log_evidence == GPCR.condition(X, Y, CRASHED, **HYPERS).log_evidence
    ones = {"lengthscales": 1, "outputscale": 1, "threshold": 1, "noise_std": 1}
    whole = GPCR.condition([[0, 1], [1, 0]], [1, 2], [False, True], **ones)
    assert np.isfinite(whole.log_evidence)
