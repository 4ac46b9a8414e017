"""The address to listen on, and the server loop. May import every other layer."""

import os
import socket
import sys

import anyio
import uvicorn

from crashbo.app.server.api import create_app
from crashbo.app.server.gate import is_loopback
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


def run(store: str, name: str | None, host: str, port: int, token: str | None, *, announce: bool = True) -> None:
    """Serve until interrupted."""
    check_address(host, token)
    sys.setswitchinterval(_TURN)
    live = Live(store, name)
    app = create_app(live, token)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    with _listening(host, port) as listener:
        if announce:
            shown = f"[{host}]" if ":" in host else host
            print(
                f"crashbo: study {live.bench.ledger.name!r} at http://{shown}:{listener.getsockname()[1]}", flush=True
            )
            if token is not None:
                print("Open it as  http://ADDRESS:PORT/#token=TOKEN", flush=True)
        try:
            _Server(config, live).run(sockets=[listener])
        finally:
            live.stop()  # however it ended


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
