"""Uniformly random points: the baseline below all others.

May import search and below.
"""

import numpy as np

from crashbo.strategies.base import Proposal, Task

_TRIES = 256  # judgement: points in a row that may lie in dead ends


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """A point drawn evenly from the space, without its dead ends."""
    for _ in range(_TRIES):
        x = task.space.uniform(rng.random((1, task.space.dimension)))
        if not task.dead_ends.hold(x)[0]:
            return Proposal(x[0])
    return Proposal(rng.choice(task.dead_ends.others))
