"""The bench: one study, and everything that people and machines do to it.

May import every other layer. Nothing that matters is kept here: each call reads the store, so that any number of
command lines, services and Optuna workers share a study. Every request may be repeated without harm.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import optuna
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.app.bench import corrections, store
from crashbo.app.bench.corrections import Correction
from crashbo.app.bench.definition import LARGEST, Definition, check_text, extras_in
from crashbo.integrations.optuna import CrashSampler, Insight, declared, insight, stored
from crashbo.integrations.optuna.settings import Settings
from crashbo.integrations.optuna.spaces import Axes, common
from crashbo.integrations.optuna.stored import Reading
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import Trial, is_number
from crashbo.search.space import Choice, Float, Int, Parameter, Space

REQUEST, TOLD = "crashbo:request", "crashbo:told"  # ids of the requests that asked for a trial and that told it
_CHOOSING = 600.0  # seconds after which a trial is given up whose process died while choosing it


class Missing(ValueError):
    """There is no such trial."""


class Conflict(ValueError):
    """It contradicts what was said before."""


@dataclass(frozen=True)
class Told:
    """What is said of a trial; the rules are those of `Optimizer.tell`."""

    cost: float | None = None
    measured: Mapping[str, float] | None = None
    crash: bool | str | None = None
    blame: str | Sequence[str] | None = None
    void: bool | str | None = None


@dataclass(frozen=True)
class Entry:
    """A trial, and what the store knows of it beside its record."""

    trial: Trial
    id: int  # in the storage
    queued: bool  # waits to be handed out
    choosing: bool  # handed out, but its parameters are still being chosen
    lease: float | None  # seconds since 1970 until which it is waited for
    late: bool  # its lease ran out before it was told
    request: str | None  # that asked for it
    told: str | None  # request that told it
    finished: bool  # Optuna's own record is closed
    at: float  # when it last changed, seconds since 1970
    corrections: int

    @property
    def open(self) -> bool:
        """Whether somebody is running it."""
        return self.trial.state == "pending" and not self.queued and not self.choosing


class Bench:
    """One study in a store."""

    def __init__(self, study: Study, sampler: "BenchSampler | None" = None) -> None:
        self.study = study
        self.sampler = sampler or BenchSampler()
        study.sampler = self.sampler
        self._asking, self._writing = threading.Lock(), threading.Lock()

    @staticmethod
    def create(where: str, definition: Definition) -> "Bench":
        """A new study in a store: a file, or one of Optuna's URLs."""
        return Bench(store.create_study(where, definition))

    @staticmethod
    def open(where: str, name: str | None = None, sampler: "BenchSampler | None" = None) -> "Bench":
        """A study of a store; without a name the only one there is."""
        return Bench(store.load_study(where, name), sampler)

    @property
    def definition(self) -> Definition:
        """What defines the study, from the store."""
        reading = Reading.of(self.study)
        settings = reading.declared
        labels, run = extras_in(reading.attrs.get(store.EXTRAS))
        told = [t for t in reading.records(settings) if t.state in ("success", "crash")]
        return Definition(
            name=self.study.study_name,
            space=Space({name: _parameter(d) for name, d in self._distributions(reading).items()}),
            constraints=settings.constraints_for(told),
            direction="maximize" if self.study.direction == optuna.study.StudyDirection.MAXIMIZE else "minimize",
            risk=settings.risk,
            noise=settings.noise,
            strategy=settings.strategy,
            lease=settings.lease,
            labels=labels,
            run=run,
        )

    def entries(self) -> list[Entry]:
        """Every trial, in order of number."""
        return self.read()[1]

    def read(self) -> tuple[Reading, list[Entry]]:
        """What the store holds now, and its trials."""
        reading = Reading.of(self.study)
        settings = reading.declared
        names = list(self._distributions(reading))
        pairs = zip(reading.trials, reading.records(settings), strict=True)
        return reading, [_entry(frozen, trial, reading.attrs, settings, names) for frozen, trial in pairs]

    @property
    def trials(self) -> list[Trial]:
        """Every trial's record, in order of number."""
        return [entry.trial for entry in self.entries()]

    def entry(self, number: int) -> Entry:
        """One trial."""
        entries = self.entries()
        if isinstance(number, bool) or not 0 <= number < len(entries):
            raise Missing(f"trial must be one of this study's {len(entries)}; got number {number}. See its trials.")
        return entries[number]

    def ask(self, *, request: str | None = None, lease: float | None = None) -> Trial:
        """The next trial. Asked again with the same request id, it is the same trial.

        Args:
            request: chosen by the client, anew for every trial it wants.
            lease: seconds after which the trial is given up if nobody told it; by default the study's.
        """
        _check_request(request)
        if lease is not None and not (is_number(lease) and 0 < lease <= 1e9):
            raise ValueError(f"lease must be a positive number of seconds; got {lease!r}. Or leave it out.")
        with self._asking:
            known = self._asked(request)
            if known is not None:
                return known
            return self._hand_out(request, lease)

    def tell(self, number: int, told: Told, *, request: str | None = None) -> Trial:
        """Say what came of a trial. Said twice it counts once; to say something else, `fix` it.

        A result that comes after its lease ran out is welcome.
        """
        _check_request(request)
        self._check(told)
        with self._writing:
            entry = self.entry(number)
            judged = self._judged(entry.trial, told)
            if entry.trial.state != "pending" and not entry.late:
                if (request is not None and request == entry.told) or judged == entry.trial:
                    return entry.trial
                raise Conflict(
                    f"trial {number} must be pending to be told; it is a {entry.trial.state}. Use fix to correct it."
                )
            if entry.queued or entry.choosing:
                raise Conflict(f"trial {number} must be handed out to be told; it is not yet. Ask for it first.")
            if entry.finished:
                return self._correct(entry, corrections.words(judged), "tell")
            self._close(entry, judged, request)
            return judged

    def void(self, number: int, reason: str = "", *, request: str | None = None) -> Trial:
        """Say that a fault ended a trial that says nothing of its parameters."""
        return self.tell(number, Told(void=reason or True), request=request)

    def fix(self, number: int, told: Told) -> Trial:
        """Correct a trial that was told."""
        self._check(told)
        with self._writing:
            entry = self.entry(number)
            if entry.trial.state == "pending":
                raise Conflict(f"trial {number} must be told to be corrected; it is pending. Tell it.")
            judged = self._judged(entry.trial, told)
            if judged == entry.trial:
                return entry.trial
            if not entry.finished:  # given up, but its record is still open
                self._close(entry, judged, None)
                return judged
            return self._correct(entry, corrections.words(judged), "fix")

    def undo(self, number: int | None = None) -> Trial:
        """Take back the last word on a trial: what was said before counts again. By default on the latest one."""
        with self._writing:
            entry = self._latest_told() if number is None else self.entry(number)
            correction = Correction.of(self.study.user_attrs, entry.trial)
            if entry.trial.state == "pending" or not entry.finished or not correction.below:
                raise Conflict(
                    f"trial {entry.trial.number} must have been told to be undone; it was not. Nothing to do."
                )
            undone = correction.undone()
            self.study.set_user_attr(corrections.key(entry.trial.number), undone.out())
            return corrections.applied(entry.trial, undone.now)

    def add(self, params: Mapping[str, Any], told: Told, *, request: str | None = None) -> Trial:
        """A trial that was not asked for, with what came of it."""
        _check_request(request)
        self._check(told)
        with self._asking:
            known = self._asked(request)
            return known if known is not None else self._add(params, told, request)

    def renew(self, number: int, seconds: float) -> float:
        """Let a pending trial's lease end so many seconds from now; gives when."""
        if not (is_number(seconds) and 0 < seconds <= 1e9):
            raise ValueError(f"lease must be a positive number of seconds; got {seconds!r}. Say how long.")
        entry = self.entry(number)
        if entry.finished:
            raise Conflict(f"trial {number} must be pending to be waited for; it is a {entry.trial.state}.")
        until = time.time() + seconds
        self._note(entry.id, {stored.LEASE: until})
        return until

    def best(self) -> Trial | None:
        """The success with the best observed cost; None before the first."""
        sign = -1.0 if self.study.direction == optuna.study.StudyDirection.MAXIMIZE else 1.0
        successes = [t for t in self.trials if t.cost is not None and t.state == "success"]
        return min(successes, key=lambda t: sign * (t.cost or 0.0), default=None)

    def insight(self) -> Insight:
        """What the models make of it."""
        return insight(self.study)

    def _hand_out(self, request: str | None, lease: float | None) -> Trial:
        reading = Reading.of(self.study)
        space = self._distributions(reading)
        if not space:
            raise Conflict("study must have parameters to be asked; it has none. Make it with: crashbo new")
        self.sampler.notes = {stored.LEASE: time.time() + _CHOOSING, REQUEST: request}
        asked = self.study.ask(fixed_distributions=space)
        seconds = lease or reading.declared.lease
        self._note(asked._trial_id, {stored.LEASE: None if seconds is None else time.time() + seconds})
        elder = self._asked(request)
        if elder is not None and elder.number != asked.number:  # another process got the same request
            stored.tell(self.study, asked.number, void="asked twice by the same request")
            return elder
        return self.entry(asked.number).trial

    def _asked(self, request: str | None) -> Trial | None:
        """The trial that a request got, if it was here before."""
        if request is None:
            return None
        return next((e.trial for e in self.entries() if e.request == request and not e.choosing), None)

    def _add(self, params: Mapping[str, Any], told: Told, request: str | None) -> Trial:
        distributions = self._distributions(Reading.of(self.study))
        axes = Axes(distributions)
        unknown = [name for name in params if name not in distributions]
        missing = [name for name in distributions if name not in params]
        if unknown or missing or not axes.place(params):
            raise ValueError(
                f"params must give each of {', '.join(distributions)} a value that it can have; got {dict(params)!r}. "
                "Mend it."
            )
        judged = self._judged(Trial(-1, dict(params)), told)
        number_before = len(self.study.get_trials(deepcopy=False))
        self.study.add_trial(
            optuna.trial.create_trial(
                state=TrialState.COMPLETE if judged.state == "success" else TrialState.FAIL,
                value=judged.cost,
                params=dict(params),
                distributions={name: _widened(d, params[name]) for name, d in distributions.items()},
                user_attrs=_notes(judged),
                system_attrs={REQUEST: request},
            )
        )
        added = [t for t in self.trials[number_before:] if t.params == dict(params)]
        return added[-1]

    def _judged(self, trial: Trial, told: Told) -> Trial:
        """The trial as it would be, by the rules of `Optimizer.tell`."""
        judge = Optimizer({"x": (0.0, 1.0)}, self._constraints(told))
        said = judge.tell({"x": 0.0}, **vars(told))
        return corrections.applied(trial, corrections.words(said))

    def _constraints(self, told: Told) -> Any:
        known = declared(self.study).constraints
        if known is not None:
            return known
        blamed = [told.blame] if isinstance(told.blame, str) else list(told.blame or ())
        return list(dict.fromkeys([*(told.measured or {}), *blamed]))

    def _check(self, told: Told) -> None:
        """The limits that a store and a model can take."""
        if told.measured is not None and not isinstance(told.measured, Mapping):
            raise ValueError(f"measured must map names to numbers; got {told.measured!r}. Or leave it out.")
        for what, value in {"cost": told.cost, **(told.measured or {})}.items():
            if value is not None and (not is_number(value) or abs(value) > LARGEST):
                raise ValueError(
                    f"{what} must be a finite number, at most {LARGEST:g}; got {value!r}. Leave it out if unknown."
                )
        for what, text in (("crash", told.crash), ("void", told.void)):
            if text is not None and not isinstance(text, bool):
                check_text(text, f"reason of {what}")
        names = [told.blame] if isinstance(told.blame, str) else told.blame or ()
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"blame must be names of constraints; got {told.blame!r}. Or leave it out.")

    def _close(self, entry: Entry, judged: Trial, request: str | None) -> None:
        """Write what came of a trial; its end comes last, so that a kill on the way leaves it open."""
        storage, number = self.study._storage, judged.number
        try:
            if request is not None:
                self._note(entry.id, {TOLD: request})
            for key, value in _notes(judged).items():
                storage.set_trial_user_attr(entry.id, key, value)
            success = judged.state == "success"
            values = [judged.cost] if judged.cost is not None else None
            storage.set_trial_state_values(entry.id, TrialState.COMPLETE if success else TrialState.FAIL, values)
        except optuna.exceptions.UpdateFinishedTrialError:
            raise Conflict(f"trial {number} was told by somebody else just now. Look at it again.") from None

    def _correct(self, entry: Entry, said: corrections.Words, does: str) -> Trial:
        number = entry.trial.number
        correction = Correction.of(self.study.user_attrs, entry.trial).changed(said, does)
        self.study.set_user_attr(corrections.key(number), correction.out())
        return corrections.applied(entry.trial, said)

    def _latest_told(self) -> Entry:
        told = [e for e in self.entries() if e.trial.state != "pending" and e.finished]
        if not told:
            raise Conflict("study must have a told trial to undo; it has none. Nothing to do.")
        return max(told, key=lambda e: e.at)

    def _note(self, trial_id: int, notes: Mapping[str, Any]) -> None:
        for key, value in notes.items():
            self.study._storage.set_trial_system_attr(trial_id, key, value)

    def _distributions(self, reading: Reading) -> dict[str, BaseDistribution]:
        return dict(reading.declared.space or common(reading.trials))


