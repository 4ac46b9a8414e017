"""The appetite for risk: what may be asked for, and what floor under P(safe) it gives."""

from dataclasses import replace

import numpy as np
import pytest

from crashbo.search.risk import (
    IMAGINED,
    SURE,
    Budget,
    MinSafe,
    Paper,
    Price,
    Score,
    Situation,
    announced,
    price_of,
    risk_of,
)


def situation(*, gain=1.0, gain_anywhere=1.0, noise=0.01, crashes=0, successes=20, pending=0, trials_left=None):
    """A study with so many crashes, then so many successes, all of them proposed at a P(safe) of 0.99.

    Points that are all but safe promise `gain`; one with a P(safe) of a half promises `gain_anywhere`.
    """
    n = crashes + successes
    crashed = np.arange(n) < crashes
    return Situation(
        log_value=np.log([gain, gain_anywhere]),
        log_gamma=np.log([0.999, 0.5]),
        log_noise=float(np.log(noise)),
        reported=np.full(n, 0.99),
        crashed=crashed,
        cost=np.where(crashed, np.nan, 1.0),
        pending=pending,
        trials_left=trials_left,
    )


SITUATIONS = [
    situation(),
    situation(gain=1e-9, gain_anywhere=1e-9),
    situation(gain=1e-9),
    situation(gain=1e-300, gain_anywhere=1e-300),
    situation(crashes=20, successes=1, trials_left=3),
    situation(successes=1, pending=9, trials_left=90),
]


RISKS = [Price(), Price(crash=20), Paper(), MinSafe(0.9), Budget(10), Budget(10, 100)]


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("at", SITUATIONS)
def test_every_floor_is_a_probability_and_every_price_at_least_a_trial(risk, at):
    assert 0.0 <= risk.floor(at) <= 1.0
    assert price_of(risk, at) >= 1.0


@pytest.mark.parametrize("at", SITUATIONS)
def test_the_paper_has_no_floor_and_min_safe_the_one_that_was_given(at):
    assert Paper().floor(at) == MinSafe(0.0).floor(at) == 0.0
    assert MinSafe(0.93).floor(at) == 0.93
    assert price_of(Paper(), at) == price_of(MinSafe(0.93), at) == 1.0


@pytest.mark.parametrize("at", SITUATIONS)
def test_a_price_is_the_one_that_was_given(at):
    assert price_of(Price(crash=5), at) == 5.0


def test_the_default_risks_no_crash_when_nothing_is_worth_one():
    assert Price().floor(situation()) == Price().floor(situation(gain=1e-9)) == IMAGINED
    assert Price().floor(situation(gain=1e-9, gain_anywhere=1e-9)) == SURE


def test_what_is_promised_where_a_crash_is_all_but_sure_is_worth_nothing():
    at = replace(situation(gain=1e-9), log_gamma=np.log([0.999, 0.5 * IMAGINED]))
    assert Price().floor(at) == SURE


def test_a_promise_that_is_small_beside_what_trials_have_brought_is_not_worth_a_crash_until_the_last_is_paid_for():
    paid_for = replace(situation(gain=1e-9, gain_anywhere=0.02, crashes=10, successes=50), gained=8.0)
    at = replace(paid_for, crashed=paid_for.crashed[::-1], cost=paid_for.cost[::-1])  # the crashes came last
    assert Price().floor(at) == SURE  # 0.02 for the price of three trials, where a trial has brought 0.13
    assert Price().floor(replace(at, gained=2.0)) == Price(crash=1).floor(at) == Price().floor(paid_for) == IMAGINED
    assert Price(crash=50).floor(replace(paid_for, pending=1)) == SURE  # which may be a crash


def test_crashes_without_a_new_best_make_the_next_dearer_and_rarer():
    def after(crashes):
        at = replace(situation(gain=1e-9, gain_anywhere=0.02, crashes=crashes, successes=10), gained=1.0)
        order = [
            *range(crashes, crashes + 1),
            *range(crashes),
            *range(crashes + 1, crashes + 10),
        ]  # the best came first
        return replace(at, crashed=at.crashed[order], cost=at.cost[order])

    assert [after(k).is_paid_for(5.0) for k in (1, 4, 8, 12)] == [True, True, True, False]
    assert [after(k).is_dear(IMAGINED, 5.0) for k in (1, 20, 60)] == [False, True, True]


@pytest.mark.parametrize("safest", [0.6, 0.1, 1e-30])
def test_where_nothing_reaches_a_floor_a_point_about_as_safe_as_can_be_does(safest):
    at = replace(situation(), log_gamma=np.log([safest, 0.5 * safest]), log_value=np.full(2, -30.0))
    assert 0.0 < Price().floor(at) <= max(safest, 1e-9)
    assert Price().floor(at) > 0.5 * safest


def test_the_price_by_a_budget_is_twice_what_is_left_for_each_crash():
    assert price_of(Budget(10, 100), situation(crashes=5, trials_left=40)) == 16.0
    assert price_of(Budget(10, 100), situation(crashes=7, pending=1, trials_left=40)) == 40.0
    assert price_of(Budget(10, 100), situation(crashes=0, trials_left=5)) == Price.crash


@pytest.mark.parametrize(("crashes", "successes", "due"), [(7, 8, False), (7, 35, False), (7, 60, True), (0, 1, True)])
def test_a_budget_risks_none_while_more_is_spent_than_is_due(crashes, successes, due):
    at = situation(crashes=crashes, successes=successes, trials_left=100 - crashes - successes)
    assert Budget(10, 100).floor(at) == (IMAGINED if due else SURE)


