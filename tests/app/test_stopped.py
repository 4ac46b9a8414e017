"""Trials that were stopped before they could crash, through every door of the bench."""

import json

import pytest
from jumper import SAID, current_of, height_of
from starlette.testclient import TestClient
from test_service import HOME, Quiet

from crashbo.app import report
from crashbo.app.bench import Bench, Definition, Told, table
from crashbo.app.cli import main
from crashbo.app.server.api import create_app


@pytest.fixture
def watched(bench):
    """A study with successes, a crash whose last reading is known, and a stop."""
    for knee, hip in ((0.1, 0.2), (0.5, 0.5), (0.3, 0.9), (0.6, 0.3), (0.4, 0.7)):
        at = {"knee": knee, "hip": hip}
        bench.add(at, Told.of(cost=height_of(at), measured={"current": current_of(at)}))
    bench.add({"knee": 0.95, "hip": 0.9}, Told.of(crash="tripped", reached={"current": 111.5}, rises={"current": 1.7}))
    bench.add({"knee": 0.8, "hip": 0.8}, Told.of(stopped={"current": 110.2}, note="the guard's limit"))
    return bench


def test_it_survives_the_store_with_its_readings(watched, store):
    crash, stopped = Bench.open(store).trials[-2:]
    assert (crash.state, crash.reached, crash.measured) == ("crash", {"current": 111.5}, {})
    assert crash.rises == {"current": 1.7}
    assert (stopped.state, stopped.cost, stopped.measured) == ("stopped", None, {"current": 110.2})
    assert (stopped.censored, stopped.reason) == (("current",), "the guard's limit")


def test_it_is_corrected_and_undone(watched):
    number = watched.trials[-1].number
    assert watched.fix(number, Told.of(crash="it had tripped")).state == "crash"
    undone = watched.undo(number)
    assert (undone.state, undone.measured) == ("stopped", {"current": 110.2})


def test_a_table_takes_it_out_and_in(watched, tmp_path):
    text = table.export(watched)
    assert "stopped" in text
    other = Bench.create(str(tmp_path / "other.db"), Definition.of(SAID))
    table.load(other, text)
    assert [Told.of_trial(t) for t in other.trials] == [Told.of_trial(t) for t in watched.trials]


def test_the_service_takes_it_and_tells_where_to_stop(watched, store):
    client = TestClient(create_app(Quiet(store), None), base_url=HOME, raise_server_exceptions=False)
    anywhere = client.get("/api/guard").json()
    assert anywhere["sides"] == {"current": "above"}
    assert 105.0 < anywhere["limits"]["current"] < 112.0
    number = client.post("/api/ask", json={}).json()["number"]
    here = client.get(f"/api/trials/{number}/guard").json()["limits"]["current"]
    assert 95.0 < here <= anywhere["limits"]["current"]
    assert client.get("/api/trials/99/guard").status_code == 404
    told = client.post(f"/api/trials/{number}/tell", json={"stopped": {"current": 109.0}, "who": "Ann"}).json()
    assert (told["state"], told["measured"], told["cost"]) == ("stopped", {"current": 109.0}, None)
    refused = client.post(f"/api/trials/{number}/fix", json={"stopped": {}})
    assert refused.status_code == 422
    assert refused.json()["error"].startswith("stopped must map constraints")


def test_the_command_line_takes_it_and_says_where_a_guard_stops(watched, store, capsys, monkeypatch):
    monkeypatch.setenv("CRASHBO_STORE", store)
    assert main(["ask", "--json"]) == 0
    number = str(json.loads(capsys.readouterr().out)["number"])
    assert main(["tell", number, "--stopped", "current=108"]) == 0
    assert capsys.readouterr().out.startswith(f"Trial {number} is stopped: current at least 108")
    assert main(["thresholds"]) == 0
    assert "a guard stops at 1" in capsys.readouterr().out
    assert main(["tell", number, "--stopped", "current"]) != 0
    assert "--stopped must be NAME=NUMBER" in capsys.readouterr().err


def test_the_report_counts_and_draws_it(watched):
    page = report.of_bench(watched)
    assert "stopped" in page
    assert "the guard&#x27;s limit" in page
