"""Many who ask at once, and thousands of trials: what is shared, what is sent, and in what order."""

import os
import threading

import numpy as np
import optuna
import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
from fastapi.testclient import TestClient
from jumper import SAID, current_of, height_of
from test_service import HOME, Quiet

from crashbo.app.bench import Bench, Definition, Told
from crashbo.app.bench.bench import Asked
from crashbo.app.bench.workers import Chooser, Place, Viewer
from crashbo.app.overview import Overview, history_of, history_points
from crashbo.app.server.api import create_app
from crashbo.app.server.ask_queue import AskQueue
from crashbo.integrations.optuna import proposer as proposing
from crashbo.integrations.optuna import writing
from crashbo.integrations.optuna.atomic import atomic
from crashbo.integrations.optuna.proposer import Proposer


def words(count, seed=0):
    rows = np.random.default_rng(seed).random((count, 2))
    params = [{"knee": float(x), "hip": float(y)} for x, y in rows]
    return [
        (
            p,
            Told.of(cost=height_of(p), measured={"current": current_of(p)})
            if current_of(p) < 110
            else Told.of(crash=True),
            None,
        )
        for p in params
    ]


def niceness(worker):
    return worker.submit(os.getpriority, os.PRIO_PROCESS, 0).result(60)


def test_who_asks_first_does_not_wait_for_the_rest_of_a_batch(bench, store):
    bench.add_all(words(12))
    proposer, go_on, asked = Proposer(bench.ledger.study), threading.Event(), []

    def slowly(count, turn, onward):
        asked.append((count, onward))
        if onward:
            assert go_on.wait(60)
        return proposer.some(count, turn, onward=onward)

    asks = AskQueue(Bench(Bench.open(store).ledger, slowly))
    waiting = [asks.ask(Asked(str(i))) for i in range(20)]
    asks.start()
    first = waiting[0].result(60)
    assert not any(future.done() for future in waiting[1:])
    go_on.set()
    trials = [first, *(future.result(60) for future in waiting[1:])]
    asks.stop()
    assert asked[0] == (20, False)
    assert all(onward for _, onward in asked[1:])
    assert [trial.number for trial in trials] == list(range(12, 32))
    assert len({tuple(trial.params.values()) for trial in trials}) == 20
    assert [t.params for t in bench.trials[12:]] == [trial.params for trial in trials]


def test_a_crowd_gets_more_from_one_fit_but_not_without_end(bench):
    bench.add_all(words(10))
    proposer = Proposer(bench.ledger.study)
    first = proposer.some(20)
    assert len(first.planned) == 1
    given = 1
    while (more := proposer.some(20, onward=True)) is not None:
        assert more.snapshot is first.snapshot
        given += len(more.planned)
    assert given == proposing.MOST


def test_few_who_ask_get_as_many_as_they_asked_for(bench):
    bench.add_all(words(10))
    proposer = Proposer(bench.ledger.study)
    assert len(proposer.some(3).planned) + len(proposer.some(2, onward=True).planned) == 3
    assert proposer.some(1, onward=True) is None


def test_a_crowd_is_not_kept_waiting_by_fits_of_hyperparameters(bench, monkeypatch):
    monkeypatch.setattr(proposing, "_FEW", 20)
    bench.add_all(words(40))
    proposer = Proposer(bench.ledger.study)
    proposer.some(20)
    (fitted,) = proposer._fitted.values()
    bench.add_all(words(12, seed=1))
    proposer.some(20)
    assert [*proposer._fitted.values()] == [fitted] == [40]
    bench.add_all(words(20, seed=2))
    proposer.some(20)
    assert [*proposer._fitted.values()] == [72]


def test_a_fit_that_another_process_made_will_do(bench, store, monkeypatch):
    monkeypatch.setattr(proposing, "_FEW", 20)
    bench.add_all(words(40))
    proposer = Proposer(bench.ledger.study)
    proposer.some(20)
    bench.add_all(words(40, seed=1))
    viewer = Viewer(Place(store, bench.ledger.name))
    try:
        fit = viewer.fit()
    finally:
        viewer.worker.close()
    proposer.learn(*fit)
    proposer.some(20)
    assert [*proposer._fitted.values()] == [80]
    (memory,) = proposer._memories.values()
    assert repr(memory["views"]) == repr(fit.memory["views"])


def test_who_chooses_is_no_less_urgent_than_who_waits(bench, store):
    place, here = Place(store, bench.ledger.name), os.getpriority(os.PRIO_PROCESS, 0)
    chooser, viewer = Chooser(place), Viewer(place)
    try:
        assert niceness(chooser.worker) == here
        assert niceness(viewer.worker) > here
    finally:
        chooser.worker.close()
        viewer.worker.close()


