"""SMAC3: Bayesian optimisation that takes a crash for the worst cost.

May import the public API, `problems` and `campaigns`.

What is followed (SMAC 2.4, docs/3_getting_started.md, docs/advanced_usage/5_ask_and_tell.md and the source):
- The black-box facade, which its table of facades gives for few parameters: a GP that is fitted anew for each trial,
  EI, a Sobol design of at most a quarter of the trials, 8 % random trials. All settings are the facade's.
- `deterministic=True`: each configuration is tried once. SMAC's way with noise is to repeat trials, which is a poor
  use of a few dozen; the facade's GP learns a noise all the same (`BlackBoxFacade.get_kernel`).
- A crash is told as CRASHED with the default `crash_cost`, infinity, as SMAC's own runner tells it. 2.4 hands that
  infinity to the model, whose fit then fails. So the encoder below does what SMAC itself does from pull request 1312
  on: for the model, a crash has the largest cost of a success so far. Before a success there is nothing to fit, and
  SMAC draws at random once its design is used up.
- The start is told before anything is asked, the documented way to hand in a trial of one's own; as an additional
  configuration of the design it would come after all others (`AbstractInitialDesign.select_configurations`).
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ConfigSpace
from smac import BlackBoxFacade, Scenario
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory import StatusType, TrialInfo, TrialKey, TrialValue
from smac.runhistory.encoder import RunHistoryEncoder

from crashbo import Choice, Float, Int
from crashbo.benchmark.machine import Machine, Reply
from crashbo.benchmark.methods.base import Method, by_index

_SEEDS = 2**31  # NumPy's legacy generator, which SMAC uses, takes few more
_ONLY_SEED = 0  # the first seed that is told is that of all trials (get_instance_seed_keys_of_interest)


class WorstOfSuccesses(RunHistoryEncoder):
    """For the model, a crash has the worst cost of a success so far."""

    def _get_considered_trials(self, budget_subset: list[Any] | None = None) -> dict[TrialKey, TrialValue]:
        trials = super()._get_considered_trials(budget_subset)
        costs = [value.cost for value in trials.values() if value.status == StatusType.SUCCESS]
        if not costs:
            return {}
        return {
            key: value if value.status == StatusType.SUCCESS else replace(value, cost=max(costs))
            for key, value in trials.items()
        }


def run(machine: Machine) -> None:
    """Ask and tell. SMAC ends by itself when a space of few points has no new ones."""
    with TemporaryDirectory() as directory, _quiet():
        facade = facade_of(machine, Path(directory))
        if machine.start is not None:
            config = ConfigSpace.Configuration(facade.scenario.configspace, by_index(machine, machine.start))
            _tell(facade, TrialInfo(config, seed=_ONLY_SEED), machine(machine.start))
        while machine.left:
            try:
                info = facade.ask()
            except (StopIteration, ConfigurationSpaceExhaustedException):
                return
            _tell(facade, info, machine(_outward(machine, info.config)))


def facade_of(machine: Machine, directory: Path) -> BlackBoxFacade:
    """SMAC with its own settings, and files in a directory that is thrown away."""
    space = ConfigSpace.ConfigurationSpace()
    space.add([_hyperparameter(name, p) for name, p in machine.space.items()])
    scenario = Scenario(
        space,
        output_directory=directory,
        deterministic=True,
        n_trials=machine.trials,
        seed=machine.seed % _SEEDS,
    )
    return BlackBoxFacade(scenario, runhistory_encoder=WorstOfSuccesses(scenario), logging_level=False)


def _tell(facade: BlackBoxFacade, info: TrialInfo, reply: Reply) -> None:
    if reply.cost is None:
        value = TrialValue(cost=facade.scenario.crash_cost, status=StatusType.CRASHED)
    else:
        value = TrialValue(cost=reply.cost)
    facade.tell(info, value, save=False)


def _hyperparameter(name: str, p: Float | Int | Choice) -> Any:
    if isinstance(p, Choice):
        return ConfigSpace.Categorical(name, list(range(len(p.options))))
    kind: Any = ConfigSpace.Float if isinstance(p, Float) else ConfigSpace.Integer
    return kind(name, (p.low, p.high), log=p.log)


def _outward(machine: Machine, config: Any) -> dict[str, Any]:
    return {
        name: p.options[int(config[name])]
        if isinstance(p, Choice)
        else (float if isinstance(p, Float) else int)(config[name])
        for name, p in machine.space.items()
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what SMAC logs."""
    logger = logging.getLogger("smac")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


METHODS = (Method("smac", "SMAC3", run, libraries=("smac", "ConfigSpace"), pace=0.7),)
