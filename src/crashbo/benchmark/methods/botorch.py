"""BoTorch: log EI times the probability of success.

May import the public API, `problems` and `campaigns`.

What is followed (BoTorch 0.18, its docstrings, and its notebook "BO with Binary Black-box Constraint",
notebooks_community/clf_constrained_bo, which is about crashes):
- `SingleTaskGP` of the cost, on successes, with its defaults: an RBF kernel with dimension-scaled priors, learnt
  noise, and `Standardize`. Inputs lie in the unit cube, as its docstring wants them, so `Normalize` has nothing to do.
- The notebook's classifier of success or crash, on all trials: a variational GP with a Bernoulli likelihood and a
  scaled RBF kernel. A `SingleTaskGP` of labels 0 and 1 was tried: it fits every label exactly, with lengthscales
  below 0.1, and learns little from that.
- Log EI plus the log of the classifier's probability: the notebook's `qLogExpectedImprovement` with a constraint, in
  closed form. As long as nothing has crashed it is log EI alone.
- `optimize_acqf` with the notebook's 10 restarts of 512 raw samples. Where there is an Int or a Choice,
  `optimize_acqf_mixed_alternating` with as many. With a Choice, the cost has a `MixedSingleTaskGP`, and the
  classifier's kernel is a product with a `CategoricalKernel`.
- Five Sobol points first, the start in place of the first; Sobol goes on until there is a success. A fit that fails
  gives a Sobol point.
"""

import warnings
from functools import reduce
from operator import mul
from typing import Any

import numpy as np
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.exceptions.errors import BotorchError, ModelFittingError
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models.approximate_gp import SingleTaskVariationalGP
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.gp_regression_mixed import MixedSingleTaskGP
from botorch.models.kernels.categorical import CategoricalKernel
from botorch.optim.optimize import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from botorch.utils.sampling import manual_seed
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor
from torch.quasirandom import SobolEngine

from crashbo import Choice, Float, Int
from crashbo.benchmark.machine import Machine, Params
from crashbo.benchmark.methods.base import Method, option_index

_FIRST = 5
_RESTARTS, _RAW = 10, 512
_LISTED = 1000  # judgement: an Int with more values is optimised as if it were real, and rounded


class LogFeasibleImprovement(LogExpectedImprovement):
    """Log EI plus the log probability of success."""

    def __init__(self, cost: SingleTaskGP, success: SingleTaskVariationalGP, best: Tensor) -> None:
        super().__init__(cost, best_f=best, maximize=False)
        self.success = success

    def forward(self, X: Tensor) -> Tensor:
        """At X, (b, 1, d)."""
        latent = self.success.posterior(X)
        z = latent.mean / (1 + latent.variance).sqrt()  # of the probit likelihood, the latent value integrated out
        total: Tensor = super().forward(X) + torch.special.log_ndtr(z)[..., 0, 0]
        return total


def run(machine: Machine) -> None:
    """Sobol points, then those of the highest acquisition value."""
    torch.set_num_threads(1)
    space = list(machine.space.values())
    engine: Any = SobolEngine
    sobol = engine(len(space), scramble=True, seed=machine.seed)
    X: list[list[float]] = []
    costs: list[float | None] = []
    with manual_seed(machine.seed):
        while machine.left:
            x = None
            if len(X) >= _FIRST and any(cost is not None for cost in costs):
                x = suggest(machine, X, costs)
            if x is None:
                x = [_spread(p, float(u)) for p, u in zip(space, sobol.draw(1)[0], strict=True)]
            params: Params = {name: _outward(p, v) for (name, p), v in zip(machine.space.items(), x, strict=True)}
            if machine.start is not None and not X:
                params = machine.start
            costs.append(machine(params).cost)
            X.append([_inward(p, params[name]) for name, p in machine.space.items()])


