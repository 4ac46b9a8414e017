"""Runs of a benchmark that nobody has run: tests say what happened in them."""

from crashbo.benchmark.cases import Case
from crashbo.benchmark.runs import Run, Spec


def fake(method, costs, *, problem="bowl", dimension=4, seed=0, truths=None, trials=None, seconds=0.01, **more):
    """A run with these observed costs, None for a crash; regret equals the true cost unless told otherwise."""
    wasted = more.pop("wasted", [False] * len(costs))
    spec = Spec(method, Case(problem, dimension, seed), len(costs) if trials is None else trials)
    what = {"optimum": 0.0, "median": 1.0, "noise": 0.0, "measured": True, "started": True, "error": None} | more
    return Run(
        spec=spec,
        costs=tuple(costs),
        truths=tuple(costs if truths is None else truths),
        wasted=tuple(wasted),
        suggesting=(seconds,) * len(costs),
        points=((0.5,) * dimension,) * len(costs),
        seconds=1.0,
        versions={"crashbo": "1.0"},
        **what,
    )


def fakes(ends, *, seeds=8, **more):
    """Runs that crash once and then end at a cost, by method: a number, or a function of the seed."""
    return [
        fake(method, [None, 0.9, end(seed) if callable(end) else end], seed=seed, **more)
        for method, end in ends.items()
        for seed in range(seeds)
    ]
