"""What defines a study: checked in one place, saved and loaded by one codec, the same at every door."""

import inspect
import json
import pickle
from dataclasses import dataclass, fields

import numpy as np
import pytest

import crashbo
from crashbo import strategies
from crashbo.app.bench import Definition
from crashbo.integrations.optuna import CrashSampler, declare
from crashbo.optimizer import saving
from crashbo.optimizer.progress import summary
from crashbo.optimizer.study import OPTIONS, Options, Study

SPACE = {"x": (0.0, 1.0), "n": crashbo.Int(1, 4), "mode": crashbo.Choice(["a", ("b", 2)])}
SAID = [
    {},
    {"constraints": ["load"], "noise": 0.1, "direction": "maximize", "posterior": "map"},
    {"constraints": [crashbo.Constraint("load", (1.0, 2.0), "below"), crashbo.Unmeasured()], "noise": {"load": 0.2}},
    {"risk": crashbo.Budget(3, 20)},
    {"risk": {"min_safe": 0.8}},
    {"strategy": strategies.HighCost(3.0), "risk": "paper"},
    {"strategy": {"name": "pibu", "lengthscale": 0.3}},
    {"constraints": ["load"], "units": {"cost": "m", "load": "A", "x": "V"}},
    {"constraints": [crashbo.Constraint("load", noise=0.2), "heat"], "noise": {"cost": 0.1, "heat": 0.3}},
]


@dataclass(frozen=True)
class Careful:
    """A risk of somebody's own."""

    p: float = 0.8

    def floor(self, situation):
        return self.p


def middle(task, rng):
    """A strategy of somebody's own."""
    return strategies.Proposal(np.full(task.space.dimension, 0.5))


@pytest.mark.parametrize("said", SAID)
def test_a_study_comes_back_as_it_was_saved(said):
    study = Study.of(SPACE, **said)
    assert Study.back(json.loads(json.dumps(study.out(), default=saving.plain))) == study


def test_an_option_is_a_field_a_key_and_an_entry():
    assert ["space", *OPTIONS] == [f.name for f in fields(Study)]
    assert {"constraints", *Options.__annotations__} == set(OPTIONS)


@pytest.mark.parametrize(
    "door", [crashbo.Optimizer, crashbo.minimize, crashbo.Optimizer.changed, CrashSampler, declare]
)
def test_every_door_takes_and_shows_every_option(door):
    shown = inspect.signature(door).parameters
    elsewhere = {"direction", "objectives"} if door in (CrashSampler, declare) else set()  # Optuna's own study has them
    assert set(OPTIONS) - set(shown) == elsewhere
    assert not any(p.kind is p.VAR_KEYWORD for p in shown.values())
    words = inspect.getdoc(door.__init__ if inspect.isclass(door) else door)
    assert all(f"{name}: {OPTIONS[name].words}" in words for name in set(Options.__annotations__) - elsewhere)


def test_a_toml_file_takes_every_option():
    said = {"name": "s", "parameters": {"x": [0, 1]}, "noise": 0.1, "direction": "maximize", "posterior": "map"}
    study = Definition.of({**said, "strategy": "eicc", "risk": {"crashes": 3, "trials": 9}}).study
    assert study == Study.of(
        {"x": (0, 1)}, noise=0.1, direction="maximize", posterior="map", risk=crashbo.Budget(3, trials=9)
    )


def test_a_whole_study_goes_in_the_place_of_a_space():
    study = Study.of(SPACE, ["load"], posterior="map")
    assert crashbo.Optimizer(study).study is study
    result = crashbo.minimize(lambda params: params["x"], study, trials=3, progress=False)
    assert result.optimizer.study == study
    with pytest.raises(ValueError, match="noise must be part of the study that is given"):
        crashbo.Optimizer(study, noise=0.1)


def test_units_are_shown_beside_what_they_are_of():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, ["load"], units={"cost": "m", "load": "A"})
    for x in (0.2, 0.4, 0.6):
        optimizer.tell({"x": x}, cost=x, measured={"load": x})
    optimizer.tell({"x": 0.9}, crash=True)
    assert "best 0.2 m · crashes 1 · load crashes at 0." in summary(optimizer, 5)
    assert summary(optimizer, 5).endswith(" A")


@pytest.mark.parametrize("units", [{"heat": "K"}, {"load": 5}, "A"])
def test_units_of_what_is_not_there_are_refused(units):
    with pytest.raises(ValueError, match=r"^units must .+\. (Mend|Write)"):
        crashbo.Optimizer(SPACE, ["load"], units=units)


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(TypeError, match=r"only the options constraints, .+; got 'riks'\. Mend the name\."):
        crashbo.Optimizer(SPACE, riks="paper")


