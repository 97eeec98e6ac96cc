"""Who may talk to a web application of this package, and what browsers may do with its answers.

On this machine alone, by default; elsewhere only with a token. A page of another site can reach a local server in two
ways, and neither works: under a name of its own that it points here (the Host header tells), or by requests from its
own page (the Origin header tells, and for pictures and the like, which come without one, Sec-Fetch-Site).
"""

import hashlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from episodica.errors import InputError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
ELSEWHERE = ("cross-site", "same-site")  # where a browser says that a request begins; a port of its own is elsewhere
ANYONE_MAY_ASK = frozenset({"/health"})
LEAST_TOKEN = 16  # characters: too many to guess, so that guesses need not be counted
TOKEN = re.compile(rf"[!-~]{{{LEAST_TOKEN},}}")
AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?", re.IGNORECASE)


def check_binding(host: str, token: str | None) -> None:
    """Refuse a host that others can reach where there is no token, and a token that can be guessed."""
    if token is None and not is_local(host):
        raise InputError(
            f"--host {host} can be reached from other machines, so it needs a token: add --token with a secret of "
            f"{LEAST_TOKEN} characters or more, or leave --host out to serve this machine alone"
        )
    if token is not None and not TOKEN.fullmatch(token):
        raise InputError(
            f"--token needs {LEAST_TOKEN} characters or more, without spaces or accents; "
            'python -c "import secrets; print(secrets.token_urlsafe())" makes one'
        )


def is_local(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass
class Guard:
    """An ASGI application around another one: `Guard(app, host)`, or with a token where `host` is not local."""

    app: App
    host: str = "localhost"
    token: str | None = None
    _names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        check_binding(self.host, self.token)
        self._names = frozenset(name.lower() for name in ("localhost", self.host, socket.gethostname()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            raise NotImplementedError(f"no {scope['type']} here")
        headers = _Headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            return await _answer(_hardened(send), *refusal)
        if self.token is not None and "token" in dict(_query(scope)) and scope["method"] in ("GET", "HEAD"):
            return await _answer(_hardened(send), HTTPStatus.SEE_OTHER, "", self._welcome(scope))
        return await self.app(scope, receive, _hardened(send))

    def _refusal(self, scope: Scope, headers: "_Headers") -> tuple[HTTPStatus, str] | None:
        if headers.only("content-length") is not None and headers.only("transfer-encoding") is not None:
            return HTTPStatus.BAD_REQUEST, "A request has a Content-Length or a Transfer-Encoding, never both."
        host, origin = headers.only("host"), headers.only("origin")
        if host is None or not self._is_ours(host):
            return HTTPStatus.MISDIRECTED_REQUEST, "This server does not answer to that name; use its address."
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return HTTPStatus.FORBIDDEN, "Pages of other sites may not use this server."
        if headers.only("sec-fetch-site") in ELSEWHERE and not _is_visit(scope, headers):
            return HTTPStatus.FORBIDDEN, "Pages of other sites may not use this server."
        if not self._is_allowed(scope, headers):
            return HTTPStatus.UNAUTHORIZED, "This server needs its token: add ?token=... to the address."
        return None

    def _is_ours(self, host: str) -> bool:
        """A number cannot be pointed elsewhere, so only names can deceive a browser."""
        found = AUTHORITY.fullmatch(host)
        if found is None:
            return False
        name = found[1] or found[2]
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name.lower() in self._names
        return True

    def _is_allowed(self, scope: Scope, headers: "_Headers") -> bool:
        if self.token is None or scope["path"] in ANYONE_MAY_ASK:
            return True
        scheme, _, bearer = (headers.only("authorization") or "").partition(" ")
        shown = [bearer.strip() if scheme.lower() == "bearer" else "", dict(_query(scope)).get("token", "")]
        cookie = _cookie(headers.only("cookie"), _cookie_name(scope))
        return any([*(_same(text, self.token) for text in shown), _same(cookie, _digest(self.token))])

    def _welcome(self, scope: Scope) -> dict[str, str]:
        """Keep the token in a cookie and out of the address, where histories and screenshots would show it."""
        assert self.token is not None
        rest = urlencode([(key, value) for key, value in _query(scope) if key != "token"])
        place = "/" + quote(scope["path"].lstrip("/\\")) + ("?" + rest if rest else "")
        cookie = f"{_cookie_name(scope)}={_digest(self.token)}; Path=/; HttpOnly; SameSite=Strict"
        return {"location": place, "set-cookie": cookie}


class _Headers:
    def __init__(self, scope: Scope) -> None:
        self._pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]

    def only(self, name: str) -> str | None:
        """The header's value; where it was sent twice the two are joined, and match nothing."""
        values = [value for key, value in self._pairs if key == name]
        return ", ".join(values) if values else None


def _is_visit(scope: Scope, headers: _Headers) -> bool:
    """Somebody follows a link to the page itself: what costs more is not reached by a link from elsewhere."""
    return scope["path"] == "/" and headers.only("sec-fetch-dest") == "document"


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _cookie_name(scope: Scope) -> str:
    """Browsers share cookies between the ports of a host, servers do not share their tokens."""
    return f"episodica-{(scope.get('server') or ('', 0))[1]}"


def _cookie(header: str | None, name: str) -> str:
    try:
        found = SimpleCookie(header or "").get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _digest(token: str) -> str:
    return hashlib.sha256(b"episodica cookie " + token.encode()).hexdigest()


def _same(one: str, other: str) -> bool:
    """In a time that tells neither where they differ nor how long the secret is."""
    return hmac.compare_digest(hashlib.sha256(one.encode()).digest(), hashlib.sha256(other.encode()).digest())


def _hardened(send: Send) -> Send:
    async def harden(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message.get("headers", ())}
            extra = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given]
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        await send(message)

    return harden


async def _answer(send: Send, status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> None:
    pairs = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(text.encode())), **(headers or {})}
    if status == HTTPStatus.BAD_REQUEST:  # where the next request begins is unknown
        pairs["connection"] = "close"
    if status == HTTPStatus.UNAUTHORIZED:
        pairs["www-authenticate"] = "Bearer"
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(k.encode(), v.encode()) for k, v in pairs.items()],
        }
    )
    await send({"type": "http.response.body", "body": text.encode()})
