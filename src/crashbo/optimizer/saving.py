"""A study as JSON text, and back: everything that decides what it proposes next.

May import strategies and below.
"""

import base64
import json
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.models.ensemble import EnsembleHyperparameters
from crashbo.models.ep import Sites
from crashbo.models.latent import Hyperparameters, Warm
from crashbo.numerics.kernels import MATERN52, Kernel
from crashbo.optimizer.records import AnyConstraint, Constraint, Trial, Unmeasured
from crashbo.optimizer.told import Told
from crashbo.search import own
from crashbo.search.design import Design
from crashbo.search.risk import Budget, MinSafe, Paper, Price, Risk
from crashbo.search.space import Choice, Context, Float, Int, Parameter, Space
from crashbo.search.surrogates import BystanderMemory, Memory

Array = NDArray[np.float64]

VERSION = 1

_RISKS: dict[str, type[Any]] = {"price": Price, "paper": Paper, "budget": Budget, "minsafe": MinSafe}
_PARAMETERS: dict[str, type[Any]] = {"float": Float, "int": Int, "context": Context}
_ALWAYS = ("low", "high", "log", "options")  # what else a parameter has is saved where it is said


def dumps(study: dict[str, Any]) -> str:
    """Text with a format version."""
    return json.dumps({"crashbo": VERSION, **study}, default=plain)


def loads(text: str) -> dict[str, Any]:
    """The study in a text; refuses what it cannot read."""
    try:
        saved = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"text must be JSON from to_json; got {text[:40]!r} ({error}). Check the file.") from None
    version = saved.get("crashbo") if isinstance(saved, dict) else None
    if version != VERSION:
        raise ValueError(f"text must have format version {VERSION}; got {version!r}. Read it with a matching crashbo.")
    missing = [part for part in ("config", "trials", "state") if part not in saved]
    if missing:
        raise ValueError(f"text must be a whole study from to_json; it has no {missing[0]!r}. Check the file.")
    return dict(saved)


def space_out(space: Space) -> dict[str, Any]:
    """A space as plain values."""
    out: dict[str, Any] = {"parameters": {}, "fixed": dict(space.fixed)}
    for name, p in space.parameters.items():
        kind = next((k for k, cls in _PARAMETERS.items() if isinstance(p, cls)), "choice")
        usual = {f.name: f.default for f in fields(p)}
        said = {key: value for key, value in asdict(p).items() if key in _ALWAYS or value != usual[key]}
        out["parameters"][name] = {"kind": kind, **said}
    return out


def space_in(saved: dict[str, Any]) -> Space:
    """The space of plain values."""
    return Space({name: _parameter_in(dict(p)) for name, p in saved["parameters"].items()}, saved["fixed"])


def _parameter_in(saved: dict[str, Any]) -> Parameter:
    kind = saved.pop("kind")
    if kind == "choice":
        saved["options"] = [_tupled(option) for option in saved["options"]]
    if saved.get("when"):
        saved["when"] = {name: _tupled(values) for name, values in saved["when"].items()}
    parameter: Parameter = Choice(**saved) if kind == "choice" else _PARAMETERS[kind](**saved)
    return parameter


def _tupled(option: Any) -> Any:
    """An option that JSON made a list of; a list itself cannot be one, since options are compared by value."""
    return tuple(_tupled(o) for o in option) if isinstance(option, list) else option


def constraints_out(constraints: tuple[AnyConstraint, ...]) -> list[dict[str, Any]]:
    """Constraints as plain values."""
    return [{"kind": type(c).__name__, **asdict(c)} for c in constraints]


def constraints_in(saved: list[dict[str, Any]]) -> list[AnyConstraint]:
    """The constraints of plain values."""
    kinds: dict[str, type[Any]] = {"Constraint": Constraint, "Unmeasured": Unmeasured}
    return [kinds[c["kind"]](**{k: v for k, v in c.items() if k != "kind"}) for c in saved]


def risk_out(risk: Risk) -> dict[str, Any]:
    """A risk as plain values; the name of one that is the user's own."""
    kind = next((k for k, cls in _RISKS.items() if type(risk) is cls), None)
    return own.name_of(risk) if kind is None else {"kind": kind, **asdict(risk)}  # type: ignore[call-overload]


def risk_in(saved: dict[str, Any]) -> Any:
    """The risk of plain values; the name of one that is the user's own."""
    if own.is_named(saved):
        return saved
    if saved["kind"] == "adaptive":  # the default of old
        return Price()
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in saved.items() if key != "kind"}
    return _RISKS[saved["kind"]](**values)


def design_in(saved: dict[str, Any]) -> Design:
    """The design of plain values."""
    return Design(saved["size"], tuple(saved["shift"]), saved["given"])


def trial_in(saved: dict[str, Any]) -> Trial:
    """The trial of plain values."""
    told = Told.back(saved)
    return told.on(Trial(**{name: value for name, value in saved.items() if name not in vars(told)}))


def memory_out(memory: Memory | None) -> dict[str, Any] | None:
    """A memory as plain values; every float survives to its last bit."""
    if memory is None:
        return None
    return {
        "numbers": list(memory.numbers),
        "cost": _warm_out(memory.cost),
        "crash": _warm_out(memory.crash),
        "fitted_at": memory.fitted_at,
        "views": _ensemble_out(memory.ensemble),
        "told": memory.told,
        "bystander": _bystander_out(memory.bystander),
        "left_out": _numbers_out(memory.left_out),
    }


def light(memory: dict[str, Any]) -> dict[str, Any]:
    """A memory as plain values without EP's sites, which take most of its space and a little time to be found again."""
    kept = memory["bystander"]
    return {
        **memory,
        "crash": _without_sites(memory["crash"]),
        "bystander": kept and {**kept, **{of: _without_sites(kept.get(of)) for of in ("labels", "lower")}},
    }


