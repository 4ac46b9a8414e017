"""The HTTP service: idempotent, guarded, and 4xx with one sentence for whatever is wrong."""

import asyncio
import json
import socket
import threading
from concurrent.futures.process import BrokenProcessPool

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
from fastapi.testclient import TestClient
from jumper import SAID

from crashbo.app.bench import Bench, Definition
from crashbo.app.bench.bench import Asked
from crashbo.app.server import gate
from crashbo.app.server.api import PAGE, create_app
from crashbo.app.server.ask_queue import AskQueue
from crashbo.app.server.gate import LARGEST_BODY, is_loopback
from crashbo.app.server.live import Live
from crashbo.app.server.serve import _listening, check_address
from crashbo.integrations.optuna.proposer import Proposer

HOME = "http://127.0.0.1:8765"
TOKEN = "a-token-of-the-bench"


class Quiet(Live):
    """A study under nobody's watch: no worker processes; trials are chosen here."""

    def __init__(self, store):
        super().__init__(store)
        self.bench = Bench.open(store)
        self.asks = AskQueue(self.bench)
        self.asks.start()

    def start(self):
        """Nothing to start."""

    def stop(self):
        """Nothing to stop."""

    def in_background(self, function):
        return function(self.bench)


@pytest.fixture
def client(bench, store):
    return TestClient(create_app(Quiet(store), None), base_url=HOME, raise_server_exceptions=False)


@pytest.fixture
def locked(bench, store, monkeypatch):
    monkeypatch.setattr(gate, "_DELAY", 0.01)
    return TestClient(create_app(Quiet(store), TOKEN), base_url="http://bench.lan:8765", raise_server_exceptions=False)


def test_asked_and_told_twice_it_counts_once(client, bench):
    one, two = (client.post("/api/ask", json={"request": "r"}).json() for _ in range(2))
    assert one == two
    body = {"cost": 0.5, "measured": {"current": 90}, "request": "t"}
    for _ in range(2):
        assert client.post("/api/trials/0/tell", json=body).json()["state"] == "success"
    other = client.post("/api/trials/0/tell", json={"crash": True})
    assert other.status_code == 409
    assert other.json()["error"].endswith("Use fix to correct it.")
    assert len(bench.trials) == 1


def test_void_fix_undo_add_and_lease(client, bench):
    client.post("/api/ask", json={})
    assert client.post("/api/trials/0/lease", json={"seconds": 60}).json()["until"] > 0
    assert client.post("/api/trials/0/void", json={"reason": "unplugged"}).json()["reason"] == "unplugged"
    assert client.post("/api/trials/0/fix", json={"cost": 1}).json()["cost"] == 1
    assert client.post("/api/trials/0/undo", json={}).json()["state"] == "void"
    assert client.post("/api/trials", json={"params": {"knee": 0.1, "hip": 0.2}, "cost": 0.4}).json()["number"] == 1
    assert client.get("/api/best").json()["best"]["number"] == 1
    assert client.get("/api/trials.csv").text.splitlines()[0].startswith("number,knee,hip,cost,current")
    assert [t["state"] for t in client.get("/api/state").json()["trials"]] == ["void", "success"]
    assert client.post("/api/trials/7/tell", json={"cost": 1}).status_code == 404


def test_a_reading_that_was_cut_off_is_told_as_such(client, bench):
    client.post("/api/ask", json={})
    refused = client.post("/api/trials/0/tell", json={"crash": True, "censored": ["current"]})
    assert refused.status_code == 422
    assert refused.json()["error"].startswith("censored must name what was measured (nothing); got 'current'.")
    body = {"crash": "tripped", "measured": {"current": 120.0}, "censored": "current"}
    told = client.post("/api/trials/0/tell", json=body).json()
    assert told["censored"] == ["current"]
    assert bench.trials[0].censored == ("current",)
    assert client.get("/api/trials").json()[0]["censored"] == ["current"]
    assert client.post("/api/trials/0/fix", json={**body, "censored": []}).json()["censored"] == []
    assert client.post("/api/trials/0/undo", json={}).json()["censored"] == ["current"]


