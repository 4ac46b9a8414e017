"""EIC: expected improvement with constraints, the paper's privileged baseline (Gelbart et al., 2014; eq. 2).

May import search and below.

Constraints are plain GPs with known thresholds, and are measured in crashes, too. Otherwise it is EIC^2 by the paper's
rule.
"""

from dataclasses import dataclass, replace

import numpy as np

from crashbo.models.ensemble import Ensemble
from crashbo.search.observations import GivenThreshold
from crashbo.search.risk import Paper
from crashbo.search.space import Space
from crashbo.strategies import eicc, informed
from crashbo.strategies.base import Proposal, Task


@dataclass(frozen=True)
class Eic:
    """EI x P(safe) with known thresholds and measured crashes."""

    def check(self, space: Space, thresholds: tuple[GivenThreshold, ...]) -> None:
        """Refuse unknown thresholds."""
        informed.check_thresholds("eic", thresholds)

    def __call__(self, task: Task, rng: np.random.Generator) -> Proposal:
        """The point that maximises EI x P(safe)."""
        informed.check_measurements("eic", task.seen)
        models = replace(task.surrogates, ensemble=Ensemble.of(informed.regressions(task.seen)))
        return eicc.propose(replace(task, risk=Paper(), fitted=models), rng)
