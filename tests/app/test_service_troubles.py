"""The HTTP service when something is wrong with its store, its clients or their tokens; and what it says of itself."""

import contextlib
import http.client
import os
import shutil
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
import sqlalchemy
from fastapi.testclient import TestClient
from jumper import SAID
from test_service import HOME, TOKEN, Quiet

from crashbo.app.bench import Bench, Definition, Told
from crashbo.app.server import gate, serve
from crashbo.app.server.api import create_app
from crashbo.app.server.ask_queue import AskQueue
from crashbo.app.server.bodies import AskBody
from crashbo.app.server.live import Live
from crashbo.integrations.optuna import studies

SUCCESS = Told.of(cost=0.5, measured={"current": 90.0})


NOT_JSON = ("/api/events", "/api/trials.csv", "/api/report.html", "/api/films/{name}")


def client_of(store, token=None):
    return TestClient(create_app(Quiet(store), token), base_url=HOME, raise_server_exceptions=False)


@pytest.fixture
def client(bench, store):
    return client_of(store)


def engine_of(client_bench):
    return client_bench.ledger.study._storage._backend.engine


def test_a_full_disk_is_a_sentence_and_nothing_is_half_written(bench, store):
    live = Quiet(store)
    client = TestClient(create_app(live, None), base_url=HOME, raise_server_exceptions=False)
    client.post("/api/ask", json={})
    client.get("/api/state")

    def fill(connection, _):
        connection.execute("PRAGMA max_page_count = 1")

    engine = engine_of(live.bench)
    engine.dispose()
    sqlalchemy.event.listen(engine, "connect", fill)
    answer = client.post("/api/trials/0/tell", json={"cost": 0.5, "note": "x" * 500, "request": "t"})
    for _ in range(40):  # until the last page of the file is used up
        if answer.status_code != 200:
            break
        answer = client.post("/api/trials", json={"params": {"knee": 0.1, "hip": 0.2}, "cost": 0.5, "note": "x" * 500})
    assert answer.status_code == 507, answer.text
    assert answer.json()["error"].startswith("store must have room to be written to; its disk is full.")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "5" not in answer.headers.get("retry-after", "")
    assert all(t.state in ("success", "pending") for t in Bench.open(store).trials)


def test_a_locked_store_is_a_sentence_that_says_to_send_it_again(bench, store, monkeypatch):
    monkeypatch.setattr(studies, "_PATIENCE", 0.2)
    client = client_of(store)
    client.post("/api/ask", json={})
    with contextlib.closing(sqlite3.connect(store)) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer = client.post("/api/trials/0/tell", json={"cost": 0.5, "request": "t"})
        assert answer.status_code == 503, answer.text
        assert "locked" in answer.json()["error"]
        assert answer.headers["retry-after"] == "5"
        other.rollback()
    assert client.post("/api/trials/0/tell", json={"cost": 0.5, "request": "t"}).status_code == 200


def test_a_read_only_store_can_be_looked_at(bench, store, monkeypatch):
    bench.tell(bench.ask().number, SUCCESS)
    bench.ask()
    monkeypatch.setattr(studies, "_is_writable", lambda path: False)
    client = client_of(store)
    state = client.get("/api/state").json()
    assert (state["read_only"], [t["state"] for t in state["trials"]]) == (True, ["success", "pending"])
    assert client.get("/api/trials.csv").status_code == 200
    bodies = {"/api/ask": {}, "/api/trials/1/tell": {"cost": 1}, "/api/trials/0/undo": {}, "/api/halt": {}}
    for path, body in bodies.items():
        answer = client.post(path, json=body)
        assert (answer.status_code, "it is read-only" in answer.json()["error"]) == (403, True), (path, answer.text)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("killed", [False, True])
