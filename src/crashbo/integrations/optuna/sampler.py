"""CrashSampler: Optuna's sampler interface, implemented by crashbo's Optimizer on the content of the storage.

May import optimizer and below, and Optuna.
"""

import logging
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Unpack

from optuna import Study as OptunaStudy
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.storages._heartbeat import is_heartbeat_enabled
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna import deaths, keys, memories, stored, writing
from crashbo.integrations.optuna.clock import lease_of
from crashbo.integrations.optuna.settings import Settings, declared
from crashbo.integrations.optuna.snapshot import Snapshot, Suggestion, TrialSeed, seed_of
from crashbo.integrations.optuna.spaces import (
    NO_STRUCTURE,
    Axes,
    Structure,
    branches,
    common,
    company,
    enqueued,
    holds,
    settled,
)
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer.records import Crash, Fault, Stopped, Void
from crashbo.optimizer.study import Constraints, Options, takes_options_of_optuna
from crashbo.optimizer.told import Told, halted, salvaged
from crashbo.optimizer.voids import too_many
from crashbo.search.rules import named_beside

_ROUNDS = 5  # proposals in a row, if another worker has just proposed the same point
_PATIENCE = 1.0  # seconds that the earlier of two such trials waits for the later one to give way
_LOOK_AGAIN = 0.05

_log = logging.getLogger("crashbo")


