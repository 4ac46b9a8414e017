"""What an earlier edition saved can be read for ever: tests/data, made by its make.py, holds one folder an edition.

Only the public API is used, so that the test outlives whatever is moved about inside.
"""

import gzip
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import crashbo

SAVED = Path(__file__).parent / "data" / "b612d08"
FACTS = json.loads((SAVED / "facts.json").read_text())
STUDIES = sorted(path.stem for path in SAVED.glob("*.json") if path.stem != "facts")

every_study = pytest.mark.parametrize("name", STUDIES)


def press(params):
    """The machine of most of these studies, as arguments of tell."""
    load = params["x"] + params["y"]
    if load > 1.2:
        return {"crash": "fuse", "measured": {"load": load}}
    return {"cost": (params["x"] - 0.7) ** 2 + (params["y"] - 0.6) ** 2, "measured": {"load": load}}


def experiment(params):
    said = press(params)
    if "crash" in said:
        raise crashbo.Crash(said["crash"], measured=said["measured"])
    return crashbo.Outcome(said["cost"], said["measured"])


def loaded(name):
    return crashbo.Optimizer.from_json((SAVED / f"{name}.json").read_text())


def states(trials):
    return [t.state for t in trials]


def assert_as_they_were(trials, name, count=None):
    """Trials hold all that they held when they were saved; today's may have more to say."""
    facts = FACTS[name][:count]
    assert len(trials) == len(facts)
    for trial, fact in zip(trials, facts, strict=True):
        now = trial if isinstance(trial, dict) else json.loads(json.dumps(asdict(trial)))
        assert {key: now[key] for key in fact} == fact


def test_every_kind_of_saved_study_is_there():
    files = {path.name.partition(".")[0] for path in SAVED.iterdir()} - {"facts"}
    assert files == set(FACTS)
    assert len(STUDIES) == 7


@every_study
def test_a_study_of_an_earlier_edition_has_the_trials_that_it_had(name):
    assert_as_they_were(loaded(name).trials, name)


@every_study
def test_a_study_of_an_earlier_edition_goes_on(name):
    study = loaded(name)
    count = len(study.trials)
    trial = study.ask()
    assert trial.number == count
    assert set(trial.params) == set(FACTS[name][0]["params"])
    study.tell(trial, cost=0.5)
    study.tell(study.ask(), crash="fell", measured={"load": 9.0} if name == "safeopt" else None)
    study.tell(0, void="a correction", replace=True)
    assert states(study.trials)[count:] == ["success", "crash"]
    assert study.trials[0].state == "void"


@every_study
def test_a_study_of_an_earlier_edition_that_is_saved_again_proposes_the_same(name):
    again = crashbo.Optimizer.from_json(loaded(name).to_json())
    assert again.trials == loaded(name).trials
    assert again.ask_batch(2) == loaded(name).ask_batch(2)


@every_study
def test_the_models_of_an_earlier_edition_s_study_can_be_looked_at(name):
    study = loaded(name)
    costs = [t["cost"] for t in FACTS[name] if t["cost"] is not None]
    assert study.best.cost == (max(costs) if name == "maximize" else min(costs))
    assert 0.0 <= study.p_safe(study.best.params) <= 1.0
    assert 0.0 <= study.recommend().p_safe <= 1.0
    assert set(study.blames()) == {t["number"] for t in FACTS[name] if t["state"] == "crash"}
    for threshold in study.thresholds.values():
        if threshold.value is not None:
            assert threshold.interval[0] <= threshold.value <= threshold.interval[1]


def test_what_defined_a_study_defines_it_still():
    mixed = loaded("mixed")
    assert mixed.risk == crashbo.Budget(6, trials=40)
    assert list(mixed.constraints) == [
        crashbo.Constraint("load", (3.0, 6.0), noise=0.1),
        crashbo.Constraint("flow", 0.2, side="below", censored=True),
        crashbo.Constraint("heat"),
        crashbo.Unmeasured("lid"),
    ]
    assert loaded("high_cost").strategy == {"name": "ei-hc", "cost": 10.0}
    assert loaded("safeopt").strategy["scale"] == 2.0
    labels = loaded("labels")
    assert (labels.risk, labels.posterior) == (crashbo.MinSafe(0.8), "map")
    maximize = loaded("maximize")
    assert maximize.direction == "maximize"
    assert maximize.constraints[0].noise == 0.02


def test_options_that_are_tuples_are_tuples_again():
    study = loaded("mixed")
    assert study.trials[0].params["feet"] == ("left", ("right", 2))
    for option in (("left", "right"), ("left", ("right", 2)), None, True):
        told = study.tell({"gain": 0.0, "rate": 0.1, "legs": 2, "feet": option}, cost=1.0)
        assert told.params["feet"] == option


def test_what_was_said_of_crashes_and_corrections_is_kept():
    trials = loaded("mixed").trials
    assert (trials[0].blame, trials[0].censored) == (("load",), ("load",))
    assert (trials[2].reason, trials[2].blame) == ("seen on film", ("flow", "lid"))
    assert (trials[12].state, trials[12].reason) == ("void", "unplugged")
    assert trials[13].state == "pending"


