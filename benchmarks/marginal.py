"""Does it pay to integrate over threshold and hyperparameters, instead of taking the most probable ones?

    python benchmarks/marginal.py [--seeds 2]             # how good P(safe) is at random x, after random trials
    python benchmarks/marginal.py --studies [--seeds 2]   # regret and crashes of whole studies

"MAP" is what crashbo does: the most probable hyperparameters, with the threshold's median and spread given those.
"marginal" averages P(safe) over draws from the Gaussian approximation of the posterior of all hyperparameters and the
threshold together (its precision: Fisher's information plus the priors'), with truncated importance weights.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

import crashbo
import tuning_problems
from crashbo.models import latent
from crashbo.models.fit import Fit
from crashbo.models.information import information
from crashbo.models.latent import Posterior
from crashbo.search.acquisition import LogGamma
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]

DRAWS = 12
PROBLEMS = ("bound2d", "branin2d", "cells2d", "cells3d", "plateau3d", "ackley4d", "valley4d", "levy5d")
OF_STUDIES = ("bound2d", "branin2d", "cells2d", "valley4d")
SIZES = (10, 25)
POINTS = 200


@dataclass(frozen=True)
class Mixture:
    """log of the average P(safe) of several posteriors, with its gradient."""

    pieces: tuple[LogGamma, ...]
    log_weights: Array

    def __call__(self, X: Array) -> Array:
        """At X."""
        return np.asarray(logsumexp([g(X) + w for g, w in zip(self.pieces, self.log_weights, strict=True)], axis=0))

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """At X, with the gradient."""
        pairs = [g.with_gradient(X) for g in self.pieces]
        logs = np.array([value + w for (value, _), w in zip(pairs, self.log_weights, strict=True)])
        total = logsumexp(logs, axis=0)
        share = np.exp(logs - total)
        return total, np.einsum("km,kmd->md", share, np.array([slope for _, slope in pairs]))

    def with_crashes(self, X: Array) -> "Mixture":
        """The same as if trials at X had crashed."""
        return replace(self, pieces=tuple(g.with_crashes(X) for g in self.pieces))


def drawn(fitted: Fit, posterior: Posterior, rng: np.random.Generator) -> Mixture:
    """Draws of one constraint's hyperparameters and threshold, weighted."""
    part, post = fitted.parts[0], posterior
    mode = part.pack(part.inside(post.hypers[0]))
    C = part.metric(part.inside(post.hypers[0]), information(post, 0))
    L = np.linalg.cholesky(C)
    low, high = part.bounds()
    pieces, log_weights = [], []
    for z in [np.zeros(len(mode)), *rng.standard_normal((DRAWS - 1, len(mode)))]:
        theta = np.clip(mode + L @ z, low, high)
        h = part.unpack(theta)
        found = latent.condition(post.data, (part.outside(h),), start=post.sites(), tolerance=1e-3, max_sweeps=40)
        pieces.append(LogGamma(found))
        log_weights.append(found.log_evidence + part.log_prior(h)[0] + 0.5 * float(z @ z))
    w = np.array(log_weights) - logsumexp(log_weights)
    w = np.minimum(w, 0.5 * np.log(DRAWS) - np.log(DRAWS))  # truncated: at most sqrt(draws) times the mean
    return Mixture(tuple(pieces), w - logsumexp(w))


def marginal(surrogates: Surrogates) -> Mixture:
    """P(safe) of a study, integrated; drawn afresh, but always the same for the same trials."""
    model = surrogates.crash_model
    assert model.fitted is not None
    return drawn(model.fitted, model.posterior, np.random.default_rng(len(model.posterior.data.X)))


class Quality(NamedTuple):
    """Of predictions p: log loss, Brier's score, and the mean gap between P(safe) and what happens."""

    log_loss: float
    brier: float
    gap: float