def test_those_who_wait_together_are_served_from_one_thought(bench, store):
    began, go_on, counts = threading.Event(), threading.Event(), []

    def propose(count, turn, onward):
        counts.extend([] if onward else [count])
        began.set()
        assert go_on.wait(30)
        return proposer.some(count, turn, onward=onward)

    proposer = Proposer(bench.ledger.study)
    asks = AskQueue(Bench(Bench.open(store).ledger, propose))
    asks.start()
    first = asks.ask(Asked("0"))
    assert began.wait(30)
    others = [asks.ask(Asked(str(i % 5))) for i in range(10)]  # each request comes twice, one a third time
    left = asks.ask(Asked("gone"))
    assert left.cancel()
    go_on.set()
    numbers = [first.result(30).number, *(f.result(30).number for f in others)]
    assert numbers == [0, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    assert counts == [1, 4]
    params = [tuple(t.params.values()) for t in bench.trials]
    assert len(set(params)) == len(params) == 5
    with pytest.raises(ValueError, match="lease must be a positive number"):
        asks.ask(Asked(lease=-1.0))
    asks.stop()


def test_who_asks_a_server_that_is_being_stopped_may_ask_again(bench, store):
    live = Quiet(store)
    live.asks.stop()
    answer = TestClient(create_app(live, None), base_url=HOME, raise_server_exceptions=False).post("/api/ask", json={})
    assert (answer.status_code, list(answer.json())) == (503, ["error"])
    asks = AskQueue(bench)
    waiting = asks.ask(Asked("0"))
    asks.stop()
    asks.start()
    with pytest.raises(BrokenProcessPool):
        waiting.result(30)
    assert bench.trials == []


def test_listeners_hear_that_a_server_is_being_stopped(bench, store):
    live = Live(store)

    async def listen():
        before = live.listen()
        live.stop()
        return await before.get(), await live.listen().get()

    assert asyncio.run(listen()) == (None, None)


def test_malformed_bodies_get_4xx_with_one_sentence_and_change_nothing(client, bench, service):
    import random

    bench.ask()
    before, rng = bench.entries(), random.Random(1)
    for _ in range(150):
        path, raw = service.rubbish(rng)
        answer = client.post(path, content=raw, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500, (path, raw[:80], answer.text)
        sentence = answer.json()["error"]
        assert 0 < len(sentence) < 400
        assert "\n" not in sentence
    assert bench.entries() == before


@pytest.mark.parametrize(
    ("raw", "status", "words"),
    [
        (b'{"cost": NaN}', 422, "cost must be a finite number"),
        (b'{"cost": "1"}', 422, "cost must be a valid number"),
        (b'{"cost": 1e31}', 422, "cost must be less than or equal to"),
        (b'{"cost": 1, "colour": 2}', 422, "colour must be left out"),
        (b'{"cost": ', 422, "body must be JSON"),
        (b'{"crash": "' + b"x" * 600 + b'"}', 422, "crash"),
        (b"x" * (LARGEST_BODY + 1), 413, "body must have at most"),
    ],
)
def test_the_sentence_says_what_is_wrong(client, bench, raw, status, words):
    bench.ask()
    answer = client.post("/api/trials/0/tell", content=raw, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"][: len(words)]) == (status, words)


def test_a_body_that_hides_its_length_is_cut_off(client, bench):
    bench.ask()
    chunks = (b"[" * 1000 for _ in range(100))
    answer = client.post("/api/trials/0/tell", content=chunks, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500
    assert bench.trials[0].state == "pending"


def test_forms_of_other_sites_are_turned_away(client):
    assert client.post("/api/ask", content="{}", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post("/api/ask", json={}, headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/api/state", headers={"host": "evil.example"}).status_code == 403
    assert client.post("/api/ask", json={}, headers={"origin": HOME}).status_code == 200


def test_what_is_called_by_a_wrong_method_is_405_and_an_undo_needs_no_body(client, bench):
    for method, path in (("PUT", "/api/best"), ("POST", "/api/best"), ("DELETE", "/api/trials/0"), ("GET", "/api/ask")):
        refused = client.request(method, path)
        assert (refused.status_code, refused.json()) == (405, {"error": "Method Not Allowed"})
    assert client.post("/api/ask").json() == {"error": "body must be given."}
    client.post("/api/ask", json={})
    client.post("/api/trials/0/void", json={})
    assert client.post("/api/trials/0/undo").json()["state"] == "pending"
    elsewhere = client.post("/api/trials/0/undo", headers={"origin": "http://elsewhere.example"})
    assert elsewhere.status_code == 403


def test_a_wrong_token_gets_401_and_learns_nothing(locked, bench):
    paths = ["/api/state", "/api/trials", "/api/trials/0", "/api/trials.csv", "/api/insight", "/api/nothing"]
    answers = set()
    for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "crashbo=wrong"}, {"authorization": "Basic x"}):
        answers |= {(locked.get(p, headers=headers).status_code, locked.get(p, headers=headers).text) for p in paths}
        answers.add((locked.post("/api/ask", json={}, headers=headers).status_code, next(iter(answers))[1]))
    assert {status for status, _ in answers} == {401}
    assert len({text for _, text in answers}) == 1
    assert bench.trials == []


def test_the_token_opens_by_header_and_by_cookie(locked):
    assert locked.get("/api/state", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert locked.post("/api/session", json={"token": "wrong"}).status_code == 401
    entered = locked.post("/api/session", json={"token": TOKEN})
    assert entered.status_code == 204
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert TOKEN not in entered.headers["set-cookie"]
    assert locked.get("/api/state").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "bench.lan", ""])
def test_other_addresses_need_a_token(host):
    assert not is_loopback(host)
    with pytest.raises(ValueError, match="token must be given"):
        check_address(host, None)
    check_address(host, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machines_own_addresses_do_not(host):
    check_address(host, None)


def test_who_connects_as_soon_as_the_address_is_known_is_not_refused():
    with _listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname(), timeout=5.0):
        pass


def test_the_page_and_its_assets_are_shipped_and_load_nothing_from_elsewhere(client):
    page = client.get("/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    import re

    for path in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert path.startswith("/")
        assert path.startswith("/api/") or client.get(path).status_code == 200
    for name in (path.name for path in PAGE.glob("*.js")):
        code = client.get(f"/assets/{name}").text
        assert "innerHTML" not in code
        assert not re.search(r"https?://(?!www\.w3\.org)", code)
    assert client.get("/assets/../api.py").status_code == 404


def test_names_of_people_arrive_as_they_are(tmp_path):
    name = "<script>alert(1)</script>'; DROP TABLE trials; --"
    store = str(tmp_path / "odd.db")
    Bench.create(store, Definition.of({**SAID, "name": name}))
    state = TestClient(create_app(Quiet(store), None), base_url=HOME).get("/api/state").json()
    assert state["study"]["name"] == name


def test_the_openapi_document_names_every_route_and_its_errors(client):
    document = client.get("/api/openapi.json").json()
    for path in ("/api/ask", "/api/trials/{number}/tell", "/api/trials/{number}/undo", "/api/events", "/api/slice"):
        assert path in document["paths"]
    assert {"409", "422"} <= set(document["paths"]["/api/ask"]["post"]["responses"])
    json.dumps(document, allow_nan=False)


def test_a_crowd_loses_nothing_and_doubles_nothing(service, capsys):
    service.load(clients=6, seconds=4, pause=0.2)
    said = capsys.readouterr().out
    broken = [line for line in said.splitlines() if line.startswith("BROKEN") and "p95" not in line]
    assert broken == [], said


def test_the_guard_knows_all_that_was_told_even_if_the_picture_is_behind(client):
    assert client.get("/api/guard").json() == {"limits": {"current": None}, "sides": {"current": "above"}}
    for number, (knee, said) in enumerate(
        (
            (0.5, {"cost": 0.3, "measured": {"current": 90}}),
            (0.7, {"cost": 0.4, "measured": {"current": 104}}),
            (0.9, {"crash": "tripped", "reached": {"current": 107.9}}),
            (1.0, {"crash": "tripped", "reached": {"current": 107.6}, "rises": {"current": 0.5}}),
        )
    ):
        client.post("/api/wish", json={"params": {"knee": knee, "hip": 0.6}})
        client.post("/api/ask", json={})
        assert client.post(f"/api/trials/{number}/tell", json=said).status_code == 200
    limit = client.get("/api/guard").json()["limits"]["current"]
    assert 104 < limit < 109
    client.post("/api/ask", json={})
    stopped = client.post("/api/trials/4/tell", json={"stopped": {"current": limit}})
    assert (stopped.json()["state"], stopped.json()["censored"]) == ("stopped", ["current"])
    refused = client.post("/api/trials/4/fix", json={"cost": 0.4, "reached": {"current": 100}})
    assert (refused.status_code, "reached must belong to a crash" in refused.text) == (422, True)
    assert client.post("/api/trials/4/undo", json={}).json()["state"] == "pending"
