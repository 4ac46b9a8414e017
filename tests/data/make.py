"""Saved studies of one commit, for the test that they can always be read (tests/test_saved.py).

Run it with the code of the commit that they are named after, and never again for that commit:

    git worktree add ../old b612d08
    OPENBLAS_NUM_THREADS=1 PYTHONPATH=../old/src .venv/bin/python tests/data/make.py b612d08

It writes tests/data/b612d08: studies as `to_json` saves them, journals of `minimize`, a journal file of an Optuna
study, and SQLite files of the bench. `facts.json` there says which trials each of them held when it was made.
"""

import gzip
import io
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, closing, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import crashbo
from crashbo.app import cli
from crashbo.integrations.optuna import CrashSampler, declare, insight, tell

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def press(params: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `tell`: crashes where x + y > 1.2."""
    load = params["x"] + params["y"]
    if load > 1.2:
        return {"crash": "fuse", "measured": {"load": load}}
    return {"cost": (params["x"] - 0.7) ** 2 + (params["y"] - 0.6) ** 2, "measured": {"load": load}}


def experiment(params: dict[str, Any]) -> Any:
    """The same for `minimize`."""
    said = press(params)
    if "crash" in said:
        raise crashbo.Crash(said["crash"], measured=said["measured"])
    return crashbo.Outcome(said["cost"], said["measured"])


def go_on(study: crashbo.Optimizer, machine: Callable[[dict[str, Any]], dict[str, Any]], trials: int) -> None:
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, **machine(trial.params))


def mixed() -> crashbo.Optimizer:
    """Every kind of parameter, options that are tuples, four causes, a budget, blame, cut-off readings, one pending."""
    space = {
        "gain": (-2.0, 3.0),
        "rate": crashbo.Float(1e-4, 1.0, log=True),
        "legs": crashbo.Int(1, 5),
        "feet": crashbo.Choice([("left", "right"), ("left", ("right", 2)), None, True]),
    }
    constraints = [
        crashbo.Constraint("load", (3.0, 6.0), noise=0.1),
        crashbo.Constraint("flow", 0.2, side="below", censored=True),
        crashbo.Constraint("heat"),
        crashbo.Unmeasured("lid"),
    ]
    start = [
        {"gain": 2.5, "rate": 0.1, "legs": 5, "feet": ("left", ("right", 2))},
        {"gain": 0.0, "rate": 0.01, "legs": 2, "feet": ("left", "right")},
        {"gain": -1.9, "rate": 0.9, "legs": 3, "feet": None},
    ]
    study = crashbo.Optimizer(space, constraints, risk=crashbo.Budget(6, trials=40), start=start, noise={"cost": 0.05})

    def machine(params: dict[str, Any]) -> dict[str, Any]:
        load, flow = params["gain"] + params["legs"], 0.1 + (params["gain"] + 2.0) / 5
        if load > 4.5:
            return {"crash": "boards tripped", "blame": "load", "measured": {"load": load}, "censored": "load"}
        if flow < 0.2:
            return {"crash": "dry", "measured": {"flow": flow}}
        cost = (params["gain"] - 1.0) ** 2 + params["rate"] + 0.1 * (params["feet"] is None)
        return {"cost": cost, "measured": {"load": load, "flow": flow, "heat": 20.0 + load}}

    go_on(study, machine, 12)
    study.tell({"gain": 0.5, "rate": 0.5, "legs": 1, "feet": True}, void="unplugged")
    study.tell(2, crash="seen on film", blame=["flow", "lid"], replace=True)
    study.ask()
    return study


def high_cost() -> crashbo.Optimizer:
    """A strategy with a parameter of its own."""
    study = crashbo.Optimizer(SQUARE, ["load"], strategy=crashbo.strategies.HighCost(10.0))
    go_on(study, press, 8)
    return study


def safeopt() -> crashbo.Optimizer:
    """A strategy that must know the threshold."""
    load = crashbo.Constraint("load", 1.2)
    strategy = crashbo.strategies.SafeOpt(scale=2.0, lengthscale=0.3)
    study = crashbo.Optimizer(SQUARE, [load], strategy=strategy, start=[{"x": 0.3, "y": 0.3}])
    go_on(study, press, 6)
    return study


def labels() -> crashbo.Optimizer:
    """Nothing is measured; nothing below P(safe) 0.8 is tried."""
    study = crashbo.Optimizer(SQUARE, risk=crashbo.MinSafe(0.8), posterior="map", seed=3)
    go_on(study, lambda p: {key: v for key, v in press(p).items() if key != "measured"}, 9)
    return study


def maximize() -> crashbo.Optimizer:
    """A gain in place of a cost, with known noise; bounds that were changed, and a parameter that was fixed."""
    study = crashbo.Optimizer(SQUARE, ["load"], direction="maximize", noise={"cost": 0.01, "load": 0.02}, risk="paper")
    go_on(study, lambda p: {key: -v if key == "cost" else v for key, v in press(p).items()}, 7)
    study = study.changed(space={"x": (0.0, 0.8), "y": (0.2, 1.0)}, fixed={"y": 0.5})
    go_on(study, lambda p: {key: -v if key == "cost" else v for key, v in press(p).items()}, 2)
    return study


def memory() -> crashbo.Optimizer:
    """So many trials that hyperparameters are held from one to the next."""
    study = crashbo.Optimizer(SQUARE, ["load"], seed=1)
    go_on(study, press, 36)
    return study


def queue() -> crashbo.Optimizer:
    """Repeats of the best and start points wait; two trials are under way, one repeat was void."""
    study = crashbo.Optimizer(SQUARE, ["load"], start=[{"x": 0.1 * i, "y": 0.4} for i in range(4)])
    go_on(study, press, 2)
    study.confirm(4)
    study.tell(study.ask(), void="knocked over")
    study.tell(study.ask(), cost=0.3, measured={"load": 0.5})
    study.ask_batch(2)
    return study


STUDIES = (mixed, high_cost, safeopt, labels, maximize, memory, queue)


def journals(folder: Path) -> dict[str, Any]:
    """A journal whose run came to its end, one whose last line is torn, and one whose process died during a trial."""
    facts = {}
    for name in ("whole", "torn", "lost"):
        path, calls = folder / f"{name}.jsonl", iter(range(100))

        def dying(params: dict[str, Any], name: str = name, calls: Any = calls) -> Any:
            if next(calls) == 5 and name == "lost":
                raise KeyboardInterrupt
            return experiment(params)

        settings = {"constraints": ["load"], "seed": 2, "start": [{"x": 0.2, "y": 0.3}], "progress": False}
        result = crashbo.minimize(dying, SQUARE, trials=7, journal=path, **settings)
        facts[name] = [asdict(t) for t in result.trials]
        if name == "torn":
            path.write_bytes(path.read_bytes()[:-40])
    facts["torn"][-1] |= {"state": "pending", "cost": None, "measured": {}, "reason": ""}  # that line told it
    return facts


def optuna_study(path: Path) -> list[Any]:
    """Declared settings, wishes, crashes, a void, corrections, and a trial under way."""
    backend = optuna.storages.journal.JournalFileBackend(str(path))
    storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(storage=storage, study_name="press", sampler=CrashSampler(seed=0))
    space = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1, step=0.1), "n": IntDistribution(1, 8, log=True)}
    space["mode"] = CategoricalDistribution(["slow", "fast", None])
    constraints = [crashbo.Constraint("load", (1.0, 1.5)), crashbo.Unmeasured("lid")]
    settings = {"noise": {"cost": 0.01}, "on_fail": "crash", "lease": 1e9, "posterior": "map"}
    declare(study, space=space, constraints=constraints, risk=crashbo.Budget(5, trials=30), **settings)
    study.enqueue_trial({"x": 0.9, "y": 0.9, "n": 2, "mode": None})
    study.enqueue_trial({"x": 0.2, "y": 0.3, "n": 2, "mode": "slow"})
    for _ in range(8):
        trial = study.ask(space)
        tell(study, trial, **press(trial.params))
    tell(study, study.ask(space), void="unplugged")
    tell(study, 1, crash="seen on film", blame="lid", replace=True)
    tell(study, 2, cost=0.5, measured={"load": 0.7}, replace=True)
    tell(study, 2, cost=0.4, measured={"load": 0.8}, replace=True)
    study.ask(space)
    return [asdict(t) for t in insight(study).trials]


OVEN = """
direction = "maximize"
risk = {crashes = 4, trials = 30}
start = [{heat = 120, minutes = 10, mode = "fan"}]
noise = {cost = 0.05}

[cost]
label = "colour"
unit = "RAL"

[parameters]
heat = {low = 50, high = 300, unit = "C"}
minutes = {low = 1, high = 60, int = true, log = true}
mode = ["fan", "grill"]

[constraints]
smoke = {threshold = [40, 90], censored = true, unit = "ppm"}
door = {measured = false}

[run]
timeout = 60
on_exit = "void"
exits = {3 = "crash"}
on_rubbish = "crash"
"""
BAKED = """heat,minutes,mode,cost,smoke,state,reason,blame
100,5,fan,3.5,12,,,
280,50,grill,,,crash,burnt,smoke door
200,20,fan,,,void,power cut,
"""


def command(*words: str) -> str:
    """What a command says."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert cli.main([*words, "--store", "study.db"]) == 0
    return out.getvalue()


def oven() -> None:
    """Units and labels, rules of `run`, old data, trials told, corrected, taken back and told anew."""
    Path("oven.toml").write_text(OVEN)
    Path("old.csv").write_text(BAKED)
    command("new", "oven.toml")
    for cost in (1.0, 2.0, 3.0):
        number = json.loads(command("ask", "--json"))["number"]
        command("tell", str(number), "--cost", str(cost), "--measured", f"smoke={10 * cost}")
        command("trials", "--import", "old.csv")
    command("fix", "0", "--crash", "it burnt", "--blame", "door")
    command("fix", "0", "--void", "wrong oven")
    command("undo", "0")
    command("fix", "1", "--cost", "9")
    command("undo", "1")
    command("undo", "1")
    command("tell", "1", "--crash", "--measured", "smoke=80", "--censored", "smoke")
    command("ask", "--request", "mine")


def leases() -> None:
    """A lease that ran out, one that a late result made good, one of thirty years, and one of the study's own."""
    words = ("--param", "x=0:1", "--param", "y=0:1", "--constraint", "load", "--unmeasured", "lid")
    command("new", "press", *words, "--lease", "900000000")
    for i in range(7):
        lease = ("--lease", "1e-9") if i in (2, 4) else ("--lease", "950000000") if i == 5 else ()
        trial = json.loads(command("ask", "--json", *lease))
        said = press(trial["params"])
        told = ("--cost", str(said["cost"])) if "cost" in said else ("--crash", said["crash"])
        if i not in (2, 5, 6):
            command("tell", str(trial["number"]), *told, "--measured", f"load={said['measured']['load']}")


def store(make: Callable[[], None], path: Path) -> list[Any]:
    """A SQLite file of the bench, packed."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        make()
        with closing(sqlite3.connect("study.db")) as source, closing(sqlite3.connect("whole.db")) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")
            target.execute("VACUUM")
        path.write_bytes(gzip.compress(Path("whole.db").read_bytes(), mtime=0))
        trials: list[Any] = json.loads(command("trials", "--json"))
        return trials


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    folder = Path(__file__).parent / sys.argv[1]
    folder.mkdir()
    facts: dict[str, Any] = {}
    for make in STUDIES:
        study = make()
        (folder / f"{make.__name__}.json").write_text(study.to_json() + "\n")
        facts[make.__name__] = [asdict(t) for t in study.trials]
    facts |= journals(folder)
    facts["optuna"] = optuna_study(folder / "optuna.log")
    facts["oven"] = store(oven, folder / "oven.db.gz")
    facts["leases"] = store(leases, folder / "leases.db.gz")
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
