"""The contract of a method, run over all of them, and what each library is told."""

import math
import sys
from collections import Counter
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest

from crashbo import Choice, Float, Int, Space
from crashbo.benchmark import methods
from crashbo.benchmark.machine import Finished, Machine
from crashbo.benchmark.methods import oracle
from crashbo.problems import Limit, Problem

TRIALS = 8
THERE = [name for name in methods.names() if methods.is_there(name)]


def bowl(name, limit, start=None):
    """Two parameters; cost is lowest at (0.3, 0.6), and what is above the limit on their sum crashes."""

    def simulate(params):
        x, y = params.values()
        return (x - 0.3) ** 2 + (y - 0.6) ** 2, {"sum": x + y}

    space = {"x": Float(0, 1), "y": Float(0, 1)}
    return Problem(name, space, simulate, (Limit("sum", limit),), 1e-3, "", 0.0, start=start)


def mixture(params):
    place = math.log10(params["rate"]) + 2
    return place**2 + (params["layers"] - 3) ** 2 / 4 + (params["kind"] != ("b", 2)), {"sum": params["layers"]}


STARTED = bowl("started", 1.0, {"x": 0.1, "y": 0.2})
HARSH = bowl("harsh", 0.9)  # about 60 % crash
MIXED = Problem(
    "mixed",
    {"rate": Float(1e-4, 1, log=True), "layers": Int(1, 6), "kind": Choice(["a", ("b", 2), None])},
    mixture,
    (Limit("sum", 4.5),),
    1e-3,
    "",
    0.0,
)
HOPELESS = bowl("hopeless", -1.0)


def ran(name, problem, *, trials=TRIALS, seed=3):
    """A machine that a method has used."""
    method = methods.get(name)
    machine = Machine(problem, trials, seed, informed=method.informed)
    method.run(machine)
    return machine


def known(name):
    return pytest.param(
        name, marks=pytest.mark.skipif(name not in THERE, reason="its library is not installed"), id=name
    )


ALL = [known(name) for name in methods.names()]
OPTUNA = [known(name) for name in methods.names() if name.startswith("optuna")]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("problem", [STARTED, HARSH, MIXED], ids=lambda problem: problem.name)
def test_a_method_uses_its_trials_within_the_space_and_leaves_nothing_behind(
    name, problem, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    machine = ran(name, problem)
    assert 1 <= len(machine.tried) <= TRIALS
    assert all(Space.of(problem.space).accepts(trial.params) for trial in machine.tried)
    if problem.start is not None:
        assert machine.tried[0].params == problem.start
    assert capfd.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


ORDERED = Problem(
    "ordered",
    {"size": Choice([16, 32, 64, 128], ordered=True), "kind": Choice([True, 1, "one"]), "x": Float(0, 1)},
    lambda params: (params["x"] + params["size"] / 64, {"sum": params["size"] / 100}),
    (Limit("sum", 1.5),),
    1e-3,
    "",
    0.0,
    start={"size": 128, "kind": 1, "x": 0.5},
)


@pytest.mark.parametrize("name", ALL)
def test_a_start_among_options_is_tried_as_it_is(name):
    machine = ran(name, ORDERED)
    first = machine.tried[0].params
    assert (first["size"], first["kind"], first["x"]) == (128, 1, pytest.approx(0.5))
    assert first["kind"] is not True


@pytest.mark.parametrize("option", range(4))
def test_the_index_of_an_option_is_its_place_ordered_or_not(option):
    for ordered in (True, False):
        choice = Choice([16, 32, 64, 128], ordered=ordered)
        assert methods.base.option_index(choice, choice.options[option]) == option


@pytest.mark.parametrize("name", ALL)
def test_a_seed_gives_the_same_trials_again_and_another_one_gives_others(name):
    first, again, other = (ran(name, HARSH, seed=seed).tried for seed in (5, 5, 6))
    assert [t.params for t in first] == [t.params for t in again]
    assert [t.params for t in first] != [t.params for t in other]


@pytest.mark.parametrize("name", [p for p in ALL if p.id not in ("oracle",)])
def test_crashes_only_end_no_method(name):
    assert len(ran(name, HOPELESS).tried) == TRIALS


@pytest.mark.parametrize("name", ALL)
def test_a_method_ends_well_when_only_one_trial_is_left(name):
    assert len(ran(name, STARTED, trials=1).tried) == 1


def test_the_oracle_never_crashes():
    assert all(trial.cost is not None for trial in ran("oracle", HARSH, trials=20).tried)


def test_the_oracle_comes_close_on_an_easy_problem():
    assert min(trial.cost for trial in ran("oracle", HARSH, trials=20).tried) < 0.01


def test_log_ei_is_right_from_large_gains_down_to_hopeless_ones():
    z = np.array([3.0, 0.0, -0.999, -1.001, -5.0])
    grid = np.linspace(-40, 40, 2_000_001)
    density = np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi) * (grid[1] - grid[0])
    assert oracle.log_ei(z) == pytest.approx([math.log(np.sum(np.maximum(v + grid, 0) * density)) for v in z], abs=1e-6)
    far = np.array([-999.0, -1001.0, -1e8])
    assert oracle.log_ei(far) == pytest.approx(-0.5 * far**2 - 0.5 * math.log(2 * math.pi) - 2 * np.log(-far), rel=1e-9)


