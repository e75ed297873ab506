"""Runs to HTTP answers: whole or streamed, with heartbeats; a client that leaves ends its run at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.generation import Run
from dflash_desktop.server.pieces import Beat, CallArguments, Piece, ReasoningPiece, TextPiece
from dflash_desktop.server.presence import ClientGone, Receive, while_connected

log = logging.getLogger(__name__)

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

EVENT_STREAM = "text/event-stream"


class Closable(Protocol):
    """What pieces come from."""

    async def aclose(self) -> None: ...


class Encoder(Protocol):
    """One dialect's stream: pieces in, bytes out. Keeps the state that its events need."""

    media_type: str

    def encode(self, pieces: list[Piece]) -> bytes:
        """The bytes for a batch; may be empty."""

    def failure(self, error: ApiError) -> bytes:
        """The error as an event of an open stream."""


def json_response(body: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json")


def sse(data: object, *, event: str | None = None) -> bytes:
    """One server-sent event: `data: ` with one space, one JSON object on one line."""
    head = f"event: {event}\ndata: ".encode() if event is not None else b"data: "
    return head + msgspec.json.encode(data) + b"\n\n"


async def whole(request: Request, run: Run, body: Callable[[Run], object]) -> Response:
    """The complete answer as one JSON object."""

    async def collect() -> None:
        async with contextlib.aclosing(run.batches()) as batches:
            async for _ in batches:
                pass

    try:
        await while_connected(request.receive, collect())
    except ClientGone:
        return Response(status_code=499)  # nobody reads it
    finally:
        run.abandon()
    return json_response(body(run))


async def streamed(run: Run, encoder: Encoder) -> Response:
    """A stream. Until the first batch is there, a failure still becomes a proper HTTP status."""
    batches = run.batches()
    try:
        first = await anext(batches)
    except BaseException:
        await batches.aclose()
        run.abandon()
        raise
    return _RunStream(batches, first, encoder, send_gap_s=run.send_gap_s)


class ClientStream(Response):
    """An answer in pieces. When the client leaves, or stops reading for too long, what makes them is closed."""

    def __init__(self, source: Closable, send_gap_s: float, *, status: int = 200) -> None:
        super().__init__(status_code=status)
        self._source = source
        self._send_gap_s = send_gap_s

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        del scope
        try:
            await while_connected(receive, self._write(send))
        except (ClientGone, OSError):
            pass
        except TimeoutError:
            log.info("a client stopped reading its stream; it was dropped")
        finally:
            await self._source.aclose()

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await self._write_pieces(send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write_pieces(self, send: Send) -> None:
        raise NotImplementedError

    async def _send(self, send: Send, body: bytes) -> None:
        if body:
            async with asyncio.timeout(self._send_gap_s):
                await send({"type": "http.response.body", "body": body, "more_body": True})


class _RunStream(ClientStream):
    def __init__(
        self,
        batches: AsyncGenerator[list[Piece], None],
        first: list[Piece],
        encoder: Encoder,
        *,
        send_gap_s: float,
    ) -> None:
        super().__init__(batches, send_gap_s)
        del self.headers["content-length"]
        self.headers["content-type"] = encoder.media_type  # Starlette would add a charset to text types
        self.headers["cache-control"] = "no-cache"
        self.headers["x-accel-buffering"] = "no"
        self._batches = batches
        self._first = first
        self._encoder = encoder

    async def _write_pieces(self, send: Send) -> None:
        try:
            await self._send(send, self._encoder.encode(self._first))
            async for batch in self._batches:
                await self._send(send, self._encoder.encode(merged(batch)))
        except ApiError as error:
            await self._send(send, self._encoder.failure(error))


def merged(pieces: list[Piece]) -> list[Piece]:
    """Neighbours of one kind become one; beats beside anything else go."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        match last, piece:
            case TextPiece(), TextPiece():
                joined[-1] = TextPiece(last.text + piece.text)
            case ReasoningPiece(), ReasoningPiece():
                joined[-1] = ReasoningPiece(last.text + piece.text)
            case CallArguments(), CallArguments() if last.index == piece.index:
                joined[-1] = CallArguments(piece.index, last.text + piece.text)
            case _, Beat() if joined:
                pass
            case _:
                joined.append(piece)
    return joined
