"""Random functions on the unit cube, from which the families are made.

May import the public API, from the modules that define it, and `problem`.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crashbo.problems.families.landscape import Array, Dial, Function

_WAVES = 128


def waves(
    dimension: int,
    rng: np.random.Generator,
    *,
    lengthscale: tuple[float, float] = (0.2, 0.6),
    nu: Sequence[float] = (1.5, 2.5, np.inf),
    among: ArrayLike | None = None,
) -> Function:
    """A sample of a Gaussian process with a Matern kernel, as a sum of waves; of unit variance.

    Args:
        dimension: of the cube.
        rng: for all that is random.
        lengthscale: the range it is drawn from; it grows with the root of the dimension, so that there is something
            to be learnt in many dimensions, too. Every coordinate has one of its own, about this one.
        nu: smoothness, one of these; infinite for a squared exponential kernel.
        among: the coordinates that matter; all if None.
    """
    columns = np.arange(dimension) if among is None else np.asarray(among)
    scale = np.exp(rng.uniform(*np.log(lengthscale))) * np.sqrt(len(columns))
    scales = scale * np.exp(0.4 * rng.standard_normal(len(columns)))
    smoothness = float(rng.choice(nu))
    frequencies = rng.standard_normal((len(columns), _WAVES))
    if np.isfinite(smoothness):  # a Matern kernel's spectrum is Student's t
        frequencies *= np.sqrt(2.0 * smoothness / rng.chisquare(2.0 * smoothness, _WAVES))
    phases = rng.uniform(0.0, 2.0 * np.pi, _WAVES)
    heights = rng.standard_normal(_WAVES) * np.sqrt(2.0 / _WAVES)
    return partial(_waves, columns, frequencies / scales[:, None], phases, heights)


def _waves(columns: NDArray[np.int_], frequencies: Array, phases: Array, heights: Array, U: Array) -> Array:
    out: Array = np.cos(U[:, columns] @ frequencies + phases) @ heights
    return out


def drive(dimension: int, rng: np.random.Generator, flips: NDArray[np.bool_] | None = None) -> Function:
    """A function that grows with every coordinate, or falls with it where it is flipped, bent in one way or another.

    Between zero and one. Without `flips`, directions are random.
    """
    weights = rng.dirichlet(np.full(dimension, 2.0))
    powers = np.exp(rng.uniform(np.log(0.5), np.log(2.0), dimension))
    turned = rng.random(dimension) < 0.5 if flips is None else flips
    return partial(_drive, weights, powers, turned)


def _drive(weights: Array, powers: Array, flips: NDArray[np.bool_], U: Array) -> Array:
    out: Array = np.where(flips, 1.0 - U, U) ** powers @ weights
    return out


def bowl(centre: Array, rng: np.random.Generator, *, condition: float) -> Function:
    """A quadratic with its bottom, zero, at the centre; turned at random, its axes of this condition."""
    D = len(centre)
    turn = np.linalg.qr(rng.standard_normal((D, D)))[0]
    axes = np.exp(rng.uniform(-0.5, 0.5, D) * np.log(condition))
    return partial(_bowl, centre, turn * np.sqrt(axes / D))


def _bowl(centre: Array, axes: Array, U: Array) -> Array:
    out: Array = np.sum(((U - centre) @ axes) ** 2, axis=1)
    return out


def total(*terms: tuple[float, Function]) -> Function:
    """A weighted sum."""
    return partial(_total, terms)


def _total(terms: tuple[tuple[float, Function], ...], U: Array) -> Array:
    return np.asarray(sum(weight * function(U) for weight, function in terms))


def some_pair(dimension: int, rng: np.random.Generator) -> tuple[Function, Function]:
    """A cost and a load for families that are about something else: random functions, or a drive that wears."""
    if rng.random() < 0.5:
        return waves(dimension, rng), waves(dimension, rng, nu=(2.5, np.inf))
    flips = rng.random(dimension) < 0.5
    wear = drive(dimension, rng, flips)
    return total((-1.0, drive(dimension, rng, flips))), total((1.0, wear), (0.05, waves(dimension, rng)))


def _smooth(margin: Array) -> Array:
    return margin


def _jump(margin: Array) -> Array:
    """Creeps up to the level, and is far beyond at once."""
    return np.where(margin <= 0.0, 0.3 * margin, 3.0 + margin)


def _kink(margin: Array) -> Array:
    """Rises seven times as fast in the last stretch."""
    return margin + 6.0 * np.maximum(margin + 0.2, 0.0)


def _saturation(margin: Array) -> Array:
    """Hardly rises any more where it matters."""
    return np.tanh(3.0 * (margin + 0.7))


SMOOTH = Dial(_smooth, 0.0)
JUMP = Dial(_jump, 1.5)
KINK = Dial(_kink, 1.2)
SATURATION = Dial(_saturation, float(np.tanh(2.1)))