# What the libraries are told.


@pytest.fixture
def studies(monkeypatch):
    """All Optuna studies that are created."""
    optuna = pytest.importorskip("optuna")
    found, create = [], optuna.create_study
    monkeypatch.setattr(optuna, "create_study", lambda **settings: found.append(create(**settings)) or found[-1])
    return found


@pytest.mark.parametrize("name", OPTUNA)
def test_optuna_hears_of_a_crash_as_a_failure_or_as_the_worst_success_so_far(name, studies):
    machine = ran(name, HARSH, trials=15)
    worst = None
    for trial, tried in zip(studies[0].trials, machine.tried, strict=True):
        if tried.cost is not None:
            worst = tried.cost if worst is None else max(worst, tried.cost)
            assert (trial.state.name, trial.value) == ("COMPLETE", tried.cost)
        elif name.endswith("penalty") and worst is not None:
            assert (trial.state.name, trial.value) == ("COMPLETE", worst)
        else:
            assert (trial.state.name, trial.value) == ("FAIL", None)
    assert any(trial.cost is None for trial in machine.tried)


@pytest.mark.parametrize("name", [known("optuna-gp"), known("optuna-gp-penalty"), known("optuna-tpe")])
def test_optuna_leaves_its_random_beginning_and_does_well_in_a_mixed_space(name):
    machine = ran(name, replace(MIXED, limits=(Limit("sum", 9.0),)), trials=40)  # which never crashes
    assert min(trial.cost for trial in machine.tried[20:]) < 0.3


@pytest.mark.parametrize("name", [known("optuna-cmaes")])
def test_cma_es_searches_from_the_start(name):
    near = [math.dist(t.params.values(), STARTED.start.values()) for t in ran(name, STARTED, trials=30).tried[1:5]]
    assert max(near) < 0.6  # three of its first standard deviations, 1/6


@pytest.mark.parametrize("name", [known("optuna-tpe")])
def test_optuna_speaks_again_when_a_run_is_over(name):
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    ran(name, STARTED)
    assert optuna.logging.get_verbosity() == before


@pytest.mark.parametrize("name", [known("smac")])
def test_smac_hears_of_crashes_and_its_model_of_the_worst_success(name, monkeypatch):
    from smac.runhistory import StatusType

    smac = sys.modules[methods.get(name).run.__module__]
    facades, build, seen, encode = [], smac.facade_of, [], smac.WorstOfSuccesses.transform
    monkeypatch.setattr(smac, "facade_of", lambda *rest: facades.append(build(*rest)) or facades[0])

    def transform(self, *rest, **more):
        seen.append(encode(self, *rest, **more)[1])
        return encode(self, *rest, **more)

    monkeypatch.setattr(smac.WorstOfSuccesses, "transform", transform)
    machine = ran(name, HARSH)
    history = list(facades[0].runhistory.values())
    crashes = sum(t.cost is None for t in machine.tried)
    assert crashes
    assert Counter(value.status for value in history)[StatusType.CRASHED] == crashes
    assert all(value.cost == math.inf for value in history if value.status == StatusType.CRASHED)
    costs = [t.cost for t in machine.tried[:-1]]
    worst = max(cost for cost in costs if cost is not None)
    assert seen[-1].ravel().tolist() == [worst if cost is None else cost for cost in costs]


