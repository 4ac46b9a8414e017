"""Comparisons over HTTP: told once, refused in a sentence, taken back, ranked; films are served."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
from fastapi.testclient import TestClient
from test_service import HOME, Quiet

from crashbo.app.bench import Bench, Definition
from crashbo.app.server.api import create_app
from crashbo.app.server.films import Films

SAID = {
    "name": "gait",
    "compared": True,
    "strategy": "random",
    "parameters": {"knee": [0.0, 1.0]},
    "constraints": ["load"],
}


@pytest.fixture
def client(store: str, tmp_path: Path) -> Any:
    Bench.create(store, Definition.of(SAID))
    live = Quiet(store)
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "0.gif").write_bytes(b"GIF89a")
    live.films = Films.of(str(tmp_path / "films"))
    client = TestClient(create_app(live, None), base_url=HOME, raise_server_exceptions=False)
    for i in range(3):
        client.post("/api/ask", json={"request": f"a{i}"})
        said = {"crash": True} if i == 2 else {"success": True, "measured": {"load": 1.0 + i}}
        assert client.post(f"/api/trials/{i}/tell", json=said).status_code == 200
    return client


def test_a_comparison_counts_once_and_can_be_taken_back(client: Any) -> None:
    body = {"better": 1, "worse": 0, "request": "p", "who": "Ann"}
    one, two = (client.post("/api/prefer", json=body).json() for _ in range(2))
    assert one == two
    assert (one["better"], one["worse"], one["tie"], one["who"]) == (1, 0, False, "Ann")
    assert client.post("/api/prefer", json={**body, "tie": True}).status_code == 409
    state = client.get("/api/state").json()
    assert state["study"]["compared"] is True
    assert state["best"] == 1
    assert [c["id"] for c in state["comparisons"]] == [one["id"]]
    assert client.post("/api/ask", json={}).json()["against"] == 1
    assert client.post("/api/unprefer", json={"id": one["id"], "who": "Bob"}).json()["undone_by"] == "Bob"
    assert client.post("/api/unprefer", json={}).status_code == 409
    assert [c["undone"] for c in client.get("/api/comparisons").json()] == [True]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"better": 0, "worse": 2}, "trial 2 must be a success to be compared; it is a crash"),
        ({"better": 0, "worse": 0}, "must be two trials"),
        ({"better": 0, "worse": 17}, "worse must be a trial of this study"),
        ({"better": 0, "worse": -1}, "worse must be greater than or equal to 0"),
        ({"better": "0", "worse": 1}, "better must be a valid integer"),
        ({"better": 0}, "worse must be given"),
        ({"better": 0, "worse": 1, "tie": 1}, "tie must be a valid boolean"),
    ],
)
def test_what_cannot_be_compared_gets_422(client: Any, body: dict[str, Any], words: str) -> None:
    answer = client.post("/api/prefer", json=body)
    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert client.get("/api/comparisons").json() == []


def test_films_are_served_and_nothing_else(client: Any) -> None:
    assert client.get("/api/state").json()["films"] == {"0": "/api/films/0.gif"}
    assert client.get("/api/films/0.gif").content == b"GIF89a"
    for name in ("1.gif", "..%2Fstudy.db", "study.db"):
        assert client.get(f"/api/films/{name}").status_code == 404


def test_films_elsewhere_are_allowed_by_their_origin_alone(store: str) -> None:
    Bench.create(store, Definition.of(SAID))
    live = Quiet(store)
    live.films = Films.of("https://camera.example/run/{number}.mp4")
    client = TestClient(create_app(live, None), base_url=HOME)
    policy = client.get("/").headers["content-security-policy"]
    assert "img-src 'self' data: https://camera.example;" in policy
    assert "media-src 'self' https://camera.example;" in policy
    assert "default-src 'self'" in policy


def test_there_is_no_ranking_before_the_models_have_looked(client: Any) -> None:
    assert client.get("/api/ranking").json() == []
