"""Crashes, and successes, where the study did not expect them; and what is measured, if it explains none of them.

May import strategies and below.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from crashbo.optimizer.checks.finding import Finding, amount, listed, named
from crashbo.optimizer.records import Constraint, Trial
from crashbo.optimizer.view import View
from crashbo.search.lapses import lapses
from crashbo.search.surrogates import BystanderMemory, Surrogates

Array = NDArray[np.float64]

# fitted: benchmarks/check.py, tuning seeds. The least evidence that makes a finding, in nats
_LEAST_CRASHES, _LEAST_CAUSE = 3.0, 1.5
_BY_CHANCE = 4.0  # derived: standard deviations of the noise; one reading in 30 000 lies farther
_OUTSIDE = -math.log(0.05)  # derived: nats; beyond a 90 % interval lies one threshold in twenty
_MOST = 50.0  # judgement: nats of what leaves no doubt
_EXACT, _TINY = 1e-9, 1e-300  # so that no division fails; a noise below this share of a threshold is none
_SURELY = 3.0  # judgement: nats against another cause, with which it is not asked for any more
_FEW = 3  # judgement: fewer crashes say little of their cause


def surprising(view: View) -> Iterator[Finding]:
    """Crashes where all other trials make P(safe) high: by chance, or of something that nobody measures."""
    seen = view.seen
    if view.models is None or seen is None or _kept_lower(view) is not None:
        return
    found = lapses(seen, view.models)
    if found.evidence < _LEAST_CRASHES:
        return
    numbers = tuple(seen.numbers[i] for i in found.rows)
    low, high = float(found.p_safe.min()), float(found.p_safe.max())
    said = f"{high:.2f}" if high - low < 0.01 else f"{low:.2f} to {high:.2f}"
    yield Finding(
        "crashes",
        f"{named(numbers).capitalize()} crashed where all other trials make P(safe) {said}.",
        numbers,
        "If that had nothing to do with the parameters, correct them to void; if something else makes it crash, "
        "measure that, or add crashbo.Unmeasured() to the constraints.",
        strength=found.evidence - _LEAST_CRASHES,
    )


def beyond(view: View) -> Iterator[Finding]:
    """Successes beyond a threshold that was given, or beyond the interval that the crashes make of it."""
    if view.models is None:
        return
    for j, c in enumerate(view.study.constraints):
        limit = _limit(view, view.models, j, c) if isinstance(c, Constraint) else None
        if limit is None or not isinstance(c, Constraint):
            continue
        std = _noise(view.models, j)
        far = [t for t in _measured(view, c, "success") if c.sign * t.measured[c.name] - limit > _BY_CHANCE * std]
        if not far:
            continue
        unit = view.study.units.get(c.name, "")
        most = max(far, key=lambda t: c.sign * t.measured[c.name])
        excess = (c.sign * most.measured[c.name] - limit) / max(std, _EXACT * abs(limit), _TINY)
        what = "its 90 % interval by the crashes" if c.threshold is None else "its given threshold"
        if isinstance(c.threshold, tuple):
            what = "the interval given for its threshold"
        remedy = f"Check the threshold of {c.name}: give the right one, or none, and it is learnt."
        if c.threshold is None:
            remedy = (
                f"The crashes have another cause, or {c.name} jumps over its threshold: measure something else, too."
            )
        yield Finding(
            "beyond",
            f"{len(far)} {'success has' if len(far) == 1 else 'successes have'} {c.name} beyond {what}, "
            f"{amount(c.sign * limit, unit)}; trial {most.number} by the most, "
            f"{amount(most.measured[c.name], unit)}.",
            tuple(t.number for t in far),
            remedy,
            strength=_OUTSIDE if c.threshold is None else min(0.5 * (excess**2 - _BY_CHANCE**2), _MOST),
        )


def readings(view: View) -> Iterator[Finding]:
    """Crashes whose readings lie on the safe side of thresholds that were given."""
    known = [c for c in view.study.constraints if isinstance(c, Constraint) and c.threshold is not None]
    if view.models is None:
        return
    everything = len(known) == len(view.study.constraints)
    margins = {c.name: _safe_side(view.models, view, c) for c in known}
    found: dict[tuple[str, ...], list[int]] = {}
    for t in (t for t in view.trials if t.state == "crash"):
        suspects = [c for c in known if c.name in t.blame] if t.blame else known if everything else []
        safe = [c for c in suspects if _is_safe(t, c, margins[c.name])]
        if suspects and len(safe) == len(suspects):
            found.setdefault(tuple(c.name for c in safe), []).append(t.number)
    for names, numbers in found.items():
        yield Finding(
            "reading",
            f"{named(numbers).capitalize()} crashed with {listed(names)} on the safe side of what was given.",
            tuple(numbers),
            f"Check the threshold of {listed(names)}, or its sensor; where a reading was cut off, tell it as "
            "censored; if something else makes it crash, add crashbo.Unmeasured() to the constraints.",
            strength=4.0 * len(numbers),
        )


def glitches(view: View) -> Iterator[Finding]:
    """Stops at readings so far beyond all others that the sensor is to be doubted: no threshold is below them."""
    for c in (c for c in view.study.constraints if isinstance(c, Constraint)):
        stops = {
            t.number: c.sign * t.measured[c.name] for t in view.trials if t.state == "stopped" and c.name in t.measured
        }
        others = [c.sign * t.measured[c.name] for t in _measured(view, c, "success")]
        others += [c.sign * t.reached[c.name] for t in view.trials if c.name in t.reached]
        if not stops or len(others) < _FEW:
            continue
        level = max(others) + max(max(others) - min(others), _EXACT * abs(max(others)), _TINY)
        far = tuple(number for number, reading in stops.items() if reading > level)
        if far:
            most = amount(c.sign * max(stops.values()), view.study.units.get(c.name, ""))
            yield Finding(
                "stop",
                f"{named(far).capitalize()} {'was' if len(far) == 1 else 'were'} stopped at {c.name} far beyond all "
                f"other readings, {most} at the most: it counts as survived, so the threshold lies above.",
                far,
                "If the sensor glitched, correct it to void, or to what was reached; and filter what the guard gets.",
                strength=_MOST,
            )


def cause(view: View) -> Iterator[Finding]:
    """Whether what is measured explains none of the crashes, or only by a lower threshold than the one given."""
    study = view.study
    crashes = tuple(t.number for t in view.trials if t.state == "crash")
    if (kept := _kept_lower(view)) is not None:
        yield from _before_given(view, kept, crashes)
        return
    names = [c.name for c in study.measured]
    if len(crashes) < _FEW or not names or any(t.blame for t in view.trials) or _is_explained(view):
        return
    found = view.causes
    if found is None:
        return
    innocent = float(min(found.innocent[j] for j, c in enumerate(study.constraints) if isinstance(c, Constraint)))
    evidence = float(logit(np.clip(innocent, 1e-12, 1.0 - 1e-12)))
    if evidence < _LEAST_CAUSE:
        return
    what = listed(names)
    yield Finding(
        "cause",
        f"What is measured, {what}, explains none of the {len(crashes)} crashes.",
        crashes,
        f"Measure something else that may cause them; until then leave {what} out, or add crashbo.Unmeasured().",
        # Against the crash model alone, as the evidence of crashes by chance is: the odds are of all other causes.
        strength=min(max(evidence, _lead(view) or 0.0) - _LEAST_CAUSE, _MOST),
    )


def _before_given(view: View, kept: BystanderMemory, crashes: tuple[int, ...]) -> Iterator[Finding]:
    """Thresholds that were given, and before which it crashes."""
    assert kept.ensemble is not None
    for c, learnt in zip(view.study.constraints, kept.ensemble.hypers[0], strict=True):
        if isinstance(c, Constraint) and c.given is not None and learnt.threshold < np.min(c.given):
            level = c.sign * learnt.threshold
            yield Finding(
                "cause",
                f"Crashes begin before {c.name} reaches its threshold as given: from about {level:.4g} on.",
                crashes,
                "Check the threshold, or let it be learnt. If the machine jumps over it, leave it: P(safe) heeds both.",
                strength=min(kept.lead, _MOST),
            )


def _kept_lower(view: View) -> BystanderMemory | None:
    """What the search knows of a lower threshold than the one given, where it goes by that."""
    kept = _kept(view)
    return None if kept is None or kept.lower is None else kept


def _is_explained(view: View) -> bool:
    """Whether the search has found already that what is measured explains the crashes: the rest takes seconds."""
    lead = _lead(view)
    return lead is not None and lead < -_SURELY


def _lead(view: View) -> float | None:
    """By how many nats, when it was last fitted, a function of its own explained the labels better."""
    kept = _kept(view)
    return None if kept is None else kept.lead


def _kept(view: View) -> BystanderMemory | None:
    """What the search knows of rivals of the crash model."""
    return None if view.models is None else view.models.memory.bystander


def _limit(view: View, models: Surrogates, j: int, c: Constraint) -> float | None:
    """The level beyond which no success is expected, crashing above; None where there is no such."""
    if c.given is not None:
        return c.given[1] if isinstance(c.given, tuple) else c.given
    if not any(t.state == "crash" for t in view.trials):
        return None
    interval = models.crash_model.threshold_interval(j)
    return None if interval is None or not math.isfinite(interval[1]) else interval[1]


def _noise(models: Surrogates, j: int) -> float:
    return float(np.max(models.measured.hypers[j].noise_std))


def _measured(view: View, c: Constraint, state: str) -> list[Trial]:
    """Trials of this state whose reading is the value itself."""
    return [t for t in view.trials if t.state == state and c.name in t.measured and c.name not in t.censored]


def _safe_side(models: Surrogates, view: View, c: Constraint) -> float:
    """The level, crashing above, below which no reading of a crash lies by chance."""
    assert c.given is not None
    low = c.given[0] if isinstance(c.given, tuple) else c.given
    return low - _BY_CHANCE * _noise(models, view.study.constraints.index(c))


def _is_safe(t: Trial, c: Constraint, level: float) -> bool:
    cut = c.censored or c.name in t.censored
    return not cut and c.name in t.measured and c.sign * t.measured[c.name] < level
