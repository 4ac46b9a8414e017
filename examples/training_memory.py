"""A training job that runs out of memory or time.

A ridge regression on random features learns a noisy function of six inputs. More features fit better, until the job
needs more memory than the machine gives it, or more time than anybody has; both limits are real and are kept by
`workers=`. The memory that the job used is measured, so that the limit is seen coming; a run that was killed says
nothing but that.

    python examples/training_memory.py [--trials 40] [--output training_memory.png]
"""

import argparse
import time
import tracemalloc
from pathlib import Path

import numpy as np

import crashbo
from crashbo.app import plots, sketches

MEMORY, SECONDS = "300MB", 2.0  # of a job, with all that it has loaded; nobody tells the models


def data(rows, seed):
    """Inputs, and what is to be learnt of them."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 6))
    wave = np.sin(9 * X[:, 0] * X[:, 1]) + 2 * np.abs(X[:, 2] - 0.4) + X[:, 3] * X[:, 4]
    return X, wave + 0.1 * rng.normal(size=rows)


def features(X, frequencies, phases):
    """Random waves of the inputs: one column for each."""
    return np.cos(X @ frequencies + phases)


def train(params):
    """Error on data that it has not seen, with the memory that it took."""
    began = time.perf_counter()
    tracemalloc.start()  # of this trial: its worker may have had bigger ones before
    rng = np.random.default_rng(1)
    frequencies = rng.normal(size=(6, params["features"])) * params["bandwidth"]
    phases = rng.uniform(0, 2 * np.pi, params["features"])
    X, y = data(params["rows"], seed=2)
    F = features(X, frequencies, phases)
    weights = np.linalg.solve(F.T @ F + params["ridge"] * np.eye(len(phases)), F.T @ y)
    X, y = data(2000, seed=3)
    error = float(np.sqrt(np.mean((features(X, frequencies, phases) @ weights - y) ** 2)))
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return crashbo.Outcome(error, measured={"memory": memory, "seconds": time.perf_counter() - began})


def draw(result, output):
    """The error over trials, and which jobs are too big."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.title(left, "Error", "crosses were killed")
    sketches.draw_course(left, result.trials)
    left.set_ylabel("error on new data")
    seen = sketches.gather_safety(result.optimizer, ("rows", "features"))
    sketches.draw_safety(right, seen, result.trials, result.best)
    plots.save(figure, output)


def main():
    """Train, say what killed the jobs, draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--output", type=Path, default="training_memory.png")
    options = parser.parse_args()
    space = {
        "rows": crashbo.Int(500, 50_000, log=True),
        "features": crashbo.Int(10, 3000, log=True),
        "bandwidth": crashbo.Float(0.3, 10.0, log=True),
        "ridge": crashbo.Float(1e-4, 10.0, log=True),
    }
    result = crashbo.minimize(
        train,
        space,
        constraints=["memory", "seconds"],
        trials=options.trials,
        workers=1,
        memory=MEMORY,
        timeout=SECONDS,
        units={"memory": "MB", "seconds": "s"},
        seed=0,
    )
    for trial in result.trials:
        if trial.state == "crash":
            blame = ", ".join(f"{name} {p:.2f}" for name, p in result.blame(trial).items())
            print(f"{trial.params['rows']} rows, {trial.params['features']} features: {trial.reason} (blame: {blame})")
    for name, threshold in result.thresholds.items():
        print(f"{name}: {threshold.words}")
    print(f"error {result.best.cost:.3f} with {result.best.params}")
    draw(result, options.output)


if __name__ == "__main__":
    main()
