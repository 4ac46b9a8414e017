"""Advice: a bound that keeps a study from something better, and a study that is done. The model may well be right.

May import strategies and below.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from crashbo.models.hidden_cost import ComparedPosterior
from crashbo.models.latent import Posterior, relative_noise_std
from crashbo.optimizer.checks.finding import Finding, amount, listed
from crashbo.optimizer.records import Trial
from crashbo.optimizer.study import number_of
from crashbo.optimizer.view import View
from crashbo.search.risk import WORTHWHILE
from crashbo.search.space import Choice, Context, Params

Array = NDArray[np.float64]

_AT = 0.01  # judgement: of the range: so near to its end a parameter is at it
_BEST = 3  # judgement: best trials, of which most must be there
_STEP = 0.05  # judgement: of the range, over which the cost's slope is taken
# fitted: benchmarks/check.py, tuning seeds
_IDLE, _MOSTLY = 30, 0.75  # successes in a row that gained nothing, at least, and the share of all successes
_LEAST_SLOPE = 4.0  # standard deviations of a slope that is sure
_MATERIAL = 0.05  # of what the best success gained over the median one: less beyond a bound is not worth a change
_LIKELY = 0.5  # derived: P(safe) beyond a bound, below which going there crashes more likely than not
_TINY = 1e-300  # so that no division fails
_MOST = 50.0  # judgement: nats of what leaves no doubt


class Edge(NamedTuple):
    """An end of a parameter's range at which the best trial stands, and the cost on the way to it."""

    name: str
    column: int
    end: float  # 0 or 1
    sure: float = 0.0  # that the cost falls over the last step to it, in standard deviations
    gain: float = 0.0  # over as much as two steps beyond it, expected


def bounds(view: View, shown: Callable[[Params], Params] = lambda params: params) -> Iterator[Finding]:
    """Parameters that the best trials have at an end of their range, where the cost still falls by what is material."""
    models, study = view.models, view.study
    if models is None or models.cost is None or study.objectives:  # a front has ends at bounds more often than not
        return
    best = _best(view)
    if len(best) < _BEST or isinstance(models.cost, ComparedPosterior):
        return
    X = np.array([study.space.encode(t.params) for t in best])
    common = [e for e in _edges(view, X[0]) if 2 * np.sum(np.abs(X[:, e.column] - e.end) <= _AT) > _BEST]
    measured = [_measured(view, X[0], edge) for edge in common]
    least = max(models.aim.resolution, _MATERIAL * _gained(view))
    found = [e for e in measured if e.sure >= _LEAST_SLOPE and e.gain > least]
    if not found:
        return
    found.sort(key=lambda e: -e.gain)
    params = shown(best[0].params)
    where = listed([_place(edge, params[edge.name], study.units.get(edge.name, "")) for edge in found])
    way, units = "falls" if study.sign > 0.0 else "rises", study.units.get("cost", "")
    yield Finding(
        "bound",
        f"The best trials have {where}, and the cost still {way} towards {'it' if len(found) == 1 else 'these'}: "
        f"{found[0].name} a tenth of its range beyond may be expected to gain {amount(found[0].gain, units)} more.",
        tuple(t.number for t in best),
        f"Widen the range of {listed([e.name for e in found])}, if the machine allows it; "
        "`optimizer.changed(space=...)` keeps all trials.",
        advice=True,
        strength=min(0.5 * (max(e.sure for e in found) ** 2 - _LEAST_SLOPE**2), _MOST),
    )


def _place(edge: Edge, value: float, unit: str) -> str:
    return f"{edge.name} at its {'upper' if edge.end else 'lower'} bound ({amount(value, unit)})"


