"""A study's history on tape: recorded with one version of crashbo, replayed step by step with another.

A history is a function that changes a study step by step. Every step begins by loading the saved study and ends by
saving it again. Recording keeps each step's answer and the saved study. Replaying starts each step from the recorded
study, whatever this version made of the step before, and gives the history the recorded answers: so it follows the
recorded path to its end, and one difference does not hide others.
"""

import json
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import crashbo

LONGEST = 120.0  # seconds of a step; the longest takes ten


class Step(NamedTuple):
    what: str
    answer: Any  # plain values
    warned: list[str]
    after: bytes  # the study, saved


class Difference(NamedTuple):
    step: int
    what: str
    words: str  # the first thing in which the step differs


class Enough(Exception):
    """The history is long enough."""


class Late(BaseException):
    """A step takes too long; whatever is done there must not take it for an error of its own."""


class Tape:
    """Steps of one history. What a study is saved as, and how two of them are compared, is up to the kinds of tape.

    Args:
        recorded: steps to be replayed; None records.
        most: steps after which recording ends.
    """

    def __init__(self, recorded: Sequence[Step] | None = None, most: int | None = None) -> None:
        self.recorded, self.most = recorded, most
        self.steps: list[Step] = []
        self.differences: list[Difference] = []

    def step(self, what: str, act: Callable[[bytes], tuple[Any, bytes]]) -> Any:
        """Do something to the saved study; returns the recorded answer."""
        before, number = self.steps[-1].after if self.steps else b"", len(self.steps)
        if number >= (self.most or 10**9) or (self.recorded is not None and number >= len(self.recorded)):
            raise Enough
        if self.recorded is None:
            self.steps.append(performed(what, act, before))
        else:
            self.steps.append(self.recorded[number])
            try:
                with limited(LONGEST):
                    new = performed(what, act, before)
                words = next(self._compared(self.recorded[number], new), None)
            except (Exception, Late) as error:  # whatever it is, the recorded step had none
                words = f"raises {error!r}"
            if words is not None:
                self.differences.append(Difference(number, what, words))
        return self.steps[-1].answer

    def essence(self, saved: bytes) -> Any:
        """What of a saved study must be the same, as plain values."""
        raise NotImplementedError

    def _compared(self, old: Step, new: Step) -> Iterator[str]:
        """How a step differs from the recorded one, as text."""
        if old.what != new.what:
            yield f"is {new.what!r}, was {old.what!r}: the history itself is another"
        yield from unlike(old.answer, new.answer, "answer")
        yield from unlike(old.warned, new.warned, "warnings")
        if old.after != new.after:
            yield from unlike(self.essence(old.after), self.essence(new.after), "study")


class StudyTape(Tape):
    """An Optimizer, as `to_json` saves it."""

    def do(self, what: str, act: Callable[[Any], Any]) -> Any:
        """Do something to the optimizer; if that returns another one, or a result, the history continues with it."""

        def on_saved(before: bytes) -> tuple[Any, bytes]:
            optimizer = crashbo.Optimizer.from_json(before.decode()) if before else None
            answer = act(optimizer)
            if isinstance(answer, crashbo.Optimizer):
                optimizer, answer = answer, None
            elif isinstance(answer, crashbo.Result):
                optimizer, answer = answer.optimizer, [ended(answer), answer.table()]
            assert optimizer is not None
            return answer, optimizer.to_json().encode()

        return self.step(what, on_saved)

    def new(self, *args: Any, **kwargs: Any) -> None:
        """Begin a study."""
        self.do("new", lambda _: crashbo.Optimizer(*args, **kwargs))

    def ask(self) -> Any:
        """The next trial, as plain values."""
        return self.do("ask", lambda optimizer: optimizer.ask())

    def ask_batch(self, n: int) -> Any:
        """The next trials from one fit."""
        return self.do("ask_batch", lambda optimizer: optimizer.ask_batch(n))

    def tell(self, trial: Any, **told: Any) -> Any:
        """Tell a trial as it was asked, a number, or params."""
        named = trial["number"] if isinstance(trial, dict) and "number" in trial else trial
        return self.do("tell", lambda optimizer: optimizer.tell(named, **told))

    def essence(self, saved: bytes) -> Any:
        """Everything except the version of the format."""
        return {part: value for part, value in json.loads(saved).items() if part != "crashbo"}


class FileTape(Tape):
    """A study in a file, in its own folder, which is the working directory during a step."""

    name = "study"

    def do(self, what: str, act: Callable[[Path], Any]) -> Any:
        """Do something to the file."""

        def on_saved(before: bytes) -> tuple[Any, bytes]:
            with self.unpacked(before) as path:
                return act(path), self.packed(path)

        return self.step(what, on_saved)

    def unpacked(self, saved: bytes) -> "_Unpacked":
        """The file in a temporary folder."""
        return _Unpacked(self.name, saved)

    def packed(self, path: Path) -> bytes:
        """The file's contents."""
        return path.read_bytes()


class _Unpacked:
    def __init__(self, name: str, saved: bytes) -> None:
        self.name, self.saved = name, saved

    def __enter__(self) -> Path:
        # What has a database open may write beside it until the process ends.
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._inside = chdir(self._folder.name)
        self._inside.__enter__()
        path = Path(self._folder.name) / self.name
        if self.saved:
            path.write_bytes(self.saved)
        return path

    def __exit__(self, *error: Any) -> None:
        self._inside.__exit__(*error)
        self._folder.cleanup()


def performed(what: str, act: Callable[[bytes], tuple[Any, bytes]], before: bytes) -> Step:
    """The answer of a step, with its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer, after = act(before)
    warned = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
    return Step(what, plain(answer), warned, after)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """So long and no longer: a change may make a loop that never ends."""

    def ring(*_: Any) -> None:
        raise Late(f"no end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def ended(result: Any) -> Any:
    """Why a run ended, by the name that its revision has for it."""
    return result.ended if hasattr(result, "ended") else result.stopped


def plain(value: Any) -> Any:
    """A value as it comes back from JSON."""
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be compared: it is not plain")


def unlike(old: Any, new: Any, at: str) -> Iterator[str]:
    """Where two plain values differ, as text. Floats are compared exactly; new keys are ignored."""
    if at.endswith(".noise"):  # said of the cost alone it may be a number or a mapping, which mean the same
        old, new = ({"cost": said} if isinstance(said, float) else said for said in (old, new))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in old:
            if key in new:
                yield from unlike(old[key], new[key], f"{at}.{key}")
            else:
                yield f"{at}.{key} is gone, was {_brief(old[key])}"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{at} has {len(new)}, had {len(old)}"
        for i, (a, b) in enumerate(zip(old, new, strict=False)):
            yield from unlike(a, b, f"{at}[{i}]")
    elif json.dumps(old) != json.dumps(new):  # by their digits: NaN is NaN, and 1, 1.0 and True are three things
        yield f"{at} is {_brief(new)}, was {_brief(old)}"


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
