"""The compression proxy: shortens long chats for another server, in OpenAI's or Anthropic's words, and passes all on.

Nothing is loaded here but the scorer, and that only while it reads. The upstream's tokenizer is unknown: what is kept
is said in characters, what is counted in the scorer's tokens.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from dflash_desktop.base.errors import BadInput
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.server.bodies import first_words, meta_of, read_object
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.events import RequestForwarded, ServerEvent, ServerSubscriber
from dflash_desktop.server.front import App
from dflash_desktop.server.http import HttpServer
from dflash_desktop.server.inspector import Inspector, Meta
from dflash_desktop.server.line import Line
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.pflash import PflashFacts, pflash_ask, pflash_settings
from dflash_desktop.server.ports import EngineLane
from dflash_desktop.server.presence import ClientGone, while_connected
from dflash_desktop.server.relay import Relay
from dflash_desktop.server.shortenable import MIXED, PATHS, Readable, put_back, readable
from dflash_desktop.server.shortening import Shortener, compress_job, may_be_shortened
from dflash_desktop.server.small import app_version
from dflash_desktop.server.stream import json_response
from dflash_desktop.server.upstream import Headers, Upstream, refuse_itself

_KNOWN = re.compile(
    r"/(chat/completions|completions|models|embeddings|responses|messages|moderations|images|audio|rerank)(/.*)?"
)
_NOT_PRINTED = re.compile(r"[^ -~]+")  # in a header
_METHODS = ["GET", "POST", "DELETE"]


class ProxyServer:
    """Started and stopped as the ordinary server, with the same rules about hosts, pages and keys."""

    def __init__(self, engine: EngineLane, upstream: Upstream, subscriber: ServerSubscriber) -> None:
        self._engine = engine
        self._upstream = upstream
        self._subscriber = subscriber
        self._options = ServerOptions()
        self._relay: Relay | None = None
        self._http = HttpServer(self._make_routes, subscriber, on_stop=self._close_relay)

    @property
    def port(self) -> int:
        return self._http.port

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._http.addresses

    def start(self, options: ServerOptions) -> bool:
        """Open the sockets; False after a ServerFailed event. Raise BadInput when the upstream is this server."""
        refuse_itself(self._upstream, options.port)
        # A listing too is asked with our key, so it needs the client's.
        self._options = replace(options, needs_key_here=True)
        if not self._http.start(self._options):
            return False
        if options.port == 0:
            try:
                refuse_itself(self._upstream, self.port)
            except BadInput:
                self.stop()
                raise
        return True

    def stop(self) -> None:
        """End what runs, close everything; returns when it is done."""
        self._http.stop()

    def _make_routes(self) -> App:
        has_own_key = bool(self._options.access_token)
        limits = self._options.limits
        self._relay = Relay(self._upstream, may_pass_key=not has_own_key, send_gap_s=limits.send_gap_s)
        return _Routes(self._engine, self._relay, self._options, self._subscriber).router()

    async def _close_relay(self) -> None:
        if self._relay is not None:
            await self._relay.aclose()


class _Routes:
    def __init__(self, engine: EngineLane, relay: Relay, options: ServerOptions, subscriber: ServerSubscriber) -> None:
        self._engine = engine
        self._relay = relay
        self._options = options
        self._tell = subscriber
        self._inspector = Inspector(subscriber)
        self._line = Line(options.limits.n_waiting)
        self._n_by_status: dict[int, int] = {}

    def router(self) -> Router:
        return Router(
            [
                Route("/", self.root, methods=["GET"]),
                Route("/health", self.health, methods=["GET"]),
                Route("/props", self.props, methods=["GET"]),
                Route("/metrics", self.metrics, methods=["GET"]),
                *(Route(path, self.chat, methods=["POST"]) for path in PATHS),
                Route("/{path:path}", self.other, methods=_METHODS),
            ],
            redirect_slashes=False,
        )

    async def root(self, request: Request) -> Response:
        del request
        return PlainTextResponse(f"DFlash Desktop {app_version()}, a proxy\nHealth: /health\n")

    async def health(self, request: Request) -> Response:
        """Whether the proxy runs; the upstream is not asked."""
        del request
        return json_response({"status": "ok"})

    async def props(self, request: Request) -> Response:
        del request
        settings = pflash_settings(self._options.pflash)
        return json_response({"upstream": self._relay.upstream.base, "pflash": settings})

    async def metrics(self, request: Request) -> Response:
        del request
        lines = ["# TYPE dflash_forwarded_total counter"]
        lines += [f'dflash_forwarded_total{{status="{key}"}} {n}' for key, n in sorted(self._n_by_status.items())]
        lines += self._inspector.totals.pflash_rows()
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    async def other(self, request: Request) -> Response:
        """Everything else of these APIs, untouched."""
        path = request.url.path
        if not path.startswith("/v1/") and _KNOWN.fullmatch(path) is None:
            raise ApiError(f"There is no {path[:200]} here; /v1/... is passed on.", status=404, code="unknown_endpoint")
        meta = meta_of(request)
        return await self._forward(request, meta, await request.body(), None)

    async def chat(self, request: Request) -> Response:
        """A conversation in one of its dialects, shortened where that is wanted and possible."""
        sent = await request.body()
        try:
            body = await read_object(request)
        except ApiError as error:  # the upstream's to refuse
            is_off = self._options.pflash.mode == "off"
            facts = None if is_off else PflashFacts(0, 0, why_not=f"It could not be read here. {error.message}")
            return await self._forward(request, meta_of(request), sent, facts)
        ask = pflash_ask(body.get("pflash"))
        options = ask.over(self._options.pflash) if ask is not None else self._options.pflash
        has_member = "pflash" in body
        body.pop("pflash", None)
        read = readable(request.url.path, body)
        meta = meta_of(request, first_words(list(read.request.messages)))
        facts = None
        shorter = None
        if options.mode != "off":
            self._relay.upstream.check_loop(request.headers.raw)
            shorter, facts = await while_connected(request.receive, self._shortened(body, read, meta, options))
        is_changed = has_member or shorter is not None
        return await self._forward(request, meta, msgspec.json.encode(shorter or body) if is_changed else sent, facts)

    async def _shortened(
        self, body: Mapping[str, Any], read: Readable, meta: Meta, options: PflashOptions
    ) -> tuple[dict[str, Any] | None, PflashFacts]:
        """The body to send on, None: as it is."""
        why_not = read.why_not
        if not why_not and read.is_last_mixed and may_be_shortened(read.request, options):
            why_not = MIXED
        if why_not:
            return None, PflashFacts(0, 0, why_not=why_not)
        options = replace(options, chosen=(*options.chosen, *((i, 1.0) for i in read.mixed)))
        shortener = Shortener(self._engine, options, self._options.limits)
        turn = self._line.enter(meta.line_key)
        try:
            while not await turn.wait(3600.0):
                pass
            beats = shortener.beats(
                lambda hear: compress_job(read.request, options, hear, counts_by_scorer=True), _unwatched
            )
            async with contextlib.aclosing(beats):
                async for _ in beats:  # the answer is the upstream's, byte for byte: nothing is said before it
                    pass
        finally:
            turn.leave()
        found = shortener.compression
        facts = shortener.facts(0, 0)
        if found is None:
            return None, facts
        n_left = facts.n_kept_tokens + facts.n_recalled_tokens
        facts = replace(facts, n_before_tokens=facts.n_droppable_tokens, n_after_tokens=n_left)
        return put_back(body, read, found), facts

    async def _forward(self, request: Request, meta: Meta, body: bytes, facts: PflashFacts | None) -> Response:
        self._relay.upstream.check_loop(request.headers.raw)
        self._inspector.seen(meta)
        if facts is not None:
            self._inspector.totals.add_pflash(facts)
        started_s = time.monotonic()
        status, message = 499, ""
        try:
            response = await self._relay.pass_on(request, body, _told(facts))
            status = response.status_code
            return response
        except ClientGone:
            return Response(status_code=499)  # nobody reads it
        except ApiError as error:
            status, message = error.status, error.message
            raise
        finally:
            self._n_by_status[status] = self._n_by_status.get(status, 0) + 1
            self._say(
                RequestForwarded(
                    meta.request_id, meta.client, meta.path, status, message, facts, time.monotonic() - started_s
                )
            )

    def _say(self, event: ServerEvent) -> None:
        with contextlib.suppress(Exception):  # a listener's bug must not cost the client its answer
            self._tell(event)


def _unwatched(share: float) -> None:
    del share


def _told(facts: PflashFacts | None) -> Headers:
    """What was done, in headers: the body is the upstream's."""
    if facts is None:
        return []
    if not facts.is_shortened:
        reason = _NOT_PRINTED.sub(" ", facts.why_not[:500]).strip()
        return [(b"x-pflash", b"whole"), (b"x-pflash-reason", reason.encode())]
    return [
        (b"x-pflash", b"shortened"),
        (b"x-pflash-tokens-before", str(facts.n_before_tokens).encode()),
        (b"x-pflash-tokens-after", str(facts.n_after_tokens).encode()),
        (b"x-pflash-score-ms", str(round(facts.score_s * 1000)).encode()),
    ]
