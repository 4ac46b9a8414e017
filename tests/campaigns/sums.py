"""A campaign of sums, for the machinery of campaigns; a module of its own, since workers import it."""

import os
import time
from dataclasses import dataclass

from crashbo.campaigns.run_log import RunLog


@dataclass(frozen=True)
class Sum:
    method: str
    left: int
    right: int = 1


@dataclass(frozen=True)
class Done:
    spec: Sum
    value: int | None


def execute(spec):
    if spec.method == "fatal":
        os._exit(3)
    if spec.method == "wrong":
        raise ZeroDivisionError("no such sum")
    if spec.method == "slow":
        time.sleep(60.0)
    return Done(spec, spec.left + spec.right)


def lost(spec, why):
    assert why
    return Done(spec, None)


def plain(done):
    return {"spec": vars(done.spec), "value": done.value}


def revived(saved):
    return Done(Sum(**saved["spec"]), saved["value"])


def log_in(folder):
    return RunLog(folder, plain, revived)
