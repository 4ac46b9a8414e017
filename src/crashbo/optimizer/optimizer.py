"""The Optimizer: ask for the next trial, tell what came of it. The only mutable state of a study.

May import strategies and below. Longer than most files, since all that is asked of a study goes through one class.
"""

import copy
import logging
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from crashbo import strategies
from crashbo.lazy import above
from crashbo.optimizer import saving
from crashbo.optimizer.checks.everything import check
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.comparing import Ranked, Worth, compared, of_pair
from crashbo.optimizer.confirmation import Confirmation
from crashbo.optimizer.experiment import Word
from crashbo.optimizer.guard import Guard
from crashbo.optimizer.keywords import counted
from crashbo.optimizer.observed import observations, task
from crashbo.optimizer.records import Comparison, Trial, cost_words
from crashbo.optimizer.study import Constraints, Options, Shown, Study, best_of, takes_options
from crashbo.optimizer.tables import rows
from crashbo.optimizer.tables.cells import Dialect
from crashbo.optimizer.tables.old_data import Extra, TableReading, compared_in, finished, read_table
from crashbo.optimizer.tables.rows import Row
from crashbo.optimizer.threshold import Threshold
from crashbo.optimizer.told import Said, Told, judge, surprise, takes_said
from crashbo.optimizer.view import Prediction, Recommendation, View
from crashbo.optimizer.voids import too_many
from crashbo.search import own
from crashbo.search.design import Design
from crashbo.search.observations import Observations
from crashbo.search.risk import is_bold, is_spent
from crashbo.search.space import Params, Space
from crashbo.search.surrogates import Memory, Surrogates
from crashbo.strategies.base import Proposal, Task, checked_proposal

Array = NDArray[np.float64]
P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("crashbo")


class Queued(NamedTuple):
    """A setting that will be asked before the search is."""

    origin: str
    params: dict[str, Any]
    repeats: int | None = None


def _in_turn(method: Callable[P, R]) -> Callable[P, R]:
    """Threads that call such methods of an Optimizer wait for each other."""

    @wraps(method)
    def waits(*args: P.args, **kwargs: P.kwargs) -> R:
        optimizer: Any = args[0]
        with optimizer._turn:
            return method(*args, **kwargs)

    return waits


