"""Several goals at the bench: definition, command line, CSV, service, report, and what the page shows."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from crashbo.app import report
from crashbo.app.bench import Bench, Definition, Told, table
from crashbo.app.bench.runner import NotFinite, parse_result
from crashbo.app.gathered import gather
from crashbo.app.overview import Overview

GOALS = {"time": "minimize", "load": "minimize"}  # the load is what crashes it, too
SAID = {
    "name": "crane",
    "parameters": {"x": {"low": 0.0, "high": 1.0}, "y": {"low": 0.0, "high": 1.0}},
    "constraints": {"load": {"unit": "A"}},
    "objectives": GOALS,
    "units": {"time": "s"},
}


def outcome(x, y):
    load = x + 0.5 * y
    if load > 1.05:
        return Told.of(crash="tripped")
    return Told.of(cost={"time": (1.0 - x) ** 2 + (y - 0.3) ** 2, "load": load}, measured={"load": load})


@pytest.fixture
def crane(store):
    bench = Bench.create(store, Definition.of(SAID))
    for x, y in np.random.default_rng(0).random((12, 2)).round(3).tolist():
        bench.add({"x": x, "y": y}, outcome(x, y))
    return bench


def test_a_definition_keeps_its_goals(crane, store):
    definition = Bench.open(store).definition
    assert dict(definition.study.objectives) == GOALS
    assert [(g.label, g.unit, g.direction) for g in definition.goals] == [
        ("time", "s", "minimize"),
        ("load", "A", "minimize"),
    ]
    assert Bench.open(store).best() is None
    count, volume = crane.front()
    assert count >= 2
    assert volume > 0.0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"objectives": {"x": "minimize", "time": "minimize"}}, "goal must not be called as a parameter"),
        ({"objectives": {"state": "minimize", "time": "minimize"}}, "goal must not be called as a parameter"),
        ({"direction": "maximize"}, "direction must be left out"),
        ({"units": {"cost": "s"}}, "units must name goals"),
        ({"reference": {"time": 1.0}}, "reference must name every goal"),
    ],
)
def test_a_definition_that_cannot_be_is_refused(said, words):
    with pytest.raises(ValueError, match=words):
        Definition.of({**SAID, **said})


def test_by_hand_from_new_to_the_front(crashbo):
    new = ("new", "crane", "--param", "x=0:1", "--constraint", "current", "--objective", "time=minimize")
    assert "time and maximize payload" in crashbo(*new, "--objective", "payload=maximize", "--unit", "time=s")[1]
    assert "--cost time=... --cost payload=..." in crashbo("ask")[1]
    assert crashbo("best")[1] == "No success yet.\n"
    told = crashbo("tell", "0", "--cost", "time=2.5", "--cost", "payload=3", "--measured", "current=9")
    assert told[1] == "Trial 0 is a success: time 2.5 s, payload 3, current 9\n"
    crashbo("ask")
    assert "cost must map goals" in crashbo("tell", "1", "--cost", "2.5")[2]
    assert "cost must name goals" in crashbo("tell", "1", "--cost", "heat=2.5")[2]
    assert crashbo("tell", "1", "--cost", "time=2.0")[1] == "Trial 1 is a success: time 2 s\n"
    assert "payload 4" in crashbo("fix", "1", "--cost", "time=3.0", "--cost", "payload=4")[1]
    assert "On the front: 2 trials" in crashbo("best")[1]
    found = json.loads(crashbo("best", "--json")[1])
    assert [t["number"] for t in found["front"]["trials"]] == [0, 1]
    assert found["recommended"]["cost"].keys() == {"time", "payload"}


def test_csv_goes_out_and_in_again(crane, tmp_path):
    text = table.export(crane)
    assert "cost:time,cost:load,load," in text.splitlines()[0]
    other = Bench.create(str(tmp_path / "other.db"), Definition.of({**SAID, "name": "other"}))
    assert len(table.load(other, text).new) == 12
    assert [(t.state, t.cost) for t in other.trials] == [(t.state, t.cost) for t in crane.trials]
    assert not table.load(other, text).new
    rows, _ = table.from_csv(crane.definition, "x,y,time,cost:load\n0.1,0.2,3.0,0.4\n0.1,0.3,,0.5\n")
    assert [row.told.cost for row in rows] == [{"time": 3.0, "load": 0.4}, {"load": 0.5}]
    with pytest.raises(ValueError, match="state must be"):
        table.from_csv(crane.definition, "x,y,time\n0.1,0.2,\n")


def test_a_command_prints_its_goals():
    assert parse_result('{"cost": {"time": 1.5, "load": null}}').cost == {"time": 1.5}
    with pytest.raises(NotFinite, match="no finite cost"):
        parse_result('{"cost": {"time": NaN, "load": 2.0}}')


def test_what_the_models_say_is_by_goal(crane):
    seen = Overview(crane.insight())
    front = seen.front()
    assert front["trials"] == [t.number for t in seen.view.front]
    assert front["reference"].keys() == GOALS.keys()
    assert seen.recommended()["cost"].keys() == GOALS.keys()
    assert seen.influence().keys() == {"safety", *GOALS}
    found = seen.slice(["x", "y"], {}, 5)
    assert {name: field.shape for name, field in found.cost.items()} == dict.fromkeys(GOALS, (5, 5))
    assert seen.expect([{"x": 0.2, "y": 0.2}])[0].cost.keys() == GOALS.keys()


def test_the_report_shows_the_front(crane):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'crashbo[plot]'")
    from crashbo.app import study_plots

    gathered = gather(table.subject_of(crane))
    assert set(study_plots.draw_all(gathered)) == {"front", "threshold-1", "influence", "slice-1"}
    text = report.to_html(gathered, {})
    assert "lowest time and lowest load" in text
    assert "<h2>Front</h2>" in text
    assert "hypervolume" in text


def test_the_service_tells_goals_by_name(crane, store):
    pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
    from fastapi.testclient import TestClient
    from test_service import HOME, Quiet

    from crashbo.app.bench.workers import Picture, digest_of
    from crashbo.app.server.api import create_app

    live = Quiet(store)
    client = TestClient(create_app(live, None), base_url=HOME, raise_server_exceptions=False)
    asked = client.post("/api/ask", json={}).json()["number"]
    for cost in (1.0, {"heat": 1.0}, {}, {"time": "fast"}):
        assert client.post(f"/api/trials/{asked}/tell", json={"cost": cost}).status_code in (400, 422)
    told = client.post(f"/api/trials/{asked}/tell", json={"cost": {"time": 0.3}})
    assert told.json()["cost"] == {"time": 0.3}
    seen = Overview(crane.insight())
    live.picture = Picture(digest_of(crane.trials), {}, seen.recommended(), {}, {}, False, (), seen.front())
    state = client.get("/api/state").json()
    assert [g["name"] for g in state["study"]["goals"]] == list(GOALS)
    assert state["best"] is None
    assert state["insight"]["front"]["trials"] == seen.front()["trials"]
    assert client.get("/api/best").json()["front"]["hypervolume"] > 0.0
    assert "cost:time" in client.get("/api/trials.csv").text


def test_one_cost_shows_itself_as_the_only_goal(bench):
    assert [asdict(goal)["name"] for goal in bench.definition.goals] == ["cost"]
    assert Overview(bench.insight()).front() is None if bench.trials else True
