"""Histories of Optimizer: spaces, risks, strategies, constraints, and everything that can be done to a study."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import crashbo
from histories import machines
from histories.machines import BOILED, BOILER, COUNTS, GRID, MIXED, SQUARE, Outcome
from histories.tape import StudyTape

History = Callable[[StudyTape], None]

INFORMED = ("eic", "safeopt")  # strategies that must know thresholds, and what crashes measured


class Plain(NamedTuple):
    """A study that is asked and told so many times, and nothing else."""

    trials: int
    machine: Outcome
    space: Mapping[str, Any]
    constraints: Any = None
    settings: Mapping[str, Any] = {}


def on(name: str, trials: int, **settings: Any) -> Plain:
    """A plain study of one of crashbo's problems."""
    problem = crashbo.problems.get(name)
    return Plain(trials, machines.of_problem(problem), problem.space, problem.constraints, settings)


def informed(name: str, trials: int, **settings: Any) -> Plain:
    """The same with thresholds known and crashes measured, from a safe point."""
    problem = crashbo.problems.get(name).informed()
    start = [problem.safe_start(np.random.default_rng(1))]
    machine = machines.of_problem(problem)
    return Plain(trials, machine, problem.space, problem.constraints, {"start": start, **settings})


def turned(machine: Outcome) -> Outcome:
    """The machine with a gain in place of a cost."""
    return lambda params: {key: -v if key == "cost" else v for key, v in machine(params).items()}


# Made when they are played: a problem costs time, and noise must begin anew.
PLAIN: dict[str, Callable[[], Plain]] = {
    "floats-1d": lambda: on("toy1d", 20),
    "floats-2d": lambda: on("eggcrate2d", 35),
    "floats-6d": lambda: on("hartmann6d", 32, seed=3),
    "two-limits": lambda: on("lsq", 18),
    "mixed": lambda: Plain(24, machines.robot, MIXED, ["load"]),
    "counts": lambda: Plain(18, machines.queue, COUNTS, "memory"),
    "used-up": lambda: Plain(16, machines.walker, GRID),
    "used-up-budget": lambda: Plain(15, machines.walker, GRID, settings={"risk": crashbo.Budget(2)}),
    "labels-only": lambda: Plain(20, machines.labels, SQUARE),
    "causes": lambda: Plain(22, machines.boiler, SQUARE, BOILER, {"start": BOILED}),
    "causes-budget": lambda: Plain(20, machines.boiler, SQUARE, BOILER, {"risk": crashbo.Budget(5, trials=20)}),
    "risk-paper": lambda: on("eggcrate2d-corner", 18, risk="paper"),
    "risk-budget": lambda: on("gardner1", 20, risk=crashbo.Budget(3)),
    "risk-budget-trials": lambda: on("eggcrate2d", 20, risk=crashbo.Budget(4, trials=18)),
    "risk-budget-none": lambda: Plain(12, machines.press, SQUARE, ["load"], {"risk": crashbo.Budget(0)}),
    "risk-min-safe": lambda: on("townsend", 18, risk=crashbo.MinSafe(0.9)),
    "risk-min-safe-high": lambda: Plain(14, machines.labels, SQUARE, None, {"risk": crashbo.MinSafe(0.99)}),
    "maximize": lambda: Plain(
        18, turned(machines.press), SQUARE, ["load"], {"direction": "maximize", "noise": {"cost": 0.01, "load": 0.02}}
    ),
    "noise": lambda: on("branin-disk", 16, noise=0.5),
    "posterior-map": lambda: on("gomez-levy", 20, posterior="map"),
    "start": lambda: Plain(
        14, machines.robot, MIXED, ["load"], {"start": [robot_at(0.0, 2), robot_at(1.0, 1), robot_at(3.0, 5)]}
    ),
    "all-crash": lambda: Plain(14, lambda _: {"crash": True}, SQUARE, ["load"]),
    "none-crash": lambda: Plain(14, lambda p: {"cost": p["x"]}, SQUARE, ["load"]),
    "high-cost": lambda: Plain(
        14, machines.press, SQUARE, ["load"], {"strategy": crashbo.strategies.HighCost(10.0), "seed": 5}
    ),
    "safeopt-scale": lambda: informed("eggcrate2d", 14, strategy=crashbo.strategies.SafeOpt(scale=2.0)),
}


def robot_at(gain: float, legs: int) -> dict[str, Any]:
    return {"gain": gain, "rate": 0.01, "legs": legs, "mode": "walk"}


def play(plain: Callable[[], Plain], tape: StudyTape) -> None:
    """Ask and tell, then look."""
    study = plain()
    tape.new(study.space, study.constraints, **study.settings)
    go_on(tape, study.machine, study.trials)
    tape.do("look", look)


