"""Floor padding: EI where a crash costs as much as the worst success before it.

May import search and below.

Y. K. Wakabayashi, T. Otsuka, Y. Krockenberger, H. Sawada, Y. Taniyasu, H. Yamamoto, Bayesian optimization with
experimental failure for high-throughput materials growth, npj Computational Materials 8, 2022. Unlike with the
paper's adaptive penalty, a crash keeps the cost that it was given when it happened.
"""

import numpy as np

from crashbo.strategies import penalties
from crashbo.strategies.base import Proposal, Task


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """The point of highest EI; crashes before the first success cost as much as that success."""
    cost = task.seen.cost
    worst = np.fmax.accumulate(cost)
    first = cost[task.seen.costed][:1]
    return penalties.propose(task, np.where(np.isnan(worst), first if first.size else 0.0, worst), rng)
