"""OpenAI Chat Completions: JSON <-> requests and pieces."""

from __future__ import annotations

import secrets
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.server.bodies import first_words, meta_of, read_object
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.figures import lm_studio_stats, openai_usage, timings
from dflash_desktop.server.generation import Run
from dflash_desktop.server.openai_body import chat_request, is_legacy
from dflash_desktop.server.pieces import (
    Beat,
    CallArguments,
    CallStarted,
    Finished,
    Logprobs,
    Piece,
    Prefilled,
    ReasoningPiece,
    Reply,
    ReplyFinish,
    TextPiece,
    TokenLogprob,
)
from dflash_desktop.server.stream import EVENT_STREAM, json_response, sse, streamed, whole

KEEP_ALIVE = b": keep-alive\n\n"


def finish_reason(reason: ReplyFinish, *, is_legacy: bool = False) -> str:
    if reason in {"length", "context"}:
        return "length"
    if reason == "tool_calls":
        return "function_call" if is_legacy else "tool_calls"
    return "stop"


def logprob_json(tokens: list[TokenLogprob]) -> dict[str, Any]:
    content = [
        {
            "token": each.token_bytes.decode("utf-8", "replace"),
            "logprob": each.logprob,
            "bytes": list(each.token_bytes),
            "top_logprobs": [
                {"token": token.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(token)}
                for token, logprob in each.top
            ],
        }
        for each in tokens
    ]
    return {"content": content, "refusal": None}


def chat_answer(
    run: Run, *, has_stats: bool, puts_thoughts_in_content: bool, is_legacy: bool = False
) -> dict[str, Any]:
    """The non-stream answer. `is_legacy`: its call is told as `function_call`."""
    reply = run.reply
    reason = finish_reason(reply.finish.reason if reply.finish is not None else "cancelled", is_legacy=is_legacy)
    text, reasoning = reply.text, reply.reasoning
    if reasoning and puts_thoughts_in_content:
        text, reasoning = f"<think>\n{reasoning}\n</think>\n\n{text}", ""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if reasoning:
        message["reasoning_content"] = reasoning
    calls = [call for call in reply.calls if call.is_complete or reason == "length"]
    if calls:
        message["content"] = text or None
    if calls and is_legacy:
        message["function_call"] = {"name": calls[0].name, "arguments": calls[0].arguments}
    elif calls:
        message["tool_calls"] = [
            {
                "id": f"call_{call.call_id}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": logprob_json(reply.logprobs) if run.request.want_logprobs else None,
        "finish_reason": reason,
    }
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": run.served.model_id,
        "choices": [choice],
        "usage": openai_usage(reply.usage),
        "timings": timings(reply.usage),
        **(lm_studio_stats(reply, run.served) if has_stats else {}),
    }


