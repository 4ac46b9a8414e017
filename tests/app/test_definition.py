"""A study as a person writes it down."""

import pytest

from crashbo import Budget, Choice, Constraint, Float, Int, MinSafe, Unmeasured
from crashbo.app.bench import Bench, Definition, RunRules
from crashbo.workers import Limits

TOML = """
name = "jump"
direction = "maximize"
risk = {crashes = 5, trials = 40}
lease = 600
start = [{knee = 0.2, rate = 0.01, legs = 2, gait = "trot"}]

[cost]
label = "height"
unit = "m"

[parameters]
knee = [0.0, 1.0]
rate = {low = 1e-5, high = 1.0, log = true}
legs = {low = 1, high = 4, int = true}
gait = ["trot", "bound"]

[constraints]
current = {unit = "A", noise = 0.5}
heat = {threshold = [60, 90]}
pressure = {threshold = 2.0, side = "below"}
other = {measured = false}

[run]
timeout = 60
on_timeout = "void"
memory = "2GB"
on_nan = "crash"
exits = {3 = "crash"}
"""
SPACE = {"knee": Float(0, 1), "rate": Float(1e-5, 1, log=True), "legs": Int(1, 4), "gait": Choice(["trot", "bound"])}
CONSTRAINTS = (
    Constraint("current", noise=0.5),
    Constraint("heat", threshold=(60, 90)),
    Constraint("pressure", threshold=2.0, side="below"),
    Unmeasured("other"),
)


def test_a_toml_file_says_everything_and_the_store_keeps_it(tmp_path, store):
    path = tmp_path / "jump.toml"
    path.write_text(TOML)
    said = Definition.from_toml(path)
    kept = Bench.create(store, said).definition
    for definition in (said, kept):
        assert dict(definition.space.parameters) == SPACE
        assert definition.study.constraints == CONSTRAINTS
        assert (definition.study.direction, definition.study.risk, definition.lease) == ("maximize", Budget(5, 40), 600)
        assert definition.label == "height"
        assert definition.study.units == {"cost": "m", "current": "A"}
        assert definition.run == RunRules(60, "void", "2GB", on_nan="crash", exits={"3": "crash"})
        assert (definition.run.on_death, definition.run.on_exit, definition.run.on_rubbish) == ("crash", "void", "void")
        assert definition.run.limits == Limits(60, 2e9)
        assert (definition.run.of_exit(3), definition.run.of_exit(1)) == ("crash", "void")


def test_the_files_name_is_the_studys_unless_it_says_otherwise(tmp_path):
    path = tmp_path / "lathe.toml"
    path.write_text("parameters = {speed = [1, 2]}\nrisk = {min_safe = 0.8}")
    definition = Definition.from_toml(path)
    assert (definition.name, definition.study.risk) == ("lathe", MinSafe(0.8))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"parameters": {}}, "parameters must name at least one"),
        ({"parameters": {"x": [1, 0]}}, "must"),
        ({"parameters": {"x": {"low": 0}}}, "x must have low and high"),
        ({"parameters": {"x": {"low": 0, "high": 1, "colour": 3}}}, "x must have only .*; got 'colour'"),
        ({"parameters": {"cost": [0, 1]}}, "must not be called 'cost'"),
        ({"parameters": {"x": [0, 1]}, "constraints": {"x": {}}}, "constraint must not be called as a parameter"),
        ({"constraints": {"c": {"side": "left"}}}, "side must be 'above' or 'below'"),
        ({"constraints": 3}, "constraints must be names or tables"),
        ({"name": ""}, "name must be a text of 1 to 80 characters"),
        ({"name": "a\x00b"}, "name must be printable"),
        ({"risk": "none"}, "risk must be"),
        ({"risk": {"min_safe": 2}}, "MinSafe must"),
        ({"direction": "up"}, "direction must be"),
        ({"strategy": "luck"}, "strategy"),
        ({"posterior": "mode"}, "posterior must be 'marginal' or 'map'"),
        ({"units": "m"}, "units must map names to text"),
        ({"units": {"heat": "K"}}, "units must name 'cost', constraints or parameters"),
        ({"units": {"cost": "\x00"}}, "unit or label of cost must be printable"),
        ({"units": {"cost": "kJ"}, "cost": {"unit": "J"}}, "unit of cost must be given once"),
        ({"lease": "x"}, "lease must be a positive number"),
        ({"start": 3}, "start must be a list of settings"),
        ({"start": [{"x": 5}]}, "x must be a number from 0 to 1"),
        ({"run": {"on_exit": "panic"}}, "run.on_exit must be 'crash' or 'void'"),
        ({"run": {"exits": {"0": "crash"}}}, "exit codes from 1 to 255"),
        ({"run": {"timeout": -1}}, "run.timeout must be a positive"),
        ({"run": {"on_kill": "crash"}}, "run.on_kill must be written on_death; got 'crash'. Rename it."),
        ({"run": {"on_nan": "panic"}}, "run.on_nan must be 'crash' or 'void' or 'raise'"),
        ({"run": {"on_death": "raise"}}, "run.on_death must be 'crash' or 'void'; got 'raise'"),
        ({"run": {"memory": "2 cows"}}, 'memory must be a size such as "2GB"'),
        ({"run": {"colour": "red"}}, "run must have only .*; got 'colour'"),
        ({"run": 3}, "run must be a table"),
        ({"colour": "red"}, "study must have only .*; got 'colour'"),
    ],
)
def test_a_mistake_gets_one_sentence(more, words):
    with pytest.raises(ValueError, match=words) as refusal:
        Definition.of({"name": "s", "parameters": {"x": [0.0, 1.0]}, **more})
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_no_toml_or_is_not_there_is_named(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("= 3")
    for path in (bad, tmp_path / "none.toml"):
        with pytest.raises(ValueError, match=path.name):
            Definition.from_toml(path)


def test_a_name_is_new_in_its_store_and_must_be_said_where_there_are_several(store):
    one = Definition.of({"name": "one", "parameters": {"x": [0, 1]}})
    Bench.create(store, one)
    with pytest.raises(ValueError, match="'one' is there"):
        Bench.create(store, one)
    Bench.create(store, Definition.of({"name": "'; DROP TABLE studies; --", "parameters": {"x": [0, 1]}}))
    with pytest.raises(ValueError, match="study must be named"):
        Bench.open(store)
    assert Bench.open(store, "'; DROP TABLE studies; --").trials == []
    with pytest.raises(ValueError, match="store must be an existing file"):
        Bench.open(store + "x")