def go_on(tape: StudyTape, machine: Outcome, trials: int) -> None:
    """Ask and tell, so many times."""
    for _ in range(trials):
        trial = tape.ask()
        tape.tell(trial, **machine(trial["params"]))


def look(study: Any) -> dict[str, Any]:
    """What a study says about itself, and what it proposes afterwards: inspecting it must change nothing."""
    latest = [t.params for t in study.trials[-4:]]
    name = next(iter(latest[0]))
    probes = latest + [{**a, name: b[name]} for a, b in pairwise(latest)]  # where nothing was
    said = {
        "best": study.best,
        "recommend": [study.recommend(), study.recommend(0.4)],
        "thresholds": {n: [c.value, c.interval, c.learned] for n, c in study.thresholds.items()},
        "p_safe": study.p_safe(probes),
        "p_violated": study.p_violated(probes),
        "predict": study.predict(probes),
        "blames": study.blames(),
        "gain_left": study.gain_left(),
        "table": study.table(),
        "trials": study.trials,
    }
    said["ask"] = study.ask()
    return {**said, "kinds": kinds(said)}


def kinds(value: Any) -> Any:
    """Types, which JSON does not keep apart: a tuple is no list, and a number of NumPy's is no float."""
    if is_dataclass(value):
        return {field.name: kinds(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): kinds(v) for key, v in value.items()}
    name = type(value).__name__
    return [name, *map(kinds, value)] if isinstance(value, list | tuple) else name


def by_strategy(name: str, tape: StudyTape) -> None:
    """A strategy, and a few pending trials at the same time."""
    study = informed("gardner1", 10) if name in INFORMED else on("gardner1", 10)
    tape.new(study.space, study.constraints, strategy=name, **study.settings)
    go_on(tape, study.machine, study.trials)
    for trial in reversed(tape.ask_batch(3)):
        tape.tell(trial, **study.machine(trial["params"]))
    tape.ask()
    tape.do("look", look)


def fixed(tape: StudyTape) -> None:
    """Parameters fixed one after the other, with what is queued for others left out."""
    tape.new(MIXED, ["load"], start=[robot_at(0.2, 2), robot_at(0.4, 3)], seed=2)
    go_on(tape, machines.robot, 6)
    tape.do("changed", lambda s: s.changed(fixed={"legs": 3}))
    go_on(tape, machines.robot, 5)
    tape.do("changed", lambda s: s.changed(fixed={"mode": "bound", "rate": 0.02}))
    go_on(tape, machines.robot, 5)
    tape.do("look", look)


def bounds(tape: StudyTape) -> None:
    """Bounds that narrow, and widen again."""
    tape.new(SQUARE, ["load"])
    go_on(tape, machines.press, 8)
    tape.do("changed", lambda s: s.changed(space={"x": (0.2, 0.6), "y": (0.1, 0.5)}))
    go_on(tape, machines.press, 5)
    tape.do("changed", lambda s: s.changed(space={"x": (-0.5, 1.5), "y": (0.1, 1.0)}))
    go_on(tape, machines.press, 6)
    tape.do("look", look)


def other_mind(tape: StudyTape) -> None:
    """Constraints, risk and posterior that change in the middle."""
    tape.new(SQUARE, ["heat", "flow"], noise={"cost": 0.02, "heat": 0.05})
    alone = {"heat", "flow"}

    def machine(params: dict[str, Any]) -> dict[str, Any]:
        said = machines.boiler(params)
        said["measured"] = {name: v for name, v in said.get("measured", {}).items() if name in alone}
        return said

    go_on(tape, machine, 7)
    tape.do("changed", lambda s: s.changed(constraints=BOILER, risk=crashbo.MinSafe(0.8)))
    go_on(tape, machines.boiler, 5)
    tape.do("changed", lambda s: s.changed(risk=crashbo.Budget(9, trials=30), posterior="map"))
    go_on(tape, machines.boiler, 5)
    tape.do("look", look)


def batches(tape: StudyTape) -> None:
    """Several pending trials, told out of order, some of them never."""
    tape.new(SQUARE, ["load"], seed=7)
    for n in (3, 4, 2, 3):
        trials = tape.ask_batch(n)
        for trial in (trials[-1], *trials[: n - 2]):
            tape.tell(trial, **machines.press(trial["params"]))
        tape.ask()
    tape.do("look", look)


def batches_of_the_cautious(tape: StudyTape) -> None:
    """Nothing is known yet, and more is asked for; later every trial under way may be one crash of the budget."""
    tape.new(SQUARE, ["load"], risk=crashbo.Budget(4, trials=25))
    first = [tape.ask() for _ in range(3)]
    for trial in first:
        tape.tell(trial, **machines.press(trial["params"]))
    for n in (2, 5, 3):
        for trial in tape.ask_batch(n)[1:]:
            tape.tell(trial, **machines.press(trial["params"]))
    tape.do("look", look)


