"""Our own methods: the search of crashbo, the same with P(safe) held at one, and random trials."""

from dataclasses import replace
from typing import Any

import numpy as np
from judged import Judged

import crashbo
from crashbo.search.safety import Safety
from crashbo.strategies import Proposal, Task, eicc


class _AlwaysSafe(Safety):
    """P(safe) is one everywhere."""

    def __call__(self, X: Any) -> Any:
        return np.zeros(len(X))

    def with_gradient(self, X: Any) -> Any:
        return np.zeros(len(X)), np.zeros_like(X)


def reckless(task: Task, rng: np.random.Generator) -> Proposal:
    """The same search with P(safe) held at one."""
    safety = task.safety
    held = replace(task, fitted=task.surrogates)
    vars(held)["safety"] = _AlwaysSafe(safety.ensemble, safety.calibration)
    return eicc.propose(held, rng)


def ours(machine: Judged, trials: int, strategy: Any = "eicc", measures: bool = True, **options: Any) -> dict[str, Any]:
    """One study; every success is compared with the winner when it was asked."""
    problem = machine.problem
    constraints = problem.constraints if measures else None
    optimizer = crashbo.Optimizer(
        problem.space,
        constraints,
        cost="compared",
        strategy=strategy,
        seed=machine.seed,
        start=[machine.start],
        **options,
    )
    for number in range(trials):
        trial = optimizer.ask()
        measured = machine.run(trial.params)
        if measured is None:
            optimizer.tell(trial, crash=True)
            continue
        optimizer.tell(trial, success=True, measured=measured if measures else None)
        if trial.against is not None:
            better = machine.prefers(number, trial.against)
            optimizer.prefer(*((number, trial.against) if better else (trial.against, number)))
    recommended = optimizer.recommend()
    assert optimizer.best is not None
    return {"recommended": recommended and recommended.params, "best": optimizer.best.params}
