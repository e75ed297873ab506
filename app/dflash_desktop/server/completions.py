"""OpenAI's legacy completions: text or token ids in, plain text out; no template, no parsers."""

from __future__ import annotations

import secrets
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.engine.requests import RawPrompt, TokenPrompt
from dflash_desktop.server.bodies import (
    SamplingBody,
    meta_of,
    positive,
    read_object,
    stop_strings,
    typed,
)
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.figures import lm_studio_stats, openai_usage, timings
from dflash_desktop.server.generation import Run
from dflash_desktop.server.openai import KEEP_ALIVE, finish_reason
from dflash_desktop.server.pflash import pflash_ask
from dflash_desktop.server.pieces import Beat, Finished, Logprobs, Piece, Prefilled, Reply, TextPiece, TokenLogprob
from dflash_desktop.server.stream import EVENT_STREAM, sse, streamed, whole

_MAX_TOP_LOGPROBS = 20  # the original allows 5


class CompletionBody(SamplingBody):
    model: str | None = None
    prompt: Any = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    suffix: str | None = None
    n: int | None = None
    best_of: int | None = None
    echo: bool | None = None
    logprobs: int | bool | None = None

    logit_bias: Any = None
    user: Any = None


def completion_request(raw: dict[str, Any], n_vocab: int) -> ChatRequest:
    notes: list[str] = []
    body = typed(raw, CompletionBody, notes)
    for name, value in (("n", body.n), ("best_of", body.best_of)):
        if value is not None and value != 1:
            raise ApiError(f"{name} must be 1: there is one engine.", code="unsupported_value", param=name)
    if body.suffix:
        raise ApiError("suffix needs a fill-in-the-middle model.", code="unsupported_value", param="suffix")
    if body.echo:  # whoever asks for it reads the prompt's own logprobs from the answer
        raise ApiError(
            "echo is not served: an answer never repeats the prompt.", code="unsupported_value", param="echo"
        )
    return ChatRequest(
        model_asked=body.model or "",
        raw=_prompt(body.prompt, n_vocab),
        sampling=body.sampling(),
        pflash=pflash_ask(body.pflash),
        max_tokens=positive(body.max_tokens),
        stop=stop_strings(body.stop),
        is_stream=bool(body.stream),
        want_logprobs=body.logprobs is not None and body.logprobs is not False,
        n_top_logprobs=_n_top(body.logprobs),
        notes=tuple(notes),
    )


def _n_top(logprobs: int | bool | None) -> int:
    if logprobs is None or isinstance(logprobs, bool):
        return 0
    if not 0 <= logprobs <= _MAX_TOP_LOGPROBS:
        raise ApiError(f"logprobs must be 0 to {_MAX_TOP_LOGPROBS}.", param="logprobs")
    return logprobs


def _prompt(prompt: object, n_vocab: int) -> RawPrompt | TokenPrompt:
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str) and prompt:
        return RawPrompt(prompt)
    if isinstance(prompt, list) and prompt and all(type(each) is int and 0 <= each < n_vocab for each in prompt):
        return TokenPrompt(tuple(prompt))
    raise ApiError("prompt must be one text or one list of token ids, and not empty.", param="prompt")


def _logprobs(tokens: list[TokenLogprob]) -> dict[str, Any]:
    texts = [each.token_bytes.decode("utf-8", "replace") for each in tokens]
    offsets: list[int] = []
    at = 0
    for text in texts:
        offsets.append(at)
        at += len(text)
    values = [each.logprob for each in tokens]
    top = [{token.decode("utf-8", "replace"): logprob for token, logprob in each.top} for each in tokens]
    listed = top if any(top) else None
    return {"tokens": texts, "token_logprobs": values, "top_logprobs": listed, "text_offset": offsets}


class CompletionStream:
    """Encoder of completion streams."""

    media_type = EVENT_STREAM

    def __init__(self, run: Run, *, includes_usage: bool, has_stats: bool) -> None:
        self._run = run
        self._head = _head(run)
        self._includes_usage = includes_usage
        self._has_stats = has_stats

    def encode(self, pieces: list[Piece]) -> bytes:
        return b"".join(map(self._piece, pieces))

    def failure(self, error: ApiError) -> bytes:
        return sse(error.body("openai"))

    def _piece(self, piece: Piece) -> bytes:
        match piece:
            case TextPiece():
                return self._chunk(piece.text)
            case Logprobs():
                return self._chunk("", logprobs=_logprobs(list(piece.tokens)))
            case Prefilled() | Beat():
                return KEEP_ALIVE
            case Finished():
                figures = {"usage": openai_usage(piece.usage), "timings": timings(piece.usage)}
                stats = lm_studio_stats(Reply(finish=piece), self._run.served) if self._has_stats else {}
                extra = stats if self._includes_usage else {**figures, **stats}
                out = self._chunk("", reason=finish_reason(piece.reason), extra=extra)
                if self._includes_usage:
                    out += sse({**self._head, "choices": [], **figures})
                return out + b"data: [DONE]\n\n"
            case _:
                return b""

    def _chunk(
        self,
        text: str,
        *,
        reason: str | None = None,
        logprobs: dict[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": reason}
        return sse({**self._head, "choices": [choice], **(extra or {})})


def _head(run: Run) -> dict[str, Any]:
    return {
        "id": f"cmpl-{secrets.token_hex(12)}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": run.served.model_id,
    }


def _answer(run: Run, *, has_stats: bool) -> dict[str, Any]:
    reply = run.reply
    reason = finish_reason(reply.finish.reason if reply.finish is not None else "cancelled")
    logprobs = _logprobs(reply.logprobs) if run.request.want_logprobs else None
    choice = {"index": 0, "text": reply.text, "logprobs": logprobs, "finish_reason": reason}
    return {
        **_head(run),
        "choices": [choice],
        "usage": openai_usage(reply.usage),
        "timings": timings(reply.usage),
        **(lm_studio_stats(reply, run.served) if has_stats else {}),
    }


class CompletionRoutes:
    """POST completions, in both of its homes."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor

    async def complete(self, request: Request) -> Response:
        return await self._run(request, has_stats=False)

    async def complete_v0(self, request: Request) -> Response:
        return await self._run(request, has_stats=True)

    async def _run(self, request: Request, *, has_stats: bool) -> Response:
        raw = await read_object(request)
        served = self._conductor.models.served
        chat = completion_request(raw, served.n_vocab if served is not None else 1 << 31)
        meta = meta_of(request)
        self._conductor.inspector.seen(meta)
        run = await self._conductor.prepare(chat, meta, request.receive)
        if not chat.is_stream:
            return await whole(request, run, lambda run: _answer(run, has_stats=has_stats))
        options = raw.get("stream_options")
        includes_usage = isinstance(options, dict) and options.get("include_usage") is True
        return await streamed(run, CompletionStream(run, includes_usage=includes_usage, has_stats=has_stats))
