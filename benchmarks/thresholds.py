"""How often a threshold's 90 % interval holds the truth, in studies that the search ran on machines of nine kinds.

python benchmarks/thresholds.py [--studies 20] [--first 0] [--kinds smooth,jumping] [--trials 80]

None of the machines is a Gaussian process. Where crashes have another cause, or the quantity jumps over its threshold,
nothing bounds that from above: there the upper end should be open. A drifting threshold's truth is that of the last
trial. The score is the interval's width plus 20 times what it misses the truth by, in standard deviations of the
quantity over the space; an open end counts as three beyond the truth.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import crashbo

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

KINDS = (
    "smooth",
    "steep",
    "kinked",
    "saturating",
    "two-regime",
    "proportional",
    "drifting",
    "jumping",
    "another",
)
UNBOUNDED = ("jumping", "another")
STAGES = (20, 40, 80)
_DRAWS = 8000


class Reading(NamedTuple):
    crashed: bool
    load: float
    cost: float


@dataclass(frozen=True)
class Machine:
    """Crashes where `load` is beyond its level, or of another `cause`; values in standard deviations of the load."""

    dimension: int
    cost: Function
    load: Function
    level: float
    start: Array
    noise: float
    in_proportion: float = 0.0
    drift: float = 0.0  # of the level, over 80 trials
    cause: Function | None = None  # positive where it crashes

    def truth(self, trial: int) -> float:
        """The level at the time of a trial."""
        return self.level + self.drift * trial / STAGES[-1]

    def run(self, x: Array, trial: int, rng: np.random.Generator) -> Reading:
        """One trial at x."""
        load = float(self.load(x[None])[0])
        crashed = load > self.truth(trial) or (self.cause is not None and float(self.cause(x[None])[0]) > 0.0)
        noise = self.noise + self.in_proportion * abs(load)
        return Reading(crashed, load + noise * rng.standard_normal(), float(self.cost(x[None])[0]))


def standardised(f: Function, U: Array) -> Function:
    mean, std = f(U).mean(), f(U).std()
    return lambda X: (f(X) - mean) / std


def waves(U: Array, lengthscale: float, rng: np.random.Generator, count: int = 60) -> Function:
    """A random smooth function."""
    W, phase = rng.standard_normal((count, U.shape[1])) / lengthscale, rng.uniform(0.0, 2.0 * np.pi, count)
    height = rng.standard_normal(count)
    return standardised(lambda X: np.cos(X @ W.T + phase) @ height, U)


def trend(U: Array, rng: np.random.Generator) -> Function:
    """A slope with waves on it."""
    w = np.abs(rng.standard_normal(U.shape[1]))
    share, wavy = rng.uniform(0.2, 0.8), waves(U, 0.6 * math.sqrt(U.shape[1]), rng)
    return standardised(lambda X: (1.0 - share) * 3.4 * (X - 0.5) @ (w / np.linalg.norm(w)) + share * wavy(X), U)


def machine(kind: str, seed: int) -> Machine:
    rng = np.random.default_rng([KINDS.index(kind), seed])
    D = int(rng.integers(2, 7))
    U = rng.random((_DRAWS, D))

    def some() -> Function:
        return waves(U, rng.uniform(0.4, 0.9) * math.sqrt(D), rng)

    h, share = trend(U, rng) if rng.random() < 0.6 else some(), rng.uniform(0.15, 0.6)
    other, pull = some(), rng.uniform(0.2, 1.5)
    load, level, cause = h, float(np.quantile(h(U), 1.0 - share)), None
    q = level
    if kind == "steep":
        rate = rng.uniform(1.0, 2.0)
        load, level = (lambda X: np.exp(rate * h(X))), math.exp(rate * q)
    elif kind == "kinked":
        at, rate = q - rng.uniform(0.2, 0.6), rng.uniform(2.0, 8.0)
        load, level = (lambda X: h(X) + (rate - 1.0) * np.maximum(h(X) - at, 0.0)), at + rate * (q - at)
    elif kind == "saturating":
        rate = rng.uniform(1.0, 2.5)
        load, level = (lambda X: np.tanh(rate * (h(X) - q + 0.8))), math.tanh(0.8 * rate)
    elif kind == "two-regime":
        beyond, axis, step = some(), int(rng.integers(D)), rng.uniform(-1.0, 1.0)
        load = lambda X: np.where(X[:, axis] < 0.5, h(X), beyond(X) + step)  # noqa: E731
        level = float(np.quantile(load(U), 1.0 - share))
    elif kind == "proportional":
        load, level = (lambda X: h(X) + 4.0), q + 4.0
    elif kind in UNBOUNDED:
        shared = rng.uniform(0.3, 0.9) if kind == "jumping" else 0.0
        own = some()
        edge = standardised(lambda X: shared * h(X) + math.sqrt(1.0 - shared**2) * own(X), U)
        at = float(np.quantile(edge(U), 1.0 - share))
        cause = lambda X: edge(X) - at  # noqa: E731
        level = float(h(U).max()) + 10.0 ** rng.uniform(-1.0, 1.0)
    safe = U[load(U) < level] if cause is None else U[(load(U) < level) & (cause(U) < 0.0)]
    return Machine(
        dimension=D,
        cost=lambda X: other(X) - pull * h(X),
        load=load,
        level=level,
        start=safe[np.argmin(load(safe))],
        noise=0.0 if kind == "proportional" else 10.0 ** rng.uniform(-2.3, -1.2),
        in_proportion=rng.uniform(0.01, 0.05) if kind == "proportional" else 0.0,
        drift=rng.choice([-1.0, 1.0]) * rng.uniform(0.2, 0.6) if kind == "drifting" else 0.0,
        cause=cause,
    )


class Found(NamedTuple):
    covered: bool
    low_holds: bool
    is_open: bool
    crashes: int
    score: float


def study(case: tuple[str, int, int]) -> list[Found]:
    """What the interval was after each stage."""
    kind, seed, trials = case
    m, rng = machine(kind, seed), np.random.default_rng([7, seed])
    names = [f"x{i}" for i in range(m.dimension)]
    start = dict(zip(names, map(float, m.start), strict=True))
    optimizer = crashbo.Optimizer(dict.fromkeys(names, (0.0, 1.0)), ["load"], start=[start], seed=seed)
    found = []
    for i in range(trials):
        trial = optimizer.ask()
        crashed, load, cost = m.run(np.array(list(trial.params.values())), i, rng)
        if crashed:
            optimizer.tell(trial, crash=True)
        else:
            optimizer.tell(trial, cost=cost, measured={"load": load})
        if i + 1 in STAGES:
            found.append(judged(optimizer, m.truth(i)))
    return found


def judged(optimizer: crashbo.Optimizer, truth: float) -> Found:
    low, high = optimizer.thresholds["load"].interval or (-math.inf, math.inf)
    crashes = sum(t.state == "crash" for t in optimizer.trials)
    drawn = min(high, max(truth, low) + 3.0)
    score = drawn - low + 20.0 * (max(low - truth, 0.0) + max(truth - high, 0.0))
    return Found(low <= truth <= high, low <= truth, math.isinf(high), crashes, score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=20, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="seed; those from 1000 to 1029 were for tuning")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--trials", type=int, default=STAGES[-1])
    options = parser.parse_args()
    print("kind          trials  covered  low end holds  open  crashes  mean score", flush=True)
    with Pool() as pool:
        for kind in options.kinds.split(","):
            cases = [(kind, seed, options.trials) for seed in range(options.first, options.first + options.studies)]
            for stage, found in zip(STAGES, zip(*pool.imap(study, cases), strict=True), strict=False):
                opened = [f.is_open for f in found if f.crashes >= 2]
                print(
                    f"{kind:13s} {stage:6d}  {np.mean([f.covered for f in found]):7.2f}  "
                    f"{np.mean([f.low_holds for f in found]):13.2f}  {np.mean(opened) if opened else math.nan:4.2f}  "
                    f"{np.mean([f.crashes for f in found]):7.1f}  {np.mean([f.score for f in found]):10.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
