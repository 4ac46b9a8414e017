"""GPCR: a Gaussian process over hybrid data, a crash label or a measured value (paper, section IV).

May import numerics only.

A trial that succeeded has g below the threshold c and may carry a measurement of g; a trial that crashed
has g above c, and usually carries none. With labels alone, without any measurement, the same model is a GP
classifier: its scale is then a convention (outputscale 1, c = 0), and the mean is learnt.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from crashbo.models import checks, latent, thresholds
from crashbo.models.fit import Fit, carry_over, fit
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Prior, resolve
from crashbo.models.latent import Hyperparameters, Posterior
from crashbo.models.parametrisation import parametrise

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GPCR:
    """A posterior over the latent g. Made by `condition` or `fit`; everything is in the units given."""

    posterior: Posterior
    fitted: Fit | None = None

    @classmethod
    def condition(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        crashed: ArrayLike,
        *,
        lengthscales: ArrayLike,
        outputscale: float,
        threshold: float,
        noise_std: ArrayLike,
        crash_noise_std: float = 0.0,
        mean: float = 0.0,
        censored: ArrayLike | None = None,
        stopped: ArrayLike | None = None,
        last: ArrayLike | None = None,
    ) -> "GPCR":
        """The posterior at given hyperparameters.

        Args:
            X: parameters, (n, D), in the unit cube.
            y: measurements of g, (n,), NaN where there is none.
            crashed: labels, (n,), True for a crash.
            lengthscales: one per column of X, or one for all.
            outputscale: prior variance of g.
            threshold: level of g above which a trial crashes.
            noise_std: standard deviation of the measurements' noise, one for all or one per trial.
            crash_noise_std: scatter of the level of g at which the machine trips; 0 is the paper's step, under which a
                success and a crash at the same x have probability zero: EP then stops without a fixed point,
                `converged` is False, and evidence and gradient are finite but meaningless.
            mean: prior mean of g.
            censored: booleans, (n,), True where a measurement is only a lower bound, like a peak that was cut off.
            stopped: booleans, (n,), True for a trial that was stopped before it could crash: it has no label, and its
                measurement is a lower bound of g and of the threshold.
            last: readings, (n,), that were the last before a crash, NaN where unknown: the threshold lies a little
                above, unless the machine jumped over it.
        """
        data = hybrid_data(X, y, crashed, censored, stopped, last)
        hypers = checks.hyperparameters(
            data,
            lengthscales=lengthscales,
            outputscale=outputscale,
            noise_std=noise_std,
            threshold=threshold,
            crash_noise_std=crash_noise_std,
            mean=mean,
        )
        return cls(latent.condition(data, (hypers,)))

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        crashed: ArrayLike,
        *,
        noise_std: ArrayLike | None = None,
        threshold: ArrayLike | None = None,
        prior: Prior = None,
        start: "GPCR | None" = None,
        censored: ArrayLike | None = None,
        stopped: ArrayLike | None = None,
        last: ArrayLike | None = None,
    ) -> "GPCR":
        """The posterior at the most probable hyperparameters and threshold (eq. 10).

        Args:
            X: parameters, (n, D), in the unit cube.
            y: measurements of g, (n,), NaN where there is none.
            crashed: labels, (n,), True for a crash.
            noise_std: the measurements' noise where known, one for all or one per trial; None learns it.
            threshold: None learns it, a number is taken as known, a pair (low, high) confines it.
            prior: None for our own weak priors, "paper" for the paper's, or a Hyperprior.
            start: an earlier fit, to begin from its hyperparameters and sites.
            censored: as in `condition`; such a measurement counts once an uncensored one sets the scale.
            stopped: as in `condition`.
            last: as in `condition`.
        """
        data = hybrid_data(X, y, crashed, censored, stopped, last, whole=True)
        checks.start(start, cls, data.X)
        D = data.X.shape[1]
        parametrisation = parametrise(
            data.Y[0],
            data.sign[0],
            resolve(prior, D),
            dimension=D,
            noise_std=checks.noise_of(noise_std, data),
            threshold=checks.threshold(threshold),
            survived=None if data.survived is None else data.survived[0],
        )
        fitted = fit(data, (parametrisation,), start=None if start is None else carry_over(start.posterior, data))
        return cls(fitted.posterior, fitted)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """All hyperparameters, in the units given."""
        return self.posterior.hypers[0]

    @property
    def threshold(self) -> float | None:
        """The crash threshold, as given or the most probable one; None before a success was measured."""
        if self.fitted is not None and not thresholds.has_meaning(self.fitted.parametrisations[0]):
            return None
        return self.hyperparameters.threshold

    @cached_property
    def threshold_interval(self) -> tuple[float, float] | None:
        """An interval that holds the threshold with 90 % probability; None before a success was measured."""
        if self.fitted is None:
            return self.hyperparameters.threshold, self.hyperparameters.threshold
        return thresholds.interval(self.posterior, self.fitted.parametrisations)

    @property
    def log_evidence(self) -> float:
        """log Z_EP of measurements and labels."""
        return self.posterior.log_evidence

    @property
    def log_posterior(self) -> float:
        """What a fit maximises: log evidence plus log prior, in standardised units."""
        return self.log_evidence if self.fitted is None else self.fitted.log_posterior

    @property
    def converged(self) -> bool:
        """Whether EP reached its fixed point and, of a fit, the search its end."""
        return self.posterior.ep.converged if self.fitted is None else self.fitted.converged

    @property
    def sweeps(self) -> int:
        """Sweeps of EP, in all."""
        return self.posterior.ep.sweeps if self.fitted is None else self.fitted.sweeps

    @property
    def evaluations(self) -> int:
        """Evaluations of the evidence."""
        return 1 if self.fitted is None else self.fitted.evaluations

    def log_evidence_gradient(self) -> Mapping[str, float | Array]:
        """Exact derivatives of `log_evidence` in every hyperparameter, by name, in natural units."""
        return self.posterior.gradient(0)._asdict()

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the latent g at X, (m, D) (eq. 8)."""
        return self.posterior.predict(0, checks.inputs(X, dimension=self.posterior.data.X.shape[1]))

    def p_safe(self, X: ArrayLike) -> Array:
        """Probability that a trial at X succeeds (eq. 9)."""
        mean, var = self.predict(X)
        h = self.hyperparameters
        p: Array = ndtr((h.threshold - mean) / np.sqrt(var + h.crash_noise_std**2))
        return p


def hybrid_data(
    X: ArrayLike,
    y: ArrayLike,
    crashed: ArrayLike,
    censored: ArrayLike | None = None,
    stopped: ArrayLike | None = None,
    last: ArrayLike | None = None,
    *,
    whole: bool = False,
) -> HybridData:
    """Checked data of one latent function; `whole` leaves out censored measurements while there are no others."""
    X = checks.inputs(X)
    y, crashed = checks.values(y, len(X)), checks.labels(crashed, len(X))
    sign = np.where(crashed, -1.0, 1.0)[None, :]
    cut, ended = checks.censored(censored, (len(X),))[None, :], checks.stopped(stopped, crashed)
    before = None if last is None else checks.readings("last", last, y.shape)[None, :]
    return HybridData.of(
        X, y[None, :], sign, np.zeros(len(X), dtype=bool), cut, stopped=ended, last=before, whole=whole
    )
