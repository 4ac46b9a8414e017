"""What makes each of the paper's rivals what it is."""

import json
import warnings

import numpy as np
import pytest

import crashbo
from crashbo import problems, strategies
from crashbo.search.observations import Observations
from crashbo.search.risk import Paper
from crashbo.search.space import Space
from crashbo.strategies import floor_padding, informed, penalties, safeopt
from crashbo.strategies.base import Task


def observations(X, cost, *, Y=None, threshold=None):
    """Trials in the unit cube; a NaN cost is a crash."""
    cost = np.array(cost, dtype=float)
    return Observations(
        numbers=tuple(range(len(cost))),
        X=np.array(X, dtype=float),
        succeeded=~np.isnan(cost),
        cost=cost,
        Y=np.full((len(cost), 1), np.nan) if Y is None else np.array(Y, dtype=float)[:, None],
        crashed=np.isnan(cost),
        blame=[None] * len(cost),
        pending=np.zeros((0, np.shape(X)[1])),
        cost_noise_std=None,
        noise_std=(0.01,),
        thresholds=(threshold,),
    )


def task(seen, **kwargs):
    space = Space.of({f"x{d}": (0.0, 1.0) for d in range(seen.X.shape[1])})
    unknown = np.full(len(seen.cost), np.nan)
    return Task(space, seen, Paper(), None, unknown, unknown, None, **kwargs)


def informed_study(name, strategy, seed=0, **kwargs):
    problem = problems.get(name).informed()
    start = [problem.safe_start(np.random.default_rng(seed))]
    return problem, crashbo.Optimizer(
        problem.space, problem.constraints, strategy=strategy, noise=problem.noise, start=start, seed=seed, **kwargs
    )


def run(problem, optimizer, trials):
    for _ in range(trials):
        trial = optimizer.ask()
        try:
            outcome = problem.evaluate(trial.params)
            optimizer.tell(trial, cost=outcome.cost, measured=outcome.measured)
        except crashbo.Crash as crash:
            optimizer.tell(trial, crash=crash)
    return optimizer.trials


class TestPenalties:
    X = ([0.1], [0.3], [0.5], [0.7], [0.9])
    COST = (2.0, np.nan, 5.0, 1.0, np.nan)

    @pytest.fixture
    def modelled(self, monkeypatch):
        """The costs that the model is fitted to."""
        caught = []
        fit = penalties.fit_cost

        def spy(X, cost, *args, **kwargs):
            caught.append(cost.tolist())
            return fit(X, cost, *args, **kwargs)

        monkeypatch.setattr(penalties, "fit_cost", spy)
        return caught

    @pytest.mark.parametrize(
        ("strategy", "costs"),
        [
            (penalties.HighCost(8.0), [2.0, 8.0, 5.0, 1.0, 8.0]),
            (penalties.HighCost(), [2.0, 9.0, 5.0, 1.0, 9.0]),  # as far beyond 5 as that is beyond 1
            (penalties.MiddleCost(), [2.0, 2.0, 5.0, 1.0, 2.0]),
            (penalties.AdaptiveCost(), [2.0, 5.0, 5.0, 1.0, 5.0]),
            (floor_padding.propose, [2.0, 2.0, 5.0, 1.0, 5.0]),  # the worst until then, and not adapted later
        ],
    )
    def test_a_crash_costs_what_the_method_says(self, strategy, costs, modelled):
        strategy(task(observations(self.X, self.COST)), np.random.default_rng(0))
        assert modelled == [costs]

    def test_a_high_cost_is_turned_over_where_costs_are_maximised(self, modelled):
        seen = observations(self.X, [-2.0, np.nan, -5.0, -1.0, np.nan])  # as the search sees costs 2, 5 and 1
        penalties.HighCost(-3.0)(task(seen, sign=-1.0), np.random.default_rng(0))
        assert modelled == [[-2.0, 3.0, -5.0, -1.0, 3.0]]

    @pytest.mark.parametrize("cost", [np.nan, np.inf])
    def test_a_high_cost_must_be_a_number(self, cost):
        with pytest.raises(ValueError, match=r"cost must be a finite number or None; got (nan|inf)\. Name"):
            penalties.HighCost(cost)

    def test_ei_goes_away_from_a_penalty_and_towards_the_best(self):
        seen = observations([[0.1], [0.4], [0.45], [0.8], [0.9]], [1.0, 0.1, 0.2, np.nan, np.nan])
        x = penalties.AdaptiveCost()(task(seen), np.random.default_rng(0)).x
        assert 0.15 < x[0] < 0.7


