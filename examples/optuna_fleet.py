"""Optuna on a fleet: several processes, one study, and workers that really die.

Four workers fit the mass and the drag of a drone to a flight; each is a process of its own with its own
`CrashSampler`, and all they share is a storage (here a SQLite file; PostgreSQL for many machines). Some settings kill
the process that tries them. A lease notices: the setting is tried once more, and a second death there is a crash. A
new worker takes the place of a dead one. Needs `pip install 'crashbo[optuna,plot]'`.

    python examples/optuna_fleet.py [--trials 40] [--workers 4] [--output optuna_fleet.png]
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import optuna

import crashbo
from crashbo.app import plots
from crashbo.integrations.optuna import CrashSampler, declare, measure, records

NAME, LEASE = "drone", 3.0  # seconds after which a worker is taken to be dead


def objective(trial):
    """How badly a simulated flight misses the measured one; a simulation that blows up takes its process with it."""
    trial.set_user_attr("worker", os.getpid())
    mass, drag = trial.suggest_float("mass", 0.5, 3.0), trial.suggest_float("drag", 0.0, 0.8)
    height = speed = 0.0
    step, fastest = 0.02, 0.0
    for _ in range(200):
        speed += step * (22.0 / mass - 9.81 - drag * speed * abs(speed) / mass)
        height += step * speed
        fastest = max(fastest, abs(speed))
    if fastest > 11.0:
        os._exit(1)  # as if the solver had run out of memory
    measure(trial, speed=fastest)
    time.sleep(0.2)  # a longer flight
    return (height - 24.0) ** 2 / 100 + (fastest - 8.0) ** 2


def worker(url, trials):
    """One of many: it knows the storage and the name of the study, and nothing else."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name=NAME, storage=url, sampler=CrashSampler())
    while len(study.get_trials(deepcopy=False)) < trials:
        study.optimize(objective, n_trials=1, catch=(crashbo.Crash,))


def run(url, workers, trials):
    """Keep so many workers at work until the trials are done; how many died."""
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    start = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        start.set_forkserver_preload(["crashbo.integrations.optuna"])  # imported once, not once per worker
    crew, died = [], 0
    while True:
        gone = [p for p in crew if p.exitcode is not None]
        died += sum(p.exitcode != 0 for p in gone)
        if any(p.exitcode == 0 for p in gone):  # the trials are done: let the others finish
            for process in crew:
                process.join()
            return died
        crew = [p for p in crew if p not in gone]
        while len(crew) < workers:
            crew.append(start.Process(target=worker, args=(url, trials)))
            crew[-1].start()
        time.sleep(0.05)


def draw(study, output):
    """Who ran what when, and how good it was."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.3, 1.0])
    for axes in (left, right):
        plots.dress(axes)
    plots.title(left, "The fleet", "a row for each process; crosses died")
    known = {t.number: t for t in records(study)}
    rows = {}
    begin = study.trials[0].datetime_start
    for trial in study.trials:
        row = rows.setdefault(trial.user_attrs.get("worker"), len(rows))
        start = (trial.datetime_start - begin).total_seconds()
        state = known[trial.number].state
        if trial.datetime_complete is not None and state == "success":
            left.barh(
                row, (trial.datetime_complete - trial.datetime_start).total_seconds(), 0.7, start, color=plots.MODEL
            )
        else:
            left.plot(start, row, "x", color=plots.CRASH, markersize=8, markeredgewidth=2.2)
    left.set(xlabel="time (s)", ylabel="process")
    left.invert_yaxis()
    plots.title(right, "Misfit", "best so far")
    done = [(t.number, t.cost) for t in known.values() if t.cost is not None]
    right.step(
        [n for n, _ in done], [min(c for m, c in done if m <= n) for n, _ in done], where="post", color=plots.MODEL
    )
    right.plot(*zip(*done, strict=True), "o", color=plots.SUCCESS, markersize=5)
    right.set(yscale="log", xlabel="trial")
    right.minorticks_off()
    plots.save(figure, output)


def main():
    """Start the fleet, count, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--output", type=Path, default="optuna_fleet.png")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/study.db"
        study = optuna.create_study(study_name=NAME, storage=url)
        declare(study, constraints=["speed"], lease=LEASE)
        died = run(url, options.workers, options.trials)
        states = [t.state for t in records(study)]
        print(f"{died} workers died;", {state: states.count(state) for state in sorted(set(states))})
        print(f"misfit {study.best_value:.3f} with {study.best_params}")
        draw(study, options.output)


if __name__ == "__main__":
    main()
