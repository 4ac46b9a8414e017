"""Uniformly random points: the baseline below all others.

May import search and below.
"""

import numpy as np

from crashbo.strategies.base import Proposal, Task


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """A point drawn evenly from the space."""
    return Proposal(task.space.uniform(rng.random((1, task.space.dimension)))[0])
