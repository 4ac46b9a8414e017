"""Every problem: known answers that hold, views that give nothing away, and spaces that the optimiser takes."""

import itertools
import pickle
import sys
from dataclasses import fields

import numpy as np
import pytest
from scipy.optimize import minimize as descend

import crashbo
from crashbo import problems
from crashbo.optimizer.records import Constraint, Crash, Outcome
from crashbo.problems import Limit, Problem
from crashbo.search.space import Int, Space

# Solo8's jump takes a physics simulation each, and what is published measures nothing: they have tests of their own.
NAMES = [name for name in problems.names() if name not in ("solo8-jump", *problems.PUBLISHED)]
every_problem = pytest.mark.parametrize("name", NAMES)

ROUNDING = 1e-6  # relative: claimed minima have at least six digits

# Where the lowest cost of the space lies, if not at the optimum.
BEST_CRASHES = {
    "toy1d": [0.1638548],
    "gardner2": [1.5 * np.pi, 0.0],
    "lsq": [0.0, 0.0],
    "townsend": [-2.24356896, -1.30368516],
    "simionescu": [1.25, -1.25],
    "mueller-ackley5d": [0.0] * 5,
    "alimo2d": [0.19, 0.29],
    "tfaily-tooth2d": [-1.0408259, -1.0408259],
    "pressure-vessel": [1, 1, 10.0, 10.0],
    "welded-beam": [0.125, 0.1, 0.1, 0.1],
    "speed-reducer": [2.6, 0.7, 17, 7.3, 7.3, 2.9, 5.0],
    "tension-spring": [0.05, 0.25, 2.0],
}


def scale(problem):
    """Size of the costs that matter: a cost of 0.01 is not known to 1e-6."""
    return abs(problem.constrained_minimum) or 1.0


def random_params(problem, n, rng):
    space = Space.of(problem.space)
    return [space.decode(u) for u in space.uniform(rng.random((n, space.dimension)))]


def params_of(problem, values):
    return {
        k: round(v) if isinstance(p, Int) else float(np.clip(v, p.low, p.high))
        for (k, p), v in zip(problem.space.items(), values, strict=True)
    }


def crashing(problem, rng):
    return next(p for p in random_params(problem, 2000, rng) if problem.truth(p).crashed)


