"""A hidden cost that is compared: its GP at given hyperparameters, or at the most probable ones.

May import numerics only.

Where there are no numbers the scale is a convention: mean 0 and outputscale 1. The judge's scatter is learnt, and from
ties the least difference that is seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crashbo.models import checks, ep, hyperpriors
from crashbo.models.comparisons import LAPSE
from crashbo.models.ep import Sites
from crashbo.models.hidden_cost import ComparedPosterior, Comparisons, Rows, condition, numbered
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior, LogNormal
from crashbo.models.latent import Hyperparameters
from crashbo.models.parametrisation import Parametrisation, parametrise
from crashbo.numerics import bfgs

Array = NDArray[np.float64]

# judgement: weak priors, in units of the hidden cost's spread
_JUDGE_NOISE = LogNormal(0.1, 1.0, (1e-2, 3.0))
_TIES, _TIE = (1e-2, 3.0), 0.1  # the least difference that is seen: flat between these, and where a fit begins
# judgement: as in models.fit
_EP_TOLERANCE, _MAX_SWEEPS, _MAX_EVALUATIONS = 1e-3, 60, 80
_ENOUGH, _REACH = 5e-3, 1.0


@dataclass(frozen=True)
class _ComparedParametrisation(Parametrisation):
    """A difference has no shift."""

    def outside(self, h: Hyperparameters) -> Hyperparameters:
        return replace(super().outside(h), threshold=self.scale * h.threshold)

    def inside(self, h: Hyperparameters) -> Hyperparameters:
        return replace(super().inside(h), threshold=h.threshold / self.scale)


def _parametrisation(
    data: HybridData, comparisons: Comparisons, noise_std: float | None, prior: Hyperprior
) -> _ComparedParametrisation:
    """What is learnt: the scale only from numbers, the width of ties only from ties."""
    prior = replace(prior, crash_noise_std=_JUDGE_NOISE)
    p = parametrise(
        data.Y[0], np.zeros(len(data.X)), prior, dimension=data.X.shape[1], labelled=False, noise_std=noise_std
    )
    numbers, ties = bool(data.measured.any()), bool(comparisons.tie.any())
    learnt = [name for name in p.learnt if numbers or name == "lengthscales"]
    learnt += ["threshold"] * ties + ["crash_noise_std"] * (len(comparisons) > 0)
    noise = p.start.noise_std if noise_std is not None or numbers else _start(prior.noise_std)
    mean = p.start.mean if numbers else 0.0
    start = replace(p.start, threshold=_TIE if ties else 0.0, mean=mean, noise_std=noise)
    start = replace(start, crash_noise_std=_JUDGE_NOISE.start)
    return _ComparedParametrisation(start, prior, tuple(learnt), 0.0, _TIES, p.shift, p.scale)


def _start(prior: hyperpriors.Density | float) -> float:
    return float(prior) if isinstance(prior, int | float) else prior.start


def fit(
    data: HybridData,
    comparisons: Comparisons,
    *,
    noise_std: float | None = None,
    prior: Hyperprior | None = None,
    starts: Sequence[Hyperparameters] = (),
) -> ComparedPosterior:
    """The posterior at the most probable hyperparameters; `starts` are others to begin from, beside the prior's.

    Judgements that contradict each other may keep EP from its fixed point where each may be a slip: then none may be.
    """
    p = _parametrisation(data, comparisons, noise_std, prior or hyperpriors.of_cost(data.X.shape[1]))
    search = _ComparedObjective(data, comparisons, p)
    points = np.array([p.pack(begun.start) for begun in (p, *map(p.started_from, starts))])
    bfgs.minimise(search, points, *p.bounds(), evaluations=_MAX_EVALUATIONS, enough=_ENOUGH, reach=_REACH)
    assert search.best is not None  # a start has a posterior, however improbable
    found = search.best.at(search.best.hypers)
    if found.ep.converged or comparisons.lapse == 0.0:
        return found
    return fit(data, replace(comparisons, lapse=0.0), noise_std=noise_std, prior=prior, starts=starts)


class _ComparedObjective:
    """The negative log posterior of the hyperparameters; keeps the last sites and the best point."""

    def __init__(self, data: HybridData, comparisons: Comparisons, p: Parametrisation) -> None:
        self.data, self.comparisons, self.p = data, comparisons, p
        self.rows = Rows.of(data, comparisons)
        self.units = float(self.rows.seen.sum() * np.log(p.scale))
        self.best: ComparedPosterior | None = None
        self.best_value = -np.inf
        self.sites: Sites | None = None

    def __call__(self, points: Array, _: NDArray[np.intp]) -> tuple[Array, Array]:
        found = [self._one(theta) for theta in points]
        return np.array([value for value, _ in found]), np.array([slope for _, slope in found])

    def _one(self, theta: Array) -> tuple[float, Array]:
        h = self.p.unpack(theta)
        post = condition(
            self.data,
            self.comparisons,
            (self.p.outside(h),),
            start=self.sites,
            rows=self.rows,
            tolerance=_EP_TOLERANCE,
            max_sweeps=_MAX_SWEEPS,
        )
        log_prior, slopes = self.p.log_prior(h)
        value = post.log_evidence + self.units + log_prior
        if self.best is None or value > self.best_value:
            self.best, self.best_value = post, value
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        self.sites = post.sites()
        return -value, -self.p.chain(h, post.gradient().in_units(self.p.scale).plus(slopes))


@dataclass(frozen=True)
class ComparedGP:
    """A posterior over a hidden cost. Made by `condition` or `fit`; lower is better."""

    posterior: ComparedPosterior

    @classmethod
    def condition(
        cls,
        X: ArrayLike,
        pairs: ArrayLike,
        *,
        lengthscales: ArrayLike,
        judge_noise_std: float,
        tie: ArrayLike | None = None,
        tie_width: float = 0.0,
        y: ArrayLike | None = None,
        outputscale: float = 1.0,
        mean: float = 0.0,
        noise_std: float = 0.0,
        lapse: float = 0.0,
    ) -> "ComparedGP":
        """The posterior at given hyperparameters.

        Args:
            X: parameters, (n, D), in the unit cube.
            pairs: rows of X that were compared, (m, 2), the better one first.
            lengthscales: one per column of X, or one for all.
            judge_noise_std: scatter with which the judge sees a difference, a standard deviation.
            tie: booleans, (m,), True where both were about the same.
            tie_width: the least difference that the judge sees.
            y: numbers, (n,), NaN where there is none.
            outputscale: prior variance of the hidden cost.
            mean: its prior mean.
            noise_std: of the numbers.
            lapse: least probability of each verdict: now and then a judge slips.
        """
        data, found = _checked(X, pairs, tie, y, lapse)
        checks.positive("judge_noise_std", judge_noise_std)
        if checks.number("tie_width", tie_width) < 0.0:
            raise ValueError(f"tie_width must not be negative; got {tie_width!r}. It is the least difference seen.")
        if found.tie.any() and tie_width == 0.0:
            raise ValueError(f"tie_width must be positive where there are ties; got {tie_width!r}. Give one.")
        hypers = checks.hyperparameters(
            data,
            lengthscales=lengthscales,
            outputscale=outputscale,
            noise_std=noise_std,
            threshold=tie_width,
            crash_noise_std=judge_noise_std,
            mean=mean,
        )
        return cls(condition(data, found, (hypers,), tolerance=ep.TOLERANCE))

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        pairs: ArrayLike,
        *,
        tie: ArrayLike | None = None,
        y: ArrayLike | None = None,
        noise_std: float | None = None,
        lapse: float = LAPSE,
    ) -> "ComparedGP":
        """The posterior at the most probable hyperparameters; arguments as in `condition`, None learns the noise."""
        data, found = _checked(X, pairs, tie, y, lapse)
        return cls(fit(data, found, noise_std=noise_std))

    @property
    def hyperparameters(self) -> Hyperparameters:
        """All of them: the judge's scatter is `crash_noise_std`, the least difference that is seen `threshold`."""
        return self.posterior.hypers[0]

    @property
    def log_evidence(self) -> float:
        """log Z_EP of comparisons and numbers."""
        return self.posterior.log_evidence

    @property
    def converged(self) -> bool:
        """Whether EP reached its fixed point."""
        return self.posterior.ep.converged

    def log_evidence_gradient(self) -> Mapping[str, float | Array]:
        """Exact derivatives of `log_evidence` in every hyperparameter, by name, in natural units."""
        return self.posterior.gradient()._asdict()

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the hidden cost at X, (m, D)."""
        return self.posterior.predict(0, checks.inputs(X, dimension=self.posterior.data.X.shape[1]))


def _checked(
    X: ArrayLike, pairs: ArrayLike, tie: ArrayLike | None, y: ArrayLike | None, lapse: float
) -> tuple[HybridData, Comparisons]:
    X = checks.inputs(X)
    values = np.full(len(X), np.nan) if y is None else checks.values(y, len(X))
    found = Comparisons.of(pairs, tie, len(X), lapse)
    if not len(found) and np.isnan(values).all():
        raise ValueError(f"pairs must hold a comparison where there are no numbers; got {pairs!r}. Give one.")
    return numbered(X, values), found
