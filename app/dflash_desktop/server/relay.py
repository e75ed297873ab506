"""Passes a request on to the upstream server, and its answer back byte for byte; tells what goes wrong on the way."""

from __future__ import annotations

import logging
import re
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import httpx2
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.server.errors import ApiError, dialect_of
from dflash_desktop.server.presence import ClientGone, while_connected
from dflash_desktop.server.stream import EVENT_STREAM, ClientStream, Send, sse
from dflash_desktop.server.upstream import Headers, Upstream, returned_headers

log = logging.getLogger(__name__)

_MOST_ERROR_BYTES = 1 << 20
_MOST_WHOLE_BYTES = 256 << 20
_STREAMS = (EVENT_STREAM, "application/x-ndjson")
_SECONDS = re.compile(r"[0-9]{1,9}")  # of a Retry-After


class Relay:
    """One HTTP client for all requests. Lives on the server's event loop; `aclose` ends it there."""

    def __init__(self, upstream: Upstream, *, may_pass_key: bool, send_gap_s: float) -> None:
        self.upstream = upstream
        self._may_pass_key = may_pass_key
        self._send_gap_s = send_gap_s
        self._client: httpx2.AsyncClient | None = None

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            upstream = self.upstream
            times = httpx2.Timeout(upstream.silence_s, connect=upstream.connect_s, pool=upstream.connect_s)
            self._client = httpx2.AsyncClient(
                timeout=times,
                follow_redirects=False,  # a redirect could lead anywhere, with the key
                trust_env=not upstream.is_loopback,  # the system's proxy, but not to this machine itself
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=16),
            )
            self._client.headers.clear()  # only what the client of ours said
            # One client's cookies must not go out with another one's request.
            self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return self._client

    async def aclose(self) -> None:
        """Close every connection to the upstream."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def pass_on(self, request: Request, body: bytes, told: Headers) -> Response:
        """The upstream's answer to `body`, with the headers `told` added.

        Raise ApiError when the upstream cannot be reached or answers with no answer, ClientGone when nobody waits.
        """
        client = self._open()
        url = self.upstream.url(request.scope["path"], request.url.query)
        try:
            asked = client.build_request(
                request.method,
                url,
                headers=self.upstream.headers(
                    request.headers.raw,
                    may_pass_key=self._may_pass_key,
                    takes_x_api_key=dialect_of(request.scope["path"]) == "anthropic",
                ),
                content=body if request.method in ("POST", "PUT", "PATCH") else None,
            )
            answer = await while_connected(request.receive, client.send(asked, stream=True))
        except httpx2.InvalidURL as error:
            raise ApiError("This path is not passed on.", status=404, code="unknown_endpoint") from error
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        is_handed_on = False
        try:
            if answer.status_code >= 300:
                return await self._refusal(request, answer, told)
            headers = [*returned_headers(answer.headers.raw), *told]
            if answer.headers.get("content-type", "").lower().startswith(_STREAMS):
                is_handed_on = True
                return _PassedOn(request, answer, headers, self, self._send_gap_s)
            content = await while_connected(request.receive, self._whole(answer, _MOST_WHOLE_BYTES))
            return _response(answer.status_code, headers, content)
        finally:
            if not is_handed_on:
                await answer.aclose()

    async def _whole(self, answer: httpx2.Response, most_bytes: int) -> bytes:
        """The body as it came, still packed."""
        chunks: list[bytes] = []
        n_bytes = 0
        try:
            async for chunk in answer.aiter_raw():
                n_bytes += len(chunk)
                if n_bytes > most_bytes:
                    raise _bad_gateway(f"The upstream server's answer is larger than {most_bytes} bytes.")
                chunks.append(chunk)
        except httpx2.TransportError as error:
            raise self.broken(error) from error
        return b"".join(chunks)

    async def _refusal(self, request: Request, answer: httpx2.Response, told: Headers) -> Response:
        """An error in the words of these APIs goes through as it is; everything else is put into them."""
        status = answer.status_code
        if status > 599:
            raise _bad_gateway(f"The upstream server answered with a status that HTTP does not have ({status}).")
        if status < 400:
            raise _bad_gateway(
                f"The upstream server sends requests elsewhere (HTTP {status}), which is not followed. "
                "Start this one with --upstream and the final address."
            )
        if status in (401, 403) and self.upstream.access_token:
            raise _bad_gateway(
                f"The upstream server refuses the key of this proxy (HTTP {status}). Put a valid one into the file of "
                "--upstream-key-file and start it again.",
                code="upstream_key_refused",
            )
        content = await while_connected(request.receive, self._whole(answer, _MOST_ERROR_BYTES))
        packed = answer.headers.get("content-encoding", "identity") != "identity"
        if packed or _is_error_envelope(content):
            return _response(status, [*returned_headers(answer.headers.raw), *told], content)
        words = "Is the address of --upstream right?" if status == 404 else "Its log says more."
        retry = answer.headers.get("retry-after", "")
        raise ApiError(
            f"The upstream server answered HTTP {status} without saying why. {words}",
            status=status,
            kind="server_error" if status >= 500 else "invalid_request_error",
            code="upstream_error",
            retry_after_s=int(retry) if _SECONDS.fullmatch(retry) else None,
        )

    def _unreachable(self, error: Exception) -> ApiError:
        upstream = self.upstream
        where = f"{upstream.host}:{upstream.port}"
        log.info("the upstream %s failed: %s: %s", where, type(error).__name__, error)
        if isinstance(error, httpx2.ConnectTimeout | httpx2.ConnectError | httpx2.PoolTimeout):
            why = "does not answer" if isinstance(error, httpx2.TimeoutException) else "cannot be reached"
            return _bad_gateway(
                f"The upstream server {where} {why}. Start it, or start this proxy with the right --upstream.",
                code="upstream_unreachable",
                status=504 if isinstance(error, httpx2.TimeoutException) else 502,
            )
        return self.broken(error)

    def broken(self, error: Exception) -> ApiError:
        """What became of an answer that does not come, or not to its end."""
        where = f"{self.upstream.host}:{self.upstream.port}"
        if isinstance(error, httpx2.TimeoutException):
            return _bad_gateway(
                f"The upstream server {where} said nothing for {self.upstream.silence_s:g} s. It may be busy: try "
                "again, or give it longer with --upstream-timeout.",
                code="upstream_timeout",
                status=504,
            )
        return _bad_gateway(
            f"The upstream server {where} broke off ({type(error).__name__}). Its log says why; then try again.",
            code="upstream_broke_off",
        )


class _PassedOn(ClientStream):
    """A stream on its way through: each piece as it comes. When the client leaves, the upstream is left too."""

    def __init__(
        self, request: Request, answer: httpx2.Response, headers: Headers, relay: Relay, send_gap_s: float
    ) -> None:
        super().__init__(answer, send_gap_s, status=answer.status_code)
        self.raw_headers = headers
        self._answer = answer
        self._relay = relay
        self._request = request

    async def _write_pieces(self, send: Send) -> None:
        try:
            async for chunk in self._answer.aiter_raw():
                await self._send(send, chunk)
        except httpx2.TransportError as error:
            if self._answer.headers.get("content-encoding", "identity") != "identity":
                raise ClientGone from error  # words of ours would spoil what is packed: the cut itself must tell
            body, event = _told_within(self._relay.broken(error), self._request)
            is_sse = self._answer.headers["content-type"].lower().startswith(EVENT_STREAM)
            await self._send(send, b"\n\n" + sse(body, event=event) if is_sse else msgspec.json.encode(body) + b"\n")


def _told_within(error: ApiError, request: Request) -> tuple[dict[str, Any], str | None]:
    """An error as an event of an open stream, and the event's name, where that dialect names them."""
    path = request.scope["path"]
    dialect = dialect_of(path)
    body = error.body(dialect, request.state.request_id)
    if dialect == "anthropic":
        return body, "error"
    if path.removeprefix("/v1") == "/responses":
        return {"type": "error", "code": error.code, "message": error.message, "param": None, **body}, "error"
    return body, None


def _response(status: int, headers: Headers, content: bytes) -> Response:
    response = Response(content, status_code=status)
    response.raw_headers = [*headers, (b"content-length", str(len(content)).encode())]
    return response


def _is_error_envelope(content: bytes) -> bool:
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(body, dict) and bool(body.get("error"))


def _bad_gateway(message: str, *, code: str = "upstream_error", status: int = 502) -> ApiError:
    return ApiError(message, status=status, kind="server_error", code=code)