def _measured(view: View, x: Array, edge: Edge) -> Edge:
    """The edge with the cost on the way to it and beyond; nothing where it is likely to crash there."""
    models, safety = view.models, view.safety
    assert models is not None
    assert models.cost is not None
    assert safety is not None
    step = np.zeros(len(x))
    step[edge.column] = _STEP if edge.end else -_STEP
    if float(np.exp(safety.averaged((x + step)[None])[0])) < _LIKELY:
        return edge
    mean, std = _difference(models.cost, models.successes, x - step, x)
    beyond, _ = _difference(models.cost, models.successes, x, x + 2.0 * step)
    return edge._replace(sure=-mean / max(std, _TINY), gain=-beyond)


def _gained(view: View) -> float:
    """What the best success has gained over the median one."""
    costs = [view.study.sign * t.cost for t in view.trials if t.state == "success" and t.cost is not None]
    return float(np.median(costs) - np.min(costs))


def gain(view: View) -> Iterator[Finding]:
    """A study that was run past its end: most of its trials have gained nothing, and the next are not expected to."""
    done = [t for t in view.trials if t.state == "success"]
    models = view.models
    if models is None or models.cost is None or len(done) < _IDLE:
        return
    since = _since_gain(view)
    if since < max(_IDLE, _MOSTLY * len(done)):
        return
    left = view.gain_left()
    if left is None or left >= WORTHWHILE:
        return
    last = done[-since:]
    several = bool(view.study.objectives)
    noise, best = ("goals", "points of the front") if several else ("cost", "the best")
    yield Finding(
        "gain",
        f"The last {since} successes have gained nothing, and the next may be expected to gain "
        f"{'next to nothing' if left < 0.01 else f'{left:.2g} of the noise of the {noise}'}.",
        tuple(t.number for t in last),
        f"Stop, or repeat {best} a few times with `confirm`; for more, widen the ranges or change the machine.",
        advice=True,
        strength=float(np.log(WORTHWHILE / max(left, 1e-9))),
    )


def _best(view: View) -> list[Trial]:
    """The best successes in the space, by their costs."""
    done = [
        t for t in view.trials if t.state == "success" and t.cost is not None and view.study.space.accepts(t.params)
    ]
    return sorted(done, key=lambda t: view.study.sign * number_of(t))[:_BEST]


def _edges(view: View, x: Array) -> Iterator[Edge]:
    """Ends of ranges at which x stands."""
    column = 0
    for name, p in view.study.space.parameters.items():
        if not isinstance(p, Choice | Context) and name not in view.study.space.fixed:
            for end in (0.0, 1.0):
                if abs(x[column] - end) <= _AT:
                    yield Edge(name, column, end)
        column += p.width


def _difference(cost: Posterior, n: int, before: Array, after: Array) -> tuple[float, float]:
    """Mean and standard deviation of the cost at `after` less that at `before`, by its first n trials."""
    h, X, two = cost.hypers[0], cost.data.X[:n], np.stack([before, after])
    K = cost.kernel.gram(X, h.lengthscales)[0]
    K[np.diag_indices(n)] += np.broadcast_to(relative_noise_std(h) ** 2, len(cost.data.X))[:n]
    across, both = cost.kernel.matrix(X, two, h.lengthscales), cost.kernel.gram(two, h.lengthscales)[0]
    solved = cho_solve(cho_factor(K, lower=True), np.column_stack([cost.data.Y[0, :n] - h.mean, across]))
    step = np.array([-1.0, 1.0])
    mean = float(step @ across.T @ solved[:, 0])
    var = float(step @ (both - across.T @ solved[:, 1:]) @ step)
    return mean, float(np.sqrt(h.outputscale * max(var, 0.0)))


def _since_gain(view: View) -> int:
    """How many successes there were since the cost, without its noise, was improved by more than is worth a trial."""
    models: Any = view.models
    means = np.stack(
        [models.cost.mean_at_trials(j)[: models.successes] for j in range(len(models.cost.hypers))], axis=1
    )
    mean = models.aim.progress(means[:, 0], means)
    best = np.fmin.accumulate(mean)
    return int(np.sum(best <= best[-1] + models.aim.resolution)) - 1