class TestRecords:
    @pytest.mark.parametrize(
        "record", [strategies.HighCost(3.0), strategies.SafeOpt(scale=(1.0,)), strategies.Pibu(0.3)]
    )
    def test_a_record_with_parameters_survives_saving(self, record):
        thresholds = 1.0 if isinstance(record, strategies.SafeOpt) else None
        optimizer = crashbo.Optimizer({"x": (0, 1)}, crashbo.Constraint("load", thresholds), strategy=record)
        assert crashbo.Optimizer.from_json(optimizer.to_json()).study.strategy == record

    def test_a_plain_name_is_saved_as_such(self):
        saved = json.loads(crashbo.Optimizer({"x": (0, 1)}, strategy="ei-hc").to_json())
        assert saved["config"]["strategy"] == "ei-hc"

    @pytest.mark.parametrize("strategy", [5, "greedy", strategies.HighCost])
    def test_what_is_neither_a_name_nor_a_function_is_refused(self, strategy):
        with pytest.raises(ValueError, match="strategy must be one of"):
            crashbo.Optimizer({"x": (0, 1)}, strategy=strategy)

    @pytest.mark.parametrize("risk", [crashbo.Budget(3), crashbo.MinSafe(0.9)])
    @pytest.mark.parametrize("strategy", ["ei-hc", "random"])
    def test_a_risk_that_would_not_be_heeded_is_refused(self, strategy, risk):
        with pytest.raises(
            ValueError, match=rf"risk must be None with strategy '{strategy}'; got .*Only 'eicc' heeds it"
        ):
            crashbo.Optimizer({"x": (0, 1)}, strategy=strategy, risk=risk)


class TestPrivileges:
    @pytest.mark.parametrize("strategy", ["eic", "safeopt"])
    def test_an_unknown_threshold_is_refused_before_the_first_trial(self, strategy):
        problem = problems.get("eggcrate2d")
        with pytest.raises(
            ValueError, match=rf"strategy '{strategy}' must be told every crash threshold; got None\. .*informed"
        ):
            crashbo.Optimizer(problem.space, problem.constraints, strategy=strategy)
        with pytest.raises(ValueError, match=r"got \(0\.0, 1\.0\)"):
            crashbo.Optimizer(problem.space, crashbo.Constraint("g", (0.0, 1.0)), strategy=strategy)
        with pytest.raises(ValueError, match="got None"):
            crashbo.Optimizer(problem.space, crashbo.Unmeasured("g"), strategy=strategy)

    @pytest.mark.parametrize("strategy", ["eic", "safeopt"])
    def test_a_crash_without_a_measurement_is_refused(self, strategy):
        problem, optimizer = informed_study("eggcrate2d", strategy)
        run(problem, optimizer, 1)
        optimizer.tell({"x1": 0.1, "x2": 0.1}, crash=True)
        with pytest.raises(
            ValueError, match=rf"strategy '{strategy}' must have every .* in crashes, too; got trial 1 without"
        ):
            optimizer.ask()

    def test_the_constraint_of_eic_is_plain_regression_with_the_known_threshold(self):
        rng = np.random.default_rng(0)
        X, y = rng.random((12, 2)), rng.standard_normal(12)
        cost = np.where(y > 0.2, np.nan, 1.0)
        post = informed.regressions(observations(X, cost, Y=y, threshold=0.2))
        h = post.hypers[0]
        gp = crashbo.models.GP.condition(
            X, y, lengthscales=h.lengthscales, outputscale=h.outputscale, noise_std=h.noise_std, mean=h.mean
        )
        ours, theirs = post.predict(0, X + 0.05), gp.predict(X + 0.05)
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-8)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-12)
        assert (h.threshold, h.crash_noise_std) == (0.2, 0.0)

    def test_eic_learns_where_a_crash_was_measured_far_beyond_the_threshold(self):
        X = np.linspace(0.0, 1.0, 9)[:, None]
        g = X[:, 0] - 0.5
        seen = observations(X, np.where(g > 0, np.nan, 1.0 - X[:, 0]), Y=g, threshold=0.0)
        proposal = strategies.Eic()(task(seen), np.random.default_rng(0))
        assert 0.4 < proposal.x[0] < 0.55


