"""The appetite for risk: what may be asked for, and what floor under P(safe) it gives."""

from dataclasses import replace

import numpy as np
import pytest

from crashbo.search.risk import Adaptive, Budget, MinSafe, Paper, Score, Situation, announced, risk_of


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


@pytest.mark.parametrize("risk", [Adaptive(), Paper(), MinSafe(0.9), Budget(10), Budget(10, 100)])
@pytest.mark.parametrize("at", SITUATIONS)
def test_every_floor_is_a_probability(risk, at):
    assert 0.0 <= risk.floor(at) <= 1.0


@pytest.mark.parametrize("at", SITUATIONS)
def test_the_paper_has_no_floor_and_min_safe_the_one_that_was_given(at):
    assert Paper().floor(at) == MinSafe(0.0).floor(at) == 0.0
    assert MinSafe(0.93).floor(at) == 0.93


def test_the_default_pays_less_for_crashes_when_nothing_is_left_to_gain():
    rich, poor = situation(), situation(gain=1e-9, gain_anywhere=1e-9)
    assert Adaptive().floor(poor) > Adaptive().floor(rich)


def leaping(promises, *, last=None, ambiguous=True):
    """Twenty safe trials, a leap in vain `last` trials ago; promises of points by their P(safe)."""
    at = situation(gain=1e-9)
    predicted, cost, n = at.reported.copy(), at.cost.copy(), len(at.cost)
    if last is not None:
        predicted[n - last], cost[n - last] = 0.5, np.nan
    p = np.array([0.999, *promises])
    return replace(
        at,
        log_gamma=np.log(p),
        log_value=np.log([1e-9, *promises.values()]),
        reported=predicted,
        cost=cost,
        crashed=np.isnan(cost),
        is_ambiguous=ambiguous,
    )


def test_the_least_daring_leap_that_is_worth_it_is_taken():
    assert Adaptive().floor(leaping({0.8: 1.0, 0.3: 9.0})) == 0.75
    assert Adaptive().floor(leaping({0.8: 1e-9, 0.3: 9.0})) == 0.25
    assert Adaptive().floor(leaping({0.8: 1e-9, 0.05: 9.0})) >= 0.9
    assert Adaptive().floor(leaping({0.8: 1.0, 0.3: 9.0}, ambiguous=False)) == 0.1


def test_a_daring_leap_waits_longer_than_a_small_one():
    small, daring = {0.8: 1.0}, {0.15: 1.0}
    assert Adaptive().floor(leaping(small, last=1)) == 0.75
    assert Adaptive().floor(leaping(daring, last=1)) >= 0.9
    assert Adaptive().floor(leaping(daring, last=3)) == 0.1


def test_a_budget_asks_for_no_less_safety_the_less_is_left_of_it():
    told = [situation(crashes=k, trials_left=50) for k in range(11)]
    floors = [Budget(10, 100).floor(at) for at in told]
    assert floors == sorted(floors)
    assert floors[-1] == 1.0


@pytest.mark.parametrize(("crashes", "pending"), [(5, 0), (6, 0), (2, 3), (0, 5), (3, 4)])
def test_a_spent_budget_allows_proven_settings_only_and_counts_what_is_pending(crashes, pending):
    assert Budget(5, 100).floor(situation(crashes=crashes, pending=pending, trials_left=50)) == 1.0
    assert Budget(0).floor(situation()) == 1.0


@pytest.mark.parametrize(
    ("crashes", "trials_left", "least"), [(0, 80, 0.9), (6, 80, 0.95), (8, 40, 0.95), (9, 20, 0.95)]
)
def test_at_the_floor_of_a_budget_what_is_left_lasts(crashes, trials_left, least):
    at = situation(crashes=crashes, trials_left=trials_left)
    floor = Budget(10, 100).floor(at)
    assert floor == pytest.approx(least)
    assert crashes == 0 or (1.0 - floor) * trials_left == pytest.approx(10 - crashes)


def test_a_budget_is_no_surer_than_leaves_something_to_find_and_no_bolder_than_the_default():
    short, plenty = (situation(crashes=9, trials_left=left) for left in (500, 2))
    assert Budget(10).floor(short) == pytest.approx(Budget.safest)
    assert Budget(10).floor(plenty) == pytest.approx(Adaptive.usual)


