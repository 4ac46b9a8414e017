"""A guard on members of the families: the quantity rises within each trial, and a guard may stop it.

    python benchmarks/guard.py                        # tuning seeds 0 and 1
    python benchmarks/guard.py --seeds 200:203        # those of docs/guard.md

Each trial begins two standard deviations of the load below the least load of the space and rises to what its setting
gives, evenly or ever more slowly (by the seed), in as many readings as are asked for; where a reading lies beyond the
threshold, the machine crashes, and nobody hears of that reading. Paired studies with and without a guard, of the same
number of trials. Printed: crashes, stops, how much worse the best setting is with the guard, in standard deviations of
the cost over the space and without noise, and the width of the threshold's interval, in those of the load, and how
often it covers the truth.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Mapping
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import crashbo

sys.path.insert(0, str(Path(__file__).parent))
from sick_machines import Machine, plain

FAMILIES = ("smooth", "driven", "bowl", "valley", "plateau", "kink", "saturation", "rugged", "decades")
_DRAWS = 4000


class Figures(NamedTuple):
    family: str
    crashes: int
    stops: int
    best: float  # without noise, in standard deviations of the cost
    width: float  # in standard deviations of the load
    covers: bool


def run(job: tuple[str, int, bool, int, int]) -> Figures:
    """One study."""
    family, seed, guarded, trials, readings = job
    warnings.simplefilter("ignore")
    m = plain(family, (2, 3, 4)[seed % 3], seed)
    rng, gauge = np.random.default_rng([seed, 9]), m.member.gauges[0]
    optimizer = crashbo.Optimizer(m.space, m.constraints, start=[m.start] if m.start else None, seed=seed)
    course = _course(readings, slowing=bool(seed % 2))
    low = float(np.min(_towards(m, m.member.uniform(_DRAWS, np.random.default_rng(0))))) - 2.0 * m.load_spread
    for _ in range(trials):
        trial = optimizer.ask()
        guard = optimizer.guard(trial) if guarded else None
        try:
            outcome = _trial(m, trial.params, guard, low, course, rng)
        except crashbo.Stopped as stopped:
            optimizer.tell(trial, stopped=stopped)
        except crashbo.Crash as crash:
            optimizer.tell(trial, crash=crash)
        else:
            optimizer.tell(trial, cost=outcome.cost, measured=outcome.measured)
    low, high = optimizer.thresholds[gauge.name].interval or (-np.inf, np.inf)
    states = [t.state for t in optimizer.trials]
    done = [m.cost(t.params) for t in optimizer.trials if t.state == "success"]
    return Figures(
        family,
        states.count("crash"),
        states.count("stopped"),
        min(done, default=np.nan) / m.cost_spread,
        (high - low) / m.load_spread,
        low <= gauge.limit.threshold <= high,
    )


def _trial(
    m: Machine,
    params: Mapping[str, Any],
    guard: crashbo.Guard | None,
    low: float,
    course: Any,
    rng: np.random.Generator,
) -> crashbo.Outcome:
    """The load rises to what the setting gives; the instrument is off by the same all the while.

    Raises:
        Crash: beyond the threshold; with what was read before, where a guard watches.
        Stopped: before that.
    """
    gauge, sign = m.member.gauges[0], _sign(m)
    peak, off = float(_towards(m, m.member.point(params))[0]), gauge.noise * float(rng.standard_normal())
    for share in course:
        level = sign * (low + share * (peak - low))
        if gauge.limit.violated(level):
            raise crashbo.Crash("tripped", reached=guard and guard.reached, rises=guard and guard.rises)
        if guard is not None:
            guard.update(**{gauge.name: level + off})
    cost = m.cost(params) + m.member.noise * float(rng.standard_normal())
    return crashbo.Outcome(cost, {gauge.name: sign * peak + off})


def _course(readings: int, slowing: bool) -> Any:
    t = np.arange(1, readings + 1) / readings
    return (1.0 - np.exp(-4.0 * t)) / (1.0 - np.exp(-4.0)) if slowing else t


def _sign(m: Machine) -> float:
    return float(m.constraints[0].sign)


def _towards(m: Machine, U: Any) -> Any:
    """The load, counted towards the crash."""
    return _sign(m) * m.member.gauges[0].read(U)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:2")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--readings", type=int, default=100, help="within a trial")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    cases = [(f, s) for f in options.families.split(",") for s in range(*map(int, options.seeds.split(":")))]
    jobs = [(f, s, guarded, options.trials, options.readings) for f, s in cases for guarded in (False, True)]
    with Pool(options.workers) as pool:
        found = pool.map(run, jobs, chunksize=1)
    free, with_guard = found[::2], found[1::2]
    print("| family | crashes | with a guard | stopped | worse by | width | with a guard | covers |")
    print("|---|---|---|---|---|---|---|---|")
    for family in (*options.families.split(","), "all"):
        rows = [k for k, f in enumerate(free) if family in (f.family, "all")]
        a, b = [free[k] for k in rows], [with_guard[k] for k in rows]
        worse = np.array([y.best - x.best for x, y in zip(a, b, strict=True)])
        error = np.std(worse) / np.sqrt(len(worse))
        print(
            f"| {family} | {np.mean([f.crashes for f in a]):.1f} | {np.mean([f.crashes for f in b]):.1f} "
            f"| {np.mean([f.stops for f in b]):.1f} | {np.mean(worse):+.3f} ± {error:.3f} "
            f"| {np.median([f.width for f in a]):.2f} | {np.median([f.width for f in b]):.2f} "
            f"| {sum(f.covers for f in a)}, {sum(f.covers for f in b)} of {len(b)} |"
        )


if __name__ == "__main__":
    main()
