"""Access control, and the headers of every response. May import every other layer.

Without a token only this machine is served. A foreign web page that makes a browser send requests here, by DNS
rebinding or in the background, is rejected because of its Host or Origin header.
"""

import hashlib
import hmac
import ipaddress
import json
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 64 * 1024
COOKIE = "crashbo"
SESSION = "/api/session"
_OPEN = ("/api/openapi.json", SESSION)
_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Gate:
    """Checks every request before it reaches a route."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer with 4xx and one sentence."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        meter = _Meter(receive)
        await self._app(scope, meter, _dressed(send))

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
            if not length.isascii() or not length.isdecimal() or int(length[:20]) > LARGEST_BODY:
                return 413, f"body must have at most {LARGEST_BODY} bytes. Send less."
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


class TooLarge(Exception):
    """The body exceeds its limit."""


class _Meter:
    """Counts the bytes of a body: Content-Length may be wrong or missing."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._seen = receive, 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > LARGEST_BODY:
            raise TooLarge
        return message


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


def _dressed(send: Send) -> Send:
    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message["headers"],
                *((name.encode(), value.encode()) for name, value in _HEADERS.items()),
            ]
        await send(message)

    return dressed


async def _answer(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
