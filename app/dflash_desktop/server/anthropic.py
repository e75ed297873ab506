"""Anthropic Messages: JSON <-> requests and pieces."""

from __future__ import annotations

import json
import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.server.anthropic_body import count_request, messages_request
from dflash_desktop.server.bodies import meta_of, read_object
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.figures import pflash_member, timings
from dflash_desktop.server.generation import Run
from dflash_desktop.server.pieces import (
    Beat,
    CallArguments,
    CallEnded,
    CallStarted,
    Finished,
    Piece,
    Prefilled,
    PromptRead,
    ReasoningPiece,
    TextPiece,
    Usage,
    Waiting,
)
from dflash_desktop.server.stream import EVENT_STREAM, json_response, sse, streamed, whole

SIGNATURE = "local"  # of thoughts: clients send it back, and nobody looks at it


def stop_reason(finish: Finished | None) -> tuple[str, str | None]:
    """`stop_reason` and `stop_sequence`."""
    if finish is None:
        return "end_turn", None
    reason = {
        "length": "max_tokens",
        "context": "max_tokens",
        "tool_calls": "tool_use",
        "stop_string": "stop_sequence",
    }.get(finish.reason, "end_turn")
    return reason, finish.stop_string if reason == "stop_sequence" else None


def usage_json(usage: Usage) -> dict[str, Any]:
    """The three input numbers add up to the whole prompt."""
    return {
        "input_tokens": usage.n_asked_tokens - usage.n_reused_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.n_reused_tokens,
        "output_tokens": usage.n_reply_tokens,
        **pflash_member(usage),
    }


def answer(run: Run) -> dict[str, Any]:
    """The non-stream answer. A call that was cut short is left out: its input would be no object."""
    reply = run.reply
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        if call.is_complete:
            arguments = json.loads(call.arguments)
            content.append({"type": "tool_use", "id": f"toolu_{call.call_id}", "name": call.name, "input": arguments})
    reason, sequence = stop_reason(reply.finish)
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": run.request.model_asked or run.served.model_id,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": usage_json(reply.usage),
        "timings": timings(reply.usage),
    }


class MessageStream:
    """Encoder of Messages streams: one open block at a time, no empty blocks."""

    media_type = EVENT_STREAM

    def __init__(self, run: Run) -> None:
        self._run = run
        self._is_open = False
        self._block = ""  # thinking, text, or tool_use
        self._index = -1

    def encode(self, pieces: list[Piece]) -> bytes:
        return b"".join(map(self._piece, pieces))

    def failure(self, error: ApiError) -> bytes:
        return sse(error.body("anthropic", self._run.meta.request_id), event="error")

    def _piece(self, piece: Piece) -> bytes:
        match piece:
            case Waiting():
                return b""
            case PromptRead():
                return self._start()
            case Beat() | Prefilled():
                return self._start() + _event({"type": "ping"})
            case ReasoningPiece():
                opened = self._open("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                return opened + self._delta({"type": "thinking_delta", "thinking": piece.text})
            case TextPiece():
                opened = self._open("text", {"type": "text", "text": ""})
                return opened + self._delta({"type": "text_delta", "text": piece.text})
            case CallStarted():
                block = {"type": "tool_use", "id": f"toolu_{piece.call_id}", "name": piece.name, "input": {}}
                return self._close() + self._open("tool_use", block)
            case CallArguments():
                return self._delta({"type": "input_json_delta", "partial_json": piece.text})
            case CallEnded():
                return self._close()
            case Finished():
                return self._end(piece)
            case _:
                return b""

    def _start(self) -> bytes:
        if self._is_open:
            return b""
        self._is_open = True
        n_prompt, n_reused = self._run.usage.n_asked_tokens, self._run.n_reused_tokens
        message: dict[str, Any] = {
            "id": f"msg_{secrets.token_hex(12)}",
            "type": "message",
            "role": "assistant",
            "model": self._run.request.model_asked or self._run.served.model_id,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_json(Usage(n_prompt_tokens=n_prompt, n_reused_tokens=n_reused, n_reply_tokens=1)),
        }
        return _event({"type": "message_start", "message": message}) + _event({"type": "ping"})

    def _open(self, kind: str, block: dict[str, Any]) -> bytes:
        if self._block == kind and kind != "tool_use":
            return b""
        out = self._start() + self._close()
        self._block = kind
        self._index += 1
        return out + _event({"type": "content_block_start", "index": self._index, "content_block": block})

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _close(self) -> bytes:
        if not self._block:
            return b""
        signed = self._delta({"type": "signature_delta", "signature": SIGNATURE}) if self._block == "thinking" else b""
        self._block = ""
        return signed + _event({"type": "content_block_stop", "index": self._index})

    def _end(self, finish: Finished) -> bytes:
        reason, sequence = stop_reason(finish)
        out = self._start() + self._close()
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        figures = {"usage": usage_json(finish.usage), "timings": timings(finish.usage)}
        out += _event({"type": "message_delta", "delta": delta, **figures})
        return out + _event({"type": "message_stop"})


def _event(data: dict[str, Any]) -> bytes:
    return sse(data, event=data["type"])


class MessageRoutes:
    """POST /v1/messages and /v1/messages/count_tokens."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor

    async def messages(self, request: Request) -> Response:
        chat = messages_request(await read_object(request))
        system = chat.messages[0]["content"][:100] if chat.messages[0]["role"] == "system" else ""
        meta = meta_of(request, system)
        self._conductor.inspector.seen(meta)
        run = await self._conductor.prepare(chat, meta, request.receive)
        if not chat.is_stream:
            return await whole(request, run, answer)
        return await streamed(run, MessageStream(run))

    async def count_tokens(self, request: Request) -> Response:
        chat = count_request(await read_object(request))
        self._conductor.inspector.seen(meta_of(request))
        return json_response({"input_tokens": await self._conductor.count(chat)})
