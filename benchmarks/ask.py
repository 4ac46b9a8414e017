"""The time of a `tell` and the following `ask()`, by number of trials and dimensions.

    python benchmarks/ask.py [--repeats 5]
    python benchmarks/ask.py --against b612d08    # CPU time of the working tree over that of a revision, in one run
    python benchmarks/ask.py --many [--trials 2000 10000] [--dimensions 4]

Median over several trials around n = 25, 50, 100 and 200 in 2, 6 and 10 dimensions, and around n = 1000 in 10. The
trials before are random and told without asking. If Optuna's GPSampler or BoTorch is installed, the same is measured
for them at n = 100 in 10 dimensions, on the same trials in the same process, for six sets of trials: the ratio is the
median of six.

With --many: n = 100 to 10 000 in 4 to 60 dimensions, CPU seconds. Half of the trials are random, half lie about the
best. *cold* is the first ask of a process that knows nothing but the trials, *joins* that of one that knows their
hyperparameters, too, *warm* the median of those that follow, of which a share goes into the *models*, into the *choice*
by them, and into the *trials*, which are put in order; *level* is the interval of the threshold, *check* all checks.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: both sides of a ratio use one core

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import crashbo

SIZES = (25, 50, 100, 200)
LARGEST = 1000
DIMENSIONS = (2, 6, 10)
NOISE = 0.01
TURNS = 6
SETS = 6  # of trials, on which rivals are measured
clock = time.perf_counter

Params = dict[str, float]


def space(dimension: int) -> dict[str, tuple[float, float]]:
    return {f"x{d}": (0.0, 1.0) for d in range(dimension)}


def settings(n: int, dimension: int, seed: int = 0) -> list[Params]:
    """Random params."""
    names = list(space(dimension))
    return [dict(zip(names, map(float, x), strict=True)) for x in np.random.default_rng(seed).random((n, dimension))]


def outcome(params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """What to tell: a rugged cost, and a crash in about a quarter of the space."""
    x = np.array(list(params.values()))
    load = float(np.sin(3.0 * x[0]) + x.mean() + 0.3 * np.cos(5.0 * x[-1]))
    if load > 1.55:
        return {"crash": True}
    cost = float(np.mean((x - 0.4) ** 2) + 0.1 * np.sin(8.0 * x).mean())
    noise = NOISE * rng.standard_normal(2)
    return {"cost": cost + noise[0], "measured": {"load": load + noise[1]}}


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    began = clock()
    result = work()
    return clock() - began, result


def ours(n: int, dimension: int, repeats: int, seed: int = 0) -> list[float]:
    """Seconds of tell + ask, for the trials around the n-th."""
    rng = np.random.default_rng(1)
    optimizer = crashbo.Optimizer(space(dimension), ["load"], seed=0)
    for params in settings(n - repeats // 2 - 2, dimension, seed):
        optimizer.tell(params, **outcome(params, rng))
    trial = optimizer.ask()  # the cold fit, and the first warm one, are not counted
    times = []
    for i in range(repeats + 1):
        told = outcome(trial.params, rng)

        def step(trial: crashbo.Trial = trial, told: dict[str, Any] = told) -> crashbo.Trial:
            optimizer.tell(trial, **told)
            return optimizer.ask()

        took, trial = seconds(step)
        times += [took] if i else []
    return times


def searched(n: int, dimension: int) -> tuple[crashbo.Optimizer, np.random.Generator]:
    """A study of n trials: half of them at random, half about the best so far."""
    rng = np.random.default_rng(1)
    optimizer = crashbo.Optimizer(space(dimension), ["load"], seed=0)
    names, best, least = list(space(dimension)), np.full(dimension, 0.5), np.inf
    for i in range(n):
        x = rng.random(dimension)
        if i % 2:
            moved = (x < max(2.0 / dimension, 0.3)) * 10.0 ** rng.uniform(-3.0, -0.7)
            x = np.clip(best + moved * rng.standard_normal(dimension), 0.0, 1.0)
        params = dict(zip(names, x.tolist(), strict=True))
        told = outcome(params, rng)
        if told.get("cost", np.inf) < least:
            best, least = x, told["cost"]
        optimizer.tell(params, **told)
    return optimizer, rng


class Spans:
    """CPU seconds spent in some functions, where they are looked up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def watch(self, module: Any, name: str, label: str) -> None:
        """Count what this function takes from now on."""
        whole = getattr(module, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            result = whole(*args, **kwargs)
            self.seconds[label] = self.seconds.get(label, 0.0) + time.process_time() - began
            return result

        setattr(module, name, watched)


def many(sizes: list[int], dimensions: list[int], repeats: int) -> None:
    """Cold and warm asks of large studies, and where their time goes."""
    import resource

    from crashbo.optimizer import optimizer as asking
    from crashbo.strategies import base

    spans = Spans()
    spans.watch(base, "fit_surrogates", "models")
    spans.watch(asking, "observations", "trials")
    print("     n   D    cold   joins    warm  models choice trials   level   check  kB memory")
    for dimension in dimensions:
        for n in sizes:
            optimizer, rng = searched(n, dimension)
            cold, trial = cpu(optimizer.ask)
            times, spans.seconds = [], {}
            for _ in range(repeats):
                optimizer.tell(trial, **outcome(trial.params, rng))
                took, trial = cpu(optimizer.ask)
                times.append(took)
            share = {label: took / sum(times) for label, took in spans.seconds.items()}
            choice = 1.0 - share["models"] - share["trials"]
            state = optimizer.state()["memory"]
            text = optimizer.to_json()
            joins, _ = cpu(crashbo.Optimizer.from_json(text).ask)
            level, _ = cpu(lambda: optimizer.thresholds["load"].interval)  # noqa: B023
            checked, _ = cpu(optimizer.check)
            print(
                f"{n:6d} {dimension:3d} {cold:7.2f} {joins:7.2f} {np.median(times):7.3f} {share['models']:7.0%}"
                f"{choice:7.0%}{share['trials']:7.0%} {level:7.2f} {checked:7.2f} {len(json.dumps(state)) / 1e3:10.0f}",
                flush=True,
            )
    print(f"memory at the most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def optuna_s(n: int, dimension: int, repeats: int, seed: int = 0) -> list[float]:
    """The same for Optuna's GPSampler, without constraints: a crash is told as a high cost."""
    import optuna
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    rng = np.random.default_rng(1)
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0))
    ranges = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in space(dimension)}
    for params in settings(n - repeats // 2 - 2, dimension, seed):
        cost = penalised(outcome(params, rng))
        study.add_trial(optuna.trial.create_trial(params=params, distributions=ranges, value=cost))
    trial = study.ask(ranges)
    times = []
    for i in range(repeats + 1):
        cost = penalised(outcome(trial.params, rng))

        def step(trial: Any = trial, cost: float = cost) -> Any:
            study.tell(trial, cost)
            return study.ask(ranges)

        took, trial = seconds(step)
        times += [took] if i else []
    return times


def botorch_s(n: int, dimension: int, repeats: int, seed: int = 0) -> list[float]:
    """The same for a loop of SingleTaskGP, fit_gpytorch_mll, LogExpectedImprovement and optimize_acqf."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    names = list(space(dimension))
    before = settings(n - repeats // 2 - 1, dimension, seed)
    X = [list(p.values()) for p in before]
    y = [penalised(outcome(p, rng)) for p in before]
    bounds = torch.stack([torch.zeros(dimension), torch.ones(dimension)]).double()

    def step() -> list[float]:
        costs = -torch.tensor(y).double()[:, None]
        model = SingleTaskGP(torch.tensor(X).double(), costs)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=costs.max())
        x, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
        point: list[float] = x[0].tolist()
        return point

    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(repeats + 1):
            took, x = seconds(step)
            times += [took] if i else []
            X.append(x)
            y.append(penalised(outcome(dict(zip(names, x, strict=True)), rng)))
    return times


def penalised(told: dict[str, Any]) -> float:
    """A cost, for methods that cannot learn from a crash."""
    return float(told.get("cost", 1.0))


RIVALS = {
    "Optuna's GPSampler": (("optuna", "torch"), optuna_s, 0.15),
    "a BoTorch loop": (("torch", "gpytorch", "botorch"), botorch_s, 0.05),
}


def against(revision: str, repeats: int) -> None:
    """Both revisions in turns, each in a process of its own; CPU time, since other work comes and goes."""
    from replay import package

    cells = [(n, dimension) for dimension in DIMENSIONS for n in SIZES] + [(LARGEST, DIMENSIONS[-1])]
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: Path(temporary) / name for name in ("old", "new")}
        for folder in folders.values():
            folder.mkdir()
        sources = {"old": package(revision, folders["old"]), "new": package(None, folders["new"])}
        ratios: dict[tuple[int, int], list[float]] = {cell: [] for cell in cells}
        for turn in range(TURNS):
            order = ("old", "new") if turn % 2 else ("new", "old")
            took = {name: alone(sources[name], cells, repeats) for name in order}
            for cell, old, new in zip(cells, took["old"], took["new"], strict=True):
                ratios[cell].append(new / old)
            print(f"turn {turn + 1} of {TURNS}: {np.median([found[-1] for found in ratios.values()]):.3f}", flush=True)
    for (n, dimension), found in ratios.items():
        print(f"n = {n:4d}, D = {dimension:2d}: {np.median(found):.3f} ({min(found):.3f} to {max(found):.3f})")
    print(f"all: {np.median([np.median(found) for found in ratios.values()]):.3f} of the CPU time at {revision}")


def alone(source: Path, cells: list[tuple[int, int]], repeats: int) -> list[float]:
    """Median CPU seconds per cell, in a process with that crashbo."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(Path(__file__).parent)])}
    code = f"import ask, json, time; ask.clock = time.process_time; print(json.dumps(ask.medians({cells}, {repeats})))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return [float(s) for s in json.loads(done.stdout)]


def medians(cells: list[tuple[int, int]], repeats: int) -> list[float]:
    return [
        float(np.median(ours(n, dimension, min(repeats, 3) if n == LARGEST else repeats))) for n, dimension in cells
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--against", metavar="REVISION", help="compare with a revision instead")
    parser.add_argument("--many", action="store_true", help="large studies instead")
    parser.add_argument("--trials", type=int, nargs="+", default=[100, 300, 1000, 2000, 5000, 10_000])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[4, 10, 60])
    options = parser.parse_args()
    repeats = options.repeats
    if options.many:
        many(options.trials, options.dimensions, repeats)
        return
    if options.against:
        against(options.against, repeats)
        return
    print("median ms of tell + ask")
    print(" " * 10 + "".join(f"{f'n = {n}':>10}" for n in (*SIZES, LARGEST)))
    at_hundred = float("nan")
    for dimension in DIMENSIONS:
        row = [float(np.median(ours(n, dimension, repeats))) for n in SIZES]
        if dimension == DIMENSIONS[-1]:
            at_hundred = row[SIZES.index(100)]
            row.append(float(np.median(ours(LARGEST, dimension, min(repeats, 3)))))
        print(f"{f'D = {dimension}':<10}" + "".join(f"{1e3 * s:10.0f}" for s in row), flush=True)
    print(f"n = {LARGEST} over n = 100, D = {DIMENSIONS[-1]}: {row[-1] / at_hundred:.1f} (below 10)")
    for name, (modules, rival, most) in RIVALS.items():
        missing = [module for module in modules if find_spec(module) is None]
        if missing:
            print(f"ours over {name}: not measured, {', '.join(missing)} missing")
            continue
        pairs = [
            [float(np.median(method(100, DIMENSIONS[-1], repeats, seed))) for method in (ours, rival)]
            for seed in range(SETS)
        ]
        ratios, theirs = [one / other for one, other in pairs], float(np.median([other for _, other in pairs]))
        print(
            f"ours over {name}, n = 100, D = {DIMENSIONS[-1]}: {np.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}) of {1e3 * theirs:.0f} ms (at most {most})"
        )


if __name__ == "__main__":
    main()
