"""The bench: one study, with all operations that people and machines need.

May import every other layer. It keeps no state of its own: each call reads the store, so that any number of command
lines, services and Optuna workers can share a study. Every request may safely be repeated. Longer than most files,
since everything that is written about a trial goes through the one lock of one class.
"""

import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crashbo.app.bench import store
from crashbo.app.bench.checks import (
    Conflict,
    Missing,
    check_lease,
    check_new,
    check_params,
    check_request,
    check_told,
    check_who,
    check_wish,
)
from crashbo.app.bench.definition import Definition, check_text, extras_in
from crashbo.app.bench.fair_lock import FairLock
from crashbo.integrations.optuna import Insight, insight, keys
from crashbo.integrations.optuna.comparing import SaidOfTwo, said_in
from crashbo.integrations.optuna.corrections import Correction, Version
from crashbo.integrations.optuna.ledger import Entry, Ledger, Order, entries_of
from crashbo.integrations.optuna.proposer import Batch, Proposer
from crashbo.integrations.optuna.settings import Settings, declared_in
from crashbo.integrations.optuna.spaces import space_of
from crashbo.numerics.hypervolume import hypervolume, on_front
from crashbo.optimizer.comparing import compared, of_pair
from crashbo.optimizer.observed import goals_of
from crashbo.optimizer.records import Trial
from crashbo.optimizer.study import best_of
from crashbo.optimizer.told import Told, judge
from crashbo.optimizer.view import winner_of
from crashbo.search.front import reference_of

_INSTANT = 1e-3  # seconds between two places in the order of what is told, where the clock was set back
_ROUNDS = 5  # proposals in a row, if others have taken the same points in the meantime

Propose = Callable[..., Batch | None]  # see Proposer.some: count, turn, onward, and the context where there is one


@dataclass(frozen=True)
class Asked:
    """A request for a trial; see `Bench.ask`."""

    request: str | None = None
    lease: float | None = None
    context: Mapping[str, Any] | None = None

    def check(self) -> None:
        """Refuse invalid values."""
        check_request(self.request)
        if self.lease is not None:
            check_lease(self.lease)


@dataclass
class _PendingTell:
    """An outcome that waits to be written, for a trial that was running when last read."""

    entry: Entry
    told: Told
    notes: dict[str, Any]
    counted: bool | None = None  # None: not tried yet; False: the trial must be read again


