"""The time of a GPCR fit, relative to scikit-learn's classifier and to one Cholesky; and whether it found the maximum.

python benchmarks/fit.py [--sets 10] [--starts 10]

At n = 100 in 10 dimensions with half of the trials crashed, for functions of several families: the time of a cold and
of a warm fit relative to one fit of scikit-learn's GaussianProcessClassifier on the same labels in the same process,
and the gap in log posterior to the best of several random starts. At n = 1000: a warm fit in units of one Cholesky, and
its memory.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: both sides of a ratio use one core

import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Matern

from crashbo.models import GPCR
from crashbo.numerics.kernels import MATERN52

DIMENSION = 10
NOISE = 0.05
COLD, WARM = 1 / 5, 1 / 12  # of scikit-learn's time, at most
NEAR = 0.5  # nats below the best start, at most
NEW = 1  # trials that a warm fit has not seen yet


class Trials(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    crashed: np.ndarray

    def first(self, n: int) -> "Trials":
        """The first n."""
        return Trials(self.X[:n], self.y[:n], self.crashed[:n])


Family = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def of_model(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A function drawn from a GP."""
    lengthscales = np.exp(rng.normal(np.log(0.4 * np.sqrt(DIMENSION)), 0.4, DIMENSION))
    K, _ = MATERN52.gram(X, lengthscales)
    return np.linalg.cholesky(K + 1e-9 * np.eye(len(X))) @ rng.standard_normal(len(X))


