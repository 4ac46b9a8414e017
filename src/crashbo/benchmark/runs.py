"""One run: a method on a case, and its record.

May import the public API, `problems` and `campaigns`.

A run depends only on its `Spec`: all methods get the same start and the same stream of noise, and none is told the
noise or a threshold.
"""

import subprocess
import time
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

import crashbo
from crashbo import Space
from crashbo.benchmark import measures, methods
from crashbo.benchmark.cases import Case
from crashbo.benchmark.machine import Finished, Machine
from crashbo.benchmark.measures import Array, Flags
from crashbo.problems import Problem

_DIGITS = 6  # of a coordinate that is kept


@dataclass(frozen=True)
class Spec:
    """Identifies a run."""

    method: str
    case: Case
    trials: int

    def __str__(self) -> str:
        return f"{self.method} on {self.case}"


@dataclass(frozen=True)
class Run:
    """The record of a run; sequences have one entry per trial that was made."""

    spec: Spec
    costs: tuple[float | None, ...]  # as observed; None where it crashed
    truths: tuple[float | None, ...]  # without noise; None where it crashed
    wasted: tuple[bool, ...]
    suggesting: tuple[float, ...]  # seconds
    points: tuple[tuple[float, ...], ...]  # in the unit cube
    optimum: float
    median: float  # safe cost
    noise: float  # of the cost
    measured: bool  # whether a cause of crashes is measured
    started: bool  # whether a safe start was given
    error: str | None  # why the method ended before its time
    seconds: float
    versions: dict[str, str]  # of crashbo, and of the libraries that the method needs
    target: float | None = None  # the true cost at which the run has reached its end

    @property
    def regret(self) -> Array:
        """Normalised, after each trial of the spec: one that was not made changes nothing."""
        found = measures.normalised_regret(measures.incumbents(self.costs, self.truths), self.optimum, self.median)
        return self._held(found, np.nan)

    @property
    def crashes(self) -> Array:
        """Crashes up to each trial of the spec."""
        return self._held(np.cumsum([cost is None for cost in self.costs]).astype(float), 0.0)

    @property
    def score(self) -> Array:
        """Normalised regret between zero and one, after each trial of the spec."""
        return measures.score(self.regret)

    def over_price(self, price: float) -> float:
        """Mean score while as much is paid as there are trials, a crash costing so many of them."""
        return measures.over_price(self.score, np.array([cost is None for cost in self.costs], dtype=bool), price)

    def solved(self, regret: float) -> Flags:
        """Whether it is solved after each trial of the spec: at the target, or to a normalised regret without one."""
        if self.target is None:
            return np.logical_or.accumulate(self.score <= regret)
        reached = np.array([truth is not None and truth <= self.target for truth in self.truths], dtype=bool)
        return self._held(np.logical_or.accumulate(reached), False).astype(bool)

    @property
    def has_arrived(self) -> bool:
        """Whether it ended at its target."""
        return self.target is not None and bool(self.solved(0.0)[-1])

    def _held(self, values: Array, none: float) -> Array:
        missing = self.spec.trials - len(values)
        return np.concatenate([values, np.full(missing, values[-1] if len(values) else none)])


def execute(spec: Spec) -> Run:
    """Execute a run. A method that fails keeps what it had found."""
    method, problem = methods.get(spec.method), spec.case.make()
    machine = Machine(problem, spec.trials, spec.case.seed, informed=method.informed)
    error, since = None, time.perf_counter()
    try:
        method.run(machine)
    except Finished:
        pass
    except Exception as failure:
        error = " ".join(f"{type(failure).__name__}: {failure}".split())
    return record(spec, problem, machine, error, round(time.perf_counter() - since, 3))


def versions_of(method: str) -> dict[str, str]:
    """Versions of all that a method's results depend on."""
    libraries = ("numpy", "scipy", *methods.get(method).libraries)
    return {"Python": python_version(), "crashbo": _ours()} | {name: version(name) for name in libraries}


@cache
def _ours() -> str:
    """Our version and, in a git checkout, the commit; with a plus if there are changes besides."""
    source = Path(__file__).parents[1]

    def git(*words: str) -> str:
        command = ["git", "-C", str(source), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if not git("ls-files", "__init__.py"):  # a checkout, but not of crashbo: an environment may lie in any
            return crashbo.__version__
        commit = git("rev-parse", "--short", "HEAD")
        return f"{crashbo.__version__} at {commit}{'+' if git('status', '--porcelain', '.') else ''}"
    except (OSError, subprocess.CalledProcessError):
        return crashbo.__version__


def record(spec: Spec, problem: Problem, machine: Machine, error: str | None, seconds: float) -> Run:
    """What is kept of a machine's trials."""
    assert problem.constrained_minimum is not None
    assert problem.median_safe_cost is not None
    space = Space.of(problem.space)
    points = np.array([space.encode(t.params) for t in machine.tried]).reshape(-1, space.dimension)
    costs = tuple(t.cost for t in machine.tried)
    optimum, median = problem.constrained_minimum, problem.median_safe_cost
    return Run(
        spec=spec,
        costs=costs,
        truths=tuple(None if t.cost is None else problem.truth(t.params).cost for t in machine.tried),
        wasted=tuple(map(bool, measures.wasted(points, costs, problem.cost_noise, median - optimum))),
        suggesting=tuple(round(t.seconds, 5) for t in machine.tried),
        points=tuple(tuple(round(float(x), _DIGITS) for x in row) for row in points),
        optimum=optimum,
        median=median,
        noise=problem.cost_noise,
        measured=any(np.isfinite(limit.threshold) for limit in problem.limits),
        started=problem.start is not None,
        error=error,
        seconds=seconds,
        versions=versions_of(spec.method),
        target=None if problem.published is None else problem.published.target,
    )


def lost(spec: Spec, why: str) -> Run:
    """The record of a run whose process died: nothing is known of its trials."""
    problem = spec.case.make()
    return record(spec, problem, Machine(problem, spec.trials, spec.case.seed), why, 0.0)


def plain(run: Run) -> dict[str, Any]:
    """A run as plain values."""
    return {**vars(run), "spec": {**vars(run.spec), "case": vars(run.spec.case)}}


def revived(saved: dict[str, Any]) -> Run:
    """A run from plain values."""
    spec = Spec(**{**saved["spec"], "case": Case(**saved["spec"]["case"])})
    rows = {key: tuple(saved[key]) for key in ("costs", "truths", "wasted", "suggesting")}
    return Run(**{**saved, **rows, "spec": spec, "points": tuple(map(tuple, saved["points"]))})