class Bench:
    """One study in a store.

    Args:
        ledger: of the study.
        propose: chooses the next trials, by default in this thread; a server does so in another process.
    """

    def __init__(self, ledger: Ledger, propose: Propose | None = None) -> None:
        self.ledger = ledger
        self._propose = propose or _here(Proposer(ledger.study))
        self._writing = FairLock()
        self._waiting: deque[_PendingTell] = deque()  # outcomes to be written
        # Running trials, as last read, and by which settings what is told of them is judged: a cache.
        self._open: tuple[Settings | None, dict[int, Entry]] = None, {}
        self._wished = False  # whether a setting was queued since the storage was last read to choose some
        self._ours: set[int] = set()  # trials that were handed out since then
        self._latest: float | None = None  # the latest place in the order of what was told
        self._winner: tuple[Any, Trial | None] = ((), None)  # of the trials and comparisons that it was found from

    @staticmethod
    def create(where: str, definition: Definition) -> "Bench":
        """Create a study in a store: a file, or one of Optuna's URLs."""
        return Bench(store.create(where, definition))

    @staticmethod
    def open(where: str, name: str | None = None) -> "Bench":
        """Open a study of a store; without a name, the only one."""
        return Bench(store.load(where, name))

    @property
    def definition(self) -> Definition:
        """The definition of the study, from the store."""
        reading = self.ledger.read()
        settings, space = reading.declared, space_of(reading.distributions, reading.structure)
        label, units, run = extras_in(reading.attrs.get(store.EXTRAS))
        constraints = settings.constraints_for([t for t in reading.records(settings) if t.counts])
        said = {"units": units, **settings.options, "constraints": constraints}
        if reading.direction is not None:
            said["direction"] = reading.direction
        return Definition(self.ledger.name, space, said, lease=settings.lease, label=label, run=run)

    def entries(self) -> list[Entry]:
        """Every trial, in order of number."""
        reading = self.ledger.read()
        entries = entries_of(reading)
        self._open = reading.declared, {e.trial.number: e for e in entries if e.open and not e.finished}
        self._latest = max([self._latest or 0.0, *(e.at for e in entries if e.finished)])
        return entries

    def entry(self, number: int) -> Entry:
        """One trial."""
        return self._read(number)[0]

    @property
    def trials(self) -> list[Trial]:
        """Every trial's record, in order of number."""
        return [entry.trial for entry in self.entries()]

    def ask(
        self,
        *,
        request: str | None = None,
        lease: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Trial:
        """The next trial. Asking again with the same request id returns the same trial.

        Args:
            request: an id chosen by the client, a new one for every trial.
            lease: seconds after which the trial is given up if it was not told; by default the study's.
            context: what is met now, a value for each context of the study.
        """
        return self.ask_batch([Asked(request, lease, context)])[0]

    def check_asked(self, asked: Asked) -> None:
        """Refuse a request with invalid values, or without the study's context."""
        settings = self._open[0]  # as last read: `ask_each` reads them again
        self._check_asked(asked, declared_in(self.ledger.attrs) if settings is None else settings)

    def _check_asked(self, asked: Asked, settings: Settings) -> None:
        asked.check()
        if settings.structure.contexts or asked.context:
            self.definition.space.in_context(asked.context)

    def ask_batch(self, asked: Sequence[Asked]) -> list[Trial]:
        """The next trials for several requests at the same time, all from one fit."""
        given = dict(self.ask_each(asked))
        return [given[i] for i in range(len(asked))]

    def ask_each(self, asked: Sequence[Asked], *, onward: bool = False) -> Iterator[tuple[int, Trial]]:
        """The next trials for several requests, each with the index of its request, as soon as they are chosen.

        Args:
            asked: the requests.
            onward: whether more from the last fit will do, of which what was told since knows nothing.
        """
        settings = declared_in(self.ledger.attrs)
        for each in asked:
            self._check_asked(each, settings)
        if not self.ledger.has_parameters:
            raise Conflict("study must have parameters to be asked; it has none. Make it with: crashbo new")
        given: set[int] = set()  # indices in `asked`
        for turn in range(_ROUNDS):
            for i, trial in self._recognised(asked, given):
                given.add(i)
                yield i, trial
            missing = _first_of_each(asked, given)
            if not missing:
                return
            self._check_not_halted()
            for i, trial in self._hand_out(asked, missing, turn, onward and turn == 0 and not self._wished):
                given.add(i)
                yield i, trial
        if len(given) < len(asked):
            raise Conflict("others took every trial that was chosen. Ask again.")

    def tell(self, number: int, told: Told, *, request: str | None = None, who: str = "") -> Trial:
        """Report the outcome of a trial. Repeating it has no effect; to change it, use `fix`.

        A result that arrives after its lease ran out still counts.

        Args:
            number: of the trial.
            told: its outcome.
            request: an id chosen by the client, a new one for every outcome.
            who: name of whoever tells it.
        """
        check_request(request)
        check_told(told)
        check_who(who)
        quick = None if told.as_run else self._tell_open(number, told, _notes(request, who))
        if quick is not None:
            return quick
        if (known := self._known(number, told, request)[0]) is not None:
            return known  # without the lock: a repetition writes nothing
        with self._writing:
            known, told, entry, attrs = self._known(number, told, request)
            if known is not None:
                return known
            if entry.queued or entry.choosing:
                raise Conflict(f"trial {number} must be handed out to be told; it is not yet. Ask for it first.")
            return self._write(entry, attrs, Version(told, who=who), "tell", request)

    def _known(
        self, number: int, told: Told, request: str | None
    ) -> tuple[Trial | None, Told, Entry, Mapping[str, Any]]:
        """A trial of which this was told before, else None; what is told, judged; and what is stored of the trial."""
        entry, settings, attrs = self._read(number)
        told = self._settled(judge(told, settings.constraints, settings.objectives or ()), entry.trial.params)
        if entry.trial.state == "pending" or entry.late:
            return None, told, entry, attrs
        same = told.on(entry.trial) == entry.trial
        if request is not None and request == entry.told_by:
            if f"{keys.CORRECTED}{number}" in attrs:  # what this request said is Optuna's own record
                same = self.ledger.own(number)[1] == told
            if not same:
                raise _reused(request)
        if same:
            return entry.trial, told, entry, attrs
        raise Conflict(
            f"trial {number} must be pending to be told; it is a {entry.trial.state}. Use fix to correct it."
        )

    def void(self, number: int, reason: str = "", *, request: str | None = None, who: str = "") -> Trial:
        """Report that a trial ended by a fault that has nothing to do with its parameters."""
        return self.tell(number, Told.of(void=reason or True), request=request, who=who)

    def fix(
        self,
        number: int,
        told: Told,
        *,
        params: Mapping[str, Any] | None = None,
        beyond: bool = False,
        who: str = "",
    ) -> Trial:
        """Correct a trial that was told.

        Args:
            number: of the trial.
            told: its outcome.
            params: the setting that really ran; by default unchanged.
            beyond: that it really ran beyond the bounds.
            who: name of whoever corrects it.
        """
        check_told(told)
        check_who(who)
        with self._writing:
            entry, settings, attrs = self._read(number)
            if entry.trial.state == "pending":
                raise Conflict(f"trial {number} must be told to be corrected; it is pending. Tell it.")
            params = dict(entry.trial.params if params is None else params)
            told = self._settled(judge(told, settings.constraints), params)
            if params != entry.trial.params:
                check_params(params, self.ledger.read(), beyond=beyond)
            if told.on(entry.trial) == entry.trial and params == entry.trial.params:
                return entry.trial
            ran = None if params == self.ledger.own(number)[0] else params
            return self._write(entry, attrs, Version(told, ran, who), "fix")

    def undo(self, number: int | None = None, *, who: str = "") -> Trial:
        """Undo the last report on a trial, so that the previous one counts again; by default on the trial told last."""
        check_who(who)
        with self._writing:
            number = _latest_told(self.entries()) if number is None else number
            entry, _, attrs = self._read(number)
            correction = Correction.of(attrs, entry.trial, entry.first, entry.who)
            if entry.trial.state == "pending" or not entry.finished or not correction.below:
                raise Conflict(
                    f"trial {entry.trial.number} must have been told to be undone; it was not. Nothing to do."
                )
            undone = correction.undone(self._stamp(), who)
            undone.write(self.ledger.study)
            trial = self.entry(number).trial
            if trial.state == "pending":  # what was said of it and another was said of what is no longer told
                for said in self.comparisons():
                    if number in (said.comparison.better, said.comparison.worse) and not said.undone:
                        replace(said, undone=True, undone_by=who).write(self.ledger.study)
            return trial

    def comparisons(self) -> list[SaidOfTwo]:
        """Every comparison, in the order in which they were told; also those that were taken back."""
        return said_in(self.ledger.read().attrs)

    def prefer(
        self,
        better: int,
        worse: int,
        *,
        tie: bool = False,
        replaces: bool = False,
        request: str | None = None,
        who: str = "",
    ) -> SaidOfTwo:
        """Say which of two successes was better. Repeating it with the same request id has no effect.

        Args:
            better: number of a trial.
            worse: number of another.
            tie: both were about the same.
            replaces: in place of what was said of these two before; else this is one more judgement.
            request: an id chosen by the client, a new one for every comparison.
            who: name of whoever says it.
        """
        return self.prefer_all([(better, worse, tie)], replaces=replaces, request=request, who=who)[0]

    def prefer_all(
        self,
        words: Sequence[tuple[int, int, bool]],
        *,
        replaces: bool = False,
        request: str | None = None,
        who: str = "",
    ) -> list[SaidOfTwo]:
        """Say several such things: better, worse and whether it was a tie; all are checked before any is written."""
        check_request(request)
        check_who(who)
        with self._writing:
            trials = {t.number: t for t in self.trials}
            before = {said.id: said for said in self.comparisons()}
            new = [compared(trials, *word) for word in words]
            names = [uuid.uuid4().hex if request is None else f"{request}:{i}" for i in range(len(new))]
            done = []
            for name, comparison in zip(names, new, strict=True):
                known = before.get(name)
                if known is not None and known.comparison != comparison:
                    raise _reused(str(request))
                done.append(known or SaidOfTwo(name, comparison, self._stamp(), who))
                if known is None:
                    done[-1].write(self.ledger.study)
            if replaces:  # only now: a comparison is never lost
                for said in before.values():
                    if said.id not in names and of_pair([said.comparison], new[0].better, new[0].worse):
                        replace(said, undone=True, undone_by=who).write(self.ledger.study)
            return done

    def unprefer(self, name: str | None = None, *, who: str = "") -> SaidOfTwo:
        """Take back a comparison, by its id; by default the last one."""
        check_who(who)
        with self._writing:
            standing = [said for said in self.comparisons() if not said.undone]
            found = [said for said in standing if name is None or said.id == name]
            if not found:
                raise Conflict("study must have such a comparison to take back; it has none. Nothing to do.")
            undone = replace(found[-1], undone=True, undone_by=who)
            undone.write(self.ledger.study)
            return undone

    def add(
        self,
        params: Mapping[str, Any],
        told: Told,
        *,
        request: str | None = None,
        beyond: bool = False,
        who: str = "",
    ) -> Trial:
        """Add a trial that was not asked for, with its outcome; `beyond` if it really ran beyond the bounds."""
        return self.entry(self.add_all([(params, told, request)], beyond=beyond, who=who)[0]).trial

    def add_all(
        self,
        words: Sequence[tuple[Mapping[str, Any], Told, str | None]],
        *,
        beyond: bool = False,
        who: str = "",
    ) -> list[int]:
        """Add trials that were not asked for, all or none; returns their numbers. A known request adds nothing."""
        check_who(who)
        with self._writing:
            reading = self.ledger.read()
            for params, told, request in words:
                check_request(request)
                check_new(params, told, reading, beyond=beyond)
            words = [(params, self._settled(told, params), request) for params, told, request in words]
            known: dict[Any, int] = {e.request: e.trial.number for e in entries_of(reading) if not e.choosing}
            names = [i if request is None else request for i, (_, _, request) in enumerate(words)]
            new: dict[Any, Any] = {}
            for name, (params, told, request) in zip(names, words, strict=True):
                said = dict(params), told
                if name not in known:
                    new.setdefault(
                        name, (*said, _notes(None, who) | {keys.REQUEST: request, keys.ORDER: self._stamp()})
                    )
                if (new[name][:2] if name in new else self.ledger.own(known[name])) != said:
                    raise _reused(str(request))
            known |= dict(zip(new, self.ledger.add_all([*new.values()]), strict=True))
            return [known[name] for name in names]

    def wish(self, params: Mapping[str, Any], *, beyond: bool = False) -> None:
        """Queue a setting, to be handed out before any proposal."""
        check_wish(params, self.ledger.read(), beyond=beyond)
        with self._writing:
            self.ledger.queue(params)
        self._wished = True

    @property
    def id(self) -> str:
        """What no other study is called, for the ids of its trials."""
        return str(self.ledger.attrs.get(store.ID) or self.ledger.name)

    @property
    def halted(self) -> dict[str, Any] | None:
        """Since when no trial is handed out, by whom and why; None if they are."""
        return self.ledger.attrs.get(keys.HALTED) or None

    def halt(self, why: str = "", *, who: str = "") -> None:
        """Hand out no more trials, to anybody who asks a bench of this study, until `resume`."""
        check_text(why, "why")
        check_who(who)
        self.ledger.set_attr(keys.HALTED, {"at": time.time(), "why": why, "who": who})

    def resume(self) -> None:
        """Hand out trials again."""
        self.ledger.set_attr(keys.HALTED, None)

    def renew(self, number: int, seconds: float) -> float:
        """Extend a pending trial's lease to this many seconds from now; returns when it ends."""
        check_lease(seconds)
        entry = self.entry(number)
        if entry.finished or not self.ledger.renew(entry.id, seconds):
            raise Conflict(f"trial {number} must be pending to be waited for; it was told. Nothing to do.")
        return time.time() + seconds

    def best(self, trials: Iterable[Trial] | None = None) -> Trial | None:
        """The success with the best observed cost; None before the first, and where there are several goals.

        Where trials were compared it is the one of the most worth.

        `trials` are those of the study, where somebody has just read them.
        """
        if self.ledger.goals:
            return None
        reading = self.ledger.read()
        if reading.declared.cost == "compared" or reading.comparisons:
            return self._compared_best()
        return best_of(self.trials if trials is None else trials, self.ledger.direction)

    def _compared_best(self) -> Trial | None:
        found = insight(self.ledger.study).snapshot
        key = found.trials, found.comparisons
        if self._winner[0] != key:
            best = winner_of(found.study, found.trials, found.comparisons)
            self._winner = key, None if best is None else self.entry(best.number).trial
        return self._winner[1]

    def front(self) -> tuple[int, float]:
        """Of several goals, how many trials are on the front, and its hypervolume: as told, without models."""
        study = self.definition.study
        values = goals_of(study, [t for t in self.trials if t.state == "success"])
        values = values[~np.isnan(values).any(axis=1)]
        if not len(values):
            return 0, 0.0
        given = [study.reference[name] for name in study.objectives] if study.reference else None
        reference = reference_of(values) if given is None else study.signs * given
        return int(on_front(values).sum()), hypervolume(values, reference)

    def insight(self) -> Insight:
        """What the models say about the study, in its units."""
        found = insight(self.ledger.study)
        study = replace(found.snapshot.study, units=self.definition.study.units)
        return replace(found, snapshot=replace(found.snapshot, study=study))

    def _tell_open(self, number: int, told: Told, notes: dict[str, Any]) -> Trial | None:
        """Tell a trial that was running when last read; None if it may not be any more, and must be read again."""
        settings, entries = self._open
        entry = entries.pop(number, None) if settings is not None else None
        if entry is None or settings is None:
            return None
        word = _PendingTell(entry, judge(told, settings.constraints, settings.objectives or ()), notes)
        self._waiting.append(word)
        with self._writing:
            if word.counted is None:
                self._write_waiting()
        return told.on(entry.trial) if word.counted else None

    def _write_waiting(self) -> None:
        """Write all waiting outcomes in one commit."""
        words = []
        while self._waiting:
            words.append(self._waiting.popleft())
        for word in words:
            word.counted = False
        counted = self.ledger.close_all([(w.entry, w.told, w.notes | {keys.ORDER: self._stamp()}) for w in words])
        for word, was_open in zip(words, counted, strict=True):
            word.counted = was_open

    def _recognised(self, asked: Sequence[Asked], given: Collection[int]) -> list[tuple[int, Trial]]:
        """The trials of requests that were made before, with their indices."""
        before = self.ledger.asked_by(each.request for i, each in enumerate(asked) if i not in given)
        found = []
        for i, each in enumerate(asked):
            if i in given or each.request not in before:
                continue
            elder = self.entry(before[each.request])
            if elder.asked != each.lease:
                raise _reused(each.request)
            found.append((i, elder.trial))
        return found

    def _hand_out(
        self, asked: Sequence[Asked], missing: Sequence[int], turn: int, onward: bool
    ) -> Iterator[tuple[int, Trial]]:
        """Propose trials and write them, as they are chosen; those whose points others have taken stay missing."""
        for context, several in _by_context(asked, missing):
            met = () if context is None else (context,)
            yield from self._hand_out_some(asked, several, turn, onward and context is None, met)

    def _hand_out_some(
        self, asked: Sequence[Asked], missing: Sequence[int], turn: int, onward: bool, met: tuple[Any, ...]
    ) -> Iterator[tuple[int, Trial]]:
        """The same for requests that meet the same."""
        left = deque(missing)
        while left:
            if not onward:
                self._ours, self._wished = set(), False
            batch = self._propose(len(left), turn, onward, *met)
            if batch is None and not onward:
                return
            onward = batch is not None
            if batch is not None:
                self._open = batch.snapshot.settings, self._open[1]
                rows = [left.popleft() for _ in batch.planned]
                orders = [Order(p, asked[i].request, asked[i].lease) for p, i in zip(batch.planned, rows, strict=True)]
                with self._writing:
                    entries = self.ledger.hand_out(batch, orders, self._ours)
                yield from self._handed((i, entry) for i, entry in zip(rows, entries, strict=True) if entry is not None)

    def _handed(self, pairs: Iterable[tuple[int, Entry]]) -> Iterator[tuple[int, Trial]]:
        """Trials that were written; if another process has just served the same request, that one's."""
        some = list(pairs)
        self._ours |= {entry.trial.number for _, entry in some}
        first = self.ledger.asked_by(entry.request for _, entry in some)
        for i, entry in some:
            number = entry.trial.number
            elder = first.get(entry.request or "", number)
            if elder == number:
                self._open[1][number] = entry
                yield i, entry.trial
            else:
                self.void(number, "asked twice by the same request")
                yield i, self.entry(elder).trial

    def _settled(self, told: Told, params: Mapping[str, Any]) -> Told:
        """With all params that were run, where some differed."""
        return told.settled(params, self.definition.space) if told.as_run else told

    def _read(self, number: int) -> tuple[Entry, Settings, Mapping[str, Any]]:
        found = None if isinstance(number, bool) or number < 0 else self.ledger.entry(number)
        if found is None:
            raise Missing(f"trial must be one of this study's; got number {number}. See its trials.")
        return found

    def _check_not_halted(self) -> None:
        halted = self.halted
        if halted is not None:
            since = " by " + halted["who"] if halted.get("who") else ""
            why = f": {halted['why']}" if halted.get("why") else ""
            raise Conflict(f"study must not be halted to be asked; it was{since}{why}. When all is well: resume it.")

    def _stamp(self) -> float:
        """The next place in the order of what is told: the time, unless the clock was set back."""
        if self._latest is None:
            self.entries()
        self._latest = max(time.time(), (self._latest or 0.0) + _INSTANT)
        return self._latest

    def _write(
        self, entry: Entry, attrs: Mapping[str, Any], to: Version, does: str, request: str | None = None
    ) -> Trial:
        """Write a trial's record, or a correction if the record is closed."""
        at = self._stamp()
        if entry.finished:
            Correction.of(attrs, entry.trial, entry.first, entry.who).changed(to, does, at).write(self.ledger.study)
        elif not self.ledger.close_all([(entry, to.told, _notes(request, to.who) | {keys.ORDER: at})])[0]:
            raise Conflict(f"trial {entry.trial.number} was told by somebody else just now. Look at it again.")
        return to.on(entry.trial)


def _by_context(asked: Sequence[Asked], those: Sequence[int]) -> list[tuple[Mapping[str, Any] | None, list[int]]]:
    """Requests that meet the same."""
    found: list[tuple[Mapping[str, Any] | None, list[int]]] = []
    for i in those:
        same = next((several for context, several in found if context == asked[i].context), None)
        if same is None:
            found.append((asked[i].context, [i]))
        else:
            same.append(i)
    return found


def _notes(request: str | None, who: str) -> dict[str, Any]:
    return {key: value for key, value in {keys.TOLD: request, keys.WHO: who}.items() if value}


def _reused(request: str) -> Conflict:
    return Conflict(f"request must be a new id for another body; got {request!r} again. Choose another.")


def _first_of_each(asked: Sequence[Asked], given: Collection[int]) -> list[int]:
    """Indices of requests that need a trial; of equal ones the first."""
    first: dict[str, int] = {}
    for i, each in enumerate(asked):
        if each.request is not None:
            first.setdefault(each.request, i)
    return [i for i, each in enumerate(asked) if i not in given and first.get(each.request or "", i) == i]


def _here(proposer: Proposer) -> Propose:
    """Choose in this thread."""
    return lambda count, turn, onward, context=None: proposer.some(count, turn, onward=onward, context=context)


def _latest_told(entries: list[Entry]) -> int:
    told = [e for e in entries if e.trial.state != "pending" and e.finished]
    if not told:
        raise Conflict("study must have a told trial to undo; it has none. Nothing to do.")
    return max(told, key=lambda e: e.at).trial.number
