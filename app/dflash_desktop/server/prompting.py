"""From a ChatRequest to the token ids the engine gets: template, tools, forced beginnings, thinking."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.requests import ChatPrompt
from dflash_desktop.server.cards import thinking_budget
from dflash_desktop.server.chat import ChatRequest, ResponseFormat
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.models import ServedModel
from dflash_desktop.server.parsing.reasoning import CLOSE_TAG, opens_thinking
from dflash_desktop.server.ports import PromptReader
from dflash_desktop.server.replay import Replays


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """What the engine reads, and in which state the reply begins. `written` is the part of the reply that we wrote."""

    text: str
    token_ids: tuple[int, ...]
    starts_in_thoughts: bool
    written: str
    tools: Sequence[Mapping[str, Any]]
    think_budget: int | None  # tokens; None: no limit of ours
    notes: tuple[str, ...]


def make_plan(request: ChatRequest, served: ServedModel, reader: PromptReader, replays: Replays) -> PromptPlan:
    """Raise ApiError when the template refuses. Takes milliseconds: call it off the event loop."""
    try:
        return _plan(request, served, reader, replays)
    except AppError as error:
        raise ApiError(str(error), param="messages") from error


def _plan(request: ChatRequest, served: ServedModel, reader: PromptReader, replays: Replays) -> PromptPlan:
    if request.raw is not None:
        rendered = reader.render(request.raw)
        return PromptPlan(rendered.text, rendered.token_ids, False, "", (), None, request.notes)
    notes = list(request.notes)
    if not served.can_template:
        notes.append("the model file has no chat template: a general one is used")
    tools = request.offered_tools
    is_forced = bool(tools) and request.tool_choice.mode == "required"
    kwargs = dict(request.template_kwargs)
    thinks = False if is_forced else request.thinking.is_on
    if thinks is not None:
        if served.has_thinking:
            kwargs["enable_thinking"] = thinks
        else:
            notes.append("thinking was asked on or off, but this model's template has no switch for it")
    messages: Sequence[Mapping[str, Any]] = request.messages
    if request.response_format.kind != "text":
        messages = with_system_text(messages, format_instruction(request.response_format))
        notes.append("the answer's format is asked for in the prompt and checked; it is not enforced token by token")
    if tools and not served.has_tools:
        messages = tools_as_text(messages, tools)
        notes.append("the model's template knows no tools: they are described in the system text")
    prompt_tools = tools if served.has_tools else ()
    prompt = ChatPrompt(messages, prompt_tools, kwargs, continue_last=request.continue_last)
    rendered = replays.render(prompt, reader)
    starts_in_thoughts = opens_thinking(rendered.text) and not request.continue_last
    written = ""
    if is_forced and not request.continue_last:
        written = _call_header(rendered.text, request.tool_choice.name)
        if starts_in_thoughts:
            written = f"\n{CLOSE_TAG}\n\n{written}"
    elif _begins_with_brace(request) and not starts_in_thoughts:
        written = "{"
    token_ids = rendered.token_ids
    if written:
        token_ids += reader.tokenize(written, has_control_tokens=True)
    budget = thinking_budget(served, request) if starts_in_thoughts else None
    return PromptPlan(rendered.text + written, token_ids, starts_in_thoughts, written, tools, budget, tuple(notes))


def _call_header(prompt_text: str, name: str | None) -> str:
    """The beginning of a call in the syntax that the template teaches."""
    if "<function=" in prompt_text:
        return "<tool_call>\n<function=" + (f"{name}>\n" if name else "")
    return '<tool_call>\n{"name": "' + (f'{name}", "arguments": ' if name else "")


def _begins_with_brace(request: ChatRequest) -> bool:
    if request.offered_tools or request.continue_last:
        return False
    if request.response_format.kind == "json_object":
        return True
    schema = request.response_format.schema
    return schema is not None and (schema.get("type") == "object" or "properties" in schema)


def format_instruction(response_format: ResponseFormat) -> str:
    if response_format.schema is None:
        return "Answer with one JSON object and nothing else: no code block, no explanation."
    schema = json.dumps(response_format.schema, ensure_ascii=False, sort_keys=True)
    return f"Answer with JSON that fits this JSON schema, and nothing else: no code block, no explanation.\n{schema}"


def with_system_text(messages: Sequence[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    if messages and messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{messages[0]['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def tools_as_text(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Tools, calls and results as plain text in the Hermes form, for templates that know none of them."""
    listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    text = (
        "You may call functions. Their signatures:\n<tools>\n" + listed + "\n</tools>\n"
        "To call one, answer with\n<tool_call>\n"
        '{"name": "FUNCTION", "arguments": {"ARGUMENT": "VALUE"}}\n</tool_call>'
    )
    turns: list[Mapping[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            result = f"<tool_response>\n{message['content']}\n</tool_response>"
            if turns and turns[-1]["role"] == "user" and turns[-1]["content"].startswith("<tool_response>"):
                turns[-1] = {"role": "user", "content": f"{turns[-1]['content']}\n{result}"}
            else:
                turns.append({"role": "user", "content": result})
        elif message.get("tool_calls"):
            calls = [json.dumps(_plain(call), ensure_ascii=False) for call in message["tool_calls"]]
            parts = [message["content"], *(f"<tool_call>\n{call}\n</tool_call>" for call in calls)]
            turns.append({"role": "assistant", "content": "\n".join(part for part in parts if part)})
        else:
            turns.append(message)
    return with_system_text(turns, text)


def _plain(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
