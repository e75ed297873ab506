"""Reads what a prediction is asked with: history and settings, into the one form that generation understands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from dflash_desktop.engine.requests import RawPrompt
from dflash_desktop.server.bodies import SamplingBody, positive, stop_strings, typed
from dflash_desktop.server.chat import ChatRequest, ResponseFormat, ToolChoice
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.lmstudio_sdk.packets import Specifier
from dflash_desktop.server.messages import function_tools, normalise

PREDICTION = "llm.prediction."
LOADED_CONTEXT = "llm.load.contextLength"
_COMPLETION = "completeModeFormatting"  # the layer by which SDKs ask for a text to be continued as it is
_SAMPLING = {
    "temperature": "temperature",
    "topKSampling": "top_k",
    "topPSampling": "top_p",
    "minPSampling": "min_p",
    "repeatPenalty": "repeat_penalty",
    "llama.frequencyPenalty": "frequency_penalty",
    "llama.presencePenalty": "presence_penalty",
    "seed": "seed",
}
_OTHER = frozenset({"maxPredictedTokens", "stopStrings", "structured", "tools", "promptTemplate"})


class Field(msgspec.Struct):
    key: str
    value: Any = None


class FieldList(msgspec.Struct):
    fields: list[Field] = []


class Layer(msgspec.Struct, rename="camel"):
    config: FieldList
    layer_name: str = ""


class Stack(msgspec.Struct):
    """Settings in layers; the first that names one decides."""

    layers: list[Layer] = []

    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for layer in self.layers:
            for field in layer.config.fields:
                found.setdefault(field.key, field.value)
        return found

    def flat(self) -> dict[str, Any]:
        """The same in one layer, as answers hold it."""
        return {"fields": [{"key": key, "value": value} for key, value in self.fields().items()]}

    @property
    def is_completion(self) -> bool:
        return any(layer.layer_name == _COMPLETION for layer in self.layers)


class History(msgspec.Struct):
    messages: list[Any]


class PredictionBody(msgspec.Struct, rename="camel"):
    """The members of `predict`; the last two mean presets and settings that only LM Studio keeps."""

    model_specifier: Specifier
    history: History
    prediction_config_stack: Stack
    fuzzy_preset_identifier: str | None = None
    ignore_server_session_config: Any = None


def checked(value: object) -> Any:
    """A setting's value; of one with a tick box None, unless that is ticked."""
    if isinstance(value, Mapping) and "checked" in value:
        return value.get("value") if value["checked"] is True else None
    return value


def prediction_request(body: PredictionBody, *, idle_unload_s: float | None = None) -> ChatRequest:
    """Check and convert; raise ApiError naming what is wrong."""
    notes: list[str] = []
    stack = body.prediction_config_stack
    own = {key.removeprefix(PREDICTION): each for key, each in stack.fields().items() if key.startswith(PREDICTION)}
    ignored = sorted(set(own) - set(_SAMPLING) - _OTHER)
    if ignored:
        notes.append("ignored settings: " + ", ".join(key[:40] for key in ignored[:20]))
    if body.fuzzy_preset_identifier:
        notes.append("presets are kept by LM Studio only: the one that was asked for is ignored")
    sampling = {name: checked(own.get(key)) for key, name in _SAMPLING.items()}
    messages = openai_messages(body.history.messages)
    request = ChatRequest(
        model_asked=body.model_specifier.name,
        sampling=typed(sampling, SamplingBody, notes).sampling(),
        max_tokens=positive(_whole(own, "maxPredictedTokens")),
        stop=stop_strings(_texts(own, "stopStrings")),
        is_stream=True,
        idle_unload_s=idle_unload_s,
    )
    if stack.is_completion:
        if _format(own).kind != "text" or _tools(own, notes):
            notes.append("structured and tools have no meaning where a text is continued: they are ignored")
        return replace(request, raw=RawPrompt(_plain_text(messages)), notes=tuple(notes))
    if own.get("promptTemplate") is not None:
        raise ApiError(
            "promptTemplate is not served: prompts are written with the model's own template.",
            code="unsupported_value",
            param="promptTemplate",
        )
    conversation = normalise(messages)
    tools = _tools(own, notes)
    is_forced = bool(tools) and own["tools"].get("force") is True
    return replace(
        request,
        messages=conversation.messages,
        continue_last=conversation.continue_last,
        tools=tools,
        tool_choice=ToolChoice("required") if is_forced else ToolChoice(),
        response_format=_format(own),
        notes=(*notes, *conversation.notes),
    )


def openai_messages(messages: list[Any]) -> list[dict[str, Any]]:
    """The history in OpenAI's shape, which is then checked as any other."""
    found: list[dict[str, Any]] = []
    for i, message in enumerate(messages):
        parts = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(message, Mapping) or not isinstance(parts, list):
            raise ApiError(f"messages[{i}] must be an object with role and a list as content.", param=f"messages[{i}]")
        calls: list[dict[str, Any]] = []
        content: list[Any] = []
        for part in parts:
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind == "toolCallRequest" and isinstance(part.get("toolCallRequest"), Mapping):
                call = part["toolCallRequest"]
                function = {"name": call.get("name"), "arguments": call.get("arguments")}
                calls.append({"id": call.get("id"), "function": function})
            elif kind == "toolCallResult":
                result = {"role": "tool", "content": part.get("content"), "tool_call_id": part.get("toolCallId")}
                found.append(result)
            elif kind == "file" and part.get("fileType") == "image":
                content.append({"type": "image"})
            else:
                content.append(part)
        if message.get("role") != "tool":
            found.append({"role": message.get("role"), "content": content, **({"tool_calls": calls} if calls else {})})
    return found


def _plain_text(messages: list[dict[str, Any]]) -> str:
    """All texts of a history one after the other: SDKs send the text to continue as a single message."""
    text = "".join(each["content"] for each in normalise(messages).messages)
    if not text:
        raise ApiError("The history holds no text to continue.", param="messages")
    return text


def _format(own: Mapping[str, Any]) -> ResponseFormat:
    asked = own.get("structured")
    kind = asked.get("type") if isinstance(asked, Mapping) else None
    if asked is None or kind == "none":
        return ResponseFormat()
    if kind == "json":
        schema = asked.get("jsonSchema")
        return ResponseFormat("json_schema", schema) if isinstance(schema, Mapping) else ResponseFormat("json_object")
    raise ApiError(
        "structured must be of type none or json: grammars in GBNF are not served.",
        code="unsupported_value",
        param="structured",
    )


def _tools(own: Mapping[str, Any], notes: list[str]) -> list[dict[str, Any]]:
    asked = own.get("tools")
    kind = asked.get("type") if isinstance(asked, Mapping) else None
    if asked is None or kind == "none":
        return []
    listed = asked.get("tools") if isinstance(asked, Mapping) else None
    if kind != "toolArray" or not isinstance(listed, list | None):
        raise ApiError("tools must be of type none or toolArray, with a list.", param="tools")
    return function_tools(listed or [], notes)


def _whole(own: Mapping[str, Any], key: str) -> int | None:
    value = checked(own.get(key))
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ApiError(f"{key} must be a whole number.", param=key)


def _texts(own: Mapping[str, Any], key: str) -> list[str] | None:
    value = own.get(key)
    if value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        return value
    raise ApiError(f"{key} must be a list of texts.", param=key)
