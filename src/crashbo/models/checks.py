"""Checks of the models' public arguments: an error names argument, rule, value and remedy in a sentence.

May import numerics only.
"""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Hyperparameters

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


def inputs(X: ArrayLike, *, dimension: int | None = None) -> Array:
    """X as an (n, D) array of finite numbers."""
    out = _numbers("X", X)
    if dimension is None and out.ndim == 2 and len(out) == 0:
        _refuse("X", "have at least one row", f"shape {out.shape}", "A model needs a trial to learn from")
    if out.ndim != 2 or out.shape[1] == 0:
        _refuse("X", "have shape (n, D)", f"shape {out.shape}", "Give one row per trial, one column per parameter")
    if dimension is not None and out.shape[1] != dimension:
        _refuse("X", f"have {dimension} columns as the model's data", f"{out.shape[1]}", "Give one per parameter")
    if not np.all(np.isfinite(out)):
        _refuse("X", "be finite", _first(out, ~np.isfinite(out)), "Leave out or mend the trial it belongs to")
    return out


def values(y: ArrayLike, n: int) -> Array:
    """Measurements: n numbers, NaN where there is none."""
    out = _numbers("y", y)
    if out.shape != (n,):
        _refuse("y", f"have shape ({n},) as X has {n} rows", f"shape {out.shape}", "Use NaN where nothing was measured")
    if np.any(np.isinf(out)):
        _refuse("y", "be finite, or NaN where nothing was measured", _first(out, np.isinf(out)), "Use NaN for it")
    return out


def labels(crashed: ArrayLike, n: int) -> Bools:
    """Crash labels: n booleans."""
    try:
        out = np.asarray(crashed)
    except ValueError:
        _refuse("crashed", "be a list of booleans", "lists of several lengths", "Give one label per trial")
    if out.dtype != np.bool_:
        for row, label in enumerate(np.asarray(crashed, dtype=object).flat):  # as given, not as converted
            if not isinstance(label, bool | np.bool_):
                got = f"{label!r} in row {row}" if out.ndim else f"{label!r}"
                _refuse("crashed", "hold booleans", got, "Give True for a crash and False for a success")
        out = out.astype(bool)
    if out.shape != (n,):
        _refuse("crashed", f"have shape ({n},) as X has {n} rows", f"shape {out.shape}", "Give one label per trial")
    return out


def noise(noise_std: ArrayLike, n: int) -> float | Array:
    """A noise standard deviation, common to all trials or one per trial."""
    out = _numbers("noise_std", noise_std)
    if out.shape not in ((), (n,)):
        _refuse("noise_std", f"be a number, or {n} of them", f"shape {out.shape}", "Give one for all or one per trial")
    if not np.all(np.isfinite(out)) or np.any(out < 0.0):
        bad = _first(out, ~(np.isfinite(out) & (out >= 0.0)))
        _refuse("noise_std", "be finite and not negative", bad, "Give a standard deviation")
    return float(out) if out.ndim == 0 else out


def noise_of(noise_std: ArrayLike | None, data: HybridData) -> float | Array | None:
    """A noise standard deviation as data needs it, row by row; None stays None."""
    return None if noise_std is None else data.per_row(noise(noise_std, data.trials))