@pytest.mark.parametrize("door", [CrashSampler, lambda **said: declare(None, **said)])
def test_an_optuna_study_has_its_direction_from_optuna(door):
    with pytest.raises(ValueError, match="direction must be given to Optuna's create_study"):
        door(direction="maximize")


def told(**options):
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, ["load"], **options)
    for i in range(6):
        optimizer.tell(optimizer.ask(), cost=float(i), measured={"load": 0.1 * i})
    return optimizer


def test_what_is_not_passed_to_a_saved_study_stays():
    optimizer = told(risk=crashbo.Budget(3, 20), noise=0.1)
    again = crashbo.Optimizer.from_json(optimizer.to_json(), risk=None, strategy=None, noise=None)
    assert again.study == optimizer.study
    with pytest.raises(ValueError, match="noise must name 'cost' or constraints"):
        crashbo.Optimizer.from_json(optimizer.to_json(), noise={"heat": 1.0})


def test_a_change_is_checked_as_a_new_study_is():
    optimizer = told()
    with pytest.raises(ValueError, match="noise must name 'cost' or constraints"):
        optimizer.changed(noise={"heat": 1.0})
    with pytest.raises(ValueError, match="units must name 'cost', constraints or parameters"):
        optimizer.changed(units={"heat": "K"})
    assert optimizer.study.changed(space={"x": (0.0, 2.0), "y": (0.0, 1.0)}).space.parameters["x"].high == 2.0


@pytest.mark.parametrize(
    ("change", "noise"),
    [
        ({"noise": {"a": 0.3}}, {"cost": 0.1, "a": 0.3, "b": 0.2}),
        ({"noise": {"b": None}}, {"cost": 0.1, "a": 0.5}),
        ({"noise": 0.4}, {"cost": 0.4, "a": 0.5, "b": 0.2}),
        ({"constraints": [crashbo.Constraint("a", noise=0.6)]}, {"cost": 0.1, "a": 0.6, "b": 0.2}),
        ({"constraints": ["a"]}, {"cost": 0.1, "a": 0.5, "b": 0.2}),
    ],
)
def test_what_is_known_of_noise_stays_until_something_else_is_said(change, noise):
    study = Study.of(SPACE, [crashbo.Constraint("a", noise=0.5), "b"], noise={"cost": 0.1, "b": 0.2})
    for before in (study, Study.back(study.out())):
        after = before.changed(**change)
        assert after.noise == noise
        assert {c.name: c.noise for c in after.constraints} == {c.name: noise.get(c.name) for c in after.constraints}


def test_a_constraint_may_be_called_cost():
    assert Study.of(SPACE, ["cost"], noise=0.1).constraints[0].noise is None


def test_other_models_are_learnt_from_scratch_by_a_study_that_is_loaded_with_another_noise():
    optimizer = told()
    optimizer.ask()
    text = optimizer.to_json()
    assert crashbo.Optimizer.from_json(text, noise=0.5).state()["memory"] is None
    assert crashbo.Optimizer.from_json(text, units={"load": "A"}).state()["memory"] is not None


@pytest.mark.parametrize("name", ["risk", "direction", "space", "constraints", "posterior", "strategy"])
def test_what_defines_a_study_is_not_changed_in_place(name):
    with pytest.raises(AttributeError):
        setattr(told(), name, None)


def test_a_study_and_its_report_can_be_pickled():
    optimizer = told()
    report = optimizer.confirm(2)
    again, same = pickle.loads(pickle.dumps((optimizer, report)))
    assert again.ask() == optimizer.ask()
    assert len(same.trials) == len(report.trials) == 1


def test_a_function_of_ones_own_is_a_strategy():
    trial = told(strategy=middle).ask()
    assert trial.params == {"x": 0.5, "y": 0.5}
    assert trial.p_safe is None


@pytest.mark.parametrize(
    "answer", [None, np.zeros(2), strategies.Proposal(np.zeros(3)), strategies.Proposal([np.nan, 0])]
)
def test_a_strategy_that_returns_no_point_is_refused(answer):
    with pytest.raises(ValueError, match="strategy must return a Proposal of 2 finite coordinates"):
        told(strategy=lambda task, rng: answer)


