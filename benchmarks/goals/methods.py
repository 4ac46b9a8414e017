"""The methods: each asks a machine for as many trials as it has left. A crash gives nothing but the fact."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from benchmarks.goals.problems import GoalProblem

import crashbo

Values = list[float] | None  # None of a crash


@dataclass
class Machine:
    """A problem that counts its trials."""

    problem: GoalProblem
    seed: int
    trials: int
    values: list[Values] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)  # seconds before each trial, its method's own
    _since: float = field(default_factory=time.process_time)

    def __call__(self, unit: Any) -> tuple[Values, list[float]]:
        """Goals of a point of the unit cube, None if it crashes; and what is measured."""
        self.asked.append(time.process_time() - self._since)
        low, high = np.array(self.problem.low), np.array(self.problem.high)
        goals, g = self.problem.evaluate(low + (high - low) * np.clip(np.asarray(unit, dtype=float), 0.0, 1.0))
        self.values.append(None if max(g) > 0.0 else [float(f) for f in goals])
        self._since = time.process_time()
        return self.values[-1], g

    @property
    def left(self) -> int:
        """Trials."""
        return self.trials - len(self.values)


def ours(machine: Machine, *, measured: bool) -> None:
    """crashbo, with what is measured in successes or with labels alone."""
    problem = machine.problem
    names = [f"x{i}" for i in range(problem.dimension)]
    goals = [f"f{j}" for j in range(len(problem.reference))]
    count = len(problem.evaluate(np.array(problem.low) + 1e-3)[1]) if measured else 0
    constraints = [f"g{j}" for j in range(count)]

    def experiment(params: dict[str, float]) -> crashbo.Outcome:
        values, g = machine([params[name] for name in names])
        if values is None:
            raise crashbo.Crash("failed")
        return crashbo.Outcome(dict(zip(goals, values, strict=True)), dict(zip(constraints, g, strict=False)))

    space = dict.fromkeys(names, (0.0, 1.0))
    directions: Any = dict.fromkeys(goals, "minimize")
    crashbo.minimize(
        experiment,
        space,
        constraints=constraints or None,
        objectives=directions,
        trials=machine.trials,
        seed=machine.seed,
        progress=False,
    )


def optuna(machine: Machine, *, sampler: str, penalty: bool) -> None:
    """One of Optuna's samplers; a crash is FAIL, or gets the worst value of every goal so far."""
    import optuna as library

    library.logging.set_verbosity(library.logging.ERROR)
    kinds: dict[str, Callable[[], Any]] = {
        "nsga2": lambda: library.samplers.NSGAIISampler(seed=machine.seed, population_size=20),
        "tpe": lambda: library.samplers.TPESampler(seed=machine.seed, multivariate=True),
        "gp": lambda: library.samplers.GPSampler(seed=machine.seed),
    }
    study = library.create_study(directions=["minimize"] * len(machine.problem.reference), sampler=kinds[sampler]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while machine.left:
            trial = study.ask()
            values, _ = machine([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(machine.problem.dimension)])
            known = [v for v in machine.values if v is not None]
            if values is not None:
                study.tell(trial, values)
            elif penalty and known:
                study.tell(trial, np.max(known, axis=0).tolist())
            else:
                study.tell(trial, state=library.trial.TrialState.FAIL)


def botorch(machine: Machine) -> None:
    """qLogNEHVI times the probability of success by a variational GP classifier, as BoTorch's notebooks have both."""
    from benchmarks.goals.botorch_loop import run

    run(machine)


METHODS: dict[str, Callable[[Machine], None]] = {
    "crashbo": partial(ours, measured=True),
    "crashbo-labels": partial(ours, measured=False),
    **{f"{s}-fail": partial(optuna, sampler=s, penalty=False) for s in ("nsga2", "tpe", "gp")},
    **{f"{s}-worst": partial(optuna, sampler=s, penalty=True) for s in ("nsga2", "tpe", "gp")},
    "botorch": botorch,
}
