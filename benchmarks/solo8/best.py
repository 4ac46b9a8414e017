"""The best possible jump of Solo8: a long search on the perfect robot, then repeats on the noisy one.

    pip install -e '.[robot]' cmaes
    python benchmarks/solo8/best.py                           # about 10 minutes per core

CMA-ES from the best of 256 Sobol points, several starts, with a margin between the current and the trip level: without
it, the best jump would be one that trips by noise. The winner is the highest jump for which 20 of 20 repeats succeed.
"""

import argparse
import itertools
import os
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the searches are spread over the cores

import numpy as np
from cmaes import CMA
from scipy.stats import qmc

import crashbo
from crashbo.problems.solo8 import problem as solo8
from crashbo.problems.solo8.jump import Flight, jump

MARGINS = (0.0, 1.0, 2.0)  # A
STARTS = 3
GENERATIONS, POPULATION = 40, 10


def fly(x: np.ndarray) -> Flight:
    return jump(solo8.gains(dict(zip(solo8.RANGES, x, strict=True))), solo8.SETUP.untrippable)._replace(tape=None)


def loss(flight: Flight, most: float) -> float:
    """Minus the height; a crash is worse than any jump, and worse the farther it is beyond the limit."""
    if flight.crash:
        return 1.0
    return -flight.height if flight.current <= most else min((flight.current - most) / 100.0, 1.0)


def search(job: tuple[np.ndarray, float, int]) -> tuple[float, float, np.ndarray, float]:
    start, most, seed = job
    optimizer = CMA(mean=start, sigma=0.15, bounds=np.tile([0.0, 1.0], (4, 1)), seed=seed, population_size=POPULATION)
    best = (np.inf, start, np.nan)
    for _ in range(GENERATIONS):
        told = []
        for _ in range(POPULATION):
            x = optimizer.ask()
            flight = fly(x)
            told.append((x, loss(flight, most)))
            best = min(best, (told[-1][1], x, flight.current), key=lambda found: found[0])
        optimizer.tell(told)
    return most, -best[0], best[1], best[2]


def repeats(x: np.ndarray, times: int = 20) -> tuple[int, float, float]:
    """How many repeats succeed, and their mean height and its spread."""
    problem, rng, heights = crashbo.problems.get("solo8-jump"), np.random.default_rng(0), []
    for _ in range(times):
        try:
            heights.append(-problem.evaluate(dict(zip(solo8.RANGES, x, strict=True)), rng).cost)
        except crashbo.Crash:
            continue
    return len(heights), float(np.mean(heights or np.nan)), float(np.std(heights or np.nan))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    X = qmc.Sobol(4, seed=0).random(256)
    with ProcessPoolExecutor(options.workers) as pool:
        flights = list(pool.map(fly, X, chunksize=16))
        jobs = []
        for margin, k in itertools.product((*MARGINS, -np.inf), range(STARTS)):
            most = solo8.SETUP.trip - margin
            order = np.argsort([loss(flight, most) for flight in flights])
            jobs.append((X[order[k]], most, k))
        for most, height, x, current in pool.map(search, jobs):
            words = f"at most {most:6.2f} A: {height:.4f} m, {current:.1f} A at {np.round(x, 4).tolist()}"
            if np.isfinite(most):
                succeed, mean, std = repeats(x)
                words += f"; {succeed} of 20 repeats succeed, {mean:.4f} +- {std:.4f} m"
            print(words, flush=True)


if __name__ == "__main__":
    main()