class Optimizer:
    """Bayesian optimisation that learns from crashes, one trial at a time. `study` is what defines it.

    Several threads may use it: what one asks is pending for the next.
    """

    space = Shown(lambda study: study.space)
    constraints = Shown(lambda study: study.constraints)
    risk = Shown(lambda study: study.risk)
    direction = Shown(lambda study: study.the_direction)
    objectives = Shown(lambda study: dict(study.objectives))
    posterior = Shown(lambda study: study.posterior)
    strategy = Shown(lambda study: strategies.plain(study.strategy))

    @takes_options
    def __init__(
        self,
        space: Study | Space | Mapping[str, Any],
        constraints: Constraints | None = None,
        *,
        seed: int | None = 0,
        start: Sequence[Params] | None = None,
        **options: Unpack[Options],
    ) -> None:
        """A study without trials.

        Args:
            space: names to (low, high), Float, Int, Choice or Context; or a whole Study.
            constraints: the measured reasons for a crash: names, Constraint or Unmeasured.
            seed: of the proposals; None draws one.
            start: params to try first, in this order; None begins with a few that fill the space.
        """
        self._turn = threading.RLock()
        self.study = Study.of(space, constraints, **options)
        self._rng = np.random.default_rng(seed)
        if isinstance(start, Mapping | str):
            raise ValueError(f"start must be a list of params; got {start!r}. Write [{{...}}], also for one.")
        starts = None if start is None else len(start)
        self._design = Design.for_study(self.space, self.risk, starts, self._rng)
        self._queue = [Queued("start", self._chosen("start", params)) for params in start or ()]
        self._confirmations = 0
        self._trials: dict[int, Trial] = {}
        self._points: dict[int, Array] = {}  # of trials, in the unit cube
        self._comparisons: list[Comparison] = []  # in the order in which they were told
        self._memory: Memory | None = None
        self._cached: tuple[tuple[int, int], Surrogates] | None = None  # what the next ask goes by
        self._viewed: tuple[tuple[int, int], View] | None = None
        self._limits: tuple[tuple[int, int, float | None], dict[str, float]] | None = None  # of the last guard
        self._table: View | None = None  # of the first of several trials in a row that were not proposed here
        self._told = 0
        self._warned: set[str] = set()

    def ask(self, context: Params | None = None) -> Trial:
        """The next trial to run. It is pending until it is told.

        Args:
            context: what is met now, a value for each Context of the space.
        """
        return self.ask_batch(1, context)[0]

    @_in_turn
    def ask_batch(self, n: int, context: Params | None = None) -> list[Trial]:
        """The next n trials to run at the same time, chosen from one fit: each knows of those before it."""
        return [trial for some in self.ask_stream(n, context) for trial in some]

    def ask_stream(self, n: int, context: Params | None = None) -> Iterator[list[Trial]]:
        """The trials of `ask_batch`, a few at a time, as soon as they are chosen."""
        batch = self._batch(n, context)
        while True:
            with self._turn:
                some = next(batch, None)
            if some is None:
                return
            yield _theirs(some)

    @_in_turn
    @takes_said
    def tell(self, trial: Trial | int | Params, *, replace: bool = False, **said: Unpack[Said]) -> Trial:
        """Say what came of a trial: a cost, a success without one, a crash, that it was stopped, or a void.

        Args:
            trial: as asked, its number, or params of a trial that was not proposed here.
            replace: correct a trial that was told before.
        """
        told, met = judge(Told.of(**said), self.study.constraints, self.study.objectives), said.get("context")
        if met is not None and not set(met) <= set(self.space.contexts):
            known = ", ".join(self.space.contexts) or "none"
            raise ValueError(f"context must name contexts of the space ({known}); got {dict(met)!r}. Mend it.")
        found = self._find(trial, met)
        if found.state != "pending" and not replace:
            raise ValueError(
                f"trial {found.number} must be pending to be told; it is a {found.state}. "
                "Pass replace=True to correct it."
            )
        new = told.settled(found.params, self.space).on(found)
        self._keep(new)
        if new.state == "void" and new.repeats is not None and found.state == "pending":
            self._queue = [Queued("confirm", self._without_context(new.params), new.repeats), *self._queue]
        self._remark(new)
        return new

    @_in_turn
    def tell_table(
        self,
        table: Any,
        *,
        columns: Mapping[str, str | None] | None = None,
        extra: Extra = "refuse",
        words: Mapping[str, str] | None = None,
        on_nan: Word = "raise",
        decimal: str = ".",
        beyond: bool = False,
        dry_run: bool = False,
    ) -> TableReading:
        """Tell trials that were made before, from a table with one row each: all of them, or none.

        The columns are those of `to_dataframe`: a parameter's or a context's name, `cost` (of several goals their
        names), a measured constraint's name, `state`, `reason` and so on. Beside a cost no `state` is needed; a crash
        is said there, by a word such as "crash" in place of the cost, or by true in a column `crash`. A row that says
        in everything the same as a trial that is there already is left out: a table that has grown may be told again.

        Args:
            table: a data frame, the path of a CSV file, or a list of dicts.
            columns: what columns of the table are to be taken for, where they are named otherwise; None leaves one out.
            extra: "ignore" leaves out all columns that are unknown; else they are refused.
            words: what else the table calls a success, a crash, stopped, or void: {"broke": "crash"}.
            on_nan: what a row is that has neither a cost nor a state: "crash", "void", or an error.
            decimal: "," where a comma stands before the fraction of a number.
            beyond: rows beyond the bounds really ran there, and are learnt from.
            dry_run: tell nothing; print what is returned to see what was understood.

        Returns:
            What was understood, which it says when printed: `columns`, `new` and `known` rows, `notes`, `problems`,
            and the `trials` that were told.
        """
        reading = read_table(
            self.study,
            self.trials,
            table,
            columns=columns,
            extra=extra,
            dialect=Dialect(words or {}, on_nan, decimal, in_python=True),
            beyond=beyond,
        )
        if dry_run:
            return reading
        reading.refuse()
        told = self._told_rows(reading.new)
        comparisons = compared_in(reading, told, self._comparisons)
        return finished(reading, told, [self.prefer(c.better, c.worse, c.tie) for c in comparisons])

    def _told_rows(self, new: Sequence[Row]) -> list[Trial]:
        """Trials of rows that were checked; one fit is asked for the P(safe) of all."""
        inside = [i for i, row in enumerate(new) if not rows.beyond(self.study, row.params)]
        known = self.view.p_safe([new[i].params for i in inside]) if self._memory is not None and inside else ()
        p_safe = {i: float(p) for i, p in zip(inside, known, strict=False) if not np.isnan(p)}
        first = self._next
        asked = [Trial(first + i, row.params, origin="told", p_safe=p_safe.get(i)) for i, row in enumerate(new)]
        told = [row.told.on(t) for row, t in zip(new, asked, strict=True)]
        for t in told:
            self._keep(t)
        for t in told:  # last: where warnings are errors, all are kept
            self._remark(t)
        return told

    def _keep(self, new: Trial) -> None:
        """Keep a trial that was told."""
        self._trials[new.number] = new
        self._points.pop(new.number, None)
        self._told += 1

    def _remark(self, new: Trial) -> None:
        """Say what came of a trial, and warn of what is strange about it."""
        _log.info("trial %d: %s", new.number, came_of(new))
        for kind, words in surprise(new, self.study.constraints).items():
            self._warn_once(kind, words)
        if (rule := self.space.broken(new.ran)) is not None:
            self._warn_once(
                "rule",
                f"trial {new.number} ran at params that break the rule {rule.words!r}. It is learnt from all the same.",
            )
        if new.state == "void" and (warning := too_many(self._trials.values())):
            self._warn_once("voids", warning)

    @_in_turn
    def prefer(
        self, better: Trial | int, worse: Trial | int, tie: bool = False, *, replace: bool = False
    ) -> Comparison:
        """Say which of two successes was better, whether they have a cost or not.

        Args:
            better: a trial or its number.
            worse: likewise.
            tie: both were about the same.
            replace: correct what was said of these two before; else this is one more judgement.
        """
        new = compared(self._trials, better, worse, tie)
        if replace:
            before = of_pair(self._comparisons, new.better, new.worse)
            if not before:
                raise ValueError(
                    f"trials {new.better} and {new.worse} must have been compared to be corrected; they were not. "
                    "Leave out replace."
                )
            self._comparisons = [c for i, c in enumerate(self._comparisons) if i not in before]
        self._comparisons.append(new)
        self._told += 1
        _log.info("trial %d %s trial %d", new.better, "as good as" if new.tie else "better than", new.worse)
        return new

    @_in_turn
    def unprefer(self, one: Trial | int | None = None, other: Trial | int | None = None) -> Comparison:
        """Take back the last comparison, or the last one of these two."""
        last = len(self._comparisons) - 1
        if one is not None or other is not None:
            numbers = [t.number if isinstance(t, Trial) else t for t in (one, other)]
            last = next(reversed(of_pair(self._comparisons, *numbers)), -1)  # type: ignore[arg-type]
        if last < 0:
            raise ValueError("unprefer must have a comparison to take back; there is none. See `comparisons`.")
        self._told += 1
        return self._comparisons.pop(last)

    @property
    def comparisons(self) -> list[Comparison]:
        """Every comparison, in the order in which they were told."""
        return list(self._comparisons)

    def worth(self, params: Params | Sequence[Params]) -> Worth:
        """Mean and standard deviation of the hidden cost at params; a list gives arrays. See `View.worth`."""
        return self.view.worth(params)

    def ranking(self) -> list[Ranked]:
        """The trials that were compared or have a cost, the best first, and who beat whom."""
        return self.view.ranking()

    @property
    def trials(self) -> list[Trial]:
        """Every trial, in order of number."""
        return [trial for _, trial in sorted(self._trials.copy().items())]

    @property
    def best(self) -> Trial | None:
        """The success with the best observed cost, where trials were compared the most worth; None before the first."""
        self._refuse_best()
        if self.study.compared or self._comparisons:
            return self.view.best
        return best_of(self.trials, self.direction)

    @property
    def front(self) -> list[Trial]:
        """Of several goals, the trials that no other beats in all of them, in order."""
        return list(self.view.front)

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """Of several goals, the volume of what the front beats, in the units of the goals.

        Args:
            reference: the worst value of every goal that counts; by default that of the study, see `reference`.
        """
        return self.view.hypervolume(reference)

    @property
    def reference(self) -> dict[str, float] | None:
        """Of several goals, the worst values that count: as given, else found from the trials; None before any."""
        return self.view.reference

    @property
    @_in_turn
    def view(self) -> View:
        """The study as its models see it by now; they are fitted once until something is told."""
        if not self.is_viewed:
            now = self._task(share_fit=True)
            models = now.surrogates if now.seen.numbers else None
            # Looking at a study must not change what it proposes next: the memory stays as it is.
            if models is not None and now.fitted is None:
                self._cached = (self._key, models)
            self._viewed = (
                self._key,
                View(self.study, tuple(self.trials), models, comparisons=tuple(self._comparisons)),
            )
        assert self._viewed is not None
        return self._viewed[1]

    @property
    def is_viewed(self) -> bool:
        """Whether the models of `view` are fitted to all that was told."""
        return self._viewed is not None and self._viewed[0] == self._key

    @_in_turn
    def guard(self, trial: Trial | int, p: float | None = None) -> Guard:
        """What stops the trial while it runs, before it crashes: `guard.update(current=96.3)` raises Stopped.

        Args:
            trial: that is pending.
            p: it stops a trial that would else crash with this probability or more; None is the study's own.
        """
        found = self._find(trial)
        if found.state != "pending":
            raise ValueError(f"trial {found.number} must be pending to be guarded; it is {found.state}. Ask for one.")
        key = self._told, found.number, p
        if self._limits is None or self._limits[0] != key:
            inside = found.params if self.space.accepts(found.params) else None
            self._limits = key, self.view.limits(p, inside)
        return Guard(self._limits[1], {c.name: c.side for c in self.study.measured})

    def recommend(
        self, delta: float = 0.1, weights: Mapping[str, float] | None = None, *, context: Params | None = None
    ) -> Recommendation | None:
        """The point of least expected cost with P(safe) >= 1 - delta (eq. 3); None before a success.

        Args:
            delta: how likely a crash may be.
            weights: of several goals, how much each counts. Each goes from 0, the best on the front, to 1, the worst;
                the point is the one whose weighted goals are best at their worst. 1 each by default.
            context: for which it is; by default that of the last trial.
        """
        return self.at(context).recommend(delta, weights)

    def at(self, context: Params | None) -> View:
        """The study as its models see it in a context: thresholds, P(safe) and recommendation are for that."""
        return self.view.at(context)

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The crash threshold of every measured constraint."""
        return self.view.thresholds

    @overload
    def p_safe(self, params: Params, *, context: Params | None = None) -> float: ...
    @overload
    def p_safe(self, params: Sequence[Params], *, context: Params | None = None) -> Array: ...
    def p_safe(self, params: Params | Sequence[Params], *, context: Params | None = None) -> float | Array:
        """Probability that a trial at params succeeds; a list gives an array. NaN before any trial was told.

        Params that lack a Context are meant in `context`, by default that of the last trial.
        """
        return self.at(context).p_safe(params)

    @overload
    def p_violated(self, params: Params, *, context: Params | None = None) -> dict[str, float]: ...
    @overload
    def p_violated(self, params: Sequence[Params], *, context: Params | None = None) -> dict[str, Array]: ...
    def p_violated(
        self, params: Params | Sequence[Params], *, context: Params | None = None
    ) -> dict[str, float] | dict[str, Array]:
        """Probability that a trial at params would violate each constraint; a list gives arrays. NaN before any."""
        return self.at(context).p_violated(params)

    def predict(self, params: Sequence[Params], *, context: Params | None = None) -> Prediction | None:
        """Cost, constraints and P(safe) at params; None before any trial was told."""
        return self.at(context).predict(params)

    def blame(self, trial: Trial | int) -> dict[str, float]:
        """Probability that each constraint was violated in a trial that crashed; they need not sum to one."""
        return self.view.blame(trial)

    def blames(self) -> dict[int, dict[str, float]]:
        """The blame of every trial that crashed, by its number."""
        return self.view.blames()

    def table(self) -> list[dict[str, Any]]:
        """Every trial as a row of plain values, in order; `blame` as inferred (told ones are certain), for crashes."""
        return self.view.table()

    def gain_left(self) -> float | None:
        """What the next trial may be expected to gain, in units of the cost's noise; None before a success."""
        return self.view.gain_left()

    def check(self) -> list[Finding]:
        """What in the trials speaks against the model, in words, with a remedy: the strongest first; then advice."""
        return check(self.view)

    @_in_turn
    def confirm(self, n: int = 10, params: Params | Trial | None = None) -> Confirmation:
        """Queue n repeats of the best trial (or of params): the next asks give them. Returns their report.

        Of several goals there is no best: pass a trial of the `front`, or its params.
        """
        n = counted("n", n, "Ten repeats are usual.")
        if isinstance(params, Trial):
            params = params.params
        if params is None:
            self._refuse_best("confirm must be given a trial of the front, or params, in a study with several goals")
            best = self.best
            if best is None or not self.space.accepts(best.params):
                best = best_of((t for t in self.trials if self.space.accepts(t.params)), self.direction)
            if best is None:
                raise ValueError(
                    "confirm must have a success to repeat; there is none in the space. Give params, or tell one."
                )
            params = best.ran if self.space.accepts(best.ran) else best.params
        setting = self._chosen("params", params)
        self._confirmations += 1
        waiting = [queued for queued in self._queue if queued.origin == "confirm"]
        others = [queued for queued in self._queue if queued.origin != "confirm"]
        self._queue = [*waiting, *[Queued("confirm", setting, self._confirmations)] * n, *others]
        return Confirmation(self, setting, self._confirmations, n)

    @_in_turn
    @takes_options
    def changed(
        self,
        *,
        space: Space | Mapping[str, Any] | None = None,
        constraints: Constraints | None = None,
        fixed: Params | None = None,
        **options: Unpack[Options],
    ) -> "Optimizer":
        """The same study with other bounds or options, or with some parameters fixed to a value.

        Every trial is kept; one outside new bounds still informs the models. What is None stays as it is.

        Args:
            space: the same parameters with other bounds.
            constraints: in place of those it has.
            fixed: values that parameters keep in everything that is proposed from now on.
        """
        new = copy.copy(self)
        new.study = self.study.changed(self.space.changed(space, fixed), constraints, **options)
        new._trials, new._warned = dict(self._trials), set(self._warned)
        new._comparisons = list(self._comparisons)
        new._queue = [queued for queued in self._queue if new.space.without_contexts.accepts(queued.params)]
        new._design = self._design.fitted_to(new.space)
        new._memory, new._cached, new._viewed, new._limits, new._points = None, None, None, None, {}
        new._table = None
        new._rng = copy.deepcopy(self._rng)
        return new

    @_in_turn
    def to_json(self) -> str:
        """The whole study as text, from which `from_json` goes on with the same proposals."""
        trials, comparisons = [asdict(t) for t in self.trials], [asdict(c) for c in self._comparisons]
        whole = {"config": self.config(), "trials": trials, "comparisons": comparisons, "state": self.state()}
        return saving.dumps(whole)

    @staticmethod
    @takes_options
    def from_json(text: str, **parts: Unpack[Options]) -> "Optimizer":
        """A study saved by `to_json`; what of it is your own, such as a strategy, must be passed again.

        Args:
            text: of `to_json`.
        """
        saved = saving.loads(text)
        study, trials = Study.back(saved["config"], **parts), map(saving.trial_in, saved["trials"])
        same = {"strategy", "risk", "units", "rules"}  # anything else makes other models
        same |= {name for name in ("kernel",) if own.is_named(saved["config"].get(name))}
        state = saved["state"] if set(parts) <= same else {**saved["state"], "memory": None}
        return Optimizer.restored(study, trials, state, [Comparison(**c) for c in saved.get("comparisons", ())])

    def config(self) -> dict[str, Any]:
        """What defines the study, as plain values."""
        return self.study.out()

    def state(self) -> dict[str, Any]:
        """What, beside its trials, decides what the study proposes next, as plain values."""
        return {
            "design": asdict(self._design),
            "queue": [list(queued) for queued in self._queue],
            "confirmations": self._confirmations,
            "memory": saving.memory_out(self._memory),
            "rng": self._rng.bit_generator.state,
        }

    @staticmethod
    def restored(
        study: Study,
        trials: Iterable[Trial],
        state: Mapping[str, Any] | None,
        comparisons: Iterable[Comparison] = (),
    ) -> "Optimizer":
        """The study with these trials, in the `state` that it was in; what that lacks is as in the beginning."""
        new = Optimizer(study)
        revived = study.space.revived
        new._comparisons = list(comparisons)
        new._trials = {t.number: replace(t, params=revived(t.params), as_run=revived(t.as_run)) for t in trials}
        state = {**new.state(), **(state or {})}
        new._design = saving.design_in(state["design"])
        new._queue = [Queued(origin, study.space.revived(params), k) for origin, params, k in state["queue"]]
        new._confirmations = state["confirmations"]
        new._memory = saving.memory_in(state["memory"], study.kernel)
        new._rng.bit_generator.state = state["rng"]
        return new

    def to_dataframe(self) -> Any:
        """Every trial as a row of a pandas data frame, in order, with the columns of the CSV: see `tell_table`."""
        return above("frame")(self.study, self.trials, self.comparisons)

    def plot(self, what: str | None = None, *, axes: Sequence[str] | None = None) -> Any:
        """A picture of the study, a matplotlib figure.

        Args:
            what: "cost" over trials, the default; of several goals "front"; where trials are compared "ranking"; the
                name of a measured constraint, for its crash threshold over trials; "influence" of the parameters; or
                "slice", expected cost and P(safe) over two of them.
            axes: of a slice, the names of one or two parameters; by default the two that matter most.
        """
        return above("figure")(self, what, axes)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the study as one HTML file, to mail around; returns its path.

        Args:
            path: of the file, whose name without its ending is the study's.
        """
        found: Path = above("report")(self, path)
        return found

    def _repr_html_(self) -> str:
        return str(above("html")(self))

    def __repr__(self) -> str:
        states = Counter(t.state for t in self.trials)
        counts = ", ".join(f"{count} {state}" for state, count in states.items()) or "no trials"
        fitted = self.study.objectives or self.study.compared or self._comparisons  # what is best takes a fit to say
        best = None if fitted else self.best
        brought = "" if best is None else f"; best {best.cost:g} at {best.params}"
        return f"<Optimizer of {self.study.purpose}: {counts}{brought}>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _turn=threading.RLock())

    @property
    def _next(self) -> int:
        return max(self._trials, default=-1) + 1

    def _batch(self, n: int, context: Params | None) -> Iterator[list[Trial]]:
        """The next n trials, a few at a time; each is pending before the next ones are chosen."""
        space = self.space.in_context(context)
        n = counted("n", n, "One trial is ask().", least=0)
        more, some, begun = strategies.further(self.study.strategy), list[Trial](), False
        rival = self._rival() if n else None
        while n > 0:
            self._table = None
            trial = replace(self._next_trial(space, share_fit=begun), against=rival)
            self._trials[trial.number] = trial
            some, begun, n = [*some, trial], True, n - 1
            if n > 0 and trial.origin != "search":  # it cost next to nothing
                continue
            yield some
            some = []
            if more is None or n == 0:
                continue
            now = self._task(space, share_fit=True)
            for proposals in more(now, n, self._rng):
                some = [replace(t, against=rival) for t in self._handed_out(now, proposals)]
                self._trials |= {t.number: t for t in some}
                yield some
                n -= len(some)

    def _rival(self) -> int | None:
        """What the next trials are to be compared with: the winner so far."""
        winner = self.best if self.study.compared else None
        return None if winner is None else winner.number

    def _handed_out(self, now: Task, proposals: Sequence[Proposal]) -> list[Trial]:
        """Trials of points that the search has chosen together."""
        met = {name: now.space.fixed[name] for name in now.space.contexts}
        some = [checked_proposal(proposal, now.space) for proposal in proposals]
        params = [{**now.space.decode(proposal.x), **met} for proposal in some]
        X = np.array([self.space.encode(p) for p in params])
        before, p = map(np.exp, now.safety.stages(X))
        return [
            Trial(self._next + i, params[i], admissible=s.admissible, p_safe=float(p[i]), p_model=float(before[i]))
            for i, s in enumerate(some)
        ]

    def _next_trial(self, space: Space, *, share_fit: bool = False) -> Trial:
        """The next trial in a space whose contexts are held."""
        met = {name: space.fixed[name] for name in space.contexts}
        queued = [(i, {**q.params, **met}) for i, q in enumerate(self._queue)]
        fit = next(((i, params) for i, params in queued if space.broken(params) is None), None)
        if fit is not None:  # what a rule forbids in this context waits for another
            first, params = self._queue[fit[0]], space.check(fit[1])
            self._queue = [q for i, q in enumerate(self._queue) if i != fit[0]]
            p_safe = self._known_p_safe(params)
            return Trial(self._next, params, p_safe=p_safe, origin=first.origin, repeats=first.repeats)
        told = sum(t.counts for t in self._trials.values())
        under_way = sorted((t for t in self._trials.values() if t.state == "pending"), key=lambda t: t.number)
        now = self._task(space, share_fit=share_fit)
        if told + len(under_way) < self._design.size or told == 0:
            waits = told == 0 and len(under_way) >= self._design.size and not is_bold(self.risk)
            clear = np.flatnonzero(~now.dead_ends.hold(now.seen.pending))
            if waits and len(clear):  # while nothing is known of anything, what is under way is measured once more
                params = {**under_way[clear[0]].params, **met}
            else:
                tried = [t.params for t in self._trials.values() if t.state != "void"]
                self._design, params = self._design.next_new(space, tried, now.dead_ends)
            admissible = not is_spent(self.risk, now.seen.crashed, len(under_way))
            p_safe = self._known_p_safe(params)
            return Trial(self._next, params, p_safe=p_safe, origin="design", admissible=admissible)
        proposal = checked_proposal(self.study.strategy(now, self._rng), space)
        trial = Trial(self._next, {**space.decode(proposal.x), **met}, admissible=proposal.admissible)
        if "surrogates" not in vars(now):  # a strategy with other models, or none
            return trial
        self._remember(now.surrogates)
        x = self.space.encode(trial.params)[None]
        before, p = (float(np.exp(stage[0])) for stage in now.safety.stages(x))
        return replace(trial, p_safe=p, p_model=before)

    def _task(self, space: Space | None = None, *, share_fit: bool = False) -> Task:
        seen = observations(self.study, self._trials.values(), self._encoded, self._comparisons)
        return task(self.study, self._trials, seen, self._memory, self._fitted(seen, share=share_fit), space)

    def _fitted(self, seen: Observations, *, share: bool) -> Surrogates | None:
        """The last fit, if nothing changed since; to be shared, if nothing was told since."""
        if self._cached is None:
            return None
        key, models = self._cached
        if key == self._key:
            return models
        return models.at_pending(seen.pending) if share and key[0] == self._told else None

    def _encoded(self, trial: Trial) -> Array:
        """A trial's point in the unit cube; what ran changes only when it is told."""
        if trial.number not in self._points:
            self._points[trial.number] = self.space.encode(trial.ran)
        return self._points[trial.number]

    @property
    def _key(self) -> tuple[int, int]:
        """Changes whenever a trial is asked or told."""
        return self._told, len(self._trials)

    def _remember(self, models: Surrogates) -> None:
        self._memory = models.memory
        self._cached = (self._key, models)
        if not models.converged:
            self._warn_once("fit", "a model did not converge; its last state is used, and the study goes on.")

    def _known_p_safe(self, params: Params) -> float | None:
        p = float(self.p_safe(params)) if self._memory is not None else np.nan
        return None if np.isnan(p) else p

    def _refuse_best(self, rule: str = "best must be asked of a study with one goal; this has several") -> None:
        if self.study.objectives:
            raise ValueError(f"{rule}. See `front`, or ask `recommend(weights=...)` for one point.")

    def _chosen(self, what: str, params: Params) -> dict[str, Any]:
        """Params that a user wants to be tried, without a context; checked, and refused if they break a rule."""
        return self.space.without_contexts.check_proposable(what, self._without_context(params))

    def _without_context(self, params: Params) -> dict[str, Any]:
        if not isinstance(params, Mapping):
            return params  # to be refused
        return {name: value for name, value in params.items() if name not in self.space.contexts}

    def _find(self, trial: Trial | int | Params, context: Params | None = None) -> Trial:
        if isinstance(trial, Trial | int | np.integer):
            self._table = None
            number = trial.number if isinstance(trial, Trial) else int(trial)
            if number not in self._trials:
                raise ValueError(f"trial must be one of this study; got number {number}. Tell params for a new one.")
            found = self._trials[number]
            if isinstance(trial, Trial) and trial.params != found.params:
                raise ValueError(
                    f"trial {number} must have the params that it was asked with, {found.params}; got {trial.params}. "
                    "Pass ran={...} where others were run, or tell it in the study that asked for it."
                )
            return found
        params = self.space.check({**trial, **(context or {})} if isinstance(trial, Mapping) else trial, steps=False)
        if self._table is None and self._memory is not None:
            self._table = self.view  # a table of trials is told row by row: one fit for all
        p = np.nan if self._table is None else float(self._table.p_safe(params))
        return Trial(self._next, params, origin="told", p_safe=None if np.isnan(p) else p)

    def _warn_once(self, kind: str, words: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            _log.warning(words)
            warnings.warn(words, RuntimeWarning, stacklevel=5)


def _theirs(trials: Sequence[Trial]) -> list[Trial]:
    """Trials to hand out: who asked may change their params, and the study's stay as they are."""
    return [replace(trial, params=dict(trial.params)) for trial in trials]


def came_of(trial: Trial) -> str:
    """What came of a trial, in a few words."""
    if trial.state == "success" and trial.cost is not None:
        return f"success, {cost_words(trial.cost)}"
    return f"{trial.state}: {trial.reason}" if trial.reason else trial.state
