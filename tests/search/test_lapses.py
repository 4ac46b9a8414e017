"""Crashes by chance: found where all other trials speak against them, and only there."""

import numpy as np
import pytest

import crashbo
from crashbo.optimizer.observed import observations
from crashbo.search.lapses import NO_LAPSES, _log_share, lapses


def study(by_chance, *, n=40, constraints="load"):
    rng, optimizer = np.random.default_rng(0), crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, constraints)
    for i in range(n):
        x, y = map(float, rng.random(2))
        load = x + 0.5 * y
        if load > 1.1 or i in by_chance:
            optimizer.tell({"x": x, "y": y}, crash=True)
        else:
            optimizer.tell({"x": x, "y": y}, cost=x, measured={"load": load} if constraints else None)
    return optimizer


def found(optimizer):
    return lapses(observations(optimizer.study, optimizer.trials), optimizer.view.models)


def test_crashes_by_chance_are_found_and_the_others_are_not():
    chance = list(range(3, 40, 6))
    optimizer = study(chance)
    clear = {i for i in chance if optimizer.trials[i].params["x"] + 0.5 * optimizer.trials[i].params["y"] < 0.95}
    seen = found(optimizer)
    assert seen.evidence > 5.0
    assert clear <= set(seen.rows) <= set(chance)
    assert seen.p_safe.min() > 0.5


def test_crashes_beyond_a_threshold_are_explained():
    assert found(study([])) == NO_LAPSES


def test_one_crash_by_chance_is_not_enough_to_speak_of_a_share():
    assert found(study([11])).evidence < 3.0


def test_labels_alone_do_not_tell_chance_from_a_place():
    assert found(study([3, 9, 15, 21], constraints=None)).evidence < 3.0


def test_the_share_of_chance_is_integrated_over_its_prior():
    p = np.linspace(0.0, 1.0, 200_001)[1:-1]
    density = 9.0 * (1.0 - p) ** 8
    by_hand = np.mean(density * p**3 * (1.0 - p) ** 17)
    assert _log_share(3, 20) == pytest.approx(np.log(by_hand), abs=1e-4)


def test_some_of_the_trials_keep_their_data():
    optimizer = study([])
    seen = observations(optimizer.study, optimizer.trials)
    some = seen.only(np.arange(0, 40, 2))
    assert some.numbers == tuple(range(0, 40, 2))
    assert np.array_equal(some.Y, seen.Y[::2], equal_nan=True)
    assert len(some.blame) == len(some.cost) == 20