def suggest(machine: Machine, X: list[list[float]], costs: list[float | None]) -> list[float] | None:
    """The point of the highest acquisition value; None if a model cannot be fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # of a fit that was tried again, for example
        warnings.simplefilter("ignore", NumericalWarning)  # of jitter
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)  # and is begun again
        try:
            found = _optimised(_acquisition(machine, X, costs), machine)
        except (BotorchError, ModelFittingError, RuntimeError, ValueError):
            return None
    return [float(v) for v in found] if bool(torch.isfinite(found).all()) else None


def _acquisition(machine: Machine, X: list[list[float]], costs: list[float | None]) -> Any:
    inputs = _tensor(X)
    succeeded = torch.tensor([cost is not None for cost in costs])
    y = _tensor([[cost] for cost in costs if cost is not None])
    objective = _fitted(machine, inputs[succeeded], y)
    if bool(succeeded.all()):
        return LogExpectedImprovement(objective, best_f=y.min(), maximize=False)
    return LogFeasibleImprovement(objective, _classifier(machine, inputs, succeeded), y.min())


def _fitted(machine: Machine, X: Tensor, y: Tensor) -> SingleTaskGP:
    choices = _choices(machine)
    model = MixedSingleTaskGP(X, y, cat_dims=choices) if choices else SingleTaskGP(X, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _classifier(machine: Machine, X: Tensor, succeeded: Tensor) -> SingleTaskVariationalGP:
    choices = _choices(machine)
    others = [i for i in range(len(machine.space)) if i not in choices]
    parts = [RBFKernel(active_dims=others)] if others else []
    parts += [CategoricalKernel(active_dims=choices)] if choices else []
    model = SingleTaskVariationalGP(
        X,
        succeeded.double().unsqueeze(-1),
        likelihood=BernoulliLikelihood(),
        covar_module=ScaleKernel(reduce(mul, parts)),
        inducing_points=X,
        learn_inducing_points=False,
    )
    fit_gpytorch_mll(VariationalELBO(model.likelihood, model.model, num_data=len(X)))
    model.eval()
    return model


def _choices(machine: Machine) -> list[int]:
    return [i for i, p in enumerate(machine.space.values()) if isinstance(p, Choice)]


def _optimised(acquisition: Any, machine: Machine) -> Tensor:
    """Where the acquisition is highest."""
    space = list(machine.space.values())
    bounds = _tensor([[0.0] * len(space), [_last(p) for p in space]])
    discrete = {i: _values(p) for i, p in enumerate(space) if isinstance(p, Int) and p.high - p.low < _LISTED}
    choices = {i: list(map(float, range(len(p.options)))) for i, p in enumerate(space) if isinstance(p, Choice)}
    if discrete or choices:
        found = optimize_acqf_mixed_alternating(
            acquisition, bounds, discrete_dims=discrete, cat_dims=choices, num_restarts=_RESTARTS, raw_samples=_RAW
        )
    else:
        found = optimize_acqf(acquisition, bounds, q=1, num_restarts=_RESTARTS, raw_samples=_RAW)
    point: Tensor = found[0][0]
    return point


def _tensor(rows: Any) -> Tensor:
    return torch.tensor(rows, dtype=torch.double)


def _last(p: Float | Int | Choice) -> float:
    return len(p.options) - 1.0 if isinstance(p, Choice) else 1.0


def _values(p: Int) -> list[float]:
    return [p.encode(value)[0] for value in range(p.low, p.high + 1)]


def _spread(p: Float | Int | Choice, u: float) -> float:
    """The coordinate of a parameter from a number in [0, 1), so that all values get the same share."""
    if isinstance(p, Choice):
        return float(int(u * len(p.options)))
    if isinstance(p, Int) and not p.log:
        return p.encode(p.low + int(u * (p.high - p.low + 1)))[0]
    return u


def _inward(p: Float | Int | Choice, value: Any) -> float:
    return float(option_index(p, value)) if isinstance(p, Choice) else p.encode(value)[0]


def _outward(p: Float | Int | Choice, v: float) -> Any:
    return p.options[round(v)] if isinstance(p, Choice) else p.decode(np.array([v]))


METHODS = (Method("botorch", "BoTorch", run, libraries=("botorch", "gpytorch", "torch"), pace=0.8),)