def test_the_only_crash_of_a_budget_is_not_risked_at_once():
    floors = [Budget(1, 100).floor(situation(successes=told, trials_left=100 - told)) for told in (1, 20, 30, 60)]
    assert floors == [SURE, SURE, IMAGINED, IMAGINED]


def test_a_budget_pays_no_less_for_a_crash_the_less_is_left_of_it():
    prices = [price_of(Budget(10, 100), situation(crashes=k, trials_left=50)) for k in range(10)]
    assert prices == sorted(prices)
    longer = [price_of(Budget(6), situation(trials_left=left)) for left in (5, 50, 500)]
    assert longer == sorted(longer)


@pytest.mark.parametrize(("crashes", "pending"), [(5, 0), (6, 0), (2, 3), (0, 5), (3, 4)])
def test_a_spent_budget_allows_proven_settings_only_and_counts_what_is_pending(crashes, pending):
    assert Budget(5, 100).floor(situation(crashes=crashes, pending=pending, trials_left=50)) == 1.0
    assert Budget(0).floor(situation()) == 1.0


def test_a_budget_without_a_length_does_as_the_default_until_the_last_crash():
    for at in (situation(crashes=3), situation(gain=1e-9, crashes=3)):
        assert Budget(5).floor(at) == Budget(4).floor(at) == Price().floor(at)
        assert price_of(Budget(5), at) == Price.crash < price_of(Budget(4), at)


def test_numbers_of_numpy_are_as_good_as_others():
    assert Budget(np.int64(3), np.int32(9)) == Budget(3, 9)
    assert MinSafe(np.float32(0.5)) == MinSafe(0.5)


WRONG = [{"crashes": -1}, {"crashes": 1.5}, {"crashes": True}, {"crashes": None}, {"crashes": 3, "trials": 0}]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_budget_must_count(wrong):
    with pytest.raises(ValueError, match=r"^(crashes|trials) must be a whole number, at least \d; got .+\. Count them"):
        Budget(**wrong)


@pytest.mark.parametrize("wrong", [1.0, -0.1, 2, "0.9", float("nan"), None])
def test_min_safe_must_be_given_a_probability_below_one(wrong):
    with pytest.raises(ValueError, match=r"^MinSafe must .+; got .+\. 0.9 is a usual one"):
        MinSafe(wrong)


@pytest.mark.parametrize("wrong", [0.5, -1, "5", float("nan"), float("inf"), None, True])
def test_a_price_must_be_a_number_of_trials(wrong):
    with pytest.raises(ValueError, match=r"^Price must be given .+; got .+\. 5 is the default"):
        Price(wrong)


def test_a_risk_is_named_or_given():
    assert risk_of(None) == Price()
    assert risk_of({"price": 5}) == Price(crash=5)
    assert risk_of("paper") == Paper()
    assert risk_of(Budget(3)) == Budget(3)
    for wrong in ("bold", 0.9, Budget):
        with pytest.raises(ValueError, match=r"^risk must be .+; got .+\. None is our default"):
            risk_of(wrong)


def test_the_length_of_a_study_is_announced_to_a_budget_that_does_not_know_it():
    assert announced(Budget(3), 40) == Budget(3, 40)
    assert announced(Budget(3, 100), 40) == Budget(3, 100)
    for risk in (Price(), Paper(), MinSafe(0.9)):
        assert announced(risk, 40) is risk


def test_above_its_floor_a_score_is_utility_plus_log_gamma():
    utility, log_gamma = np.array([0.3, -2.0, 1.0]), np.log([0.95, 0.81, 1.0])
    np.testing.assert_allclose(Score(np.log(0.8))(utility, log_gamma), utility + log_gamma)
    np.testing.assert_allclose(Score()(utility, -100.0 * utility**2), utility - 100.0 * utility**2)


@pytest.mark.parametrize("price", [1.0, 3.0, 20.0])
def test_a_score_is_gain_per_price(price):
    gain, p = np.array([2.0, 1.0, 5.0]), np.array([0.99, 0.6, 0.05])
    score = Score(price=price)(np.log(gain), np.log(p))
    np.testing.assert_allclose(np.exp(score), gain * p / (p + price * (1.0 - p)))


def test_below_its_floor_a_score_falls_steeply():
    scores = Score(np.log(0.8))(np.zeros(3), np.log([0.8, 0.7, 0.6]))
    assert scores[1] < scores[0] - 1.0
    assert scores[2] < scores[1] - 1.0


def test_the_gradient_of_a_score_is_its_slope():
    score = Score(np.log(0.8), weight=0.7)

    def terms(X):
        """A utility and a log Gamma with their gradients."""
        return (X[:, 0] ** 2, np.stack([2.0 * X[:, 0], 0.0 * X[:, 1]], axis=1)), (
            -X[:, 0] * X[:, 1],
            -X[:, ::-1].copy(),
        )

    X = np.random.default_rng(0).random((20, 2))
    value, gradient = score.with_gradient(*terms(X))
    assert np.any(terms(X)[1][0] < np.log(0.8))
    np.testing.assert_allclose(value, score(terms(X)[0][0], terms(X)[1][0]))
    h = 1e-6
    for d in range(2):
        step = h * np.eye(2)[d]
        up, down = (score(terms(x)[0][0], terms(x)[1][0]) for x in (X + step, X - step))
        np.testing.assert_allclose(gradient[:, d], (up - down) / (2.0 * h), rtol=1e-5, atol=1e-6)
