"""An ensemble of posteriors, under several plausible sets of hyperparameters at once.

May import numerics only.

The most probable hyperparameters are seldom the true ones. After a dozen trials they take most dimensions for
irrelevant and the few observed values for the whole range, and a P(safe) that relies on them is overconfident. An
ensemble is the posterior at the mode and at a few points around it, along fixed directions, as far out as Fisher's
information and the priors allow. The members have importance weights: posterior density over that of the Gaussian
approximation, clipped, since the weights of a few draws vary wildly.

Thresholds are not drawn: each member has the mode's, as far above the highest success in units of the
function's own spread, with the same relative uncertainty, which P(safe) integrates out exactly.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models import latent
from crashbo.models.fit import log_posterior
from crashbo.models.information import information
from crashbo.models.latent import Hyperparameters, Posterior
from crashbo.models.moments import Moments, Pullback
from crashbo.models.parametrisation import Parametrisation
from crashbo.numerics.linalg import cholesky

Array = NDArray[np.float64]

# judgement: up to this many trials no effort is spared, here and in search.candidates; the quadruped needs it
FEW_TRIALS = 60
# judgement: as cheap as possible while an ensemble still beats the mode, which a test checks
_DRAWS = 4
_LOG_WEIGHTS = (-4.0, 0.5)  # least and most, relative to the mode's
_HEARD = 0.05  # share of the weight below which a member is left out, past the first trials
_EP_TOLERANCE = 0.05  # the evidence is stationary in the sites, so weights err by the square
_MAX_SWEEPS = 20


@dataclass(frozen=True)
class EnsembleHyperparameters:
    """K sets of hyperparameters of G latent functions: an ensemble without its trials."""

    hypers: tuple[tuple[Hyperparameters, ...], ...]
    log_weights: Array  # (K,), of weights that sum to one
    spreads: Array  # (K, G), standard deviations of the thresholds

    def about(self, middle: Posterior) -> "Ensemble":
        """The ensemble at these hyperparameters, given the posterior at the first of them."""
        others = (_condition(middle, hypers) for hypers in self.hypers[1:])
        return Ensemble((middle, *others), self.log_weights, self.spreads)


class _Column(NamedTuple):
    """What every member says of one latent function's threshold, (K,)."""

    levels: Array
    outputscales: Array
    scatter: Array


@dataclass(frozen=True)
class Ensemble:
    """K posteriors of the same G latent functions and trials, and the weight of each."""

    members: tuple[Posterior, ...]
    log_weights: Array  # (K,), of weights that sum to one
    spreads: Array  # (K, G), standard deviations of the thresholds
    ceilings: Array | None = None  # (G,), levels below which a trial keeps anyway; it is stopped there

    @staticmethod
    def of(posterior: Posterior, spreads: Array | None = None) -> "Ensemble":
        """An ensemble of one posterior; `spreads` are the standard deviations of its thresholds, (G,)."""
        certain = np.zeros(len(posterior.hypers))
        return Ensemble((posterior,), np.zeros(1), (certain if spreads is None else spreads)[None])

    @property
    def hyperparameters(self) -> EnsembleHyperparameters:
        """The hyperparameters and weights, to condition on other trials with."""
        return EnsembleHyperparameters(tuple(post.hypers for post in self.members), self.log_weights, self.spreads)

    def levels(self, j: int) -> Array:
        """Thresholds of latent function j, (K,)."""
        return self._columns[j].levels

    def outputscales(self, j: int) -> Array:
        """Prior variances of latent function j, (K,)."""
        return self._columns[j].outputscales

    def scatter(self, j: int) -> Array:
        """Variance of latent function j's threshold: crash noise plus uncertainty, (K,)."""
        return self._columns[j].scatter

    @cached_property
    def _columns(self) -> tuple[_Column, ...]:
        return tuple(map(self._column, range(len(self.members[0].hypers))))

    def _column(self, j: int) -> _Column:
        hypers = [post.hypers[j] for post in self.members]
        levels, outputscales = np.array([h.threshold for h in hypers]), np.array([h.outputscale for h in hypers])
        if self.ceilings is not None:
            levels = np.minimum(levels, self.ceilings[j])
        noise = np.array([h.crash_noise_std for h in hypers])
        return _Column(levels, outputscales, noise**2 + self.spreads[:, j] ** 2)

    def predict(self, j: int, X: Array) -> tuple[Array, Array]:
        """Mean and variance of latent function j at X under each member, both (K, m)."""
        return self._moments[j].at(X)

    def predict_with_pullback(self, j: int, X: Array) -> tuple[Array, Array, Pullback]:
        """Mean and variance of latent function j at X, both (K, m), and what turns slopes in them into gradients in X.

        The slopes are of one value per point, in the moments of all members.
        """
        return self._moments[j].with_pullback(X)

    @property
    def is_several(self) -> bool:
        """Whether there is more than one member."""
        return len(self.members) > 1

    @cached_property
    def middle(self) -> "Ensemble":
        """The first member alone."""
        if not self.is_several:
            return self
        return replace(self, members=self.members[:1], log_weights=np.zeros(1), spreads=self.spreads[:1])

    def with_crashes(self, X: Array) -> "Ensemble":
        """The same as if trials at X had crashed, at the same hyperparameters."""
        return replace(self, members=tuple(post.with_crashes(X) for post in self.members)) if len(X) else self

    @cached_property
    def _moments(self) -> tuple[Moments, ...]:
        return tuple(latent.moments_of(self.members, j) for j in range(len(self.members[0].hypers)))


