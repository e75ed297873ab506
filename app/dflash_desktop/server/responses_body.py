"""Reads the body of an OpenAI Responses request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dflash_desktop.server.bodies import SamplingBody, positive, typed
from dflash_desktop.server.chat import ChatRequest, ResponseFormat
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.messages import arrange, content_text, function_tool, tool_call
from dflash_desktop.server.openai_body import response_format, switched_thinking, tool_choice
from dflash_desktop.server.pflash import pflash_ask

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})


class ResponsesBody(SamplingBody):
    """Members with a meaning for us; the second block is accepted and has none."""

    model: str | None = None
    input: Any = None
    instructions: str | None = None
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    max_output_tokens: int | None = None
    reasoning: dict[str, Any] | None = None
    enable_thinking: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    prompt: Any = None

    include: Any = None
    prompt_cache_key: Any = None
    metadata: Any = None
    user: Any = None
    service_tier: Any = None
    truncation: Any = None
    client_metadata: Any = None
    safety_identifier: Any = None
    background: Any = None
    stream_options: Any = None
    top_logprobs: Any = None
    max_tool_calls: Any = None


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """How a tool's name in the prompt maps back to what the client knows."""

    name: str
    namespace: str | None = None
    is_custom: bool = False


@dataclass(slots=True)
class ResponsesRequest:
    """A chat request, and what the answer needs to speak of it."""

    chat: ChatRequest
    offered: dict[str, OfferedTool] = field(default_factory=dict)
    echo: dict[str, Any] = field(default_factory=dict)  # members repeated in the answer
    turns: list[dict[str, Any]] = field(default_factory=list)  # of this request, for a stored conversation
    is_stored: bool = False
    n_bytes: int = 0  # of the body it came in


def responses_request(raw: dict[str, Any], earlier: Sequence[dict[str, Any]] = ()) -> ResponsesRequest:
    """`earlier`: the stored turns of previous_response_id."""
    notes: list[str] = []
    body = typed(raw, ResponsesBody, notes)
    for name, value in (("conversation", body.conversation), ("prompt", body.prompt)):
        if value:  # answered without it, the reply would be about something else
            raise ApiError(
                f"{name} names what is kept elsewhere. Send the turns in input, or previous_response_id.",
                code="unsupported_value",
                param=name,
            )
    turns = [*earlier, *input_turns(body.input, notes)]
    if not turns and not body.instructions:
        raise ApiError("input holds nothing to answer.", param="input")
    system = [{"role": "system", "content": body.instructions}] if body.instructions else []
    conversation = arrange([*system, *turns], notes)
    tools, offered = _tools(body.tools or [], notes)
    effort = body.reasoning.get("effort") if body.reasoning is not None else None
    switches = (body.enable_thinking, (body.chat_template_kwargs or {}).get("enable_thinking"))
    chat = ChatRequest(
        model_asked=body.model or "",
        messages=conversation.messages,
        continue_last=conversation.continue_last,
        tools=tools,
        tool_choice=tool_choice(_inner_choice(body.tool_choice, offered), tools),
        is_parallel=body.parallel_tool_calls is not False,
        sampling=body.sampling(),
        pflash=pflash_ask(body.pflash),
        max_tokens=positive(body.max_output_tokens),
        response_format=_format(body.text),
        thinking=switched_thinking(effort, switches),
        is_stream=bool(body.stream),
        notes=tuple(conversation.notes),
    )
    echo = {
        "instructions": body.instructions,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "tools": body.tools or [],
        "tool_choice": body.tool_choice or "auto",
        "temperature": body.temperature,
        "top_p": body.top_p,
        "max_output_tokens": body.max_output_tokens,
        "previous_response_id": body.previous_response_id,
        "store": body.store is not False,
        "metadata": body.metadata if isinstance(body.metadata, dict) else {},
        "reasoning": body.reasoning or {"effort": None, "summary": None},
        "text": body.text or {"format": {"type": "text"}},
        "truncation": "disabled",
    }
    return ResponsesRequest(chat, offered, echo, turns, is_stored=body.store is not False)


def input_turns(value: object, notes: list[str], *, refuses_images: bool = True) -> list[dict[str, Any]]:
    """Items as chat turns; adjacent calls join one assistant turn.

    `refuses_images`: in the last of the user's messages; elsewhere a note stands for them.
    """
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise ApiError("input must be a string or a list of items.", param="input")
    turns: list[dict[str, Any]] = []
    thoughts = ""
    last_user = max(
        (i for i, each in enumerate(value) if isinstance(each, dict) and each.get("role") == "user"), default=-1
    )
    for i, item in enumerate(value):
        where = f"input[{i}]"
        if not isinstance(item, Mapping):
            raise ApiError(f"{where} must be an object.", param=where)
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            turn = _message(item, where, notes, is_last_user=refuses_images and i == last_user)
            if turn["role"] == "assistant" and thoughts:
                turn["reasoning_content"], thoughts = thoughts, ""
            turns.append(turn)
        elif kind == "reasoning":
            thoughts = _thoughts(item, where, notes)
        elif isinstance(kind, str) and kind in _CALLS:
            call = _call(item, kind, where)
            if not turns or turns[-1]["role"] != "assistant":
                turns.append({"role": "assistant", "content": ""})
                if thoughts:
                    turns[-1]["reasoning_content"], thoughts = thoughts, ""
            turns[-1].setdefault("tool_calls", []).append(call)
        elif isinstance(kind, str) and kind in _OUTPUTS:
            turns.append(_output(item, where, notes))
        else:
            notes.append(f"an input item of type {str(kind)[:40]!r} was skipped")
    return turns


