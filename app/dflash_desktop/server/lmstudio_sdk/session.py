"""One socket: who is at the other end, the packets that come, the calls and channels that are open on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from dflash_desktop.server.bodies import object_of, typed
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.front import Receive, Send
from dflash_desktop.server.lmstudio_sdk.caller import Caller, Channel
from dflash_desktop.server.lmstudio_sdk.calls import NOTHING, Subject, not_served
from dflash_desktop.server.lmstudio_sdk.packets import Authentication, Packet, error_body
from dflash_desktop.server.options import Limits
from dflash_desktop.server.presence import ClientGone

log = logging.getLogger(__name__)

_MAX_WARNINGS = 5  # malformed packets before a socket is closed
_AWAY, _POLICY, _RESTART = 1001, 1008, 1012  # closing codes

Admit = Callable[[Authentication, Caller], Caller]
"""The caller with what it may; raise ApiError when it may nothing."""

Refused = Callable[[Caller, ApiError], None]
"""Hears of every call that is answered with an error."""


class Session:
    """Serve it once. Only `close_idle` may be called from outside meanwhile."""

    def __init__(
        self, subject: Subject, caller: Caller, receive: Receive, send: Send, limits: Limits, refused: Refused
    ) -> None:
        self._subject = subject
        self._caller = caller
        self._refused = refused
        self._asgi_receive = receive
        self._asgi_send = send
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()
        self._channels: dict[int, Channel] = {}
        self._reader: asyncio.Task[Any] | None = None
        self._n_warnings = 0
        self._is_over = False
        self.active_s = time.monotonic()

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    async def serve(self, admit: Admit) -> None:
        """To the end of the socket. What is still open then is ended."""
        self._reader = asyncio.current_task()
        await self._asgi_receive()  # the connect
        await self._asgi_send({"type": "websocket.accept"})
        try:
            if await self._authenticate(admit):
                await self._read()
        except ClientGone:
            return
        except asyncio.CancelledError:
            if self._is_over:  # by a call that found nobody to answer
                return
            await self._close(_RESTART, "The server stops.")
            raise
        finally:
            self._is_over = True
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close_idle(self) -> None:
        """Make room for another socket; SDKs open theirs again when they next need it."""
        await self._close(_AWAY, "Too many sockets: the longest idle one was closed.")

    async def _authenticate(self, admit: Admit) -> bool:
        try:
            async with asyncio.timeout(self._limits.head_s):
                raw = await self._next()
        except TimeoutError:
            await self._close(_POLICY, "No authentication came.")
            return False
        if raw is None:
            return False
        try:
            packet = typed(object_of(raw), Authentication, [])
            if packet.auth_version != 1:
                raise ApiError("authVersion must be 1.", param="authVersion")
            self._caller = admit(packet, self._caller)
        except ApiError as error:
            self._refused(self._caller.asking(), error)
            await self._send({"success": False, "error": error.message})
            await self._close(_POLICY, "Not admitted.")
            return False
        await self._send({"success": True})
        return True

    async def _read(self) -> None:
        while (raw := await self._next()) is not None:
            try:
                packet = typed(object_of(raw), Packet, [])
            except ApiError as error:
                await self._warn(error.message)
                continue
            await self._take(packet)

    async def _take(self, packet: Packet) -> None:
        match packet.type:
            case "rpcCall" if packet.call_id is not None:
                await self._call(packet, packet.call_id)
            case "channelCreate" if packet.channel_id is not None:
                await self._open(packet, packet.channel_id)
            case "channelSend" if packet.channel_id is not None:
                await self._hear(packet, packet.channel_id)
            case "keepAlive":
                await self._send({"type": "keepAliveAck"})
            case "signalSubscribe" | "writableSignalSubscribe" if packet.subscribe_id is not None:
                kind = "signalError" if packet.type == "signalSubscribe" else "writableSignalError"
                error = error_body(not_served(self._caller.path, self._subject, packet.endpoint))
                await self._send({"type": kind, "subscribeId": packet.subscribe_id, "error": error})
            case "channelAck" | "signalUnsubscribe" | "writableSignalUnsubscribe" | "writableSignalUpdate":
                pass
            case "communicationWarning":
                log.info("a client of LM Studio's SDK warns: %.300r", packet.warning)
            case _:
                await self._warn(f"A packet of type {packet.type[:60]!r} without its id, or of no known type.")

    async def _call(self, packet: Packet, call_id: int) -> None:
        async def answer(caller: Caller) -> None:
            call = self._subject.calls.get(packet.endpoint)
            if call is None:
                raise not_served(caller.path, self._subject, packet.endpoint)
            result = await call(packet.parameter, caller)
            answered = {"type": "rpcResult", "callId": call_id}
            await self._send(answered if result is NOTHING else {**answered, "result": result})

        async def failed(error: ApiError) -> None:
            await self._send({"type": "rpcError", "callId": call_id, "error": error_body(error)})

        await self._start(packet.endpoint, answer, failed)

    async def _open(self, packet: Packet, channel_id: int) -> None:
        if channel_id in self._channels:
            await self._warn(f"Channel {channel_id} is open already.")
            return
        named = {"channelId": channel_id}
        channel = Channel(lambda message: self._send({"type": "channelSend", **named, "message": message}))

        async def answer(caller: Caller) -> None:
            opened = self._subject.channels.get(packet.endpoint)
            if opened is None:
                raise not_served(caller.path, self._subject, packet.endpoint)
            with contextlib.suppress(ClientGone):  # it was cancelled
                await opened(packet.creation_parameter, channel, caller)
            await self._send({"type": "channelClose", **named})

        async def failed(error: ApiError) -> None:
            await self._send({"type": "channelError", **named, "error": error_body(error)})

        self._channels[channel_id] = channel
        await self._start(packet.endpoint, answer, failed, lambda: self._channels.pop(channel_id, None))

    async def _hear(self, packet: Packet, channel_id: int) -> None:
        """The only message of a client on the channels that we serve is that it wants no more."""
        channel = self._channels.get(channel_id)
        if packet.ack_id is not None:
            await self._send({"type": "channelAck", "channelId": channel_id, "ackId": packet.ack_id})
        if channel is not None and isinstance(packet.message, dict) and packet.message.get("type") == "cancel":
            channel.cancel()

    async def _start(
        self,
        endpoint: str,
        answer: Callable[[Caller], Awaitable[None]],
        failed: Callable[[ApiError], Awaitable[None]],
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        """Run `answer` beside the reading of further packets; every failure becomes a packet of its own."""
        caller = self._caller.asking()
        try:
            self._check_may(endpoint)
        except ApiError as error:  # told right here: whoever floods the socket reads the answers, or is read no more
            self._refused(caller, error)
            ended()
            await failed(error)
            return

        async def work() -> None:
            with contextlib.suppress(ClientGone):
                try:
                    await answer(caller)
                except ApiError as error:
                    self._refused(caller, error)
                    await failed(error)
                except ClientGone:
                    raise
                except Exception:  # part of the HTTP top: anything else is a bug
                    log.exception("call %s of LM Studio's SDK failed as %s", endpoint[:60], caller.request_id)
                    text = f"The server made a mistake. The log names it under {caller.request_id}."
                    await failed(ApiError(text, status=500, kind="server_error", code="engine_error"))

        def over(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self.active_s = time.monotonic()
            ended()

        task = asyncio.ensure_future(work())
        self._tasks.add(task)
        task.add_done_callback(over)

    def _check_may(self, endpoint: str) -> None:
        if len(self._tasks) >= self._limits.n_calls:
            raise ApiError(
                f"{self._limits.n_calls} calls are open on this socket. Wait for one of them.",
                status=429,
                kind="server_error",
                code="overloaded",
            )
        if self._caller.may_only_list and endpoint not in self._subject.listings:
            raise ApiError(
                "The key is missing or wrong. Copy it in the window under Serve > Access, and give it to the SDK as "
                "clientPasskey.",
                status=401,
                kind="authentication_error",
                code="invalid_api_key",
            )

    async def _next(self) -> bytes | None:
        """The next packet; None when the client has left."""
        message = await self._asgi_receive()
        self.active_s = time.monotonic()
        if message["type"] != "websocket.receive":
            return None
        text = message.get("text")
        return text.encode() if text is not None else bytes(message.get("bytes") or b"")

    async def _warn(self, text: str) -> None:
        self._n_warnings += 1
        await self._send({"type": "communicationWarning", "warning": text})
        if self._n_warnings >= _MAX_WARNINGS:
            await self._close(_POLICY, "Too many packets that cannot be read.")
            raise ClientGone

    async def _send(self, packet: dict[str, Any]) -> None:
        """Raise ClientGone when nobody takes it."""
        if self._is_over:
            raise ClientGone
        text = msgspec.json.encode(packet).decode()
        try:
            async with asyncio.timeout(self._limits.send_gap_s):
                await self._asgi_send({"type": "websocket.send", "text": text})
        except (OSError, RuntimeError):  # gone, or closing, or (a TimeoutError) it takes nothing any more
            self._is_over = True
            if self._reader is not None and self._reader is not asyncio.current_task():
                self._reader.cancel()
            raise ClientGone from None

    async def _close(self, code: int, reason: str) -> None:
        self._is_over = True
        with contextlib.suppress(OSError, RuntimeError):
            async with asyncio.timeout(self._limits.send_gap_s):
                await self._asgi_send({"type": "websocket.close", "code": code, "reason": reason})
