"""How often the threshold's 90 % interval covers the truth, on data drawn from the model itself.

python benchmarks/coverage.py [--sets 200]
"""

import argparse
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np

from crashbo.models import GPCR
from crashbo.numerics.kernels import MATERN52


class Case(NamedTuple):
    dimension: int
    noise: float
    n: int
    noise_known: bool
    seed: int


def draw(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Data with at least 15 successes and 10 crashes, and the true threshold."""
    while True:
        X = rng.random((case.n, case.dimension))
        lengthscales = np.exp(rng.normal(np.log(0.4 * np.sqrt(case.dimension)), 0.4, case.dimension))
        K, _ = MATERN52.gram(X, lengthscales)
        g = np.linalg.cholesky(K + 1e-9 * np.eye(case.n)) @ rng.standard_normal(case.n)
        c = 0.7 * rng.standard_normal()
        crashed = g > c
        if np.sum(~crashed) >= 15 and np.sum(crashed) >= 10:
            return X, np.where(crashed, np.nan, g + case.noise * rng.standard_normal(case.n)), crashed, c


def covered(case: Case) -> tuple[bool, float]:
    X, y, crashed, c = draw(case, np.random.default_rng(case.seed))
    model = GPCR.fit(X, y, crashed, noise_std=case.noise if case.noise_known else None)
    assert model.threshold_interval is not None
    low, high = model.threshold_interval
    return low <= c <= high, high - low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    sets = parser.parse_args().sets
    print("  D  noise   n  noise is   covered   median width (prior std)")
    with Pool() as pool:
        for D, noise, n in ((1, 0.05, 30), (2, 0.01, 30), (2, 0.05, 30), (2, 0.2, 40), (4, 0.05, 40), (2, 0.05, 80)):
            for known in (False, True):
                cases = [Case(D, noise, n, known, seed) for seed in range(sets)]
                hits, widths = zip(*pool.imap_unordered(covered, cases, chunksize=4), strict=True)
                word = "known " if known else "learnt"
                print(
                    f"{D:3d}  {noise:5.2f} {n:3d}  {word}    {np.mean(hits):6.1%}   {np.median(widths):.3f}", flush=True
                )


if __name__ == "__main__":
    main()