class ChatStream:
    """Encoder of Chat Completions streams."""

    media_type = EVENT_STREAM

    def __init__(
        self,
        run: Run,
        *,
        includes_usage: bool,
        returns_progress: bool,
        has_stats: bool,
        puts_thoughts_in_content: bool,
        is_legacy: bool = False,
    ) -> None:
        self._run = run
        self._is_legacy = is_legacy
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": run.served.model_id,
        }
        self._includes_usage = includes_usage
        self._returns_progress = returns_progress
        self._has_stats = has_stats
        self._wraps_thoughts = puts_thoughts_in_content
        self._is_open = False
        self._is_in_think_tag = False
        self._is_told = False  # the next Logprobs went out with their text

    def encode(self, pieces: list[Piece]) -> bytes:
        out = b""
        if not self._is_open:
            self._is_open = True
            out += self._chunk({"role": "assistant", "content": ""})
        for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
            if isinstance(piece, TextPiece) and isinstance(following, Logprobs):
                logprobs = logprob_json(list(following.tokens))
                out += self._chunk({"content": self._closed_tag() + piece.text}, logprobs=logprobs)
                self._is_told = True
            else:
                out += self._piece(piece)
        return out

    def failure(self, error: ApiError) -> bytes:
        return sse(error.body("openai"))

    def _piece(self, piece: Piece) -> bytes:
        match piece:
            case TextPiece():
                return self._chunk({"content": self._closed_tag() + piece.text})
            case ReasoningPiece() if self._wraps_thoughts:
                opening = "" if self._is_in_think_tag else "<think>\n"
                self._is_in_think_tag = True
                return self._chunk({"content": opening + piece.text})
            case ReasoningPiece():
                return self._chunk({"reasoning_content": piece.text})
            case CallStarted():
                function = {"name": piece.name, "arguments": ""}
                call = {
                    "index": piece.index,
                    "id": f"call_{piece.call_id}",
                    "type": "function",
                    "function": function,
                }
                closing = self._closed_tag()
                before = self._chunk({"content": closing}) if closing else b""
                return before + self._chunk({"function_call": function} if self._is_legacy else {"tool_calls": [call]})
            case CallArguments() if self._is_legacy:
                return self._chunk({"function_call": {"arguments": piece.text}})
            case CallArguments():
                return self._chunk({"tool_calls": [{"index": piece.index, "function": {"arguments": piece.text}}]})
            case Logprobs():
                is_told, self._is_told = self._is_told, False
                return b"" if is_told else self._chunk({}, logprobs=logprob_json(list(piece.tokens)))
            case Prefilled() if self._returns_progress:
                progress = {
                    "total": piece.n_total_tokens,
                    "cache": piece.n_reused_tokens,
                    "processed": piece.n_done_tokens,
                    "time_ms": round(piece.elapsed_s * 1000),
                }
                return self._chunk({}, extra={"prompt_progress": progress})
            case Prefilled() | Beat():
                return KEEP_ALIVE
            case Finished():
                return self._last(piece)
            case _:
                return b""

    def _last(self, finish: Finished) -> bytes:
        closing = self._closed_tag()
        out = self._chunk({"content": closing}) if closing else b""
        figures = {"usage": openai_usage(finish.usage), "timings": timings(finish.usage)}
        stats = lm_studio_stats(Reply(finish=finish), self._run.served) if self._has_stats else {}
        extra = stats if self._includes_usage else {**figures, **stats}
        out += self._chunk({}, reason=finish_reason(finish.reason, is_legacy=self._is_legacy), extra=extra)
        if self._includes_usage:
            out += sse({**self._head, "choices": [], **figures})
        return out + b"data: [DONE]\n\n"

    def _closed_tag(self) -> str:
        if not self._is_in_think_tag:
            return ""
        self._is_in_think_tag = False
        return "\n</think>\n\n"

    def _chunk(
        self,
        delta: dict[str, Any],
        *,
        reason: str | None = None,
        logprobs: dict[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> bytes:
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": reason}
        if logprobs is not None:
            choice["logprobs"] = logprobs
        return sse({**self._head, "choices": [choice], **(extra or {})})


class ChatRoutes:
    """POST chat/completions of OpenAI and, with its extra members, of LM Studio's v0."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, has_stats=False)

    async def chat_v0(self, request: Request) -> Response:
        return await self._answer(request, has_stats=True)

    async def count(self, request: Request) -> Response:
        """POST /v1/chat/completions/input_tokens."""
        n_tokens = await self._conductor.count(chat_request(await read_object(request)))
        return json_response({"object": "response.input_tokens", "input_tokens": n_tokens})

    async def _answer(self, request: Request, *, has_stats: bool) -> Response:
        raw = await read_object(request)
        chat = chat_request(raw)
        meta = meta_of(request, first_words(raw.get("messages")))
        self._conductor.inspector.seen(meta)
        run = await self._conductor.prepare(chat, meta, request.receive)
        wraps, legacy = self._conductor.options.puts_thoughts_in_content, is_legacy(raw)
        if not chat.is_stream:
            return await whole(
                request,
                run,
                lambda run: chat_answer(run, has_stats=has_stats, puts_thoughts_in_content=wraps, is_legacy=legacy),
            )
        options = raw.get("stream_options")
        encoder = ChatStream(
            run,
            includes_usage=isinstance(options, dict) and options.get("include_usage") is True,
            returns_progress=raw.get("return_progress") is True,
            has_stats=has_stats,
            puts_thoughts_in_content=wraps,
            is_legacy=legacy,
        )
        return await streamed(run, encoder)
