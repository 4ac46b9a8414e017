"""What a GPCR fit costs, beside scikit-learn's classifier and one Cholesky; and whether it reached the top.

python benchmarks/fit.py [--sets 10] [--starts 10]

At n = 100 in 10 dimensions, half of the trials crashes: time of a cold and of a warm fit over that of one fit
of scikit-learn's GaussianProcessClassifier on the same labels in the same process, and the gap in log
posterior to the best of several random starts. At n = 1000: a warm fit in Choleskys, and its peak memory.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: the ratios are of one core against one

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
NEW = 1  # trials that a warm fit has not seen yet


class Trials(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    crashed: np.ndarray

    def first(self, n: int) -> "Trials":
        """The first n."""
        return Trials(self.X[:n], self.y[:n], self.crashed[:n])


def draw(n: int, rng: np.random.Generator) -> Trials:
    """Trials of a function drawn from its GP, with the threshold at its median: half of them crash."""
    X = rng.random((n, DIMENSION))
    lengthscales = np.exp(rng.normal(np.log(0.4 * np.sqrt(DIMENSION)), 0.4, DIMENSION))
    K, _ = MATERN52.gram(X, lengthscales)
    g = np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.standard_normal(n)
    crashed = g > np.median(g)
    return Trials(X, np.where(crashed, np.nan, g + NOISE * rng.standard_normal(n)), crashed)


def random_start(trials: Trials, rng: np.random.Generator) -> GPCR:
    """A posterior at hyperparameters drawn at random, for a fit to begin from."""
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


def timed(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Least time of several runs, and the last result."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return min(times), result


def rival(trials: Trials) -> GaussianProcessClassifier:
    kernel = Matern(np.ones(DIMENSION), nu=2.5)  # a constant factor before it would only make it slower
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a lengthscale at its bound
        return GaussianProcessClassifier(kernel).fit(trials.X, trials.crashed)


def at_one_hundred(sets: int, starts: int) -> None:
    rows = []
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        trials = draw(100, rng)
        theirs, _ = timed(lambda trials=trials: rival(trials), repeats=3)
        cold, model = timed(lambda trials=trials: GPCR.fit(*trials), repeats=3)
        earlier = GPCR.fit(*trials.first(100 - NEW))
        warm, warmed = timed(lambda trials=trials, earlier=earlier: GPCR.fit(*trials, start=earlier), repeats=3)
        best = max(GPCR.fit(*trials, start=random_start(trials, rng)).log_posterior for _ in range(starts))
        best = max(best, model.log_posterior, warmed.log_posterior)
        rows.append((cold / theirs, warm / theirs, best - model.log_posterior, best - warmed.log_posterior, theirs))
    cold, warm, gap, warm_gap, theirs = np.array(rows).T
    print(f"n = 100, D = {DIMENSION}, half crashed, {sets} data sets (median, worst)")
    print(f"  scikit-learn's classifier, one fit       {np.median(theirs):6.3f} s")
    print(f"  cold fit / scikit-learn's                {np.median(cold):6.3f}  {cold.max():6.3f}   (at most 0.2)")
    print(f"  warm fit / scikit-learn's                {np.median(warm):6.3f}  {warm.max():6.3f}   (at most 0.083)")
    for name, gaps in (("cold", gap), ("warm", warm_gap)):
        share = f"{np.sum(gaps <= 0.5)} of {sets} within 0.5"
        print(
            f"  {name}: nats below best of {starts} starts      {np.median(gaps):6.3f}  {gaps.max():6.3f}   ({share})"
        )


def at_one_thousand() -> None:
    rng = np.random.default_rng(0)
    trials = draw(1000, rng)
    A = MATERN52.gram(trials.X, np.ones(DIMENSION))[0] + np.eye(1000)
    one, _ = timed(lambda: cholesky(A, lower=True), repeats=5)
    cold, earlier = timed(lambda: GPCR.fit(*trials.first(1000 - NEW)))
    warm, model = timed(lambda: GPCR.fit(*trials, start=earlier))
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
