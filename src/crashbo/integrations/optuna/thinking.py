"""What to try next in a study, thought out from what its storage holds. Writes nothing.

May import optimizer and below, and Optuna.

Thinking takes time and is done where nobody waits for it; handing out what was thought (`Ledger.hand_out`) is quick.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna.rebuild import Lot, Proposal, Scene, seed_of
from crashbo.integrations.optuna.sampler import enqueued
from crashbo.integrations.optuna.spaces import Axes, common
from crashbo.integrations.optuna.stored import Reading

_log = logging.getLogger("crashbo")


@dataclass(frozen=True)
class Thought:
    """A setting to hand out."""

    proposal: Proposal
    queued: int | None = None  # id of the queued trial that it is meant for


@dataclass(frozen=True)
class Batch:
    """Settings to hand out, and the scene that they were thought out for."""

    scene: Scene
    distributions: Mapping[str, BaseDistribution]
    thoughts: tuple[Thought, ...]
    count: int  # trials that were there
    unplaced: bool  # whether other workers were still choosing the settings of theirs


class Thinker:
    """Thinks for one study. What it remembers only makes the next thought faster."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._memories: dict[Any, Any] = {}  # by what the models are of
        self._ahead: tuple[Any, tuple[Proposal, ...]] | None = None

    def think(self, count: int, turn: int = 0) -> Batch:
        """The next trials, all from one fit: first what is queued, then what the models propose.

        Args:
            count: how many.
            turn: how often it was thought in vain, because others took these places meanwhile.
        """
        reading = Reading.of(self._study)
        distributions = dict(reading.declared.space or common(reading.trials))
        axes = Axes(distributions)
        scene = Scene.of(reading, axes, reading.declared, self._study.direction)
        queue = [t for t in reading.trials if t.state == TrialState.WAITING][:count]
        lot = Lot(seed_of(self._study, reading.trials), len(reading.trials), turn)
        thoughts = [Thought(self._wished(reading, axes, t, lot), t._trial_id) for t in queue]
        if len(queue) < count:
            thoughts += map(Thought, self._proposals(count - len(queue), scene, lot))
        single = {name: d.to_external_repr(_only(d)) for name, d in distributions.items() if d.single()}
        unplaced = any(t.state == TrialState.RUNNING and not t.params for t in reading.trials)
        return Batch(scene, distributions, tuple(_with(t, single) for t in thoughts), len(reading.trials), unplaced)

    def think_ahead(self, count: int = 1) -> None:
        """Choose the next trials as things stand now, so that whoever asks next need not wait."""
        reading = Reading.of(self._study)
        if reading.declared.space is None or any(t.state == TrialState.WAITING for t in reading.trials):
            return  # what is queued needs no thought
        scene = Scene.of(reading, Axes(reading.declared.space), reading.declared, self._study.direction)
        lot = Lot(seed_of(self._study, reading.trials), len(reading.trials))
        if self._ahead is None or self._ahead[0] != _question(scene, lot):
            self._ahead = _question(scene, lot), self._thought(count, scene, {}, lot)

    def _proposals(self, count: int, scene: Scene, lot: Lot) -> tuple[Proposal, ...]:
        if not len(scene.axes):  # every parameter has a single value
            return (Proposal({}, "design", None, None, True),) * count
        ahead, self._ahead = self._ahead, None
        if ahead is not None and len(ahead[1]) >= count and ahead[0] == _question(scene, lot):
            return ahead[1][:count]
        return self._thought(count, scene, {}, lot)

    def _wished(self, reading: Reading, axes: Axes, trial: FrozenTrial, lot: Lot) -> Proposal:
        """What is queued; where that leaves parameters open, they are chosen."""
        others = Scene.of(reading, axes, reading.declared, self._study.direction, without=trial.number)
        wishes = {name: v for name, v in trial.system_attrs.get("fixed_params", {}).items() if name in axes.names}
        if axes.place(wishes):
            return others.wished(wishes, self._memories.get(_models_of(others)))
        fixed = enqueued(trial, {name: axes.axis(name).distribution for name in axes.names})
        return self._thought(1, others, fixed, lot)[0]

    def _thought(self, count: int, scene: Scene, fixed: Mapping[str, Any], lot: Lot) -> tuple[Proposal, ...]:
        key = _models_of(scene)
        memory = self._memories.get(key)
        try:
            proposals, self._memories[key] = scene.ask_batch(count, fixed, lot, memory)
        except (ArithmeticError, AssertionError) as error:
            if memory is None:
                raise
            _log.warning("a fit failed from where the last one ended (%r); beginning anew", error)
            proposals, self._memories[key] = scene.ask_batch(count, fixed, lot, None)
        return proposals


def _models_of(scene: Scene) -> tuple[Any, ...]:
    return tuple(scene.axes.names), tuple(c.name for c in scene.constraints)


def _question(scene: Scene, lot: Lot) -> tuple[Any, ...]:
    """All that a proposal depends on, but for the models' memory."""
    return scene.trials, scene.voids, scene.settings, scene.constraints, lot


def _only(distribution: BaseDistribution) -> float:
    """The internal value of a distribution that has but one."""
    return float(getattr(distribution, "low", 0.0))


def _with(thought: Thought, single: Mapping[str, Any]) -> Thought:
    p = thought.proposal
    proposal = Proposal({**single, **p.params}, p.origin, p.p_safe, p.p_model, p.admissible)
    return Thought(proposal, thought.queued)
