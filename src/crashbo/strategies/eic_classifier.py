"""EI times a GP classifier: labels inform P(safe), measurements are ignored.

May import search and below.

D. V. Lindberg, H. K. H. Lee, Optimization under constraints by applying an asymmetric entropy measure, J. Computational
and Graphical Statistics 24(2), 2015; J. Snoek, Bayesian optimization and semiparametric models with applications to
assistive technology, PhD thesis, 2013. Without measurements GPCR is a probit classifier, and EIC^2 by the paper's
rule is their method.
"""

from dataclasses import replace

import numpy as np

from crashbo.search.risk import Paper
from crashbo.strategies import eicc
from crashbo.strategies.base import Proposal, Task


def propose(task: Task, rng: np.random.Generator) -> Proposal:
    """The point that maximises EI x P(safe), with P(safe) from labels alone."""
    return eicc.propose(replace(task, seen=task.seen.labels_only(), memory=None, fitted=None, risk=Paper()), rng)
