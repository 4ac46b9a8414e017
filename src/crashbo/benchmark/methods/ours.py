"""Our own strategies, with what successes measure and without.

May import the public API, `problems` and `campaigns`.
"""

from functools import partial

import crashbo
from crashbo.benchmark.machine import Machine
from crashbo.benchmark.methods.base import Method


def run(machine: Machine, *, strategy: str = "eicc", risk: str | None = None, measures: bool = True) -> None:
    """Ask and tell. Neither the noise nor a threshold is told."""
    optimizer = crashbo.Optimizer(
        machine.space,
        machine.constraints if measures else [],
        strategy=strategy,
        risk=risk,
        posterior="map" if risk == "paper" else "marginal",
        start=[machine.existing(machine.start)] if machine.start is not None else None,
        rules=list(machine.rules),
        seed=machine.seed,
    )
    while machine.left:
        trial = optimizer.ask()
        reply = machine(trial.params)
        if reply.cost is None:
            optimizer.tell(trial, crash=True)
        else:
            optimizer.tell(trial, cost=reply.cost, measured=reply.measured if measures else {})


def _of_labels(name: str, label: str, pace: float) -> Method:
    """A strategy that has no use for measurements."""
    return Method(name, label, partial(run, strategy=name, measures=False), pace=pace)


_PAPER = partial(run, risk="paper")

METHODS = (
    Method("eicc", "crashbo", run, pace=0.035),
    Method("eicc-labels", "crashbo, labels only", partial(run, measures=False), pace=0.025),
    Method("eicc-paper", "EIC², paper's rule", _PAPER, pace=0.02),
    Method("eicc-paper-labels", "EIC², paper's rule, labels only", partial(_PAPER, measures=False), pace=0.02),
    _of_labels("eic-classifier", "EI x classifier", 0.02),
    _of_labels("ei-ac", "EI, adaptive penalty", 0.01),
    _of_labels("floor-padding", "EI, floor padding", 0.01),
    _of_labels("pibu", "PIBU", 0.03),
    _of_labels("sobol", "Sobol", 0.0005),
)