class TestKnownAnswers:
    @every_problem
    def test_the_claimed_optimum_is_reached_without_a_crash(self, name):
        problem = problems.get(name)
        truth = problem.truth(problem.optimum)
        assert not truth.crashed
        assert truth.cost == pytest.approx(problem.constrained_minimum, abs=ROUNDING * scale(problem))

    @every_problem
    def test_the_unconstrained_minimum_is_reached(self, name):
        problem = problems.get(name)
        params = params_of(problem, BEST_CRASHES[name]) if name in BEST_CRASHES else problem.optimum
        truth = problem.truth(params)
        assert truth.cost == pytest.approx(problem.minimum, abs=ROUNDING * scale(problem))
        assert truth.crashed == (name in BEST_CRASHES)

    @every_problem
    def test_about_half_of_all_safe_costs_lie_below_the_median(self, name):
        """Within four standard errors of a sample's share; only a few in a thousand are safe in one of them."""
        problem = problems.get(name)
        truths = [problem.truth(p) for p in random_params(problem, 4000, np.random.default_rng(8))]
        below = [t.cost < problem.median_safe_cost for t in truths if not t.crashed]
        assert np.mean(below or [0.5]) == pytest.approx(0.5, abs=0.02 + 2.0 / np.sqrt(max(len(below), 1)))

    @every_problem
    def test_no_sampled_point_is_better_than_claimed(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(0)
        truths = [problem.truth(p) for p in random_params(problem, 4000, rng)]
        slack = ROUNDING * scale(problem)
        assert min(t.cost for t in truths) >= problem.minimum - slack
        assert min((t.cost for t in truths if not t.crashed), default=np.inf) >= problem.constrained_minimum - slack

    @every_problem
    def test_no_step_from_the_optimum_leads_to_a_better_safe_point(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(1)
        low, high = (np.array([getattr(p, end) for p in problem.space.values()]) for end in ("low", "high"))
        x = np.array(list(problem.optimum.values()), dtype=float)
        for width in (1e-1, 1e-2, 1e-3, 1e-4):
            near = np.clip(x + width * (high - low) * rng.standard_normal((500, len(x))), low, high)
            truths = [problem.truth(params_of(problem, values)) for values in near]
            costs = [t.cost for t in truths if not t.crashed]
            assert min(costs, default=np.inf) >= problem.constrained_minimum - ROUNDING * scale(problem)

    @every_problem
    @pytest.mark.parametrize("constrained", [True, False])
    def test_no_descent_ends_below_the_claim(self, name, constrained):
        problem = problems.get(name)
        claim = problem.constrained_minimum if constrained else problem.minimum
        truths = [problem.truth(p) for p in descents(problem, constrained, np.random.default_rng(2))]
        costs = [t.cost for t in truths if not (constrained and t.crashed)]
        assert costs
        assert min(costs) >= claim - ROUNDING * scale(problem)

    def test_michalewicz_has_its_minimum_on_the_crash_boundary(self):
        problem = problems.get("michalewicz10d")
        assert problem.truth(problem.optimum).measured == {"g": 0.0}

    @pytest.mark.parametrize(("name", "g"), [("hartmann6d", -0.085), ("eggcrate2d", -0.75)])
    def test_the_other_two_benchmarks_have_it_inside(self, name, g):
        problem = problems.get(name)
        assert problem.truth(problem.optimum).measured["g"] == pytest.approx(g, abs=5e-4)

    @pytest.mark.parametrize("name", ["toy1d", "eggcrate2d", "eggcrate2d-corner", "hartmann6d", "michalewicz10d"])
    def test_half_of_the_cube_crashes(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(3)
        share = np.mean([problem.truth(p).crashed for p in random_params(problem, 4000, rng)])
        assert share == pytest.approx(0.5, abs=0.03)
        assert problem.noise == {"cost": 0.01, "g": 0.01}

    def test_g_is_the_product_of_sines(self):
        problem = problems.get("hartmann6d")
        for params in random_params(problem, 20, np.random.default_rng(4)):
            g = np.prod(np.sin(2 * np.pi * np.array(list(params.values()))))
            assert problem.truth(params).measured["g"] == pytest.approx(g, abs=1e-14)

    def test_every_constraint_can_be_violated_and_kept(self):
        for name in NAMES:
            problem = problems.get(name)
            truths = [problem.truth(p) for p in random_params(problem, 3000, np.random.default_rng(5))]
            for limit in problem.limits:
                assert {limit.violated(t.measured[limit.name]) for t in truths} == {True, False}, (name, limit.name)


class TestOutcomes:
    @every_problem
    def test_without_rng_a_success_tells_the_truth(self, name):
        problem = problems.get(name)
        params = problem.safe_start(np.random.default_rng(0))
        truth = problem.truth(params)
        assert problem.evaluate(params) == Outcome(truth.cost, truth.measured)

    @every_problem
    def test_with_rng_it_has_the_stated_noise(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(1)
        params = problem.safe_start(rng)
        truth = problem.truth(params)
        outcomes = [problem.evaluate(params, rng) for _ in range(400)]
        errors = {"cost": np.array([o.cost for o in outcomes]) - truth.cost}
        errors |= {k: np.array([o.measured[k] for o in outcomes]) - v for k, v in truth.measured.items()}
        for k, std in problem.noise.items():
            assert std > 0
            assert np.std(errors[k]) == pytest.approx(std, rel=0.2)
            assert abs(np.mean(errors[k])) < 5 * std / 20

    @every_problem
    def test_the_same_rng_gives_the_same_outcome(self, name):
        problem = problems.get(name)
        params = problem.safe_start(np.random.default_rng(2))
        assert problem.safe_start(np.random.default_rng(2)) == params
        first, second = (problem.evaluate(params, np.random.default_rng(3)) for _ in range(2))
        assert first == second
        assert first != problem.evaluate(params, np.random.default_rng(4))

    @every_problem
    def test_a_crash_carries_nothing_but_a_reason(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(5)
        reasons = set()
        for params in itertools.islice((p for p in random_params(problem, 2000, rng) if problem.truth(p).crashed), 20):
            with pytest.raises(Crash) as caught:
                problem.evaluate(params, rng)
            assert caught.value.measured == {}
            assert caught.value.blame == ()
            reasons.add(caught.value.reason)
        assert reasons == {"crashed"}  # and the reason does not tell one crash from another

    @every_problem
    def test_noise_does_not_decide_about_a_crash(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(6)
        for _ in range(50):  # the optimum often lies on the boundary
            problem.evaluate(problem.optimum, rng)

    @every_problem
    def test_starts_are_safe(self, name):
        problem = problems.get(name)
        rng = np.random.default_rng(7)
        starts = [problem.safe_start(rng) for _ in range(5)]
        assert not any(problem.truth(s).crashed for s in starts)
        assert len({tuple(s.values()) for s in starts}) == 5

    def test_params_outside_the_space_are_refused(self):
        with pytest.raises(ValueError, match="x1 must be a number from 0 to 1; got 2"):
            problems.get("toy1d").evaluate({"x1": 2.0})


class TestViews:
    @every_problem
    def test_plain_constraints_say_nothing_of_the_thresholds(self, name):
        problem = problems.get(name)
        assert not problem.is_informed
        for given, limit in zip(problem.constraints, problem.limits, strict=True):
            assert type(given) is Constraint
            # All that there is in it, so that nothing can be reached from it:
            assert given == Constraint(limit.name, side=limit.side)
            assert set(vars(given)) == {field.name for field in fields(Constraint)}

    @every_problem
    def test_the_informed_view_has_thresholds_and_measurements_of_crashes(self, name):
        problem = problems.get(name)
        informed = problem.informed()
        assert informed.is_informed
        assert not problem.is_informed
        assert [c.threshold for c in informed.constraints] == [k.threshold for k in problem.limits]
        params = crashing(problem, np.random.default_rng(0))
        with pytest.raises(Crash) as caught:
            informed.evaluate(params)
        assert caught.value.measured == problem.truth(params).measured
        with pytest.raises(Crash) as noisy:
            informed.evaluate(params, np.random.default_rng(1))
        assert noisy.value.measured.keys() == problem.truth(params).measured.keys()
        assert noisy.value.measured != problem.truth(params).measured

    @every_problem
    def test_both_views_stay_in_step(self, name):
        problem = problems.get(name)
        rng, other = np.random.default_rng(2), np.random.default_rng(2)
        params = crashing(problem, np.random.default_rng(3))
        for view, stream in ((problem, rng), (problem.informed(), other)):
            with pytest.raises(Crash):
                view.evaluate(params, stream)
        assert rng.random() == other.random()

    @every_problem
    def test_it_survives_pickling(self, name):
        problem = problems.get(name)
        assert pickle.loads(pickle.dumps(problem)) == problem

    @every_problem
    def test_the_optimizer_takes_space_constraints_noise_and_outcomes(self, name):
        problem = problems.get(name)
        start = problem.safe_start(np.random.default_rng(0))
        for view in (problem, problem.informed()):
            optimizer = crashbo.Optimizer(
                view.space, constraints=view.constraints, noise=view.noise, start=[start], seed=0, strategy="random"
            )
            trial = optimizer.ask()
            outcome = view.evaluate(trial.params)  # noise could lift a success beyond a known threshold: a warning
            optimizer.tell(trial, cost=outcome.cost, measured=outcome.measured)
            params = crashing(view, np.random.default_rng(2))
            with pytest.raises(Crash) as caught:
                view.evaluate(params)
            optimizer.tell(params, crash=caught.value)
            assert [t.state for t in optimizer.trials] == ["success", "crash"]

    def test_minimize_runs_a_problem_as_it_is(self):
        problem = problems.get("toy1d")
        result = crashbo.minimize(
            problem.evaluate, problem.space, constraints=problem.constraints, trials=3, seed=0, progress=False
        )
        assert len(result.trials) == 3


class TestRegistry:
    def test_the_names_of_the_design_are_there(self):
        assert {"toy1d", "eggcrate2d", "eggcrate2d-corner", "hartmann6d", "michalewicz10d"} <= set(NAMES)
        assert len(NAMES) >= 13
        assert len(set(NAMES)) == len(NAMES)

    @every_problem
    def test_a_problem_knows_its_name_and_its_source(self, name):
        problem = problems.get(name)
        assert isinstance(problem, Problem)
        assert problem.name == name
        assert any(year in problem.source for year in map(str, range(1960, 2027)))

    def test_an_unknown_name_is_answered_with_those_there_are(self):
        with pytest.raises(
            ValueError, match=r"name must be one of toy1d, .*; got 'toy2d'\. See crashbo.problems.names"
        ):
            problems.get("toy2d")

    def test_two_gets_share_nothing_that_can_be_changed(self):
        assert problems.get("lsq").space is not problems.get("lsq").space


MACHINE = """
from crashbo import Float
from crashbo.problems import Limit, Problem

def simulate(params):
    return params["speed"] ** 2, {"heat": params["speed"]}

def make(name="mill"):
    return Problem(name=name, space={"speed": Float(0.0, 1.0)}, simulate=simulate,
                   limits=(Limit("heat", 0.7),), cost_noise=0.0, source="ours", minimum=0.0)

def with_an_argument(name):
    return make(name)

def no_problem():
    return "mill"

def broken():
    return 1 / 0

problem = make()
number = 3
"""


class TestYourOwn:
    @pytest.fixture(autouse=True)
    def module(self, tmp_path, monkeypatch):
        """A module `own_machine` that can be imported, and one that needs what nobody has."""
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "own_machine.py").write_text(MACHINE)
        (tmp_path / "own_needy.py").write_text("import nobody_has_this")
        (tmp_path / "own_buggy.py").write_text("{}.missing")
        yield
        for name in ("own_machine", "own_needy", "own_buggy"):
            sys.modules.pop(name, None)

    def test_a_problem_is_given_back_as_it_is(self):
        problem = problems.get("lsq").informed()
        assert problems.get(problem) is problem

    def test_a_problem_in_a_module_is_found(self):
        problem = problems.get("own_machine:problem")
        assert problem is sys.modules["own_machine"].problem
        assert isinstance(problem.evaluate({"speed": 0.5}), Outcome)

    def test_a_function_that_makes_one_is_called(self):
        assert problems.get("own_machine:make").name == "mill"

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("own_machine:", "name must be written 'module:name'; got 'own_machine:'. Write 'my_machine:problem'"),
            (":problem", "name must be written 'module:name'; got ':problem'."),
            (".own_machine:problem", "name must be written 'module:name'; got '.own_machine:problem'."),
            ("C:\\own.py:problem", "name must be written 'module:name'; got "),
            ("own_missing:problem", "got 'own_missing:problem' (No module named 'own_missing'). Mend it, or put"),
            ("own_needy:problem", "got 'own_needy:problem' (No module named 'nobody_has_this'). Mend it, or put"),
            ("own_machine:oops", "got 'own_machine:oops', which is not there. Make a crashbo.problems.Problem of it."),
            ("own_machine:number", "got 'own_machine:number', which is 3."),
            ("own_machine:no_problem", "got 'own_machine:no_problem', which is 'mill'."),
            ("own_machine:with_an_argument", "function without arguments that makes one; got 'own_machine:with_an_arg"),
            ("own_machine:Problem", "got 'own_machine:Problem', which is <class 'crashbo.problems.problem.Problem'>."),
        ],
    )
    def test_what_leads_to_no_problem_is_refused_in_a_sentence(self, name, words):
        with pytest.raises(ValueError, match=r"^name must [^\n]+; got [^\n]+\. [A-Z][^\n]+$") as caught:
            problems.get(name)
        assert words in str(caught.value)

    @pytest.mark.parametrize(("name", "error"), [("broken", ZeroDivisionError), ("own_buggy:x", AttributeError)])
    def test_an_error_in_your_own_code_is_raised_as_it_is(self, name, error):
        with pytest.raises(error):
            problems.get(name if ":" in name else f"own_machine:{name}")

    @pytest.mark.parametrize("thing", [None, 3, ["toy1d"], {"a": 1}])
    def test_what_is_neither_text_nor_a_problem_is_answered_with_the_names(self, thing):
        with pytest.raises(ValueError, match=r"^name must be one of toy1d, .*; got .*\. See .* of your own\.$"):
            problems.get(thing)


class TestLimits:
    @pytest.mark.parametrize(("side", "beyond", "within"), [("above", 1.1, 0.9), ("below", 0.9, 1.1)])
    def test_only_what_lies_beyond_the_threshold_violates_it(self, side, beyond, within):
        limit = Limit("current", 1.0, side)
        assert limit.violated(beyond)
        assert not limit.violated(1.0)
        assert not limit.violated(within)

    def test_what_is_not_a_number_violates_it(self):
        assert Limit("current", 1.0).violated(float("nan"))
        assert Limit("current", 1.0, "below").violated(float("nan"))


def descents(problem, constrained, rng, starts=12):
    """Where SLSQP ends from some random starts; whole parameters stay where they start."""
    low, high = (np.array([getattr(p, end) for p in problem.space.values()]) for end in ("low", "high"))
    free = np.array([not isinstance(p, Int) for p in problem.space.values()])
    sample = random_params(problem, 1500, rng)
    truths = [problem.truth(p) for p in sample]
    order = sorted(range(len(sample)), key=lambda i: (constrained and truths[i].crashed, truths[i].cost))
    unit = np.std([t.cost for t in truths])

    # The best and some others: the best samples may all lie in a basin that is not the deepest.
    for i in [*order[:starts], *order[starts : 10 * starts : 10]]:
        whole = np.array(list(sample[i].values()), dtype=float)

        def params_at(z, whole=whole):
            values = whole.copy()
            values[free] = low[free] + z * (high - low)[free]
            return params_of(problem, values)

        def room(z, params_at=params_at):
            measured = problem.simulate(params_at(z))[1]
            return [
                (k.threshold - measured[k.name]) * (1 if k.side == "above" else -1) / (abs(k.threshold) or 1.0) - 1e-9
                for k in problem.limits
            ]

        z = ((whole - low) / (high - low))[free]
        found = descend(
            lambda z, params_at=params_at: problem.simulate(params_at(z))[0] / unit,
            z,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(z),
            constraints=[{"type": "ineq", "fun": room}] if constrained else (),
            options={"maxiter": 60, "ftol": 1e-10},
        )
        yield params_at(np.clip(found.x, 0.0, 1.0))


class TestNoise:
    @pytest.mark.parametrize(("rng", "seed"), [(5, 5), (-1, 0), ("five", 0), (np.random.RandomState(0), 0)])
    def test_a_seed_in_a_generators_place_is_refused_with_the_remedy(self, rng, seed):
        problem = problems.get("toy1d")
        with pytest.raises(ValueError, match=r"^rng must be a numpy Generator, or None for no noise; got ") as caught:
            problem.evaluate(problem.optimum, rng)
        assert str(caught.value).endswith(f"Pass np.random.default_rng({seed}).")
