"""Random search: uniform over the space, and on a list never the same setting twice.

May import the public API, `problems` and `campaigns`.
"""

import numpy as np

from crashbo import Float, Study
from crashbo.benchmark.machine import Machine
from crashbo.benchmark.methods.base import Method

_DRAWS = 1000  # of settings that were all tried before: then there are none left


def run(machine: Machine) -> None:
    """The start, then draws."""
    space = Study.of(machine.space, rules=machine.rules).space
    is_list = not any(isinstance(p, Float) for p in machine.space.values())
    rng, tried = np.random.default_rng(machine.seed), set[str]()
    while machine.left:
        params = machine.start if machine.start is not None and not machine.tried else None
        for _ in range(_DRAWS):
            params = params or space.decode(space.uniform(rng.random((1, space.dimension)))[0])
            if not (is_list and repr(params) in tried):
                break
            params = None
        if params is None:
            return
        machine(params)
        tried.add(repr(params))


METHODS = (Method("random", "Random", run, pace=0.0003),)
