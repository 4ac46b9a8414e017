"""What is believed under several plausible sets of hyperparameters at once.

May import numerics only.

The most probable hyperparameters are seldom the true ones. After a dozen trials they take most dimensions for
irrelevant and the few values seen for the whole range, and a P(safe) that trusts them is far too sure. A crowd is the
posterior at the mode and at a few points about it, along fixed directions, as far out as Fisher's information and the
priors allow. Each counts by its probability over the Gaussian's at its place, within bounds, since a few draws make
such weights wild.

Thresholds are not drawn: each member has the mode's, as far above the highest success in units of the
function's own spread, with the same relative uncertainty, which P(safe) takes in exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from crashbo.models import latent
from crashbo.models.fit import log_posterior
from crashbo.models.information import information
from crashbo.models.latent import Hyperparameters, Posterior
from crashbo.models.parts import Part
from crashbo.numerics.kernels import stacked_squared_distances
from crashbo.numerics.linalg import SitePosterior, cholesky, product, times

Array = NDArray[np.float64]

_DRAWS = 4
_LOG_WEIGHTS = (-4.0, 0.5)  # least and most, relative to the mode's
_EP_TOLERANCE = 1e-2
_MAX_SWEEPS = 20


@dataclass(frozen=True)
class Crowd:
    """K posteriors of the same G latent functions and trials, and the weight of each."""

    members: tuple[Posterior, ...]
    log_weights: Array  # (K,), of weights that sum to one
    spreads: Array  # (K, G), standard deviations of the thresholds

    @staticmethod
    def of(posterior: Posterior, spreads: Array | None = None) -> "Crowd":
        """One posterior, taken for true; `spreads` are the standard deviations of its thresholds, (G,)."""
        certain = np.zeros(len(posterior.hypers))
        return Crowd((posterior,), np.zeros(1), (certain if spreads is None else spreads)[None])

    def levels(self, j: int) -> Array:
        """Thresholds of latent function j, (K,)."""
        return np.array([post.hypers[j].threshold for post in self.members])

    def outputscales(self, j: int) -> Array:
        """Prior variances of latent function j, (K,)."""
        return np.array([post.hypers[j].outputscale for post in self.members])

    def scatter(self, j: int) -> Array:
        """Variance of latent function j's threshold from trial to trial, and of what is known of it, (K,)."""
        noise = np.array([post.hypers[j].crash_noise_std for post in self.members])
        scatter: Array = noise**2 + self.spreads[:, j] ** 2
        return scatter

    def predict(self, j: int, X: Array) -> tuple[Array, Array]:
        """Mean and variance of latent function j at X under each member, both (K, m)."""
        return self._moments(j, self._profiles(j, X)[0])

    def predict_with_gradient(self, j: int, X: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and variance of latent function j at X, both (K, m), and their gradients in X, both (K, m, D)."""
        K, (m, D) = len(self.members), X.shape
        k, slope = self._profiles(j, X)
        of_mean, of_var = np.empty_like(slope), np.empty_like(slope)
        mean, var = self._moments(j, k)
        for i, (block, h, post) in enumerate(self._blocks(j, m)):
            of_mean[:, block] = (2.0 * np.sqrt(h.outputscale) * post.b)[:, None] * slope[:, block]
            pull = np.where(var[i] < h.outputscale, -4.0 * h.outputscale, 0.0)  # it is the prior's at most
            of_var[:, block] = pull * post.W_times(k[:, block]) * slope[:, block]
        both = np.concatenate([of_mean, of_var], axis=1)
        gradients = np.tile(X, (2 * K, 1)) * both.sum(axis=0)[:, None] - product(both.T, self.members[0].data.X)
        in_mean, in_var = gradients.reshape(2, K, m, D) / self._lengthscales(j)[:, None, :] ** 2
        return mean, var, in_mean, in_var

    def with_crashes(self, X: Array) -> "Crowd":
        """The same as if trials at X had crashed, at the same hyperparameters."""
        return replace(self, members=tuple(post.with_crashes(X) for post in self.members)) if len(X) else self

    def _profiles(self, j: int, X: Array) -> tuple[Array, Array]:
        """Covariances of the trials with X and their slopes, (n, K m): a block of m columns for each member."""
        first = self.members[0]
        return first.kernel.profile(stacked_squared_distances(first.data.X, X, self._lengthscales(j)))

    def _moments(self, j: int, k: Array) -> tuple[Array, Array]:
        m = k.shape[1] // len(self.members)
        pairs = [
            (h.mean + np.sqrt(h.outputscale) * times(k[:, block].T, post.b), h.outputscale * post.variance(k[:, block]))
            for block, h, post in self._blocks(j, m)
        ]
        return np.stack([mean for mean, _ in pairs]), np.stack([var for _, var in pairs])

    def _blocks(self, j: int, m: int) -> Iterator[tuple[slice, Hyperparameters, SitePosterior]]:
        for i, member in enumerate(self.members):
            yield slice(i * m, (i + 1) * m), member.hypers[j], member.ep.posteriors[j]

    def _lengthscales(self, j: int) -> Array:
        return np.stack([post.hypers[j].lengthscales for post in self.members])


def gather(posterior: Posterior, parts: tuple[Part, ...], spreads: Array) -> Crowd:
    """The crowd about a posterior at the most probable hyperparameters of `parts`, in the user's units.

    `spreads` are the standard deviations of its thresholds, (G,).
    """
    gaussians = [_Gaussian.about(posterior, part, j) for j, part in enumerate(parts)]
    mode = log_posterior(posterior, parts)
    members, log_weights, widths = [posterior], [0.0], [spreads]
    for d in range(_DRAWS):
        drawn = [gaussian.drawn(d) for gaussian in gaussians]
        hypers = tuple(part.outside(h) for part, (h, _) in zip(parts, drawn, strict=True))
        member = latent.condition(
            posterior.data, hypers, start=posterior.sites(), tolerance=_EP_TOLERANCE, max_sweeps=_MAX_SWEEPS
        )
        members.append(member)
        log_weights.append(log_posterior(member, parts) - mode + sum(fall for _, fall in drawn))
        ratios = [np.sqrt(h.outputscale / old.outputscale) for h, old in zip(hypers, posterior.hypers, strict=True)]
        widths.append(spreads * ratios)
    weights = np.exp(np.clip(log_weights, *_LOG_WEIGHTS))
    weights[0] = 1.0
    return Crowd(tuple(members), np.log(weights / weights.sum()), np.array(widths))


@dataclass(frozen=True)
class _Gaussian:
    """An approximate posterior of one part's hyperparameters, the threshold aside, in its coordinates."""

    part: Part  # whose start is the mode
    root: Array  # of the covariance

    @staticmethod
    def about(posterior: Posterior, part: Part, j: int) -> "_Gaussian":
        h = part.inside(posterior.hypers[j])
        held = replace(part, start=h, held=("threshold",))
        return _Gaussian(held, cholesky(held.metric(h, information(posterior, j))))

    def drawn(self, d: int) -> tuple[Hyperparameters, float]:
        """The d-th draw, in the part's own units, and by how much its log density lies below the mode's."""
        part, mode = self.part, self.part.start
        z = _directions(len(self.root))[d]
        h = part.unpack(np.clip(part.pack(mode) + self.root @ z, *part.bounds()))
        if "threshold" in part.learnt:
            excess = (mode.threshold - part.reference) * np.sqrt(h.outputscale / mode.outputscale)
            h = replace(h, threshold=float(np.clip(part.reference + excess, *part.threshold_bounds)))
        return h, 0.5 * float(z @ z)


@lru_cache
def _directions(size: int) -> Array:
    """Pairs of opposite points, as far from the centre as a normal draw usually lies, (draws, size)."""
    across = np.linalg.qr(np.random.default_rng(0).standard_normal((size, _DRAWS // 2)))[0].T
    return np.asarray(np.sqrt(size) * np.concatenate([across, -across]))
