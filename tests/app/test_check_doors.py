"""`check` at its doors: the command line, files, the report, the service, and Optuna."""

import json
from dataclasses import replace

import numpy as np
import pytest
from jumper import SAID, current_of, height_of

import crashbo
from crashbo.app import report
from crashbo.app.bench import Bench, Definition, Told, table
from crashbo.app.bench.workers import Picture
from crashbo.app.cli import main
from crashbo.app.gathered import gather
from crashbo.app.overview import Overview


def drifting(store):
    """A bench whose height falls from trial to trial; a few trials were void, all with a stiff hip."""
    bench, rng = Bench.create(store, Definition.of(SAID)), np.random.default_rng(0)
    for i, (knee, hip) in enumerate(rng.random((30, 2))):
        params = {"knee": float(knee), "hip": float(hip)}
        said = Told.of(cost=height_of(params) - 0.02 * i, measured={"current": current_of(params)})
        if hip > 0.7:
            said = Told.of(void="no answer")
        elif current_of(params) > 112:
            said = Told.of(crash="tripped")
        bench.add(params, said)
    return bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return drifting(str(tmp_path_factory.mktemp("check") / "s.db"))


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def saved():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, crashbo.Constraint("load", threshold=1.0, noise=0.01))
    for i in range(8):
        optimizer.tell({"x": i / 8}, crash=True, measured={"load": 0.5}) if i > 5 else optimizer.tell(
            {"x": i / 8}, cost=1.0 * i, measured={"load": 0.05 * i}
        )
    return optimizer


def test_the_bench_says_what_speaks_against_its_models_voids_included(bench):
    kinds = [f.kind for f in Overview(bench.insight()).check()]
    assert "drift" in kinds
    assert "voids" in kinds


def test_the_command_prints_words_and_remedies(bench, run, monkeypatch):
    monkeypatch.setenv("CRASHBO_STORE", str(bench.ledger.study._storage._backend.engine.url.database))
    code, out, _ = run("check")
    assert code == 0
    assert out.startswith("1. The ")
    assert "\n   " in out
    found = json.loads(run("check", "--json")[1])
    assert {"kind", "words", "trials", "remedy", "advice"} <= set(found[0])


def test_a_study_without_trials_has_nothing_against_it(store, run, monkeypatch):
    Bench.create(store, Definition.of(SAID))
    monkeypatch.setenv("CRASHBO_STORE", store)
    assert run("check") == (0, "Nothing speaks against the model.\n", "")


def test_a_saved_study_and_a_journal_are_read_and_left_alone(run, tmp_path):
    file = tmp_path / "study.json"
    file.write_text(saved().to_json())
    assert "on the safe side" in run("check", str(file))[1]

    def experiment(p):
        if p["x"] > 0.6:
            raise crashbo.Crash("bang", measured={"load": 0.5})
        return crashbo.Outcome(p["x"], measured={"load": p["x"]})

    journal = tmp_path / "study.jsonl"
    constraint = crashbo.Constraint("load", threshold=1.0, noise=0.01)
    start = [{"x": 0.9}, {"x": 0.8}]
    crashbo.minimize(experiment, {"x": (0.0, 1.0)}, constraints=constraint, trials=6, start=start, journal=journal)
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"event": "tell", "tri')
    assert "on the safe side" in run("check", str(journal))[1]
    assert journal.read_bytes() == whole + b'{"event": "tell", "tri'


@pytest.mark.parametrize("text", ["", "hello", "[1, 2]", '{"a": 1}', '{"crashbo_journal": 1}'])
def test_another_file_is_refused_in_a_sentence(run, tmp_path, text):
    file = tmp_path / "other.txt"
    file.write_text(text)
    code, out, err = run("check", str(file))
    assert (code, out) == (1, "")
    assert err.startswith("FILE must be a journal")
    assert run("check", str(tmp_path / "missing"))[2].startswith("FILE must be a text file that can be read")


def test_the_report_has_a_section_of_it(bench):
    pytest.importorskip("matplotlib")
    gathered = gather(table.subject_of(bench))
    text = report.to_html(gathered, {})
    assert "<h2>Second look</h2>" in text
    assert "no answer" in text
    assert "Second look" not in report.to_html(replace(gathered, findings=[]), {})


def test_the_service_computes_it_last_and_serves_it(bench, store):
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from crashbo.app.server.api import create_app
    from crashbo.app.server.live import Live

    asked = []

    class Here:
        def check(self, voids):
            asked.append(voids)
            return Overview(bench.insight()).check()

    Bench.create(store, Definition.of(SAID))
    live = Live(store)
    live._viewer = Here()
    client = TestClient(create_app(live, None), base_url="http://127.0.0.1:8765")
    live._check(3)
    assert client.get("/api/check").json() is None  # no picture yet
    live.picture = Picture((), {}, None, {}, {}, False, ())
    for voids in (3, 3, 4):
        live._check(voids)
    assert asked == [3, 4]
    assert "drift" in [f["kind"] for f in client.get("/api/check").json()]
    assert client.get("/api/state").json()["insight"]["findings"] == client.get("/api/check").json()


def test_optuna_s_insight_speaks_in_its_own_params():
    optuna = pytest.importorskip("optuna")
    from crashbo.integrations.optuna import insight, tell

    study = optuna.create_study(direction="maximize")
    dials = {
        "x": optuna.distributions.FloatDistribution(10.0, 12.0, step=0.5),
        "y": optuna.distributions.FloatDistribution(0.0, 1.0),
    }
    rng = np.random.default_rng(0)
    for i in range(30):
        study.enqueue_trial(
            {"x": 12.0 if i < 4 else float(rng.choice([10.0, 10.5, 11.0, 11.5])), "y": float(rng.random())}
        )
        trial = study.ask(dials)
        tell(study, trial, cost=(trial.params["x"] - 9.0) ** 2 - (trial.params["y"] - 0.5) ** 2)
    found = [f for f in insight(study).check() if f.kind == "bound"]
    assert "x at its upper bound (12)" in found[0].words
    assert "the cost still rises" in found[0].words