def test_a_store_in_a_folder_that_belongs_to_somebody_else_can_be_read(bench, store, killed):
    bench.tell(bench.ask().number, SUCCESS)
    place = "/tmp/crashbo-read-only-test"
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    names = [store, *(f"{store}{end}" for end in ("-wal", "-shm") if killed and os.path.exists(store + end))]
    if not killed:
        with contextlib.closing(sqlite3.connect(store)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in names:
        shutil.copy(name, place)
        os.chmod(os.path.join(place, os.path.basename(name)), 0o444)
    os.chmod(place, 0o555)
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:  # as somebody else, with what is loaded already
        try:
            os.setuid(65534)
            study = studies.load_study(f"{place}/study.db")
            os.write(theirs, f"{len(study.trials)} {studies.is_read_only(study._storage)}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(theirs)
    said = os.read(ours, 100)
    os.close(ours)
    shutil.rmtree(place, ignore_errors=True)
    assert said == b"1 True"


def test_every_answer_has_the_headers(bench, store):
    client, locked = client_of(store), client_of(store, TOKEN)
    answers = [
        client.get("/api/state"),
        client.get("/api/nothing"),
        client.post("/api/ask", content=b"x" * 70_000, headers={"content-type": "application/json"}),
        client.post("/api/ask", content=b"{}", headers={"content-type": "text/plain"}),
        client.get("/api/state", headers={"host": "evil.example"}),
        locked.get("/api/state"),
    ]
    assert [a.status_code for a in answers] == [200, 404, 413, 415, 403, 401]
    for answer in answers:
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"


def test_a_mistake_of_ours_is_500_with_a_sentence_and_the_headers(bench, store, monkeypatch):
    client = client_of(store)
    monkeypatch.setattr(Bench, "entries", lambda self: 1 / 0)
    answer = client.get("/api/trials")
    assert answer.status_code == 500
    assert answer.json()["error"].startswith("request must be one that the server can handle")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_wrong_tokens_wait_one_after_the_other_and_right_ones_do_not(bench, store, monkeypatch):
    monkeypatch.setattr(gate, "_DELAY", 0.15)
    client = client_of(store, TOKEN)
    client.base_url = "http://bench.lan"
    with client, ThreadPoolExecutor(5) as pool:
        began = time.monotonic()
        wrong = [pool.submit(client.get, "/api/trials", headers={"authorization": f"Bearer {i}"}) for i in range(4)]
        right = client.get("/api/trials", headers={"authorization": f"Bearer {TOKEN}"})
        quick = time.monotonic() - began
        assert [f.result().status_code for f in wrong] == [401] * 4
        assert (right.status_code, quick < 0.4) == (200, True)
        assert time.monotonic() - began > 0.55
        began = time.monotonic()
        assert client.post("/api/session", json={"token": "wrong"}).status_code == 401
        assert time.monotonic() - began > 0.14
        monkeypatch.setattr(gate, "_MOST", 0)
        assert client.get("/api/trials", headers={"authorization": "Bearer x"}).status_code == 429
        assert client.post("/api/session", json={"token": "wrong"}).status_code == 429


def test_slow_clients_are_given_up(bench, store, monkeypatch):
    monkeypatch.setattr(gate, "PATIENCE", 0.5)
    monkeypatch.setattr(serve, "PATIENCE", 0.5)
    with served(store) as port:
        for begun in (
            b"",
            b"POST /api/ask HTTP/1.1\r\nHost: 127",
            b"GET /api/trials HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nG",
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
                slow.sendall(begun)
                while slow.recv(65536):
                    pass  # what it answers to the first, and then that it hangs up
        with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
            lines = [
                "POST /api/ask HTTP/1.1",
                "Host: 127.0.0.1",
                "Content-Type: application/json",
                "Content-Length: 50",
            ]
            slow.sendall("\r\n".join([*lines, "", "{"]).encode())
            assert slow.recv(65536).startswith(b"HTTP/1.1 408")
        keep = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        keep.request("GET", "/api/trials")
        assert keep.getresponse().read() == b"[]"
        keep.close()


@contextlib.contextmanager
def served(store):
    """The service in a thread of this process."""
    import threading

    import uvicorn

    live = Quiet(store)
    config = uvicorn.Config(create_app(live, None), log_level="warning", http=serve.Impatient, lifespan="off")
    server = uvicorn.Server(config)
    with serve._listening("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


def test_one_request_that_is_refused_does_not_fail_those_that_wait_with_it(bench, store):
    bench.ask(request="a", lease=60.0)
    asks = AskQueue(Bench.open(store))
    from crashbo.app.bench.bench import Asked
    from crashbo.app.bench.checks import Conflict

    waiting = [asks.ask(Asked("b")), asks.ask(Asked("a")), asks.ask(Asked("c"))]
    asks.start()
    assert [waiting[0].result(60).number, waiting[2].result(60).number] == [1, 2]
    with pytest.raises(Conflict):
        waiting[1].result(60)
    asks.stop()


def test_notes_names_settings_and_bounds_go_through_http(client, bench):
    client.post("/api/ask", json={})
    told = client.post("/api/trials/0/tell", json={"cost": 1, "note": "squeaks", "who": "Ann", "request": "t"})
    assert told.json()["reason"] == "squeaks"
    assert client.post("/api/trials/0/tell", json={"crash": True, "request": "t"}).status_code == 409
    entry = client.get("/api/trials/0").json()
    assert (entry["who"], entry["history"], entry["ended"] >= entry["began"]) == ("Ann", [], True)
    moved = {"cost": 1, "params": {"knee": 2.0, "hip": 0.5}}
    refused = client.post("/api/trials/0/fix", json=moved)
    assert (refused.status_code, "within the bounds" in refused.json()["error"]) == (409, True)
    assert client.post("/api/trials/0/fix", json={**moved, "beyond": True}).json()["params"] == moved["params"]
    assert client.post("/api/trials/0/undo", json={"who": "Bob"}).json()["reason"] == "squeaks"
    history = client.get("/api/trials/0").json()["history"]
    assert [(said["by"], said.get("by_whom")) for said in history] == [("fix", None), ("undo", "Bob")]
    added = {"params": {"knee": -1.0, "hip": 0.5}, "cost": 1}
    assert client.post("/api/trials", json=added).status_code == 409
    assert client.post("/api/trials", json={**added, "beyond": True}).status_code == 200


def test_a_table_says_what_it_will_do_before_it_does(client, bench):
    text = "knee,hip,cost\n0.1,0.2,0.5\n0.3,1.4,0.6\n"
    plan = client.post("/api/import", json={"csv": text}).json()
    assert (plan["applied"], plan["new"], plan["known"], plan["beyond"][0]["line"]) == (False, 2, 0, 3)
    assert bench.trials == []
    assert client.post("/api/import", json={"csv": text, "apply": True}).status_code == 409
    assert client.post("/api/import", json={"csv": text, "apply": True, "beyond": True}).json()["applied"]
    again = client.post("/api/import", json={"csv": text + "0.5,0.6,0.7\n"}).json()
    assert (again["new"], again["known"], again["rows"][0]["cost"]) == (1, 2, 0.7)
    large = text + "0.5,0.6,0.7\n" * 10_000
    assert client.post("/api/import", json={"csv": large}).json()["new"] == 10_000


def test_trials_can_be_halted_wished_for_and_other_studies_seen(client, bench, store):
    assert client.post("/api/halt", json={"why": "smoke"}).json()["halted"]["why"] == "smoke"
    assert client.get("/api/state").json()["halted"]["why"] == "smoke"
    assert client.post("/api/ask", json={}).status_code == 409
    assert client.post("/api/resume", json={}).json() == {"halted": None}
    assert client.post("/api/wish", json={"params": {"knee": 0.5, "hip": 0.5}}).status_code == 204
    assert client.post("/api/ask", json={}).json()["params"] == {"knee": 0.5, "hip": 0.5}
    Bench.create(store, Definition.of({**SAID, "name": "other"}))
    found = client.get("/api/studies").json()
    assert [(s["name"], s["trials"], s["here"]) for s in found] == [("jump", 1, True), ("other", 0, False)]


def test_the_document_names_answers_examples_and_the_token(bench, store):
    document = client_of(store, TOKEN).get("/api/openapi.json").json()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert document["security"] == [{"token": []}]
    assert client_of(store).get("/api/openapi.json").json()["security"] == []
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path not in NOT_JSON and "200" in operation["responses"]:
                assert operation["responses"]["200"]["content"]["application/json"]["schema"], path
    assert schemas["TrialAnswer"]["examples"][0]["number"] == 7
    for name in ("TellBody", "AskBody", "AddBody", "ImportBody", "FixBody"):
        assert schemas[name]["examples"], name
    AskBody.model_validate(schemas["AskBody"]["examples"][0])


def test_the_documentation_needs_no_internet(client):
    page = client.get("/docs")
    assert page.status_code == 200
    assert "//" not in page.text.replace("<!doctype", "")


def test_the_report_is_written_by_a_process_of_its_own(bench, store):
    pytest.importorskip("matplotlib")
    live = Live(store)
    try:
        answer = TestClient(create_app(live, None), base_url=HOME, raise_server_exceptions=False).get(
            "/api/report.html"
        )
    finally:
        live.stop()
    assert answer.headers["content-disposition"] == 'attachment; filename="jump.html"'
    assert "No trial has succeeded yet." in answer.text
