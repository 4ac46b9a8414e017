"""Machines for benchmarks/check.py: healthy members of the families, and the same with one thing wrong.

A sick machine is a healthy one whose answers are spoiled, or whose owner says something wrong of it. What is spoiled is
drawn from its seed: how much, and where.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crashbo
from crashbo.problems import families
from crashbo.problems.families.functions import bowl, waves
from crashbo.problems.families.instance import Instance, Lowest

Array = NDArray[np.float64]
Answer = Callable[["Machine", Mapping[str, Any], int, np.random.Generator], dict[str, Any]]

TRIALS = 60
CHECKED = 45  # trials after which a study is checked; the others tell whether it had anything left to gain
_DRAWS = 4000

# All families but those whose subject is a sickness: what is measured is not the cause of all crashes, or jumps over
# its threshold.
HEALTHY = tuple(name for name in families.names() if name not in ("bystander", "partly", "jump"))
# Of these the sick ones are made: one quantity is measured, and it is the cause.
_PLAIN = ("smooth", "driven", "bowl", "valley", "plateau", "decades", "kink", "saturation", "rugged")


@dataclass(frozen=True)
class Machine:
    """A member of a family as a study sees it, and how it answers."""

    kind: str  # what is wrong with it, or "healthy"
    member: Instance
    space: dict[str, Any]
    constraints: list[Any]
    start: Mapping[str, Any] | None
    answer: Answer
    options: dict[str, Any] = field(default_factory=dict)  # of the Optimizer
    repeats: int = 0  # of the best, asked for near the end
    cost_spread: float = 1.0  # standard deviations over the space
    load_spread: float = 1.0
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For files."""
        return f"{self.kind}-{self.member.name}"

    def cost(self, params: Mapping[str, Any]) -> float:
        """Without noise."""
        return self.member(params)[0]


def _no_optimum(dimension: int) -> Lowest:
    """In place of an optimum, which takes seconds to find."""
    return Lowest(np.nan, np.nan, np.zeros(dimension))


def healthy_answer(m: Machine, params: Mapping[str, Any], i: int, rng: np.random.Generator) -> dict[str, Any]:
    """As the problem has it: noisy instruments, and crashes without readings."""
    cost, read = m.member(params)
    gauges = m.member.gauges
    noise = rng.standard_normal(1 + len(gauges))
    if m.member.fails(params) or any(g.limit.violated(read[g.name]) for g in gauges):
        return {"crash": True}
    measured = {g.name: read[g.name] + g.noise * float(e) for g, e in zip(gauges, noise[1:], strict=True)}
    return {"cost": cost + m.member.noise * float(noise[0]), "measured": measured}


def healthy(name: str, dimension: int, seed: int) -> Machine:
    """A member of a family with nothing wrong."""
    return _VARIANTS[seed % len(_VARIANTS)](plain(name, dimension, seed), np.random.default_rng([7, seed]))


def plain(name: str, dimension: int, seed: int) -> Machine:
    """A member of a family as it is."""
    member = families.draw(name, dimension, seed)
    problem = member.problem(_no_optimum(dimension))
    U = member.uniform(_DRAWS, np.random.default_rng(0))
    return Machine(
        "healthy",
        member,
        dict(problem.space),
        problem.constraints,
        problem.start,
        healthy_answer,
        cost_spread=float(np.std(member.cost(U))),
        load_spread=float(np.std(member.gauges[0].read(U))) if member.gauges else 1.0,
    )


def _as_it_is(m: Machine, rng: np.random.Generator) -> Machine:
    return m


def _noise_told(m: Machine, rng: np.random.Generator) -> Machine:
    """The noise is given as it is, and the best was repeated."""
    return replace(m, options={"noise": m.member.problem(_no_optimum(m.member.dimension)).noise}, repeats=6)


def _threshold_told(m: Machine, rng: np.random.Generator) -> Machine:
    """Thresholds are given as they are, and crashes deliver their readings."""
    limits = {g.name: g.limit for g in m.member.gauges}
    told = [replace(c, threshold=limits[c.name].threshold) if c.name in limits else c for c in m.constraints]
    return replace(m, constraints=told, answer=_with_readings(m.answer))


def _some_void(m: Machine, rng: np.random.Generator) -> Machine:
    """One trial in twelve is void, wherever it is."""

    def answer(m: Machine, params: Mapping[str, Any], i: int, rng: np.random.Generator) -> dict[str, Any]:
        said = healthy_answer(m, params, i, rng)
        return {"void": "unplugged"} if rng.random() < 1 / 12 else said

    return replace(m, answer=answer)