def censored(value: ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    """Which measurements are only lower bounds: booleans of their shape; None is none of them."""
    out = np.zeros(shape, dtype=bool) if value is None else np.asarray(value)
    if out.dtype != np.bool_ or out.shape != shape:
        got = f"{out.dtype} values of shape {out.shape}"
        _refuse("censored", f"be booleans of shape {shape}", got, "Give True where a reading was cut off")
    return out


def readings(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Readings of a given shape, NaN where there is none."""
    out = _numbers(name, value)
    if out.shape != shape or np.any(np.isinf(out)):
        _refuse(name, f"be finite or NaN, of shape {shape}", f"shape {out.shape}", "Use NaN where nothing is known")
    return out


def stopped(value: ArrayLike | None, crashed: Bools) -> Bools | None:
    """Which trials were stopped: booleans, one per trial, and none of a crash; None is none of them."""
    if value is None:
        return None
    out = np.asarray(value)
    if out.dtype != np.bool_ or out.shape != crashed.shape:
        got = f"{out.dtype} values of shape {out.shape}"
        _refuse("stopped", f"be booleans of shape {crashed.shape}", got, "Give True where a trial was stopped")
    if np.any(out & crashed):
        row = int(np.flatnonzero(out & crashed)[0])
        _refuse("stopped", "not be a crash", f"both in row {row}", "A trial was stopped before it crashed, or crashed")
    return out


def hyperparameters(
    data: HybridData,
    *,
    lengthscales: ArrayLike,
    outputscale: float,
    noise_std: ArrayLike,
    threshold: float = 0.0,
    crash_noise_std: float = 0.0,
    mean: float = 0.0,
) -> Hyperparameters:
    """Hyperparameters of one latent function, as a user gives them."""
    return Hyperparameters(
        lengthscales=positive("lengthscales", lengthscales, size=data.X.shape[1]),
        outputscale=float(positive("outputscale", outputscale)),
        mean=number("mean", mean),
        noise_std=data.per_row(noise(noise_std, data.trials)),
        threshold=number("threshold", threshold),
        crash_noise_std=number("crash_noise_std", crash_noise_std, least=0.0),
    )


def positive(name: str, value: ArrayLike, *, size: int | None = None) -> Array:
    """A positive number, or `size` of them (one number stands for all)."""
    out = _numbers(name, value)
    if size is not None and out.shape == ():
        out = np.full(size, float(out))
    if out.shape != (() if size is None else (size,)):
        count = "be one number" if size is None else f"be {size} numbers, one per column of X"
        _refuse(name, count, f"shape {out.shape}", "Give as many as there are")
    if not np.all(np.isfinite(out) & (out > 0.0)):
        _refuse(name, "be positive and finite", _first(out, ~(np.isfinite(out) & (out > 0.0))), "Give a positive one")
    return out


def number(name: str, value: ArrayLike, *, least: float = -np.inf) -> float:
    """One finite number."""
    out = _numbers(name, value)
    if out.shape != () or not np.isfinite(out) or out < least:
        rule = "be one finite number" + ("" if least == -np.inf else f", at least {least:g}")
        _refuse(name, rule, f"{value!r}", "Give a number")
    return float(out)


def start(value: Any, kind: type[Any], X: Array) -> None:
    """An earlier model of the same kind and of as many parameters as X has, or None."""
    if value is None:
        return
    if not isinstance(value, kind):
        _refuse("start", f"be an earlier {kind.__name__}, or None", f"{value!r}"[:60], "None fits from scratch")
    D = value.posterior.data.X.shape[1]
    if X.shape[1] != D:
        rule = f"have {X.shape[1]} parameters as X has {X.shape[1]} columns"
        _refuse("start", rule, f"one of {D}", "None fits from scratch")


def threshold(value: ArrayLike | None) -> float | tuple[float, float] | None:
    """A threshold: None (to be learnt), a number (known), or an interval (low, high)."""
    if value is None:
        return None
    out = _numbers("threshold", value)
    if out.shape == ():
        return number("threshold", value)
    if out.shape != (2,) or not np.all(np.isfinite(out)) or out[0] >= out[1]:
        _refuse(
            "threshold",
            "be None, a number, or a pair (low, high) with low < high",
            f"{value!r}",
            "None learns it from data",
        )
    return float(out[0]), float(out[1])


def _numbers(name: str, value: ArrayLike) -> Array:
    try:
        raw = np.asarray(value)
        real = raw.dtype.kind in "iuf"
        out = np.array(raw, dtype=float) if real else None
    except (TypeError, ValueError):
        out = None
    if out is None:
        _refuse(name, "hold real numbers", " ".join(repr(value).split())[:60], "Give an array of numbers")
    return out


def _first(out: Array, bad: Bools) -> str:
    """The first bad value, and where it stands."""
    return f"{out[bad].flat[0]} in row {int(np.argwhere(bad)[0][0])}" if out.ndim else f"{float(out)}"


def _refuse(name: str, rule: str, value: str, remedy: str) -> NoReturn:
    raise ValueError(f"{name} must {rule}; got {value}. {remedy}.")
