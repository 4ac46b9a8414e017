"""Problems whose every setting was tried and written down: a compound to be found, and a kernel to be tuned.

May import the public API, from the modules that define it, and `problem`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from crashbo.problems.problem import Episode, Problem
from crashbo.problems.publication import Published, rows
from crashbo.search.space import Choice, Float, Int

MOLECULES, HALOGENS, METALS = map(
    str.split,
    (
        "H3S NH4 MS MA MP FA EA G AA ED tBA",
        "F Cl Br I",
        "Be Mg Ca Sr Ba Cr Mn Fe Co Ni Pd Pt Cu Ag Au Zn Cd Hg Ga In Tl Si Ge Sn Pb Bi S Se Te",
    ),
)
GPUS = ("A100", "A4000", "MI250X", "W6600")
_SWITCHES = ("read_only", "use_padding", "use_shmem")
_UNDECIDED = 5.0  # the most that a mass can cost: it may be too large to be known


@dataclass(frozen=True)
class Listed:
    """A machine that looks its outcome up; what is not listed fails."""

    costs: Mapping[tuple[Any, ...], float]

    def __call__(self, params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
        """The cost; NaN where it fails."""
        return self.costs.get(tuple(params.values()), float("nan")), {}


def look_up(problem: Problem, params: Mapping[str, Any], rng: np.random.Generator | None) -> Episode:
    """Without noise."""
    cost, _ = problem.simulate(params)
    return Episode(cost, {}, "failed" if np.isnan(cost) else "")


def perovskites() -> Problem:
    """Hybrid perovskites for solar cells, of which one in eleven exists."""
    costs = {(r["molecule"], r["halogen"], r["metal"]): _perovskite_cost(r) for r in rows("perovskites.csv")}
    return _problem(
        "perovskites",
        {"molecule": Choice(MOLECULES), "halogen": Choice(HALOGENS), "metal": Choice(METALS)},
        costs,
        Published("trials", 200, target=0.0, name="perovskites"),
        "Anubis, Digital Discovery, 2025, and its repository aspuru-guzik-group/atlas-unknown-constraints (MIT). Its "
        "two goals are one cost here: zero for a band gap within 0.5 eV of 1.25 eV and an effective mass of at most 4.",
    )


def _perovskite_cost(row: Mapping[str, str]) -> float:
    beyond = max(abs(float(row["bandgap"]) - 1.25) - 0.5, 0.0) / 0.5
    mass = row["effective_mass"]
    excess = _UNDECIDED if mass.startswith(">") else max(float(mass) - 4.0, 0.0) / 4.0
    return beyond + min(excess, _UNDECIDED)


def convolution(gpu: str) -> Problem:
    """A convolution kernel on a GPU; forbidden settings fail like those that do not compile."""
    sizes = {"block_size_x": range(16, 257, 16), "block_size_y": (1, 2, 4, 8, 16)}
    space = {name: Choice(list(values), ordered=True) for name, values in sizes.items()}
    tiles = {name: Int(1, 4) for name in ("tile_size_x", "tile_size_y")}
    switches = {name: Choice([0, 1]) for name in _SWITCHES}
    names = (*space, *tiles, *switches)
    costs = {tuple(int(r[name]) for name in names): r[gpu] for r in rows("convolution.csv")}
    return _problem(
        f"convolution-{gpu}",
        {**space, **tiles, **switches},
        {setting: float(time) for setting, time in costs.items() if time[0].isdigit()},
        Published("share", 80, at=(20, 40, 80)),
        "Auto-Tuning Association, repository benchmark_hub (MIT): a two-dimensional convolution, time in ms. Of 10,240 "
        "settings 5,878 break restrictions of the kernel, which nobody is told here, and some do not run.",
    )


def _problem(
    name: str,
    space: Mapping[str, Float | Int | Choice],
    costs: Mapping[tuple[Any, ...], float],
    published: Published,
    source: str,
) -> Problem:
    best = min(costs, key=costs.__getitem__)
    return Problem(
        name=name,
        space=space,
        simulate=Listed(costs),
        limits=(),
        cost_noise=0.0,
        source=source,
        minimum=costs[best],
        constrained_minimum=costs[best],
        optimum=dict(zip(space, best, strict=True)),
        machine=look_up,
        unmeasured=("failure",),
        median_safe_cost=float(np.median(list(costs.values()))),
        published=published,
    )


MADE: dict[str, Callable[[], Problem]] = {
    "perovskites": cache(perovskites),
    **{f"convolution-{gpu}": cache(partial(convolution, gpu)) for gpu in GPUS},
}