# What the owners of healthy machines say and meet: one of these by the seed.
_VARIANTS = (_as_it_is, _as_it_is, _as_it_is, _noise_told, _threshold_told, _some_void)


def _with_readings(answer: Answer) -> Answer:
    """The same with readings of crashes."""

    def answers(m: Machine, params: Mapping[str, Any], i: int, rng: np.random.Generator) -> dict[str, Any]:
        said = answer(m, params, i, rng)
        if "crash" in said:
            read = m.member(params)[1]
            said["measured"] = {g.name: read[g.name] + g.noise * float(rng.standard_normal()) for g in m.member.gauges}
        return said

    return answers


def sick(kind: str, seed: int) -> Machine:
    """A machine with one thing wrong."""
    rng = np.random.default_rng([SICK.index(kind), seed])
    if kind == "cause":
        family = "bystander"
        return replace(plain(family, int(rng.choice([3, 6])), seed), kind=kind)
    family = {"bound": "smooth", "gain": "bowl"}.get(kind) or str(rng.choice(_PLAIN))
    dimension = int(rng.choice([2, 3, 4, 6])) if kind != "gain" else 2
    base = plain(family, min(dimension, families.family(family).most), seed)
    while kind == "crashes" and base.member.share > 0.5:  # where half of all trials crash anyway, nobody can tell
        base = plain(str(rng.choice(_PLAIN)), int(rng.choice([2, 3, 4, 6])), seed)
    return _SPOILT[kind](replace(base, kind=kind), rng)


def _drift(m: Machine, rng: np.random.Generator) -> Machine:
    """The cost, or what is measured and with it the level, moves by half to one and a half of its spread."""
    by, what = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5), str(rng.choice(["cost", "load"]))

    def answer(m: Machine, params: Mapping[str, Any], i: int, rng: np.random.Generator) -> dict[str, Any]:
        said, gone = healthy_answer(m, params, i, rng), by * i / CHECKED
        if "cost" in said and what == "cost":
            said["cost"] += gone * m.cost_spread
        elif "cost" in said:
            said["measured"] = {name: v + gone * m.load_spread for name, v in said["measured"].items()}
        return said

    return replace(m, answer=answer, more={"what": what, "by": by})


def _scatter(m: Machine, rng: np.random.Generator) -> Machine:
    """The noise grows from one hundredth of the spread to half of it or all of it, evenly or at once."""
    last, what, at_once = rng.uniform(0.5, 1.0), str(rng.choice(["cost", "load"])), bool(rng.random() < 0.5)
    turn = rng.uniform(0.35, 0.65)

    def answer(m: Machine, params: Mapping[str, Any], i: int, rng: np.random.Generator) -> dict[str, Any]:
        said, t = healthy_answer(m, params, i, rng), i / CHECKED
        std = (last if t > turn else 0.01) if at_once else 0.01 * (last / 0.01) ** min(t, 1.0)
        e = float(rng.standard_normal())
        if "cost" in said and what == "cost":
            said["cost"] += std * m.cost_spread * e
        elif "cost" in said:
            said["measured"] = {name: v + std * m.load_spread * e for name, v in said["measured"].items()}
        return said

    return replace(m, answer=answer, more={"what": what, "last": last, "at_once": at_once})


def _crashes(m: Machine, rng: np.random.Generator) -> Machine:
    """One trial in five crashes, wherever it is."""
    share = rng.uniform(0.15, 0.3)

    def answer(m: Machine, params: Mapping[str, Any], i: int, rng: np.random.Generator) -> dict[str, Any]:
        said = healthy_answer(m, params, i, rng)
        return {"crash": True} if rng.random() < share else said

    return replace(m, answer=answer, more={"share": share})


def _known(m: Machine, by: float) -> list[Any]:
    """The constraint with a threshold that is wrong by so many of its spreads, towards the crash if positive."""
    c, limit = m.constraints[0], m.member.gauges[0].limit
    return [replace(c, threshold=limit.threshold + c.sign * by * m.load_spread, noise=limit.noise)]