def _message(item: Mapping[str, Any], where: str, notes: list[str], *, is_last_user: bool) -> dict[str, Any]:
    named = item.get("role")
    role = _ROLES.get(named) if isinstance(named, str) else None
    if role is None:
        raise ApiError(f"{where}.role must be one of: {', '.join(_ROLES)}.", param=f"{where}.role")
    text = content_text(item.get("content"), f"{where}.content", notes, refuses_images=is_last_user)
    return {"role": role, "content": text}


def _thoughts(item: Mapping[str, Any], where: str, notes: list[str]) -> str:
    parts = item.get("content") or item.get("summary") or []
    return content_text(parts, f"{where}.content", notes)


def _call(item: Mapping[str, Any], kind: str, where: str) -> dict[str, Any]:
    call_id = item.get("call_id") or item.get("id")
    if kind == "local_shell_call":
        action = item.get("action")
        return tool_call("local_shell", action if isinstance(action, Mapping) else {}, call_id)
    name = item.get("name")
    if not isinstance(name, str):
        raise ApiError(f"{where}.name must be a text.", param=f"{where}.name")
    if kind == "custom_tool_call":
        return tool_call(name, {"input": item.get("input")}, call_id)
    space = item.get("namespace")
    return tool_call(f"{space}__{name}" if isinstance(space, str) and space else name, item.get("arguments"), call_id)


def _output(item: Mapping[str, Any], where: str, notes: list[str]) -> dict[str, Any]:
    output = item.get("output")
    if isinstance(output, Mapping):
        output = output.get("content", output.get("output", ""))
    turn = {"role": "tool", "content": content_text(output, f"{where}.output", notes)}
    if isinstance(item.get("call_id"), str):
        turn["tool_call_id"] = item["call_id"]
    return turn


def _tools(listed: list[Any], notes: list[str]) -> tuple[list[dict[str, Any]], dict[str, OfferedTool]]:
    """What we can offer; every other kind is skipped with a note, never refused."""
    tools: list[dict[str, Any]] = []
    offered: dict[str, OfferedTool] = {}

    def offer(definition: Mapping[str, Any], where: str, tool: OfferedTool, prefix: str = "") -> None:
        made = function_tool({**definition, "name": f"{prefix}{definition.get('name', '')}"}, where)
        tools.append(made)
        offered[made["function"]["name"]] = tool

    for i, each in enumerate(listed):
        where = f"tools[{i}]"
        if not isinstance(each, Mapping):
            raise ApiError(f"{where} must be an object.", param=where)
        kind, name = each.get("type"), each.get("name")
        if kind == "function":
            inner = each.get("function")
            definition = inner if isinstance(inner, Mapping) and "name" not in each else each
            offer(definition, where, OfferedTool(str(definition.get("name"))))
        elif kind == "custom" and isinstance(name, str):
            offer(_as_function(each), where, OfferedTool(name, is_custom=True))
        elif kind == "namespace" and isinstance(name, str) and isinstance(each.get("tools"), list):
            for j, inner in enumerate(each["tools"]):
                if isinstance(inner, Mapping) and inner.get("type", "function") == "function":
                    tool = OfferedTool(str(inner.get("name")), namespace=name)
                    offer(inner, f"{where}.tools[{j}]", tool, f"{name}__")
        else:
            notes.append(f"a tool of type {str(kind)[:40]!r} was skipped")
    return tools, offered


def _as_function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A freeform tool as a function with one text argument; its grammar goes into the description."""
    description = tool.get("description") if isinstance(tool.get("description"), str) else ""
    grammar = tool.get("format")
    if isinstance(grammar, Mapping) and isinstance(grammar.get("definition"), str):
        description = f"{description}\nThe input must follow this grammar:\n{grammar['definition']}"
    parameters = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return {"name": tool.get("name"), "description": description, "parameters": parameters}


def _inner_choice(
    choice: str | dict[str, Any] | None, offered: Mapping[str, OfferedTool]
) -> str | dict[str, Any] | None:
    """A choice of a kind that was skipped means: the model decides."""
    if not isinstance(choice, dict) or choice.get("type") in ("function", "auto", "none", "required", "allowed_tools"):
        return choice
    return choice if isinstance(choice.get("name"), str) and choice["name"] in offered else "auto"


def _format(text: Mapping[str, Any] | None) -> ResponseFormat:
    wanted = text.get("format") if text is not None else None
    return response_format(wanted if isinstance(wanted, Mapping) else None, param="text.format")
