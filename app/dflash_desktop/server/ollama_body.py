"""Reads the bodies of Ollama's /api/chat and /api/generate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dflash_desktop.engine.requests import RawPrompt
from dflash_desktop.server.bodies import positive, stop_strings, typed
from dflash_desktop.server.chat import ChatRequest, ResponseFormat, SamplingAsk, Thinking
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.messages import function_tools, normalise
from dflash_desktop.server.models import ServedModel
from dflash_desktop.server.openai_body import effort_thinking, n_top_logprobs
from dflash_desktop.server.pflash import pflash_ask


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
    logprobs: bool | None = None
    top_logprobs: int | None = None
    pflash: Any = None

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


def ollama_request(body: OllamaBody, served: ServedModel | None, notes: list[str], *, is_chat: bool) -> ChatRequest:
    options = typed(body.options or {}, OllamaOptions, notes)
    if options.num_ctx is not None and served is not None and options.num_ctx > served.context_tokens:
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
        pflash=pflash_ask(body.pflash),
        max_tokens=positive(options.num_predict),
        stop=stop_strings(options.stop),
        response_format=_format(body.format),
        thinking=thinking,
        is_stream=body.stream is not False,
        want_logprobs=bool(body.logprobs),
        n_top_logprobs=n_top_logprobs(body.top_logprobs, is_wanted=bool(body.logprobs)),
        idle_unload_s=keep_alive_s(body.keep_alive),
        notes=tuple(dict.fromkeys(notes)),
    )


def keep_alive_s(value: str | float | None) -> float | None:
    """`keep_alive` in seconds: a number, or a text such as 5m or 1h30m; below 0: for ever."""
    if value is None or isinstance(value, int | float):
        return value
    found = _DURATION.fullmatch(value.strip())
    if found is None or not value.strip():
        raise ApiError("keep_alive must be seconds, or a time such as 5m.", param="keep_alive")
    sign = -1.0 if value.strip().startswith("-") else 1.0
    parts = [float(number) * _SECONDS[unit or "s"] for number, unit in _DURATION_PART.findall(value)]
    return sign * sum(parts)


_DURATION = re.compile(r"-?(\d+(\.\d+)?(ms|[smh])?)+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smh])?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


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
