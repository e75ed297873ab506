"""The useful part of Ollama's API: NDJSON streams, arguments as objects, calls whole (client-apis.md section 10)."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.engine.requests import RawPrompt
from dflash_desktop.server.bodies import first_words, meta_of, positive, read_object, stop_strings, typed
from dflash_desktop.server.chat import ChatRequest, ResponseFormat, SamplingAsk, Thinking
from dflash_desktop.server.errors import ApiError, unknown_model
from dflash_desktop.server.generation import Conductor, Run
from dflash_desktop.server.messages import function_tools, normalise
from dflash_desktop.server.models import ServedModel, answers_to
from dflash_desktop.server.openai_body import effort_thinking
from dflash_desktop.server.pieces import (
    Beat,
    Call,
    CallArguments,
    CallEnded,
    CallStarted,
    Finished,
    Piece,
    Prefilled,
    ReasoningPiece,
    TextPiece,
    Usage,
)
from dflash_desktop.server.stream import json_response, streamed, whole

API_VERSION = "0.12.0"  # the level of the API that is imitated, not our own version


class OllamaBody(msgspec.Struct):
    """Of /api/chat and /api/generate together."""

    model: str | None = None
    messages: Any = None
    prompt: str | None = None
    system: str | None = None
    raw: bool | None = None
    stream: bool | None = None
    tools: list[Any] | None = None
    format: str | dict[str, Any] | None = None
    think: bool | str | None = None
    options: dict[str, Any] | None = None
    keep_alive: str | float | None = None

    template: Any = None
    context: Any = None
    images: Any = None
    suffix: str | None = None
    truncate: Any = None
    shift: Any = None


class OllamaOptions(msgspec.Struct):
    """The members of `options` that mean something here."""

    temperature: float | None = None
    top_k: float | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    num_predict: int | None = None
    num_ctx: int | None = None


def ollama_request(body: OllamaBody, served: ServedModel, notes: list[str], *, is_chat: bool) -> ChatRequest:
    options = typed(body.options or {}, OllamaOptions, notes)
    if options.num_ctx is not None and options.num_ctx > served.context_tokens:
        notes.append(f"num_ctx {options.num_ctx} was asked for; {served.context_tokens} tokens are loaded")
    raw = RawPrompt(body.prompt or "") if not is_chat and body.raw else None
    messages: object = body.messages
    if not is_chat:
        system = [{"role": "system", "content": body.system}] if body.system else []
        messages = [*system, {"role": "user", "content": body.prompt or ""}]
    conversation = normalise(_with_names(messages))
    notes += conversation.notes
    thinking = Thinking(is_on=body.think) if isinstance(body.think, bool) else effort_thinking(body.think)
    return ChatRequest(
        model_asked=body.model or "",
        messages=conversation.messages,
        raw=raw,
        continue_last=conversation.continue_last,
        tools=function_tools(body.tools or [], notes),
        sampling=SamplingAsk(
            temperature=options.temperature,
            top_k=int(min(max(options.top_k, 0), 1e6)) if options.top_k is not None else None,
            top_p=options.top_p,
            min_p=options.min_p,
            repeat_penalty=options.repeat_penalty,
            presence_penalty=options.presence_penalty,
            frequency_penalty=options.frequency_penalty,
            seed=options.seed if options.seed is not None and options.seed >= 0 else None,
        ),
        max_tokens=positive(options.num_predict),
        stop=stop_strings(options.stop),
        response_format=_format(body.format),
        thinking=thinking,
        is_stream=body.stream is not False,
        notes=tuple(dict.fromkeys(notes)),
    )


def _with_names(messages: object) -> object:
    """Ollama's spellings in OpenAI's: `thinking`, `tool_name`."""
    if not isinstance(messages, list):
        return messages
    renamed = {"thinking": "reasoning_content", "tool_name": "name"}
    return [
        {renamed.get(key, key): value for key, value in each.items()} if isinstance(each, dict) else each
        for each in messages
    ]


def _format(wanted: str | dict[str, Any] | None) -> ResponseFormat:
    if isinstance(wanted, Mapping) and wanted:
        return ResponseFormat("json_schema", wanted)
    if wanted == "json":
        return ResponseFormat("json_object")
    if not wanted:
        return ResponseFormat()
    raise ApiError("format must be json or a JSON schema.", param="format")


def _figures(usage: Usage, total_s: float, load_s: float) -> dict[str, Any]:
    return {
        "total_duration": int(total_s * 1e9),
        "load_duration": int(load_s * 1e9),
        "prompt_eval_count": usage.n_prompt_tokens,
        "prompt_eval_duration": int(usage.prefill_s * 1e9),
        "eval_count": usage.n_reply_tokens,
        "eval_duration": int(usage.decode_s * 1e9),
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())


def _call_json(call: Call) -> dict[str, Any]:
    return {"function": {"name": call.name, "arguments": json.loads(call.arguments)}}


class OllamaStream:
    """Encoder: one JSON object a line."""

    media_type = "application/x-ndjson"

    def __init__(self, run: Run, *, is_chat: bool) -> None:
        self._run = run
        self._is_chat = is_chat
        self._model = f"{run.served.model_id}:latest"
        self._started_s = time.monotonic()
        self._call: Call | None = None

    def encode(self, pieces: list[Piece]) -> bytes:
        return b"".join(map(self._piece, pieces))

    def failure(self, error: ApiError) -> bytes:
        return msgspec.json.encode(error.body("ollama")) + b"\n"

    def _piece(self, piece: Piece) -> bytes:
        match piece:
            case TextPiece():
                return self._line(piece.text)
            case ReasoningPiece():
                return self._line("", thinking=piece.text)
            case CallStarted():
                self._call = Call(piece.call_id, piece.name)
                return b""
            case CallArguments() if self._call is not None:
                self._call.arguments += piece.text
                return b""
            case CallEnded() if self._call is not None and self._is_chat:
                return self._line("", tool_calls=[_call_json(self._call)])
            case Beat() | Prefilled():
                return self._line("")
            case Finished():
                return self.last(piece)
            case _:
                return b""

    def last(self, finish: Finished) -> bytes:
        reason = "length" if finish.reason in {"length", "context"} else "stop"
        figures = _figures(finish.usage, time.monotonic() - self._started_s, 0.0)
        return self._line("", extra={"done": True, "done_reason": reason, **figures})

    def whole(self, run: Run) -> dict[str, Any]:
        """The non-stream answer."""
        reply = run.reply
        assert reply.finish is not None
        calls = [_call_json(call) for call in reply.calls if call.is_complete]
        line: dict[str, Any] = json.loads(self.last(reply.finish))
        if self._is_chat:
            line["message"] |= {"content": reply.text}
            if reply.reasoning:
                line["message"]["thinking"] = reply.reasoning
            if calls:
                line["message"]["tool_calls"] = calls
        else:
            line["response"] = reply.text
            if reply.reasoning:
                line["thinking"] = reply.reasoning
        return line

    def _line(
        self,
        text: str,
        *,
        thinking: str | None = None,
        tool_calls: list[dict[str, Any]] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> bytes:
        line: dict[str, Any] = {"model": self._model, "created_at": _now()}
        if self._is_chat:
            message: dict[str, Any] = {"role": "assistant", "content": text}
            if thinking is not None:
                message["thinking"] = thinking
            if tool_calls is not None:
                message["tool_calls"] = tool_calls
            line["message"] = message
        else:
            line["response"] = text
            if thinking is not None:
                line["thinking"] = thinking
        return msgspec.json.encode({**line, "done": False, **(extra or {})}) + b"\n"


class OllamaRoutes:
    """On the main port always; a second listener is a switch of its own."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._models = conductor.models

    async def version(self, request: Request) -> Response:
        self._conductor.inspector.seen(meta_of(request))
        return json_response({"version": API_VERSION})

    async def tags(self, request: Request) -> Response:
        self._conductor.inspector.seen(meta_of(request))
        served = self._models.served
        return json_response({"models": [_entry(served)] if served is not None else []})

    async def running(self, request: Request) -> Response:
        del request
        served = self._models.served
        if served is None:
            return json_response({"models": []})
        more = {
            "size_vram": served.size_bytes,
            "expires_at": "2318-01-01T00:00:00Z",
            "context_length": served.context_tokens,
        }
        return json_response({"models": [{**_entry(served), **more}]})

    async def show(self, request: Request) -> Response:
        raw = await read_object(request)
        name = raw.get("model", raw.get("name", ""))
        served = self._models.require()
        if not isinstance(name, str) or not answers_to(served, name):
            raise unknown_model(str(name), (served.model_id,))
        capabilities = ["completion", "tools", *(["thinking"] if served.has_thinking else [])]
        info = {
            "general.architecture": served.architecture,
            "general.basename": served.display_name,
            "general.parameter_count": served.n_params,
            f"{served.architecture}.context_length": served.context_tokens,
        }
        return json_response(
            {
                "details": _details(served),
                "model_info": info,
                "capabilities": capabilities,
                "template": "",
                "parameters": f"num_ctx {served.context_tokens}",
                "modified_at": _stamp(served.loaded_at_s),
            }
        )

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, is_chat=True)

    async def generate(self, request: Request) -> Response:
        return await self._answer(request, is_chat=False)

    async def managed(self, request: Request) -> Response:
        del request
        raise ApiError("Models are managed in the app.", status=501, code="managed_in_app")

    async def _answer(self, request: Request, *, is_chat: bool) -> Response:
        notes: list[str] = []
        body = typed(await read_object(request), OllamaBody, notes)
        served = self._models.require()
        is_empty = body.messages in (None, []) if is_chat else not body.prompt and not body.system
        if is_empty and (not is_chat or body.messages == []):
            return json_response(_preloaded(served, is_chat=is_chat))
        if not is_chat and body.suffix:
            raise ApiError("suffix needs a fill-in-the-middle model.", param="suffix")
        chat = ollama_request(body, served, notes, is_chat=is_chat)
        meta = meta_of(request, first_words(body.messages))
        self._conductor.inspector.seen(meta)
        run = await self._conductor.prepare(chat, meta)
        encoder = OllamaStream(run, is_chat=is_chat)
        if not chat.is_stream:
            return await whole(request, run, encoder.whole)
        return await streamed(run, encoder)


def _preloaded(served: ServedModel, *, is_chat: bool) -> dict[str, Any]:
    """An empty request asks for the model to be loaded; it is."""
    said = {"message": {"role": "assistant", "content": ""}} if is_chat else {"response": ""}
    return {
        "model": f"{served.model_id}:latest",
        "created_at": _now(),
        **said,
        "done": True,
        "done_reason": "load",
    }


def _entry(served: ServedModel) -> dict[str, Any]:
    name = f"{served.model_id}:latest"
    return {
        "name": name,
        "model": name,
        "modified_at": _stamp(served.loaded_at_s),
        "size": served.size_bytes,
        # The file's own hash would mean reading gigabytes; this is stable for the same model and size.
        "digest": hashlib.sha256(f"{served.model_id} {served.size_bytes}".encode()).hexdigest(),
        "details": _details(served),
    }


def _details(served: ServedModel) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": served.architecture,
        "families": [served.architecture],
        "parameter_size": served.params_text,
        "quantization_level": served.quantization,
    }


def _stamp(at_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