def test_a_parameter_that_was_fixed_stays_fixed():
    assert [t.params["y"] for t in loaded("maximize").ask_batch(2)] == [0.5, 0.5]


def test_repeats_and_start_points_that_waited_are_handed_out():
    study = loaded("queue")
    asked = study.ask_batch(3)  # of four repeats one was void, one was told, and two are under way
    assert [t.origin for t in asked] == ["confirm", "start", "start"]
    assert asked[0].params == study.trials[1].params
    assert [t.params["x"] for t in asked[1:]] == pytest.approx([0.2, 0.3])
    assert states(study.trials) == ["success", "success", "void", "success", *["pending"] * 5]
    study.tell(4, cost=0.2)
    assert study.confirm(1, {"x": 0.5, "y": 0.5}).trials == []  # which is a confirmation of its own


@pytest.fixture
def journal(tmp_path):
    """A copy of a journal, which resuming writes to, and a function that resumes it."""

    def resume(name, trials, run=experiment, **settings):
        path = tmp_path / f"{name}.jsonl"
        if not path.exists():
            shutil.copy(SAVED / path.name, path)
        study = {"constraints": ["load"], "seed": 2, "progress": False, **settings}
        return crashbo.minimize(run, {"x": (0.0, 1.0), "y": (0.0, 1.0)}, trials=trials, journal=path, **study)

    return resume


def never(params):
    raise AssertionError("no trial is left")


def test_a_journal_of_an_earlier_edition_that_is_finished_runs_nothing_again(journal):
    assert_as_they_were(journal("whole", 7, never).trials, "whole")


def test_a_journal_of_an_earlier_edition_goes_on(journal):
    trials = journal("whole", 9).trials
    assert_as_they_were(trials[:7], "whole")
    assert len(trials) == 9
    for trial in trials:
        said = press(trial.params)
        assert (trial.state, trial.cost) == ("crash" if "crash" in said else "success", said.get("cost"))
    assert journal("whole", 9, never).trials == trials


def test_a_journal_of_an_earlier_edition_that_was_torn_loses_its_last_line_alone(journal):
    trials = journal("torn", 7).trials
    assert_as_they_were(trials[:6], "torn", 6)
    assert states(trials[6:]) == ["void", "success"]
    assert trials[6].params == FACTS["torn"][6]["params"]


@pytest.mark.parametrize(("on_lost", "state"), [("void", "void"), ("crash", "crash"), ("repeat", "success")])
def test_a_trial_that_an_earlier_edition_lost_becomes_what_the_user_says(journal, on_lost, state):
    trials = journal("lost", 7, on_lost=on_lost).trials
    assert_as_they_were(trials[:5], "lost", 5)
    assert trials[5].params == FACTS["lost"][5]["params"]
    assert trials[5].state == state
    assert sum(t.state != "void" for t in trials) == 7


def test_a_result_of_an_earlier_edition_s_journal_is_confirmed(journal):
    report = journal("whole", 7, never).confirm(experiment, n=2)
    assert len(report.costs) == 2
    assert len(journal("whole", 9, never).trials) == 9


@pytest.fixture
def press_study(tmp_path):
    """An Optuna study, of a copy of its file."""
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'crashbo[optuna]'")
    from crashbo.integrations.optuna import CrashSampler

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)  # it reports every failed trial
    path = shutil.copy(SAVED / "optuna.log", tmp_path)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    return optuna.load_study(study_name="press", storage=storage, sampler=CrashSampler())


def test_an_optuna_study_of_an_earlier_edition_has_its_trials_as_corrected(press_study):
    from crashbo.integrations.optuna import insight

    seen = insight(press_study)
    assert_as_they_were(seen.trials, "optuna")
    assert [c.name for c in seen.constraints] == ["load", "lid"]
    assert (seen.trials[1].reason, seen.trials[1].blame) == ("seen on film", ("lid",))
    assert (seen.trials[2].cost, seen.trials[2].measured) == (0.4, {"load": 0.8})
    assert [t.state.name for t in press_study.trials] == ["FAIL", *["COMPLETE"] * 7, "FAIL", "RUNNING"]
    assert press_study.trials[1].value == pytest.approx(0.34)  # Optuna's own record cannot be changed
    assert 0.0 <= seen.blame(1)["load"] <= 1.0


def test_what_was_declared_in_an_optuna_study_holds_still(press_study):
    settings = press_study.sampler.settings(press_study)
    assert settings.risk == crashbo.Budget(5, trials=30)
    assert list(settings.constraints) == [crashbo.Constraint("load", (1.0, 1.5)), crashbo.Unmeasured("lid")]
    assert (settings.noise, settings.on_fail, settings.lease, settings.posterior) == (
        {"cost": 0.01},
        "crash",
        1e9,
        "map",
    )
    assert list(settings.space) == ["x", "y", "n", "mode"]