@pytest.mark.parametrize(("successes", "leaps"), [(8, False), (15, False), (60, True), (80, True)])
def test_a_budget_leaps_only_while_no_more_of_it_is_gone_than_was_due(successes, leaps):
    at = situation(gain=1e-9, crashes=7, successes=successes, trials_left=93 - successes)
    assert Adaptive().floor(at) == Adaptive.leap
    assert (Budget(10, 100).floor(at) == Adaptive.leap) == leaps
    assert leaps or Budget(10, 100).floor(at) >= Adaptive.usual


def test_a_budget_without_a_length_does_as_the_default_until_the_last_crash():
    for at in (situation(crashes=3), situation(gain=1e-9, crashes=3)):
        assert Budget(5).floor(at) == Adaptive().floor(at)
        assert Budget(4).floor(at) == pytest.approx(Budget.safest)


def nowhere_safe(at):
    """The same study where the safest point has odds of 1.5, and nothing promises anything."""
    return replace(at, log_gamma=np.log([0.6, 0.5]), log_value=np.full(2, -30.0))


def test_where_nothing_reaches_the_floor_less_is_risked_with_every_further_crash_in_a_row():
    odds = []
    for row in (0, 3, 4, 14):
        crashed = np.arange(20 + row) >= 20
        floor = Adaptive().floor(replace(nowhere_safe(situation()), crashed=crashed))
        odds.append(floor / (1.0 - floor) / 1.5)
    assert odds == pytest.approx([0.5, 0.5, 0.75, 1.0 - 0.5 / 12.0])


def test_where_nothing_reaches_the_floor_a_budget_behind_its_pace_stays_about_as_safe_as_can_be():
    odds = {}
    for crashes, pace in ((1, "in"), (8, "behind")):
        floor = Budget(10, 100).floor(nowhere_safe(situation(crashes=crashes, trials_left=72)))
        odds[pace] = floor / (1.0 - floor)
    assert odds["in"] == pytest.approx(0.5 * 1.5)
    assert odds["behind"] == pytest.approx(0.9 * 1.5)


def test_a_budget_is_no_bolder_for_a_longer_study():
    floors = [Budget(6).floor(situation(trials_left=left)) for left in (5, 50, 500)]
    assert floors == sorted(floors)


def test_numbers_of_numpy_are_as_good_as_others():
    assert Budget(np.int64(3), np.int32(9)) == Budget(3, 9)
    assert MinSafe(np.float32(0.5)) == MinSafe(0.5)


def test_the_only_crash_of_a_budget_is_not_risked_at_once():
    leaps = {
        told: Budget(1, 100).floor(situation(gain=1e-9, successes=told, trials_left=100 - told)) == Adaptive.leap
        for told in (1, 5, 20, 30, 60)
    }
    assert leaps == {1: False, 5: False, 20: False, 30: True, 60: True}


WRONG = [{"crashes": -1}, {"crashes": 1.5}, {"crashes": True}, {"crashes": None}, {"crashes": 3, "trials": 0}]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_budget_must_count(wrong):
    with pytest.raises(ValueError, match=r"^(crashes|trials) must be a whole number, at least \d; got .+\. Count them"):
        Budget(**wrong)


@pytest.mark.parametrize("wrong", [1.0, -0.1, 2, "0.9", float("nan"), None])
def test_min_safe_must_be_given_a_probability_below_one(wrong):
    with pytest.raises(ValueError, match=r"^MinSafe must .+; got .+\. 0.9 is a usual one"):
        MinSafe(wrong)


def test_a_risk_is_named_or_given():
    assert risk_of(None) == Adaptive()
    assert risk_of("paper") == Paper()
    assert risk_of(Budget(3)) == Budget(3)
    for wrong in ("bold", 0.9, Budget):
        with pytest.raises(ValueError, match=r"^risk must be .+; got .+\. None is our default"):
            risk_of(wrong)


def test_the_length_of_a_study_is_announced_to_a_budget_that_does_not_know_it():
    assert announced(Budget(3), 40) == Budget(3, 40)
    assert announced(Budget(3, 100), 40) == Budget(3, 100)
    for risk in (Adaptive(), Paper(), MinSafe(0.9)):
        assert announced(risk, 40) is risk


def test_above_its_floor_a_score_is_utility_plus_log_gamma():
    utility, log_gamma = np.array([0.3, -2.0, 1.0]), np.log([0.95, 0.81, 1.0])
    np.testing.assert_allclose(Score(np.log(0.8))(utility, log_gamma), utility + log_gamma)
    np.testing.assert_allclose(Score()(utility, -100.0 * utility**2), utility - 100.0 * utility**2)


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
