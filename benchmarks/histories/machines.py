"""Machines for the histories: from params to the arguments of `tell`. Each knows its truth, which no study is told."""

from collections.abc import Callable
from typing import Any

import numpy as np

import crashbo

Outcome = Callable[[dict[str, Any]], dict[str, Any]]

MIXED = {
    "gain": (-2.0, 3.0),
    "rate": crashbo.Float(1e-4, 1.0, log=True),
    "legs": crashbo.Int(1, 5),
    "mode": crashbo.Choice(["trot", "walk", "bound"]),
}
GRID = {"feet": crashbo.Choice([("left", "right"), ("left", "left"), "none"]), "size": crashbo.Int(1, 4)}
COUNTS = {"workers": crashbo.Int(1, 1000, log=True), "depth": crashbo.Int(-3, 12)}
SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def of_problem(problem: Any, seed: int = 0) -> Outcome:
    """One of crashbo's problems, with noise."""
    rng = np.random.default_rng(seed)

    def outcome(params: dict[str, Any]) -> dict[str, Any]:
        try:
            found = problem.evaluate(params, rng)
        except crashbo.Crash as crash:
            return {"crash": crash.reason, "measured": dict(crash.measured)}
        return {"cost": found.cost, "measured": dict(found.measured)}

    return outcome


def robot(params: dict[str, Any]) -> dict[str, Any]:
    """On the mixed space: a crash where the load is high."""
    load = params["gain"] + params["legs"]
    if load > 4.5:
        return {"crash": "boards tripped"}
    cost = (params["gain"] - 1.5) ** 2 + params["rate"] - 0.3 * params["legs"] + (params["mode"] != "walk")
    return {"cost": cost, "measured": {"load": load}}


def walker(params: dict[str, Any]) -> dict[str, Any]:
    """On the grid, whose options are tuples: crashes are only labels."""
    if params["feet"] == ["left", "left"] and params["size"] > 2:
        return {"crash": True}
    return {"cost": params["size"] ** 2 + (2.0 if params["feet"] == "none" else 0.0)}


def queue(params: dict[str, Any]) -> dict[str, Any]:
    """On the counts: memory runs out."""
    load = 0.02 * params["workers"] * (4 + params["depth"])
    if load > 60.0:
        return {"crash": "out of memory"}
    return {"cost": 100.0 / params["workers"] + (params["depth"] - 5) ** 2 / 10.0, "measured": {"memory": load}}


def labels(params: dict[str, Any]) -> dict[str, Any]:
    """On the square: nothing is measured."""
    if params["x"] + 0.5 * params["y"] > 1.05:
        return {"crash": "it fell"}
    return {"cost": (params["x"] - 0.9) ** 2 + (params["y"] - 0.4) ** 2}


def press(params: dict[str, Any]) -> dict[str, Any]:
    """On the square: the best safe point lies on the boundary."""
    load = params["x"] + params["y"]
    if load > 1.2:
        return {"crash": "fuse"}
    return {"cost": (params["x"] - 0.7) ** 2 + (params["y"] - 0.6) ** 2, "measured": {"load": load}}


def boiler(params: dict[str, Any]) -> dict[str, Any]:
    """On the square, with four causes: heat above 2.2, flow below 0.3, level between 0.9 and 1, and a lid.

    A crash by flow is blamed, one by heat has a reading cut off at the sensor's limit, the others report nothing.
    """
    x, y = params["x"], params["y"]
    heat, flow, level = 1.0 + x + y * y, 1.0 - 0.8 * x, abs(x - y) + 0.1
    measured = {"heat": heat, "flow": flow, "level": level}
    if flow < 0.3:
        return {"crash": "dry", "blame": "flow", "measured": {"flow": flow}}
    if heat > 2.2:
        return {"crash": "hot", "measured": {"heat": min(heat, 2.3)}, "censored": ["heat"]}
    if level > 0.95 or (x - 0.2) ** 2 + (y - 0.8) ** 2 < 0.02:
        return {"crash": True}
    return {"cost": (x - 0.8) ** 2 + (y - 0.7) ** 2 + 0.1 * np.sin(9.0 * x), "measured": measured}


BOILER = [
    crashbo.Constraint("heat", (2.0, 2.6)),
    crashbo.Constraint("flow", 0.3, side="below"),
    crashbo.Constraint("level"),
    crashbo.Unmeasured("lid"),
]
BOILED = [
    {"x": 0.95, "y": 0.2},
    {"x": 0.8, "y": 0.9},
    {"x": 0.2, "y": 0.8},
    {"x": 0.05, "y": 0.98},
    {"x": 0.4, "y": 0.4},
]


def raised(outcome: Outcome) -> Callable[[dict[str, Any]], Any]:
    """The machine as an experiment of `minimize`: crashes are raised."""

    def experiment(params: dict[str, Any]) -> Any:
        said = outcome(params)
        if "cost" in said:
            return crashbo.Outcome(said["cost"], said.get("measured", {}))
        reason = said.pop("crash")
        raise crashbo.Crash(reason if isinstance(reason, str) else "", **said)

    return experiment
