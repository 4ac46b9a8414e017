"""NOMAD 4: mesh adaptive direct search (MADS), which needs no model of crashes.

May import the public API, `problems` and `campaigns`.

What is followed (PyNomad.usage(), PyNomad.help(), NOMAD 4.6, and its issues 74 and 168 at github.com/bbopt/nomad):
- All settings are NOMAD's own. It scales by the bounds, so a Float goes in as its place between them, on a log scale
  where it has one; an Int is an integer ("I"). NOMAD 4 has no categorical type: a Choice is an integer, its index.
- A crash is a failed evaluation: the callback returns 0, and NOMAD never comes back to that point.
- The start is X0. Without one, Latin hypercube points are (LH_SEARCH, as issue 74 advises), a quarter of the trials
  but at most 10. The issue adds EVAL_OPPORTUNISTIC false, so that no point is left out; 4.6 evaluates them all without
  it, and with it would poll in full from then on, which is a poor use of few trials. NOMAD gives up if all of these
  fail (run flag -3): then we begin again with another seed.
- When the mesh has converged, NOMAD ends; trials that are left stay unused.
- From 50 parameters on NOMAD says that it switches its quadratic models off, but still builds them to choose and sort
  directions, which takes minutes each: there that is switched off, too (DIRECTION_TYPE, EVAL_QUEUE_SORT).
- DiscoMads (DISCO_MADS_HID_CONST), which keeps a distance from crashes, is no default: it wants a radius to be told.
"""

from typing import Any

import numpy as np
import PyNomad

from crashbo import Choice, Float
from crashbo.benchmark.machine import Finished, Machine
from crashbo.benchmark.methods.base import Method, option_index

_DESIGN = 10  # as in issue 74
_NO_START = -3  # the run flag "initial point failed to evaluate"
_MANY = 50  # parameters from which NOMAD itself does without models
_SEEDS = 2**20  # NOMAD draws as many numbers as the seed says before it begins, so a seed must not be large
_APART = 1009  # judgement: seeds next to one another would draw the same numbers, shifted by one


def run(machine: Machine) -> None:
    """Minimise; again with other initial points as long as all of them crash."""
    x0 = [] if machine.start is None else [_inward(p, machine.start[name]) for name, p in machine.space.items()]
    turn = 0
    while machine.left:
        seed = 1 + (machine.seed * _APART + turn) % _SEEDS
        PyNomad.setSeed(0)  # a SEED that equals the present one is not set anew (src/Math/RNG.cpp)
        bounds = [_bounds(p) for p in machine.space.values()]
        result = PyNomad.optimize(
            lambda point: evaluate(machine, point),
            x0,
            [low for low, _ in bounds],
            [high for _, high in bounds],
            _settings(machine, seed, design=not x0),
        )
        if result["run_flag"] != _NO_START:
            return
        x0, turn = [], turn + 1


def evaluate(machine: Machine, point: Any) -> int:
    """One trial for NOMAD: 1 if it succeeded, 0 if not. No exception may pass through its C++."""
    values = [point.get_coord(i) for i in range(point.size())]
    try:
        reply = machine({name: _outward(p, v) for (name, p), v in zip(machine.space.items(), values, strict=True)})
    except Finished:
        return 0
    if reply.cost is None:
        return 0
    point.setBBO(repr(float(reply.cost)).encode())
    return 1


def _settings(machine: Machine, seed: int, *, design: bool) -> list[str]:
    types = " ".join("R" if isinstance(p, Float) else "I" for p in machine.space.values())
    points = max(1, min(_DESIGN, machine.trials // 4, machine.left))
    return [
        f"DIMENSION {len(machine.space)}",
        f"BB_INPUT_TYPE ( {types} )",
        "BB_OUTPUT_TYPE OBJ",
        f"MAX_BB_EVAL {machine.left}",
        f"SEED {seed}",
        "DISPLAY_DEGREE 0",
        *([f"LH_SEARCH {points} 0"] if design else []),
        *(["DIRECTION_TYPE ORTHO 2N", "EVAL_QUEUE_SORT DIR_LAST_SUCCESS"] if len(machine.space) >= _MANY else []),
    ]


def _bounds(p: Any) -> tuple[float, float]:
    if isinstance(p, Choice):
        return 0, len(p.options) - 1
    return (0.0, 1.0) if isinstance(p, Float) else (p.low, p.high)


def _inward(p: Any, value: Any) -> float:
    if isinstance(p, Choice):
        return option_index(p, value)
    return p.encode(value)[0] if isinstance(p, Float) else value


def _outward(p: Any, value: float) -> Any:
    if isinstance(p, Choice):
        return p.options[round(value)]
    return p.decode(np.array([value])) if isinstance(p, Float) else round(value)


METHODS = (Method("nomad", "NOMAD", run, libraries=("PyNomadBBO",), pace=0.005),)