class BenchSampler(CrashSampler):
    """A CrashSampler that writes a bench's notes on a trial before its parameters are chosen."""

    notes: Mapping[str, Any] = {}

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Begin the trial's lease, and keep which request it belongs to."""
        for key, value in self.notes.items():
            study._storage.set_trial_system_attr(trial._trial_id, key, value)


def _entry(
    frozen: FrozenTrial, trial: Trial, attrs: Mapping[str, Any], settings: Settings, names: Sequence[str]
) -> Entry:
    notes = frozen.system_attrs
    correction = attrs.get(corrections.key(trial.number)) or {}
    when = frozen.datetime_complete or frozen.datetime_start
    lease = notes.get(stored.LEASE)
    if lease is None and settings.lease is not None and frozen.datetime_start is not None:
        lease = frozen.datetime_start.timestamp() + settings.lease
    running = frozen.state == TrialState.RUNNING
    whole = all(name in frozen.params for name in names)
    return Entry(
        trial=replace(
            trial, params={name: trial.params[name] for name in names if name in trial.params} or trial.params
        ),
        id=frozen._trial_id,
        queued=frozen.state == TrialState.WAITING,
        choosing=running and not whole,
        lease=lease if running else None,
        late=trial.state == "void" and trial.reason == stored.EXPIRED,
        request=notes.get(REQUEST),
        told=notes.get(TOLD),
        finished=frozen.state.is_finished(),
        at=max(correction.get("at", 0.0), 0.0 if when is None else when.timestamp()),
        corrections=len(correction.get("past", ())),
    )


