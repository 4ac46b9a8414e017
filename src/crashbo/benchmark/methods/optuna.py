"""Optuna's samplers: TPE, GP and CMA-ES.

May import the public API, `problems` and `campaigns`.

What is followed (Optuna 5, docstrings of `optuna.samplers` and `Study.ask`):
- Samplers keep their defaults: TPE is multivariate (optuna/samplers/_tpe/sampler.py), TPE and GP begin with 10 random
  successes, CMA-ES with 1. A sampler counts successes only, so crashes lengthen that beginning.
- A crash is told as FAIL, Optuna's own state for it, which no sampler reads. The penalty variants tell the worst cost
  of a success so far; before the first success there is no number, so FAIL. Since a failure changes nothing, the GP
  sampler that finds its best point in a region of crashes asks for that point again and again. That is its own doing.
- The start is enqueued. CMA-ES does not learn from enqueued trials, so it also gets the start as its mean, `x0`.
- A parameter that does not always exist is suggested only where it does, define by run. A proposal that breaks a rule
  is told the worst cost so far, and costs no trial.
- A Choice is categorical. CMA-ES "does not support CategoricalDistribution" (optuna/samplers/_cmaes.py): its
  independent sampler draws that at random, and we take out the warning that says so.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, TPESampler
from optuna.trial import TrialState

from crashbo import Choice, Float, Int
from crashbo.benchmark.machine import Machine, Params
from crashbo.benchmark.methods.base import Method, by_index

_REFUSED = 100  # proposals in a row that break a rule, before one is run all the same
_SEEDS = 2**32  # NumPy's legacy generator, which Optuna uses, takes no more


def run(machine: Machine, *, sampler: Callable[[Machine], BaseSampler], penalty: bool = False) -> None:
    """Ask and tell, with distributions that are known before."""
    distributions = {name: _distribution(p) for name, p in machine.space.items()}
    worst: float | None = None
    refused = 0
    with _quiet():
        study = optuna.create_study(sampler=sampler(machine))
        if machine.start is not None:
            study.enqueue_trial(by_index(machine, machine.start))
        while machine.left:
            trial = _asked(study, machine, distributions)
            params = _outward(machine, trial.params)
            if machine.rules and not machine.allows(params) and refused < _REFUSED:
                refused += 1  # it costs no trial, and is told like a crash
                study.tell(trial, worst) if worst is not None else study.tell(trial, state=TrialState.FAIL)
                continue
            refused = 0
            reply = machine(params)
            if reply.cost is not None:
                worst = reply.cost if worst is None else max(worst, reply.cost)
                study.tell(trial, reply.cost)
            elif penalty and worst is not None:
                study.tell(trial, worst)
            else:
                study.tell(trial, state=TrialState.FAIL)


def tpe(machine: Machine) -> TPESampler:
    """Tree-structured Parzen estimators."""
    return TPESampler(seed=machine.seed % _SEEDS)


def gp(machine: Machine) -> GPSampler:
    """Gaussian process and log EI."""
    return GPSampler(seed=machine.seed % _SEEDS)


def cmaes(machine: Machine) -> CmaEsSampler:
    """CMA-ES."""
    x0 = None
    if machine.start is not None:
        x0 = {name: value for name, value in machine.start.items() if not isinstance(machine.space[name], Choice)}
    with warnings.catch_warnings():
        # Deprecated in 4.9, but the only way to say where the search begins.
        warnings.filterwarnings("ignore", "`x0` has been deprecated", FutureWarning)
        return CmaEsSampler(x0=x0 or None, seed=machine.seed % _SEEDS, warn_independent_sampling=False)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what Optuna logs of studies, trials and parameters that it draws alone, and what is experimental."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def _distribution(p: Float | Int | Choice) -> BaseDistribution:
    if isinstance(p, Choice):
        return CategoricalDistribution(range(len(p.options)))  # by index: Optuna warns of options that are no scalars
    if isinstance(p, Float):
        return FloatDistribution(p.low, p.high, log=p.log)
    return IntDistribution(p.low, p.high, log=p.log)


def _outward(machine: Machine, params: Params) -> dict[str, Any]:
    """From a trial's params to the machine's."""
    return {
        name: p.options[params[name]] if isinstance(p, Choice) else params[name]
        for name, p in machine.space.items()
        if name in params
    }


def _asked(study: optuna.Study, machine: Machine, distributions: dict[str, BaseDistribution]) -> optuna.Trial:
    """The next trial; of parameters that do not always exist, those that do, define by run."""
    if all(p.when is None for p in machine.space.values()):
        return study.ask(distributions)
    trial = study.ask({name: d for name, d in distributions.items() if machine.space[name].when is None})
    for name, d in distributions.items():
        when = machine.space[name].when
        if when and all(_outward(machine, trial.params).get(q) in values for q, values in when.items()):
            trial._suggest(name, d)
    return trial


def _pair(
    name: str, label: str, sampler: Callable[[Machine], BaseSampler], libraries: tuple[str, ...], pace: float
) -> tuple[Method, Method]:
    """A sampler that hears of crashes as failures, and one that hears of a penalty."""
    plain = Method(name, label, partial(run, sampler=sampler), libraries=libraries, pace=pace)
    penalised = partial(run, sampler=sampler, penalty=True)
    return plain, replace(plain, name=f"{name}-penalty", label=f"{label}, penalty", run=penalised)


METHODS = (
    *_pair("optuna-tpe", "Optuna TPE", tpe, ("optuna",), 0.001),
    *_pair("optuna-gp", "Optuna GP", gp, ("optuna", "torch"), 0.025),
    *_pair("optuna-cmaes", "Optuna CMA-ES", cmaes, ("optuna", "cmaes"), 0.001),
)
