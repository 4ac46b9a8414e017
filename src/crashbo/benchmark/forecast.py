"""How long the runs that are left will take: by those that are finished, and by a guess before there are any.

May import the public API, `problems` and `campaigns`.
"""

from collections.abc import Iterable

from crashbo.benchmark import methods
from crashbo.benchmark.runs import Run, Spec

_BEGINNING = 0.2  # seconds to make a problem, judged; one whose optimum is not on file takes longer
_SLOWER = 8.0  # parameters that double the time of a suggestion, judged


class Forecast:
    """Learns from every run how long its method takes."""

    def __init__(self, finished: Iterable[Run] = ()) -> None:
        self._taken: dict[str, list[float]] = {}
        for run in finished:
            self.add(run)

    def add(self, run: Run) -> None:
        """Take a finished run into account."""
        if run.error is None:
            self._taken.setdefault(run.spec.method, []).append(run.seconds / _size(run.spec))

    def seconds(self, spec: Spec) -> float:
        """Of one run."""
        paces = self._taken.get(spec.method)
        pace = sum(paces) / len(paces) if paces else methods.get(spec.method).pace
        return _BEGINNING + pace * _size(spec)

    def left(self, specs: Iterable[Spec], workers: int) -> float:
        """Seconds until all of them are done."""
        return sum(map(self.seconds, specs)) / workers


def _size(spec: Spec) -> float:
    return spec.trials * (1.0 + spec.case.dimension / _SLOWER)
