"""A BoTorch loop for several goals with crashes: qLogNEHVI with a classifier of success as its constraint.

What is followed (BoTorch 0.18): its tutorial of constrained multi-objective BO (`SingleTaskGP` with `Standardize` per
goal in a `ModelListGP`, `prune_baseline`, inputs in the unit cube), its notebook of binary black-box constraints (a
variational GP with a Bernoulli likelihood), and its own `infer_reference_point`. Ten Sobol points first.
"""

import warnings
from typing import Any

import torch
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.fit import fit_gpytorch_mll
from botorch.models.approximate_gp import SingleTaskVariationalGP
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.model_list_gp_regression import ModelListGP
from botorch.models.transforms.outcome import Standardize
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from botorch.utils.sampling import manual_seed
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.mlls import VariationalELBO
from gpytorch.mlls.sum_marginal_log_likelihood import SumMarginalLogLikelihood
from torch import Tensor
from torch.quasirandom import SobolEngine

_FIRST, _SAMPLES, _RESTARTS, _RAW = 10, 128, 10, 512


class Feasible(qLogNoisyExpectedHypervolumeImprovement):
    """Log EHVI plus the log probability of success."""

    success: Any = None

    def forward(self, X: Tensor) -> Tensor:
        """At X, (b, 1, d)."""
        value: Tensor = super().forward(X)
        if self.success is None:
            return value
        latent = self.success.posterior(X)
        z = latent.mean / (1 + latent.variance).sqrt()
        return value + torch.special.log_ndtr(z)[..., 0, 0]


def run(machine: Any) -> None:
    """Sobol points, then those of the highest acquisition value."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.double)
    engine: Any = SobolEngine
    D = machine.problem.dimension
    sobol = engine(D, scramble=True, seed=machine.seed)
    X: list[list[float]] = []
    with manual_seed(machine.seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while machine.left:
            x = None
            if len(X) >= _FIRST and sum(v is not None for v in machine.values) >= 2:
                try:
                    x = _suggest(X, machine.values)
                except Exception:  # a fit that failed
                    x = None
            if x is None:
                x = sobol.draw(1)[0].tolist()
            machine(x)
            X.append(x)


def _suggest(X: list[list[float]], values: list[Any]) -> list[float]:
    inputs = torch.tensor(X)
    done = torch.tensor([v is not None for v in values])
    Y = -torch.tensor([v for v in values if v is not None])
    models = [SingleTaskGP(inputs[done], Y[:, j : j + 1], outcome_transform=Standardize(1)) for j in range(Y.shape[1])]
    model = ModelListGP(*models)
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    front = Y[is_non_dominated(Y)]
    acquisition = Feasible(
        model,
        infer_reference_point(front, scale=0.1) if len(front) > 1 else Y.min(dim=0).values,
        X_baseline=inputs[done],
        prune_baseline=True,
        sampler=SobolQMCNormalSampler(torch.Size([_SAMPLES])),
        objective=IdentityMCMultiOutputObjective(),
    )
    if not bool(done.all()):
        acquisition.success = _classifier(inputs, done)
    D = inputs.shape[1]
    bounds = torch.stack([torch.zeros(D), torch.ones(D)])
    found, _ = optimize_acqf(
        acquisition, bounds, q=1, num_restarts=_RESTARTS, raw_samples=_RAW, options={"batch_limit": 5, "maxiter": 200}
    )
    return [float(v) for v in found[0]]


def _classifier(X: Tensor, done: Tensor) -> SingleTaskVariationalGP:
    kernel = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1]))
    likelihood = BernoulliLikelihood()
    model = SingleTaskVariationalGP(
        X, done.double().unsqueeze(-1), likelihood=likelihood, covar_module=kernel, inducing_points=X
    )
    fit_gpytorch_mll(VariationalELBO(likelihood, model.model, num_data=len(X)))
    model.eval()
    return model
