"""The methods: one library a file, each an adapter between a `Machine` and what that library wants.

May import the public API, `problems` and `campaigns`; an adapter is the only file that imports its library.

A method of your own is a `Method`, or a plain function of a `Machine`, in a module that can be imported: wherever one
of our names is accepted, so is "module:name" of yours.
"""

from dataclasses import replace
from importlib import import_module
from typing import NamedTuple

from crashbo.benchmark.methods.base import Method

__all__ = ["Method", "get", "is_there", "names", "refusal"]


class _Home(NamedTuple):
    """Where a method lives."""

    module: str
    extra: str | None = None  # what installs its libraries
    needs: str | None = None  # a library that the module's own imports do not ask for


_OURS, _TPE = _Home("ours"), _Home("optuna", "optuna")
_GP, _CMAES = _Home("optuna", "optuna-gp", needs="torch"), _Home("optuna", "cmaes", needs="cmaes")
_HOMES = {
    "eicc": _OURS,
    "eicc-labels": _OURS,
    "eicc-paper": _OURS,
    "eicc-paper-labels": _OURS,
    "eic-classifier": _OURS,
    "ei-ac": _OURS,
    "floor-padding": _OURS,
    "pibu": _OURS,
    "sobol": _OURS,
    "random": _Home("random"),
    "oracle": _Home("oracle"),
    "optuna-tpe": _TPE,
    "optuna-tpe-penalty": _TPE,
    "optuna-gp": _GP,
    "optuna-gp-penalty": _GP,
    "optuna-cmaes": _CMAES,
    "optuna-cmaes-penalty": _CMAES,
    "botorch": _Home("botorch", "botorch"),
    "smac": _Home("smac", "smac"),
    "nomad": _Home("nomad", "nomad"),
    "egobox": _Home("egobox", "egobox"),
}


def names() -> list[str]:
    """All methods, also those whose libraries are not installed."""
    return list(_HOMES)


def get(name: str) -> Method:
    """The method of that name; "module:name" for one of your own.

    Raises:
        ValueError: if there is none, or its library is not installed; the message names the remedy.
    """
    if ":" in name:
        return _own(name)
    if name not in _HOMES:
        raise ValueError(f"methods must be among {', '.join(_HOMES)}; got {name!r}. Or give 'module:name' of your own.")
    home = _HOMES[name]
    try:
        if home.needs is not None:
            import_module(home.needs)
        module = import_module(f"{__name__}.{home.module}")
    except ImportError as error:
        if home.extra is None:
            raise
        raise ValueError(
            f"method {name!r} must have its library installed ({error}). Run: pip install 'crashbo[{home.extra}]'"
        ) from error
    method: Method = next(method for method in module.METHODS if method.name == name)
    return method


def refusal(name: str) -> str | None:
    """Why a method cannot run here; None if it can."""
    try:
        get(name)
    except ValueError as why:
        return str(why)
    return None


def is_there(name: str) -> bool:
    """Whether a method can run here."""
    return refusal(name) is None


def _own(name: str) -> Method:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"methods must lead to something that can be imported; got {name!r} ({error}). Mend it, or put the "
            "module's directory on PYTHONPATH."
        ) from error
    if isinstance(found, Method):
        return replace(found, name=name)
    if callable(found):
        return Method(name, name, found)
    raise ValueError(f"methods must lead to a Method or a function of a machine; got {name!r}, which is {found!r}.")