def test_an_optuna_study_of_an_earlier_edition_goes_on(press_study):
    from crashbo.integrations.optuna import measure, tell

    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1, step=0.1)
        trial.suggest_int("n", 1, 8, log=True)
        trial.suggest_categorical("mode", ["slow", "fast", None])
        measure(trial, load=x + y)
        if x + y > 1.2:
            raise crashbo.Crash("fuse")
        return x

    press_study.optimize(objective, n_trials=2, catch=(crashbo.Crash,))
    assert len(press_study.trials) == 12
    assert press_study.trials[11].user_attrs["crashbo:p_safe"] > 0.5  # it was proposed, not drawn
    assert tell(press_study, 9, cost=0.1, measured={"load": 1.0}).state == "success"
    assert tell(press_study, 8, cost=0.2, replace=True).state == "success"
    assert tell(press_study, 1, void="film was of another trial", replace=True).reason == "film was of another trial"


@pytest.fixture
def store(tmp_path, capsys):
    """A function that runs a command on a copy of a store: what it says to people, or to programs."""
    pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'crashbo[app]'")
    from crashbo.app.cli import main

    def command(name, *words, json_too=True):
        path = tmp_path / f"{name}.db"
        if not path.exists():
            path.write_bytes(gzip.decompress((SAVED / f"{name}.db.gz").read_bytes()))
        at = words.index("--") if "--" in words else len(words)
        more = ["--store", str(path), *(["--json"] if json_too else [])]
        code, said = main([*words[:at], *more, *words[at:]]), capsys.readouterr()
        assert code == 0, said.err
        return json.loads(said.out.splitlines()[0]) if json_too else said.out

    return command


@pytest.mark.parametrize("name", ["oven", "leases"])
def test_a_store_of_an_earlier_edition_has_its_trials_and_goes_on(store, name):
    assert_as_they_were(store(name, "trials"), name)
    asked = store(name, "ask")
    assert asked["number"] == len(FACTS[name])
    assert asked["p_safe"] is not None
    told = store(name, "tell", str(asked["number"]), "--cost", "0.25")
    assert (told["state"], told["cost"]) == ("success", 0.25)
    assert store(name, "best")["best"] is not None
    assert store(name, "thresholds")


def test_an_earlier_edition_s_corrections_are_taken_back_one_after_the_other(store, tmp_path):
    said = [store("oven", "undo", "0") for _ in range(2)]
    assert [(t["state"], t["cost"], t["reason"]) for t in said] == [("success", 1.0, ""), ("pending", None, "")]
    assert store("oven", "undo", "1")["state"] == "pending"
    assert store("oven", "tell", "0", "--cost", "7")["cost"] == 7.0


def test_nothing_that_was_ever_said_to_an_earlier_edition_is_forgotten(store, tmp_path):
    store("oven", "fix", "0", "--cost", "5")
    import optuna

    study = optuna.load_study(study_name="oven", storage=f"sqlite:///{tmp_path / 'oven.db'}")
    past = study.user_attrs["crashbo:corrected:0"]["past"]
    assert [(word["state"], word["by"]) for word in past] == [
        ("success", "fix"),
        ("crash", "fix"),
        ("void", "undo"),
        ("crash", "fix"),
    ]
    assert (past[0]["cost"], past[1]["reason"], past[2]["reason"]) == (1.0, "it burnt", "wrong oven")


def test_an_earlier_edition_s_requests_and_imports_are_known_again(store, tmp_path):
    assert store("oven", "ask", "--request", "mine")["number"] == 6
    (tmp_path / "old.csv").write_text(
        "heat,minutes,mode,cost,smoke,state,reason,blame\n"
        "100,5,fan,3.5,12,,,\n"
        "280,50,grill,,,crash,burnt,smoke door\n"
        "200,20,fan,,,void,power cut,\n"
    )
    said = store("oven", "trials", "--import", str(tmp_path / "old.csv"))
    assert (said["added"], said["known"]) == (0, 3)


def test_labels_and_units_of_an_earlier_edition_are_shown(store):
    said = store("oven", "tell", "6", "--cost", "4", "--measured", "smoke=50", json_too=False)
    assert said == "Trial 6 is a success: colour 4 RAL, smoke 50 ppm\n"


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("sys.exit(3)", "crash"),
        ("sys.exit(1)", "void"),
        ("print('?')", "crash"),
        ("import os; os.kill(os.getpid(), 9)", "void"),  # its on_kill
        ("print('nan')", "crash"),  # to it that was rubbish
    ],
)
def test_rules_of_run_of_an_earlier_edition_hold(store, code, state):
    trial = store("oven", "run", "--", sys.executable, "-c", f"import sys; {code}")
    assert trial["state"] == state


def test_leases_of_an_earlier_edition_run_on(store):
    trials = store("leases", "trials")
    assert (trials[2]["state"], trials[2]["reason"]) == ("void", "lease ran out")
    assert [t["state"] for t in trials[4:]] == ["success", "pending", "pending"]
    assert store("leases", "tell", "2", "--cost", "0.5")["state"] == "success"  # late, and welcome
    assert store("leases", "tell", "5", "--crash", "fuse")["state"] == "crash"
    assert store("leases", "tell", "6", "--void")["state"] == "void"