def test_a_proposal_outside_the_space_becomes_the_nearest_setting():
    optimizer = told(strategy=lambda task, rng: strategies.Proposal(np.array([1.5, 0.25]))).changed(fixed={"y": 0.75})
    assert optimizer.ask().params == {"x": 1.0, "y": 0.75}


def test_a_risk_of_ones_own_sets_the_floor():
    floors = []

    class Watched(Careful):
        def floor(self, situation):
            floors.append(len(situation.crashed))
            return 0.5

    trial = told(risk=Watched()).ask()
    assert floors
    assert trial.p_safe is not None


@pytest.mark.parametrize("floor", [None, 1.5, float("nan")])
def test_a_risk_that_returns_no_floor_is_refused(floor):
    with pytest.raises(ValueError, match="risk must return a floor between 0 and 1"):
        told(risk=Careful(floor))


def test_a_risk_of_ones_own_is_refused_where_nothing_heeds_it():
    with pytest.raises(ValueError, match="risk must be None with strategy 'random'"):
        crashbo.Optimizer(SPACE, risk=Careful(), strategy="random")
    assert crashbo.Optimizer(SPACE, risk=Careful(), strategy=middle).risk == Careful()


def test_a_risk_of_ones_own_may_begin_at_the_centre():
    class Shy(Careful):
        bold = False

    assert crashbo.Optimizer({"x": (0.0, 1.0)}, risk=Shy()).ask().params == {"x": 0.5}


def test_a_risk_of_ones_own_announces_a_length_that_is_one():
    @dataclass(frozen=True)
    class Long(Careful):
        trials: object = None

    for wrong in (0, "ten", True):
        with pytest.raises(ValueError, match="risk must have a whole number of trials"):
            crashbo.Optimizer(SPACE, risk=Long(trials=wrong))
    told(risk=Long(trials=np.int64(20))).ask()


@pytest.mark.parametrize("risk", [Careful, 5, {"crash": 3}, "bold"])
def test_what_has_no_floor_is_no_risk(risk):
    with pytest.raises(ValueError, match="risk must be None"):
        crashbo.Optimizer(SPACE, risk=risk)


@pytest.mark.parametrize(("name", "own"), [("strategy", middle), ("risk", Careful(0.7))])
def test_a_saved_study_with_a_part_of_ones_own_says_what_it_needs(name, own):
    optimizer = told(**{name: own})
    text = optimizer.to_json()
    where = "test_study:middle" if name == "strategy" else "test_study:Careful"
    with pytest.raises(ValueError, match=rf"^{name} must be passed again .+'{where}'.+ pass {name}="):
        crashbo.Optimizer.from_json(text)
    again = crashbo.Optimizer.from_json(text, **{name: own})
    assert again.study == optimizer.study
    assert again.ask() == optimizer.ask()


@pytest.mark.parametrize(("name", "own"), [("strategy", middle), ("risk", Careful(0.7))])
def test_a_storage_does_not_take_what_only_its_author_has(name, own):
    with pytest.raises(ValueError, match=rf"{name} must be one of crashbo's to be declared.+CrashSampler\({name}="):
        declare(None, **{name: own})


def test_a_journal_of_a_study_with_a_strategy_of_ones_own_goes_on(tmp_path):
    def run(trials):
        journal = tmp_path / "journal"
        return crashbo.minimize(
            lambda p: p["x"], {"x": (0.0, 1.0)}, trials=trials, strategy=middle, journal=journal, progress=False
        )

    assert [t.params for t in run(7).trials[:5]] == [t.params for t in run(5).trials[:5]]


def test_a_journal_does_not_go_on_without_a_part_that_was_somebodys_own(tmp_path):
    def run(**own):
        return crashbo.minimize(
            lambda p: p["x"], {"x": (0.0, 1.0)}, trials=5, journal=tmp_path / "journal", progress=False, **own
        )

    run(risk=Careful())
    with pytest.raises(ValueError, match=r"risk must be passed again .+'test_study:Careful'"):
        run()
    assert len(run(risk=Careful()).trials) == 5

    class Moved(Careful):
        """The same under another name, as where a script is imported that was run before."""

    assert len(run(risk=Moved()).trials) == 5


@pytest.mark.parametrize("strategy", [{}, {"name": "ei-hc", "foo": 1}, {"name": "eicc", "foo": 1}])
def test_a_strategy_that_is_only_half_described_is_refused(strategy):
    with pytest.raises(ValueError, match="strategy must"):
        crashbo.Optimizer(SPACE, strategy=strategy)
