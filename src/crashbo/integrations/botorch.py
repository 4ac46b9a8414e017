"""BoTorch: a latent function of crashbo as a BoTorch model, for use with any of its acquisition functions.

May import optimizer and below, and torch, botorch and gpytorch.

Notation, as in models.latent:
    b, W     posterior at n trials: mean m + sqrt(a) k'b, covariance a (k(x, x') - k'W k'), W = F'F - R'R
    a, m     outputscale (a variance) and mean of the prior
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from crashbo.extras import Absent

try:
    import torch
    from botorch.models.model import Model
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from gpytorch.distributions import MultivariateNormal
    from torch import Tensor
except ModuleNotFoundError as error:
    raise Absent("crashbo.integrations.botorch", error.name, "botorch") from error

from crashbo.models.latent import Posterior
from crashbo.numerics.kernels import MATERN52
from crashbo.optimizer.optimizer import Optimizer

COST = "cost"
_LEAST = 1e-24  # of a squared distance: at zero the square root has no derivative, and the kernel's is zero
_JITTER = 1e-10  # relative to the prior variance, so that repeated points have a Cholesky factor


class HasPosterior(Protocol):
    """A GPCR, GP or CrashModel."""

    @property
    def posterior(self) -> Posterior:
        """Posterior of its latent functions."""


class GPCRModel(Model):
    """The posterior of one latent function, differentiable in X.

    It has the hyperparameters that crashbo learnt; nothing is trained in torch. X lies in the unit cube.

    Args:
        model: a `GPCR`, a `GP` (the cost, say), a `CrashModel`, or a posterior of theirs.
        output: which constraint of a CrashModel.
    """

    _trials: Tensor
    _lengthscales: Tensor
    _outputscale: Tensor
    _mean: Tensor
    _threshold: Tensor
    _crash_noise_std: Tensor
    _noise_var: Tensor
    _b: Tensor
    _F: Tensor
    _R: Tensor

    def __init__(self, model: HasPosterior | Posterior, output: int = 0) -> None:
        super().__init__()
        posterior = model if isinstance(model, Posterior) else model.posterior
        if posterior.kernel is not MATERN52:
            raise ValueError(
                f"model must have a Matérn-5/2 kernel; got {posterior.kernel.name!r}. No other is written in torch."
            )
        h, sites = posterior.hypers[output], posterior.ep.posteriors[output]
        n = len(posterior.data.X)
        R = np.zeros((0, n)) if sites.R is None else sites.R
        named = {
            "trials": posterior.data.X,
            "lengthscales": h.lengthscales,
            "outputscale": h.outputscale,
            "mean": h.mean,
            "threshold": h.threshold,
            "crash_noise_std": h.crash_noise_std,
            "noise_var": float(np.mean(np.square(h.noise_std))),
            "b": sites.b,
            "F": np.tril(sites.L_inv) * sites.root,
            "R": R,
        }
        for name, value in named.items():
            self.register_buffer(f"_{name}", torch.as_tensor(np.array(value), dtype=torch.float64))
        self._told: tuple[_Added, ...] = ()

    @staticmethod
    def from_study(optimizer: Optimizer, output: str | None = None) -> "GPCRModel":
        """A function that a study has learnt by now; X is what `optimizer.space.encode` makes of params.

        Costs to be maximised, and readings of a constraint that crashes below its threshold, are negated.

        Args:
            optimizer: with at least one trial that was told.
            output: the name of a constraint or of a goal, "cost" where there is one; None is the only constraint.
        """
        if not hasattr(optimizer, "study"):
            raise ValueError(f"optimizer must be an Optimizer; got {optimizer!r}. Of a result it is result.optimizer.")
        models, names = optimizer.view.models, optimizer.study.names
        costs = list(optimizer.study.objectives) or [COST]
        if (output is None and len(names) > 1) or (output is not None and output not in [*names, *costs]):
            raise ValueError(f"output must be one of {', '.join([*names, *costs])}; got {output!r}. Name one.")
        of_cost = output is not None and output not in names
        if models is None or (of_cost and models.cost is None):
            raise ValueError(
                f"optimizer must have been told a {'success' if models else 'trial'}; it was not. Tell one."
            )
        if of_cost:
            assert models.cost is not None
            return GPCRModel(models.cost, costs.index(str(output)))
        return GPCRModel(models.crash, 0 if output is None else names.index(output))

    @property
    def num_outputs(self) -> int:
        """A single output."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """Of the observations it was conditioned on; else none."""
        return _common(*(told.gap.shape[:-2] for told in self._told))

    @property
    def threshold(self) -> float:
        """The level above which a trial crashes: known, or the most probable value."""
        return float(self._threshold)

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Callable[[Any], Any] | None = None,
    ) -> Any:
        """The joint posterior at X, (batch, q, D)."""
        cov = self._covariance(X, X)
        eye = torch.eye(X.shape[-2], dtype=cov.dtype, device=cov.device)
        cov = cov + _JITTER * self._outputscale * eye
        if isinstance(observation_noise, Tensor):
            cov = cov + torch.diag_embed(observation_noise.squeeze(-1))
        elif observation_noise:
            cov = cov + self._noise_var * eye
        mean = self._mean_at(X)
        shape = _common(mean.shape[:-1], cov.shape[:-2])
        mean, cov = mean.expand(*shape, mean.shape[-1]), cov.expand(*shape, *cov.shape[-2:])
        posterior = GPyTorchPosterior(MultivariateNormal(mean, cov))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any
    ) -> "GPCRModel":
        """The same function as if Y, (..., q, 1), had been measured at X, (..., q, D), without a crash.

        Hyperparameters and threshold stay as they are, and so does what is known of the earlier trials' labels.

        Args:
            X: where.
            Y: of a batch shape of its own, for fantasies.
            noise: variances, as Y; the learnt one if None.
            kwargs: what BoTorch gives to models of other kinds; it has no meaning here.
        """
        var = self._noise_var.expand(Y.shape[:-1]) if noise is None else noise.squeeze(-1)
        cov = self._covariance(X, X) + torch.diag_embed(var + _JITTER * self._outputscale)
        root = torch.linalg.cholesky(cov)
        gap = torch.cholesky_solve(Y - self._mean_at(X).unsqueeze(-1), root)
        new = copy.copy(self)
        new._told = (*self._told, _Added(self, X, root, gap))
        return new

    def fantasize(
        self, X: Tensor, sampler: Callable[[Any], Tensor], observation_noise: Tensor | None = None, **kwargs: Any
    ) -> "GPCRModel":
        """The model as it would be after each of some samples of what trials at X, (..., q, D), may measure."""
        posterior = self.posterior(X, observation_noise=True if observation_noise is None else observation_noise)
        noise = None if observation_noise is None else observation_noise.expand(posterior.mean.shape)
        return self.condition_on_observations(X, sampler(posterior), noise)

    def subset_output(self, idcs: list[int]) -> "GPCRModel":
        """The model itself: it has a single output."""
        if idcs not in ([0], [-1]):
            raise ValueError(
                f"idcs must be [0]; got {idcs!r}. A GPCRModel has a single output; join several in a ModelList."
            )
        return self

    def p_safe(self, X: Tensor) -> Tensor:
        """Probability that a trial at each of X, (..., D), stays below the threshold (eq. 9)."""
        posterior = self.posterior(X.unsqueeze(-2))
        mean, var = posterior.mean.squeeze(-1).squeeze(-1), posterior.variance.squeeze(-1).squeeze(-1)
        p: Tensor = torch.special.ndtr((self._threshold - mean) / (var + self._crash_noise_std**2).sqrt())
        return p

    def constraint(self, output: int = -1) -> Callable[[Tensor], Tensor]:
        """A constraint in BoTorch's sense, negative where it holds, on samples in which this model is one output."""
        return lambda samples: samples[..., output] - self._threshold

    def _mean_at(self, X: Tensor) -> Tensor:
        """The posterior mean at X, (..., q)."""
        mean: Tensor = self._mean + self._outputscale.sqrt() * (self._kernel(self._trials, X).mT @ self._b)
        for told in self._told:
            mean = mean + (told.before._covariance(X, told.X) @ told.gap).squeeze(-1)
        return mean

    def _covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """The posterior covariance of X and Z, (..., q, r)."""
        kX, kZ = self._kernel(self._trials, X), self._kernel(self._trials, Z)
        explained = (self._F @ kX).mT @ (self._F @ kZ) - (self._R @ kX).mT @ (self._R @ kZ)
        cov: Tensor = self._outputscale * (self._kernel(X, Z) - explained)
        for told in self._told:
            sides = [
                torch.linalg.solve_triangular(told.root, told.before._covariance(told.X, side), upper=False)
                for side in (X, Z)
            ]
            cov = cov - sides[0].mT @ sides[1]
        return cov

    def _kernel(self, X: Tensor, Z: Tensor) -> Tensor:
        """Matérn-5/2 of unit variance."""
        gap = (X.unsqueeze(-2) - Z.unsqueeze(-3)) / self._lengthscales
        r = (5.0 * gap.square().sum(-1)).clamp_min(_LEAST).sqrt()
        return (1.0 + r + r.square() / 3.0) * torch.exp(-r)


class _Added(NamedTuple):
    """Observations that a model was conditioned on."""

    before: GPCRModel  # the model without them
    X: Tensor
    root: Tensor  # lower Cholesky factor of their covariance
    gap: Tensor  # that covariance's inverse times how far they lie from what was expected


def _common(*shapes: torch.Size) -> torch.Size:
    """The shape that all of these are broadcast to."""
    return torch.Size(np.broadcast_shapes(*shapes))
