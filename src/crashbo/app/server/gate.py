"""Access control, and the headers of every response. May import every other layer.

Without a token only this machine is served. A foreign web page that makes a browser send requests here, by DNS
rebinding or in the background, is rejected because of its Host or Origin header.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import json
import logging
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from fastapi.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crashbo.integrations.optuna.troubles import trouble_of

LARGEST_BODY = 64 * 1024
LARGEST_TABLE = 4 * 1024 * 1024
PATIENCE = 20.0  # seconds that a body may take to arrive
_DELAY, _MOST = 0.5, 64  # seconds that a wrong token costs, and how many may wait for their answer
COOKIE = "crashbo"
SESSION = "/api/session"
_OPEN = ("/api/openapi.json", SESSION)
_TABLES = "/api/import"
_log = logging.getLogger("crashbo")
_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def _headers(films: str) -> dict[str, str]:
    """The headers of every response; `films` is the one other server whose pictures the page may show."""
    policy = _HEADERS["content-security-policy"]
    more = policy.replace("img-src 'self' data:", f"img-src 'self' data: {films}; media-src 'self' {films}")
    return {**_HEADERS, "content-security-policy": more if films else policy}


class Gate:
    """Checks every request before it reaches a route."""

    def __init__(self, app: ASGIApp, token: str | None, slowly: "Brake", films: str = "") -> None:
        self._app, self._token, self._slowly = app, token, slowly
        self._headers = _headers(films)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer with 4xx and one sentence."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        dressed = _Dressed(send, self._headers)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            if refusal[0] == 401 and (headers.keys() & {"authorization", "cookie"}):
                refusal = refusal if await self._slowly.admits() else _GUESSED
            await _answer(dressed, *refusal)
            return
        try:
            await self._app(scope, _Meter(receive, _limit(scope["path"])), dressed)
        except Exception as error:  # what no route foresaw: a store in trouble, or a mistake of ours
            if dressed.started:
                raise
            await _answer(dressed, *_explained(error))

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if self._token is None and not is_loopback(host_name(host)):
            return 403, "Host must be this machine's own where there is no token. Use http://127.0.0.1."
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return 403, "Origin must be this server's own page. Call it from there, or without a browser."
        path = scope["path"]
        if self._token is not None and path.startswith("/api/") and path not in _OPEN and not self.knows(headers):
            return 401, "token must be that of this server. Send it as: Authorization: Bearer TOKEN"
        if scope["method"] == "POST":  # no other method has a body
            length = headers.get("content-length", "0")
            if not length.isascii() or not length.isdecimal() or int(length[:20]) > _limit(path):
                return 413, f"body must have at most {_limit(path)} bytes. Send less."
            has_body = length.strip("0") or "transfer-encoding" in headers
            if has_body and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return 415, "body must be JSON. Send it with: Content-Type: application/json"
        return None

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries the token, or the cookie derived from it."""
        assert self._token is not None
        kind, _, value = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same(value.strip(), self._token):
            return True
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return morsel is not None and same(morsel.value, cookie_of(self._token))


class TooLarge(HTTPException):
    """The body exceeds its limit."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"body must have at most {most} bytes. Send less.")


class TooSlow(HTTPException):
    """The body did not arrive in time."""

    def __init__(self) -> None:
        super().__init__(408, f"body must arrive within {PATIENCE:g} seconds. Send it again.")


class TooMany(HTTPException):
    """Too many wrong tokens at once."""

    def __init__(self) -> None:
        super().__init__(*_GUESSED, headers={"retry-after": "5"})


class Brake:
    """Lets those wait who send a wrong token: one after the other, so that guessing takes its time."""

    def __init__(self) -> None:
        self._turn, self._waiting = asyncio.Lock(), 0

    async def admits(self) -> bool:
        """Wait for one's turn; False at once if too many are waiting."""
        if self._waiting >= _MOST:
            return False
        self._waiting += 1
        try:
            async with self._turn:
                await asyncio.sleep(_DELAY)
        finally:
            self._waiting -= 1
        return True

    async def wait(self) -> None:
        """Wait for one's turn.

        Raises:
            TooMany: if too many are waiting.
        """
        if not await self.admits():
            raise TooMany()


class _Meter:
    """Counts the bytes of a body, since Content-Length may be wrong or missing, and the time that it takes."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most, self._seen = receive, most, 0
        self._whole = False
        self._until = asyncio.get_running_loop().time() + PATIENCE

    async def __call__(self) -> Message:
        if self._whole:  # from here on it only tells that the client is gone
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow() from None
        self._seen += len(message.get("body", b""))
        if self._seen > self._most:
            raise TooLarge(self._most)
        self._whole = not message.get("more_body", False)
        return message


def _limit(path: str) -> int:
    return LARGEST_TABLE if path == _TABLES else LARGEST_BODY


_GUESSED = 429, "token must not be guessed by so many at once. Wait, then send it again."
_STATUS = {"full": 507, "locked": 503, "read-only": 403, "away": 503}


def _explained(error: Exception) -> tuple[int, str]:
    """Status and sentence for an error that no route foresaw."""
    trouble = trouble_of(error)
    if trouble is not None:
        _log.warning("%s (%s)", trouble.words, error)
        return _STATUS[trouble.kind], trouble.words
    _log.error("a request failed", exc_info=error)
    return 500, "request must be one that the server can handle; it failed, and its log says why. Report it, please."


def same(one: str, other: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def cookie_of(token: str) -> str:
    """The cookie that a browser stores instead of the token."""
    return hmac.new(token.encode(), b"crashbo session", hashlib.sha256).hexdigest()


def host_name(host: str) -> str:
    """A Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Dressed:
    """Sends a response with our headers, and knows whether it has begun."""

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        self._send, self.started, self._headers = send, False, headers

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            ours = ((name.encode(), value.encode()) for name, value in self._headers.items())
            message["headers"] = [*message["headers"], *ours]
        await self._send(message)


async def _answer(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status in (429, 503):
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
