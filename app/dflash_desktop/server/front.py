"""The outermost layer of each request: path repair, access, CORS, limits on the body; then the routes."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException

from dflash_desktop.server.access import Caller, Gate, cors_headers, preflight_headers
from dflash_desktop.server.errors import ApiError, dialect_of
from dflash_desktop.server.events import RequestRefused
from dflash_desktop.server.inspector import client_of
from dflash_desktop.server.options import Limits
from dflash_desktop.server.presence import ClientGone

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)

_DISCARD_BYTES = 256 * 1024 * 1024  # of a too large body, so that the caller gets to read the refusal
_DISCARD_S = 10.0
_REFUSED_S = 0.2  # at least so long between two refusals of one client with one status that are told
_JSON_TYPES = re.compile(r"(application|text)/([\w.\-]+\+)?json\s*(;.*)?", re.IGNORECASE)


class Front:
    """ASGI application around the routes. Every refusal is worded in the dialect of its path."""

    def __init__(
        self, routes: App, gate: Gate, limits: Limits, on_refused: Callable[[RequestRefused], None] | None = None
    ) -> None:
        self._routes = routes
        self._on_refused = on_refused
        self._refused_s: dict[tuple[str, int], float] = {}  # by client and status
        self._gate = gate
        self._limits = limits
        self._n_body_bytes = 0  # being held for all requests
        self._repaired: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_socket = scope["type"] == "websocket"
        if scope["type"] != "http" and not is_socket:
            raise RuntimeError(f"unexpected scope {scope['type']}")
        scope.setdefault("method", "GET")  # what a request for a socket is
        self._repair_path(scope)
        peer = scope["client"][0] if scope.get("client") else None
        caller = Caller.read(scope["headers"], peer)
        request_id = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        scope["app"] = self  # then Starlette's router raises HTTPException instead of answering in plain text
        out = _SocketOut(send, request_id) if is_socket else _Out(send, request_id)
        try:
            if sum(len(name) + len(value) for name, value in scope["headers"]) > self._limits.head_bytes:
                raise ApiError("The request head is too large.", status=431, code="request_too_large")
            self._gate.check_host(caller)
            origin = self._gate.allowed_origin(caller)
            out.origin = origin
            self._gate.check_origin(caller)
            if is_socket:
                await self._routes(scope, receive, out)  # which take the key with the first packet
                return
            if scope["method"] == "OPTIONS":
                await self._preflight(scope, origin, out)
                return
            self._gate.check_key(caller, method=scope["method"], path=scope["path"])
            _check_content_type(scope)
            if scope["method"] not in {"POST", "PUT", "PATCH"}:
                await self._routes(scope, receive, out)
                return
            body = await self._read_body(scope, receive)
            if body is None:
                return  # the caller went away
            try:
                await self._routes(scope, _replay(body, receive), out)
            finally:
                self._n_body_bytes -= len(body)
        except ClientGone:
            return
        except ApiError as error:
            self._tell_refusal(scope, request_id, error)
            await out.refuse(scope, error)
        except HTTPException as error:
            refusal = _no_route(scope, error)
            self._tell_refusal(scope, request_id, refusal)
            await out.refuse(scope, refusal)
        except Exception:  # the HTTP top: anything else is a bug
            log.exception("request %s failed", request_id)
            if out.has_started:
                raise
            await out.refuse(
                scope,
                ApiError(
                    f"The server made a mistake. The log names it under {request_id}.",
                    status=500,
                    kind="server_error",
                    code="engine_error",
                ),
            )

    def _tell_refusal(self, scope: Scope, request_id: str, error: ApiError) -> None:
        """Tell who listens, at most a few times a second: a page that knocks without end fills no list."""
        if self._on_refused is None:
            return
        agents = (value for name, value in scope["headers"] if name.lower() == b"user-agent")
        agent = next(agents, b"").decode("latin-1")[:200]
        path = scope["path"][:200]
        client = client_of(agent, path)
        now_s = time.monotonic()
        status = error.status_in(dialect_of(path))
        if now_s - self._refused_s.get((client, status), 0.0) < _REFUSED_S:
            return
        self._refused_s[client, status] = now_s
        try:
            self._on_refused(RequestRefused(request_id, client, agent, path, status, error.message, time.time()))
        except Exception:  # a listener's bug must not cost the client its answer
            log.exception("a listener failed on a refused request")

    def _repair_path(self, scope: Scope) -> None:
        path = repaired_path(scope["path"])
        if path != scope["path"]:
            if path not in self._repaired and len(self._repaired) < 64:
                self._repaired.add(path)
                log.info("a client asked for %r; answered as %s", scope["path"][:200], path)
            scope["path"] = path
            scope["raw_path"] = path.encode("utf-8", "surrogateescape")

    async def _preflight(self, scope: Scope, origin: str | None, out: _Out) -> None:
        asked = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        headers = [(b"allow", b"GET, POST, DELETE, OPTIONS")]
        if origin is not None:
            headers += preflight_headers(
                origin,
                asked_headers=asked.get(b"access-control-request-headers", ""),
                is_private_asked=asked.get(b"access-control-request-private-network", "").lower() == "true",
            )
        out.origin = None  # the full set is already there
        await out({"type": "http.response.start", "status": 204, "headers": headers})
        await out({"type": "http.response.body", "body": b""})

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body within the limits; None when the caller left first."""
        announced = _content_length(scope)
        room = min(self._limits.body_bytes, self._limits.all_bodies_bytes - self._n_body_bytes)
        if announced is not None and announced > room:
            await self._discard(receive, announced)
            raise self._too_large()
        chunks: list[bytes] = []
        n_bytes = 0
        end_s = time.monotonic() + self._limits.body_s
        try:
            while True:
                async with asyncio.timeout(min(self._limits.body_gap_s, max(0.0, end_s - time.monotonic()))):
                    message = await receive()
                if message["type"] == "http.disconnect":
                    self._n_body_bytes -= n_bytes
                    return None
                chunk = message.get("body", b"")
                n_bytes += len(chunk)
                self._n_body_bytes += len(chunk)
                if n_bytes > self._limits.body_bytes or self._n_body_bytes > self._limits.all_bodies_bytes:
                    self._n_body_bytes -= n_bytes
                    chunks.clear()
                    if message.get("more_body", False):
                        await self._discard(receive, 0)
                    raise self._too_large()
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
        except TimeoutError:
            self._n_body_bytes -= n_bytes
            raise ApiError(
                f"The request body came too slowly: nothing for {self._limits.body_gap_s:g} s, "
                f"or not all of it in {self._limits.body_s:g} s.",
                status=408,
                code="body_timeout",
            ) from None

    async def _discard(self, receive: Receive, announced: int) -> None:
        """Take and drop a refused body, within bounds: answering early would reset the connection."""
        if announced > _DISCARD_BYTES:
            return
        n_bytes = 0
        try:
            async with asyncio.timeout(_DISCARD_S):
                while n_bytes <= _DISCARD_BYTES:
                    message = await receive()
                    n_bytes += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            return

    def _too_large(self) -> ApiError:
        return ApiError(
            f"The request body is larger than {self._limits.body_bytes} bytes.",
            status=413,
            code="request_too_large",
        )


