"""The bench: one study, and everything that people and machines do to it.

May import every other layer. Nothing that matters is kept here: each call reads the store, so that any number of
command lines, services and Optuna workers share a study. Every request may be repeated without harm.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crashbo.app.bench import corrections, store
from crashbo.app.bench.corrections import Correction
from crashbo.app.bench.definition import LARGEST, Definition, check_text, extras_in
from crashbo.app.bench.turnstile import Turnstile
from crashbo.integrations.optuna import Insight, insight
from crashbo.integrations.optuna.ledger import Closed, Entry, Ledger
from crashbo.integrations.optuna.settings import Settings
from crashbo.integrations.optuna.stored import LEASE
from crashbo.integrations.optuna.thinking import Batch, Thinker
from crashbo.optimizer.optimizer import Optimizer
from crashbo.optimizer.records import AnyConstraint, Trial, is_number

_LONGEST_LEASE = 1e9  # seconds
_ROUNDS = 5  # of thinking again, when others have taken the same places meanwhile

Think = Callable[[int, int], Batch]  # see Thinker.think


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
    censored: bool | str | Sequence[str] | None = None


@dataclass(frozen=True)
class Asked:
    """A wish for a trial; see `Bench.ask`."""

    request: str | None = None
    lease: float | None = None

    def check(self) -> None:
        """Refuse what cannot be."""
        _check_request(self.request)
        if self.lease is not None:
            _check_lease(self.lease)


@dataclass
class _Word:
    """What somebody wants to say of a trial that is believed to be under way."""

    entry: Entry
    judged: Trial
    request: str | None
    counted: bool | None = None  # None: nobody has tried to write it; False: the trial must be looked at


class Bench:
    """One study in a store.

    Args:
        ledger: of the study.
        think: chooses the next trials; by default here and now. A server has it done in another process.
    """

    def __init__(self, ledger: Ledger, think: Think | None = None) -> None:
        self.ledger = ledger
        self._think = think or Thinker(ledger.study).think
        self._writing = Turnstile()
        self._words: deque[_Word] = deque()  # that wait to be written
        self._open: tuple[Settings, dict[int, Entry]] = Settings(), {}  # trials under way, as last read: a cache

    @staticmethod
    def create(where: str, definition: Definition) -> "Bench":
        """A new study in a store: a file, or one of Optuna's URLs."""
        return Bench(store.create(where, definition))

    @staticmethod
    def open(where: str, name: str | None = None, think: Think | None = None) -> "Bench":
        """A study of a store; without a name the only one there is."""
        return Bench(store.load(where, name), think)

    @property
    def definition(self) -> Definition:
        """What defines the study, from the store."""
        page = self.ledger.read()
        settings = page.settings
        labels, run = extras_in(page.attrs.get(store.EXTRAS))
        told = [t for t in page.reading.records(settings) if t.state in ("success", "crash")]
        return Definition(
            name=self.ledger.name,
            space=page.space,
            constraints=settings.constraints_for(told),
            direction=self.ledger.direction,
            risk=settings.risk,
            noise=settings.noise,
            strategy=settings.strategy,
            posterior=settings.posterior,
            lease=settings.lease,
            labels=labels,
            run=run,
        )

    def entries(self) -> list[Entry]:
        """Every trial, in order of number."""
        page = self.ledger.read()
        entries = page.entries()
        self._open = page.settings, {e.trial.number: e for e in entries if e.open and not e.finished}
        return entries

    def entry(self, number: int) -> Entry:
        """One trial."""
        return self._read(number)[0]

    @property
    def trials(self) -> list[Trial]:
        """Every trial's record, in order of number."""
        return [entry.trial for entry in self.entries()]

    def ask(self, *, request: str | None = None, lease: float | None = None) -> Trial:
        """The next trial. Asked again with the same request id, it is the same trial.

        Args:
            request: chosen by the client, anew for every trial it wants.
            lease: seconds after which the trial is given up if nobody told it; by default the study's.
        """
        return self.ask_batch([Asked(request, lease)])[0]

    def ask_batch(self, asked: Sequence[Asked]) -> list[Trial]:
        """The next trials for several who ask at the same time, all from one fit."""
        for each in asked:
            each.check()
        given: dict[int, int] = {}  # place in `asked` to number of trial
        for turn in range(_ROUNDS):
            missing = self._recognised(asked, given)
            if not missing:
                break
            self._hand_out(asked, missing, given, turn)
        else:
            raise Conflict("others took every trial that was chosen. Ask again.")
        trials = self.trials
        return [trials[given[i]] for i in range(len(asked))]

    def tell(self, number: int, told: Told, *, request: str | None = None) -> Trial:
        """Say what came of a trial. Said twice it counts once; to say something else, `fix` it.

        A result that comes after its lease ran out is welcome.
        """
        _check_request(request)
        _check(told)
        quick = self._tell_open(number, told, request)
        if quick is not None:
            return quick
        with self._writing:
            entry, settings, attrs = self._read(number)
            judged = _judged(entry.trial, told, settings.constraints)
            if entry.trial.state != "pending" and not entry.late:
                if (request is not None and request == entry.told) or judged == entry.trial:
                    return entry.trial
                raise Conflict(
                    f"trial {number} must be pending to be told; it is a {entry.trial.state}. Use fix to correct it."
                )
            if entry.queued or entry.choosing:
                raise Conflict(f"trial {number} must be handed out to be told; it is not yet. Ask for it first.")
            return self._write(entry, attrs, judged, "tell", request)

    def void(self, number: int, reason: str = "", *, request: str | None = None) -> Trial:
        """Say that a fault ended a trial that says nothing of its parameters."""
        return self.tell(number, Told(void=reason or True), request=request)

    def fix(self, number: int, told: Told) -> Trial:
        """Correct a trial that was told."""
        _check(told)
        with self._writing:
            entry, settings, attrs = self._read(number)
            if entry.trial.state == "pending":
                raise Conflict(f"trial {number} must be told to be corrected; it is pending. Tell it.")
            judged = _judged(entry.trial, told, settings.constraints)
            return entry.trial if judged == entry.trial else self._write(entry, attrs, judged, "fix")

    def undo(self, number: int | None = None) -> Trial:
        """Take back the last word on a trial: what was said before counts again. By default on the latest one."""
        with self._writing:
            number = _latest_told(self.entries()) if number is None else number
            entry, _, attrs = self._read(number)
            correction = Correction.of(attrs, entry.trial)
            if entry.trial.state == "pending" or not entry.finished or not correction.below:
                raise Conflict(
                    f"trial {entry.trial.number} must have been told to be undone; it was not. Nothing to do."
                )
            undone = correction.undone()
            self.ledger.set_attr(corrections.key(entry.trial.number), undone.out())
            return corrections.applied(entry.trial, undone.now)

    def add(self, params: Mapping[str, Any], told: Told, *, request: str | None = None) -> Trial:
        """A trial that was not asked for, with what came of it."""
        _check_request(request)
        _check(told)
        with self._writing:
            known = self._asked(request)
            if known is not None:
                return known
            page = self.ledger.read()
            if not page.places(params):
                raise ValueError(
                    f"params must give each of {', '.join(page.distributions)}, and nothing else, a value that it can "
                    f"have; got {dict(params)!r}. Mend it."
                )
            return self.ledger.add(_judged(Trial(-1, dict(params)), told, page.settings.constraints), request)

    def renew(self, number: int, seconds: float) -> float:
        """Let a pending trial's lease end so many seconds from now; gives when."""
        _check_lease(seconds)
        entry, until = self.entry(number), time.time() + seconds
        try:
            if not entry.finished:
                self.ledger.note(entry.id, {LEASE: until})
                return until
        except Closed:
            pass
        raise Conflict(f"trial {number} must be pending to be waited for; it was told. Nothing to do.")

    def best(self) -> Trial | None:
        """The success with the best observed cost; None before the first."""
        sign = -1.0 if self.ledger.direction == "maximize" else 1.0
        successes = [(sign * t.cost, t.number, t) for t in self.trials if t.cost is not None and t.state == "success"]
        return min(successes)[2] if successes else None

    def insight(self) -> Insight:
        """What the models make of it."""
        return insight(self.ledger.study)

    def _tell_open(self, number: int, told: Told, request: str | None) -> Trial | None:
        """Tell a trial that was under way when last looked at; None if it may no longer be, and must be read anew."""
        settings, entries = self._open
        entry = entries.pop(number, None)
        if entry is None:
            return None
        word = _Word(entry, _judged(entry.trial, told, settings.constraints), request)
        self._words.append(word)
        with self._writing:
            if word.counted is None:
                self._write_words()
        return word.judged if word.counted else None

    def _write_words(self) -> None:
        """Write what all those want to say who wait: one commit serves them together."""
        words = []
        while self._words:
            words.append(self._words.popleft())
        for word in words:
            word.counted = False
        counted = self.ledger.close_all([(word.entry, word.judged, word.request) for word in words])
        for word, was_open in zip(words, counted, strict=True):
            word.counted = was_open

    def _recognised(self, asked: Sequence[Asked], given: dict[int, int]) -> list[int]:
        """Which of those who ask still need a trial; those that asked before get theirs again."""
        if not self.ledger.read().distributions:
            raise Conflict("study must have parameters to be asked; it has none. Make it with: crashbo new")
        before = {e.request: e.trial.number for e in reversed(self.entries()) if e.request is not None}
        first: dict[str, int] = {}  # of those who ask with the same request
        for i, each in enumerate(asked):
            if each.request is None:
                continue
            first.setdefault(each.request, i)
            elder = before.get(each.request)
            if elder is not None and given.setdefault(i, elder) != elder:  # another process got the same request
                self.void(given[i], "asked twice by the same request")
                given[i] = elder
        return [i for i, each in enumerate(asked) if i not in given and first.get(each.request or "", i) == i]

    def _hand_out(self, asked: Sequence[Asked], missing: list[int], given: dict[int, int], turn: int) -> None:
        """Think, then write what was thought; what others have taken meanwhile stays missing."""
        batch = self._think(len(missing), turn)
        ours: set[int] = set()
        for i, thought in zip(missing, batch.thoughts, strict=True):
            with self._writing:
                number = self.ledger.hand_out(batch, thought, asked[i].request, asked[i].lease, ours)
            if number is not None:
                given[i] = number
                ours.add(number)

    def _asked(self, request: str | None) -> Trial | None:
        """The trial that a request got, if it was here before."""
        if request is None:
            return None
        return next((e.trial for e in self.entries() if e.request == request and not e.choosing), None)

    def _read(self, number: int) -> tuple[Entry, Settings, Mapping[str, Any]]:
        found = None if isinstance(number, bool) or number < 0 else self.ledger.entry(number)
        if found is None:
            raise Missing(f"trial must be one of this study's; got number {number}. See its trials.")
        return found

    def _write(
        self, entry: Entry, attrs: Mapping[str, Any], judged: Trial, does: str, request: str | None = None
    ) -> Trial:
        """Write a trial's record, or, where that is closed, a correction of it."""
        number = entry.trial.number
        if entry.finished:
            changed = Correction.of(attrs, entry.trial).changed(corrections.words(judged), does)
            self.ledger.set_attr(corrections.key(number), changed.out())
            return judged
        try:
            self.ledger.close(entry, judged, request)
        except Closed:
            raise Conflict(f"trial {number} was told by somebody else just now. Look at it again.") from None
        return judged


