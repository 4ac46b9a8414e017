"""The address to listen on, and the server loop. May import every other layer."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import anyio
import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from crashbo.app.server.api import create_app
from crashbo.app.server.gate import PATIENCE, is_loopback
from crashbo.app.server.live import Live

_SHORTEST = 8
_TURN = 0.0005  # seconds: threads release the interpreter at every access to the store, and must get it back quickly


def token_of(given: str | None) -> str | None:
    """The token, from a flag or the environment."""
    return given or os.environ.get("CRASHBO_TOKEN") or None


def check_address(host: str, token: str | None) -> None:
    """Refuse to listen for other machines without a token."""
    if token is not None and (len(token) < _SHORTEST or not token.isascii() or not token.isprintable()):
        raise ValueError(f"token must have at least {_SHORTEST} printable ASCII characters. Choose a longer one.")
    if token is None and not is_loopback(host):
        raise ValueError(
            f"token must be given to listen on {host}, which other machines can reach. Set CRASHBO_TOKEN, or stay on "
            "127.0.0.1."
        )


def run(
    store: str,
    name: str | None,
    host: str,
    port: int,
    token: str | None,
    *,
    announce: bool = True,
    films: str | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until interrupted; `ready` gets the address once it can be opened."""
    check_address(host, token)
    sys.setswitchinterval(_TURN)
    live = Live(store, name, films)
    app = create_app(live, token)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
        server_header=False,
        http=Impatient,
    )
    with _listening(host, port) as listener:
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        if announce:
            print(f"crashbo: study {live.bench.ledger.name!r} at {address}", flush=True)
            if token is not None:
                print("Open it as  http://ADDRESS:PORT/#token=TOKEN", flush=True)
        ready(address)
        try:
            _Server(config, live).run(sockets=[listener])
        finally:
            live.stop()  # however it ended


class Impatient(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """Closes connections on which a request has begun, or was to begin, but does not come: uvicorn would wait."""

    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._set_alarm()

    def data_received(self, data: bytes) -> None:
        """Wait on, unless the head of a request is complete."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_alarm()
        elif self._alarm is None:
            self._set_alarm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for."""
        self._stop_alarm()
        super().connection_lost(exc)

    def _set_alarm(self) -> None:
        self._alarm = self.loop.call_later(PATIENCE, self._give_up)

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _give_up(self) -> None:
        self._alarm = None
        if self.transport is not None and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()


class _Server(uvicorn.Server):
    """A server that stops thinking before it waits for its last answers: none then waits for a fit, or an event."""

    def __init__(self, config: uvicorn.Config, live: Live) -> None:
        super().__init__(config)
        self._live = live

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order."""
        await anyio.to_thread.run_sync(self._live.stop)
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    if sys.platform != "win32":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # who connects as soon as the address is printed waits for the loop, and is not refused
    except (OSError, OverflowError) as error:
        listener.close()
        raise ValueError(
            f"--host and --port must be free to listen on; got {host}:{port} ({error}). Take others."
        ) from None
    return listener
