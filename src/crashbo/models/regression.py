"""GP regression: a latent function that is only measured, as the cost is (paper, section II-B).

May import numerics only.

The same posterior, evidence and fit as GPCR's, without the step likelihood.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crashbo.models import checks, latent
from crashbo.models.fit import Fit, carry_over, fit
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Prior, resolve
from crashbo.models.latent import Hyperparameters, Posterior
from crashbo.models.parametrisation import parametrise

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GP:
    """A posterior over a measured function. Made by `condition` or `fit`; all in the units given."""

    posterior: Posterior
    fitted: Fit | None = None

    @classmethod
    def condition(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        lengthscales: ArrayLike,
        outputscale: float,
        noise_std: ArrayLike,
        mean: float = 0.0,
    ) -> "GP":
        """The exact posterior at given hyperparameters; arguments as in `GPCR.condition`."""
        data = measured_data(X, y)
        hypers = checks.hyperparameters(
            data, lengthscales=lengthscales, outputscale=outputscale, noise_std=noise_std, mean=mean
        )
        return cls(latent.condition(data, (hypers,)))

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise_std: ArrayLike | None = None,
        prior: Prior = None,
        start: "GP | None" = None,
    ) -> "GP":
        """The posterior at the most probable hyperparameters; arguments as in `GPCR.fit`."""
        data = measured_data(X, y)
        checks.start(start, cls, data.X)
        D = data.X.shape[1]
        noise = checks.noise_of(noise_std, data)
        parametrisation = parametrise(
            data.Y[0], data.sign[0], resolve(prior, D), dimension=D, labelled=False, noise_std=noise
        )
        fitted = fit(data, (parametrisation,), start=None if start is None else carry_over(start.posterior, data))
        return cls(fitted.posterior, fitted)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """All hyperparameters, in the units given."""
        return self.posterior.hypers[0]

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the measurements."""
        return self.posterior.log_evidence

    @property
    def converged(self) -> bool:
        """Of a fit, whether the search reached its end."""
        return self.fitted is None or self.fitted.converged

    @property
    def evaluations(self) -> int:
        """Evaluations of the evidence."""
        return 1 if self.fitted is None else self.fitted.evaluations

    def log_evidence_gradient(self) -> Mapping[str, float | Array]:
        """Exact derivatives of `log_evidence` in every hyperparameter, by name, in natural units."""
        names = ("lengthscales", "outputscale", "mean", "noise_std")
        gradient = self.posterior.gradient(0)
        return {name: getattr(gradient, name) for name in names}

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the function (without noise) at X, (m, D)."""
        return self.posterior.predict(0, checks.inputs(X, dimension=self.posterior.data.X.shape[1]))


def measured_data(X: ArrayLike, y: ArrayLike) -> HybridData:
    """Checked data of one measured function."""
    X = checks.inputs(X)
    Y = checks.values(y, len(X))[None, :]
    return HybridData(X, Y, np.zeros_like(Y), np.zeros(len(X), dtype=bool))