class _Out:
    """The way back to the caller: adds CORS and request-id headers, knows whether the head is sent."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.origin: str | None = None
        self.has_started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            headers = list(message.get("headers", []))
            headers += [(b"x-request-id", self._request_id.encode()), (b"request-id", self._request_id.encode())]
            if self.origin is not None:
                headers += cors_headers(self.origin)
            message = {**message, "headers": headers}
        await self._send(message)

    async def refuse(self, scope: Scope, error: ApiError) -> None:
        if self.has_started:
            return
        dialect = dialect_of(scope["path"])
        body = msgspec.json.encode(error.body(dialect, self._request_id))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if error.status in {408, 413}:
            headers.append((b"connection", b"close"))  # what is left of the body is not read
        if error.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if error.retry_after_s is not None:
            headers.append((b"retry-after", str(error.retry_after_s).encode()))
        await self({"type": "http.response.start", "status": error.status_in(dialect), "headers": headers})
        await self({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


class _SocketOut(_Out):
    """The same for a socket: until it is accepted, a refusal is an ordinary HTTP answer."""

    def __init__(self, send: Send, request_id: str) -> None:
        async def as_rejection(message: Message) -> None:
            kind = message["type"]
            await send({**message, "type": f"websocket.{kind}"} if kind.startswith("http.") else message)

        super().__init__(as_rejection, request_id)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "websocket.close" and not self.has_started:
            raise HTTPException(404)  # the router has no such socket
        if message["type"] == "websocket.accept":
            self.has_started = True
        await super().__call__(message)


def repaired_path(path: str) -> str:
    """Forgive what people paste: `//`, one final `/`, and a `/v1` too many."""
    path = re.sub(r"/{2,}", "/", path)
    if len(path) > 1:
        path = path.removesuffix("/")
    path = path or "/"
    return re.sub(r"^(?:/v1)+(?=/v1(?:/|$)|/api/v[01](?:/|$))", "", path)


def _no_route(scope: Scope, error: HTTPException) -> ApiError:
    if error.status_code == 405:
        return ApiError("This path does not take that method.", status=405, code="method_not_allowed")
    text = f"There is no {scope['method']} {scope['path'][:200]} here."
    return ApiError(text, status=404, code="unknown_endpoint")


def _content_length(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name.lower() == b"content-length":
            return int(value) if value.isdigit() else None
    return None


def _is_from_a_browser(scope: Scope) -> bool:
    """Whether a page may be behind it: browsers name an origin with every POST to another one."""
    return any(name.lower() == b"origin" or name.lower().startswith(b"sec-fetch-") for name, _ in scope["headers"])


def _check_content_type(scope: Scope) -> None:
    """Raises ApiError. `curl -d`, as most manuals have it, calls JSON a form; a page that does so is refused."""
    if scope["method"] not in {"POST", "PUT", "PATCH"}:
        return
    for name, raw in scope["headers"]:
        if name.lower() == b"content-encoding" and raw.strip().lower() not in {b"", b"identity"}:
            raise ApiError(
                "The body must not be compressed: leave Content-Encoding out.",
                status=415,
                code="unsupported_media_type",
            )
        if name.lower() == b"content-type":
            value = raw.decode("latin-1").strip()
            is_curl_s = value == "application/x-www-form-urlencoded" and not _is_from_a_browser(scope)
            if value and not is_curl_s and _JSON_TYPES.fullmatch(value) is None:
                raise ApiError(
                    "The body must be JSON: send Content-Type: application/json.",
                    status=415,
                    code="unsupported_media_type",
                )


def _replay(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the whole body once and then what really comes (the disconnect)."""
    is_given = False

    async def replayed() -> Message:
        nonlocal is_given
        if not is_given:
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replayed
