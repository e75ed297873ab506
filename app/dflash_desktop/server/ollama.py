"""The useful part of Ollama's API: NDJSON streams, arguments as objects, calls whole."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.server.bodies import first_words, meta_of, peer_of, read_object, typed
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError, may_not_unload
from dflash_desktop.server.figures import pflash_member, timings
from dflash_desktop.server.generation import Run
from dflash_desktop.server.models import ServedModel, answers_to
from dflash_desktop.server.naming import folded
from dflash_desktop.server.ollama_body import OllamaBody, keep_alive_s, ollama_request
from dflash_desktop.server.pieces import (
    Beat,
    Call,
    CallArguments,
    CallEnded,
    CallStarted,
    Finished,
    Logprobs,
    Piece,
    Prefilled,
    ReasoningPiece,
    TextPiece,
    TokenLogprob,
    Usage,
)
from dflash_desktop.server.shelf import ShelfModel
from dflash_desktop.server.stream import json_response, streamed, whole

API_VERSION = "0.12.0"  # the level of the API that is imitated, not our own version


def _figures(usage: Usage, total_s: float, load_s: float) -> dict[str, Any]:
    return {
        "total_duration": int(total_s * 1e9),
        "load_duration": int(load_s * 1e9),
        "prompt_eval_count": usage.n_asked_tokens,
        "prompt_eval_duration": int(usage.prefill_s * 1e9),
        "eval_count": usage.n_reply_tokens,
        "eval_duration": int(usage.decode_s * 1e9),
        **pflash_member(usage),
        "timings": timings(usage),
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())


def _call_json(call: Call, index: int) -> dict[str, Any]:
    function = {"index": index, "name": call.name, "arguments": json.loads(call.arguments)}
    return {"id": f"call_{call.call_id}", "function": function}


def _logprobs_json(tokens: Iterable[TokenLogprob]) -> list[dict[str, Any]]:
    def told(token: bytes, logprob: float) -> dict[str, Any]:
        return {"token": token.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(token)}

    return [
        {**told(each.token_bytes, each.logprob), "top_logprobs": [told(*other) for other in each.top]}
        for each in tokens
    ]


class OllamaStream:
    """Encoder: one JSON object a line."""

    media_type = "application/x-ndjson"

    def __init__(self, run: Run, *, is_chat: bool) -> None:
        self._run = run
        self._is_chat = is_chat
        self._model = f"{run.served.model_id}:latest"
        self._started_s = time.monotonic()
        self._call: Call | None = None
        self._n_calls = 0

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
                self._n_calls += 1
                return self._line("", tool_calls=[_call_json(self._call, self._n_calls - 1)])
            case Logprobs():
                return self._line("", extra={"logprobs": _logprobs_json(piece.tokens)})
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
        complete = [call for call in reply.calls if call.is_complete]
        calls = [_call_json(call, i) for i, call in enumerate(complete)]
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
        if run.request.want_logprobs:
            line["logprobs"] = _logprobs_json(reply.logprobs)
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
        models = [_entry(served)] if served is not None else []
        models += map(_entry, self._conductor.loading.loadable(peer_of(request)))
        return json_response({"models": models})

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
        if not isinstance(name, str):
            raise ApiError("model must be a text.", param="model")
        served = self._conductor.loading.listed(name, peer_of(request))
        has_thinking = isinstance(served, ServedModel) and served.has_thinking
        capabilities = ["completion", "tools", *(["thinking"] if has_thinking else [])]
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
                "modified_at": _stamp(_changed_at_s(served)),
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
        is_empty = body.messages in (None, []) if is_chat else not body.prompt and not body.system
        if is_empty and (not is_chat or body.messages == []):
            return await self._preload(request, body, is_chat=is_chat)
        if not is_chat and body.suffix:
            raise ApiError("suffix needs a fill-in-the-middle model.", param="suffix")
        chat = ollama_request(body, self._models.served, notes, is_chat=is_chat)
        meta = meta_of(request, first_words(body.messages))
        self._conductor.inspector.seen(meta)
        run = await self._conductor.prepare(chat, meta, request.receive)
        encoder = OllamaStream(run, is_chat=is_chat)
        if not chat.is_stream:
            return await whole(request, run, encoder.whole)
        return await streamed(run, encoder)

    async def _preload(self, request: Request, body: OllamaBody, *, is_chat: bool) -> Response:
        """A request without words asks for the model to be loaded, or with `keep_alive` 0 to be unloaded."""
        loading, meta = self._conductor.loading, meta_of(request)
        keep_s = keep_alive_s(body.keep_alive)
        if keep_s == 0:
            served = self._models.served
            if served is None or not answers_to(served, body.model or ""):  # it is not loaded: nothing to do
                return json_response(_preloaded(folded(body.model or ""), "unload", is_chat=is_chat))
            if not loading.may_load(meta.peer):
                raise may_not_unload()
            if self._conductor.line.is_busy:
                raise ApiError("The model is answering a request.", status=409, code="model_busy")
            await loading.unload()
            return json_response(_preloaded(served.model_id, "unload", is_chat=is_chat))
        wish = await loading.wish_for(body.model or "", meta.peer)
        if wish is not None:
            await self._conductor.load(meta, wish, request.receive)
        return json_response(_preloaded(self._models.require().model_id, "load", is_chat=is_chat))


def _preloaded(model_id: str, reason: str, *, is_chat: bool) -> dict[str, Any]:
    said = {"message": {"role": "assistant", "content": ""}} if is_chat else {"response": ""}
    return {
        "model": f"{model_id}:latest",
        "created_at": _now(),
        **said,
        "done": True,
        "done_reason": reason,
    }


def _changed_at_s(model: ServedModel | ShelfModel) -> int:
    return model.loaded_at_s if isinstance(model, ServedModel) else model.changed_at_s


def _entry(served: ServedModel | ShelfModel) -> dict[str, Any]:
    name = f"{served.model_id}:latest"
    return {
        "name": name,
        "model": name,
        "modified_at": _stamp(_changed_at_s(served)),
        "size": served.size_bytes,
        # The file's own hash would mean reading gigabytes; this is stable for the same model and size.
        "digest": hashlib.sha256(f"{served.model_id} {served.size_bytes}".encode()).hexdigest(),
        "details": _details(served),
    }


def _details(served: ServedModel | ShelfModel) -> dict[str, Any]:
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
