"""Sobol's sequence: points that fill the space evenly, whatever comes of them.

May import search and below.
"""

import copy

import numpy as np

from crashbo.search.candidates import is_taken
from crashbo.strategies.base import Proposal, Task

_TRIES = 256  # points in a row that may be taken: in a small space all are, sooner or later


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """The sequence's next point that was not tried; a study's generator scrambles it, and is not moved by that."""
    from scipy.stats import qmc  # only here: it is slow to import, and nothing else needs it

    taken = task.taken
    sequence = qmc.Sobol(task.space.dimension, rng=copy.deepcopy(rng))
    sequence.fast_forward(len(taken))
    for _ in range(_TRIES):
        x = task.space.uniform(sequence.random(1))
        if not is_taken(x, taken)[0]:
            break
    return Proposal(x[0])