def _latest_told(entries: list[Entry]) -> int:
    told = [e for e in entries if e.trial.state != "pending" and e.finished]
    if not told:
        raise Conflict("study must have a told trial to undo; it has none. Nothing to do.")
    return max(told, key=lambda e: e.at).trial.number


def _judged(trial: Trial, told: Told, constraints: tuple[AnyConstraint, ...] | None) -> Trial:
    """The trial as it would be, by the rules of `Optimizer.tell`."""
    known: Sequence[str | AnyConstraint] | None = constraints
    if known is None:
        blamed = [told.blame] if isinstance(told.blame, str) else list(told.blame or ())
        known = list(dict.fromkeys([*(told.measured or {}), *blamed]))
    said = Optimizer({"x": (0.0, 1.0)}, known).tell({"x": 0.0}, **vars(told))
    return corrections.applied(trial, corrections.words(said))


def _check(told: Told) -> None:
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
    for what, said in (("blame", told.blame), ("censored", told.censored if told.censored is not True else ())):
        names = [said] if isinstance(said, str) else said or ()
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{what} must be names of constraints; got {said!r}. Or leave it out.")


def _check_request(request: Any) -> None:
    if request is not None:
        check_text(request, "request", 100)


def _check_lease(seconds: Any) -> None:
    if not (is_number(seconds) and 0 < seconds <= _LONGEST_LEASE):
        raise ValueError(f"lease must be a positive number of seconds; got {seconds!r}. Say how long to wait.")
