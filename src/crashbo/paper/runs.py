"""One run: a method on a problem, from one safe start, and its record.

May import the public API and `problems`.

Regret is defined as in the paper: the noise-free cost at the trial with the best observed cost, minus the problem's
unconstrained minimum. A run depends only on its `Spec`: within a repeat all methods get the same start and the same
stream of noise, and none is told the noise or the threshold unless the spec says so.
"""

import time
import warnings
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

import crashbo
from crashbo import Result, Space, problems
from crashbo.paper.methods import METHODS
from crashbo.problems import Problem


@dataclass(frozen=True)
class PaperSpec:
    """Identifies a run."""

    method: str
    problem: str
    repeat: int
    trials: int
    known_noise: bool = False  # as in the paper, whose models know the noise

    def __str__(self) -> str:
        return f"{self.method} on {self.problem}, repeat {self.repeat}"


@dataclass(frozen=True)
class PaperRun:
    """The record of a run; sequences have one entry per trial."""

    spec: PaperSpec
    regret: tuple[float | None, ...]  # after each trial; None before the first success
    crashed: tuple[bool, ...]
    reach: float  # mean distance from the start, as a share of the unit cube's diagonal
    thresholds: dict[str, float | None]  # learnt thresholds, by constraint
    seconds: float
    version: str = crashbo.__version__

    @property
    def safe(self) -> float:
        """Safe trials in percent."""
        return 100.0 * (1.0 - float(np.mean(self.crashed)))


def execute(spec: PaperSpec) -> PaperRun:
    """Execute a run."""
    method, problem = METHODS[spec.method], problems.get(spec.problem)
    view = method.view(problem)
    rng = np.random.default_rng([spec.repeat, zlib.crc32(spec.problem.encode())])
    start = problem.start or problem.safe_start(rng)
    since = time.perf_counter()
    with warnings.catch_warnings():
        # Noise alone often puts a success's reading beyond a threshold that an informed method knows.
        warnings.filterwarnings("ignore", message=".*beyond its known threshold", category=RuntimeWarning)
        warnings.filterwarnings("ignore", message=".*did not converge", category=RuntimeWarning)
        result = crashbo.minimize(
            lambda params: view.evaluate(params, rng),
            view.space,
            constraints=view.constraints,
            trials=spec.trials,
            seed=spec.repeat,
            strategy=method.strategy_on(view),
            risk=method.risk,
            posterior=method.posterior,
            start=[start],
            rules=list(problem.rules),
            noise=problem.noise if spec.known_noise else None,
            progress=False,
        )
        thresholds = {name: c.value for name, c in result.thresholds.items()} if method.learns else {}
    return PaperRun(
        spec=spec,
        regret=_regrets(result, problem),
        crashed=tuple(t.state == "crash" for t in result.trials),
        reach=_reach(result, problem),
        thresholds=thresholds,
        seconds=round(time.perf_counter() - since, 3),
    )


def _regrets(result: Result, problem: Problem) -> tuple[float | None, ...]:
    """Regret after each trial."""
    regrets: list[float | None] = []
    best, regret = np.inf, None
    for trial in result.trials:
        if trial.cost is not None and trial.cost < best:
            best, regret = trial.cost, problem.truth(trial.params).cost - problem.minimum
        regrets.append(regret)
    return tuple(regrets)


def _reach(result: Result, problem: Problem) -> float:
    space = Space.of(problem.space)
    X = np.array([space.encode(t.params) for t in result.trials])
    return float(np.mean(np.linalg.norm(X - X[0], axis=1)) / np.sqrt(X.shape[1]))


def plain(run: PaperRun) -> dict[str, Any]:
    """A run as plain values."""
    return {**vars(run), "spec": vars(run.spec)}


def revived(saved: dict[str, Any]) -> PaperRun:
    """A run from plain values."""
    values = {**saved, "spec": PaperSpec(**saved["spec"])}
    return PaperRun(**{**values, "regret": tuple(saved["regret"]), "crashed": tuple(saved["crashed"])})