def second_thoughts(tape: StudyTape) -> None:
    """Voids, corrections, and trials that nobody proposed."""
    tape.new(SQUARE, ["load"], seed=4)
    tape.tell({"x": 0.1, "y": 0.2}, **machines.press({"x": 0.1, "y": 0.2}))
    for i in range(12):
        trial = tape.ask()
        said = {"void": "unplugged"} if i % 5 == 2 else machines.press(trial["params"])
        tape.tell(trial, **said)
        if i % 4 == 3:
            tape.tell(trial["number"] - 1, crash="seen again on film", replace=True)
            tape.tell({"x": 0.07 * i, "y": 0.5}, **machines.press({"x": 0.07 * i, "y": 0.5}))
    tape.tell(0, void=True, replace=True)
    tape.tell(3, cost=0.4, measured={"load": 0.9}, replace=True)
    trial = tape.ask()
    tape.tell(trial, crash="fuse", measured={"load": 1.25}, censored=True, blame="load")
    tape.do("tell", lambda s: refusal(lambda: s.tell(trial["number"], cost=1.0)))
    tape.do("look", look)


def contradictions(tape: StudyTape) -> None:
    """The same setting succeeds and crashes; a success beyond the known threshold; a cost beyond all others."""
    tape.new(SQUARE, [crashbo.Constraint("load", 1.1), "heat"], noise=0.05)
    for i in range(10):
        trial = tape.ask()
        params = trial["params"]
        tape.tell(trial, **machines.press(params))
        if i % 3 == 1:
            tape.tell(params, crash="again")
            tape.tell(params, cost=1e4 if i == 4 else 0.5, measured={"load": params["x"] + params["y"], "heat": 1.0})
    tape.do("look", look)


def confirmed(tape: StudyTape) -> None:
    """Repeats of the best, one of them void, and of a given setting, while start points wait."""
    tape.new(SQUARE, ["load"], start=[{"x": 0.5, "y": 0.5}, {"x": 0.2, "y": 0.9}], seed=1)
    tape.tell({"x": 0.4, "y": 0.4}, **machines.press({"x": 0.4, "y": 0.4}))
    tape.do("confirm", lambda s: report(s.confirm(1)))
    go_on(tape, machines.press, 8)
    tape.do("confirm", lambda s: report(s.confirm(3)))
    trial = tape.ask()
    tape.tell(trial, void="knocked over")
    tape.do("confirm", lambda s: report(s.confirm(2, {"x": 0.3, "y": 0.3})))
    for i in range(7):
        trial = tape.ask()
        cost = 0.1 + 0.01 * i
        tape.tell(trial, **({"crash": True} if i == 1 else {"cost": cost, "measured": {"load": 0.8}}))
    tape.do("look", look)


def report(confirmation: Any) -> list[Any]:
    return [confirmation.params, confirmation.n, len(confirmation.trials), confirmation.done]


def refusal(act: Callable[[], Any]) -> str:
    """The error message."""
    try:
        act()
    except ValueError as error:
        return str(error)
    raise AssertionError("it must be refused")


def told_beforehand(tape: StudyTape, problem: str, count: int) -> Outcome:
    """A study that begins with old trials; returns its machine."""
    study = on(problem, 0)
    low, high = np.array([[p.low, p.high] for p in study.space.values()]).T
    points = np.random.default_rng(count).uniform(low, high, (count, len(low)))
    others = [dict(zip(study.space, map(float, x), strict=True)) for x in points]
    told = [(params, study.machine(params)) for params in others]
    tape.new(study.space, study.constraints)
    tape.do("tell all", lambda s: len([s.tell(params, **said) for params, said in told]))
    return study.machine


def held(tape: StudyTape) -> None:
    """After 30 and after 60 trials: hyperparameters are held, then learnt again; local ascents are shorter."""
    machine = told_beforehand(tape, "eggcrate2d", 26)
    go_on(tape, machine, 42)
    tape.tell(30, void="a correction makes memory old", replace=True)
    go_on(tape, machine, 2)
    tape.do("look", look)


def many(tape: StudyTape) -> None:
    """After 300 trials: the shortest local ascents, and hyperparameters that count as known."""
    machine = told_beforehand(tape, "gardner1", 299)
    go_on(tape, machine, 3)
    for trial in tape.ask_batch(2):
        tape.tell(trial, **machine(trial["params"]))


HISTORIES: dict[str, History] = {
    **{name: partial(play, plain) for name, plain in PLAIN.items()},
    **{f"strategy-{name}": partial(by_strategy, name) for name in crashbo.strategies.names()},
    "fixed": fixed,
    "bounds": bounds,
    "other-mind": other_mind,
    "batches": batches,
    "batches-budget": batches_of_the_cautious,
    "second-thoughts": second_thoughts,
    "contradictions": contradictions,
    "confirm": confirmed,
    "held": held,
    "many": many,
}
