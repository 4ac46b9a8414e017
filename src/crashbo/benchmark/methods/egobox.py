"""EGObox: efficient global optimisation, with a second model of where evaluations fail.

May import the public API, `problems` and `campaigns`.

What is followed (egobox 1.0, its docstrings, its cookbook's recipe 8 "Objective May Crash", and the source):
- A crash is NaN, and the failsafe strategy VIABILITY: a GP of 1 and 0 for success and failure. EI is weighted by what
  that predicts (EFI_P), which is no default: the default, log EI, takes no weights.
- With more than 24 columns its lengthscales are fitted from one start instead of ten: among a hundred options a
  suggestion would take half a minute. Its own remedy, a projection (KPLS), panics where an option was never tried.
- All other settings are the library's. A Float goes in as its place between the bounds, on a log scale where it has
  one, and so does an Int with a log scale; any other is INT. A Choice is ENUM, its index.
- `suggest` knows of no failures, so `minimize` runs the trials. It begins with those before, which it reads from a file
  (`warm_start`), as it writes them, with a column for each option: 1.0 cannot take a Choice by `x_doe`.
- First its own Latin hypercube, with one point more than there are parameters and at least five, as is documented; the
  code counts each option as a parameter, which would be more than all trials. The start stands in for a point.
- Without a success `minimize` refuses; it ends when a fit fails, and when it picks a point twice. As long as trials are
  left, it gets one more point of another hypercube, and begins again.
- It ends after ten minutes, with what it has: in 60 parameters the last of 180 suggestions take minutes each.
- Rules are not told to it: who breaks one crashes.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import egobox
import numpy as np

from crashbo import Choice, Float, Int
from crashbo.benchmark.machine import Machine
from crashbo.benchmark.methods.base import Method, option_index

_MANY = 24  # columns from which its models are fitted from one start
_FIRST = 5  # points of the design, at least
_PATIENCE = 600.0  # seconds of a run
_SETTINGS = {"RAYON_NUM_THREADS": "1", "EGOBOX_LOG": "off"}  # one core; it would log that the trials are used up
_APART = 1009  # judgement: designs of seeds next to one another would be the same ones, one later


class EgoboxTrials:
    """The trials as EGObox knows them: points, and costs that are NaN after a crash."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.points: list[list[float]] = []
        self.costs: list[float] = []
        self.error: BaseException | None = None  # of a trial; for EGObox it would be one more crash

    def __call__(self, X: Any) -> Any:
        """Try points, for EGObox."""
        try:
            return np.array([[self.add(x.tolist())] for x in X])
        except BaseException as error:
            self.error = error
            raise

    def add(self, x: list[float]) -> float:
        """Try a point."""
        named = zip(self.machine.space.items(), x, strict=True)
        cost = self.machine({name: _outward(p, v) for (name, p), v in named}).cost
        self.points.append(x)
        self.costs.append(np.nan if cost is None else cost)
        return self.costs[-1]

    def save(self, path: Path) -> None:
        """As EGObox saves them: a column for each option."""
        columns = [
            np.eye(len(p.options))[np.asarray(column, int)] if isinstance(p, Choice) else column
            for p, column in zip(self.machine.space.values(), zip(*self.points, strict=True), strict=True)
        ]
        np.save(path, np.column_stack([*columns, self.costs]))


def run(machine: Machine) -> None:
    """A design, and then what EGObox picks; one more point of a design whenever it ends before its time."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)  # which are read when the library first looks
    told, ends = EgoboxTrials(machine), time.monotonic() + _PATIENCE
    size = max(_FIRST, len(machine.space) + 1)
    with _interruptible():
        for turn, x in enumerate(_design(machine, size), start=1):
            told.add(x)
            if machine.left and turn >= size and np.isfinite(told.costs).sum() > 1:
                minimize(told, machine.seed * _APART + turn, ends - time.monotonic())
            if not machine.left or time.monotonic() > ends:
                return


def minimize(told: EgoboxTrials, seed: int, seconds: float) -> None:
    """Let EGObox go on from the trials so far, until it ends or the time is over."""
    egor = egobox.Egor(
        _specs(told.machine),
        gp_config=egobox.GpConfig(theta_n_start=1) if _columns(told.machine) > _MANY else None,
        failsafe_strategy=egobox.FailsafeStrategy.VIABILITY,
        feasible_infill_strategy=egobox.FeasibleInfillStrategy.EFI_P,
        infill_strategy=egobox.InfillStrategy.EI,
    )
    with TemporaryDirectory() as folder:
        told.save(Path(folder) / "egor_doe.npy")
        try:
            egor.minimize(
                told,
                max_iters=told.machine.left,
                outdir=folder,
                warm_start=True,
                seed=seed,
                timeout=seconds,
                stop_on_error=True,
            )
        except BaseException as error:
            if told.error is None and type(error).__name__ not in ("RuntimeError", "PanicException"):
                raise
    if told.error is not None:
        raise told.error


def _design(machine: Machine, size: int) -> Iterator[list[float]]:
    """Latin hypercubes without end, after the start."""
    if machine.start is not None:
        yield [_inward(p, machine.start[name]) for name, p in machine.space.items()]
    for turn in count():
        yield from egobox.lhs(_specs(machine), size, seed=machine.seed * _APART + turn).tolist()


def _columns(machine: Machine) -> int:
    return sum(len(p.options) if isinstance(p, Choice) else 1 for p in machine.space.values())


def _specs(machine: Machine) -> list[Any]:
    return [_spec(p) for p in machine.space.values()]


def _spec(p: Float | Int | Choice) -> Any:
    if isinstance(p, Choice):
        return egobox.XSpec(egobox.XType.ENUM, [len(p.options)])
    if isinstance(p, Int) and not p.log:
        return egobox.XSpec(egobox.XType.INT, [p.low, p.high])
    return egobox.XSpec(egobox.XType.FLOAT, [0, 1])


def _inward(p: Float | Int | Choice, value: Any) -> float:
    if isinstance(p, Choice):
        return option_index(p, value)
    return value if isinstance(p, Int) and not p.log else p.encode(value)[0]


def _outward(p: Float | Int | Choice, v: float) -> Any:
    if isinstance(p, Choice):
        return p.options[round(v)]
    return round(v) if isinstance(p, Int) and not p.log else p.decode(np.array([v]))


@contextmanager
def _interruptible() -> Iterator[None]:
    """With Python's own answer to Ctrl-C, which EGObox takes away for good."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


METHODS = (Method("egobox", "EGObox", run, libraries=("egobox",), pace=0.1),)
