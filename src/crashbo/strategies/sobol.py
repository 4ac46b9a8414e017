"""Sobol's sequence: points that fill the space evenly, whatever their outcomes.

May import search and below.
"""

import copy

import numpy as np

from crashbo.search.candidates import is_taken
from crashbo.strategies.base import Proposal, Task

_TRIES = 256  # judgement: points in a row that may be taken, or in dead ends: in a small space all are, sooner or later


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """The sequence's next point that was not tried; a study's generator scrambles it, and is not moved by that."""
    from scipy.stats import qmc  # only here: it is slow to import, and nothing else needs it

    taken = task.taken
    seed = int(copy.deepcopy(rng).integers(2**63))  # of the generator's state alone, which is all that a study saves
    sequence = qmc.Sobol(task.space.dimension, rng=np.random.default_rng(seed))
    sequence.fast_forward(len(taken))
    for _ in range(_TRIES):
        x = task.space.uniform(sequence.random(1))
        if not (is_taken(x, taken) | task.dead_ends.hold(x))[0]:
            break
    return Proposal(task.dead_ends.clear(x)[0])
