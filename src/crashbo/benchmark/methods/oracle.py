"""The oracle: plain EI that is told which params are safe, and never crashes. What is left is the cost of learning.

May import the public API, `problems` and `campaigns`.

EI of a Matérn-5/2 GP (`crashbo.models.GP`, whose noise is learnt) over candidates all over the space and around the
best trials. The machine is asked about the best candidate first, then the next, until one is safe: few questions.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from crashbo import Choice, Crash, Space
from crashbo.benchmark.machine import Machine, Params
from crashbo.benchmark.methods.base import Method
from crashbo.models import GP

Array = NDArray[np.float64]

# All judgement, as for any search by candidates.
_FIRST = 3  # trials before the model, or half the dimensions if that is more
_EVERYWHERE = 1000
_AROUND = 200  # for each parent and step
_PARENTS = 3
_STEPS = (0.3, 0.1, 0.03, 0.01, 0.003)  # in the unit cube
_MOVED = 2  # parameters moved at a time, on average
_DRAWS = 10**6  # after which no safe params are thought to be there


def run(machine: Machine) -> None:
    """Safe params at random, then those of the highest EI."""
    space = Space.of(machine.space)
    rng = np.random.default_rng(machine.seed)
    X: list[Array] = []
    costs: list[float] = []
    model: GP | None = None
    while machine.left:
        if machine.start is not None and not machine.tried:
            params = machine.start
        elif len(machine.tried) < max(_FIRST, len(machine.space) // 2) or not X:
            params = _random_safe(machine, space, rng)
        else:
            model = GP.fit(np.array(X), costs, start=model)
            params = _best_safe(machine, space, model, np.array(X), rng)
        reply = machine(params)
        if reply.cost is not None:
            X.append(space.encode(params))
            costs.append(reply.cost)


def _random_safe(machine: Machine, space: Space, rng: np.random.Generator) -> Params:
    for _ in range(_DRAWS):
        params = space.decode(space.uniform(rng.random((1, space.dimension)))[0])
        if machine.is_safe(params):
            return params
    raise Crash("no params are safe")


def _best_safe(machine: Machine, space: Space, model: GP, X: Array, rng: np.random.Generator) -> Params:
    """The safe candidate of the highest EI."""
    means = model.predict(X)[0]
    candidates = np.vstack(list(_candidates(space, X[np.argsort(means)[:_PARENTS]], rng)))
    mean, var = model.predict(candidates)
    std = np.sqrt(var)
    score = np.log(std) + log_ei((means.min() - mean) / std)
    for u in candidates[np.argsort(-score)]:
        params = space.decode(u)
        if machine.is_safe(params):
            return params
    return _random_safe(machine, space, rng)


def _candidates(space: Space, parents: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Points all over the space, and around parents with a few parameters moved."""
    yield space.uniform(rng.random((_EVERYWHERE, space.dimension)))
    owners = np.concatenate([np.full(p.width, j) for j, p in enumerate(space.parameters.values())])
    redrawn = np.concatenate([np.full(p.width, isinstance(p, Choice)) for p in space.parameters.values()])
    D = len(space.parameters)
    for parent in parents:
        for step in _STEPS:
            moved = rng.random((_AROUND, D)) < _MOVED / D
            moved[np.arange(_AROUND), rng.integers(D, size=_AROUND)] = True
            anywhere = space.uniform(rng.random((_AROUND, space.dimension)))
            near = parent + step * rng.standard_normal((_AROUND, space.dimension))
            yield space.snap(np.where(moved[:, owners], np.where(redrawn, anywhere, near), parent))


def log_ei(z: Array) -> Array:
    """Logarithm of EI in units of the standard deviation, where z is the predicted gain in the same units."""
    log_phi = -0.5 * z**2 - 0.5 * math.log(2 * math.pi)
    up = np.maximum(z, -1.0)
    plain = np.log(np.exp(-0.5 * up**2) / math.sqrt(2 * math.pi) + up * ndtr(up))
    down = np.clip(z, -1e3, -1.0)
    tail = np.log1p(down * math.sqrt(math.pi / 2) * erfcx(-down / math.sqrt(2)))
    far = -2.0 * np.log(np.maximum(-z, 1.0))  # where 1 + z Phi/phi, about 1 / z^2, has lost its digits
    return np.asarray(np.where(z > -1.0, plain, log_phi + np.where(z > -1e3, tail, far)))


METHODS = (Method("oracle", "Oracle", run, informed=True, pace=0.025),)