def _beyond(m: Machine, rng: np.random.Generator) -> Machine:
    """The threshold that is given is too low: half of what is safe lies beyond it."""
    g = m.member.gauges[0]
    U = m.member.uniform(_DRAWS, np.random.default_rng(1))
    c, read = m.constraints[0], g.read(U)
    safe = c.sign * read[c.sign * (read - g.limit.threshold) < 0.0]
    low = c.sign * float(np.quantile(safe, rng.uniform(0.3, 0.6)))
    return replace(m, constraints=[replace(c, threshold=low, noise=g.limit.noise)])


def _reading(m: Machine, rng: np.random.Generator) -> Machine:
    """The threshold that is given is too high, and crashes still deliver their readings."""
    return replace(m, answer=_with_readings(m.answer), constraints=_known(m, rng.uniform(0.3, 1.0)))


def _noise(m: Machine, rng: np.random.Generator) -> Machine:
    """The noise that is given is wrong by a factor of four to ten; the best was repeated."""
    true = rng.uniform(0.01, 0.03) * m.cost_spread
    m = replace(m, member=replace(m.member, noise=true))
    factor = rng.uniform(4.0, 10.0) ** rng.choice([-1.0, 1.0])
    return replace(m, options={"noise": factor * true}, repeats=6, more={"factor": factor})


def _voids(m: Machine, rng: np.random.Generator) -> Machine:
    """A quarter of the space ends in a void."""
    f = waves(m.member.dimension, rng)
    U = m.member.uniform(_DRAWS, np.random.default_rng(1))
    level = float(np.quantile(f(U), 1.0 - rng.uniform(0.2, 0.4)))

    def answer(m: Machine, params: Mapping[str, Any], i: int, rng: np.random.Generator) -> dict[str, Any]:
        said = healthy_answer(m, params, i, rng)
        return {"void": "no answer"} if f(m.member.point(params))[0] > level else said

    return replace(m, answer=answer)


def _bound(m: Machine, rng: np.random.Generator) -> Machine:
    """The bottom of a bowl lies beyond a bound of one parameter or two; a sixth of the space crashes."""
    D = m.member.dimension
    centre = rng.uniform(0.25, 0.75, D)
    cut = rng.permutation(D)[: int(rng.integers(1, 3))]
    centre[cut] = np.where(rng.random(len(cut)) < 0.5, -rng.uniform(0.15, 0.5), 1.0 + rng.uniform(0.15, 0.5))
    cost = bowl(centre, rng, condition=3.0)
    U = m.member.uniform(_DRAWS, np.random.default_rng(1))
    (margin,), (gauge,) = m.member.margins, m.member.gauges
    margin = replace(margin, level=float(np.quantile(margin.load(U), 5 / 6)))
    gauge = gauge._replace(quantity=replace(gauge.quantity, margin=margin))  # type: ignore[type-var]
    landscape = replace(m.member.landscape, cost=cost)
    member = replace(m.member, landscape=landscape, margins=(margin,), gauges=(gauge,), begin=None)
    spread = float(np.std(member.cost(U)))
    member = replace(member, noise=0.005 * spread)
    names = [list(m.space)[d] for d in cut]
    return replace(m, member=member, start=None, cost_spread=spread, more={"parameters": names})


def _gain(m: Machine, rng: np.random.Generator) -> Machine:
    """A bowl of two parameters: 45 trials are more than it takes."""
    return replace(m, member=replace(m.member, noise=0.01 * m.cost_spread))


_SPOILT: dict[str, Callable[[Machine, np.random.Generator], Machine]] = {
    "beyond": _beyond,
    "reading": _reading,
    "crashes": _crashes,
    "drift": _drift,
    "scatter": _scatter,
    "noise": _noise,
    "voids": _voids,
    "bound": _bound,
    "gain": _gain,
}
SICK = (*_SPOILT, "cause")


def run(m: Machine, seed: int) -> tuple[crashbo.Optimizer, list[float]]:
    """A study of the machine, and the costs of its trials without noise."""
    rng = np.random.default_rng([seed, 5])
    start = [m.start] if m.start else None
    optimizer = crashbo.Optimizer(m.space, m.constraints, start=start, seed=seed, **m.options)
    truth = []
    for i in range(TRIALS if m.kind in ("healthy", "gain") else CHECKED):
        if m.repeats and i == CHECKED - m.repeats and optimizer.best is not None:
            optimizer.confirm(m.repeats)
        trial = optimizer.ask()
        optimizer.tell(trial, **m.answer(m, trial.params, i, rng))
        truth.append(m.cost(trial.params))
    return optimizer, truth
