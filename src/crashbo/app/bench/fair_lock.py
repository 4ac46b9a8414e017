"""A lock that serves its waiters in the order in which they came.

Imports nothing of crashbo. With a plain lock, one thread that writes many trials would keep out all others.
"""

import threading
from collections import deque


class FairLock:
    """A lock that is first come, first served."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._busy = False

    def __enter__(self) -> None:
        with self._guard:
            if not self._busy:
                self._busy = True
                return
            turn = threading.Event()
            self._waiting.append(turn)
        turn.wait()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()  # it stays busy: the lock is handed over
            else:
                self._busy = False
