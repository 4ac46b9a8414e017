"""The crash model: several constraints, each a latent function with a threshold, and unattributed crashes.

May import numerics only.

A success says that every g_j lies below its c_j. A crash that is blamed on some constraints says that these
lie above, and nothing about the others; one that is not blamed says only that at least one does. One Gaussian
site per constraint keeps the latent functions independent, so that G of them cost G times as much as one. With a
single constraint this is GPCR.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from crashbo.models import checks, latent, thresholds
from crashbo.models.fit import Fit, carry_over, fit
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior, Prior, resolve
from crashbo.models.latent import Posterior
from crashbo.models.parametrisation import Parametrisation, parametrise
from crashbo.models.thresholds import Profile

Array = NDArray[np.float64]
Blame = Sequence[Sequence[int] | None] | None


@dataclass(frozen=True)
class CrashModel:
    """A posterior over G constraints. Made by `condition` or `fit`; everything is in the units given."""

    posterior: Posterior
    fitted: Fit | None = None

    @classmethod
    def condition(
        cls,
        X: ArrayLike,
        Y: ArrayLike,
        crashed: ArrayLike,
        *,
        blame: Blame = None,
        censored: ArrayLike | None = None,
        stopped: ArrayLike | None = None,
        last: ArrayLike | None = None,
        ahead: ArrayLike | None = None,
        parts: Sequence[Mapping[str, Any]],
    ) -> "CrashModel":
        """The posterior at given hyperparameters.

        Args:
            X: parameters, (n, D), in the unit cube.
            Y: measurements, (n, G), NaN where there is none.
            crashed: labels, (n,), True for a crash.
            blame: for every trial None, or the constraints (columns of Y) that were violated.
            censored: booleans, (n, G), True where a measurement is only a lower bound, like a peak that was cut off.
            stopped: booleans, (n,), True for a trial that was stopped before it could crash: it has no label, and its
                measurements are lower bounds of the function and of its threshold.
            last: readings, (n, G), that were the last before a crash, NaN where unknown: the threshold lies a little
                above, unless the machine jumped over it.
            ahead: how far the next reading might have come, (n, G), by the largest rise before; NaN where unknown.
            parts: for every constraint the keyword arguments of `GPCR.condition`.
        """
        data = hybrid_data(X, Y, crashed, blame, censored, stopped, last, ahead)
        if len(parts) != len(data.Y):
            raise ValueError(f"parts must have one entry per column of Y; got {len(parts)}. Y has {len(data.Y)}.")
        hypers = tuple(checks.hyperparameters(data, **part) for part in parts)
        return cls(latent.condition(data, hypers))

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        Y: ArrayLike,
        crashed: ArrayLike,
        *,
        blame: Blame = None,
        censored: ArrayLike | None = None,
        stopped: ArrayLike | None = None,
        last: ArrayLike | None = None,
        ahead: ArrayLike | None = None,
        noise_std: Sequence[ArrayLike | None] | None = None,
        threshold: Sequence[ArrayLike | None] | None = None,
        prior: Prior = None,
        start: "CrashModel | None" = None,
    ) -> "CrashModel":
        """The posterior at the most probable hyperparameters; `noise_std` and `threshold` one per constraint.

        Measurements that are only lower bounds count once their constraint has an uncensored one, which sets the scale.
        """
        data = hybrid_data(X, Y, crashed, blame, censored, stopped, last, ahead, whole=True)
        checks.start(start, cls, data.X)
        G, D = len(data.Y), data.X.shape[1]
        noises = list(noise_std) if noise_std is not None else [None] * G
        limits = list(threshold) if threshold is not None else [None] * G
        parametrisations = parametrise_all(
            data,
            resolve(prior, D),
            noise_std=[checks.noise_of(std, data) for std in noises],
            thresholds=[checks.threshold(limit) for limit in limits],
        )
        fitted = fit(data, parametrisations, start=None if start is None else carry_over(start.posterior, data))
        return cls(fitted.posterior, fitted)

    @property
    def log_evidence(self) -> float:
        """log Z_EP of measurements and labels."""
        return self.posterior.log_evidence

    @property
    def converged(self) -> bool:
        """Whether EP reached its fixed point and, of a fit, the search its end."""
        return self.posterior.ep.converged if self.fitted is None else self.fitted.converged

    @property
    def thresholds(self) -> tuple[float | None, ...]:
        """One per constraint, as given or the most probable one; None before a success was measured."""
        return tuple(
            h.threshold if self.fitted is None or thresholds.has_meaning(self.fitted.parametrisations[j]) else None
            for j, h in enumerate(self.posterior.hypers)
        )

    @property
    def threshold_intervals(self) -> tuple[tuple[float, float] | None, ...]:
        """The 90 % interval of every threshold."""
        return tuple(map(self.threshold_interval, range(len(self.posterior.hypers))))

    def threshold_interval(self, j: int, doubt: float | None = None) -> tuple[float, float] | None:
        """The 90 % interval of one threshold, computed when it is first asked for; in doubt as by `thresholds`."""
        c = self.thresholds[j]
        if c is None:
            return None
        if (j, doubt) not in self._intervals:
            found = self.threshold_profile(j)
            self._intervals[j, doubt] = (c, c) if found is None else thresholds.interval_of([(found, 1.0)], doubt)
        return self._intervals[j, doubt]

    def threshold_profile(self, j: int) -> Profile | None:
        """The density of one threshold, computed when it is first asked for; None where none is learnt."""
        if self.fitted is None:
            return None
        if j not in self._profiles:
            self._profiles[j] = thresholds.profile(self.posterior, self.fitted.parametrisations, j)
        return self._profiles[j]

    def trip_level(self, j: int, p: float, doubt: float = 0.0, x: Array | None = None) -> float:
        """The reading of constraint j at which to stop a trial, at x, that would else crash with probability p or more.

        With probability `doubt` it trips for other reasons. Infinite where that leaves too little, or where nothing is
        known of its threshold.
        """
        c, found = self.thresholds[j], self.threshold_profile(j)
        if c is None or p >= 1.0 - doubt:
            return np.inf
        levels, mass = (np.array([c]), np.ones(1)) if found is None else found.masses
        return thresholds.trip_level(self.posterior.alone(j), levels, (1.0 - doubt) * mass, p, x)

    @cached_property
    def _intervals(self) -> dict[tuple[int, float | None], tuple[float, float]]:
        return {}

    @cached_property
    def _profiles(self) -> dict[int, Profile | None]:
        return {}

    def log_evidence_gradient(self) -> tuple[Mapping[str, float | Array], ...]:
        """Exact derivatives of `log_evidence` in every constraint's hyperparameters, by name, in natural units."""
        return tuple(self.posterior.gradient(j)._asdict() for j in range(len(self.posterior.hypers)))

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of every constraint at X, both (m, G)."""
        X = checks.inputs(X, dimension=self.posterior.data.X.shape[1])
        pairs = [self.posterior.predict(j, X) for j in range(len(self.posterior.hypers))]
        return np.stack([mean for mean, _ in pairs], axis=1), np.stack([var for _, var in pairs], axis=1)

    def p_violated(self, X: ArrayLike) -> Array:
        """Probability that a trial at X violates each constraint, (m, G)."""
        return np.asarray(np.exp(log_ndtr(-self._z(*self.predict(X)))))

    def p_safe(self, X: ArrayLike) -> Array:
        """Probability that a trial at X succeeds: Gamma(x)."""
        return np.asarray(np.exp(log_ndtr(self._z(*self.predict(X))).sum(axis=1)))

    def blame(self) -> Array:
        """P(constraint j was violated | crash), one row per crash in the order of the data, (crashes, G)."""
        data = self.posterior.data
        crashes = (data.joint | np.any(data.sign < 0.0, axis=0)) & ~data.bounded
        log_mass = np.where(data.joint, self.posterior.ep.tilted.log_mass, 0.0)[crashes]
        violated = np.exp(log_ndtr(-self.posterior.z()[:, crashes]) - log_mass)
        blamed = data.sign[:, crashes] < 0.0
        return np.asarray(np.where(blamed, 1.0, np.clip(violated, 0.0, 1.0)).T)

    def _z(self, mean: Array, var: Array) -> Array:
        hypers = self.posterior.hypers
        c, s = np.array([h.threshold for h in hypers]), np.array([h.crash_noise_std for h in hypers])
        z: Array = (c - mean) / np.sqrt(var + s**2)
        return z


def parametrise_all(
    data: HybridData,
    prior: Hyperprior,
    *,
    noise_std: Sequence[float | Array | None],
    thresholds: Sequence[float | tuple[float, float] | None],
) -> tuple[Parametrisation, ...]:
    """The parametrisation of each constraint, with noise and threshold where they are given.

    A constraint without measurements, beside one with some, is taken for the rarer cause of crashes.
    """
    measured = [bool(row.any()) for row in data.measured]
    return tuple(
        parametrise(
            y,
            sign,
            prior if seen or not any(measured) else prior.rare(),
            dimension=data.X.shape[1],
            noise_std=std,
            threshold=limit,
            survived=None if data.survived is None else data.survived[j],
        )
        for j, (y, sign, seen, std, limit) in enumerate(
            zip(data.Y, data.sign, measured, noise_std, thresholds, strict=True)
        )
    )


def hybrid_data(
    X: ArrayLike,
    Y: ArrayLike,
    crashed: ArrayLike,
    blame: Blame = None,
    censored: ArrayLike | None = None,
    stopped: ArrayLike | None = None,
    last: ArrayLike | None = None,
    ahead: ArrayLike | None = None,
    *,
    whole: bool = False,
) -> HybridData:
    """Checked data of G constraints; `whole` leaves out the censored measurements of a constraint with no others."""
    X = checks.inputs(X)
    n = len(X)
    Y = np.array(Y, dtype=float)
    if Y.ndim != 2 or len(Y) != n:
        raise ValueError(f"Y must have shape ({n}, G) as X has {n} rows; got {Y.shape}. Give a column per constraint.")
    columns = np.stack([checks.values(column, n) for column in Y.T])
    crashed = checks.labels(crashed, n)
    given = [None] * n if blame is None else list(blame)
    if len(given) != n:
        raise ValueError(f"blame must have {n} entries as X has {n} rows; got {len(given)}. Use None for no blame.")
    sign = np.where(crashed, 0.0, 1.0) * np.ones((len(columns), 1))
    for i in np.flatnonzero(crashed):
        blamed = given[i] if len(columns) > 1 else (0,)
        for j in blamed or ():
            sign[j, i] = -1.0
    joint = crashed & ~np.any(sign < 0.0, axis=0)
    cut, ended = checks.censored(censored, Y.shape).T, checks.stopped(stopped, crashed)
    before, after = (
        None if rows is None else checks.readings(name, rows, Y.shape).T
        for name, rows in (("last", last), ("ahead", ahead))
    )
    return HybridData.of(X, columns, sign, joint, cut, stopped=ended, last=before, ahead=after, whole=whole)