class CrashSampler(BaseSampler):
    """An Optuna sampler that learns from crashes.

    It has no state: every proposal is computed from the storage alone. Its cache (the last fit of the models) only
    makes the next proposal faster. Settings that are not given here are those that `declare` stored.
    """

    @takes_options_of_optuna
    def __init__(
        self,
        constraints: Constraints | None = None,
        *,
        seed: int | None = None,
        on_fail: Fault | None = None,
        on_death: Fault | None = None,
        lease: float | None = None,
        space: Any = None,
        **options: Unpack[Options],
    ) -> None:
        """A sampler for any number of studies.

        Args:
            constraints: the possible reasons for a crash: names, Constraint or Unmeasured. None takes everything that
                was measured.
            seed: of the proposals; None derives one from the study, the same for all its workers.
            on_fail: how an exception that was caught counts, or a cost that is no number, or a FAIL of which no more is
                known: "crash" (the default) or "void".
            on_death: how the second death of a worker at one setting counts: "crash" (the default) or "void". After
                the first, which is void, the setting is tried once more.
            lease: seconds after which the worker of a running trial is taken to be dead; None waits for ever.
            space: a crashbo space or Optuna distributions, if known in advance: then the first trial, too, is proposed
                with all its parameters.
        """
        self.given = Settings.of(
            space=space, constraints=constraints, on_fail=on_fail, on_death=on_death, lease=lease, **options
        )
        self._seed = seed
        # Two caches, which may be lost: the models' last fit, by study and space, and the last reading, by trial.
        self._memories: dict[Any, Any] = {}
        self._latest: tuple[tuple[int, int], Reading] | None = None
        self._warned: set[str] = set()  # studies of whose voids the user has heard

    def settings(self, study: OptunaStudy) -> Settings:
        """The settings for a study: those given here, then those declared there."""
        return self.given.over(declared(study))

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The space, given or declared; else the parameters that all trials share, including failed ones."""
        reading = Reading.of(study)
        self._latest = _key(study, trial), reading
        space = self._space(trial, reading)[0]
        return {name: d for name, d in space.items() if not d.single()}

    def _space(self, trial: FrozenTrial, reading: Reading) -> tuple[Mapping[str, BaseDistribution], Structure]:
        """The space, given or declared; else that of the trials, with what exists beside values of others."""
        settings = self.given.over(reading.declared)
        if settings.space is not None:
            return settings.space, settings.structure
        others = [t for t in reading.trials if t.number != trial.number]
        return branches(others) or (common(others), NO_STRUCTURE)

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next point of the shared parameters."""
        latest, self._latest = self._latest, None
        reading = latest[1] if latest is not None and latest[0] == _key(study, trial) else Reading.of(study)
        structure = self._space(trial, reading)[1]
        axes = Axes(search_space, structure, self.given.over(reading.declared).rules or ())
        if not len(axes):
            return {}
        again = self._try_again(study, trial, search_space, reading, structure)
        if again is not None:
            return {name: again[name] for name in search_space if name in again}
        fixed = enqueued(trial, search_space) | _met(study, trial, structure)
        return self._propose(study, trial, axes, fixed, reading)

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A parameter that not all trials have, from those that have it, conditional on the parameters so far.

        The parameters that usually come with it are chosen at the same time and kept until they are asked for.
        """
        kept = (trial.system_attrs.get(keys.PROPOSAL) or {}).get("params", {})
        if param_name in kept and holds(param_distribution, kept[param_name]):
            return kept[param_name]
        reading = Reading.of(study)
        again = self._try_again(study, trial, {param_name: param_distribution}, reading)
        if again is not None:
            return again[param_name]
        known = settled(trial)
        usual = company((t for t in reading.trials if t.number != trial.number), [*known, param_name])
        rules = self.given.over(reading.declared).rules or ()
        if not usual:  # no earlier trial has this combination: choose the parameter alone, but for its rules
            known = {name: d for name, d in known.items() if name in named_beside(param_name, rules, known)}
        distributions = {**usual, **known, param_name: param_distribution}
        fixed = enqueued(trial, usual) | {name: trial.params[name] for name in known}
        fixed.pop(param_name, None)
        return self._propose(study, trial, Axes(distributions, rules=rules), fixed, reading)[param_name]

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        """Start the trial's lease, and note whether its worker has a heartbeat."""
        lease, storage = self.settings(study).lease, study._storage
        if lease is not None:
            for key, value in lease_of(lease).items():
                storage.set_trial_system_attr(trial._trial_id, key, value)
        if is_heartbeat_enabled(storage):
            storage.set_trial_system_attr(trial._trial_id, keys.HEARTBEAT, True)

    def after_trial(
        self, study: OptunaStudy, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Store why a trial failed, just before Optuna stores that it did."""
        if state != TrialState.FAIL or trial.user_attrs.get(keys.STATE) in ("crash", "stopped", "success", "void"):
            return
        why, caught = _exception_of_the_trial()
        if why is _TOLD:
            writing.note(study, trial._trial_id, Told("crash"))
        elif isinstance(why, Crash):
            writing.note(study, trial._trial_id, salvaged(why, stored.measured_in(trial.user_attrs)))
        elif isinstance(why, Stopped):
            writing.note(study, trial._trial_id, halted(why, stored.measured_in(trial.user_attrs)))
        elif isinstance(why, Void):
            writing.note(study, trial._trial_id, Told("void", reason=why.reason))
        elif why is None or caught:
            writing.note_error(study, trial._trial_id, "the objective gave no cost" if why is None else repr(why))
        else:  # it ends the study: a bug, or somebody pressed Ctrl-C
            writing.note(study, trial._trial_id, Told("void", reason=repr(why)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_memories": {}, "_latest": None}

    def _try_again(
        self,
        study: OptunaStudy,
        trial: FrozenTrial,
        wanted: Mapping[str, BaseDistribution],
        reading: Reading,
        structure: Structure = NO_STRUCTURE,
    ) -> dict[str, Any] | None:
        """The setting of a worker that died, if nobody has tried it since; of several workers, only one gets it."""
        if "fixed_params" in trial.system_attrs or deaths.tries_again(trial) is not None:
            return None
        for dead in reading.deaths(self.given.over(reading.declared)).untried:
            there = {n: d for n, d in wanted.items() if n not in structure.when or n in deaths.params_of(dead)}
            if not deaths.fits(dead, there, trial.params):
                continue
            chosen = Suggestion.again_at(dead)
            self._publish(study, trial, chosen)
            if not self._contested(study, trial, partial(_others, study, trial, dead.number)):
                return chosen.params
        return None

    def _propose(
        self, study: OptunaStudy, trial: FrozenTrial, axes: Axes, fixed: Mapping[str, Any], reading: Reading
    ) -> dict[str, Any]:
        """A point that no other worker is trying, stored where the others see it.

        Two workers that ask at the same time do not see each other's proposal. So each stores its own first and reads
        the storage again: of two that chose nearly the same point, at least the later writer sees both, and chooses
        again.
        """
        settings = self.given.over(reading.declared)
        seed = seed_of(study, reading.trials) if self._seed is None else self._seed
        for turn in range(_ROUNDS):
            snapshot = Snapshot.of(reading, axes, settings, without=trial.number)
            key = (id(study._storage), study.study_name, tuple(axes.names), tuple(snapshot.study.names))
            before = memories.recalled(study, snapshot, self._memories.get(key))
            if before.stale:
                snapshot = Snapshot.of(Reading.of(study), axes, settings, without=trial.number)
            chosen, memory = snapshot.ask(fixed, TrialSeed(seed, trial.number, turn), before.memory)
            self._memories[key] = memories.kept(study, snapshot, before, memory)
            chosen = replace(chosen, again=deaths.tries_again(trial))  # it may ask for more than the dead one had asked
            self._publish(study, trial, chosen)
            # Two that measure the best again for its noise at the same moment do so for nothing: the later one chooses
            # once more, knowing of the other. What then repeats a trial all the same has no other choice.
            if not self._contested(study, trial, partial(self._rivals, study, trial, snapshot, chosen, turn == 0)):
                break
            reading = Reading.of(study)
        else:  # let the others see it in any case
            self._publish(study, trial, chosen)
        if len(snapshot.voids) > len(snapshot.trials) / 4:  # worth a closer look
            self._warn_of_voids(study, reading, settings)
        return chosen.params

    def _warn_of_voids(self, study: OptunaStudy, reading: Reading, settings: Settings) -> None:
        """Once a study: when more trials were void than anyone would expect."""
        if study.study_name not in self._warned and (words := too_many(reading.records(settings))) is not None:
            self._warned.add(study.study_name)
            _log.warning(words)
            warnings.warn(words, RuntimeWarning, stacklevel=2)

    def _contested(self, study: OptunaStudy, trial: FrozenTrial, rivals_now: Callable[[], list[int]]) -> bool:
        """Whether to choose again because another trial was placed here at the same time. The later one gives way."""
        waited = 0.0
        while rivals := rivals_now():
            if trial.number > min(rivals) or waited >= _PATIENCE:
                study._storage.set_trial_system_attr(trial._trial_id, keys.PROPOSAL, None)
                return True
            time.sleep(_LOOK_AGAIN)
            waited += _LOOK_AGAIN
        return False

    def _rivals(
        self, study: OptunaStudy, trial: FrozenTrial, snapshot: Snapshot, chosen: Suggestion, repeats: bool
    ) -> list[int]:
        under_way = [t for t in stored.pending(study, snapshot.settings) if t.number != trial.number]
        return snapshot.rivals(chosen, under_way, repeats=repeats)

    def _publish(self, study: OptunaStudy, trial: FrozenTrial, chosen: Suggestion) -> None:
        storage = study._storage
        storage.set_trial_system_attr(trial._trial_id, keys.PROPOSAL, asdict(chosen))
        if chosen.p_safe is not None:
            storage.set_trial_user_attr(trial._trial_id, keys.P_SAFE, chosen.p_safe)


def _met(study: OptunaStudy, trial: FrozenTrial, structure: Structure) -> dict[str, Any]:
    """The context that was given with a trial."""
    if not structure.contexts:
        return {}
    return dict(study._storage.get_trial(trial._trial_id).system_attrs.get(keys.CONTEXT) or {})


def _key(study: OptunaStudy, trial: FrozenTrial) -> tuple[int, int]:
    return id(study._storage), trial._trial_id


def _others(study: OptunaStudy, trial: FrozenTrial, number: int) -> list[int]:
    """Other trials that try the setting of a dead one again."""
    return deaths.tried_again_by((t for t in study.get_trials(deepcopy=False) if t.number != trial.number), number)


_TOLD = object()


def _exception_of_the_trial() -> tuple[Any, bool]:
    """What the objective raised, and whether `catch` lets the study go on after it.

    It is an exception, None if the objective returned no number, _TOLD if `Study.tell` was called.

    Optuna tells a sampler that a trial failed, but not why: the exception is a local variable of the function that
    ran the objective and now, two calls up the stack, tells the result. Hence this inspection of the callers.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_tell_with_warning":
        frame = frame.f_back  # type: ignore[assignment]
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "_run_trial":
        return _TOLD, True
    if "func_err" not in caller.f_locals:
        warnings.warn(
            "this version of Optuna hides why a trial failed: a raised Crash cannot be told from a bug. "
            "All count as on_fail says. Or tell crashes by crashbo.integrations.optuna.tell.",
            RuntimeWarning,
            stacklevel=2,
        )
    why = caller.f_locals.get("func_err")
    return why, isinstance(why, caller.f_locals.get("catch", BaseException))