def sine(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A wave and a slope: eight of the ten dimensions do not matter."""
    return np.sin(6.0 * X[:, 0]) + 3.0 * X[:, 1]


def cosine(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A wave along a random direction: all dimensions matter, and none is visible without the others."""
    w = rng.standard_normal(DIMENSION)
    return np.cos(4.0 * X @ w / np.linalg.norm(w))


def ripple(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same with a third of the wavelength: hardly learnable from so few trials."""
    return np.cos(4.0 * X @ rng.standard_normal(DIMENSION))


def bowl(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A bowl around a random point."""
    return np.sum((X - rng.uniform(0.2, 0.8, DIMENSION)) ** 2, axis=1)


def noise(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Nothing to learn."""
    return rng.standard_normal(len(X))


FAMILIES = (of_model, sine, cosine, ripple, bowl, noise)


def draw(n: int, rng: np.random.Generator, family: Family = of_model) -> Trials:
    """Trials of a function with the threshold at its median: half of them crash."""
    X = rng.random((n, DIMENSION))
    g = family(X, rng)
    crashed = g > np.median(g)
    y = g + NOISE * np.std(g) * rng.standard_normal(n)
    return Trials(X, np.where(crashed, np.nan, y), crashed)


def random_start(trials: Trials, rng: np.random.Generator) -> GPCR:
    """A posterior at random hyperparameters, as the start of a fit."""
    y = trials.y[~np.isnan(trials.y)]
    spread = float(np.std(y))
    return GPCR.condition(
        *trials,
        lengthscales=np.exp(rng.normal(np.log(0.4 * np.sqrt(DIMENSION)), 0.8, DIMENSION)),
        outputscale=spread**2 * np.exp(rng.normal(0.7, 0.8)),
        mean=float(np.median(y)) + spread * rng.standard_normal(),
        noise_std=spread * np.exp(rng.normal(-2.5, 1.0)),
        threshold=y.max() + spread * rng.uniform(0.0, 1.5),
        crash_noise_std=spread * np.exp(rng.normal(-3.0, 1.0)),
    )


def timed(*works: Callable[[], Any], repeats: int = 1) -> tuple[list[float], list[Any]]:
    """Minimum CPU time of each of several tasks, run in turn so that other load affects all, and their results."""
    times = np.full((repeats, len(works)), np.inf)
    results: list[Any] = [None] * len(works)
    for row in times:
        for i, work in enumerate(works):
            began = time.process_time()
            results[i] = work()
            row[i] = time.process_time() - began
    return times.min(axis=0).tolist(), results


def rival(trials: Trials) -> GaussianProcessClassifier:
    kernel = Matern(np.ones(DIMENSION), nu=2.5)  # a constant factor before it would only make it slower
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a lengthscale at its bound
        return GaussianProcessClassifier(kernel).fit(trials.X, trials.crashed)


def one_set(family: Family, seed: int, starts: int) -> tuple[float, ...]:
    """Ratios of time, cold and warm; gaps to the best start, cold and warm; scikit-learn's seconds; evaluations."""
    rng = np.random.default_rng(seed)
    trials = draw(100, rng, family)
    earlier = GPCR.fit(*trials.first(100 - NEW))
    works = (lambda: rival(trials), lambda: GPCR.fit(*trials), lambda: GPCR.fit(*trials, start=earlier))
    (theirs, cold, warm), (_, model, warmed) = timed(*works, repeats=3)
    reached = [GPCR.fit(*trials, start=random_start(trials, rng)).log_posterior for _ in range(starts)]
    best = max(*reached, model.log_posterior, warmed.log_posterior)
    gaps = best - model.log_posterior, best - warmed.log_posterior
    return cold / theirs, warm / theirs, *gaps, theirs, model.evaluations, warmed.evaluations


def at_one_hundred(sets: int, starts: int) -> None:
    print(f"n = 100, D = {DIMENSION}, half crashed, {sets} data sets a family: median, worst, share within the limit")
    print(f"processor time over scikit-learn's: cold at most {COLD:.3f}, warm at most {WARM:.3f}")
    print(f"nats below the best of {starts} starts: at most {NEAR}")
    columns = "cold", "warm", "sklearn", "cold gap", "warm gap", "evaluations"
    print(" " * 12 + "".join(f"{c:<{w}}" for c, w in zip(columns, (23, 23, 10, 23, 23, 0), strict=True)))
    for family in FAMILIES:
        cold, warm, gap, warm_gap, theirs, *used = np.array([one_set(family, seed, starts) for seed in range(sets)]).T
        times, gaps = (
            "  ".join(f"{np.median(a):6.3f} {a.max():6.3f} ({np.mean(a <= most):4.0%})" for a, most in pairs)
            for pairs in (((cold, COLD), (warm, WARM)), ((gap, NEAR), (warm_gap, NEAR)))
        )
        counts = " ".join(f"{np.median(count):5.1f}" for count in used)
        print(f"  {family.__name__:<10}{times}  {np.median(theirs):6.3f} s  {gaps}  {counts}", flush=True)


def at_one_thousand() -> None:
    rng = np.random.default_rng(0)
    trials = draw(1000, rng)
    A = MATERN52.gram(trials.X, np.ones(DIMENSION))[0] + np.eye(1000)
    (one,), _ = timed(lambda: cholesky(A, lower=True), repeats=5)
    (cold,), (earlier,) = timed(lambda: GPCR.fit(*trials.first(1000 - NEW)))
    (warm,), (model,) = timed(lambda: GPCR.fit(*trials, start=earlier))
    print(f"n = 1000, D = {DIMENSION}, one Cholesky {1e3 * one:.1f} ms")
    print(f"  cold fit                                 {cold / one:6.0f} Choleskys ({earlier.evaluations} evaluations)")
    print(f"  warm fit, at most 250                    {warm / one:6.0f} Choleskys ({model.evaluations} evaluations)")


def memory() -> None:
    trials = draw(1000, np.random.default_rng(0))
    tracemalloc.start()
    GPCR.fit(*trials, start=GPCR.fit(*trials.first(1000 - NEW)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"  peak of what both allocate               {peak / 1e6:6.0f} MB (below 500)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--starts", type=int, default=10)
    arguments = parser.parse_args()
    at_one_hundred(arguments.sets, arguments.starts)
    at_one_thousand()
    memory()


if __name__ == "__main__":
    main()