class TestSafeOpt:
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_it_does_not_crash_after_a_safe_seed(self, seed):
        problem, optimizer = informed_study("eggcrate2d", strategies.SafeOpt(scale=2.0), seed)
        trials = run(problem, optimizer, 15)
        assert [t.state for t in trials] == ["success"] * 15

    def test_its_safe_region_grows(self):
        problem, optimizer = informed_study("eggcrate2d", strategies.SafeOpt(scale=2.0), 2)
        trials = run(problem, optimizer, 15)
        away = [
            np.hypot(t.params["x1"] - trials[0].params["x1"], t.params["x2"] - trials[0].params["x2"]) for t in trials
        ]
        assert max(away[10:]) > max(away[:5])

    def test_six_dimensions_are_refused_in_clear_words(self):
        with pytest.raises(
            ValueError, match=r"strategy 'safeopt' must have so few parameters that .*; got 6\. It looks at"
        ):
            informed_study("hartmann6d", "safeopt")

    def test_the_grid_covers_every_option_and_whole_number_and_keeps_fixed_parameters(self):
        space = Space.of(
            {"n": crashbo.Int(1, 4), "mode": crashbo.Choice(["a", "b", "c"]), "x": (0.0, 1.0), "y": (0.0, 1.0)}
        ).with_fixed({"y": 0.25})
        points = [space.decode(u) for u in safeopt.grid(space)]
        assert len(points) <= 10_000
        assert {(p["n"], p["mode"]) for p in points} == {(n, m) for n in range(1, 5) for m in "abc"}
        assert {p["y"] for p in points} == {0.25}
        x = sorted({p["x"] for p in points})
        assert (x[0], x[-1]) == (0.0, 1.0)
        assert len(x) > 800

    def test_two_real_parameters_get_the_papers_grid(self):
        assert len(safeopt.grid(Space.of({"x": (0, 1), "y": (0, 1)}))) == 10_000

    def test_an_expander_is_one_whose_best_outcome_makes_another_point_safe(self):
        strategy = strategies.SafeOpt(scale=1.0)
        seen = observations([[0.5]], [1.0], Y=[-0.9], threshold=0.0)
        X = np.linspace(0.4, 0.6, 21)[:, None]
        model = strategy._model(informed.measured_alone(seen), seen)
        bounds = strategy._bounds(model, X)
        safe = safeopt._within(bounds.upper, model)
        edge, middle, beyond = int(np.argmax(safe)), 10, 0
        assert safe[middle]
        assert not safe[beyond]
        assert strategy._expands(model, X, bounds, safe, edge)
        assert not strategy._expands(model, X, bounds, safe, middle)  # known already: nothing new to show


class TestPibu:
    def test_nothing_is_called_safe_but_the_surroundings_of_successes(self):
        seen = observations([[0.5, 0.5]], [1.0])
        p = np.exp(strategies.pibu.LogGamma.of(strategies.Pibu()._classifier(seen))(np.array([[0.5, 0.5], [0.9, 0.9]])))
        assert p[0] > 0.5
        assert p[1] < 0.2

    @pytest.mark.parametrize("D", [2, 6])
    def test_its_first_step_goes_to_the_boundary_of_its_safe_region(self, D):
        proposal = strategies.Pibu()(task(observations([[0.5] * D], [1.0])), np.random.default_rng(0))
        assert proposal.p_safe == pytest.approx(0.5, abs=0.06)
        assert 0.02 < np.linalg.norm(proposal.x - 0.5) < 0.3

    def test_once_the_boundary_is_known_it_improves_inside(self):
        X = np.linspace(0.05, 0.95, 19)[:, None]
        cost = np.where(np.abs(X[:, 0] - 0.5) > 0.3, np.nan, (X[:, 0] - 0.52) ** 2)
        proposal = strategies.Pibu(least=0.9)(task(observations(X, cost)), np.random.default_rng(0))
        assert proposal.p_safe > 0.55
        assert proposal.x[0] == pytest.approx(0.52, abs=0.05)


class TestClassifier:
    def test_measurements_do_not_matter(self):
        X = np.random.default_rng(0).random((10, 2))
        cost = np.where(X[:, 0] > 0.6, np.nan, X[:, 1])
        y = X[:, 0].copy()
        y[np.isnan(cost)] = np.nan
        propose = strategies.get("eic-classifier")
        plain, measured = (
            propose(task(observations(X, cost, Y=Y)), np.random.default_rng(1)) for Y in (None, 100.0 * y)
        )
        assert np.array_equal(plain.x, measured.x)
        assert plain.p_safe == measured.p_safe


class TestSobol:
    def test_it_fills_the_space_evenly(self):
        optimizer = crashbo.Optimizer({"x": (0, 1), "y": (0, 1)}, strategy="sobol", seed=1)
        points = np.array([list(optimizer.ask().params.values()) for _ in range(4)])  # the design
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.tell(0, cost=1.0)
            points = np.array([list(optimizer.ask().params.values()) for _ in range(60)])
        counts, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=4, range=[[0, 1], [0, 1]])
        assert counts.min() >= 2
        assert counts.max() <= 6

    def test_a_small_space_is_tried_out_before_anything_is_repeated(self):
        optimizer = crashbo.Optimizer({"n": crashbo.Int(1, 12)}, strategy="sobol", seed=0)
        for _ in range(12):
            optimizer.tell(optimizer.ask(), cost=0.0)
        assert sorted(t.params["n"] for t in optimizer.trials) == list(range(1, 13))
        assert 1 <= optimizer.ask().params["n"] <= 12