@pytest.mark.parametrize("name", [known("nomad")])
def test_nomad_hears_of_a_crash_as_a_failed_evaluation(name):
    nomad = sys.modules[methods.get(name).run.__module__]

    class Point:
        """As PyNomad hands it over."""

        def __init__(self, *values):
            self.values, self.output = values, None

        def size(self):
            return len(self.values)

        def get_coord(self, i):
            return self.values[i]

        def setBBO(self, text):
            self.output = text

    machine = Machine(HARSH, 2, 0)
    crash, success, late = Point(0.9, 0.9), Point(0.3, 0.5), Point(0.3, 0.5)
    assert [nomad.evaluate(machine, point) for point in (crash, success, late)] == [0, 1, 0]
    assert (crash.output, late.output) == (None, None)
    assert float(success.output) == machine.tried[1].cost
    with pytest.raises(Finished):
        machine({"x": 0.0, "y": 0.0})


@pytest.mark.parametrize("name", [known("nomad")])
def test_nomad_begins_again_when_all_of_its_first_points_crash(name):
    machine = ran(name, bowl("corner", 0.35), trials=40)
    assert len(machine.tried) == 40
    assert any(trial.cost is not None for trial in machine.tried)


@pytest.mark.parametrize("name", [known("egobox")])
def test_egobox_hears_of_a_crash_as_nan_and_of_options_as_columns(name, tmp_path):
    module = sys.modules[methods.get(name).run.__module__]
    told = module.EgoboxTrials(Machine(MIXED, 3, 0))
    costs = [told.add([0.5, 3.0, 1.0]), told.add([1.0, 6.0, 2.0])]
    assert [trial.params for trial in told.machine.tried] == [
        {"rate": pytest.approx(0.01), "layers": 3, "kind": ("b", 2)},
        {"rate": pytest.approx(1.0), "layers": 6, "kind": None},
    ]
    assert costs[0] == told.machine.tried[0].cost
    assert math.isnan(costs[1])
    told.save(tmp_path / "doe.npy")
    expected = [[0.5, 3, 0, 1, 0, costs[0]], [1.0, 6, 0, 0, 1, np.nan]]
    np.testing.assert_array_equal(np.load(tmp_path / "doe.npy"), expected)


@pytest.mark.parametrize("name", [known("egobox")])
def test_egobox_goes_where_cost_is_low(name):
    machine = ran(name, bowl("far", 1.2), trials=30)
    assert min(trial.cost for trial in machine.tried if trial.cost is not None) < 0.01


@pytest.mark.parametrize("name", [known("egobox")])
def test_egobox_raises_what_the_machine_raises(name):
    """It would take any exception for one more failure."""

    def broken(params):
        raise ArithmeticError("a fault of the benchmark's own")

    with pytest.raises(ArithmeticError):
        ran(name, replace(HARSH, simulate=broken))


@pytest.mark.parametrize("name", [known("botorch")])
def test_botorch_avoids_where_it_crashed_and_goes_where_cost_is_low(name):
    machine = ran(name, HARSH, trials=14, seed=1)
    late = machine.tried[7:]
    assert sum(trial.cost is None for trial in late) <= 4
    assert min(trial.cost for trial in late if trial.cost is not None) < 0.02


@pytest.mark.parametrize("name", [known("botorch")])
def test_botorch_goes_on_at_random_when_a_fit_fails(name, monkeypatch):
    botorch = sys.modules[methods.get(name).run.__module__]

    def fail(_):
        raise RuntimeError("no fit")

    monkeypatch.setattr(botorch, "fit_gpytorch_mll", fail)
    machine = ran(name, STARTED)
    assert len({tuple(trial.params.values()) for trial in machine.tried}) == TRIALS


@pytest.mark.parametrize("name", ["optuna-gp", "optuna-cmaes"])
def test_a_missing_library_is_named_with_its_remedy(name, monkeypatch):
    pytest.importorskip("optuna")
    library, extra = {"optuna-gp": ("torch", "optuna-gp"), "optuna-cmaes": ("cmaes", "cmaes")}[name]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ValueError, match=rf"{name}.*{library}.*pip install 'crashbo\[{extra}\]'"):
        methods.get(name)
    assert not methods.is_there(name)


@pytest.mark.parametrize("name", ALL)
def test_a_method_says_by_its_name_who_it_is(name):
    method = methods.get(name)
    assert method.name == name
    assert method.label
    assert all(version(library) for library in method.libraries)
