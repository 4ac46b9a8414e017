"""The spaces that people have, at the bench: TOML, HTTP, CSV, command line, report and page."""

import json
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
from fastapi.testclient import TestClient
from test_service import HOME, Quiet

from crashbo.app import report
from crashbo.app.bench import Bench, Definition, Told, table
from crashbo.app.cli import main
from crashbo.app.overview import Overview
from crashbo.app.server.api import create_app

TOML = """
name = "solver"
rules = ["10 * step <= levels", "drive <= 1.2 - temperature / 50"]
start = [{solver = "multigrid", levels = 4, step = 0.2, grade = "fine", drive = 0.1}]
[parameters]
solver = ["direct", "multigrid"]
levels = {low = 2, high = 6, int = true, when = {solver = "multigrid"}}
step = {low = 0.0, high = 1.0, step = 0.05}
grade = {options = ["fine", "medium", "coarse"], ordered = true}
drive = [0.0, 1.0]
temperature = {low = 5.0, high = 40.0, context = true, unit = "C"}
[constraints]
current = {unit = "A"}
"""
DIRECT = {"solver": "direct", "step": 0.9, "grade": "fine", "drive": 0.1}


@pytest.fixture
def ruled(store, tmp_path):
    path = Path(tmp_path, "solver.toml")
    path.write_text(TOML)
    return Bench.create(store, Definition.from_toml(path))


def told(bench, trials):
    for k in range(trials):
        trial = bench.ask(context={"temperature": 8.0 + 3 * k})
        params = trial.params
        assert ("levels" in params) == (params["solver"] == "multigrid")
        assert 10 * params["step"] <= params.get("levels", 100)
        assert params["drive"] <= 1.2 - params["temperature"] / 50
        cost = (params["step"] - 0.4) ** 2 + (params["drive"] - 0.7) ** 2
        said = {"ran": {"step": params["step"] + 0.01}, "context": {"temperature": 8.2 + 3 * k}}
        bench.tell(trial.number, Told.of(cost=cost, measured={"current": 3 * params["drive"]}, **said))


def test_a_bench_keeps_rules_branches_and_contexts(ruled):
    assert ruled.definition.study.space.contexts == ("temperature",)
    told(ruled, 7)
    first = ruled.trials[0]
    assert (first.origin, first.params["temperature"], first.ran["temperature"]) == ("start", 8.0, 8.2)
    assert first.ran["step"] == pytest.approx(0.21)
    found = ruled.insight().recommend(context={"temperature": 10.0})
    assert found.params["temperature"] == 10.0
    seen = Overview(ruled.insight())
    assert set(seen.influence()) == {"safety", "cost"}
    sliced = seen.slice(("step", "levels"), {**first.params, "levels": 4}, size=9)
    assert sliced.forbidden.shape == sliced.p_safe.shape
    assert 0.0 < sliced.forbidden.mean() < 1.0
    assert seen.slice(("solver", "drive"), first.params, size=5).p_safe.shape == (5, 2)
    page = report.of_bench(ruled)
    for words in ("10 * step &lt;= levels", "in steps of 0.05", "when solver is", "in this order", "met, not chosen"):
        assert words in page


def test_what_a_bench_cannot_take_is_refused(ruled):
    for context in (None, {}, {"temperature": "warm"}, {"temperature": 9.0, "drive": 1.0}):
        with pytest.raises(ValueError, match="must"):
            ruled.ask(context=context)
    with pytest.raises(ValueError, match=r"params must keep every rule; .*breaks '10 \* step <= levels'"):
        ruled.wish({"solver": "multigrid", "levels": 2, "step": 0.9, "grade": "fine", "drive": 0.1})
    with pytest.raises(ValueError, match="params must leave out temperature"):
        ruled.wish({**DIRECT, "temperature": 9.0})
    with pytest.raises(ValueError, match="params must give each of"):
        ruled.wish({**DIRECT, "levels": 3})
    with pytest.raises(ValueError, match="start must keep every rule"):
        Definition.of(
            {"name": "n", "parameters": {"x": [0, 1], "y": [0, 1]}, "rules": ["x <= y"], "start": [{"x": 1, "y": 0}]}
        )
    with pytest.raises(ValueError, match="rules must name parameters"):
        Definition.of({"name": "n", "parameters": {"x": [0, 1]}, "rules": ["x <= y"]})
    ruled.ask(context={"temperature": 9.0})
    ruled.wish(DIRECT)
    assert ruled.ask(context={"temperature": 45.0}).params == {**DIRECT, "temperature": 45.0}


def test_a_csv_keeps_what_ran_and_what_does_not_exist(ruled, store):
    told(ruled, 3)
    ruled.add({**DIRECT, "temperature": 20.0}, Told.of(crash="too hot"))
    text = table.export(ruled)
    other = Bench.create(store, Definition.of({"name": "other", **_said()}))
    assert len(table.load(other, text).new) == 4
    assert [t.ran for t in other.trials] == [t.ran for t in ruled.trials]
    assert len(table.plan(other, text).known) == 4
    with pytest.raises(ValueError, match="ran must be a JSON object"):
        table.plan(other, text.replace('"{""', '"[""'))


