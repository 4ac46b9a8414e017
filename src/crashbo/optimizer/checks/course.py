"""What changes over the trials, how they scatter, where they were void, and which broke a rule.

May import strategies and below.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crashbo.models import trends
from crashbo.optimizer.checks.finding import Finding, amount, named
from crashbo.optimizer.observed import observations
from crashbo.optimizer.records import Constraint
from crashbo.optimizer.view import View
from crashbo.optimizer.voids import commonest
from crashbo.search.evidence import clustered, other_noise
from crashbo.search.space import places

Array = NDArray[np.float64]

# fitted: benchmarks/check.py, tuning seeds. The least evidence that makes a finding, in nats
_LEAST_DRIFT, _LEAST_SCATTER, _LEAST_NOISE, _LEAST_VOIDS = 3.0, 2.7, 6.0, 4.0
_LEAST_RANKS = 2.0  # of scatter, by the ranks of the values
_FAR = 1.7  # judgement: a noise is far from what was given if it is so many times larger or smaller
_FEW_VOIDS = 3  # judgement: fewer are no cluster


class Course(NamedTuple):
    """A quantity over the trials that have it."""

    name: str
    unit: str
    sign: float  # inside, costs are minimised and constraints crash above
    numbers: tuple[int, ...]
    X: Array
    y: Array
    lengthscales: Array
    told: Array | None = None  # of a cost: those far above the rest are drawn in for the model


def courses(view: View) -> list[Course]:
    """The cost, and everything that is measured."""
    models, study = view.models, view.study
    if models is None:
        return []
    seen, found = observations(study, view.trials), []
    if models.cost is not None and models.known.costed.any():
        known, Y = models.known, models.cost.data.Y[:, : models.successes]
        costed = np.flatnonzero(known.judged)
        signs = dict(zip(study.objectives, study.signs.tolist(), strict=True)) or {"cost": study.sign}
        for (name, sign), y, h in zip(signs.items(), Y, models.cost.hypers, strict=True):
            here = ~np.isnan(y)
            rows = costed[here]
            numbers, unit = tuple(known.numbers[i] for i in rows), study.units.get(name, "")
            told = sign * (known.cost if known.goals is None else known.goals[:, list(signs).index(name)])[rows]
            found.append(Course(name, unit, sign, numbers, known.X[rows], y[here], h.lengthscales, told))
    for j, c in enumerate(study.constraints):
        whole = ~np.isnan(seen.Y[:, j]) if seen.censored is None else ~np.isnan(seen.Y[:, j]) & ~seen.censored[:, j]
        rows = np.flatnonzero(whole)
        if isinstance(c, Constraint) and len(rows):
            numbers, scales = tuple(seen.numbers[i] for i in rows), models.measured.hypers[j].lengthscales
            unit = study.units.get(c.name, "")
            found.append(Course(c.name, unit, c.sign, numbers, seen.X[rows], seen.Y[rows, j], scales))
    return found


def drift(view: View) -> Iterator[Finding]:
    """A cost or a reading that moves while the setting stays."""
    for at in courses(view):
        found = trends.drift(at.X, at.y, at.lengthscales)
        if found.log_factor < _LEAST_DRIFT:
            continue
        moved = at.sign * found.size
        since = 0 if found.turn is None else found.turn
        how = "drifts" if found.turn is None else f"changed about trial {at.numbers[since]}"
        yield Finding(
            "drift",
            f"The {at.name} at the same setting {how}: by about {amount(moved, at.unit)} from the first trial to the "
            "last.",
            at.numbers[since:],
            "Look for wear, warming or a change of set-up, and repeat an early trial to see; if it is true, begin a "
            "new study with what still holds.",
            strength=found.log_factor - _LEAST_DRIFT,
        )


def scatter(view: View) -> Iterator[Finding]:
    """Noise that grows."""
    for at in courses(view):
        found = trends.growth(at.X, at.y, at.lengthscales)
        # A deep basin that was found late scatters more than the plateau about it; its ranks do not.
        if found.log_factor < _LEAST_SCATTER or found.in_ranks < _LEAST_RANKS:
            continue
        since = len(at.numbers) // 2 if found.turn is None else found.turn
        when = "over the trials" if found.turn is None else f"about trial {at.numbers[since]}"
        yield Finding(
            "scatter",
            f"The scatter of the {at.name} has grown {when}, to about {found.size:.0f} times what it was.",
            at.numbers[since:],
            "Look for something loose, worn or warm; repeat the best trial a few times before you trust it.",
            strength=min(found.log_factor - _LEAST_SCATTER, found.in_ranks - _LEAST_RANKS),
        )


def noise(view: View) -> Iterator[Finding]:
    """Repeats that scatter otherwise than by the noise that was given."""
    for at in courses(view):
        std = view.study.noise.get(at.name)
        if std is None:
            continue
        place = places(at.X)
        values = at.y
        if at.told is not None:  # as told: those far above the rest are drawn in for the model
            values = at.told
        evidence, seen = other_noise(values, place, std)
        if evidence < _LEAST_NOISE or std / _FAR < seen < _FAR * std:
            continue
        again = np.bincount(place)[place] > 1
        numbers = tuple(n for n, repeated in zip(at.numbers, again, strict=True) if repeated)
        yield Finding(
            "noise",
            f"Repeats of the same setting scatter by {amount(seen, at.unit)}, and the noise given for the {at.name} is "
            f"{amount(std, at.unit)}.",
            numbers,
            f"Give the noise of the {at.name} as about {amount(seen, at.unit)}, or leave it out: it is learnt then.",
            strength=evidence - _LEAST_NOISE,
        )


def voids(view: View) -> Iterator[Finding]:
    """Voids that cluster in the space."""
    told = [t for t in view.trials if t.state != "pending"]
    labels = np.array([t.state == "void" for t in told], dtype=bool)
    if labels.sum() < _FEW_VOIDS or labels.all():
        return
    evidence = clustered(np.array([view.study.space.encode(t.params) for t in told]), labels)
    if evidence < _LEAST_VOIDS:
        return
    found = [t for t in told if t.state == "void"]
    reason = commonest(t.reason for t in found)
    why = f", most often because: {reason}" if reason else ""
    numbers = tuple(t.number for t in found)
    yield Finding(
        "voids",
        f"The {len(found)} voids ({named(numbers)}) lie close to each other in the space{why}.",
        numbers,
        "These may be crashes: if their parameters caused them, correct them to crashes, and have the next ones count "
        "as such.",
        strength=evidence - _LEAST_VOIDS,
    )


def rules(view: View) -> Iterator[Finding]:
    """Trials that ran where a rule says that nothing can."""
    told = [t for t in view.trials if t.counts]
    for rule in view.study.space.rules:
        numbers = tuple(t.number for t in told if not rule.holds(t.ran, rounded=True))
        if numbers:
            yield Finding(
                "rule",
                f"The rule {rule.words!r} was broken by {named(numbers)}, and nothing is proposed there.",
                numbers,
                "Correct what they ran at, or the rule; they are learnt from all the same.",
            )