def quality(p: Array, safe: Array) -> Quality:
    q = np.clip(p, 1e-6, 1.0 - 1e-6)
    log_loss = -np.mean(np.where(safe, np.log(q), np.log1p(-q)))
    bins = np.minimum((10.0 * p).astype(int), 9)
    gaps = [abs(np.mean(p[bins == k]) - np.mean(safe[bins == k])) * np.mean(bins == k) for k in np.unique(bins)]
    return Quality(float(log_loss), float(np.mean((p - safe) ** 2)), float(np.sum(gaps)))


def predictions(name: str, n: int, seed: int) -> tuple[Array, Array, Array]:
    """P(safe) at random x by both, after n random trials, and what is true there."""
    problem, rng = tuning_problems.get(name), np.random.default_rng(seed)
    optimizer = crashbo.Optimizer(problem.space, problem.constraints, seed=seed)
    space = optimizer.space
    for u in rng.random((n, space.dimension)):
        params = space.decode(u)
        try:
            outcome = problem.evaluate(params, rng)
            optimizer.tell(params, cost=outcome.cost, measured=outcome.measured)
        except crashbo.Crash:
            optimizer.tell(params, crash=True)
    models = optimizer._surrogates()
    assert models is not None
    X = rng.random((POINTS, space.dimension))
    safe = np.array([not problem.truth(space.decode(u)).crashed for u in X])
    return np.exp(models.log_gamma(X)), np.exp(marginal(models)(X)), safe


def compare(seeds: int) -> None:
    print("P(safe) at random x after n random trials: log loss, Brier's score, gap of a reliability diagram")
    cells = [(name, n, seed) for n in SIZES for name in PROBLEMS for seed in range(seeds)]
    found = {cell: predictions(*cell) for cell in cells}
    for n in SIZES:
        of_n = [found[cell] for cell in cells if cell[1] == n]
        safe = np.concatenate([truth for *_, truth in of_n])
        for way, k in (("MAP", 0), ("marginal", 1)):
            q = quality(np.concatenate([each[k] for each in of_n]), safe)
            print(f"n = {n:3d}  {way:9s} {q.log_loss:.4f}  {q.brier:.4f}  {q.gap:.4f}", flush=True)
        losses = [[quality(p, truth).log_loss for p in (a, b)] for a, b, truth in of_n]
        print(f"         marginal is better on {np.mean([b < a for a, b in losses]):.0%} of {len(of_n)} data sets")


def study(job: tuple[str, int], way: str, trials: int = 40) -> tuple[float, int]:
    """Regret and crashes of one study."""
    name, seed = job
    problem, rng = tuning_problems.get(name), np.random.default_rng(1000 + seed)
    ways = {"MAP": Surrogates.log_gamma, "marginal": property(marginal)}
    with mock.patch.object(Surrogates, "log_gamma", ways[way]):
        result = crashbo.minimize(
            lambda params: problem.evaluate(params, rng),
            problem.space,
            constraints=problem.constraints,
            trials=trials,
            seed=seed,
            start=[problem.safe_start(rng)],
            progress=False,
        )
    assert result.best is not None
    regret = problem.truth(result.best.params).cost - problem.minimum
    return regret, sum(t.state == "crash" for t in result.trials)


def compare_studies(seeds: int) -> None:
    print("studies of 40 trials: median regret, mean crashes")
    jobs = [(name, seed) for name in OF_STUDIES for seed in range(seeds)]
    with ProcessPoolExecutor() as pool:
        both = {
            way: dict(zip(jobs, pool.map(partial(study, way=way), jobs), strict=True)) for way in ("MAP", "marginal")
        }
    for name in OF_STUDIES:
        for way, found in both.items():
            regret, crashes = zip(*(value for job, value in found.items() if job[0] == name), strict=True)
            print(f"{name:10s} {way:9s} {np.median(regret):8.4f}  {np.mean(crashes):5.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--studies", action="store_true")
    args = parser.parse_args()
    (compare_studies if args.studies else compare)(args.seeds)


if __name__ == "__main__":
    main()