def test_a_request_that_two_services_serve_at_once_has_one_trial(bench, store):
    other, proposer, asked = Bench.open(store), Proposer(bench.ledger.study), []

    def meanwhile(count, turn, onward):
        if not asked:
            asked.append(other.ask(request="same"))
        return proposer.some(count, turn, onward=onward)

    trial = Bench(Bench.open(store).ledger, meanwhile).ask(request="same")
    assert trial == asked[0]
    assert [t.state for t in bench.trials] == ["pending", "void"]


@pytest.mark.parametrize("where", ["sqlite", "memory", "journal"])
def test_trials_written_many_at_a_time_are_as_optuna_writes_them(where, tmp_path):
    storages = {
        "sqlite": lambda: f"sqlite:///{tmp_path}/a.db",
        "memory": lambda: None,
        "journal": lambda: optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(tmp_path / "log"))
        ),
    }
    study = optuna.create_study(storage=storages[where]())
    ranges = {
        "x": optuna.distributions.FloatDistribution(0.0, 1.0),
        "c": optuna.distributions.CategoricalDistribution("ab"),
    }
    made = [
        optuna.trial.create_trial(
            state=state,
            value=0.5 if state == optuna.trial.TrialState.COMPLETE else None,
            params={"x": 0.1 * i, "c": "b"},
            distributions=ranges,
            user_attrs={"a": i},
            system_attrs={"s": [i]},
        )
        for i, state in enumerate(
            [optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.FAIL, optuna.trial.TrialState.RUNNING]
        )
    ]
    study.add_trial(made[0])
    with atomic(study) as (storage, _):
        written = writing.create(study, storage, made)
    assert [t.number for t in written] == [1, 2, 3]
    for trial, read in zip(made, study.get_trials()[1:], strict=True):
        for name in ("state", "values", "params", "distributions", "user_attrs", "system_attrs", "datetime_start"):
            assert getattr(read, name) == getattr(trial, name), name
    assert study.ask().number == 4


def test_finished_trials_are_read_once_and_corrections_are_seen(bench):
    bench.add_all(words(6))
    before = bench.entries()
    again = bench.entries()
    assert all(a is b for a, b in zip(before, again, strict=True))
    bench.fix(2, Told.of(void="unplugged"))
    changed = bench.entries()
    assert [a is b for a, b in zip(before, changed, strict=True)] == [True, True, False, True, True, True]
    assert changed[2].trial.state == "void"
    bench.undo(2)
    assert bench.entries()[2].trial == before[2].trial


def test_a_client_is_sent_what_it_does_not_know(bench, store):
    bench.add_all(words(30))
    client = TestClient(create_app(Quiet(store), None), base_url=HOME)
    whole = client.get("/api/state").json()
    assert (len(whole["trials"]), whole["unchanged"]) == (30, [])
    known = {"boot": whole["boot"], **whole["editions"]}
    same = client.get("/api/state", params=known).json()
    assert (same["trials"], same["insight"], sorted(same["unchanged"])) == ([], None, ["insight", "trials"])
    bench.fix(3, Told.of(crash="bent"))
    asked = client.post("/api/ask", json={}).json()
    news = client.get("/api/state", params=known).json()
    assert [t["number"] for t in news["trials"]] == [3, asked["number"]]
    assert len(client.get("/api/state", params=known | {"boot": "another"}).json()["trials"]) == 31
    assert len(client.get("/api/state", params={**known, "trials": 0}).json()["trials"]) == 31
    assert client.get("/api/state", params={"trials": -1}).status_code == 422


def test_a_table_that_was_imported_is_one_point_of_the_history(bench):
    bench.add_all(words(40))
    overview = Overview(bench.insight())
    assert history_of(overview.told) == [40]
    for _ in range(3):
        trial = bench.ask()
        bench.tell(trial.number, Told.of(cost=height_of(trial.params), measured={"current": current_of(trial.params)}))
    assert history_of(Overview(bench.insight()).told) == [43]
    assert history_points(40)[:6] == [1, 2, 3, 4, 6, 8]


def test_the_process_that_chooses_says_when_its_fit_has_no_more_to_give(tmp_path):
    store = str(tmp_path / "two.db")
    for name in ("one", "two"):
        Bench.create(store, Definition.of({**SAID, "name": name}))
    chooser = Chooser(Place(store, "two"))
    try:
        batch, more = (chooser.some(2, 0, onward) for onward in (False, True))
    finally:
        chooser.worker.close()
    assert len(batch.planned) == 2
    assert more is None
