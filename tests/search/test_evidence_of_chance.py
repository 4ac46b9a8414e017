"""Evidence from outcomes: of labels that cluster, and of a noise that was given, against simulations of their null."""

import math

import numpy as np
import pytest

from crashbo.search.evidence import clustered, other_noise


def test_labels_drawn_anywhere_are_no_evidence_in_the_mean():
    rng = np.random.default_rng(0)
    found = [math.exp(clustered(rng.random((30, 2)), rng.random(30) < 0.2)) for _ in range(400)]
    assert np.mean(found) < 1.0
    assert np.mean(np.array(found) > 20.0) < 0.01


def test_that_a_void_is_tried_again_at_the_same_place_is_no_evidence():
    """A search proposes a void's place again: whether it is void then is drawn anew."""
    rng, found = np.random.default_rng(1), []
    for _ in range(300):
        X, labels = [rng.random(2)], [rng.random() < 0.3]
        for _ in range(25):
            X.append(X[-1] if labels[-1] else rng.random(2))
            labels.append(rng.random() < 0.3)
        found.append(math.exp(clustered(np.array(X), np.array(labels))))
    assert np.mean(found) < 1.0


def test_labels_of_a_corner_are_evidence():
    X = np.random.default_rng(2).random((40, 2))
    assert clustered(X, X.sum(axis=1) > 1.3) > 4.0


@pytest.mark.parametrize("labels", [np.zeros(5, dtype=bool), np.ones(5, dtype=bool)])
def test_labels_that_are_all_the_same_are_none(labels):
    assert clustered(np.random.default_rng(0).random((5, 3)), labels) == 0.0


def test_evidence_of_another_noise_is_a_p_value():
    rng, places = np.random.default_rng(3), np.repeat(np.arange(4), 3)
    found = np.exp([-other_noise(rng.standard_normal(12), places, 1.0)[0] for _ in range(2000)])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(found < level) == pytest.approx(level, abs=0.03)


def test_repeats_that_scatter_more_or_less_than_was_given_are_evidence():
    values, places = np.array([0.0, 1.0, 0.2, 0.8, 5.0]), np.array([0, 0, 0, 0, 1])
    assert other_noise(values, places, 0.01)[0] > 20.0
    evidence, seen = other_noise(values, places, 50.0)
    assert evidence > 6.0
    assert seen == pytest.approx(np.std(values[:4], ddof=1))


def test_an_exact_machine_that_repeats_itself_to_the_last_digit_or_the_last_but_one_is_exact():
    values = np.array([1.0, 1.0 + 1e-12, 1.0, 3.0])
    assert other_noise(values, np.array([0, 0, 0, 1]), 0.0)[0] < 1.0
    assert other_noise(np.array([1.0, 1.1, 1.0, 3.0]), np.array([0, 0, 0, 1]), 0.0)[0] > 20.0


def test_without_repeats_there_is_no_evidence():
    assert other_noise(np.array([1.0, 2.0]), np.array([0, 1]), 0.1)[0] == 0.0
