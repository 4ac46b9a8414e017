"""The methods of the paper's comparison, and a few more, with their settings on each problem.

May import the public API and `problems`.
"""

from dataclasses import dataclass
from typing import Literal

import crashbo
from crashbo import strategies
from crashbo.problems import Problem
from crashbo.strategies import Strategy

# The authors' penalties for HC, on our cost scales.
_HIGH_COSTS = {"michalewicz10d": 10.0, "hartmann6d": 0.1, "eggcrate2d": 98.0, "eggcrate2d-corner": 98.0}
_SAFEOPT_SCALE = 2.0  # the authors' prior standard deviation of g, which lies between -1 and 1


@dataclass(frozen=True)
class PaperMethod:
    """One method of the comparison.

    Attributes:
        name: on the command line.
        label: in tables and figures.
        strategy: as Optimizer takes it.
        risk: as Optimizer takes it.
        posterior: as Optimizer takes it.
        informed: whether it gets the privileged view of the problem.
        learns: whether its learnt thresholds are reported.
    """

    name: str
    label: str
    strategy: str
    risk: str | None = None
    posterior: Literal["map", "marginal"] = "marginal"
    informed: bool = False
    learns: bool = False

    def view(self, problem: Problem) -> Problem:
        """The problem as this method sees it."""
        return problem.informed() if self.informed else problem

    def strategy_on(self, problem: Problem) -> str | Strategy:
        """The strategy, with the authors' settings if they gave any for the problem."""
        if self.strategy == "ei-hc":
            return strategies.HighCost(_HIGH_COSTS.get(problem.name))
        if self.strategy == "safeopt" and problem.name in _HIGH_COSTS:
            return strategies.SafeOpt(scale=_SAFEOPT_SCALE)
        return self.strategy

    def refusal(self, problem: Problem) -> str | None:
        """Why the method cannot run on the problem; None if it can."""
        view = self.view(problem)
        try:
            crashbo.Optimizer(view.space, view.constraints, strategy=self.strategy_on(view), risk=self.risk)
        except ValueError as reason:
            return str(reason)
        return None


METHODS: dict[str, PaperMethod] = {
    method.name: method
    for method in (
        PaperMethod("eicc", "EIC², our risk", "eicc", learns=True),
        PaperMethod("eicc-paper", "EIC², paper's rule", "eicc", risk="paper", posterior="map", learns=True),
        PaperMethod("ei-mc", "MC + EI", "ei-mc"),
        PaperMethod("ei-hc", "HC + EI", "ei-hc"),
        PaperMethod("ei-ac", "AC + EI", "ei-ac"),
        PaperMethod("pibu", "PIBU", "pibu"),
        PaperMethod("eic", "EIC (informed)", "eic", informed=True),
        PaperMethod("safeopt", "SafeOpt (informed)", "safeopt", informed=True),
        PaperMethod("eic-classifier", "EI x classifier", "eic-classifier"),
        PaperMethod("floor-padding", "Floor padding", "floor-padding"),
        PaperMethod("random", "Random", "random"),
        PaperMethod("sobol", "Sobol", "sobol"),
    )
}

PROBLEMS = ("michalewicz10d", "hartmann6d", "eggcrate2d")  # in the paper's order
