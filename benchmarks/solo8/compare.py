"""Solo8's jump with crashbo and with Optuna's samplers: 50 trials from (0, 0, 1, 1), heights and crashes.

    pip install -e '.[robot]' optuna cmaes torch              # torch: for Optuna's GP sampler
    python benchmarks/solo8/compare.py                        # all methods, 10 seeds
    python benchmarks/solo8/compare.py --methods crashbo,tpe-fail --seeds 3

Every method sees the same noisy robot. How each handles a crash (the first part of a name is the sampler):
    crashbo      learns from it; this is the same study as in `crashbo demo`
    ...-fail     is told a failed trial, which Optuna stores and its samplers ignore
    ...-low      is told a jump of 0.25 m, the height at rest: an invented penalty

The best repeatable jump: of all settings in order of their observed heights, the first for which ten repeats all
succeed; its height is their mean. For crashbo also the learnt trip current (the truth is 112.34 A).
"""

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two studies at a time fill two cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import crashbo
from crashbo.app import demo
from crashbo.problems.solo8.problem import START

SAMPLERS = ("tpe", "gp", "cmaes")
METHODS = ("crashbo", *(f"{sampler}-{told}" for sampler in SAMPLERS for told in ("fail", "low")), "random-fail")
REPEATS = 10


class Study(NamedTuple):
    method: str
    seed: int
    trials: int


class Figures(NamedTuple):
    height: float  # of the best repeatable jump
    observed: float  # the best single one
    crashes: int
    falls: int
    threshold: float
    covers: bool
    seconds: float  # a trial, the jump included
    params: tuple[float, ...]


def run(study: Study) -> Figures:
    """One study and the repeats after it."""
    problem = crashbo.problems.get("solo8-jump")
    rng = np.random.default_rng(1000 + study.seed)
    since = time.process_time()
    search = _crashbo if study.method == "crashbo" else _optuna
    jumps, reasons, threshold, interval = search(problem, rng, study)
    seconds = (time.process_time() - since) / study.trials
    height, params = repeatable(problem, jumps, rng)
    return Figures(
        height=height,
        observed=max(h for h, _ in jumps),
        crashes=len(reasons),
        falls=sum(reason.startswith("fell") for reason in reasons),
        threshold=threshold,
        covers=interval[0] <= problem.limits[0].threshold <= interval[1],
        seconds=seconds,
        params=tuple(params.values()),
    )


def repeatable(problem, jumps, rng):
    """Mean height of ten repeats at the best setting for which all succeed, and that setting."""
    for _, params in sorted(jumps, key=lambda jump: -jump[0]):
        heights = []
        for _ in range(REPEATS):
            try:
                heights.append(-problem.evaluate(params, rng).cost)
            except crashbo.Crash:
                break
        if len(heights) == REPEATS:
            return float(np.mean(heights)), params
    return float("nan"), {}


def _crashbo(problem, rng, study):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that did not converge: the study goes on
        story = demo.play(study.trials, study.seed, say=lambda words: None)
    jumps = [(-t.cost, t.params) for t in story.trials if t.state == "success"]
    reasons = [t.reason for t in story.trials if t.state == "crash"]
    last = story.learnt[-1]
    return jumps, reasons, np.nan if last.value is None else last.value, last.interval or (np.inf, -np.inf)


def _optuna(problem, rng, study):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    name, told = study.method.split("-")
    make = {
        "tpe": optuna.samplers.TPESampler,
        "gp": optuna.samplers.GPSampler,
        "cmaes": optuna.samplers.CmaEsSampler,
        "random": optuna.samplers.RandomSampler,
    }
    jumps, reasons = [], []

    def objective(trial):
        params = {k: trial.suggest_float(k, 0.0, 1.0) for k in START}
        try:
            height = -problem.evaluate(params, rng).cost
        except crashbo.Crash as crash:
            reasons.append(crash.reason)
            if told == "low":
                return 0.25
            raise
        jumps.append((height, params))
        return height

    # The start of CMA-ES is the mean it begins from.
    extra = {"x0": dict(START)} if name == "cmaes" else {}
    search = optuna.create_study(direction="maximize", sampler=make[name](seed=study.seed, **extra))
    search.enqueue_trial(START)
    search.optimize(objective, n_trials=study.trials, catch=(crashbo.Crash,))
    return jumps, reasons, float("nan"), (np.inf, -np.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(METHODS), help="with commas")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--details", action="store_true", help="one line per study, too")
    options = parser.parse_args()
    problem = crashbo.problems.get("solo8-jump")
    known = -problem.truth(problem.optimum).cost
    print(f"{options.trials} trials, {options.seeds} seeds; best known repeatable jump {known:.3f} m")
    print(
        f"{'method':12s} {'height':>7s} {'worst':>6s} {'within 3 %':>10s} {'crashes':>8s} {'falls':>6s} {'s/trial':>8s}"
    )
    with ProcessPoolExecutor(options.workers) as pool:
        for method in options.methods.split(","):
            done = list(pool.map(run, [Study(method, seed, options.trials) for seed in range(options.seeds)]))
            heights = np.array([f.height for f in done])
            near = int(np.sum(heights >= 0.97 * known))
            print(
                f"{method:12s} {np.nanmean(heights):7.3f} {np.nanmin(heights):6.3f} {near:7d}/{len(done):<2d} "
                f"{np.mean([f.crashes for f in done]):8.1f} {np.mean([f.falls for f in done]):6.1f} "
                f"{np.mean([f.seconds for f in done]):8.2f}",
                flush=True,
            )
            if method == "crashbo":
                errors = np.array([f.threshold for f in done]) - problem.limits[0].threshold
                print(
                    f"{'':12s} learnt trip current: mean error {np.mean(np.abs(errors)):.1f} A, worst "
                    f"{np.max(np.abs(errors)):.1f} A, 90 % interval covers the truth in {sum(f.covers for f in done)}"
                )
            if options.details:
                for seed, f in enumerate(done):
                    print(f"  seed {seed}: {f}")


if __name__ == "__main__":
    main()
