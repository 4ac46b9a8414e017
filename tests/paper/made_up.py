"""Runs that were never made, for whatever puts runs together."""

import numpy as np

from crashbo.paper.runs import PaperRun, PaperSpec


def run(method="eicc", problem="eggcrate2d", repeat=0, *, regret=(2.0, 1.0, 0.5, 0.25), crashes=(), threshold=0.1):
    """A run of so many trials as there are regrets, with crashes at some of them."""
    trials = len(regret)
    return PaperRun(
        spec=PaperSpec(method, problem, repeat, trials),
        regret=tuple(regret),
        crashed=tuple(i in crashes for i in range(trials)),
        reach=0.2,
        thresholds={"g": threshold} if method.startswith("eicc") else {},
        seconds=0.4,
    )


def several(methods, problems, repeats=3):
    """Runs of every method on every problem, all different."""
    rng = np.random.default_rng(0)
    return [
        run(m, p, i, regret=np.sort(rng.random(4))[::-1].tolist(), crashes=(int(rng.integers(1, 4)),))
        for i in range(repeats)
        for p in problems
        for m in methods
    ]
