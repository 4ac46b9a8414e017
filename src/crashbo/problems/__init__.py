"""Benchmark problems: machines that crash, with known optima.

May import the public API, from the modules that define it: `crashbo` itself imports the problems.

A machine of your own is a `Problem`, too: wherever one of our names is accepted, so is "module:name" of yours.

D parameters, G measured quantities; the share of the space that crashes (from 40,000 uniform samples, accurate to
0.5 %); the lowest cost overall, and the lowest without a crash:

    problem                 D   G  crashes    minimum  constrained
    toy1d                   1   1   49.8 %  -0.847673    -0.606531
    eggcrate2d              2   1   50.4 %          0            0
    eggcrate2d-corner       2   1   49.9 %          0            0
    hartmann6d              6   1   50.3 %   -3.32237     -3.32237
    michalewicz10d         10   1   50.3 %   -9.66015     -9.66015
    gardner1                2   1   33.7 %         -2           -2
    gardner2                2   1   98.2 %         -1     0.253236
    lsq                     2   2   54.2 %          0     0.599788
    branin-disk             2   1   29.9 %   0.397887     0.397887
    townsend                2   1   31.5 %   -3.19972     -2.02399
    mishra-bird             2   1   16.7 %   -106.765     -106.765
    simionescu              2   1   48.7 %   -0.15625       -0.072
    rosenbrock-cubic-line   2   2   43.6 %          0            0
    gomez-levy              2   1   27.7 %   -1.03163     -1.03163
    mueller-ackley5d        5   2   70.2 %          0      6.01547
    mueller-bird4d          4   1   37.0 %   -106.765     -106.765
    alimo2d                 2   1   87.9 %     -0.048   -0.0470734
    tfaily-tooth2d          2   1   39.2 %   -1.12687      -1.0934
    tfaily-rosenbrock4d     4   1   67.2 %          0            0
    pressure-vessel         4   3   60.0 %    15.9018      6059.71
    welded-beam             4   5   73.8 % 0.00850962      1.72485
    speed-reducer           7   8   99.9 %    2352.45      2994.47
    tension-spring          3   3   90.1 %     0.0025    0.0126652
    branin                  2   0   28.2 %   0.397887     0.397887
    styblinski              2   0   56.0 %   -78.3323     -78.3323
    hyperellips             2   0   46.0 %          0            0
    perovskites             3   0   91.3 %          0            0
    convolution-A100        7   0   59.0 %     0.5536       0.5536
    convolution-A4000       7   0   59.0 %     1.0212       1.0212
    convolution-MI250X      7   0   57.4 %     0.6588       0.6588
    convolution-W6600       7   0   57.4 %     1.7276       1.7276
    solo8-jump              4   1     32 %      -0.91       -0.773

Groups: `paper` (the first five), `literature`, `hidden` (from mueller-ackley5d on), `engineering` (from
pressure-vessel on), `published` (from branin on), with other people's runs, and `solo8`, a physics simulation, whose
numbers were found by search and are not exact.

`families` has generators of any number of problems.
"""

import copy
import importlib
import inspect
from collections.abc import Callable

from crashbo.problems import engineering, families, hidden, literature, paper, published
from crashbo.problems.problem import Episode, Limit, Problem, Truth
from crashbo.problems.publication import Published, PublishedRun

__all__ = ["PUBLISHED", "Episode", "Limit", "Problem", "Published", "PublishedRun", "Truth", "families", "get", "names"]

_MODULES = (paper, literature, hidden, engineering, published)
_PROBLEMS: dict[str, Problem] = {p.name: p for module in _MODULES for p in module.PROBLEMS}
PUBLISHED = (*(problem.name for problem in published.PROBLEMS), *published.MADE)  # with other people's runs
_SOLO8 = "solo8-jump"  # made when it is asked for: its simulator is an extra


def names() -> list[str]:
    """All problems, the paper's first; "solo8-jump", the last, is listed even if its extra is not installed."""
    return [*_PROBLEMS, *published.MADE, _SOLO8]


def get(name: str | Problem) -> Problem:
    """The problem of that name; a Problem is returned as it is.

    Args:
        name: one of `names()`, or "module:name" for a machine of your own: a Problem in a module that can be imported,
            or a function without arguments that makes one.

    Raises:
        ModuleNotFoundError: if one of our problems needs an extra that is not installed; the message names it.
    """
    if isinstance(name, Problem):
        return name
    if name == _SOLO8:
        from crashbo.problems.solo8 import problem as solo8  # only here: MuJoCo is slow to import

        return solo8.make()
    if isinstance(name, str) and name in _PROBLEMS:
        return copy.deepcopy(_PROBLEMS[name])  # so that no caller can change it for others
    if isinstance(name, str) and name in published.MADE:
        return published.MADE[name]()
    if isinstance(name, str) and ":" in name:
        return _imported(name)
    raise ValueError(
        f"name must be one of {', '.join(names())}; got {name!r}. See crashbo.problems.names(), or give a Problem "
        "or 'module:name' of your own."
    )


def _imported(name: str) -> Problem:
    """The problem at "module:name"; errors that the module's own code raises are passed on."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise ValueError(f"name must be written 'module:name'; got {name!r}. Write 'my_machine:problem', for example.")
    try:
        home = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"name must lead to a module that can be imported; got {name!r} ({error}). "
            "Mend it, or put the module's directory on PYTHONPATH."
        ) from error
    found = getattr(home, attribute, None)
    problem = found() if callable(found) and _needs_nothing(found) else found
    if not isinstance(problem, Problem):
        what = repr(problem) if hasattr(home, attribute) else "not there"
        raise ValueError(
            f"name must lead to a Problem, or to a function without arguments that makes one; got {name!r}, "
            f"which is {what}. Make a crashbo.problems.Problem of it."
        )
    return problem


def _needs_nothing(function: Callable[..., object]) -> bool:
    """Whether it can be called without arguments."""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True
