"""Solo8's jump with and without a guard: paired studies, 50 trials each from (0, 0, 1, 1).

    pip install -e '.[robot]'
    python benchmarks/solo8/guard.py                          # 30 seeds
    python benchmarks/solo8/guard.py --seeds 3 --details
    python benchmarks/solo8/guard.py --first 200 --seeds 12   # seeds on which nothing was chosen

The study is that of `crashbo demo`, and of `crashbo demo --guard`. Printed for both: the best repeatable jump (ten
repeats that all succeed) and the worst of these over the seeds, trips of the boards, falls, trials that were stopped,
the share of jumps at their settings that crash when nobody stops them, and the width of the learnt trip current's 90 %
interval, how often it is open above, and how often it covers the truth.
"""

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two studies at a time fill two cores

import numpy as np

import crashbo
from crashbo.app import demo
from crashbo.problems.solo8 import problem as solo8
from crashbo.problems.solo8.jump import jump

AGAIN = 10  # jumps of a stopped setting, each with noise of its own


class Figures(NamedTuple):
    height: float
    trips: int
    falls: int
    stops: int
    doomed: float  # share of jumps at stopped settings that crash when nobody stops them
    width: float
    covers: bool


def run(job: tuple[int, bool, int]) -> Figures:
    seed, guarded, trials = job
    problem, rng = crashbo.problems.get("solo8-jump"), np.random.default_rng([seed, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that did not converge: the study goes on
        optimizer = demo.begin(problem, seed, rng)
        told = [demo.step(optimizer, problem, rng, guarded) for _ in range(trials)]
        low, high = optimizer.thresholds["current"].interval or (-np.inf, np.inf)
    repeats, trip = demo.repeat_best(told, problem, rng), problem.limits[0].threshold
    reasons = [t.reason for t in told if t.state == "crash"]
    stopped = [t for t in told if t.state == "stopped"]
    rng = np.random.default_rng([seed, 3])
    again = [bool(jump(solo8.gains(t.params), solo8.SETUP, rng=rng).crash) for t in stopped for _ in range(AGAIN)]
    return Figures(
        height=float("nan") if not repeats or repeats[-1].crashes else float(np.mean(repeats[-1].heights)),
        trips=sum(reason.startswith("boards") for reason in reasons),
        falls=sum(reason.startswith("fell") for reason in reasons),
        stops=len(stopped),
        doomed=float(np.mean(again)) if again else float("nan"),
        width=high - low,
        covers=bool(low <= trip <= high),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them; those below 110 were looked at")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--details", action="store_true", help="one line per study, too")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    print(f"{options.trials} trials, {options.seeds} seeds")
    names = ("height", "worst", "trips", "falls", "stops", "doomed", "width", "open", "covers")
    print(" " * 8 + " ".join(f"{name:>7s}" for name in names))
    done = {}
    with ProcessPoolExecutor(options.workers) as pool:
        for guarded in (False, True):
            found = list(pool.map(run, [(seed, guarded, options.trials) for seed in seeds]))
            done[guarded] = found
            table = np.array([[float(value) for value in f] for f in found])
            heights, widths = table[:, 0], table[:, 5]
            doomed = np.nansum(table[:, 4] * table[:, 3]) / max(table[:, 3].sum(), 1.0)
            row = [np.nanmean(heights), np.nanmin(heights), *table[:, 1:4].mean(axis=0), doomed, np.median(widths)]
            name = "guarded" if guarded else "free"
            print(f"{name:8s}" + " ".join(f"{x:7.3f}" for x in row), end=" ")
            print(f"{int(np.isinf(widths).sum()):7d} {int(table[:, 6].sum()):4d}/{len(found)}", flush=True)
            if options.details:
                for seed, f in zip(seeds, found, strict=True):
                    print(f"  seed {seed}: {f}")
    gap = np.array([g.height - f.height for f, g in zip(done[False], done[True], strict=True)])
    print(f"height, guarded less free: {np.nanmean(gap):+.4f} +- {np.nanstd(gap) / np.sqrt(len(gap)):.4f} m")


if __name__ == "__main__":
    main()