def _said():
    import tomllib

    return {key: value for key, value in tomllib.loads(TOML).items() if key not in ("start", "name")}


def test_the_service_takes_a_context_and_what_ran(ruled, store):
    client = TestClient(create_app(Quiet(store), None), base_url=HOME, raise_server_exceptions=False)
    study = client.get("/api/state").json()["study"]
    assert study["rules"] == ["10 * step <= levels", "drive <= 1.2 - temperature / 50"]
    kinds = {p["name"]: (p["kind"], p.get("step"), p["when"], p.get("ordered")) for p in study["parameters"]}
    assert kinds["levels"] == ("int", None, {"solver": ["multigrid"]}, None)
    assert kinds["step"][:2] == ("float", 0.05)
    assert kinds["grade"][3] is True
    assert kinds["temperature"][0] == "context"
    refused = client.post("/api/ask", json={})
    assert (refused.status_code, refused.json()["error"]) == (
        422,
        "context must give 'temperature'; got None. Say what is met.",
    )
    asked = client.post("/api/ask", json={"context": {"temperature": 12.0}}).json()
    assert asked["params"]["temperature"] == 12.0
    body = {"cost": 1.0, "ran": {"drive": 0.12}, "context": {"temperature": 12.5}}
    answer = client.post(f"/api/trials/{asked['number']}/tell", json=body).json()
    assert answer["as_run"]["drive"] == 0.12
    assert answer["as_run"]["temperature"] == 12.5
    added = client.post("/api/trials", json={"params": DIRECT, "context": {"temperature": 20.0}, "crash": True}).json()
    assert added["params"]["temperature"] == 20.0
    assert client.post("/api/trials/0/tell", json={"cost": 1.0, "ran": {"q": 1.0}}).status_code == 422


def test_the_command_line_takes_a_context_and_what_ran(ruled, store, capsys):
    assert main(["ask", "--store", store, "--context", "temperature=12", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["params"]["temperature"] == 12.0
    said = ["--cost", "1", "--ran", "drive=0.12", "--context", "temperature=12.5", "--json"]
    assert main(["tell", "0", "--store", store, *said]) == 0
    assert json.loads(capsys.readouterr().out)["as_run"]["temperature"] == 12.5
    assert main(["ask", "--store", store]) != 0
    assert "context must give 'temperature'" in capsys.readouterr().err


def test_a_bench_says_which_trials_broke_a_rule(tmp_path):
    said = {"name": "ruled", "parameters": {"x": [0, 1], "y": [0, 1]}, "rules": ["x <= y"]}
    bench = Bench.create(str(tmp_path / "ruled.db"), Definition.of(said))
    for x in (0.2, 0.9):
        bench.add({"x": x, "y": 0.5}, Told.of(cost=x))
    (finding,) = [f for f in bench.insight().check() if f.kind == "rule"]
    assert finding.trials == (1,)
    assert "the rule" in finding.remedy


def test_a_command_is_run_in_a_context_and_says_what_it_met(ruled, store, capsys):
    said = json.dumps({"cost": 1.0, "context": {"temperature": 13.5}})
    assert main(["run", "--store", store, "--context", "temperature=12", "--", "echo", said]) == 0
    assert ruled.trials[-1].params["temperature"] == 12.0
    assert ruled.trials[-1].ran["temperature"] == 13.5
    assert main(["run", "--store", store, "--", "echo", said]) == 1
    assert "context must give 'temperature'" in capsys.readouterr().err


def test_what_a_rule_forbids_in_a_context_waits_for_another(tmp_path):
    said = {
        "name": "machine",
        "parameters": {"drive": [0, 1], "temperature": {"low": 5, "high": 40, "context": True}},
        "rules": ["drive <= 1.2 - temperature / 50"],
        "start": [{"drive": 0.95}],
    }
    bench = Bench.create(str(tmp_path / "machine.db"), Definition.of(said))
    hot = bench.ask(context={"temperature": 40.0})
    assert hot.params["drive"] <= 0.4
    assert bench.ask(context={"temperature": 6.0}).params == {"drive": 0.95, "temperature": 6.0}


def test_a_slice_of_a_mixture_shows_where_the_other_shares_leave_room(tmp_path):
    said = {
        "name": "mixture",
        "parameters": {name: [0, 1] for name in "abcd"},
        "rules": ["a + b + c + d == 1", "d <= 0.3"],
    }
    bench = Bench.create(str(tmp_path / "mixture.db"), Definition.of(said))
    for _ in range(3):
        trial = bench.ask()
        bench.tell(trial.number, Told.of(cost=trial.params["a"]))
    found = Overview(bench.insight()).slice(("a", "b"), bench.trials[0].params, size=11)
    grid = [round(0.1 * k, 1) for k in range(11)]
    assert [[bool(x) for x in row] for row in found.forbidden] == [[a + b > 1 + 1e-9 for a in grid] for b in grid]