def with_sites_of(memory: dict[str, Any], other: dict[str, Any] | None) -> dict[str, Any]:
    """A light memory with the sites that another of the same study has for its trials."""
    sites = None if other is None else (other["crash"] or {}).get("sites")
    if other is None or sites is None or memory["crash"] is None:
        return memory
    row = {number: i for i, number in enumerate(other["numbers"])}
    old = [row.get(number, -1) for number in memory["numbers"]]
    moved = [_array_out(np.pad(_array_in(site)[:, : len(row)], ((0, 0), (0, 1)))[:, old]) for site in sites]
    return {**memory, "crash": {**memory["crash"], "sites": moved}}


def known_in(memory: dict[str, Any]) -> set[int]:
    """Numbers of the trials that there were when a memory as plain values was made."""
    return {*memory["numbers"], *_numbers_in(memory.get("left_out"))}


def _without_sites(warm: dict[str, Any] | None) -> dict[str, Any] | None:
    return warm and {**warm, "sites": None}


def memory_in(saved: dict[str, Any] | None, kernel: Kernel = MATERN52) -> Memory | None:
    """The memory of plain values, of models with this kernel."""
    if saved is None:
        return None
    return Memory(
        tuple(saved["numbers"]),
        _warm_in(saved["cost"], kernel),
        _warm_in(saved["crash"], kernel),
        saved["fitted_at"],
        _ensemble_in(saved.get("views"), kernel),
        saved.get("told", ""),
        _bystander_in(saved.get("bystander"), kernel),
        _numbers_in(saved.get("left_out")),
    )


def _numbers_out(numbers: tuple[int, ...]) -> str:
    """Numbers of trials, one bit each: thousands in a few hundred characters."""
    bits = np.zeros(max(numbers, default=-1) + 1, dtype=bool)
    bits[list(numbers)] = True
    return base64.b64encode(np.packbits(bits).tobytes()).decode("ascii")


def _numbers_in(saved: str | None) -> tuple[int, ...]:
    bits = np.unpackbits(np.frombuffer(base64.b64decode(saved or ""), dtype=np.uint8))
    return tuple(np.flatnonzero(bits).tolist())


def _bystander_out(kept: BystanderMemory | None) -> dict[str, Any] | None:
    if kept is None:
        return None
    return {
        "measured": _warm_out(kept.measured),
        "labels": _warm_out(kept.labels),
        "lead": kept.lead,
        "fitted_at": kept.fitted_at,
        "views": _ensemble_out(kept.ensemble),
        "since": kept.since,
        "lower": _warm_out(kept.lower),
    }


def _bystander_in(saved: dict[str, Any] | None, kernel: Kernel) -> BystanderMemory | None:
    if saved is None:
        return None
    measured, labels = _warm_in(saved["measured"], kernel), _warm_in(saved["labels"], kernel)
    assert measured is not None
    assert labels is not None
    ensemble = _ensemble_in(saved["views"], kernel)
    lower = _warm_in(saved.get("lower"), kernel)
    return BystanderMemory(measured, labels, saved["lead"], saved["fitted_at"], ensemble, saved["since"], lower)


def _warm_out(warm: Warm | None) -> dict[str, Any] | None:
    if warm is None:
        return None
    return {
        "hypers": _hypers_out(warm.hypers),
        "measured": list(warm.measured),
        "sites": None if warm.sites is None else [_array_out(site) for site in warm.sites],
    }


def _warm_in(saved: dict[str, Any] | None, kernel: Kernel) -> Warm | None:
    if saved is None:
        return None
    sites = None if saved["sites"] is None else Sites(*(_array_in(site) for site in saved["sites"]))
    return Warm(_hypers_in(saved["hypers"], kernel), tuple(saved["measured"]), sites)


def _ensemble_out(ensemble: EnsembleHyperparameters | None) -> dict[str, Any] | None:
    if ensemble is None:
        return None
    return {
        "hypers": [_hypers_out(hypers) for hypers in ensemble.hypers],
        "log_weights": ensemble.log_weights.tolist(),
        "spreads": ensemble.spreads.tolist(),
    }


def _ensemble_in(saved: dict[str, Any] | None, kernel: Kernel) -> EnsembleHyperparameters | None:
    if saved is None:
        return None
    hypers = tuple(_hypers_in(several, kernel) for several in saved["hypers"])
    return EnsembleHyperparameters(hypers, np.array(saved["log_weights"]), np.array(saved["spreads"]))


def _hypers_out(hypers: tuple[Hyperparameters, ...]) -> list[dict[str, Any]]:
    plain = ({name: value for name, value in vars(h).items() if name != "kernel"} for h in hypers)  # the study has it
    return [{**values, "lengthscales": values["lengthscales"].tolist()} for values in plain]


def _hypers_in(saved: list[dict[str, Any]], kernel: Kernel) -> tuple[Hyperparameters, ...]:
    return tuple(Hyperparameters(**{**h, "lengthscales": np.array(h["lengthscales"])}, kernel=kernel) for h in saved)


def _array_out(values: Any) -> dict[str, Any]:
    """An array to its last bit, in a third of the space that digits take."""
    array = np.ascontiguousarray(values, dtype="<f8")
    return {"shape": list(array.shape), "f8": base64.b64encode(array.tobytes()).decode("ascii")}


def _array_in(saved: dict[str, Any]) -> Array:
    return np.frombuffer(base64.b64decode(saved["f8"]), dtype="<f8").reshape(saved["shape"]).astype(float)


def plain(value: Any) -> Any:
    """A value of NumPy as one that JSON knows."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item()
    raise ValueError(f"study must hold plain values to be saved; got {value!r}. Use text, numbers or booleans.")
