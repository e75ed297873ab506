"""LM Studio's own chat, POST /api/v1/chat: stateful, with named events."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.server.bodies import SamplingBody, meta_of, positive, read_object, typed
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.figures import pflash_member, timings
from dflash_desktop.server.generation import Run
from dflash_desktop.server.loading import Loading
from dflash_desktop.server.messages import arrange, content_text
from dflash_desktop.server.openai_body import effort_thinking
from dflash_desktop.server.pflash import pflash_ask
from dflash_desktop.server.pieces import (
    Beat,
    Finished,
    Piece,
    Prefilled,
    PromptRead,
    ReasoningPiece,
    TextPiece,
    Waiting,
)
from dflash_desktop.server.stored import Stored
from dflash_desktop.server.stream import EVENT_STREAM, sse, streamed, whole


class LmStudioChatBody(SamplingBody):
    model: str | None = None
    input: Any = None
    system_prompt: str | None = None
    stream: bool | None = None
    max_output_tokens: int | None = None
    reasoning: str | None = None
    context_length: int | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    integrations: list[Any] | None = None


def input_text(value: object, notes: list[str]) -> str:
    """`input`: a text, or parts of type text, message or image; never empty."""
    text = value if isinstance(value, str) else _parts_text(value, notes)
    if not text:
        raise ApiError("input holds nothing to answer.", param="input")
    return text


def _parts_text(value: object, notes: list[str]) -> str:
    if not isinstance(value, list):
        raise ApiError("input must be a text or a list of parts.", param="input")
    texts = []
    for i, part in enumerate(value):
        if not isinstance(part, Mapping):
            raise ApiError(f"input[{i}] must be an object.", param=f"input[{i}]")
        if part.get("type") == "image":
            raise ApiError("This model reads text only.", code="unsupported_content", param=f"input[{i}]")
        texts.append(content_text(part.get("content", part.get("text")), f"input[{i}].content", notes))
    return "\n".join(texts)


class ChatAnswer:
    """The result object of one run."""

    def __init__(self, run: Run, turns: list[dict[str, Any]]) -> None:
        self.run = run
        self.turns = turns
        self.response_id = f"resp_{secrets.token_hex(12)}"

    def body(self, *, is_stored: bool) -> dict[str, Any]:
        reply = self.run.reply
        usage = reply.usage
        output = []
        if reply.reasoning:
            output.append({"type": "reasoning", "content": reply.reasoning})
        output.append({"type": "message", "content": reply.text})
        body: dict[str, Any] = {
            "model_instance_id": self.run.served.model_id,
            "output": output,
            "stats": {
                "input_tokens": usage.n_asked_tokens,
                "total_output_tokens": usage.n_reply_tokens,
                "reasoning_output_tokens": usage.n_reasoning_tokens,
                "tokens_per_second": round(usage.decode_tps, 2),
                "time_to_first_token_seconds": round(usage.ttft_s, 4),
                **pflash_member(usage),
            },
            "timings": timings(usage),
        }
        if is_stored:
            body["response_id"] = self.response_id
        return body


class LmStudioStream:
    """Encoder: chat.start, prompt_processing.*, reasoning.*, message.*, chat.end."""

    media_type = EVENT_STREAM

    def __init__(self, answer: ChatAnswer, finish: Callable[[], dict[str, Any]]) -> None:
        self._answer = answer
        self._finish = finish
        self._is_open = False
        self._phase = ""  # prompt_processing, reasoning, message
        self._share = 0.0

    def encode(self, pieces: list[Piece]) -> bytes:
        out = b""
        if not self._is_open:
            self._is_open = True
            out = _event("chat.start", model_instance_id=self._answer.run.served.model_id)
            out += self._enter("prompt_processing")
        return out + b"".join(map(self._piece, pieces))

    def failure(self, error: ApiError) -> bytes:
        body = error.body("openai")["error"]
        result = self._answer.body(is_stored=False)
        return _event("error", error=body) + _event("chat.end", result=result)

    def _piece(self, piece: Piece) -> bytes:
        match piece:
            case Waiting() | PromptRead() | Beat():
                if self._phase == "prompt_processing":
                    return _event("prompt_processing.progress", progress=self._share)
                return b": keep-alive\n\n" if isinstance(piece, Beat) else b""
            case Prefilled():
                self._share = round(piece.n_done_tokens / max(1, piece.n_total_tokens), 4)
                return _event("prompt_processing.progress", progress=self._share)
            case ReasoningPiece():
                return self._enter("reasoning") + _event("reasoning.delta", content=piece.text)
            case TextPiece():
                return self._enter("message") + _event("message.delta", content=piece.text)
            case Finished():
                return self._enter("") + _event("chat.end", result=self._finish())
            case _:
                return b""

    def _enter(self, phase: str) -> bytes:
        if phase == self._phase:
            return b""
        out = _event(f"{self._phase}.end") if self._phase else b""
        self._phase = phase
        return out + (_event(f"{phase}.start") if phase else b"")


def _event(kind: str, **members: object) -> bytes:
    return sse({"type": kind, **members}, event=kind)


class LmStudioChatRoutes:
    """Conversations are kept in memory only, the last few of them."""

    def __init__(self, conductor: Conductor, loading: Loading) -> None:
        self._conductor = conductor
        self._loading = loading
        self._stored: Stored[list[dict[str, Any]]] = Stored()

    async def chat(self, request: Request) -> Response:
        notes: list[str] = []
        body = typed(await read_object(request), LmStudioChatBody, notes)
        if body.integrations:
            raise ApiError(
                "Integrations run in LM Studio only; send tools with /v1/chat/completions.", param="integrations"
            )
        turns = self._turns(body, notes)
        conversation = arrange(list(turns), notes)
        chat = ChatRequest(
            model_asked=body.model or "",
            messages=conversation.messages,
            sampling=body.sampling(),
            pflash=pflash_ask(body.pflash),
            max_tokens=positive(body.max_output_tokens),
            thinking=effort_thinking(body.reasoning),
            is_stream=bool(body.stream),
            notes=tuple(conversation.notes),
        )
        meta = meta_of(request)
        self._conductor.inspector.seen(meta)
        if body.context_length is not None and body.context_length > 0:
            await self._loading.ensure_context(body.context_length, meta.peer)
        run = await self._conductor.prepare(chat, meta, request.receive)
        answer = ChatAnswer(run, turns)
        is_stored = body.store is not False
        n_bytes = len(await request.body())

        def finish() -> dict[str, Any]:
            if is_stored:
                self._store(answer, n_bytes)
            return answer.body(is_stored=is_stored)

        if chat.is_stream:
            return await streamed(run, LmStudioStream(answer, finish))
        return await whole(request, run, lambda _: finish())

    def _turns(self, body: LmStudioChatBody, notes: list[str]) -> list[dict[str, Any]]:
        earlier: list[dict[str, Any]] = []
        if body.previous_response_id:
            earlier = self._stored.find(body.previous_response_id)
        system = [{"role": "system", "content": body.system_prompt}] if body.system_prompt else []
        if system:
            earlier = [turn for turn in earlier if turn["role"] != "system"]
        return [*system, *earlier, {"role": "user", "content": input_text(body.input, notes)}]

    def _store(self, answer: ChatAnswer, n_bytes: int) -> None:
        text = answer.run.reply.text
        turns = [*answer.turns, {"role": "assistant", "content": text}]
        self._stored.keep(answer.response_id, turns, n_bytes + len(text.encode()))
