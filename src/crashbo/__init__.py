"""crashbo: Bayesian optimisation that learns from crashes."""

import logging

from crashbo import models, problems, strategies
from crashbo.optimizer import stopping
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.guard import Guard
from crashbo.optimizer.journaled import journaled
from crashbo.optimizer.loading import load
from crashbo.optimizer.minimize import Result, minimize
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Comparison, Constraint, Crash, Outcome, Stopped, Trial, Unmeasured, Void
from crashbo.optimizer.study import Study
from crashbo.optimizer.view import Recommendation
from crashbo.search.risk import Budget, MinSafe, Price
from crashbo.search.space import Choice, Context, Float, Int, Space
from crashbo.version import __version__

__all__ = [
    "Budget",
    "Choice",
    "Comparison",
    "Constraint",
    "Context",
    "Crash",
    "Finding",
    "Float",
    "Guard",
    "Int",
    "MinSafe",
    "Optimizer",
    "Outcome",
    "Price",
    "Recommendation",
    "Result",
    "Space",
    "Stopped",
    "Study",
    "Trial",
    "Unmeasured",
    "Void",
    "__version__",
    "journaled",
    "load",
    "minimize",
    "models",
    "problems",
    "stopping",
    "strategies",
]

logging.getLogger("crashbo").addHandler(logging.NullHandler())  # silent, unless the user listens
