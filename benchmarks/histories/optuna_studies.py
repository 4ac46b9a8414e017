"""Histories of Optuna studies under CrashSampler, in journal files.

Every step uses new objects, as another process would. Times, which are never the same, are left out.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import crashbo
from crashbo.integrations.optuna import CrashSampler, declare, insight, measure, tell
from histories.tape import FileTape

TIMES = ("crashbo:lease", "at", "until")
BORN = "2026-01-01 00:00:00.000000"  # when a study's first trial began, which seeds it

optuna.logging.set_verbosity(optuna.logging.CRITICAL)  # it reports every crash


def contents(storage: Any) -> Any:
    """Everything in a storage except times."""
    return [
        {
            "name": study.study_name,
            "directions": [d.name for d in study.directions],
            "attrs": timeless(storage.get_study_user_attrs(study._study_id)),
            "trials": [in_store(trial) for trial in storage.get_all_trials(study._study_id)],
        }
        for study in storage.get_all_studies()
    ]


def in_store(trial: Any) -> dict[str, Any]:
    return {
        "number": trial.number,
        "state": trial.state.name,
        "values": trial.values,
        "params": trial.params,
        "distributions": {name: repr(d) for name, d in trial.distributions.items()},
        "user": timeless(trial.user_attrs),
        "system": timeless(trial.system_attrs),
    }


def timeless(value: Any) -> Any:
    """Plain values without times; a text that is JSON is read, so that it may gain keys."""
    if isinstance(value, Mapping):
        return {k: "some time" if k in TIMES and isinstance(v, int | float) else timeless(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [timeless(v) for v in value]
    return timeless(json.loads(value)) if isinstance(value, str) and value.startswith("{") else value


class OptunaTape(FileTape):
    """A journal file of Optuna."""

    name = "optuna.log"

    def begin(self, direction: str = "minimize", **declared: Any) -> None:
        """A new study, with what is declared for it."""

        def act(path: Path) -> None:
            study = optuna.create_study(storage=journal(path), study_name="replay", direction=direction)
            if declared:
                declare(study, **declared)

        self.do("new", act)

    def on(self, what: str, act: Callable[[Any], Any], **settings: Any) -> Any:
        """Do something to the study with a sampler that has not seen it."""

        def opened(path: Path) -> Any:
            sampler = CrashSampler(**{"seed": 0, **settings})
            return act(optuna.load_study(storage=journal(path), study_name="replay", sampler=sampler))

        return self.do(what, opened)

    def run(self, objective: Callable[[Any], float], n: int = 1, **settings: Any) -> Any:
        """Run so many trials with one sampler; returns the last."""

        def act(study: Any) -> Any:
            study.optimize(objective, n_trials=n, catch=(crashbo.Crash, crashbo.Void, ZeroDivisionError))
            return in_store(study.trials[-1])

        return self.on("ask" if n == 1 else "ask all", act, **settings)

    def ask(self, distributions: Any, **settings: Any) -> Any:
        """A trial that stays pending."""

        def act(study: Any) -> Any:
            number = study.ask(distributions).number
            return in_store(study.trials[number])

        return self.on("ask", act, **settings)

    def look(self, **settings: Any) -> Any:
        """What crashbo says about it."""
        return self.on("look", seen, **settings)

    def essence(self, saved: bytes) -> Any:
        """Everything in the storage."""
        with self.unpacked(saved) as path:
            return contents(journal(path))


def journal(path: Path) -> Any:
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))


def seen(study: Any) -> dict[str, Any]:
    """What crashbo says about an Optuna study."""
    found = insight(study)
    crashes = [t.number for t in found.trials if t.state == "crash"]
    return {
        "params": found.params,
        "constraints": [c.name for c in found.constraints],
        "trials": found.trials,
        "best": found.best,
        "recommend": found.recommend(),
        "thresholds": {n: [c.value, c.interval, c.learned] for n, c in found.thresholds.items()},
        "p_safe": found.p_safe([t.params for t in found.trials[-3:]]),
        "blame": [found.blame(number) for number in crashes],
    }


def jump(trial: Any) -> float:
    """Every kind of parameter; measures, and crashes."""
    knee, hip = trial.suggest_float("knee", 0, 1, step=0.05), trial.suggest_float("hip", 0, 1)
    stiffness, gait = trial.suggest_float("stiffness", 1, 100, log=True), trial.suggest_categorical("gait", ["a", "b"])
    legs = trial.suggest_int("legs", 2, 4)
    current = 60 + 45 * knee + 40 * knee * hip + 2 * legs
    measure(trial, current=current)
    if current > 112.3:
        raise crashbo.Crash("boards tripped", blame="current", censored=True)
    return float(0.35 + 0.4 * knee - 0.5 * (hip - 0.6) ** 2 - 0.01 * abs(stiffness - 20) ** 0.5 + 0.05 * (gait == "b"))


def jumps(tape: OptunaTape) -> None:
    """Nothing declared; enqueued trials, complete and partial; a void and a bug; one sampler for several trials."""
    tape.begin("maximize")
    whole = {"knee": 0.3, "hip": 0.4, "stiffness": 10.0, "gait": "a", "legs": 3}
    tape.on("enqueue", lambda study: study.enqueue_trial(whole))
    for _ in range(6):
        tape.run(jump)
    tape.on("enqueue", lambda study: study.enqueue_trial({"gait": "b", "legs": 2}))
    for _ in range(3):
        tape.run(jump)
    tape.run(void)
    tape.run(bug)
    tape.run(jump, 6)
    for _ in range(2):
        tape.run(jump, constraints=["current"], risk=crashbo.MinSafe(0.8))
    tape.look()


def void(trial: Any) -> float:
    jump(trial)
    raise crashbo.Void("unplugged")


def bug(trial: Any) -> float:
    return jump(trial) / 0


def declared(tape: OptunaTape) -> None:
    """Settings in the storage, running trials, corrections, a lease that ran out, and the study's own seed."""
    space = {
        "x": FloatDistribution(0, 1),
        "y": FloatDistribution(1e-3, 1, log=True),
        "n": IntDistribution(1, 9, step=2),
    }
    space["mode"] = CategoricalDistribution([None, True, 3, "on"])
    risk, constraints = crashbo.Budget(6, trials=40), [crashbo.Constraint("load", (1.0, 2.0)), crashbo.Unmeasured()]
    tape.begin(space=space, constraints=constraints, risk=risk, noise={"cost": 0.01}, lease=1e6)
    first = {"x": 0.2, "y": 0.01, "n": 3, "mode": True}
    tape.on("add", lambda study: study.add_trial(born(first, space)))
    for i in range(9):
        trial = tape.ask(space, seed=None)
        if i == 4:
            tape.on("declare", lambda study: outcome_of(declare(study, posterior="map", on_fail="crash")))
        if i % 4 != 3:  # every fourth stays under way
            tape.on("tell", lambda study, trial=trial: tell(study, trial["number"], **machine(trial["params"])))
    tape.on("tell", lambda study: tell(study, 2, crash="seen on film", blame="other", replace=True))
    tape.on("tell", lambda study: tell(study, 3, cost=0.7, measured={"load": 0.8}, replace=True))
    tape.on("tell", lambda study: in_store(study.tell(4, state=optuna.trial.TrialState.FAIL)))
    tape.ask(space, seed=None)
    tape.look()