def _notes(judged: Trial) -> dict[str, Any]:
    """What Optuna has no room for."""
    notes: dict[str, Any] = {stored.MEASURED + name: value for name, value in judged.measured.items()}
    if judged.state != "success":
        notes |= {stored.STATE: judged.state, stored.REASON: judged.reason}
    if judged.blame:
        notes[stored.BLAME] = list(judged.blame)
    return notes


def _check_request(request: Any) -> None:
    if request is not None:
        check_text(request, "request", 100)


def _parameter(d: BaseDistribution) -> Parameter:
    """What a person is shown of a distribution."""
    if isinstance(d, CategoricalDistribution):
        return Choice(d.choices if len(d.choices) > 1 else (*d.choices, "—"))
    assert isinstance(d, FloatDistribution | IntDistribution)
    kind = Float if isinstance(d, FloatDistribution) else Int
    return kind(d.low, d.high if d.high > d.low else d.low + 1, log=d.log)  # type: ignore[arg-type]


def _widened(d: BaseDistribution, value: Any) -> BaseDistribution:
    """The distribution, stretched to hold a value from outside: old data may lie beyond the bounds of now."""
    if isinstance(d, FloatDistribution) and not d.low <= value <= d.high:
        return FloatDistribution(min(d.low, value), max(d.high, value), log=d.log)
    if isinstance(d, IntDistribution) and not d.low <= value <= d.high:
        return IntDistribution(min(d.low, int(value)), max(d.high, int(value)), log=d.log)
    return d