def gather(posterior: Posterior, parametrisations: tuple[Parametrisation, ...], spreads: Array) -> Ensemble:
    """The ensemble around a posterior at the most probable hyperparameters of `parametrisations`, in the user's units.

    `spreads` are the standard deviations of its thresholds, (G,).
    """
    gaussians = [_Gaussian.about(posterior, p, j) for j, p in enumerate(parametrisations)]
    mode = log_posterior(posterior, parametrisations)
    members, log_weights, widths = [posterior], [0.0], [spreads]
    for d in range(_DRAWS):
        drawn = [gaussian.drawn(d) for gaussian in gaussians]
        hypers = tuple(p.outside(h) for p, (h, _) in zip(parametrisations, drawn, strict=True))
        member = _condition(posterior, hypers)
        members.append(member)
        log_weights.append(log_posterior(member, parametrisations) - mode + sum(fall for _, fall in drawn))
        ratios = [np.sqrt(h.outputscale / old.outputscale) for h, old in zip(hypers, posterior.hypers, strict=True)]
        widths.append(spreads * ratios)
    weights = np.exp(np.clip(log_weights, *_LOG_WEIGHTS))
    weights[0] = 1.0
    heard = weights >= (_HEARD if len(posterior.data.X) > FEW_TRIALS else 0.0) * weights.sum()
    heard[0] = True
    weights = np.where(heard, weights, 0.0)
    shares = (weights / weights.sum())[heard]
    return Ensemble(tuple(compress(members, heard)), np.log(shares), np.array(widths)[heard])


def _condition(middle: Posterior, hypers: tuple[Hyperparameters, ...]) -> Posterior:
    """The posterior of the same trials at other hyperparameters."""
    return latent.condition(middle.data, hypers, start=middle.sites(), tolerance=_EP_TOLERANCE, max_sweeps=_MAX_SWEEPS)


@dataclass(frozen=True)
class _Gaussian:
    """Gaussian approximation of the posterior of one latent function's hyperparameters but the threshold, in theta."""

    p: Parametrisation  # whose start is the mode
    root: Array  # of the covariance

    @staticmethod
    def about(posterior: Posterior, p: Parametrisation, j: int) -> "_Gaussian":
        h = p.inside(posterior.hypers[j])
        held = replace(p, start=h, held=("threshold",))
        return _Gaussian(held, cholesky(held.metric(h, information(posterior, j))))

    def drawn(self, d: int) -> tuple[Hyperparameters, float]:
        """The d-th draw, in the parametrisation's own units, and how far its log density lies below the mode's."""
        p, mode = self.p, self.p.start
        z = _directions(len(self.root))[d]
        h = p.unpack(np.clip(p.pack(mode) + self.root @ z, *p.bounds()))
        if "threshold" in p.learnt:
            excess = (mode.threshold - p.reference) * np.sqrt(h.outputscale / mode.outputscale)
            h = replace(h, threshold=float(np.clip(p.reference + excess, *p.threshold_bounds)))
        return h, 0.5 * float(z @ z)


@lru_cache
def _directions(size: int) -> Array:
    """Pairs of opposite points, at the typical distance of a normal draw from the centre, (draws, size)."""
    across = np.linalg.qr(np.random.default_rng(0).standard_normal((size, _DRAWS // 2)))[0].T
    return np.asarray(np.sqrt(size) * np.concatenate([across, -across]))