def born(params: dict[str, Any], distributions: Any) -> Any:
    """A finished trial with a fixed start time."""
    trial = optuna.create_trial(value=0.5, params=params, distributions=distributions)
    trial.datetime_start = trial.datetime_complete = datetime.fromisoformat(BORN)
    return trial


def outcome_of(settings: Any) -> Any:
    return [settings.posterior, settings.on_fail, settings.lease]


def machine(params: dict[str, Any]) -> dict[str, Any]:
    load = params["x"] + params["n"] / 6
    if load > 1.5:
        return {"crash": "fuse", "measured": {"load": load}} if params["mode"] else {"crash": True}
    return {"cost": (params["x"] - 0.6) ** 2 - 0.1 * params["n"] + params["y"], "measured": {"load": load}}


def branches(tape: OptunaTape) -> None:
    """Define-by-run: which parameters there are depends on others."""

    def objective(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["pd", "mpc"])
        gain = trial.suggest_float("gain", 0, 1)
        if kind == "pd":
            damping = trial.suggest_float("damping", 0.01, 1, log=True)
            if gain > 0.8:
                raise crashbo.Crash("it shakes", measured={"load": gain})
            return float((gain - 0.7) ** 2 + damping)
        horizon, gain2 = trial.suggest_int("horizon", 3, 12), trial.suggest_float("gain2", 0, 1)
        if horizon * gain2 > 8:
            raise crashbo.Crash("too slow")
        return float((gain - 0.4) ** 2 + (gain2 - 0.9) ** 2 + 0.2)

    tape.begin()
    for _ in range(16):
        tape.run(objective, seed=3)
    tape.look()


def strategies(tape: OptunaTape) -> None:
    """Another strategy, one given as a record, and labels only."""

    def objective(trial: Any) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if x + y > 1.3:
            raise crashbo.Crash
        return float((x - 0.8) ** 2 + y)

    tape.begin()
    for strategy in ("eicc", crashbo.strategies.HighCost(3.0), "random", "pibu"):
        tape.run(objective, 3, strategy=strategy)
        tape.run(objective, strategy=strategy)
    tape.look()


HISTORIES: dict[str, Callable[[OptunaTape], None]] = {
    "optuna": jumps,
    "optuna-declared": declared,
    "optuna-branches": branches,
    "optuna-strategies": strategies,
}
