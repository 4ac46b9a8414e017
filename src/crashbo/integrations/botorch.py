"""BoTorch: a latent function of crashbo as a BoTorch model, for use with any of its acquisition functions.

May import optimizer and below, and torch, botorch and gpytorch.

Notation, as in models.latent:
    b, W     posterior at n trials: mean m + sqrt(a) k'b, covariance a (k(x, x') - k'W k'), W = F'F - R'R
    a, m     outputscale (a variance) and mean of the prior
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from crashbo.models.latent import Posterior

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
        model: a `GPCR`, a `GP` (the cost, say), or a `CrashModel`.
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

    def __init__(self, model: HasPosterior, output: int = 0) -> None:
        super().__init__()
        posterior = model.posterior
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

    @property
    def num_outputs(self) -> int:
        """A single output."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """No batch dimensions."""
        return torch.Size()

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
        k = self._kernel(self._trials, X)
        Fk, Rk = self._F @ k, self._R @ k
        K = self._kernel(X, X) - Fk.mT @ Fk + Rk.mT @ Rk
        cov = self._outputscale * (K + _JITTER * torch.eye(X.shape[-2], dtype=K.dtype, device=K.device))
        if isinstance(observation_noise, Tensor):
            cov = cov + torch.diag_embed(observation_noise.squeeze(-1))
        elif observation_noise:
            cov = cov + self._noise_var * torch.eye(X.shape[-2], dtype=K.dtype, device=K.device)
        mean = self._mean + self._outputscale.sqrt() * (k.mT @ self._b)
        posterior = GPyTorchPosterior(MultivariateNormal(mean, cov))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def p_safe(self, X: Tensor) -> Tensor:
        """Probability that a trial at each of X, (..., D), stays below the threshold (eq. 9)."""
        posterior = self.posterior(X.unsqueeze(-2))
        mean, var = posterior.mean.squeeze(-1).squeeze(-1), posterior.variance.squeeze(-1).squeeze(-1)
        p: Tensor = torch.special.ndtr((self._threshold - mean) / (var + self._crash_noise_std**2).sqrt())
        return p

    def constraint(self, output: int = -1) -> Callable[[Tensor], Tensor]:
        """A constraint in BoTorch's sense, negative where it holds, on samples in which this model is one output."""
        return lambda samples: samples[..., output] - self._threshold

    def _kernel(self, X: Tensor, Z: Tensor) -> Tensor:
        """Matérn-5/2 of unit variance."""
        gap = (X.unsqueeze(-2) - Z.unsqueeze(-3)) / self._lengthscales
        r = (5.0 * gap.square().sum(-1)).clamp_min(_LEAST).sqrt()
        return (1.0 + r + r.square() / 3.0) * torch.exp(-r)
