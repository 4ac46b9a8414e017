"""What is measured of a run, on examples made by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crashbo.benchmark import measures
from fake_runs import fake


def test_the_incumbent_is_the_lowest_observed_success_at_its_true_cost():
    costs, truths = [3.0, None, 1.0, 2.0, 0.5], [2.5, None, 1.4, 1.1, 1.6]
    # Noise misleads twice: the fourth trial was truly better than the third, the fifth worse.
    assert_allclose(measures.incumbents(costs, truths), [2.5, 2.5, 1.4, 1.4, 1.6])


def test_of_equal_costs_the_first_stays_the_incumbent():
    assert_allclose(measures.incumbents([1.0, 1.0], [0.8, 0.2]), [0.8, 0.8])


def test_there_is_no_incumbent_before_a_success():
    assert_allclose(measures.incumbents([None, None, 2.0], [None, None, 1.9]), [np.nan, np.nan, 1.9])
    assert len(measures.incumbents([], [])) == 0


def test_incumbents_agree_with_a_search_trial_by_trial():
    rng = np.random.default_rng(0)
    for _ in range(50):
        costs = [None if rng.random() < 0.4 else float(rng.integers(6)) for _ in range(12)]
        truths = [None if cost is None else float(rng.random()) for cost in costs]
        expected = []
        for n in range(1, 13):
            seen = [(cost, i) for i, cost in enumerate(costs[:n]) if cost is not None]
            expected.append(truths[min(seen)[1]] if seen else np.nan)
        assert_array_equal(measures.incumbents(costs, truths), np.array(expected))


def test_regret_is_zero_at_the_optimum_and_one_at_the_median():
    incumbent = np.array([np.nan, 8.0, 4.0, 3.0, 2.0, 1.0])
    regret = measures.normalised_regret(incumbent, 2.0, 4.0)
    assert_allclose(regret, [np.nan, 3.0, 1.0, 0.5, 0.0, -0.5])
    assert_allclose(measures.score(regret), [1.0, 1.0, 1.0, 0.5, 0.0, 0.0])


def wasted(points, costs, noise=0.0, span=1.0):
    return list(measures.wasted(np.array(points)[:, None], costs, noise, span))


def test_a_trial_next_to_a_poor_success_is_wasted():
    assert wasted([0.5, 0.9, 0.505], [1.0, 0.0, 1.0]) == [False, False, True]


def test_a_trial_next_to_the_best_is_not():
    assert wasted([0.5, 0.9, 0.905], [1.0, 0.0, 1.0]) == [False, False, False]


def test_what_counts_is_the_best_known_then():
    assert wasted([0.5, 0.505, 0.9, 0.502], [1.0, 1.0, 0.0, 1.0]) == [False, False, False, True]


def test_a_trial_next_to_a_crash_is_not_wasted_but_a_crash_next_to_a_poor_success_is():
    assert wasted([0.5, 0.9, 0.5], [None, 0.0, 1.0]) == [False, False, False]
    assert wasted([0.5, 0.9, 0.5], [1.0, 0.0, None]) == [False, False, True]


@pytest.mark.parametrize(("worse", "found"), [(0.0199, False), (0.0201, True)])
def test_plainly_worse_is_a_hundredth_of_the_span(worse, found):
    assert bool(wasted([0.5, 0.9, 0.5], [worse, 0.0, 0.0], span=2.0)[-1]) == found


@pytest.mark.parametrize(("worse", "found"), [(0.49, False), (0.51, True)])
def test_or_five_times_the_noise_if_that_is_more(worse, found):
    assert bool(wasted([0.5, 0.9, 0.5], [worse, 0.0, 0.0], noise=0.1)[-1]) == found


@pytest.mark.parametrize(("there", "found"), [((0.51, 0.49), True), ((0.5, 0.511), False), ((0.511, 0.5), False)])
def test_near_is_within_a_hundredth_in_every_coordinate(there, found):
    points = [(0.5, 0.5), (0.9, 0.9), there]
    assert bool(measures.wasted(np.array(points), [1.0, 0.0, 0.0], 0.0, 1.0)[-1]) == found


def test_trials_that_were_not_made_change_nothing():
    run = fake("eicc", [None, 0.4], trials=5)
    assert_allclose(run.regret, [np.nan, 0.4, 0.4, 0.4, 0.4])
    assert_allclose(run.score, [1.0, 0.4, 0.4, 0.4, 0.4])
    assert_allclose(run.crashes, [1, 1, 1, 1, 1])
    nothing = fake("eicc", [], trials=3)
    assert_allclose(nothing.score, 1.0)
    assert_allclose(nothing.crashes, 0.0)


class TestOverThePricePaid:
    """A crash costs more than one trial, and the run ends when as much is paid as it has trials."""

    def test_with_a_price_of_one_it_is_the_mean_over_the_trials(self):
        run = fake("eicc", [None, 0.6, None, 0.2])
        assert run.over_price(1.0) == pytest.approx(np.mean(run.score))

    def test_by_hand(self):
        # Paid after each trial: 1, 6, 7, 8. Of eight trials' worth: 0.6 from 1 to 6, 0.2 at 7, 0.1 at 8.
        run = fake("eicc", [0.6, None, 0.2, 0.1], trials=8)
        assert run.over_price(5.0) == pytest.approx((6 * 0.6 + 0.2 + 0.1) / 8)

    def test_what_cannot_be_paid_any_more_does_not_count(self):
        assert fake("eicc", [None, 0.0, 0.0, 0.0]).over_price(5.0) == 1.0

    def test_the_best_so_far_is_carried_on(self):
        assert fake("eicc", [0.4], trials=10).over_price(20.0) == pytest.approx(0.4)
        assert fake("eicc", [], trials=10).over_price(5.0) == 1.0
