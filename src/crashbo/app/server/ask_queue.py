"""Requests that wait for a trial. All that wait at the same time are served from one fit, each as soon as it can be.

May import every other layer. One thread serves them; waiting requests block no thread.
"""

import threading
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

from crashbo.app.bench.bench import Asked, Bench
from crashbo.app.bench.checks import Conflict
from crashbo.integrations.optuna.proposer import CROWD, MOST
from crashbo.optimizer.records import Trial

Waiting = tuple[Asked, "Future[Trial]"]


class AskQueue:
    """Serves requests for trials, in batches."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._waiting: list[Waiting] = []
        self._bell, self._stopped = threading.Condition(), False
        self._thread = threading.Thread(target=self._serve, name="crashbo-asks", daemon=True)
        self.busy = False

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; requests that still wait get an error, as for workers that are gone."""
        with self._bell:
            self._stopped = True
            self._bell.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def ask(self, asked: Asked) -> "Future[Trial]":
        """The next trial, as a future."""
        self._bench.check_asked(asked)  # now, so that one invalid request does not fail a whole batch
        future: Future[Trial] = Future()
        with self._bell:
            if self._stopped:
                raise BrokenProcessPool("the server is being stopped")
            self._waiting.append((asked, future))
            self._bell.notify()
        return future

    def _serve(self) -> None:
        served = 0  # from one fit
        while (waiting := self._next()) is not None:
            onward = 0 < served <= MOST - len(waiting)
            self._answer(waiting, onward)
            served = (served if onward else 0) + len(waiting)
            if served < CROWD or not self._waiting:  # few who ask get trials that know of all that was told
                served = 0

    def _answer(self, waiting: list[Waiting], onward: bool = False) -> None:
        left = dict(enumerate(waiting))
        try:
            for i, trial in self._bench.ask_each([asked for asked, _ in waiting], onward=onward):
                left.pop(i)[1].set_result(trial)
        except Conflict as error:
            if len(left) == 1:
                next(iter(left.values()))[1].set_exception(error)
            for one in left.values() if len(left) > 1 else ():  # it may be about one of them alone
                self._answer([one])
        except Exception as error:
            for _, future in left.values():
                future.set_exception(error)

    def _next(self) -> list[Waiting] | None:
        """Wait for requests; None when the queue is stopped."""
        with self._bell:
            self.busy = False
            self._bell.wait_for(lambda: self._waiting or self._stopped)
            served, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            if self._stopped:
                for _, future in [*served, *self._waiting]:
                    if future.set_running_or_notify_cancel():
                        future.set_exception(BrokenProcessPool("the server is being stopped"))
                return None
            self.busy = True
            return [pair for pair in served if pair[1].set_running_or_notify_cancel()]  # some may have been cancelled
