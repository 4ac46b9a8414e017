"""Machines to tune, importable by worker processes."""

import os
from concurrent.futures import Executor, Future
from pathlib import Path

import crashbo
from deaths import wait_for

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
THRESHOLD = 1.2


def cost_of(params):
    return (params["x"] - 0.7) ** 2 + (params["y"] - 0.6) ** 2


def load_of(params):
    return params["x"] + params["y"]


def press(params):
    """Crashes where x + y > 1.2; the best safe point lies on that boundary."""
    if load_of(params) > THRESHOLD:
        raise crashbo.Crash("fuse", blame="load", measured={"load": load_of(params)})
    return crashbo.Outcome(cost_of(params), {"load": load_of(params)})


def telling(params):
    """The same as arguments of tell."""
    if load_of(params) > THRESHOLD:
        return {"crash": "fuse"}
    return {"cost": cost_of(params), "measured": {"load": load_of(params)}}


def run(optimizer, trials, outcome=telling):
    """Ask and tell, so many times; the params that were asked."""
    asked = []
    for _ in range(trials):
        trial = optimizer.ask()
        asked.append(trial.params)
        optimizer.tell(trial, **outcome(trial.params))
    return asked


class Together(Executor):
    """Runs at once, so that all of its futures end together."""

    def submit(self, function, *args):
        future = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class FirstWaitsForThree:
    """The first trial ends only after three others have ended; it notes if it waited in vain."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def __call__(self, params):
        try:
            os.close(os.open(self.folder / "first", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            (self.folder / f"ended-{params['x']}").touch()
            return params["x"]
        if wait_for(lambda: len(list(self.folder.glob("ended-*"))) >= 3):
            return 99.0
        raise crashbo.Void("the others did not go on")
